//! Plans the number of workers per rank and the vCPU of each worker, from the resources of all ranks. A pure function.
//!
//! Ranks whose affinity masks overlap form a *group*. Groups are independent of each other.
//!
//! 1. A rank that the launcher bound (`mpirun --bind-to`) overlaps with no other rank. It forms a group alone, and
//!    stays within its mask.
//! 2. A group's vCPUs are ordered by domain, cache, core and number. Each rank takes the next vCPUs in this order, so
//!    the workers of a rank and of consecutive ranks are neighbours.
//! 3. If a group has a physical core for every worker, hyperthread siblings stay idle.
//! 4. A rank skips vCPUs to stay within one cache, or else one domain, if enough vCPUs are left for later ranks.
//! 5. A default number of workers is at most what a CPU quota can keep busy. If a quota allows less time than all
//!    workers can use, they must not spin, because another worker could use that time.
//! 6. If a group has fewer vCPUs than workers, none of its workers is pinned, and the operating system places them.
//!    They share vCPUs, so they must not spin.
//!
//! The plan decides neither the number of ranks nor the capacity of a rank with more workers.

mod display;

use litemap::LiteMap;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::layout::Vcpu;
use crate::error::Error;
use crate::measure::cgroup::{Quota, vcpus_within};
pub(crate) use display::compact;

/// Whether workers are bound to vCPUs.
///
/// ```
/// assert_eq!(caribou::config::Pin::default(), caribou::config::Pin::Auto);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pin {
    /// Binds workers if there is a vCPU for every worker.
    #[default]
    Auto,
    /// Like `Auto`, but an error if there is not.
    On,
    /// Never binds workers.
    Off,
}

/// The vCPUs that a rank may use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RankResources {
    /// The name of the host. Ranks of the same host share its vCPUs.
    pub(crate) host: String,
    /// The vCPUs that the process may use, in ascending order.
    pub(crate) vcpus: Vec<Vcpu>,
    /// The CPU quota of the process.
    pub(crate) quota: Option<Quota>,
    /// The requested number of workers; none for one per physical core.
    pub(crate) workers: Option<u32>,
}

/// The plan of all workers of all ranks. Displays as one line, for any number of ranks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    /// The hosts, in the order of their first ranks.
    pub(crate) hosts: Vec<String>,
    /// One entry per rank, in rank order.
    pub(crate) placements: Vec<RankPlacement>,
    /// Number of vCPUs of crowded groups (groups with fewer vCPUs than workers).
    oversubscribed_vcpus: usize,
    /// The sum of the quotas of ranks, in vCPUs; none if no rank has one.
    quota: Option<f64>,
}

/// The vCPUs of one rank's workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RankPlacement {
    /// The rank's host, a position in [`Plan::hosts`].
    pub(crate) host: u32,
    /// Number of workers of the rank; at least one.
    pub(crate) workers: u32,
    /// The vCPU of each worker; none if they are not pinned.
    pub(crate) vcpus: Option<Vec<usize>>,
    /// True if workers share vCPUs with other workers.
    pub(crate) oversubscribed: bool,
    /// True if another worker may need the time for which an idle worker spins, on a shared vCPU or of a shared quota.
    pub(crate) avoid_spinning: bool,
}

/// Places the workers of all ranks. The result depends on the arguments only, so that every rank makes the same plan.
///
/// Takes O(n log n) time, where n is the total length of all [`RankResources::vcpus`]. A group whose masks differ takes
/// O(ranks x vCPUs).
///
/// # Errors
/// [`Error::Config`] with `Pin::On` if a group is crowded.
pub(crate) fn plan(places: &[RankResources], pin: Pin) -> Result<Plan, Error> {
    let (hosts, host_of) = number_hosts(places);
    let empty = |&host: &u32| RankPlacement {
        host,
        workers: 1,
        vcpus: None,
        oversubscribed: false,
        avoid_spinning: false,
    };
    let seats = host_of.iter().map(empty).collect();
    let mut plan = Plan { hosts, placements: seats, oversubscribed_vcpus: 0, quota: None };
    for group in groups(places, &host_of) {
        let seated = group.map_workers();
        if seated.is_none() {
            if pin == Pin::On {
                return Err(group.refusal());
            }
            plan.oversubscribed_vcpus += group.vcpus.len();
        }
        let crowded = seated.is_none();
        let quota = group.quota();
        let frugal = crowded || quota.is_some_and(|vcpus| vcpus < group.workers() as f64);
        plan.quota = [plan.quota, quota].into_iter().flatten().reduce(|sum, vcpus| sum + vcpus);
        let mut blocks = seated.filter(|_| pin != Pin::Off).map(Vec::into_iter);
        for member in &group.members {
            let seats = &mut plan.placements[member.rank];
            (seats.workers, seats.oversubscribed, seats.avoid_spinning) = (member.workers, crowded, frugal);
            seats.vcpus = blocks.as_mut().and_then(Iterator::next);
        }
    }
    Ok(plan)
}

impl Plan {
    /// Workers of each rank.
    pub(crate) fn workers(&self) -> Vec<u32> {
        self.placements.iter().map(|seats| seats.workers).collect()
    }

    /// Number of workers per vCPU in crowded groups, rounded up; 1 if no group is crowded.
    pub(crate) fn crowding(&self) -> u32 {
        let crowded = self.placements.iter().filter(|placement| placement.oversubscribed);
        let workers: u32 = crowded.map(|placement| placement.workers).sum();
        workers.div_ceil((self.oversubscribed_vcpus as u32).max(1)).max(1)
    }

    /// Tells whether every worker has a vCPU for itself.
    pub(crate) fn is_pinned(&self) -> bool {
        self.placements.iter().all(|seats| seats.vcpus.is_some())
    }
}

/// The hosts in the order of their first ranks, and for each rank the position of its host.
fn number_hosts(places: &[RankResources]) -> (Vec<String>, Vec<u32>) {
    let (mut hosts, mut host_of) = (Vec::new(), Vec::with_capacity(places.len()));
    let mut numbers = LiteMap::new_vec();
    for RankResources { host, .. } in places {
        let number = *numbers.entry(host).or_insert_with(|| {
            hosts.push(host.clone());
            hosts.len() as u32 - 1
        });
        host_of.push(number);
    }
    (hosts, host_of)
}

/// Ranks that share vCPUs.
struct Group<'p> {
    /// The ranks, in rank order.
    members: Vec<Member<'p>>,
    /// All vCPUs that the members may use, in the order in which they are assigned.
    vcpus: Vec<Vcpu>,
}

struct Member<'p> {
    rank: usize,
    place: &'p RankResources,
    /// The rank's part of the quota of its control group.
    quota: Option<f64>,
    workers: u32,
}

/// The groups, in the order of their first ranks.
fn groups<'p>(places: &'p [RankResources], host_of: &[u32]) -> Vec<Group<'p>> {
    let mut leaders = DisjointSets((0..places.len()).collect());
    let mut first_user = FxHashMap::default();
    let mut vcpus = Vec::new();
    for (rank, place) in places.iter().enumerate() {
        for &vcpu in &place.vcpus {
            let first = *first_user.entry((host_of[rank], vcpu.number)).or_insert_with(|| {
                vcpus.push((rank, vcpu));
                rank
            });
            leaders.union(first, rank);
        }
    }
    let mut groups = LiteMap::new_vec();
    let new = || Group { members: Vec::new(), vcpus: Vec::new() };
    for ((rank, place), quota) in places.iter().enumerate().zip(quotas(places, host_of)) {
        let group = groups.entry(leaders.find(rank)).or_insert_with(new);
        group.members.push(Member { rank, place, quota, workers: 1 });
    }
    for (user, vcpu) in vcpus {
        groups.entry(leaders.find(user)).or_insert_with(new).vcpus.push(vcpu);
    }
    let mut groups: Vec<Group<'p>> = groups.into_iter().map(|(_, group)| group).collect();
    groups.iter_mut().for_each(Group::choose_worker_counts);
    groups
}

/// The quota of each rank: ranks of one control group share its quota evenly.
fn quotas(places: &[RankResources], host_of: &[u32]) -> Vec<Option<f64>> {
    let mut members = LiteMap::<(u32, &str), u32>::new();
    for (place, &host) in places.iter().zip(host_of) {
        if let Some(quota) = &place.quota {
            *members.entry((host, &quota.group)).or_default() += 1;
        }
    }
    let part = |(place, &host): (&RankResources, &u32)| {
        let quota = place.quota.as_ref()?;
        Some(quota.vcpus / f64::from(members[&(host, &*quota.group)]))
    };
    places.iter().zip(host_of).map(part).collect()
}

/// Disjoint sets of ranks; a set is named by its lowest rank.
struct DisjointSets(Vec<usize>);

impl DisjointSets {
    fn find(&mut self, mut rank: usize) -> usize {
        while self.0[rank] != rank {
            self.0[rank] = self.0[self.0[rank]];
            rank = self.0[rank];
        }
        rank
    }

    fn union(&mut self, one: usize, other: usize) {
        let (one, other) = (self.find(one), self.find(other));
        self.0[one.max(other)] = one.min(other);
    }
}

impl Group<'_> {
    /// Sorts the vCPUs, and chooses the number of workers of members without a requested number.
    ///
    /// These members divide the remaining cores evenly: one core more for some ranks would make ranks unequal.
    fn choose_worker_counts(&mut self) {
        self.vcpus.sort_unstable_by_key(|vcpu| (vcpu.numa, vcpu.cache, vcpu.core, vcpu.number));
        let asked: u64 = self.members.iter().map(|member| u64::from(member.place.workers.unwrap_or(0))).sum();
        let open = self.members.iter().filter(|member| member.place.workers.is_none()).count().max(1);
        let useful = vcpus_within(self.quota(), cores(&self.vcpus)) as u64;
        let even = useful.saturating_sub(asked) / open as u64;
        for member in &mut self.members {
            let chosen = || even.min(cores(&member.place.vcpus) as u64) as u32;
            member.workers = member.place.workers.unwrap_or_else(chosen).max(1);
        }
    }

    fn workers(&self) -> u64 {
        self.members.iter().map(|member| u64::from(member.workers)).sum()
    }

    /// The sum of the members' quotas, in vCPUs; none if a member has no quota.
    fn quota(&self) -> Option<f64> {
        self.members.iter().map(|member| member.quota).sum()
    }

    /// The vCPUs of each member; none if the group is crowded.
    fn map_workers(&self) -> Option<Vec<Vec<usize>>> {
        let workers = self.workers();
        if workers > self.vcpus.len() as u64 {
            return None;
        }
        let mut one_a_core = self.vcpus.clone();
        one_a_core.dedup_by_key(|vcpu| (vcpu.numa, vcpu.cache, vcpu.core));
        let roomy = if workers <= one_a_core.len() as u64 { self.map_workers_on(&one_a_core) } else { None };
        roomy.or_else(|| self.map_workers_on(&self.vcpus))
    }

    /// Assigns `vcpus`, which are sorted and at least as many as workers, to members block by block.
    ///
    /// Ranks with the smallest masks choose first. If masks contain each other or are equal, this finds vCPUs for all
    /// workers whenever there are enough. Masks that overlap otherwise come from no launcher, and may be crowded.
    fn map_workers_on(&self, vcpus: &[Vcpu]) -> Option<Vec<Vec<usize>>> {
        let alike = self.members.iter().all(|member| member.place.vcpus == self.members[0].place.vcpus);
        // Number of vCPUs that may be skipped. If masks differ, none: another rank may need any of them.
        let mut spare = if alike { vcpus.len() - self.workers() as usize } else { 0 };
        let mut taken = vec![false; vcpus.len()];
        let mut blocks = vec![Vec::new(); self.members.len()];
        let mut order: Vec<usize> = (0..self.members.len()).collect();
        order.sort_by_key(|&member| self.members[member].place.vcpus.len());
        for member in order {
            let Member { place, workers, .. } = self.members[member];
            let open: Vec<usize> =
                (0..vcpus.len()).filter(|&at| !taken[at] && (alike || place.allows(vcpus[at]))).collect();
            let workers = workers as usize;
            if open.len() < workers {
                return None;
            }
            let skipped = skipped(&open, vcpus, workers, spare);
            spare -= skipped;
            let end = skipped + workers;
            open[..end].iter().for_each(|&at| taken[at] = true);
            blocks[member] = open[skipped..end].iter().map(|&at| vcpus[at].number as usize).collect();
        }
        Some(blocks)
    }

    fn refusal(&self) -> Error {
        let (workers, vcpus) = (display::count(self.workers() as usize, "worker"), self.vcpus.len());
        let (ranks, host) = (display::count(self.members.len(), "rank"), &self.members[0].place.host);
        let vcpus = display::count(vcpus, "vCPU");
        let why = format!(
            "on host {host}, {workers} of {ranks} do not fit on {vcpus} within the affinity mask of each rank"
        );
        Error::Config { setting: "CARIBOU_PIN".into(), why }
    }
}

impl RankResources {
    fn allows(&self, vcpu: Vcpu) -> bool {
        self.vcpus.binary_search_by_key(&vcpu.number, |own| own.number).is_ok()
    }
}

/// Number of open vCPUs to skip so that the next `workers` vCPUs are in one cache, or else in one domain.
fn skipped(open: &[usize], vcpus: &[Vcpu], workers: usize, spare: usize) -> usize {
    let starts = || 0..=spare.min(open.len() - workers);
    let ends = |start: usize| (vcpus[open[start]], vcpus[open[start + workers - 1]]);
    let in_cache = |&start: &usize| {
        let (first, last) = ends(start);
        (first.numa, first.cache) == (last.numa, last.cache)
    };
    let in_domain = |&start: &usize| {
        let (first, last) = ends(start);
        first.numa == last.numa
    };
    starts().find(in_cache).or_else(|| starts().find(in_domain)).unwrap_or(0)
}

fn cores(vcpus: &[Vcpu]) -> usize {
    let mut cores: Vec<u32> = vcpus.iter().map(|vcpu| vcpu.core).collect();
    cores.sort_unstable();
    cores.dedup();
    cores.len()
}

#[cfg(test)]
mod tests;
