//! Represents balancing in Projections, which has no records for it, by user events, notes and statistics.

use std::collections::{BTreeMap, VecDeque};

use caribou::report::SyncReport;
use caribou::trace::Sample;
use trace_reader::Trace;

use super::record::{Record, plain};
use super::symbols::{LB_PLAN, LB_STEP};
use crate::trace::analysis::sync_effect::began_ns;
use crate::trace::export::rows::{Row, Rows};
use crate::trace::select::Window;

/// CPU time of chunks at one sync: of the rank with the most, of all ranks, and the number of ranks that reported.
#[derive(Default)]
struct Loads {
    most_s: f64,
    sum_s: f64,
    ranks: u32,
}

/// The records of each row that do not depend on events, in order of time, in us since the begin of the window.
pub(super) fn due(trace: &Trace, rows: &Rows, window: Window) -> Vec<VecDeque<(u64, Record)>> {
    let mut loads: BTreeMap<u64, Loads> = BTreeMap::new();
    for sample in trace.ranks.iter().flat_map(|rank| &rank.samples) {
        let Some(sync) = sample.sync else { continue };
        let of_sync = loads.entry(sync).or_default();
        let load_s = sample.chunk_ns as f64 / 1e9;
        of_sync.most_s = of_sync.most_s.max(load_s);
        of_sync.sum_s += load_s;
        of_sync.ranks += 1;
    }
    let samples = || trace.ranks.iter().flat_map(|rank| &rank.samples);
    let reference = samples().map(|sample| sample.speed).find(|&speed| speed > 0.0).unwrap_or(1.0);
    let imbalances: BTreeMap<u64, f64> =
        trace.syncs.iter().map(|sync| (sync.sync, sync.imbalance_before)).collect();
    let of_row = |row: &Row| {
        let mut due = if row.number == 0 { marks(trace, window) } else { Vec::new() };
        let rank = trace.ranks.iter().find(|rank| rank.rank == row.rank && row.worker == 0);
        for sample in rank.iter().flat_map(|rank| &rank.samples) {
            let Some(sync) = sample.sync else { continue };
            let imbalance = imbalances.get(&sync).copied();
            let values = statistics(sample, &loads[&sync], imbalance, reference);
            for (name, value) in (0..).zip(values) {
                let (phase, row) = (sync.min(i32::MAX as u64) as i64, row.number);
                let record = value.map(|value| Record::Statistic { phase, value, row, name });
                due.extend(record.map(|record| (sample.at_ns, record)));
            }
        }
        due.retain(|(at_ns, _)| (window.from_ns..=window.to_ns).contains(at_ns));
        due.sort_by_key(|(at_ns, _)| *at_ns);
        due.into_iter().map(|(at_ns, record)| ((at_ns - window.from_ns) / 1000, record)).collect()
    };
    rows.rows.iter().map(of_row).collect()
}

/// The statistics in the order of their numbers.
fn statistics(sample: &Sample, loads: &Loads, imbalance: Option<f64>, reference: f64) -> [Option<f64>; 7] {
    [
        imbalance,
        Some(loads.most_s),
        Some(loads.sum_s / f64::from(loads.ranks.max(1))),
        Some(sample.background_ns as f64 / 1e9),
        Some(sample.steal_ns as f64 / 1e9),
        Some(sample.speed / reference),
        Some(sample.chunks as f64),
    ]
}

/// A line across all rows at the begin of each sync, and a note for its duration.
fn marks(trace: &Trace, window: Window) -> Vec<(u64, Record)> {
    let mut marks = Vec::new();
    for sync in &trace.syncs {
        let began_ns = began_ns(sync);
        let end_ns = sync.at_ns.saturating_add(sync.migrate_ns).clamp(began_ns, window.to_ns.max(began_ns));
        marks.push((began_ns, Record::UserEvent { name: LB_STEP, event: 0, row: 0 }));
        let end_us = end_ns.saturating_sub(window.from_ns) / 1000;
        let text = plain(&format!("{}: {}", trace.run.lb, moved(sync)));
        marks.push((began_ns, Record::BracketedNote { end_us, name: LB_PLAN, text }));
    }
    marks
}

fn moved(sync: &SyncReport) -> String {
    let chunks = sync.chunks_per_rank.iter().fold(0u64, |sum, &chunks| sum + u64::from(chunks));
    format!("moved {} of {chunks} chunks, {} bytes", sync.moved, sync.moved_bytes)
}
