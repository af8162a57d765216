//! `hierarchical` balances often within groups of ranks, and rarely between groups.
//!
//! A group is a host, or a number of consecutive ranks. Within a group, `refine` places the chunks of its ranks. Between
//! groups, chunks move only in every n-th phase, and only if a group is late by more than a tolerance. So most moves stay
//! within a host, where they are cheap, and no decision needs the chunks of all ranks:
//!
//! | step | knowledge that it needs |
//! |---|---|
//! | 1. A group adds up the work and the capacity of its ranks | its own ranks |
//! | 2. The fair time of all groups tells how much each group should give or may take | two numbers of each group |
//! | 3. A group that should give offers chunks of its latest ranks, a bounded number | its own chunks |
//! | 4. Offers go to the groups with the most room, the largest that fits first | the offers and the room of each group |
//! | 5. Each group places its chunks and those that come | its own chunks and the offers that it gets |
//!
//! The two levels and the bounded offers are those of HybridLB in Charm++ (Zheng, Bhatelé, Meneses and Kale, "Periodic
//! hierarchical load balancing for large supercomputers", 2011).

use std::cmp::Reverse;

use super::refine::Refine;
use crate::arrays::groups::{Exchange, Groups, Hierarchy};
use crate::arrays::loads::Loads;
use crate::arrays::snapshot::{Assignment, Snapshot};
use crate::arrays::strategy::{Background, Strategy, Terms};
use crate::entry::Entry;
use crate::parameters::Parameter;
use crate::rank::Rank;

/// The entry in the table of strategies.
pub const ENTRY: Entry<dyn Strategy> = Entry {
    name: "hierarchical",
    summary: "refine within each host, and rarely between hosts",
    parameters: &[
        Parameter {
            name: "group",
            default: "auto",
            meaning: "ranks per group, or auto: the ranks of a host, or 64 if there is one host or one rank on each",
        },
        Parameter {
            name: "between",
            default: "0.05",
            meaning: "chunks move between groups if a group exceeds the fair time by this part of it",
        },
        Parameter { name: "every", default: "4", meaning: "chunks move between groups in every n-th phase" },
        Parameter {
            name: "offers",
            default: "256",
            meaning: "largest number of chunks that a group gives in a phase, for each of its ranks",
        },
        Parameter {
            name: "tolerance",
            default: "0.03",
            meaning: "chunks move within a group if a rank exceeds the least possible time by this part of it",
        },
        Background::PARAMETER,
    ],
    build: |parameters| {
        Ok(Box::new(Hierarchical {
            group: parameters.count_or_auto("group")?,
            between: parameters.number("between", 0.0..=10.0)?,
            every: parameters.whole("every", 1..=u64::MAX)?,
            offers: parameters.whole("offers", 1..=1_000_000)? as usize,
            tolerance: parameters.number("tolerance", 0.0..=10.0)?,
            background: Background::read(parameters)?,
        }))
    },
};

/// Refinement on two levels.
///
/// ```
/// use lb_strategies::{Strategy, metrics, strategies::hierarchical::Hierarchical, synthetic::Workload};
/// // A neighbour on one of 256 ranks: its chunks go to other ranks of its group.
/// let snapshot = Workload::NoisyRank.snapshot(25_600, 256, 1);
/// let strategy = Hierarchical::default();
/// let plan = strategy.assign(&snapshot);
/// assert!(metrics::max_over_avg(&snapshot, &plan, strategy.background) < 1.03);
/// assert!(plan.moves(&snapshot).all(|(chunk, to)| chunk.rank.0 / 64 == to.0 / 64));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Hierarchical {
    /// Ranks per group; none for hosts.
    pub group: Option<u64>,
    /// Chunks move between groups if a group exceeds the fair time by this part.
    pub between: f64,
    /// Chunks move between groups in every phase whose number this divides.
    pub every: u64,
    /// Largest number of chunks that a group offers for each of its ranks.
    pub offers: usize,
    /// Tolerance of the refinement within groups.
    pub tolerance: f64,
    /// The model of a neighbour's load.
    pub background: Background,
}

impl Default for Hierarchical {
    fn default() -> Self {
        Self {
            group: None,
            between: 0.05,
            every: 4,
            offers: 256,
            tolerance: 0.03,
            background: Background::Share,
        }
    }
}

impl Strategy for Hierarchical {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn assign(&self, snapshot: &Snapshot) -> Assignment {
        let groups = Groups::new(snapshot.ranks.iter().map(|rank| rank.host), self.group);
        let mut assignment = Assignment::current(snapshot);
        let mut loads = Loads::placed(snapshot, &assignment, self.background);
        groups.take_in_stranded(snapshot, &mut loads, &mut assignment);
        if snapshot.phase.is_multiple_of(self.every) {
            self.between_groups(snapshot, &groups, &mut loads, &mut assignment);
        }
        self.within_groups(snapshot, &groups, &mut assignment);
        assignment.within_memory_or_stay(snapshot, self.background)
    }

    fn within_group(&self) -> Option<Box<dyn Strategy>> {
        Some(Box::new(self.inner()))
    }

    fn terms(&self) -> Terms {
        let hierarchy =
            Hierarchy { group: self.group, between: self.between, every: self.every, offers: self.offers };
        Terms { background: self.background, hierarchy: Some(hierarchy), ..Terms::default() }
    }
}

impl Hierarchical {
    /// The refinement of a group.
    fn inner(&self) -> Refine {
        Refine { tolerance: self.tolerance, background: self.background, ..Refine::default() }
    }

    /// Moves offers of late groups to early groups, to the rank there that finishes first.
    fn between_groups(
        &self,
        snapshot: &Snapshot,
        groups: &Groups,
        loads: &mut Loads,
        assignment: &mut Assignment,
    ) {
        let Some(mut exchange) = Exchange::new(groups, loads, self.between) else { return };
        let late: Vec<usize> = exchange.late().into_iter().map(|(group, _)| group).collect();
        let offers = self.offers(snapshot, groups, loads, &late, assignment);
        for (group, offers) in late.into_iter().zip(offers) {
            for chunk in offers {
                let (from, ticks) = (assignment.ranks[chunk], loads.clamp_load(snapshot.chunks[chunk].ticks));
                if let Some(to) = exchange.place(group, from, ticks, loads) {
                    assignment.ranks[chunk] = to;
                }
            }
        }
    }

    /// The chunks that each late group offers: those of its latest ranks, heaviest first.
    fn offers(
        &self,
        snapshot: &Snapshot,
        groups: &Groups,
        loads: &Loads,
        over: &[usize],
        assignment: &Assignment,
    ) -> Vec<Vec<usize>> {
        let mut place = vec![None; groups.members.len()];
        over.iter().enumerate().for_each(|(number, &group)| place[group] = Some(number));
        let mut offers = vec![Vec::new(); over.len()];
        for (position, chunk) in snapshot.chunks.iter().enumerate().filter(|(_, chunk)| chunk.migratable) {
            if let Some(number) = groups.of(assignment.ranks[position]).and_then(|group| place[group]) {
                offers[number].push((chunk.ticks, position));
            }
        }
        let shortest = |number: usize| self.offers.saturating_mul(groups.members[over[number]].len());
        let late = |position: usize| loads.completion_ns(assignment.ranks[position]);
        let sorted = |(number, mut offers): (usize, Vec<(u64, usize)>)| {
            offers.sort_unstable_by_key(|&(ticks, position)| {
                (Reverse(late(position)), Reverse(ticks), position)
            });
            offers.truncate(shortest(number));
            offers.into_iter().map(|(_, position)| position).collect()
        };
        offers.into_iter().enumerate().map(sorted).collect()
    }

    /// Refines each group by itself.
    fn within_groups(&self, snapshot: &Snapshot, groups: &Groups, assignment: &mut Assignment) {
        let refine = self.inner();
        let mut chunks_of = vec![Vec::new(); groups.members.len()];
        for (position, &rank) in assignment.ranks.iter().enumerate() {
            if let Some(group) = groups.of(rank) {
                chunks_of[group].push(position);
            }
        }
        for (members, positions) in groups.members.iter().zip(chunks_of) {
            let ranks: Vec<_> = members.iter().map(|rank| snapshot.ranks[rank.index()].clone()).collect();
            let chunk = |&position: &usize| {
                let mut chunk = snapshot.chunks[position].clone();
                let member = members.binary_search(&assignment.ranks[position]).expect("it is in this group");
                chunk.rank = Rank(member as u32);
                chunk
            };
            let group =
                Snapshot { ranks, chunks: positions.iter().map(chunk).collect(), ..Snapshot::default() };
            let placed = refine.assign(&group);
            for (position, member) in positions.into_iter().zip(placed.ranks) {
                assignment.ranks[position] = members[member.index()];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::metrics::max_over_avg;
    use crate::arrays::synthetic::Workload;

    /// 256 ranks on hosts of 16; the chunks of the first two hosts have twice the load.
    fn two_late_hosts(phase: u64) -> Snapshot {
        let mut snapshot = Workload::Equal.snapshot(25_600, 256, 1);
        snapshot.phase = phase;
        (0..).zip(&mut snapshot.ranks).for_each(|(number, rank)| rank.host = number / 16);
        snapshot.chunks.iter_mut().filter(|chunk| chunk.rank.0 < 32).for_each(|chunk| chunk.ticks *= 2);
        snapshot
    }

    fn between_hosts(snapshot: &Snapshot, plan: &Assignment) -> usize {
        plan.moves(snapshot).filter(|(chunk, to)| chunk.rank.0 / 16 != to.0 / 16).count()
    }

    #[test]
    fn hosts_exchange_chunks_in_every_nth_phase_only() {
        let strategy = Hierarchical::default();
        for phase in 0..8 {
            let snapshot = two_late_hosts(phase);
            let plan = strategy.assign(&snapshot);
            let imbalance = max_over_avg(&snapshot, &plan, Background::Share);
            match phase % 4 {
                0 => assert!(imbalance < 1.02 && between_hosts(&snapshot, &plan) > 1_000, "{imbalance}"),
                _ => assert_eq!(plan, Assignment::current(&snapshot), "hosts are even in themselves"),
            }
        }
    }

    #[test]
    fn a_group_gives_a_bounded_number_of_chunks() {
        let snapshot = two_late_hosts(0);
        let strategy = Hierarchical { offers: 3, ..Hierarchical::default() };
        assert_eq!(between_hosts(&snapshot, &strategy.assign(&snapshot)), 2 * 3 * 16);
    }

    #[test]
    fn a_host_that_is_lost_is_emptied_in_any_phase() {
        let mut snapshot = two_late_hosts(1);
        snapshot.ranks[32..48].iter_mut().for_each(|rank| rank.available = false);
        let plan = Hierarchical::default().assign(&snapshot);
        assert!(plan.ranks.iter().all(|rank| !(32..48).contains(&rank.0)));
    }
}
