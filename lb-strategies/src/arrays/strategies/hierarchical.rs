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
use std::collections::{BTreeMap, BinaryHeap};

use super::refine::Refine;
use crate::arrays::finish_first::{FinishFirst, by_falling_load};
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
            meaning: "largest number of chunks that a group gives in a phase, for each of its ranks that is late",
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

/// Ranks of a group where hosts do not tell.
const GROUP: u64 = 64;
/// The part above the fair time up to which groups are filled.
const SETTLE: f64 = 0.005;

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
        let groups = Groups::new(snapshot, self.group);
        let mut assignment = Assignment::current(snapshot);
        let mut loads = Loads::placed(snapshot, &assignment, self.background);
        groups.take_in_stranded(snapshot, &mut loads, &mut assignment);
        if snapshot.phase.is_multiple_of(self.every) {
            self.between_groups(snapshot, &groups, &mut loads, &mut assignment);
        }
        self.within_groups(snapshot, &groups, &mut assignment);
        assignment.within_memory_or_stay(snapshot, self.background)
    }

    fn terms(&self) -> Terms {
        Terms { background: self.background, scatters: true, ..Terms::default() }
    }
}

impl Hierarchical {
    /// Moves offers of late groups to early groups, to the rank there that finishes first.
    fn between_groups(
        &self,
        snapshot: &Snapshot,
        groups: &Groups,
        loads: &mut Loads,
        assignment: &mut Assignment,
    ) {
        let mut sums = groups.sums(loads);
        let (ticks, capacity) =
            sums.iter().fold((0, 0.0), |(ticks, capacity), sum| (ticks + sum.ticks, capacity + sum.capacity));
        if capacity <= 0.0 {
            return;
        }
        let fair_ns = ticks as f64 / capacity;
        let latest = sums.iter().map(GroupSum::time_ns).fold(0.0, f64::max);
        if latest <= fair_ns * (1.0 + self.between) {
            return;
        }
        let limit_ns = fair_ns * (1.0 + SETTLE);
        let mut under: BinaryHeap<(u64, Reverse<usize>)> =
            (0..sums.len()).filter_map(|group| Some((sums[group].room(limit_ns)?, Reverse(group)))).collect();
        let mut seats = Seats::new(groups, loads);
        let mut over: Vec<usize> =
            (0..sums.len()).filter(|&group| sums[group].time_ns() > limit_ns).collect();
        over.sort_unstable_by(|&one, &other| {
            sums[other].time_ns().total_cmp(&sums[one].time_ns()).then(one.cmp(&other))
        });
        let offers = self.offers(snapshot, groups, loads, &over, assignment);
        for (group, offers) in over.into_iter().zip(offers) {
            for chunk in offers {
                let ticks = loads.clamp_load(snapshot.chunks[chunk].ticks);
                if sums[group].time_ns() <= limit_ns {
                    break;
                }
                let Some(&(room, Reverse(receiver))) = under.peek() else { return };
                if ticks > room {
                    continue;
                }
                under.pop();
                let Some(rank) = seats.take(receiver, loads, ticks) else { continue };
                let from = std::mem::replace(&mut assignment.ranks[chunk], rank);
                if let Some(left) = loads.ticks.get_mut(from.index()) {
                    *left -= ticks;
                }
                sums[group].ticks -= ticks;
                sums[receiver].ticks += ticks;
                if let Some(room) = sums[receiver].room(limit_ns) {
                    under.push((room, Reverse(receiver)));
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
        let refine = Refine { tolerance: self.tolerance, background: self.background, ..Refine::default() };
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

/// The groups of ranks.
struct Groups {
    /// By group, its ranks in rising order.
    members: Vec<Vec<Rank>>,
    /// By rank, its group.
    group_of: Vec<u32>,
}

impl Groups {
    fn new(snapshot: &Snapshot, size: Option<u64>) -> Self {
        let mut hosts: BTreeMap<u32, u32> = BTreeMap::new();
        for rank in &snapshot.ranks {
            let next = hosts.len() as u32;
            hosts.entry(rank.host).or_insert(next);
        }
        let by_host = size.is_none() && hosts.len() > 1 && hosts.len() < snapshot.ranks.len();
        let size = size.unwrap_or(GROUP);
        let group = |(number, rank): (u64, &crate::RankLoad)| match by_host {
            true => hosts[&rank.host],
            false => (number / size) as u32,
        };
        let group_of: Vec<u32> = (0..).zip(&snapshot.ranks).map(group).collect();
        let count = group_of.iter().max().map_or(0, |&last| last as usize + 1);
        let mut members = vec![Vec::new(); count];
        (0..).map(Rank).zip(&group_of).for_each(|(rank, &group)| members[group as usize].push(rank));
        Self { members, group_of }
    }

    fn of(&self, rank: Rank) -> Option<usize> {
        self.group_of.get(rank.index()).map(|&group| group as usize)
    }

    /// Places chunks whose group has no available rank where they finish first.
    fn take_in_stranded(&self, snapshot: &Snapshot, loads: &mut Loads, assignment: &mut Assignment) {
        let mut is_usable = vec![false; self.members.len()];
        loads.available.iter().for_each(|rank| is_usable[self.group_of[rank.index()] as usize] = true);
        let is_stranded = |rank: Rank| self.of(rank).is_none_or(|group| !is_usable[group]);
        if !assignment.ranks.iter().any(|&rank| is_stranded(rank)) {
            return;
        }
        let mut finish_first = FinishFirst::new(loads);
        for (position, ticks) in by_falling_load(snapshot) {
            let from = assignment.ranks[position];
            let ticks = loads.clamp_load(ticks);
            if is_stranded(from)
                && let Some(to) = finish_first.place(loads, ticks)
            {
                assignment.ranks[position] = to;
                if let Some(left) = loads.ticks.get_mut(from.index()) {
                    *left -= ticks;
                }
            }
        }
    }

    /// Work and capacity of each group. The ranks that are not available have work to give, and no capacity.
    fn sums(&self, loads: &Loads) -> Vec<GroupSum> {
        let mut sums = vec![GroupSum::default(); self.members.len()];
        for (&group, &ticks) in self.group_of.iter().zip(&loads.ticks) {
            sums[group as usize].ticks += ticks;
        }
        for rank in &loads.available {
            sums[self.group_of[rank.index()] as usize].capacity += loads.capacity[rank.index()];
        }
        sums
    }
}

/// Work and capacity of a group.
#[derive(Clone, Copy, Default)]
struct GroupSum {
    ticks: u64,
    /// Ticks per ns.
    capacity: f64,
}

impl GroupSum {
    fn time_ns(&self) -> f64 {
        match self.ticks {
            0 => 0.0,
            ticks => ticks as f64 / self.capacity,
        }
    }

    /// The ticks that the group can take and still finish by the limit; none if it finishes later.
    fn room(&self, limit_ns: f64) -> Option<u64> {
        ((limit_ns * self.capacity) as u64).checked_sub(self.ticks).filter(|room| *room > 0)
    }
}

/// The available ranks of each group by completion time.
struct Seats(Vec<BinaryHeap<Reverse<(u64, Rank)>>>);

impl Seats {
    fn new(groups: &Groups, loads: &Loads) -> Self {
        let mut seats = vec![BinaryHeap::new(); groups.members.len()];
        for &rank in &loads.available {
            let group = groups.group_of[rank.index()] as usize;
            seats[group].push(Reverse((loads.completion_ns(rank), rank)));
        }
        Self(seats)
    }

    /// Puts a chunk of `ticks` on the rank of the group that finishes first.
    fn take(&mut self, group: usize, loads: &mut Loads, ticks: u64) -> Option<Rank> {
        let mut first = self.0[group].peek_mut()?;
        let rank = first.0.1;
        loads.ticks[rank.index()] += ticks;
        *first = Reverse((loads.completion_ns(rank), rank));
        Some(rank)
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
