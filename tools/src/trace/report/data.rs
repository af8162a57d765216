//! Embeds the figures of the pictures as JSON, for the script and for programs that read the page. Long lists of
//! numbers are little-endian arrays in base64.

use std::collections::BTreeMap;

use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};

use super::Report;
use super::activities::State;
use super::balance::RANKS_MAX;
use super::charts::row_name;
use super::detail_windows::{DetailWindow, Exact, UNKNOWN};
use crate::trace::analysis::events::WorkerName;
use crate::trace::critical_path::Step;

/// Largest number of steps of the critical path that are embedded.
const STEPS_MAX: usize = 6000;

/// The JSON, with characters escaped that could end the enclosing HTML element.
pub(super) fn json(report: &Report<'_>) -> String {
    value(report).to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn value(report: &Report<'_>) -> Value {
    let figures = &report.figures;
    let activities = (0..figures.activities.len()).map(|number| {
        let number = number as u8;
        let class = figures.activities.class(number);
        json!({ "name": figures.activities.name(number), "state": State::of(number).name(), "class": class })
    });
    let rows = (0..figures.rows.len())
        .map(|row| json!({ "name": row_name(figures, row), "workers": figures.rows[row].workers }));
    let levels = figures.levels.iter().enumerate().map(|(level, grid)| {
        let bins = figures.rows.iter().flat_map(|row| row.level(level));
        let bytes: Vec<u8> = bins.flat_map(|bin| std::iter::once(bin.kind).chain(bin.shares)).collect();
        json!({ "bin_ns": grid.bin_ns, "bins": grid.bins, "data": BASE64_STANDARD.encode(bytes) })
    });
    let stack = figures.stack.iter().map(|(activity, ns)| json!({ "activity": activity, "ns": ns }));
    let marks = figures.marks.iter().map(|&(at_ns, name)| json!([at_ns, report.trace.name(name)]));
    json!({
        "schema": "caribou.trace.report/1",
        "run": report.trace.run,
        "elapsed_ns": figures.elapsed_ns,
        "activities": activities.collect::<Value>(),
        "states": State::ALL.map(State::name),
        "rows": rows.collect::<Value>(),
        "levels": levels.collect::<Value>(),
        "exact": report.stretches.all.iter().map(exact).collect::<Value>(),
        "chunk_names": report.stretches.names,
        "path": path(report),
        "syncs": syncs(report),
        "sync_times_ns": sync_times(report),
        "marks": marks.collect::<Value>(),
        "utilisation": { "bin_ns": figures.stack_grid.bin_ns, "rows": stack.collect::<Value>() },
    })
}

/// One array per figure of the slices. Begins are relative to the begin of the window, in units that fit in four bytes.
fn exact(stretch: &DetailWindow) -> Value {
    let unit_ns = (stretch.to_ns - stretch.from_ns) / i32::MAX as u64 + 1;
    // The first slice of a row may begin before the window.
    let begin = |slice: &Exact| {
        let since_ns = slice.begin_ns as f64 - stretch.from_ns as f64;
        ((since_ns / unit_ns as f64) as i32).to_le_bytes()
    };
    let long = |slice: &Exact| ((slice.end_ns - slice.begin_ns) as f32).to_le_bytes();
    // Time from the send of the message to the slice; NaN if it is unknown.
    let sent =
        |slice: &Exact| slice.sent.map_or(f32::NAN, |(_, at_ns)| slice.begin_ns.saturating_sub(at_ns) as f32);
    let list = |bytes: &dyn Fn(&Exact) -> Vec<u8>| {
        BASE64_STANDARD.encode(stretch.slices.iter().flat_map(bytes).collect::<Vec<u8>>())
    };
    json!({
        "from_ns": stretch.from_ns,
        "to_ns": stretch.to_ns,
        "offsets": stretch.offsets,
        "unit_ns": unit_ns,
        "begin": list(&|slice| begin(slice).into()),
        "long_ns": list(&|slice| long(slice).into()),
        "lost_ns": list(&|slice| (slice.lost_ns as f32).to_le_bytes().into()),
        "activity": list(&|slice| vec![slice.activity]),
        "chunk": list(&|slice| slice.chunk.to_le_bytes().into()),
        "sender": list(&|slice| slice.sender.to_le_bytes().into()),
        "sent_before_ns": list(&|slice| sent(slice).to_le_bytes().into()),
        "sent_from": list(&|slice| slice.sent.map_or(UNKNOWN, |(row, _)| row).to_le_bytes().into()),
    })
}

/// Work on the critical path: row, begin and length.
fn path(report: &Report<'_>) -> Value {
    let steps = report.details.as_ref().map_or(&[][..], |details| &details.path.1);
    let steps = bounded(steps, report.figures.elapsed_ns);
    let rows: Vec<_> = steps.iter().map(|step| report.figures.row_of(step.worker)).collect();
    let row = |row: &Option<usize>| (row.unwrap_or(usize::from(UNKNOWN)) as u16).to_le_bytes();
    json!({
        "row": BASE64_STANDARD.encode(rows.iter().flat_map(row).collect::<Vec<u8>>()),
        "begin_ns": BASE64_STANDARD.encode(steps.iter().flat_map(|step| (step.begin_ns as f64).to_le_bytes()).collect::<Vec<u8>>()),
        "long_ns": BASE64_STANDARD.encode(steps.iter().flat_map(|step| ((step.end_ns - step.begin_ns) as f32).to_le_bytes()).collect::<Vec<u8>>()),
    })
}

/// Reduces the number of steps: merges steps of one worker, with increasing tolerance for the time between them.
fn bounded(steps: &[Step], elapsed_ns: u64) -> Vec<Step> {
    let mut bounded = steps.to_vec();
    let mut gap_ns = elapsed_ns / 65_536 + 1;
    while bounded.len() > STEPS_MAX && gap_ns / 4 < elapsed_ns {
        let mut merged: Vec<Step> = Vec::new();
        let mut last: BTreeMap<WorkerName, usize> = BTreeMap::new();
        for step in &bounded {
            let place = last.entry(step.worker).or_insert(usize::MAX);
            match merged.get_mut(*place).filter(|last| step.begin_ns.saturating_sub(last.end_ns) <= gap_ns) {
                Some(last) => last.end_ns = last.end_ns.max(step.end_ns),
                None => {
                    *place = merged.len();
                    merged.push(*step);
                }
            }
        }
        (bounded, gap_ns) = (merged, gap_ns.saturating_mul(4));
    }
    bounded.truncate(STEPS_MAX);
    bounded
}

fn syncs(report: &Report<'_>) -> Value {
    let balance = &report.balance;
    let some = |ns: &[u64]| ns.iter().take(RANKS_MAX).copied().collect::<Vec<_>>();
    let shown = balance.shown().map(|outcome| {
        let sync = outcome.report;
        json!({
            "sync": sync.sync,
            "at_ns": sync.at_ns,
            "before_ns": some(&sync.before_ns),
            "predicted_ns": some(&outcome.predicted_ns()),
            "next_ns": some(&outcome.measured_ns().unwrap_or_default()),
        })
    });
    shown.collect()
}

/// Times of lines in the timeline, at most about 5000.
fn sync_times(report: &Report<'_>) -> Vec<u64> {
    let times = report.balance.syncs.iter().map(|sync| sync.report.at_ns);
    let every = report.balance.syncs.len().div_ceil(5000).max(1);
    times.step_by(every).filter(|&at_ns| at_ns <= report.figures.elapsed_ns).collect()
}

#[cfg(test)]
mod tests {
    use super::{STEPS_MAX, Step, WorkerName, bounded};

    #[test]
    fn a_long_path_is_merged_until_a_page_holds_it() {
        for workers in [1, 2, 5] {
            let step = |n: u64| {
                let worker = WorkerName { rank: 0, worker: (n / 3 % workers) as u32 };
                Step { worker, begin_ns: 10 * n, end_ns: 10 * n + 7 }
            };
            let steps: Vec<Step> = (0..50_000).map(step).collect();
            let merged = bounded(&steps, 500_000);
            assert!(merged.len() <= STEPS_MAX && !merged.is_empty());
            assert_eq!(merged[0].begin_ns, 0);
            assert_eq!(merged.iter().map(|step| step.end_ns).max(), Some(499_997));
            assert!(merged.is_sorted_by_key(|step| step.begin_ns));
        }
    }
}
