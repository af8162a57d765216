//! Compares each worker before and after a sync, to show the effect of balancing (Gupta et al., 2013, figure 4).

use std::collections::BTreeMap;
use std::io::Write;

use caribou::trace::Activity;
use presentation::svg::{Anchor, Area, Svg};
use trace_reader::Trace;

use super::super::analysis::bins::Bins;
use super::super::analysis::sync_effect::{
    SyncEffect, began_ns, largest, neighbours, occasion, sync_effects,
};
use super::super::analysis::time_breakdown::{Line, Parts, TimeBreakdown, Worker, time_breakdown};
use super::super::lb::the_one;
use super::super::open::warn;
use super::super::page::{Cell, Page, Table, columns, plural};
use super::super::palette;
use super::super::profile::drawing::Layers;
use super::super::select::Window;
use super::{Options, Sort};
use crate::{Error, output};

/// Largest number of bars. More workers are drawn as averages of several workers.
const BARS_MAX: usize = 256;

pub(super) fn run(trace: &Trace, options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    let outcomes = sync_effects(&trace.syncs);
    let chosen = match options.around_sync {
        Some(sync) => the_one(&outcomes, sync)?,
        None => {
            largest(&outcomes).ok_or_else(|| Error::Usage("the run had no sync to look around at".into()))?
        }
    };
    let (before, after) = phases(trace, &chosen, &outcomes);
    if before.length_ns() == 0 || after.length_ns() == 0 {
        let sync = chosen.report.sync;
        return Err(Error::Usage(format!(
            "there is no phase both before and after sync {sync}: name another"
        )));
    }
    let [before, after] =
        [before, after].map(|window| time_breakdown(trace, &options.trace.selection, Bins::new(window, 1)));
    warn(&before.problems);
    warn(&after.problems);
    let pairs = pairs(&before, &after, options.sort);
    if let Some(file) = &options.svg {
        output::write(file, draw(trace, &chosen, &before, &after, &pairs))?;
    }
    let mut page = Page::new("utilisation_around", trace);
    page.says.push(answer(trace, &chosen, &before, &after));
    page.tables.push(table(&before, &after, &pairs));
    page.notes.push(before.note());
    Ok(page.write(options.format, out)?)
}

/// The phase before a sync, and the phase after it.
fn phases(trace: &Trace, chosen: &SyncEffect<'_>, all: &[SyncEffect<'_>]) -> (Window, Window) {
    let elapsed_ns = trace.elapsed_ns();
    let begin_ns = |outcome: &SyncEffect<'_>| began_ns(outcome.report).min(elapsed_ns);
    let end_ns = |outcome: &SyncEffect<'_>| {
        outcome.report.at_ns.saturating_add(outcome.report.migrate_ns).min(elapsed_ns)
    };
    let (last, next) = neighbours(all, chosen.report.sync);
    let window = |from_ns: u64, to_ns: u64| Window { from_ns, to_ns: to_ns.max(from_ns) };
    let before = window(last.map_or(0, end_ns), begin_ns(chosen));
    (before, window(end_ns(chosen), next.map_or(elapsed_ns, begin_ns)))
}

type Pair<'s> = (&'s Worker, &'s Worker);

/// Each worker before and after. The worker with most idle time before the sync is first.
fn pairs<'s>(before: &'s TimeBreakdown, after: &'s TimeBreakdown, sort: Sort) -> Vec<Pair<'s>> {
    let mut pairs: Vec<Pair<'s>> = before.workers.iter().zip(&after.workers).collect();
    if sort == Sort::Busy {
        let idle = |pair: &Pair<'_>| {
            let parts = pair.0.parts(&before.bins);
            parts.share(parts.idle_ns)
        };
        pairs.sort_by(|one, other| idle(other).total_cmp(&idle(one)));
    }
    pairs
}

fn answer(trace: &Trace, chosen: &SyncEffect<'_>, before: &TimeBreakdown, after: &TimeBreakdown) -> String {
    let (before, after) = (before.parts(), after.parts());
    let percent = |parts: &Parts, ns: f64| 100.0 * parts.share(ns);
    format!(
        "{} {} ({}) moved {}: busy with chunks {:.1} % before, {:.1} % after; idle {:.1} % before, \
         {:.1} % after; lost {:.1} % before, {:.1} % after",
        occasion([chosen.report.window]),
        chosen.report.sync,
        trace.run.lb,
        plural(chosen.report.moved as usize, "chunk"),
        percent(&before, before.chunks_ns),
        percent(&after, after.chunks_ns),
        percent(&before, before.idle_ns),
        percent(&after, after.idle_ns),
        percent(&before, before.lost_ns),
        percent(&after, after.lost_ns)
    )
}

fn table(before: &TimeBreakdown, after: &TimeBreakdown, pairs: &[Pair<'_>]) -> Table {
    let columns = columns(
        "rank | worker | chunks_before: chunks before | runtime_before: runtime before | \
         lost_before: lost before | idle_before: idle before | chunks_after: chunks after | \
         runtime_after: runtime after | lost_after: lost after | idle_after: idle after",
    );
    let mut table = Table::new("workers", "each worker before and after", &columns).text_rows(33);
    let row = |named: [Cell; 2], before: &Parts, after: &Parts| {
        let shares = [before, after].into_iter().flat_map(|parts| {
            [parts.chunks_ns, parts.runtime_ns, parts.lost_ns, parts.idle_ns]
                .map(|ns| Cell::Share(parts.share(ns)))
        });
        named.into_iter().chain(shares).collect::<Vec<_>>()
    };
    table.row(row([Cell::text_of("average"), Cell::Empty], &before.parts(), &after.parts()));
    for (one, other) in pairs {
        let named = [Cell::Count(one.rank.into()), Cell::Count(one.worker.into())];
        table.row(row(named, &one.parts(&before.bins), &other.parts(&after.bins)));
    }
    table
}

/// Draws two groups of bars with the workers in the same order, each after the average.
fn draw(
    trace: &Trace,
    chosen: &SyncEffect<'_>,
    before: &TimeBreakdown,
    after: &TimeBreakdown,
    pairs: &[Pair<'_>],
) -> String {
    let mut total = before.total();
    for (activity, line) in after.total() {
        total.entry(activity).or_default().merge(&line);
    }
    let layers = Layers::new(trace, &total);
    let sync = chosen.report.sync;
    let mut svg = palette::picture(960.0, 680.0, &format!("workers before and after sync {sync}"));
    let high =
        svg.legend(Area { left: 60.0, top: 12.0, width: 880.0, height: 0.0 }, &layers.legend()).min(120.0);
    let height = (620.0 - high) / 2.0 - 50.0;
    let firsts: Vec<&Worker> = pairs.iter().map(|pair| pair.0).collect();
    let seconds: Vec<&Worker> = pairs.iter().map(|pair| pair.1).collect();
    for (number, (name, spent, workers)) in
        [("before", before, firsts), ("after", after, seconds)].into_iter().enumerate()
    {
        let top = 46.0 + high + (height + 56.0) * number as f64;
        let area = Area { left: 60.0, top, width: 880.0, height };
        let parts = spent.parts();
        let busy = 100.0 * parts.share(parts.chunks_ns);
        let title = format!("{name} sync {sync}: busy with chunks {busy:.1} % on average");
        svg.sized_text((500.0, top - 8.0), 14, Anchor::Middle, &title);
        svg.left_axis(area, 1.0, |share| format!("{:.0} %", 100.0 * share));
        bars(&mut svg, area, &layers, spent, &workers);
    }
    svg.sized_text((500.0, 672.0), 12, Anchor::Middle, "vCPU: rank.worker");
    svg.finish()
}

fn bars(svg: &mut Svg, area: Area, layers: &Layers, spent: &TimeBreakdown, workers: &[&Worker]) {
    let groups: Vec<&[&Worker]> = workers.chunks(workers.len().div_ceil(BARS_MAX).max(1)).collect();
    let place = area.width / (groups.len() as f64 + 1.5);
    let mut bar = |at: f64, name: &str, workers: &[&Worker]| {
        let (mut lines, mut parts) = (BTreeMap::<Activity, Line>::new(), Parts::default());
        for worker in workers {
            worker.add_to(&mut lines);
            parts += worker.parts(&spent.bins);
        }
        let left = area.left + place * (at + 0.1);
        let time_ns = |activity| lines.get(&activity).map_or(0.0, |line| line.total_ns);
        layers.stack(svg, Area { left, width: 0.8 * place, ..area }, name, time_ns, &parts);
        if groups.len() <= 33 || name == "avg" {
            svg.sized_text((left + 0.4 * place, area.bottom() + 14.0), 10, Anchor::Middle, name);
        }
    };
    bar(0.0, "avg", workers);
    for (number, group) in groups.iter().enumerate() {
        let name = group.first().map_or(String::new(), |worker| worker.name().to_string());
        bar(number as f64 + 1.5, &name, group);
    }
}
