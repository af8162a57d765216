//! Places chunks once so that no rebalancing is needed, for loads that change faster than chunks can follow.
//!
//! Each of the last balancing windows is a *scenario*. (Chunks are not scattered at syncs.) The placement must be
//! balanced in all scenarios at once (list scheduling of vectors). Heaviest first, each chunk goes to the rank where
//! the sum of squared completion times over all scenarios grows least. If any of these windows comes again, all ranks
//! finish at about the same time.

use super::loads::Loads;
use super::metrics::completion_ns;
use super::snapshot::{Assignment, Snapshot};
use super::strategy::Background;
use crate::rank::Rank;

/// The largest product of chunks, ranks and scenarios for which a placement is computed.
const WORK_MAX: usize = 1 << 20;

/// A placement that is balanced in all scenarios, which have the same chunks and ranks. None if the computation would
/// take too long, or if no rank is available.
pub(super) fn scatter(scenarios: &[Snapshot], model: Background) -> Option<Assignment> {
    let first = scenarios.first()?;
    let chunks = first.chunks.len();
    if chunks * first.ranks.len() * scenarios.len() > WORK_MAX {
        return None;
    }
    let mut plan = Assignment::current(first);
    let mut loads: Vec<Loads> = scenarios.iter().map(|scenario| Loads::pinned(scenario, model)).collect();
    let available = loads[0].available.clone();
    let heaviest = |chunk: &usize| scenarios.iter().map(|scenario| scenario.chunks[*chunk].ticks).max();
    let mut order: Vec<usize> = (0..chunks).filter(|&chunk| first.chunks[chunk].migratable).collect();
    order.sort_by_key(|chunk| std::cmp::Reverse(heaviest(chunk)));
    for chunk in order {
        let squares = |rank: &Rank| -> f64 {
            let with = |(loads, scenario): (&Loads, &Snapshot)| {
                let ticks = loads.clamp_load(scenario.chunks[chunk].ticks);
                let (before, after) =
                    (loads.completion_ns(*rank) as f64, loads.completion_with(*rank, ticks) as f64);
                after * after - before * before
            };
            loads.iter().zip(scenarios).map(with).sum()
        };
        let here = first.chunks[chunk].rank;
        let added = available.iter().map(|rank| (squares(rank), *rank != here, *rank));
        let (_, _, to) = added.min_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))))?;
        for (loads, scenario) in loads.iter_mut().zip(scenarios) {
            loads.ticks[to.index()] += loads.clamp_load(scenario.chunks[chunk].ticks);
        }
        plan.ranks[chunk] = to;
    }
    Some(plan)
}

/// Maximum over mean of the completion times under a placement, averaged over the scenarios.
pub(super) fn imbalance(scenarios: &[Snapshot], plan: &Assignment, model: Background) -> f64 {
    let of = |scenario: &Snapshot| {
        let times = completion_ns(scenario, plan, model);
        let sum: f64 = times.iter().map(|&ns| ns as f64).sum();
        let longest = times.iter().copied().max().unwrap_or(0) as f64;
        if sum > 0.0 { longest * times.len() as f64 / sum } else { 1.0 }
    };
    scenarios.iter().map(of).sum::<f64>() / scenarios.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::synthetic::Workload;

    #[test]
    fn halves_that_swap_are_spread_so_that_both_are_balanced() {
        let mut scenario = Workload::Equal.snapshot(16, 2, 1);
        let heavy = |scenario: &mut Snapshot, half: usize| {
            for (number, chunk) in scenario.chunks.iter_mut().enumerate() {
                chunk.ticks = if number / 8 == half { 3_000 } else { 1_000 };
            }
        };
        heavy(&mut scenario, 0);
        let mut swapped = scenario.clone();
        heavy(&mut swapped, 1);
        let scenarios = [scenario, swapped];
        let plan = scatter(&scenarios, Background::Share).expect("it is small");
        assert!((imbalance(&scenarios, &plan, Background::Share) - 1.0).abs() < 1e-9, "{plan:?}");
        let stays = Assignment::current(&scenarios[0]);
        assert!((imbalance(&scenarios, &stays, Background::Share) - 1.5).abs() < 1e-9);
    }

    #[test]
    fn a_pinned_chunk_stays_and_its_load_counts() {
        let mut scenario = Workload::Equal.snapshot(4, 2, 1);
        for chunk in &mut scenario.chunks {
            (chunk.ticks, chunk.rank) = (1_000, Rank(0));
        }
        scenario.chunks[3].migratable = false;
        let plan = scatter(&[scenario], Background::Share).expect("it is small");
        assert_eq!(plan.ranks[3], Rank(0));
        assert_eq!(plan.ranks.iter().filter(|rank| **rank == Rank(1)).count(), 2);
    }
}
