//! Takes the loads of a run from the reports of its ranks to syncs, which a trace has with `CARIBOU_LB_REPORTS=on`.

use caribou::trace::{Shape, SyncReport};
use lb_strategies::balancer::{ChunkReport, PhaseReport};
use lb_strategies::{ChunkLoad, RankLoad, Snapshot};
use trace_reader::Trace;

use crate::trace::lb::why_none;

/// The reports of ranks at a sync, and the record of the decision of the run.
pub(crate) type Reported<'t> = (&'t PhaseReport, &'t SyncReport);

/// Returns the reports of all syncs. Refuses a trace with a gap, because each decision depends on those before it.
pub(crate) fn of_syncs(trace: &Trace) -> Result<Vec<Reported<'_>>, String> {
    if trace.run.shape != Shape::Arrays {
        return Err(format!("the run is of {}, which has no syncs", trace.run.shape.program()));
    }
    let mut syncs: Vec<&SyncReport> = trace.syncs.iter().collect();
    syncs.sort_by_key(|sync| sync.sync);
    if syncs.is_empty() {
        return Err(why_none(trace).to_string());
    }
    if let Some((missing, _)) = (0..).zip(&syncs).find(|(number, sync)| *number != sync.sync) {
        return Err(format!("sync {missing} is missing in the trace, and later decisions depend on it"));
    }
    let reports: Vec<&PhaseReport> = syncs.iter().filter_map(|sync| sync.reported.as_deref()).collect();
    if reports.is_empty() {
        let why = "the trace has no reports of ranks to syncs: record the run with CARIBOU_LB_REPORTS=on";
        return Err(why.to_owned());
    }
    if let Some(without) = syncs.iter().find(|sync| sync.reported.is_none()) {
        let sync = without.sync;
        return Err(format!(
            "the reports of ranks to sync {sync} are missing in the trace: they were too long to be recorded"
        ));
    }
    match contradiction(&reports) {
        None => Ok(reports.into_iter().zip(syncs.iter().copied()).collect()),
        Some(why) => Err(why),
    }
}

/// Returns the first value in the reports that no run can record. The balancer relies on their validity.
fn contradiction<'t>(reports: &[&'t PhaseReport]) -> Option<String> {
    let ranks = reports.first()?.ranks.len();
    let windows = |(sync, report): (usize, &&'t PhaseReport)| {
        report.undecided.iter().chain([*report]).map(move |report| (sync, report))
    };
    reports.iter().enumerate().flat_map(windows).find_map(|(sync, report)| {
        let reported = report.ranks.len();
        if reported != ranks {
            return Some(format!(
                "sync {sync} has reports of {reported} ranks, expected {ranks} as sync 0 has"
            ));
        }
        let speeds = report.ranks.iter().map(|rank| rank.sample.map_or(0.0, |sample| sample.speed));
        if let Some((rank, speed)) = speeds.enumerate().find(|(_, speed)| !speed.is_finite()) {
            return Some(format!(
                "sync {sync}: the speed of rank {rank} is {speed}, expected a finite number"
            ));
        }
        let named = |chunk: &ChunkReport| {
            [(chunk.load.rank, "is on"), (chunk.wish.unwrap_or_default(), "is to go to")]
        };
        let (rank, what) = report.chunks.iter().flat_map(named).find(|(rank, _)| rank.index() >= ranks)?;
        Some(format!("sync {sync}: a chunk {what} rank {rank}, expected one of {ranks}, counted from 0"))
    })
}

/// The phases of the run as a strategy would get them on ranks of equal speed. Ticks are ns on the fastest rank. A window
/// on which nothing was decided is a phase too.
pub(super) fn snapshots(reports: &[Reported<'_>]) -> Vec<Snapshot> {
    let all = reports.iter().flat_map(|(report, _)| report.undecided.iter().chain([*report]));
    all.zip(0..).map(|(report, phase)| snapshot(report, phase)).collect()
}

fn snapshot(report: &PhaseReport, phase: u64) -> Snapshot {
    let speeds: Vec<f64> =
        report.ranks.iter().map(|rank| rank.sample.map_or(0.0, |sample| sample.speed)).collect();
    let fastest = speeds.iter().copied().fold(0.0, f64::max);
    // A speed of 0 was not measured.
    let relative = |rank: usize| if speeds[rank] > 0.0 { speeds[rank] / fastest } else { 1.0 };
    let chunk = |chunk: &ChunkReport| {
        let load = &chunk.load;
        let factor = if chunk.declared { 1.0 } else { relative(load.rank.index()) };
        ChunkLoad { ticks: (load.ticks as f64 * factor).round() as u64, ..load.clone() }
    };
    let rank_loads =
        report.ranks.iter().map(|rank| RankLoad { host: rank.place.host, ..RankLoad::default() });
    let mut chunks: Vec<ChunkLoad> = report.chunks.iter().map(chunk).collect();
    chunks.sort_by_key(|chunk| (chunk.rank, chunk.id));
    Snapshot { phase, ranks: rank_loads.collect(), chunks, ..Snapshot::default() }
}

#[cfg(test)]
mod tests {
    use lb_strategies::balancer::{RankPlace, RankReport, RankSample};
    use lb_strategies::{ArrayId, ChunkId, Rank};

    use super::*;

    #[test]
    fn costs_are_those_of_the_fastest_rank_and_each_window_is_a_phase() {
        let rank = |(host, speed): (u32, f64)| RankReport {
            place: RankPlace { host, workers: 1 },
            sample: (speed > 0.0).then(|| RankSample { speed, ..RankSample::default() }),
        };
        let chunk = |(key, rank, declared): (u64, u32, bool)| {
            let id = ChunkId { array: ArrayId(0), key };
            let load = ChunkLoad { id, rank: Rank(rank), ticks: 1_000, bytes: 8, migratable: key != 3 };
            ChunkReport { load, declared, wish: None, handled: 0 }
        };
        let window = PhaseReport {
            ranks: [(0, 2.0), (0, 4.0), (7, 0.0)].map(rank).into(),
            chunks: [(3, 2, false), (1, 1, false), (0, 0, false), (2, 0, true)].map(chunk).into(),
            ..PhaseReport::default()
        };
        let report = PhaseReport { undecided: vec![window.clone()], ..window };
        let found = snapshots(&[(&report, &SyncReport::default())]);
        assert_eq!(found.iter().map(|snapshot| snapshot.phase).collect::<Vec<_>>(), [0, 1]);
        for snapshot in found {
            let chunks: Vec<_> =
                snapshot.chunks.iter().map(|chunk| (chunk.id.key, chunk.ticks, chunk.migratable)).collect();
            assert_eq!(chunks, [(0, 500, true), (2, 1_000, true), (1, 1_000, true), (3, 1_000, false)]);
            assert_eq!(snapshot.ranks.iter().map(|rank| rank.host).collect::<Vec<_>>(), [0, 0, 7]);
        }
    }
}
