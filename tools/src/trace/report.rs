//! Implements `caribou trace report`: writes everything about a run to one HTML file, readable without Caribou.
//!
//! The file needs no network and opens from disk. Rust code generates all figures as tables and SVG; a script adds
//! zoom, hover, search and sorting. The size of the page is bounded: time is merged into bins ([`lanes`]), and only
//! parts of the run have single slices ([`detail_windows`]). The page states what was merged.
//!
//! | modules | purpose |
//! |---|---|
//! | [`figures`], [`activities`], [`lanes`], [`chunks`] | collect the figures that only this page needs, worker by worker |
//! | [`detail_windows`] | collects single slices in parts of the run, with the senders of their messages |
//! | [`balance`], [`verdict`] | select syncs to show, and write the first sentences |
//! | [`charts`], [`maps`], [`plots`], [`sections`], [`tables`] | generate HTML and SVG |
//! | [`data`] | embeds the figures as JSON for the script |
//!
//! Sums of time come from [`Facts`], as in all commands. Advice, syncs, durations, the critical path and outliers come
//! from the modules of the commands `summary`, `lb`, `histogram`, `critical-path` and `outliers`.

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
    /// `None` for traces with more than [`EVENTS_MAX`] events.
    details: Option<Details>,
}

/// Largest number of events for the parts in [`Details`], which take memory or time per event.
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

/// Parts for traces with few events.
struct Details {
    durations: Page,
    path: (Page, Vec<critical_path::Step>),
    outliers: Page,
}

impl<'t> Report<'t> {
    /// Reads all events worker by worker. For a trace with few events, reads them again in order of time.
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
        // Problems were reported in the first pass.
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
