//! Generates snapshots from a seed, to compare strategies in tests, benches and the tool.
//!
//! Chunks start in blocks: with C chunks on P ranks, rank p holds chunks pC/P up to (p+1)C/P. A load of 1 is 1 ms
//! of ticks, and the state of a chunk is 64 KiB. The workloads are no models of real machines: the tool reads traces of
//! those.

use std::f64::consts::TAU;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::arrays::snapshot::{ArrayId, ChunkId, ChunkLoad, RankLoad, Snapshot};
use crate::rank::Rank;

const UNIT_TICKS: f64 = 1e6;
const CHUNK_BYTES: u64 = 64 * 1024;

/// The kind of a synthetic snapshot.
///
/// ```
/// use lb_strategies::synthetic::Workload;
/// let snapshot = Workload::named("lognormal").expect("listed").snapshot(1000, 10, 42);
/// assert_eq!((snapshot.chunks.len(), snapshot.ranks.len()), (1000, 10));
/// assert_eq!(snapshot, Workload::Lognormal.snapshot(1000, 10, 42));
/// assert_ne!(snapshot, Workload::Lognormal.snapshot(1000, 10, 43));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Loads uniform in 0.5 ... 1.5.
    Uniform,
    /// Loads lognormal with parameters (0, 1): many small chunks and a few large ones.
    Lognormal,
    /// Equal loads within a rank, rising from 0.5 on the first rank to 1.5 on the last.
    Ramp,
    /// Equal loads; every tenth rank runs at half speed.
    TenthSlow,
    /// Loads equal up to 2 %; the last rank shares its vCPU evenly with a neighbour.
    NoisyRank,
    /// Equal loads, but the first chunk is as heavy as all others together.
    Giant,
    /// Equal loads on equal ranks: nothing needs to move.
    Equal,
    /// Some ranks are several times as heavy as others, and one chunk per rank is pinned. With about eight chunks per
    /// rank, no chunk of a late rank fits an early rank.
    HotSpots,
}

impl Workload {
    /// Every workload, in the order of their documentation.
    pub const ALL: [Self; 8] = [
        Self::Uniform,
        Self::Lognormal,
        Self::Ramp,
        Self::TenthSlow,
        Self::NoisyRank,
        Self::Giant,
        Self::Equal,
        Self::HotSpots,
    ];

    /// The name on a command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Lognormal => "lognormal",
            Self::Ramp => "ramp",
            Self::TenthSlow => "tenth-slow",
            Self::NoisyRank => "noisy-rank",
            Self::Giant => "giant",
            Self::Equal => "equal",
            Self::HotSpots => "hot-spots",
        }
    }

    /// The workload of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|workload| workload.name() == name)
    }

    /// A snapshot of this workload. The same arguments give the same snapshot. Without ranks there are no chunks.
    pub fn snapshot(self, chunks: usize, ranks: usize, seed: u64) -> Snapshot {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let chunks = if ranks == 0 { 0 } else { chunks };
        let mut snapshot = Snapshot {
            phase: 0,
            ranks: vec![RankLoad::default(); ranks],
            chunks: Vec::with_capacity(chunks),
            ..Snapshot::default()
        };
        for key in 0..chunks {
            let rank = (key as u128 * ranks as u128 / chunks as u128) as usize;
            let load = match self {
                Self::Uniform => rng.random_range(0.5..1.5),
                Self::Lognormal => standard_normal(&mut rng).exp(),
                Self::Ramp => 0.5 + (rank as f64 + 0.5) / ranks as f64,
                Self::NoisyRank => rng.random_range(0.98..1.02),
                Self::HotSpots => rng.random_range(0.9..1.1),
                Self::Giant if key == 0 => (chunks - 1).max(1) as f64,
                Self::Giant | Self::TenthSlow | Self::Equal => 1.0,
            };
            snapshot.chunks.push(ChunkLoad {
                id: ChunkId { array: ArrayId(0), key: key as u64 },
                rank: Rank(rank as u32),
                ticks: (load * UNIT_TICKS).round() as u64,
                bytes: CHUNK_BYTES,
                migratable: true,
            });
        }
        self.disturb(&mut snapshot, &mut rng);
        snapshot
    }

    /// Makes ranks unequal for the workloads that need it.
    fn disturb(self, snapshot: &mut Snapshot, rng: &mut Pcg64Mcg) {
        match self {
            Self::TenthSlow => snapshot.ranks.iter_mut().step_by(10).for_each(|rank| rank.speed = 0.5),
            Self::NoisyRank => {
                let noisy = snapshot.ranks.len().saturating_sub(1);
                // The neighbour got as much of the vCPU as the rank. So equation 2 and the share agree.
                let background_ns = snapshot
                    .chunks
                    .iter()
                    .filter(|chunk| chunk.rank.index() == noisy)
                    .map(|chunk| chunk.ticks)
                    .sum();
                if let Some(rank) = snapshot.ranks.last_mut() {
                    *rank = RankLoad { share: 0.5, background_ns, ..RankLoad::default() };
                }
            }
            Self::HotSpots => {
                for held in snapshot.chunks.chunk_by_mut(|one, next| one.rank == next.rank) {
                    let heat = (0.7 * standard_normal(rng)).exp();
                    held[0].migratable = false;
                    for chunk in &mut held[1..] {
                        chunk.ticks = (heat * chunk.ticks as f64).round() as u64;
                    }
                }
            }
            Self::Uniform | Self::Lognormal | Self::Ramp | Self::Giant | Self::Equal => {}
        }
    }
}

/// A draw from the standard normal distribution (Box and Muller).
fn standard_normal(rng: &mut Pcg64Mcg) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (TAU * rng.random::<f64>()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::metrics::max_over_avg;
    use crate::arrays::snapshot::Assignment;
    use crate::arrays::strategy::Background;

    #[test]
    fn every_workload_is_found_by_its_name() {
        for workload in Workload::ALL {
            assert_eq!(Workload::named(workload.name()), Some(workload));
            assert_eq!(workload.snapshot(5, 0, 1).chunks.len(), 0);
        }
        assert_eq!(Workload::named("steady"), None);
    }

    #[test]
    fn workloads_start_as_unequal_as_they_say() {
        let start = |workload: Workload| {
            let snapshot = workload.snapshot(100_000, 1000, 7);
            max_over_avg(&snapshot, &Assignment::current(&snapshot), Background::Share)
        };
        assert!((1.05..1.15).contains(&start(Workload::Uniform)));
        assert!((1.3..2.5).contains(&start(Workload::Lognormal)));
        assert!((1.49..1.51).contains(&start(Workload::Ramp)));
        assert!((1.89..1.91).contains(&start(Workload::TenthSlow)));
        assert!((1.98..2.02).contains(&start(Workload::NoisyRank)));
        assert!(start(Workload::Giant) > 100.0);
        assert!((start(Workload::Equal) - 1.0).abs() < 1e-9);
    }
}
