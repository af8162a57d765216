//! Builds the sections of the timeline, the utilisation, and the profile by kind.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::nothing;
use crate::trace::analysis::time_breakdown::{Line, Parts, Worker};
use crate::trace::page::{Cell, duration};
use crate::trace::profile;
use crate::trace::report::Report;
use crate::trace::report::activities::State;
use crate::trace::report::charts::{self, legend, row_name, stretch};
use crate::trace::report::figures::MARKS_MAX;
use crate::trace::report::maps;
use crate::trace::report::tables::{Table, folded};

/// Rows of tables about time.
const TIMES_MAX: usize = 24;

pub(super) fn timeline(report: &Report<'_>) -> Markup {
    let (figures, stretches) = (&report.figures, &report.stretches);
    if report.facts.spent.workers.iter().all(|worker| worker.lines.is_empty()) {
        return nothing("Nothing that takes time was recorded: run with CARIBOU_TRACE set.");
    }
    let finest = figures.levels.last().map_or(0, |grid| grid.bin_ns);
    html! {
        (state_legend(report))
        div.tools.scripted role="group" aria-label="Timeline" {
            button type="button" #zoom-in { "Zoom in" }
            button type="button" #zoom-out { "Zoom out" }
            button type="button" #pan-left { "Earlier" }
            button type="button" #pan-right { "Later" }
            button type="button" #zoom-reset { "Whole run" }
            @if stretches.messages() > 0 {
                label { input #arrows type="checkbox"; " messages" }
            }
            @if report.details.is_some() {
                label { input #path-shown type="checkbox" checked; " critical path" }
            }
            output #range aria-live="off" {}
        }
        div #timeline-box {
            div #timeline-static { (charts::timeline(report)) }
        }
        output #readout.scripted aria-live="polite" { "Point at the timeline, or focus it and use the keys." }
        p.note.scripted #timeline-keys {
            kbd { "Ctrl" } " and wheel, pinch, or " kbd { "+" } " " kbd { "−" } " zoom (the wheel alone scrolls the page), drag or "
            kbd { "←" } " " kbd { "→" } " pan, " kbd { "0" } " shows the whole run, " kbd { "↑" } " " kbd { "↓" }
            " choose a worker, " kbd { "n" } " " kbd { "p" } " its next or previous slice. A click on a row of a table, such as a"
            " sync, a chunk or an outlier, or on another picture over time shows that moment here."
        }
        (cuts(report, finest))
        (folded("The same as a table: how each worker spent its time", &workers(report)))
    }
}

/// Notes about merged and omitted parts.
fn cuts(report: &Report<'_>, finest_ns: u64) -> Markup {
    let (figures, stretches) = (&report.figures, &report.stretches);
    let slices: u64 = figures.counts.iter().sum();
    let (profiles, unread) =
        (figures.from_profile, report.facts.problems.len() + report.trace.problems.len());
    html! {
        p.note {
            @if slices == 0 {
                "No events were recorded: this is drawn from profiles, in bins of " (duration(finest_ns as f64))
                "; the order within a bin is not known. CARIBOU_TRACE records events."
            } @else if stretches.whole && stretches.slices() > 0 {
                "All " (slices) " slices are in this page, and idle time between them."
            } @else if stretches.slices() > 0 {
                "Of " (slices) " slices, the " (stretches.slices()) " that are not idle "
                @for (number, part) in stretches.all.iter().enumerate() {
                    @if number > 0 { " and " }
                    "from " (stretch(part.from_ns, part.to_ns)) " (" (part.why) ")"
                }
                " are in this page one by one; elsewhere time is merged into bins of " (duration(finest_ns as f64))
                " or more, coloured by the kind that took most."
            } @else {
                "Time is merged into bins of " (duration(finest_ns as f64)) " or more (" (slices) " slices), coloured by the kind that took most."
            }
            @if profiles > 0 && slices > 0 {
                " " (profiles) " workers are drawn from their profiles: their events cover less time."
            }
            @if figures.workers_per_row > 1 {
                " A row is " (figures.workers_per_row) " workers: heights are their average."
            }
            @if stretches.messages() > 0 {
                " Send times are known of " (stretches.messages()) " messages there"
                @if report.trace.run.arrows > 1 { "; one in " (report.trace.run.arrows) " was recorded" }
                "."
            }
            @if figures.marks_total > 0 {
                " " (figures.marks_total) " marks, of which " (figures.marks_total.min(MARKS_MAX as u64)) " are drawn below the axis."
            }
            @if figures.activities.others > 0 { " " (figures.activities.others) " kinds are merged into one." }
            @if unread > 0 {
                " " (unread) " parts of the trace could not be read: " code { "caribou trace check" } " lists them."
            }
        }
    }
}

fn workers(report: &Report<'_>) -> Table<'static> {
    let (figures, spent) = (&report.figures, &report.facts.spent);
    let row = |(number, workers): (usize, &[Worker])| {
        let mut parts = Parts::default();
        workers.iter().for_each(|worker| parts += worker.parts(&spent.bins));
        let mut cells = vec![Cell::Text(row_name(figures, number))];
        cells.extend(State::ALL.map(|state| Cell::Ns(state.ns(&parts))));
        cells.extend([Cell::Ns(parts.rest_ns), Cell::Share(parts.share(parts.chunks_ns))]);
        cells
    };
    Table {
        id: "worker-table",
        caption: "Time of each worker".into(),
        heads: vec!["worker", "in chunks", "runtime", "lost", "idle", "not recorded", "share in chunks"],
        rows: spent.workers.chunks(figures.workers_per_row).enumerate().map(row).collect(),
        ..Table::default()
    }
}

fn state_legend(report: &Report<'_>) -> Markup {
    let figures = &report.figures;
    let kinds = figures.heaviest_kinds();
    let kinds = kinds
        .into_iter()
        .map(|kind| (figures.activities.class(kind), figures.activities.name(kind).to_owned()));
    let states =
        [("runtime", "runtime"), ("lost", "lost (wall time that was not CPU time)"), ("idle", "idle")];
    legend(kinds.chain(states.map(|(class, name)| (class.to_owned(), name.to_owned()))))
}

pub(super) fn utilisation(report: &Report<'_>) -> Markup {
    let figures = &report.figures;
    if figures.stack.is_empty() {
        return nothing("Nothing that takes time was recorded: run with CARIBOU_TRACE set.");
    }
    let chosen = figures.heaviest_kinds().len();
    let kinds = figures.stack.keys().filter(|activity| State::of(**activity) == State::Chunks).count();
    html! {
        fieldset.choice {
            legend { "Chunks" }
            label { input type="radio" name="stack" #stack-kind checked; " by kind" }
            label { input type="radio" name="stack" #stack-all; " together" }
        }
        (charts::utilisation(report))
        (state_legend(report))
        p.note {
            "Shares of the time of all " (figures.workers.len()) " workers in bins of " (duration(figures.stack_grid.bin_ns as f64))
            "; thin lines are syncs." @if kinds > chosen { " " (kinds - chosen) " lighter kinds are grey." }
        }
        (folded("The same as a table", &utilisation_table(report)))
        h3 { "Each rank over time" }
        fieldset.choice {
            legend { "The darker, the more" }
            label { input type="radio" name="heat" #heat-busy checked; " in chunks" }
            label { input type="radio" name="heat" #heat-lost; " lost" }
            label { input type="radio" name="heat" #heat-idle; " idle" }
        }
        (maps::heat(report))
    }
}

fn utilisation_table(report: &Report<'_>) -> Table<'static> {
    let figures = &report.figures;
    let bins = figures.stack_grid.bins;
    let rows = bins.min(TIMES_MAX);
    let row = |number: usize| {
        let (from, to) = (number * bins / rows, (number + 1) * bins / rows);
        let from_ns = from as u64 * figures.stack_grid.bin_ns;
        let to_ns = (to as u64 * figures.stack_grid.bin_ns).min(figures.elapsed_ns);
        let all_ns = (to_ns.saturating_sub(from_ns) as f64 * figures.workers.len() as f64).max(1.0);
        let of = |state| {
            let bins = figures.stack.iter().filter(|(activity, _)| State::of(**activity) == state);
            bins.flat_map(|(_, ns)| &ns[from..to]).map(|&ns| ns as f64).sum::<f64>() / all_ns
        };
        let mut cells = vec![Cell::Text(stretch(from_ns, to_ns))];
        cells.extend(State::ALL.map(|state| Cell::Share(of(state).min(1.0))));
        cells
    };
    Table {
        id: "utilisation-table",
        caption: "Shares of all workers' time".into(),
        heads: vec!["from, to", "in chunks", "runtime", "lost", "idle"],
        rows: (0..rows).map(row).collect(),
        ..Table::default()
    }
}

pub(super) fn profile(report: &Report<'_>) -> Markup {
    let (figures, spent) = (&report.figures, &report.facts.spent);
    let (total, parts) = (spent.total(), spent.parts());
    let mut lines: BTreeMap<u8, Line> = BTreeMap::new();
    for (activity, line) in profile::in_order(&total) {
        lines.entry(figures.activities.known(activity)).or_default().merge(line);
    }
    if lines.is_empty() {
        return nothing("Nothing that takes time was recorded: run with CARIBOU_TRACE set.");
    }
    let mut lines: Vec<(u8, Line)> = lines.into_iter().collect();
    lines.sort_by(|(one, one_line), (other, other_line)| {
        let state = State::of(*one).cmp(&State::of(*other));
        state.then(other_line.total_ns.total_cmp(&one_line.total_ns))
    });
    let row = |(activity, line): &(u8, Line)| {
        let state = State::of(*activity);
        let lost_ns = figures.lost_ns.get(activity).copied().unwrap_or(0);
        let lost = if state == State::Chunks { Cell::ns(lost_ns) } else { Cell::Empty };
        let named = [figures.activities.name(*activity), state.name()].map(Cell::text_of);
        named.into_iter().chain(profile::cells(line, &parts)).chain([lost]).collect()
    };
    let table = Table {
        id: "profile-table",
        caption: "Time by kind and state, over all workers; that of chunks is CPU time".into(),
        heads: vec!["kind", "state", "time", "of workers' time", "calls", "mean", "longest", "lost in it"],
        rows: lines.iter().map(row).collect(),
        ..Table::default()
    };
    html! {
        (table.html())
        @if !figures.spans.is_empty() {
            (spans(report).html())
        }
    }
}

fn spans(report: &Report<'_>) -> Table<'static> {
    let rows = report.figures.spans.iter().map(|(&name, &(count, ns))| {
        vec![Cell::Text(report.trace.name(name)), Cell::Count(count), Cell::ns(ns)]
    });
    Table {
        id: "span-table",
        caption: "Spans that the program named, inside handlers; wall time".into(),
        heads: vec!["span", "count", "time"],
        rows: rows.collect(),
        ..Table::default()
    }
}
