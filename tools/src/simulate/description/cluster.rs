//! Builds the vCPUs of a described cluster. This file has the hosts, their ranks and their speeds.
//!
//! | module | purpose |
//! |---|---|
//! | `limits` | refuses clusters that cannot be simulated |
//! | `duration` | estimates a run, and refuses one that takes too long |
//! | `neighbours` | other processes on hosts |
//! | `measured` | the shares that traces of measured hosts leave |

mod duration;
mod limits;
mod measured;
mod neighbours;

use std::fmt::Display;

use virtual_cluster::{PerWorker, Series, Shared, Vcpus};

use super::{Description, HostGroup, Source, Speeds, wrong};
use crate::Error;

/// Units of work per second of a vCPU, if neither hosts nor the program say otherwise.
const SPEED: f64 = 1000.0;

/// What hosts are if the description does not say it.
#[derive(Clone, Copy)]
pub(super) struct Defaults {
    pub(super) hosts: u32,
    pub(super) speed: f64,
}

impl Default for Defaults {
    fn default() -> Self {
        Self { hosts: 1, speed: SPEED }
    }
}

/// The hosts, ranks and workers of a description.
pub(super) struct Cluster<'d> {
    description: &'d Description,
    source: &'d dyn Source,
    groups: Vec<Group<'d>>,
    /// Factor of all speeds.
    scale: f64,
}

/// A group of hosts, with its place among all hosts and ranks.
struct Group<'d> {
    given: &'d HostGroup,
    /// Number of hosts.
    hosts: u32,
    /// Ranks of each host.
    ranks: u32,
    /// Workers of each rank.
    workers: u32,
    first_host: u32,
    first_rank: u32,
    /// Units of work per second, of a vCPU of which the group does not say it.
    speed: f64,
}

impl Group<'_> {
    fn ranks_in_all(&self) -> u32 {
        self.hosts.saturating_mul(self.ranks)
    }
}

impl<'d> Cluster<'d> {
    /// The cluster of a description, if it is not too large. A vCPU of speed 1 does `per_second` units of work a second.
    pub(super) fn new(
        description: &'d Description,
        source: &'d dyn Source,
        defaults: Defaults,
        per_second: Option<f64>,
    ) -> Result<Self, Error> {
        let alone = std::slice::from_ref(&HostGroup::NONE);
        let given = if description.hosts.is_empty() { alone } else { &description.hosts };
        let mut cluster = Self { description, source, groups: Vec::new(), scale: per_second.unwrap_or(1.0) };
        // Speeds are relative where the program says how long its work takes.
        let speed = if per_second.is_some() { 1.0 } else { defaults.speed };
        let (mut first_host, mut first_rank) = (0_u32, 0_u32);
        for (place, given) in given.iter().enumerate() {
            let (vcpus, ranks) = (given.vcpus.unwrap_or(1), given.ranks.unwrap_or(1));
            if ranks < vcpus && !vcpus.is_multiple_of(ranks) {
                let what = format!(
                    "{ranks} ranks on {vcpus} vCPUs, expected a number that divides them, or more ranks"
                );
                return Err(cluster.wrong(&format!("hosts[{place}].ranks"), &ranks, &what));
            }
            let hosts = given.count.unwrap_or(defaults.hosts);
            // Ranks of one worker each share too few vCPUs.
            let workers = (vcpus / ranks).max(1);
            let group = Group { given, hosts, ranks, workers, first_host, first_rank, speed };
            first_host = first_host.saturating_add(hosts);
            first_rank = first_rank.saturating_add(group.ranks_in_all());
            cluster.groups.push(group);
        }
        cluster.check_names()?;
        cluster.check_alike()?;
        cluster.check_size()?;
        cluster.check_crowded()?;
        Ok(cluster)
    }

    /// The same cluster, on which a vCPU does `factor` times as many units of work a second.
    pub(super) fn faster(self, factor: f64) -> Self {
        Self { scale: self.scale * factor, ..self }
    }

    /// The vCPUs that the workers of each host share, if they are fewer than the workers.
    pub(super) fn shared_vcpus(&self) -> Option<u32> {
        let vcpus = |group: &Group<'_>| group.given.vcpus.unwrap_or(1);
        self.groups.first().filter(|group| group.ranks > vcpus(group)).map(vcpus)
    }

    fn wrong(&self, field: &str, value: &dyn Display, what: &str) -> Error {
        wrong(self.source, field, value, what)
    }

    /// Number of ranks.
    pub(super) fn ranks(&self) -> u32 {
        self.groups.last().map_or(0, |group| group.first_rank + group.ranks_in_all())
    }

    /// Number of hosts.
    fn hosts(&self) -> u32 {
        self.groups.last().map_or(0, |group| group.first_host + group.hosts)
    }

    /// Number of workers of each rank.
    pub(super) fn workers(&self) -> Vec<u32> {
        let of_group = |group: &Group<'_>| std::iter::repeat_n(group.workers, group.ranks_in_all() as usize);
        self.groups.iter().flat_map(of_group).collect()
    }

    /// Ranks that share the link of a host.
    pub(super) fn ranks_per_host(&self) -> u32 {
        self.groups.first().map_or(1, |group| group.ranks)
    }

    /// The group of a rank.
    fn group_of(&self, rank: u32) -> &Group<'d> {
        let next = self.groups.partition_point(|group| group.first_rank <= rank);
        &self.groups[next - 1]
    }

    /// Makes the vCPUs of the workers. The seed selects the group of measured hosts.
    pub(super) fn vcpus(&self) -> Result<impl Fn() -> Box<dyn Vcpus> + Send + Sync + use<>, Error> {
        let speeds = self.speeds()?;
        let [on_vcpu, on_core] = self.neighbours()?;
        let measured = self.measured()?;
        Ok(move || {
            let mut vcpus: Box<dyn Vcpus> = Box::new(speeds.clone());
            // A process on the worker's vCPU takes turns with it. One on the other hardware thread slows it down.
            if let Some(shares) = &on_vcpu {
                vcpus = Box::new(Shared::new(vcpus, shares.clone()));
            }
            if let Some(shares) = &on_core {
                vcpus = Box::new(Shared::slowed(vcpus, shares.clone()));
            }
            for (shares, takes_turns) in &measured {
                let shares = shares.clone();
                vcpus = match takes_turns {
                    true => Box::new(Shared::new(vcpus, shares)),
                    false => Box::new(Shared::slowed(vcpus, shares)),
                };
            }
            vcpus
        })
    }

    /// The speeds of all workers.
    fn speeds(&self) -> Result<PerWorker, Error> {
        for (place, group) in self.groups.iter().enumerate() {
            let Some(Speeds::Each(speeds)) = &group.given.speed else { continue };
            let [hosts, ranks] = [group.hosts, group.ranks_in_all()].map(|count| count as usize);
            let all = ranks * group.workers as usize;
            if ![hosts, ranks, all].contains(&speeds.len()) {
                let [host, vcpu] = self.source.words();
                let given = speeds.len();
                let what =
                    format!("{given} speeds, expected one for each of the {hosts} {host}s or {all} {vcpu}s");
                return Err(self.wrong(&format!("hosts[{place}].speed"), &"", &what));
            }
        }
        Ok(PerWorker::new(&self.workers(), |worker| {
            let group = self.group_of(worker.rank.0);
            let rank = (worker.rank.0 - group.first_rank) as usize;
            let speed = match &group.given.speed {
                None => group.speed,
                Some(Speeds::Same(speed)) => *speed,
                Some(Speeds::Each(speeds)) => {
                    let all = group.ranks_in_all() as usize;
                    let number = match speeds.len() {
                        count if count == all * group.workers as usize => {
                            rank * group.workers as usize + worker.number as usize
                        }
                        count if count == all => rank,
                        _ => rank / group.ranks as usize,
                    };
                    speeds[number]
                }
            };
            Series::constant(speed * self.scale)
        }))
    }
}

impl HostGroup {
    /// A group that says nothing.
    const NONE: Self = Self { name: None, count: None, vcpus: None, ranks: None, speed: None };
}

fn as_s(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}
