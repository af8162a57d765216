//! `caribou trace report`: everything about a run in one HTML file, for somebody who has no Caribou.
//!
//! The file needs no network and opens from disk. All figures are in it as tables and SVG, made here; a script adds zoom,
//! hover, search and sorting. What is embedded is bounded however long the trace is: time is merged into bins
//! ([`lanes`]), slices are kept one by one for stretches that fit ([`stretches`]), and the page says what was merged.
//!
//! | file | what |
//! |---|---|
//! | [`activities`], [`lanes`], [`chunks`], [`figures`] | drawings and counts of a page alone, worker by worker |
//! | [`stretches`] | some stretches of time again: slices one by one, with the senders of their messages |
//! | [`balance`], [`verdict`] | what the records of syncs say, and sentences; in the words of `lb` and `summary` |
//! | [`charts`], [`maps`], [`plots`], [`sections`], [`tables`] | HTML and SVG |
//! | [`data`] | the same figures for the script |
//!
//! Sums of time, and what else is known of the run, are those of [`Facts`], as in all commands; what commands of their own find and say is taken from them: advice,
//! syncs, durations, the critical path, outliers.

mod activities;
mod balance;
mod charts;
mod chunks;
mod data;
mod detail_windows;
mod figures;
mod lanes;
mod maps;
mod plots;
mod sections;
mod tables;
mod verdict;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use caribou::trace::ChunkId;
use trace_reader::Trace;

use super::advice::{Advice, Symptoms};
use super::analysis::events::{Observer, Scope, in_order};
use super::analysis::facts::Facts;
use super::critical_path::slices::Reading;
use super::open::{Input, warn};
use super::outliers::noise::{Baselines, Noise};
use super::page::{Page, bytes, plural};
use super::select::Selection;
use super::{critical_path, histogram, outliers};
use crate::{Error, output};

/// Options of the command.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    input: Input,
    /// The HTML file to write; one that is there is replaced
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
}

/// Contents of a page.
struct Report<'t> {
    trace: &'t Trace,
    facts: Facts<'t>,
    figures: figures::Figures,
    balance: balance::Balance<'t>,
    stretches: detail_windows::DetailWindows,
    advice: Advice,
    /// Not of long traces.
    details: Option<Details>,
}

/// Of longer traces what takes memory or time for each event is left out.
const EVENTS_MAX: usize = 5_000_000;

pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    let trace = options.input.open()?;
    let report = Report::of(&trace);
    warn(&report.facts.problems);
    let html = sections::html(&report).into_string();
    let file = &options.output;
    output::write(file, &html)?;
    let (events, size) = (trace.events(), bytes(html.len() as u64));
    Ok(writeln!(
        out,
        "{}: {size}, from {} of {}",
        file.display(),
        plural(events, "event"),
        plural(trace.ranks.len(), "rank")
    )?)
}

/// Parts for runs whose events are few: they take memory or time for each.
struct Details {
    durations: Page,
    path: (Page, Vec<critical_path::Step>),
    outliers: Page,
}

impl<'t> Report<'t> {
    /// Reads all events worker by worker, and the events of a short run once more in the order of time.
    fn of(trace: &'t Trace) -> Report<'t> {
        let few = trace.events() <= EVENTS_MAX as u64;
        let (mut gathering, mut usual) = (figures::Gathering::new(trace), Baselines::default());
        let mut observers: Vec<&mut dyn Observer<'t>> = vec![&mut gathering];
        if few {
            observers.push(&mut usual);
        }
        let facts = Facts::read(trace, &mut observers);
        let figures = gathering.finish();
        let balance = balance::Balance::of(&facts);
        let stretches = detail_windows::DetailWindows::of(trace, &figures, &balance);
        let advice = Symptoms::of(&facts).advice();
        let details = few.then(|| Details::read(&facts, figures.chunks.cpu_ns(), usual));
        Report { trace, facts, figures, balance, stretches, advice, details }
    }
}

impl Details {
    fn read(facts: &Facts<'_>, chunks_ns: BTreeMap<ChunkId, f64>, usual: Baselines) -> Details {
        let (trace, everything) = (facts.trace, Selection::default());
        let window = everything.window(trace);
        let mut durations = histogram::Durations::new(&everything, window, None);
        let mut reading = Reading::new(trace, window);
        let mut noise = Noise::new(usual, outliers::ROWS);
        // What cannot be read is known.
        in_order(Scope::all(trace), &mut [&mut durations, &mut reading, &mut noise]);
        Details {
            durations: histogram::page(trace, &durations.finish()),
            path: critical_path::whole(facts, &reading),
            outliers: outliers::page(trace, chunks_ns, Some(noise), outliers::ROWS),
        }
    }
}

#[cfg(test)]
mod tests;
