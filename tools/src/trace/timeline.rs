//! Implements `caribou trace timeline`: shows what each worker did over time, as a strip of letters and with `--svg` as
//! a picture. With `--chunk` it shows chunks in place of workers.
//!
//! Events are read once in order of time ([`Events`]). Memory per row grows with its characters and pixels. The command
//! shows what happened; `critical-path` explains why a worker waited.

mod arrows;
mod lane;
mod picture;
mod strip;
mod view;

use std::io::Write;
use std::path::PathBuf;

use caribou::trace::{Shape, StepWorker, What};
use presentation::count_parser;
use trace_reader::Trace;

use self::picture::TimelineImage;
use self::strip::{Legend, Strip};
use self::view::{Class, View};
use super::analysis::events::{Events, Scope, no_events};
use super::analysis::sync_effect::occasion_of;
use super::open::{TracePart, warn};
use super::page::{Cell, Format, Page, Table, columns, duration};
use super::select::Window;
use super::supersteps::{long_ns, moments};
use crate::{Error, output};

/// Number of events above which a run is shown only around one sync, unless a time is selected.
const EVENTS_MANY: u64 = 2_000_000;
/// Syncs listed in the text.
const SYNCS_IN_TEXT: usize = 8;

/// Options of the command.
#[derive(clap::Args)]
#[command(
    after_help = "A run of more than 2 million events is shown around its worst sync, unless --time or --around-sync \
    says otherwise.\nMemory: rows times characters and pixels, the messages under way, and a block of events a worker."
)]
pub(crate) struct Options {
    #[command(flatten)]
    trace: TracePart,
    /// The phases before and after this sync
    #[arg(long, value_name = "SYNC", conflicts_with = "time")]
    around_sync: Option<u64>,
    /// A row for this chunk, such as Block[3], and a digit or letter for each rank; all of an array: Block; may be given again
    #[arg(long, value_name = "NAME")]
    chunk: Vec<String>,
    /// Characters of a row
    #[arg(long, value_name = "CHARACTERS", default_value_t = 100, value_parser = count_parser(10..=1000u32))]
    width: u32,
    /// Draw the timeline to this file
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
    /// Pixels of a row in the picture
    #[arg(long, value_name = "PIXELS", default_value_t = 1200, value_parser = count_parser(100..=20_000u32))]
    pixels: u32,
    /// Arrows for messages between rows in the picture, at most: the ones longest under way
    #[arg(long, default_value_t = 200, value_parser = count_parser(0..=100_000u32))]
    arrows: u32,
    #[command(flatten)]
    format: Format,
}

pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    let trace = options.trace.open()?;
    let (window, narrowed) = chosen(options, &trace)?;
    let mut page = Page::new("timeline", &trace);
    page.notes.extend(narrowed);
    if trace.events() == 0 {
        page.says.push(no_events(&trace));
        return Ok(page.write(options.format, out)?);
    }
    let mut view = View::new(&trace, &options.trace.selection, &options.chunk);
    let mut strips = Vec::new();
    let mut picture = options.svg.as_ref().map(|_| TimelineImage::new(&trace, window, options));
    let places = view.places(Scope::selected(&trace, &options.trace.selection).places);
    let mut events = Events::new(Scope { places, window });
    for (place, event) in &mut events {
        if let Some(slice) = view.slice(&trace, place, &event) {
            strips.resize_with(view.rows().max(strips.len()), || Strip::new(window, options.width as usize));
            strips[slice.row].add(&slice);
            if let Some(picture) = &mut picture {
                picture.slice(&trace, &slice);
            }
        } else if let Some(row) = view.row(&trace, place, &event) {
            strips.resize_with(view.rows().max(strips.len()), || Strip::new(window, options.width as usize));
            if matches!(event.what, What::Mark { .. }) {
                strips[row].mark(event.begin_ns);
            }
            if let Some(picture) = &mut picture {
                picture.annotate(&trace, row, &event);
            }
        }
        if let Some(picture) = &mut picture {
            picture.message(place, &event);
        }
    }
    warn(&events.problems());
    if view.rows() == 0 {
        return Err(Error::Usage(match &options.chunk[..] {
            [] => "nothing is recorded there".into(),
            names => {
                let another = view.any_chunk().map(|chunk| format!("; {} is", trace.chunk_name(chunk)));
                let another = another.unwrap_or_default();
                format!("no chunk named {} is recorded in this time{another}", names.join(" or "))
            }
        }));
    }
    strips.resize_with(view.rows(), || Strip::new(window, options.width as usize));
    tell(options, &trace, &view, &strips, &mut page, window);
    if let (Some(picture), Some(file)) = (picture, &options.svg) {
        let (drawing, notes) = picture.finish(&trace, &view);
        output::write(file, drawing.finish())?;
        page.notes.extend(notes);
    }
    Ok(page.write(options.format, out)?)
}

/// The span of time, and a note if the command narrowed it.
fn chosen(options: &Options, trace: &Trace) -> Result<(Window, Option<String>), Error> {
    let whole = options.trace.selection.window(trace);
    if let Some(wanted) = options.around_sync {
        let Some(position) = trace.syncs.iter().position(|sync| sync.sync == wanted) else {
            let last = trace
                .syncs
                .last()
                .map_or("there is none".into(), |sync| format!("the last is {}", sync.sync));
            return Err(Error::Usage(format!("--around-sync {wanted}: no such sync, {last}")));
        };
        return Ok((around(trace, position, whole), None));
    }
    if options.trace.selection.has_time() || trace.events() <= EVENTS_MANY {
        return Ok((whole, None));
    }
    let worst = (0..trace.syncs.len())
        .max_by(|&a, &b| trace.syncs[a].imbalance_before.total_cmp(&trace.syncs[b].imbalance_before));
    let Some(worst) = worst else { return Ok((whole, None)) };
    let why = format!(
        "{} events are too many: shown is the time around {} {}, the worst of {}; --time .. shows all",
        trace.events(),
        occasion_of(trace),
        trace.syncs[worst].sync,
        trace.syncs.len()
    );
    Ok((around(trace, worst, whole), Some(why)))
}

/// From the sync before to the sync after.
fn around(trace: &Trace, position: usize, whole: Window) -> Window {
    let at_ns = |position: usize| trace.syncs.get(position).map(|sync| sync.at_ns);
    let from_ns = position.checked_sub(1).and_then(at_ns).unwrap_or(whole.from_ns).min(whole.to_ns);
    let to_ns = at_ns(position + 1).unwrap_or(whole.to_ns).clamp(from_ns, whole.to_ns.max(from_ns));
    Window { from_ns, to_ns }
}

fn tell(options: &Options, trace: &Trace, view: &View, strips: &[Strip], page: &mut Page, window: Window) {
    let long_ns = window.length_ns() as f64;
    let (from, to) = (duration(window.from_ns as f64), duration(window.to_ns as f64));
    let column = duration(long_ns / f64::from(options.width));
    page.says.push(format!("{from} to {to}, {column} a character, which shows what took most of it"));
    let legend = Legend::new(strips);
    let working = match (view, trace.run.shape) {
        (View::Chunks { .. }, _) => "running",
        (View::Workers { .. }, Shape::Pools) => "iterations",
        (View::Workers { .. }, Shape::Arrays | Shape::Supersteps) => "chunks",
    };
    let columns =
        columns("row | strip: | busy_share | idle_share: idle | runtime_share: runtime | lost_share: lost");
    let heads =
        columns.into_iter().map(|(key, head)| (key, if key == "busy_share" { working } else { head }));
    let mut table = Table::new("rows", "", &heads.collect::<Vec<_>>());
    let width = options.width as usize;
    let syncs = || moments(trace).filter(|&at_ns| inside(window, at_ns));
    let occasions = format!("{}s", occasion_of(trace));
    let marks = || strips.iter().flat_map(Strip::marks);
    for (name, sign, at) in [
        (
            if trace.steps.is_empty() { &*occasions } else { "divisions" },
            '|',
            ruler(window, width, syncs(), '|'),
        ),
        ("marks", '!', marks_on(width, marks())),
    ] {
        if at.contains(sign) {
            table.row([name, &at].map(Cell::text_of).into_iter().chain([const { Cell::Empty }; 4]));
        }
    }
    for row in view.order() {
        let strip = &strips[row];
        let share = |class: fn(&Class) -> bool| Cell::Share(strip.ns(class) as f64 / long_ns.max(1.0));
        table.row([
            Cell::Text(view.name(trace, row)),
            Cell::Text(strip.text(&legend)),
            share(Class::is_work),
            share(|class| *class == Class::Idle),
            share(|class| matches!(class, Class::Runtime | Class::Moving)),
            share(|class| *class == Class::Lost),
        ]);
    }
    page.tables.push(table);
    page.tables.push(legend.table(trace));
    let mut listed =
        Table::new("syncs", "", &[("sync", occasion_of(trace)), ("at_ns", "at"), ("moved", "moved")])
            .text_rows(SYNCS_IN_TEXT);
    for sync in trace.syncs.iter().filter(|sync| inside(window, sync.at_ns)) {
        listed.row([Cell::Count(sync.sync), Cell::Ns(sync.at_ns as f64), Cell::Count(sync.moved)]);
    }
    match trace.steps.is_empty() {
        false => page.tables.push(steps(trace, window)),
        true if syncs().next().is_some() => page.tables.push(listed),
        true => {}
    }
    page.notes.extend(view.left_out());
}

/// Table of the steps with a new division or dropped jobs.
fn steps(trace: &Trace, window: Window) -> Table {
    let heads = columns(
        "step | at_ns: at | step_ns: time | moved | dropped: jobs dropped | dropped_ns: after computing them for",
    );
    let mut table = Table::new("steps", "", &heads).text_rows(SYNCS_IN_TEXT);
    for step in trace.steps.iter().filter(|step| inside(window, step.begin_ns)) {
        let sum = |of: fn(&StepWorker) -> u64| step.workers.iter().map(of).fold(0, u64::saturating_add);
        let (dropped, dropped_ns) = (sum(|worker| worker.dropped), sum(|worker| worker.dropped_ns));
        if step.divided || dropped > 0 {
            let (at, long) = (Cell::ns(step.begin_ns), Cell::ns(long_ns(step)));
            table.row([
                Cell::Count(step.step),
                at,
                long,
                Cell::Count(step.moved),
                Cell::Count(dropped),
                Cell::ns(dropped_ns),
            ]);
        }
    }
    table
}

fn inside(window: Window, at_ns: u64) -> bool {
    (window.from_ns..=window.to_ns).contains(&at_ns)
}

/// A row with `sign` at the given times.
fn ruler(window: Window, width: usize, at_ns: impl Iterator<Item = u64>, sign: char) -> String {
    let mut row = vec![' '; width];
    at_ns.for_each(|at_ns| row[strip::column(window, width, at_ns)] = sign);
    row.into_iter().collect::<String>()
}

fn marks_on(width: usize, columns: impl Iterator<Item = usize>) -> String {
    let mut row = vec![' '; width];
    columns.for_each(|column| row[column] = '!');
    row.into_iter().collect()
}
