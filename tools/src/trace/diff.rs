//! Implements `caribou trace diff`: compares two runs and divides the change of their time among five causes.
//!
//! | cause | time, averaged over workers |
//! |---|---|
//! | cpu | CPU time of chunks |
//! | lost | lost in handlers |
//! | runtime | in the runtime |
//! | imbalance | per phase, the most occupied worker (in chunks, lost or in the runtime) minus the average worker |
//! | waiting | the rest: waiting that imbalance does not explain |
//!
//! The causes add up to the time of a run. Several runs per side distinguish a change from noise. Kinds, chunks and
//! ranks are compared by name, because the runs may differ in ranks and placement.

mod limit;
mod measures;
mod side;

use std::io::Write;
use std::path::PathBuf;

use presentation::count_parser;
use trace_reader::Trace;

use super::open::warn;
use super::page::{Cell, Format, Page, Table, columns, duration};
use super::summary::{COMPLETE, state};
use super::supersteps;
use crate::Error;
use limit::Limit;
use measures::{Cause, Measures};
use side::{Change, Side, changes};

/// Options of the command.
#[derive(clap::Args)]
#[command(
    after_help = "Exit code 0: compared; 1: --fail-if applies, or a run is incomplete; 2: a trace cannot be read."
)]
pub(crate) struct Options {
    /// Traces of the program as it was, separated by commas
    #[arg(value_name = "BEFORE", value_delimiter = ',', num_args = 1, required = true)]
    before: Vec<PathBuf>,
    /// Traces of the program as it is
    #[arg(value_name = "AFTER", value_delimiter = ',', num_args = 1, required = true)]
    after: Vec<PathBuf>,
    #[command(flatten)]
    format: Format,
    /// Rows of the tables of kinds, ranks and chunks in text
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = count_parser(0..=usize::MAX))]
    top: usize,
    /// Fail if a ratio of medians, after over before, is beyond this: `total > 1.05`; also cpu, lost, runtime,
    /// imbalance, waiting, idle
    #[arg(long, value_name = "LIMIT")]
    fail_if: Vec<Limit>,
}

pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    let (mut notes, mut not_whole) = (Vec::new(), Vec::new());
    let before = read(&options.before, &mut notes, &mut not_whole)?;
    let after = read(&options.after, &mut notes, &mut not_whole)?;
    let (before, after) = (Side::new(before), Side::new(after));
    let told = page(options, &before, &after, notes).write(options.format, out);
    let broken = || options.fail_if.iter().find_map(|limit| limit.broken(&before, &after));
    let unjudged = not_whole.first().filter(|_| !options.fail_if.is_empty());
    match unjudged.map(|what| format!("--fail-if needs complete runs: {what}")).or_else(broken) {
        // Also if the output is closed.
        Some(why) => Err(Error::Failed(why)),
        None => Ok(told?),
    }
}

/// Reads the runs of a side. Adds notes about incomplete data, and the runs without an end to `not_whole`.
fn read(
    paths: &[PathBuf],
    notes: &mut Vec<String>,
    not_whole: &mut Vec<String>,
) -> Result<Vec<Measures>, Error> {
    let mut measures = Vec::new();
    for path in paths {
        let trace = Trace::open(path)?;
        warn(&trace.problems);
        if trace.dropped() > 0 {
            notes.push(format!(
                "{}: {} events were not kept: figures of its chunks are too low",
                path.display(),
                trace.dropped()
            ));
        }
        let state = state(&trace);
        if state != COMPLETE {
            let what = format!("{}: {state}", path.display());
            notes.push(format!("{what}: its time and work are too low"));
            not_whole.push(what);
        }
        measures.push(Measures::of(&trace));
    }
    Ok(measures)
}

fn page(options: &Options, before: &Side, after: &Side, notes: Vec<String>) -> Page {
    let mut page = Page::of_runs("diff", before.runs_text());
    let change = |cause: Cause| Change::of(cause.name(), before, after, |run| run.cause_ns(cause));
    let causes: Vec<Change> =
        Cause::ALL.into_iter().filter(|cause| *cause != Cause::Idle).map(change).collect();
    page.says.extend(
        before.unlike(after).map(|why| format!("warning: {why}; that may be why their times differ")),
    );
    page.says.push(sentence(&causes));
    page.tables.push(table("causes", "average of the workers", "cause", &causes, usize::MAX));
    let known = before.noise_known() || after.noise_known();
    let both_have_chunks = before.has_no_chunks() == after.has_no_chunks();
    for (name, title, head, changes) in [
        (
            "kinds",
            "kinds, the runtime and idle, average of the workers",
            "kind",
            changes(before, after, |run| &run.kinds_ns),
        ),
        (
            "ranks",
            "CPU time of chunks, average of the workers of a rank",
            "rank",
            changes(before, after, |run| &run.ranks_ns),
        ),
        ("chunks", "CPU time by chunk", "chunk", changes(before, after, |run| &run.chunks_ns)),
    ] {
        if !changes.is_empty() && (name != "chunks" || both_have_chunks) {
            page.tables.push(table(name, title, head, &changes, options.top));
        }
    }
    page.notes.extend(notes);
    page.notes.push(
        "total is the time of the trace, with start and end of the run; imbalance is summed phase by phase; idle time is \
         part of imbalance and waiting"
            .into(),
    );
    if before.has_supersteps() && after.has_supersteps() {
        page.notes.push(supersteps::whole_run_text("imbalance", "waiting"));
    }
    if !known {
        let why = "one run per side: the noise is unknown; name several, separated by commas";
        page.notes.push(why.into());
    } else {
        page.notes.push("same: the medians differ by no more than runs of one side do".into());
    }
    if !both_have_chunks {
        page.notes.push("one side has no events: chunks cannot be compared".into());
    }
    page
}

/// Fraction of the largest figure of a table below which a figure gets no ratio, because the ratio would mean nothing.
const COMPARABLE_MIN: f64 = 1e-3;

const SAME: &str = "as fast as BEFORE";

/// Describes the direction of the change and its causes.
fn sentence(causes: &[Change]) -> String {
    let total = &causes[0];
    let signed = |ns: f64| format!("{}{}", if ns < 0.0 { "-" } else { "+" }, duration(ns.abs()));
    let mut parts: Vec<&Change> = causes[1..].iter().filter(|change| change.ns() != 0.0).collect();
    parts.sort_by(|one, other| other.ns().abs().total_cmp(&one.ns().abs()));
    let because: Vec<String> = parts
        .iter()
        .map(|change| match change.verdict() {
            Some("same") => format!("{} same", change.name),
            _ => format!("{} {}", change.name, signed(change.ns())),
        })
        .collect();
    let (from, to) = (duration(total.before.median), duration(total.after.median));
    let how = match total.verdict() {
        Some("same") => SAME.to_owned(),
        _ if total.ns() == 0.0 => SAME.to_owned(),
        _ => {
            let which = if total.ns() > 0.0 { "slower" } else { "faster" };
            format!(
                "{} ({:.1} %) {which} than BEFORE",
                duration(total.ns().abs()),
                100.0 * (total.ratio() - 1.0).abs()
            )
        }
    };
    let because = if because.is_empty() { String::new() } else { format!(": {}", because.join(", ")) };
    format!("AFTER is {how}, {from} -> {to}{because}")
}

fn table(name: &'static str, title: &str, head: &'static str, changes: &[Change], rows: usize) -> Table {
    let most_ns = changes.iter().map(|change| change.before.median).fold(0.0, f64::max);
    let least_ns = COMPARABLE_MIN * most_ns;
    let others = "before_ns: before | after_ns: after | change_ns: change | ratio | \
                  before_spread_ns: spread before | after_spread_ns: spread after | verdict:";
    let mut table = Table::new(name, title, &[head, others].map(columns).concat()).text_rows(rows);
    for change in changes {
        let spread = |spread: Option<f64>| spread.map_or(Cell::Empty, Cell::Ns);
        let ratio = change.ratio();
        table.row([
            Cell::text_of(change.name.clone()),
            Cell::Ns(change.before.median),
            Cell::Ns(change.after.median),
            Cell::Ns(change.ns()),
            if ratio.is_finite() && change.before.median >= least_ns {
                Cell::Number(ratio)
            } else {
                Cell::Empty
            },
            spread(change.before.spread),
            spread(change.after.spread),
            change.verdict().map_or(Cell::Empty, Cell::text_of),
        ]);
    }
    table
}

#[cfg(test)]
mod tests;
