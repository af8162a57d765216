//! Implements `caribou trace critical-path`: finds the chain of work and messages that ends last. Shortening work
//! outside of this path does not shorten the run, until another path is the longest.
//!
//! A slice is a handler, a range of iterations, or an activity of the runtime. Each slice may have waited for:
//!
//! 1. the previous slice of its worker,
//! 2. the previous slice of its chunk,
//! 3. the handler that sent its message,
//! 4. the sync or reduction whose result started it.
//!
//! The path goes backwards from the last slice, each time to the one of these that ended last. Traces do not record the
//! arrival of messages: a handler counts as having waited for its message if its worker was idle just before.

mod bounds;
pub(crate) mod slices;
mod walk;

use std::io::Write;

use caribou::trace::Shape;
use presentation::count_parser;
use presentation::format::plural;
use trace_reader::Trace;

use super::analysis::efficiency::{Efficiency, bounds_table, phases};
use super::analysis::events::{Events, Observer, Scope, WorkerName};
use super::analysis::facts::Facts;
use super::analysis::time_breakdown::TimeCollector;
use super::open::{TracePart, warn};
use super::page::{Cell, Format, Page, Table, columns, duration};
use super::select::Window;
use crate::Error;
use bounds::longest_chain_ns;
use slices::{Reading, Slices};
use walk::Path;

/// Rows of each table in the text.
const ROWS: usize = 8;

/// Options of the command.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    trace: TracePart,
    #[command(flatten)]
    format: Format,
    /// Rows of each table in text
    #[arg(long, default_value_t = ROWS, value_name = "N", value_parser = count_parser(0..=usize::MAX))]
    top: usize,
    /// Slices of work to keep in memory at most, about 100 bytes each
    #[arg(long, default_value_t = 20_000_000, value_name = "N", value_parser = count_parser(0..=usize::MAX))]
    events_max: usize,
}

pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    let trace = options.trace.open()?;
    let window = options.trace.selection.window(&trace);
    let mut reading = Reading::new(&trace, window);
    let mut time = TimeCollector::new(&trace, &options.trace.selection, phases(&trace, window));
    let mut events = Events::new(Scope::of(options.trace.selection.ranks(&trace), window));
    for (place, event) in &mut events {
        reading.see(place, &event);
        time.see(place, &event);
        if reading.is_over(options.events_max) {
            let most = options.events_max;
            return Err(Error::Usage(format!(
                "more than {most} slices of work: choose a stretch with --time, or allow more with --events-max"
            )));
        }
    }
    warn(&events.problems());
    let path = Path::walk(&reading.slices, window, options.top);
    let efficiency = Efficiency::of(&time.spent);
    let page = page(&trace, window, efficiency.as_ref(), (&reading.slices, &path), options.top);
    Ok(page.write(options.format, out)?)
}

/// Work on the path: its worker, begin and end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) worker: WorkerName,
    pub(crate) begin_ns: u64,
    pub(crate) end_ns: u64,
}

/// The path through a whole run: the page of the command, and the work on the path in order of time.
pub(crate) fn whole(facts: &Facts<'_>, Reading { slices, .. }: &Reading) -> (Page, Vec<Step>) {
    let window = facts.spent.bins.window;
    let path = Path::walk(slices, window, ROWS);
    let step = |&(number, begin_ns, end_ns): &(slices::Number, u64, u64)| {
        let slice = &slices.all[number as usize];
        Step { worker: slice.worker, begin_ns, end_ns }
    };
    let steps = path.steps.iter().rev().map(step).collect();
    (page(facts.trace, window, facts.efficiency.as_ref(), (slices, &path), ROWS), steps)
}

/// The page of the command. The text has the first `top` rows of each table.
fn page(
    trace: &Trace,
    window: Window,
    efficiency: Option<&Efficiency>,
    (slices, path): (&Slices, &Path),
    top: usize,
) -> Page {
    let mut page = Page::new("critical_path", trace);
    if slices.all.is_empty() {
        let none = "no handler ended there, or none is recorded: a profile alone has no path, record with CARIBOU_TRACE";
        page.says.push(none.into());
        return page;
    }
    let total_ns = path.total_ns() as f64;
    let shares: Vec<String> = path
        .parts()
        .filter(|(_, ns)| *ns > 0)
        .map(|(part, ns)| format!("{} {}", part.name(trace.run.shape), duration(ns as f64)))
        .collect();
    page.says.push(format!(
        "path {} of {}, {} slices: {}",
        duration(total_ns),
        duration(window.length_ns() as f64),
        path.slices,
        shares.join(", ")
    ));
    let share = |ns: u64| Cell::Share(if total_ns > 0.0 { ns as f64 / total_ns } else { 0.0 });
    let mut parts = Table::new(
        "parts",
        "what the path is made of",
        &[("part", "part"), ("time_ns", "time"), ("share", "share")],
    );
    for (part, ns) in path.parts() {
        parts.row([Cell::text_of(part.name(trace.run.shape)), Cell::Ns(ns as f64), share(ns)]);
    }
    page.tables.push(parts);
    page.tables.push(bounds(trace.run.shape, efficiency, slices, window));
    let named = |name: &'static str, title: &str, head: &'static str, rows: Vec<(String, u64)>| {
        let columns = [(head, head), ("time_ns", "time"), ("share", "share")];
        let mut table = Table::new(name, title, &columns).text_rows(top);
        for (text, ns) in rows {
            table.row([Cell::Text(text), Cell::Ns(ns as f64), share(ns)]);
        }
        table
    };
    let mut ranks: Vec<(String, u64)> =
        path.by_rank().into_iter().map(|(rank, ns)| (format!("rank {rank}"), ns)).collect();
    let on_ranks_ns: u64 = ranks.iter().map(|(_, ns)| ns).sum();
    ranks.push(("waiting, latency".into(), path.total_ns().saturating_sub(on_ranks_ns)));
    page.tables.push(named("ranks", "by rank", "rank", ranks));
    let chunks = path.by_chunk().into_iter().map(|(number, ns)| (slices.chunk_name(trace, number), ns));
    let chunks = named("chunks", "by chunk", "chunk", chunks.collect());
    page.tables.push(match trace.run.shape {
        Shape::Arrays | Shape::Supersteps => chunks,
        Shape::Pools => chunks.data_only(),
    });
    let kinds = path.by_activity().into_iter().map(|(kind, ns)| (trace.activity_name(kind), ns));
    page.tables.push(named("kinds", "by kind", "kind", kinds.collect()));
    page.tables.push(segments(trace, slices, path));
    notes(&mut page, trace, slices, path);
    page
}

/// Lower bounds of the run time: from the sums of time, and from the dependences between handlers.
fn bounds(shape: Shape, efficiency: Option<&Efficiency>, slices: &Slices, window: Window) -> Table {
    let by_cause = efficiency.map(Efficiency::bounds);
    let what = match shape {
        Shape::Arrays | Shape::Supersteps => "the longest chain of handlers, with a worker for each",
        Shape::Pools => "the longest range of iterations",
    };
    let chain = (what, longest_chain_ns(slices, window) as f64);
    bounds_table(by_cause.into_iter().flatten().chain([chain]), window.length_ns())
}

fn segments(trace: &Trace, slices: &Slices, path: &Path) -> Table {
    let columns = columns("begin_ns: from | time_ns: time | part | rank | chunk | kind");
    let mut table = Table::new("segments", "longest stretches", &columns);
    for segment in path.longest() {
        let slice = &slices.all[segment.slice as usize];
        table.row([
            Cell::Ns(segment.begin_ns as f64),
            Cell::Ns(segment.ns as f64),
            Cell::text_of(segment.part.name(trace.run.shape)),
            Cell::Count(u64::from(slice.worker.rank)),
            slice.chunk.map_or(Cell::Empty, |chunk| Cell::Text(slices.chunk_name(trace, chunk))),
            Cell::Text(trace.activity_name(slice.activity)),
        ]);
    }
    table
}

fn notes(page: &mut Page, trace: &Trace, slices: &Slices, path: &Path) {
    if trace.run.arrows != 1 {
        let how = match trace.run.arrows {
            0 => "no sends are recorded".into(),
            several => format!("one send in {several} is recorded"),
        };
        page.notes.push(format!("{how}: where the sender is not known, the path stays on the worker"));
    }
    if slices.sent_to_many > 0 {
        page.notes.push(format!(
            "{} messages were multicasts or broadcasts, whose sends are never recorded: chains and bounds stop at \
             them, so bounds are too low",
            slices.sent_to_many
        ));
    }
    if slices.senders_unknown > 0 {
        let unknown = plural(slices.senders_unknown, "message");
        page.notes.push(format!("{unknown} without a sender in this part of the trace"));
    }
    if slices.senders_later > 0 {
        let later = plural(slices.senders_later, "message");
        page.notes.push(format!(
            "{later} handled before the sending handler ended: there the path stays on the worker"
        ));
    }
    if path.guesses > 0 {
        let guesses = path.guesses;
        page.notes.push(format!(
            "{guesses} times the trace does not show what a sync waited for: the path takes the slice that ended last \
             before it"
        ));
    }
    page.notes.push(
        "message latency: from the end of the sending handler until the idle worker woke; it includes the wait of \
         messages sent by `send_at_quiescence` or `send_after`, because the trace does not mark them, nor arrivals. \
         Reduction wait: the same from the last contribution to a reduction until its result; sync wait: from the last \
         part of a sync until the next; queue wait: from when the worker woke until the slice began; unknown wait: the \
         worker was idle for an unknown reason; load balancing: what workers did for syncs"
            .into(),
    );
    let other = match trace.run.shape {
        Shape::Supersteps => {
            "the capacity bound of a program's report (bound_ns) is different: all units of its steps, without jobs \
             that were dropped, at the speeds that workers had in compute"
        }
        Shape::Arrays | Shape::Pools => {
            "bounds in a program's report are of its iterations and include waiting"
        }
    };
    page.notes.push(format!(
        "bounds ignore waiting for messages and syncs, take vCPUs as equally fast when available, and include start \
         and end of the run; {other}"
    ));
}

#[cfg(test)]
mod tests;
