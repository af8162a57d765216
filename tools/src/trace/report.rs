//! `caribou trace report`: everything about a run in one HTML file, for somebody who has no Caribou.
//!
//! The file needs no network and opens from disk. All figures are in it as tables and SVG, made here; a script adds zoom,
//! hover, search and sorting. What is embedded is bounded however long the trace is: time is merged into bins
//! ([`lanes`]), slices are kept one by one for stretches that fit ([`stretches`]), and the page says what was merged.
//!
//! | file | what |
//! |---|---|
//! | [`activities`], [`account`], [`lanes`], [`chunks`], [`figures`] | one pass over the events: what is known |
//! | [`stretches`] | a second pass over stretches of them: slices one by one, with who sent their messages |
//! | [`balance`], [`verdict`] | what the records of syncs say, and sentences; in the words of `lb` and `summary` |
//! | [`charts`], [`maps`], [`plots`], [`sections`], [`tables`] | HTML and SVG |
//! | [`data`] | the same figures for the script |
//!
//! What commands of their own find and say is taken from them: advice, syncs, durations, the critical path, outliers.

mod account;
mod activities;
mod balance;
mod charts;
mod chunks;
mod data;
mod figures;
mod lanes;
mod maps;
mod plots;
mod sections;
mod stretches;
mod tables;
mod verdict;

use std::io::Write;
use std::path::PathBuf;

use caribou::trace::Trace;

use super::advice::{Advice, Facts};
use super::analysis::census::gather;
use super::analysis::efficiency::Efficiency;
use super::analysis::taken::beside_text;
use super::open::{Input, warn};
use super::page::{Page, bytes};
use super::profile::taken;
use super::select::Selection;
use super::{critical_path, histogram, outliers, page};
use crate::{Error, output};

/// What to write.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    input: Input,
    /// The HTML file to write; one that is there is replaced
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
}

/// What a page shows.
struct Report<'t> {
    trace: &'t Trace,
    figures: figures::Figures,
    balance: balance::Balance<'t>,
    stretches: stretches::Stretches,
    advice: Advice,
    efficiency: Option<page::Table>,
    /// What was lost beside handlers, in words.
    beside: Option<String>,
    /// How long things take, the critical path, and what is unlike the rest; not of long traces.
    durations: Option<Page>,
    path: Option<(Page, Vec<critical_path::Step>)>,
    outliers: Option<Page>,
}

/// Of longer traces what takes memory or time for each event is left out.
const EVENTS_MAX: usize = 5_000_000;

pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    let trace = options.input.open()?;
    let report = Report::of(&trace);
    warn(&report.figures.problems);
    let html = sections::html(&report).into_string();
    let file = &options.output;
    output::write(file, &html)?;
    let (events, size) = (trace.events(), bytes(html.len() as u64));
    Ok(writeln!(out, "{}: {size}, from {events} events of {} ranks", file.display(), trace.ranks.len())?)
}

impl<'t> Report<'t> {
    fn of(trace: &'t Trace) -> Report<'t> {
        let figures = figures::Figures::of(trace);
        let balance = balance::Balance::of(trace);
        let stretches = stretches::Stretches::of(trace, &figures, &balance);
        let (spent, census) = gather(trace, false);
        let taken = taken(trace, &spent, &Selection::default());
        let advice = Facts::new(trace, &spent, &taken, &balance.syncs, census.as_ref()).advice();
        let efficiency = Efficiency::of(&spent).map(|efficiency| efficiency.table());
        let beside = beside_text(&spent, &taken);
        let few = trace.events() <= EVENTS_MAX as u64;
        let durations = few.then(|| histogram::whole(trace));
        let path = few.then(|| critical_path::whole(trace, EVENTS_MAX)).flatten();
        let outliers = few.then(|| outliers::whole(trace));
        Report { trace, figures, balance, stretches, advice, efficiency, beside, durations, path, outliers }
    }
}

#[cfg(test)]
mod tests;
