//! Estimates the share and the speed of each rank from its samples. The balancer computes capacities from them.
//!
//! *Share* is `cpu / (cpu + wait + steal)` while the rank wanted to run. At syncs, a phase counts fully if the rank
//! wanted to run for at least [`TRUSTED_NS`], else in proportion. In balancing windows, the share is a running mean. A
//! rank that hardly wanted to run, or has no chunks, shows no share. Its old share decays towards 1, so that it gets
//! work again and is measured. Its background load decays towards 0.
//!
//! *Speed* is relative to the fastest rank. A difference counts once it exceeds the strategy's noise level, and until
//! it is below half of that level. Without this hysteresis, a speed near the level would move chunks to and fro.

use serde::{Deserialize, Serialize};

use super::regime::ShareRegime;
use super::snapshot::RankLoad;

/// A phase in which a rank wanted to run for this time determines its share alone, ns.
const TRUSTED_NS: f64 = 50e6;
/// A rank that wanted to run for less than this part of the phase shows no share.
const WANTED_MIN: f64 = 0.05;
/// Time for which a vCPU runs one thread before it switches, ns. A share from a window not much longer is inexact.
const SLICE_NS: f64 = 4e6;
/// Longest time of earlier windows that counts in a share, ns.
const LASTED_MAX_NS: f64 = 500e6;
/// The part of the distance to 1 that the share of a rank without work moves per phase, as its background towards 0.
const DECAY: f64 = 0.25;

/// The place of a rank, and the number of vCPUs it can keep busy.
///
/// ```
/// let place = lb_strategies::balancer::RankPlace { host: 0, workers: 4 };
/// assert_eq!(place.workers, 4);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankPlace {
    /// The number of its host.
    pub host: u32,
    /// Number of its workers.
    pub workers: u32,
}

/// The measurements of a rank in one phase, summed over its workers. Times are ns.
///
/// ```
/// let half = lb_strategies::balancer::RankSample { cpu_ns: 500, wait_ns: 500, ..Default::default() };
/// assert_eq!(half.cpu_ns, half.wait_ns, "it got half of what it wanted");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankSample {
    /// Wall time, times the number of workers.
    pub wall_ns: u64,
    /// CPU time of the workers.
    pub cpu_ns: u64,
    /// Time in which workers were runnable but did not run.
    pub wait_ns: u64,
    /// Time that the hypervisor took from the workers' vCPUs.
    pub steal_ns: u64,
    /// Background load.
    pub background_ns: u64,
    /// Speed of the vCPUs, in any unit that is the same for all ranks; 0 if it was not measured.
    pub speed: f64,
}

impl RankSample {
    /// The sum of this sample and the next one.
    pub(super) fn plus(&self, later: &RankSample) -> RankSample {
        RankSample {
            wall_ns: self.wall_ns + later.wall_ns,
            cpu_ns: self.cpu_ns + later.cpu_ns,
            wait_ns: self.wait_ns + later.wait_ns,
            steal_ns: self.steal_ns + later.steal_ns,
            background_ns: self.background_ns + later.background_ns,
            speed: later.speed,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Estimate {
    place: RankPlace,
    /// True if chunks may be placed on the rank.
    pub(super) active: bool,
    pub(super) share: f64,
    /// Relative speed of one vCPU.
    pub(super) speed: f64,
    /// Mean time that others took of one vCPU in the phase, ns.
    background_ns: u64,
    /// In windows: the time for which the rank has wanted to run at this share, ns.
    lasted_ns: f64,
    /// In windows: whether the rank is disturbed, and for how long.
    pub(super) regime: ShareRegime,
    /// Deviation of the last window from the share, in standard deviations.
    last_surprise: f64,
}

impl Estimate {
    pub(super) fn unknown(place: RankPlace) -> Estimate {
        Estimate {
            place,
            active: true,
            share: 1.0,
            speed: 1.0,
            background_ns: 0,
            lasted_ns: 0.0,
            regime: ShareRegime::default(),
            last_surprise: 0.0,
        }
    }

    pub(super) fn host(&self) -> u32 {
        self.place.host
    }

    /// Relative speed of all vCPUs together, because the workers of a rank share its chunks.
    pub(super) fn whole_speed(&self) -> f64 {
        self.speed * f64::from(self.place.workers)
    }

    /// The part of that speed that the rank gives.
    pub(super) fn capacity(&self) -> f64 {
        self.whole_speed() * self.share
    }

    pub(super) fn rank_load(&self) -> RankLoad {
        RankLoad {
            speed: self.whole_speed(),
            share: self.share,
            background_ns: self.background_ns,
            available: self.active,
            host: self.place.host,
        }
    }

    /// Learns from a phase in which `fastest` was the speed of the fastest rank. A rank without chunks has no sample.
    /// Returns the share regime that ended with the phase, if any.
    pub(super) fn follow(
        &mut self,
        sample: Option<&RankSample>,
        fastest: f64,
        speed_noise: f64,
        in_windows: bool,
    ) -> Option<ShareRegime> {
        let Some(sample) = sample else {
            self.forget();
            return None;
        };
        let window_ns = sample.wall_ns as f64 / f64::from(self.place.workers.max(1));
        let got = sample.cpu_ns as f64;
        let wanted = got + sample.wait_ns.saturating_add(sample.steal_ns) as f64;
        if wanted < WANTED_MIN * sample.wall_ns as f64 || wanted == 0.0 {
            self.forget();
        } else {
            let trust = if in_windows { self.trust(got, wanted) } else { (wanted / TRUSTED_NS).min(1.0) };
            self.share += trust * (got / wanted - self.share);
        }
        // Strategies multiply this time by the speed of all vCPUs together.
        self.background_ns = sample.background_ns / u64::from(self.place.workers.max(1));
        if fastest > 0.0 && sample.speed > 0.0 {
            let relative = sample.speed / fastest;
            let equal = if self.speed < 1.0 { speed_noise / 2.0 } else { speed_noise };
            self.speed = if relative > 1.0 - equal { 1.0 } else { relative };
        }
        if in_windows { self.regime.follow(self.share, window_ns) } else { None }
    }

    /// The weight of a window in the share, which is a running mean. The mean restarts if one window deviates by more
    /// than 2.5 standard deviations, or if two in a row deviate in the same direction by more than one.
    fn trust(&mut self, got: f64, wanted: f64) -> f64 {
        let deviation = 0.5 * (SLICE_NS / wanted).sqrt();
        let surprise = (got / wanted - self.share) / deviation;
        let again = surprise.abs() > 1.0 && surprise * self.last_surprise > 1.0;
        let changed = surprise.abs() > 2.5 || again;
        if changed {
            self.lasted_ns = 0.0;
        }
        self.last_surprise = surprise;
        self.lasted_ns = (self.lasted_ns + wanted).min(LASTED_MAX_NS.max(wanted));
        wanted / self.lasted_ns
    }

    /// Notes that the rank has shown no share in a phase.
    fn forget(&mut self) {
        self.share += DECAY * (1.0 - self.share);
        self.background_ns -= (DECAY * self.background_ns as f64).ceil() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::metrics::completion_ns;
    use crate::arrays::snapshot::{ArrayId, Assignment, ChunkId, ChunkLoad, Snapshot};
    use crate::arrays::strategy::Background;
    use crate::rank::Rank;

    const SECOND_NS: u64 = 1_000_000_000;

    /// A rank whose workers each got half of their vCPU for a second.
    fn at_half_share(workers: u32) -> RankLoad {
        let half_ns = u64::from(workers) * SECOND_NS / 2;
        let sample = RankSample {
            wall_ns: 2 * half_ns,
            cpu_ns: half_ns,
            wait_ns: half_ns,
            background_ns: half_ns,
            speed: 1.0,
            ..RankSample::default()
        };
        let mut estimate = Estimate::unknown(RankPlace { host: 0, workers });
        estimate.follow(Some(&sample), 1.0, 0.08, false);
        estimate.rank_load()
    }

    #[test]
    fn both_models_agree_on_the_placement_that_was_measured() {
        for workers in [1, 2, 4] {
            let id = ChunkId { array: ArrayId(0), key: 0 };
            let ticks = u64::from(workers) * SECOND_NS / 2;
            let chunk = ChunkLoad { id, rank: Rank(0), ticks, bytes: 0, migratable: true };
            let (ranks, chunks) = (vec![at_half_share(workers)], vec![chunk]);
            let snapshot = Snapshot { phase: 0, ranks, chunks, ..Snapshot::default() };
            let current = Assignment::current(&snapshot);
            for model in [Background::Share, Background::Additive] {
                assert_eq!(completion_ns(&snapshot, &current, model), [SECOND_NS], "{workers} {model:?}");
            }
        }
    }

    #[test]
    fn a_speed_near_the_threshold_does_not_come_and_go() {
        let mut estimate = Estimate::unknown(RankPlace { host: 0, workers: 1 });
        let mut after = |speed| {
            estimate.follow(Some(&RankSample { speed, ..RankSample::default() }), 1.0, 0.08, false);
            estimate.speed
        };
        let counted = [0.93, 0.91, 0.93, 0.95, 0.97, 0.93].map(&mut after);
        assert_eq!(counted.map(f64::to_bits), [1.0, 0.91, 0.93, 0.95, 1.0, 1.0].map(f64::to_bits));
    }

    #[test]
    fn a_rank_without_work_is_taken_for_quiet_again_bit_by_bit() {
        let unknown = Estimate::unknown(RankPlace { host: 0, workers: 1 });
        let mut estimate = Estimate { share: 0.5, background_ns: SECOND_NS, ..unknown };
        estimate.follow(None, 1.0, 0.08, false);
        assert_eq!(estimate.share.to_bits(), 0.625_f64.to_bits());
        assert_eq!(estimate.background_ns, SECOND_NS * 3 / 4);
        for _ in 0..100 {
            estimate.follow(None, 1.0, 0.08, false);
        }
        assert_eq!(estimate.background_ns, 0);
    }

    fn estimate() -> Estimate {
        Estimate::unknown(RankPlace { host: 0, workers: 1 })
    }

    #[test]
    fn a_long_phase_shows_the_share_and_a_short_one_moves_it_in_proportion() {
        let phase = |cpu_ns, wait_ns, steal_ns| RankSample {
            wall_ns: cpu_ns + wait_ns + steal_ns,
            cpu_ns,
            wait_ns,
            steal_ns,
            ..RankSample::default()
        };
        let mut estimate = estimate();
        estimate.follow(Some(&phase(30_000_000, 10_000_000, 20_000_000)), 1.0, 0.08, false);
        assert_eq!(estimate.share.to_bits(), 0.5_f64.to_bits(), "60 ms of wanting are enough");
        // A tenth of 50 ms: a tenth of the way from a half to everything.
        estimate.follow(Some(&phase(5_000_000, 0, 0)), 1.0, 0.08, false);
        assert!((estimate.share - 0.55).abs() < 1e-12, "{}", estimate.share);
    }

    #[test]
    fn a_rank_that_hardly_ran_shows_no_share() {
        let idle = RankSample { wall_ns: SECOND_NS, cpu_ns: 1, wait_ns: 40_000_000, ..RankSample::default() };
        let mut estimate = estimate();
        estimate.follow(Some(&idle), 1.0, 0.08, false);
        assert_eq!(estimate.share.to_bits(), 1.0_f64.to_bits(), "4 % of the phase");
    }

    #[test]
    fn speeds_are_relative_to_the_fastest_and_kept_where_none_was_measured() {
        let mut estimate = estimate();
        let mut after = |speed, fastest| {
            estimate.follow(Some(&RankSample { speed, ..RankSample::default() }), fastest, 0.08, false);
            estimate.speed
        };
        let speeds = [after(3.0, 4.0), after(0.0, 4.0), after(3.0, 0.0), after(4.0, 4.0)];
        assert_eq!(speeds.map(f64::to_bits), [0.75, 0.75, 0.75, 1.0].map(f64::to_bits));
    }
}
