//! Implements `caribou trace histogram`: prints distributions of handler durations, message latencies, message
//! sizes and idle times.
//!
//! Bins are powers of two. Each has its share of the count and, except for latencies, of the sum, because many short
//! calls do no harm if they take little time. Conclusions come first. Events are read once; memory grows with bins and
//! messages in flight.

mod picture;
mod tables;

use std::io::Write;
use std::path::PathBuf;

use caribou::trace::{Event, NameId, Shape, What};
use trace_reader::Trace;

use super::analysis::bins::Bins;
use super::analysis::events::{Observer, Scope, WorkerRef, in_order, no_events};
use super::analysis::log_histogram::LogHistogram;
use super::analysis::messages::{Matcher, Received, Sent};
use super::open::{TracePart, warn};
use super::page::{Format, Page, duration, plural};
use super::select::{Selection, Window};
use crate::{Error, output};

/// Calls below this time are short: the runtime's work per message becomes visible.
const SHORT_NS: u64 = 20_000;

/// Options of the command.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    trace: TracePart,
    /// Only handlers of this kind, such as Block::Halo or Halo, and the messages that they handled
    #[arg(long, value_name = "NAME")]
    kind: Option<String>,
    /// Draw the bins to this file
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

/// The distributions.
#[derive(Default)]
pub(crate) struct Found {
    wall: LogHistogram,
    cpu: LogHistogram,
    short: u64,
    short_ns: f64,
    size: LogHistogram,
    latency: LogHistogram,
    /// Messages handled before they were sent, according to the clocks.
    early: u64,
    idle: LogHistogram,
    given_up: u64,
}

pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    let trace = options.trace.open()?;
    let kinds = options.kind.as_deref().map(|name| kinds_called(&trace, name)).transpose()?;
    let window = options.trace.selection.window(&trace);
    let mut durations = Durations::new(&options.trace.selection, window, kinds.as_deref());
    // Reads all ranks, because a message to a selected rank may come from a rank that is not selected.
    warn(&in_order(Scope::of(&trace.ranks, window), &mut [&mut durations]));
    let found = durations.finish();
    if let Some(file) = options.svg.as_ref().filter(|_| trace.events() > 0) {
        output::write(file, picture::draw(&trace, &found).finish())?;
    }
    Ok(page(&trace, &found).write(options.format, out)?)
}

/// The page of the command.
pub(crate) fn page(trace: &Trace, found: &Found) -> Page {
    let mut page = Page::new("histogram", trace);
    if trace.events() == 0 {
        page.says.push(no_events(trace));
        return page;
    }
    // `--csv` writes the first table.
    page.tables.push(tables::quantiles(found));
    if found.wall.count() > 0 {
        page.tables.push(tables::executions(found));
    }
    let others = [
        ("sizes", "size of messages", &found.size),
        ("latencies", "from send to handler", &found.latency),
        ("idle", "idle", &found.idle),
    ];
    for (name, title, spread) in others.into_iter().filter(|(_, _, spread)| spread.count() > 0) {
        page.tables.push(tables::bins(name, title, spread));
    }
    page.says.extend(advice(found, trace.run.shape));
    page.notes.extend(notes(trace, found));
    page
}

/// The message kinds of a name, which may include the name of their array.
fn kinds_called(trace: &Trace, name: &str) -> Result<Vec<NameId>, Error> {
    let all = || trace.names.iter().zip(0..).filter(|(kind, _)| kind.array.is_some());
    let called = all().filter(|(kind, id)| kind.text == name || trace.name(NameId(*id)) == name);
    let called: Vec<NameId> = called.map(|(_, id)| NameId(id)).collect();
    if called.is_empty() {
        let names: Vec<String> = all().take(20).map(|(_, id)| trace.name(NameId(id))).collect();
        return Err(Error::Usage(format!("--kind {name}: no such kind; there are {}", names.join(", "))));
    }
    Ok(called)
}

/// Collects the distributions. Events must come in order of time.
pub(crate) struct Durations<'q> {
    selection: &'q Selection,
    kinds: Option<&'q [NameId]>,
    /// Contains the events that ended in the window, so that results of adjacent windows add up.
    whole: Bins,
    matcher: Matcher<Sent, Received>,
    found: Found,
}

impl<'q> Durations<'q> {
    pub(crate) fn new(selection: &'q Selection, window: Window, kinds: Option<&'q [NameId]>) -> Self {
        let (matcher, found) = (Matcher::default(), Found::default());
        Self { selection, kinds, whole: Bins::new(window, 1), matcher, found }
    }

    pub(crate) fn finish(self) -> Found {
        Found { given_up: self.matcher.evicted().0, ..self.found }
    }
}

impl Observer<'_> for Durations<'_> {
    fn see(&mut self, place: WorkerRef<'_>, event: &Event) {
        let selected = |rank| self.selection.has(rank) && self.whole.ends_inside(event.end_ns);
        let chosen = |kind: &NameId| self.kinds.is_none_or(|kinds| kinds.contains(kind));
        let (here, found) = (selected(place.rank.rank), &mut self.found);
        match event.what {
            What::Handler { kind, .. } if here && chosen(&kind) => found.execution(event),
            What::Range { .. } if here && self.kinds.is_none() => found.execution(event),
            What::Idle if here && self.kinds.is_none() => found.idle.add(event.duration_ns()),
            _ => {}
        }
        if let Some(message) = self.matcher.see(place, event).other()
            && selected(message.begun.worker.rank)
            && chosen(&message.begun.kind)
        {
            found.size.add(message.sent.bytes);
            found.latency.add(message.latency_ns());
            found.early += u64::from(message.early_ns() > 0);
        }
    }
}

impl Found {
    fn execution(&mut self, event: &Event) {
        let wall_ns = event.duration_ns();
        self.wall.add(wall_ns);
        self.cpu.add(event.cpu_ns());
        if wall_ns < SHORT_NS {
            self.short += 1;
            self.short_ns += wall_ns as f64;
        }
    }
}

/// Conclusions in words.
fn advice(found: &Found, shape: Shape) -> Vec<String> {
    let mut says = Vec::new();
    let (what, why) = match shape {
        Shape::Arrays | Shape::Supersteps => ("handlers", "see `outliers --noise`"),
        Shape::Pools => {
            ("ranges", "other processes had the vCPU, or iterations slept or did I/O; see `summary`")
        }
    };
    let (calls, wall_ns, cpu_ns) = (found.wall.count() as f64, found.wall.sum(), found.cpu.sum());
    if calls > 0.0 && wall_ns > 0.0 {
        let (of_calls, of_time) = (100.0 * found.short as f64 / calls, 100.0 * found.short_ns / wall_ns);
        let limit = duration(SHORT_NS as f64);
        says.push(match found.short {
            0 => format!("none of the {what} is shorter than {limit}"),
            _ => format!(
                "{of_calls:.1} % of the calls are shorter than {limit} and make {of_time:.1} % of the time"
            ),
        });
        let lost = 100.0 * (1.0 - cpu_ns / wall_ns);
        if lost >= 1.0 {
            says.push(format!("{lost:.1} % of the time in {what} was not CPU time: {why}"));
        }
    }
    if found.latency.count() > 0 {
        let (half, most) = (duration(found.latency.quantile(0.5)), duration(found.latency.quantile(0.99)));
        says.push(format!(
            "half of the messages were under way for {half} or less, one in a hundred for more than {most}"
        ));
    }
    says
}

fn notes(trace: &Trace, found: &Found) -> Vec<String> {
    let mut notes = vec!["p50, p90 and p99 are right within 3 %".to_owned()];
    match trace.run.arrows {
        0 => {
            notes
                .push("sizes and latencies of messages need recorded sends: see CARIBOU_TRACE_FILTER".into());
        }
        1 => {}
        more => notes.push(format!(
            "one in {more} messages has its send recorded: sizes and latencies are those of a sample"
        )),
    }
    if found.early > 0 {
        notes.push(format!(
            "{} handled before being sent, by the clocks: counted with a latency of 0",
            plural(found.early, "message")
        ));
    }
    if found.given_up > 0 {
        notes.push(format!("{} left out: too many were under way", plural(found.given_up, "message")));
    }
    notes
}
