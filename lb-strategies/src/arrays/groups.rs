//! Groups of ranks, for balancing on two levels, and the exchange of chunks between groups.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use crate::arrays::finish_first::{FinishFirst, by_falling_load};
use crate::arrays::loads::Loads;
use crate::arrays::snapshot::{Assignment, Snapshot};
use crate::rank::Rank;

/// Ranks of a group where hosts do not tell.
const GROUP: u64 = 64;
/// The part above the fair time up to which groups are filled.
const SETTLE: f64 = 0.005;

/// How windows are decided on two levels.
///
/// ```
/// use lb_strategies::{ARRAYS, Hierarchy};
/// let strategy = ARRAYS.parse("hierarchical,group=16,every=10")?;
/// let hierarchy = strategy.terms().hierarchy.expect("it has two levels");
/// assert_eq!((hierarchy.group, hierarchy.every), (Some(16), 10));
/// assert_eq!(hierarchy.size([0; 100]), 16);
/// # Ok::<(), lb_strategies::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hierarchy {
    /// Ranks per group; none for the ranks of a host.
    pub group: Option<u64>,
    /// Chunks move between groups if a group exceeds the fair time by this part.
    pub between: f64,
    /// Chunks move between groups in every n-th window that is decided.
    pub every: u64,
    /// Largest number of chunks that a group gives in a window, for each of its ranks.
    pub offers: usize,
}

impl Hierarchy {
    /// Number of consecutive ranks per group, for ranks on these hosts. It is the number of ranks of a host if all hosts
    /// have as many, with consecutive numbers.
    pub fn size(&self, hosts: impl IntoIterator<Item = u32>) -> u64 {
        let hosts: Vec<u32> = hosts.into_iter().collect();
        let of_host = hosts.iter().take_while(|host| **host == hosts[0]).count();
        let is_regular = || {
            let blocks = hosts.chunks(of_host);
            let is_whole =
                |block: &[u32]| block.len() == of_host && block.iter().all(|host| *host == block[0]);
            let different: BTreeSet<u32> = hosts.iter().copied().collect();
            let count = blocks.len();
            blocks.clone().all(is_whole) && different.len() == count
        };
        let by_host = of_host > 1 && of_host < hosts.len() && is_regular();
        self.group.unwrap_or(if by_host { of_host as u64 } else { GROUP })
    }
}

/// The groups of ranks.
pub(crate) struct Groups {
    /// By group, its ranks in rising order.
    pub(crate) members: Vec<Vec<Rank>>,
    /// By rank, its group.
    group_of: Vec<u32>,
}

impl Groups {
    /// Groups of `size` ranks; if none, the ranks of each host, or groups of 64 if there is one host or one rank on each.
    pub(crate) fn new(hosts: impl ExactSizeIterator<Item = u32>, size: Option<u64>) -> Self {
        let hosts: Vec<u32> = hosts.collect();
        let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
        for &host in &hosts {
            let next = numbers.len() as u32;
            numbers.entry(host).or_insert(next);
        }
        let by_host = size.is_none() && numbers.len() > 1 && numbers.len() < hosts.len();
        let size = size.unwrap_or(GROUP);
        let group = |(rank, host): (u64, &u32)| if by_host { numbers[host] } else { (rank / size) as u32 };
        let group_of: Vec<u32> = (0..).zip(&hosts).map(group).collect();
        let count = group_of.iter().max().map_or(0, |&last| last as usize + 1);
        let mut members = vec![Vec::new(); count];
        (0..).map(Rank).zip(&group_of).for_each(|(rank, &group)| members[group as usize].push(rank));
        Self { members, group_of }
    }

    /// Groups of `size` of these ranks.
    pub(crate) fn of_size(ranks: usize, size: u64) -> Self {
        Self::new(std::iter::repeat_n(0, ranks), Some(size))
    }

    pub(crate) fn of(&self, rank: Rank) -> Option<usize> {
        self.group_of.get(rank.index()).map(|&group| group as usize)
    }

    /// Places chunks whose group has no available rank where they finish first.
    pub(crate) fn take_in_stranded(
        &self,
        snapshot: &Snapshot,
        loads: &mut Loads,
        assignment: &mut Assignment,
    ) {
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

/// The exchange of chunks between groups: from groups that are late to the rank of an early group that finishes first.
pub(crate) struct Exchange {
    sums: Vec<GroupSum>,
    /// The time by which groups should finish, ns.
    limit_ns: f64,
    /// Groups with room, the largest room first.
    under: BinaryHeap<(u64, Reverse<usize>)>,
    /// By group, its available ranks by completion time.
    seats: Vec<BinaryHeap<Reverse<(u64, Rank)>>>,
}

impl Exchange {
    /// None if no group exceeds the fair time by the part `between`.
    pub(crate) fn new(groups: &Groups, loads: &Loads, between: f64) -> Option<Self> {
        let sums = groups.sums(loads);
        let add =
            |(ticks, capacity): (u64, f64), sum: &GroupSum| (ticks + sum.ticks, capacity + sum.capacity);
        let (ticks, capacity) = sums.iter().fold((0, 0.0), add);
        let fair_ns = if capacity > 0.0 { ticks as f64 / capacity } else { return None };
        let latest_ns = sums.iter().map(GroupSum::time_ns).fold(0.0, f64::max);
        if latest_ns <= fair_ns * (1.0 + between) {
            return None;
        }
        let limit_ns = fair_ns * (1.0 + SETTLE);
        let room = |group: usize| Some((sums[group].room(limit_ns)?, Reverse(group)));
        let under = (0..sums.len()).filter_map(room).collect();
        let mut seats = vec![BinaryHeap::new(); groups.members.len()];
        for &rank in &loads.available {
            let group = groups.group_of[rank.index()] as usize;
            seats[group].push(Reverse((loads.completion_ns(rank), rank)));
        }
        Some(Self { sums, limit_ns, under, seats })
    }

    /// The groups that are late, the latest first, each with the ticks that it should give.
    pub(crate) fn late(&self) -> Vec<(usize, u64)> {
        let mut late: Vec<usize> = (0..self.sums.len()).filter(|&group| self.is_late(group)).collect();
        let time_ns = |group: usize| self.sums[group].time_ns();
        late.sort_unstable_by(|&one, &other| time_ns(other).total_cmp(&time_ns(one)).then(one.cmp(&other)));
        let excess = |group: usize| {
            let GroupSum { ticks, capacity } = self.sums[group];
            ticks.saturating_sub((self.limit_ns * capacity) as u64)
        };
        late.into_iter().map(|group| (group, excess(group))).collect()
    }

    fn is_late(&self, group: usize) -> bool {
        self.sums[group].time_ns() > self.limit_ns
    }

    /// Moves a chunk of `ticks` from a rank of a late group. Returns its new rank; none if the group is no longer late,
    /// or if the chunk does not fit.
    pub(crate) fn place(&mut self, group: usize, from: Rank, ticks: u64, loads: &mut Loads) -> Option<Rank> {
        let &(room, Reverse(receiver)) = self.under.peek().filter(|_| self.is_late(group))?;
        if ticks > room {
            return None;
        }
        let mut first = self.seats[receiver].peek_mut()?;
        let to = first.0.1;
        loads.ticks[to.index()] += ticks;
        *first = Reverse((loads.completion_ns(to), to));
        drop(first);
        if let Some(left) = loads.ticks.get_mut(from.index()) {
            *left -= ticks;
        }
        self.sums[group].ticks -= ticks;
        self.sums[receiver].ticks += ticks;
        self.under.pop();
        if let Some(room) = self.sums[receiver].room(self.limit_ns) {
            self.under.push((room, Reverse(receiver)));
        }
        Some(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Groups of two ranks that finish at these times, ns.
    fn ranks(times: &[u64]) -> (Groups, Loads) {
        let groups = Groups::of_size(times.len(), 2);
        (groups, Loads::of_ranks(times.iter().map(|&ns| (1.0, ns))))
    }

    #[test]
    fn a_late_group_gives_until_it_is_late_no_longer() {
        let (groups, mut loads) = ranks(&[120, 80, 20, 20]);
        let mut exchange = Exchange::new(&groups, &loads, 0.05).expect("group 0 is late");
        assert_eq!(exchange.late(), [(0, 80)]);
        let given: Vec<_> = (0..20).map_while(|_| exchange.place(0, Rank(0), 9, &mut loads)).collect();
        assert_eq!(
            given,
            [2, 3, 2, 3, 2, 3, 2, 3].map(Rank),
            "to the rank that finishes first, until 72 are given"
        );
        assert_eq!(loads.ticks, [48, 80, 56, 56]);
    }

    #[test]
    fn a_chunk_that_does_not_fit_stays() {
        let (groups, mut loads) = ranks(&[100, 100, 40, 40]);
        let mut exchange = Exchange::new(&groups, &loads, 0.05).expect("group 0 is late");
        assert_eq!(exchange.place(0, Rank(0), 100, &mut loads), None, "group 1 has room for 60");
        assert_eq!(exchange.place(0, Rank(0), 60, &mut loads), Some(Rank(2)));
    }

    #[test]
    fn groups_within_the_tolerance_exchange_nothing() {
        let (groups, loads) = ranks(&[110, 90, 95, 105]);
        assert!(Exchange::new(&groups, &loads, 0.05).is_none());
        let (groups, loads) = ranks(&[]);
        assert!(Exchange::new(&groups, &loads, 0.0).is_none());
    }

    #[test]
    fn groups_are_hosts_where_hosts_are_regular() {
        let hierarchy = Hierarchy { group: None, between: 0.05, every: 4, offers: 1 };
        for (hosts, size) in [
            (vec![0; 100], 64),
            ((0..100).collect(), 64),
            (vec![7, 7, 7, 2, 2, 2, 5, 5, 5], 3),
            (vec![7, 7, 7, 2, 2, 5, 5, 5, 5], 64),
            (vec![7, 7, 2, 2, 7, 7], 64),
            (Vec::new(), 64),
        ] {
            assert_eq!(hierarchy.size(hosts.clone()), size, "{hosts:?}");
        }
    }
}
