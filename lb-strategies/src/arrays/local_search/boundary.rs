//! Balances a placement at the boundaries between ranks: late ranks give the chunks whose moves add the fewest messages
//! between ranks.
//!
//! This is greedy boundary refinement of graph partitioning (Karypis and Kumar, "Multilevel k-way partitioning scheme for
//! irregular graphs", Journal of Parallel and Distributed Computing 48, 1998), with measured times in place of weights.
//! The gain of a chunk changes when its partners move, so the chunks of a donor (a late rank) wait in a priority queue.
//!
//! A level is a time relative to the least possible one. Donors give until they finish by the level, and no receiver
//! exceeds it. While a donor is left the level is doubled. Time: O(edges of the donors' chunks x log chunks)
//! for each level.

use std::cmp::Reverse;

use priority_queue::PriorityQueue;
use rustc_hash::FxBuildHasher;

use super::Problem;
use super::latest_rank::LatestRank;
use super::placement::Placement;
use crate::arrays::snapshot::Assignment;
use crate::rank::Rank;

/// The first level, and the one at which the refinement ends.
const LEVEL_FIRST: f64 = 0.005;
const LEVEL_LAST: f64 = 1.0;
/// Added traffic per load is compared in these parts, so that of nearly equal chunks the heaviest goes.
const PARTS: f64 = 64.0;

/// Added traffic per load, least first; then the heaviest chunk; then the lowest position. The order is total, so it hides
/// the hash order.
type Gain = (Reverse<i64>, u64, Reverse<u32>);

impl Problem<'_> {
    /// Balances `start`, in which chunks that may move are on available ranks.
    pub(crate) fn balance_at_boundaries(&self, start: Assignment) -> Assignment {
        let placement = self.placement(start);
        let until = |rank: u32| {
            let rank = Rank(rank);
            if placement.is_available(rank) { -placement.time_ns(rank) } else { f64::NEG_INFINITY }
        };
        let earliest = LatestRank::new((0..self.snapshot.ranks.len() as u32).map(until).collect());
        let mut refinement = Refinement { placement, earliest };
        let mut level = LEVEL_FIRST;
        while level < LEVEL_LAST && refinement.settle(self.least_ns * (1.0 + level)) {
            level *= 2.0;
        }
        refinement.placement.into_assignment()
    }
}

struct Refinement<'a> {
    placement: Placement<'a>,
    /// Negative times of available ranks, so that the earliest rank is at hand.
    earliest: LatestRank,
}

impl Refinement<'_> {
    /// Lets all ranks that finish after `limit_ns` give chunks, the latest first. Returns true if one still does.
    fn settle(&mut self, limit_ns: f64) -> bool {
        let times = self.placement.available().iter().map(|&rank| (self.placement.time_ns(rank), rank));
        let mut donors: Vec<(f64, Rank)> = times.filter(|(time, _)| *time > limit_ns).collect();
        donors.sort_by(|one, other| other.0.total_cmp(&one.0));
        donors.iter().for_each(|&(_, donor)| self.drain(donor, limit_ns));
        self.placement.latest_ns() > limit_ns
    }

    /// Gives chunks of `donor` away until it finishes by `limit_ns`, or no chunk fits another rank.
    fn drain(&mut self, donor: Rank, limit_ns: f64) {
        let held = self.placement.held(donor).iter().copied();
        let offers = held.filter_map(|chunk| Some((chunk, self.offer(chunk, donor, limit_ns)?.1)));
        let mut queue: PriorityQueue<u32, Gain, FxBuildHasher> = offers.collect();
        while self.placement.time_ns(donor) > limit_ns
            && let Some((chunk, gain)) = queue.pop()
        {
            let Some((receiver, gain_now)) = self.offer(chunk, donor, limit_ns) else { continue };
            if gain_now < gain {
                queue.push(chunk, gain_now);
                continue;
            }
            let before_ns = self.placement.time_ns(donor);
            self.transfer(chunk, receiver);
            if self.placement.time_ns(receiver) > limit_ns || self.placement.time_ns(donor) >= before_ns {
                self.transfer(chunk, donor);
                continue;
            }
            for partner in self.placement.partners(chunk as usize) {
                if queue.contains(&partner)
                    && let Some((_, gain)) = self.offer(partner, donor, limit_ns)
                {
                    queue.change_priority(&partner, gain);
                }
            }
        }
    }

    /// The rank that would take a chunk of `donor` by `limit_ns`, and the gain: of the ranks with partners of the chunk
    /// the one with most messages, or else the earliest rank.
    fn offer(&self, chunk: u32, donor: Rank, limit_ns: f64) -> Option<(Rank, Gain)> {
        let placement = &self.placement;
        let position = chunk as usize;
        let load_ns = placement.load_ns(position, donor);
        if load_ns <= 0.0 {
            return None;
        }
        let has_room = |rank: Rank| {
            placement.is_available(rank)
                && placement.time_ns(rank) + placement.load_ns(position, rank) <= limit_ns
                && placement.fits(position, rank)
        };
        let with = placement.exchanged_ns(position, donor);
        let receivers = with.iter().filter(|(rank, _)| *rank != donor && has_room(*rank));
        let nearest = receivers.max_by_key(|(rank, ns)| (*ns, Reverse(*rank))).copied();
        let earliest =
            || Some(Rank(self.earliest.latest() as u32)).filter(|&rank| rank != donor && has_room(rank));
        let (receiver, freed_ns) = nearest.or_else(|| Some((earliest()?, 0)))?;
        let kept_ns = placement.kept_ns(position, donor, receiver);
        let added = (kept_ns as f64 - freed_ns as f64) / load_ns * PARTS;
        Some((receiver, (Reverse(added as i64), placement.ticks(position), Reverse(chunk))))
    }

    fn transfer(&mut self, chunk: u32, to: Rank) {
        let from = self.placement.rank_of(chunk as usize);
        self.placement.transfer(chunk as usize, to);
        for rank in [from, to] {
            self.earliest.set(rank.index(), -self.placement.time_ns(rank));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::metrics::{Crossing, max_ns};
    use crate::arrays::snapshot::{Edge, LinkCost, LinkCosts, Memory, Snapshot};
    use crate::arrays::strategy::Background;
    use crate::arrays::synthetic::Workload;
    use crate::strategies::refine::Refine;

    const SIDE: usize = 32;

    /// A square of equal chunks, the upper half on rank 0 and the lower on rank 1, which has half of its vCPU. Each
    /// chunk sends 10 messages of 10 us to each of its neighbours.
    fn square() -> Snapshot {
        let mut snapshot = Workload::NoisyRank.snapshot(SIDE * SIDE, 2, 1);
        for position in 0..SIDE * SIDE {
            snapshot.chunks[position].rank = Rank(u32::from(position >= SIDE * SIDE / 2));
            snapshot.chunks[position].ticks = 1_000_000;
            let (row, column) = (position / SIDE, position % SIDE);
            let neighbours = [(column + 1 < SIDE, position + 1), (row + 1 < SIDE, position + SIDE)];
            for (_, other) in neighbours.into_iter().filter(|(exists, _)| *exists) {
                let edge = |from, to| Edge { from, to, messages: 10, bytes: 0 };
                snapshot.edges.extend([edge(position, other), edge(other, position)]);
            }
        }
        let link = LinkCost { ns_per_message: 10_000.0, ns_per_byte: 0.0 };
        snapshot.links = LinkCosts { within_host: link, between_hosts: link };
        snapshot
    }

    fn balanced(snapshot: &Snapshot) -> Assignment {
        let least_ns = Refine::default().start(snapshot).least_ns;
        let problem = Problem::new(snapshot, Background::Share, least_ns);
        problem.balance_at_boundaries(Assignment::current(snapshot))
    }

    #[test]
    fn regions_grow_at_their_boundary() {
        let snapshot = square();
        let plan = balanced(&snapshot);
        let crossing = |plan: &Assignment| Crossing::of(&snapshot, plan).messages;
        let now = Assignment::current(&snapshot);
        // A row of 32 neighbours lies on the boundary; a boundary with a step in it has one more.
        assert_eq!(crossing(&now), 640);
        assert!(crossing(&plan) <= 660, "{}", crossing(&plan));
        let mut by_loads = snapshot.clone();
        by_loads.edges.clear();
        let least_ns = Refine::default().start(&by_loads).least_ns;
        let late = max_ns(&snapshot, &plan, Background::Share) as f64 / least_ns;
        assert!(late < 1.02, "{late}");
        assert_eq!(plan, balanced(&snapshot));
    }

    #[test]
    fn memory_and_pinned_chunks_are_respected() {
        let mut snapshot = square();
        let before = max_ns(&snapshot, &Assignment::current(&snapshot), Background::Share);
        // Room for ten more chunks on rank 0. The chunks of the row at the boundary stay.
        let held = (SIDE * SIDE / 2) as u64;
        snapshot.memory = Some(Memory {
            limits: vec![held + 10, 2 * held],
            footprints: vec![1; SIDE * SIDE],
            ..Memory::default()
        });
        let row = SIDE * SIDE / 2..SIDE * SIDE / 2 + SIDE;
        row.clone().for_each(|position| snapshot.chunks[position].migratable = false);
        let plan = balanced(&snapshot);
        assert!(row.clone().all(|position| plan.ranks[position] == Rank(1)));
        assert_eq!(plan.moves(&snapshot).count(), 10);
        assert!(max_ns(&snapshot, &plan, Background::Share) < before);
    }

    #[test]
    fn chunks_without_messages_go_to_the_earliest_rank() {
        let mut snapshot = Workload::Equal.snapshot(90, 3, 1);
        snapshot.chunks.iter_mut().for_each(|chunk| chunk.rank = Rank(0));
        let plan = balanced(&snapshot);
        for rank in 0..3 {
            assert_eq!(plan.ranks.iter().filter(|&&of| of == Rank(rank)).count(), 30);
        }
    }
}
