//! Finds the rank that lost the most vCPU time to anything but our own disturbances, and makes a note for the table.
//! The times of runs that lost much are uncertain.
//!
//! The numbers come from the samples that every rank keeps, with or without a trace. Runs whose workers share vCPUs get
//! no note, because there the program's own workers wait for each other.

use caribou::trace::Sample;

use super::disturbance::Disturbances;
use super::shape::Facts;
use super::summary::Run;
use super::times::Times;

/// A loss above this part of the time is reported.
const LOST_MIN: f64 = 0.1;

/// A rank is judged only if more than this part of its time was without a neighbour of ours.
const JUDGED_MIN: f64 = 0.1;

/// A time interval, ns since the run began.
type Stretch = (u64, u64);

/// The note on the rank that lost the largest part of its time in any run; `None` if no rank lost much.
pub(super) fn note<F: Facts>(runs: &[Run<F>], disturbances: &Disturbances) -> Option<String> {
    let worst =
        runs.iter().filter_map(|run| worst_rank(run, disturbances).map(|(rank, lost)| (run, rank, lost)));
    let (run, rank, lost) = worst.max_by(|one, other| one.2.total_cmp(&other.2))?;
    let beside = match disturbances.neighbours.iter().any(|spec| spec.rank == rank) {
        true => " while its neighbour was quiet",
        false => "",
    };
    let so = match runs.len() {
        1 => "the time of this run is uncertain, repeat the run",
        _ => "the comparison of these runs is uncertain, repeat them",
    };
    Some(format!(
        "`{}`: rank {rank} did not have its vCPU for {:.0} % of the time{beside}: {so}.",
        run.facts.lb(),
        100.0 * lost
    ))
}

/// The rank that lost the largest part of its time, and that part, if it is above [`LOST_MIN`].
fn worst_rank<F: Facts>(run: &Run<F>, disturbances: &Disturbances) -> Option<(u32, f64)> {
    let report = run.facts.run();
    let ranks = report.profiles.iter().filter(|_| report.pinned);
    let shares = ranks.filter_map(|profile| {
        let ours = neighbours(disturbances, profile.rank, &run.times);
        Some((profile.rank, share_lost(&profile.samples, &ours)?))
    });
    shares.filter(|&(_, lost)| lost > LOST_MIN).max_by(|one, other| one.1.total_cmp(&other.1))
}

/// The intervals in which our neighbours share the vCPU of a rank.
fn neighbours(disturbances: &Disturbances, rank: u32, times: &Times) -> Vec<Stretch> {
    let of_rank = disturbances.neighbours.iter().filter(|spec| spec.rank == rank);
    let end_ns = |to: u32| if to < times.steps() { times.completed_ns(to) } else { u64::MAX };
    of_rank.map(|spec| (times.completed_ns(spec.from), spec.to.map_or(u64::MAX, end_ns))).collect()
}

/// The part of the time outside `ours` in which a rank did not get its vCPUs, without throttled time.
fn share_lost(samples: &[Sample], ours: &[Stretch]) -> Option<f64> {
    let (mut begin_ns, mut wall_ns, mut lost_ns, mut all_ns) = (0, 0.0, 0.0, 0.0);
    for sample in samples {
        let is_ours = ours.iter().any(|&(from_ns, to_ns)| from_ns < sample.at_ns && begin_ns < to_ns);
        begin_ns = sample.at_ns;
        all_ns += sample.wall_ns as f64;
        if !is_ours {
            wall_ns += sample.wall_ns as f64;
            lost_ns += sample.wait_ns.saturating_sub(sample.throttled_ns) as f64 + sample.steal_ns as f64;
        }
    }
    (wall_ns > JUDGED_MIN * all_ns).then(|| (lost_ns / wall_ns).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Summary;
    use crate::summary::tests::{sample, with_samples};
    use crate::table::table;

    fn lost(at_ms: u64, wait_ms: u64, throttled_ms: u64) -> Sample {
        let mut sample = Sample::default();
        (sample.at_ns, sample.wall_ns) = (at_ms * 1_000_000, 10_000_000);
        (sample.wait_ns, sample.throttled_ns) = (wait_ms * 1_000_000, throttled_ms * 1_000_000);
        sample
    }

    #[test]
    fn a_comparison_says_when_other_processes_held_a_vcpu() {
        let mut summary = sample("none", &[]);
        let quiet = table(&summary);
        assert!(!quiet.contains("did not have its vCPU"), "{quiet}");
        with_samples(&mut summary.runs[1], 0, vec![lost(10, 6, 0), lost(20, 5, 0)]);
        let said = "`refine`: rank 0 did not have its vCPU for 55 % of the time: the comparison of these runs is \
            uncertain, repeat them.\n";
        assert!(table(&summary).contains(said), "{}", table(&summary));
        let alone = Summary { runs: vec![summary.runs.remove(1)], ..summary };
        assert!(table(&alone).contains(": the time of this run is uncertain, repeat the run.\n"));
    }

    #[test]
    fn neither_our_neighbour_nor_a_quota_is_told() {
        // Runs begin at 1 s with iterations of 6 ms; the neighbour is there from iteration 10 to 20.
        let mut summary = sample("none", &["1:10-20"]);
        let beside = vec![lost(1050, 0, 0), lost(1065, 5, 0), lost(1100, 5, 0), lost(1200, 1, 0)];
        with_samples(&mut summary.runs[0], 1, beside.clone());
        assert!(!table(&summary).contains("did not have its vCPU"), "{}", table(&summary));
        with_samples(&mut summary.runs[0], 0, beside);
        assert!(table(&summary).contains("`none`: rank 0 did not have its vCPU for 28 % of the time: "));
        with_samples(&mut summary.runs[0], 0, vec![lost(10, 6, 6), lost(20, 5, 5)]);
        assert!(!table(&summary).contains("did not have its vCPU"), "a quota");
    }

    #[test]
    fn workers_that_share_vcpus_are_not_told() {
        let mut summary = sample("none", &[]);
        with_samples(&mut summary.runs[1], 0, vec![lost(10, 6, 0)]);
        crate::summary::tests::unpin(&mut summary.runs[1]);
        assert!(!table(&summary).contains("did not have its vCPU"));
    }
}
