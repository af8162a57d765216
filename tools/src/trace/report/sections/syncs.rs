//! Builds the sections of syncs and of the phases between them.

use lb_strategies::median;
use maud::{Markup, html};

use super::nothing;
use super::supersteps::supersteps;
use crate::trace::analysis::sync_effect::SyncEffect;
use crate::trace::lb::columns::{WORDS, table};
use crate::trace::lb::{IMBALANCE, one};
use crate::trace::page::Cell;
use crate::trace::report::Report;
use crate::trace::report::balance::{RANKS_MAX, found};
use crate::trace::report::charts::{self, legend};
use crate::trace::report::figures::COUNTERS_MAX;
use crate::trace::report::plots;
use crate::trace::report::tables::{Table, TimelinePosition, folded, prose};

/// Number of phases that are listed as the slowest.
const SLOWEST_MAX: usize = 12;

pub(super) fn balancing(report: &Report<'_>) -> Markup {
    if let Some(steps) = supersteps(report) {
        return steps;
    }
    let balance = &report.balance;
    let Some(worst) = balance.worst else {
        return nothing(
            "No syncs, and no window with a decision. By default chunks are balanced while they run, where that is \
             likely to pay. With CARIBOU_LB_PERIOD=20 they are balanced at syncs, if they call Ctx::at_sync or \
             at_sync_nowait.",
        );
    };
    let line = |value: fn(&SyncEffect<'_>) -> f64| {
        let every = balance.syncs.len().div_ceil(1000).max(1);
        let points = balance.syncs.iter().step_by(every).map(|sync| (sync.report.at_ns, value(sync)));
        points.filter(|point| point.1.is_finite()).collect::<Vec<_>>()
    };
    let lines = [("predicted", line(|sync| sync.report.imbalance_predicted)), ("before", line(found))];
    let most_uneven = &balance.syncs[worst];
    let number = most_uneven.report.sync;
    let loads = one::ranks(report.trace, most_uneven);
    let loads = Table::of(
        "rank-load-table",
        &format!("Loads of the ranks at sync {number}"),
        &loads,
        RANKS_MAX,
        &report.figures,
    );
    let syncs = table(report.trace, balance.shown());
    let bars = |class: &str, name: &str| (class.to_owned(), name.to_owned());
    let legends = [
        bars("before", "measured before"),
        bars("predicted", "predicted"),
        bars("next", "measured in the next phase"),
    ];
    html! {
        h3 { "Imbalance at each sync" }
        p.note { (IMBALANCE) "." }
        (plots::lines("Imbalance before and predicted at each sync", report, &lines, |value| format!("{value:.2}")))
        (legend([bars("before", "found"), bars("predicted", "predicted for the next phase")]))
        h3 { "Loads of the ranks" }
        p {
            label.scripted { "Sync " select #sync-choice {
                @for &place in &balance.shown {
                    option value=(place) selected[place == worst] { (balance.syncs[place].report.sync) }
                }
            } }
            span #sync-shown { " Sync " (number) ", the most uneven" }
        }
        (plots::rank_bars(report, worst))
        (legend(legends))
        @if report.trace.ranks.len() > RANKS_MAX { p.note { "The first " (RANKS_MAX) " ranks are shown." } }
        (folded(&format!("Sync {number} as a table"), &loads))
        h3 { "Syncs" }
        @if balance.shown.len() < balance.syncs.len() {
            p.note { "The " (balance.shown.len()) " most uneven of " (balance.syncs.len()) " syncs; " code { "caribou trace lb" } " lists all." }
        }
        (Table::of("sync-table", "What each sync found, did and took", &syncs, usize::MAX, &report.figures).html())
        p.note { (prose(WORDS)) "." }
    }
}

pub(super) fn phases(report: &Report<'_>) -> Markup {
    let figures = &report.figures;
    let (what, times): (String, Vec<u64>) = match (report.balance.syncs.len(), figures.resumes_of) {
        (2.., _) => ("two syncs".into(), report.balance.syncs.iter().map(|sync| sync.report.at_ns).collect()),
        (_, Some(chunk)) => {
            (format!("two resumes of {}", report.trace.chunk_name(chunk)), figures.resumes_ns.clone())
        }
        _ => (String::new(), Vec::new()),
    };
    let every = times.len().div_ceil(1500).max(1);
    let gaps: Vec<(u64, f64)> = times
        .windows(2)
        .step_by(every)
        .map(|pair| (pair[1], pair[1].saturating_sub(pair[0]) as f64))
        .collect();
    if gaps.is_empty() && figures.counters.is_empty() {
        return nothing(if report.trace.steps.is_empty() {
            "No phases are known, which lie between syncs, and the program sets no counters."
        } else {
            "The steps are above, with how they were balanced. The program sets no counters."
        });
    }
    html! {
        @if !gaps.is_empty() {
            h3 { "Time between " (what) }
            (plots::lines("Time of each phase over time", report, &[("before", gaps.clone())], charts::tick))
            @if every > 1 { p.note { "One in " (every) " of " (times.len() - 1) " is drawn." } }
            (gap_table(&times).html())
            (slowest(report, &times).html())
        }
        @for counter in &figures.counters {
            @let points: Vec<(u64, f64)> = counter.points.values().copied().collect();
            @let name = report.trace.name(counter.name);
            h3 { "Counter " (name) }
            (plots::lines(&format!("Counter {name} over time"), report, &[("predicted", points.clone())], number))
            p.note {
                (counter.values) " values"
                @if (points.len() as u64) < counter.values { ", of which the last in each of " (points.len()) " bins is drawn" }
                @if let Some(last) = points.last() { "; the last is " (number(last.1)) }
                "."
            }
        }
        @if figures.counters.len() == COUNTERS_MAX { p.note { "At most " (COUNTERS_MAX) " counters are shown." } }
    }
}

fn gap_table(times: &[u64]) -> Table<'static> {
    let gaps = || times.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
    let mean = gaps().map(|ns| ns as f64).sum::<f64>() / gaps().count().max(1) as f64;
    let ns = |ns: Option<u64>| ns.map_or(Cell::Empty, Cell::ns);
    Table {
        id: "step-table",
        caption: "Time of phases".into(),
        heads: vec!["phases", "shortest", "mean", "longest"],
        rows: vec![vec![
            Cell::Count(gaps().count() as u64),
            ns(gaps().min()),
            Cell::Ns(mean),
            ns(gaps().max()),
        ]],
        ..Table::default()
    }
}

/// Table of the longest phases, compared with the median.
fn slowest(report: &Report<'_>, times: &[u64]) -> Table<'static> {
    let mut gaps: Vec<(u64, usize)> =
        times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).zip(0..).collect();
    gaps.sort_by_key(|&(ns, number)| (std::cmp::Reverse(ns), number));
    let median_ns = median(gaps.iter().map(|&(ns, _)| ns as f64).collect()).unwrap_or(0.0).max(1.0);
    gaps.truncate(SLOWEST_MAX);
    let row = |&(ns, number): &(u64, usize)| {
        let times_median = Cell::Number(ns as f64 / median_ns);
        vec![Cell::Count(number as u64), Cell::ns(times[number]), Cell::ns(ns), times_median]
    };
    let place = |&(_, number): &(u64, usize)| Some(TimelinePosition::over(times[number], times[number + 1]));
    let table = Table {
        id: "slow-table",
        caption: "The slowest phases".into(),
        heads: vec!["number", "from", "time", "times the median"],
        rows: gaps.iter().map(row).collect(),
        ..Table::default()
    };
    table.at(gaps.iter().map(place).collect(), &report.figures)
}

/// A number without unnecessary digits.
fn number(value: f64) -> String {
    if value == 0.0 || (1e-3..1e6).contains(&value.abs()) {
        format!("{}", (value * 1e4).round() / 1e4)
    } else {
        format!("{value:.2e}")
    }
}
