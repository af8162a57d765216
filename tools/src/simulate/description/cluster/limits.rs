//! Refuses clusters that do not fit into memory, or cannot be simulated.

use super::super::super::cluster::RANKS_MOST;
use super::super::Speeds;
use super::{Cluster, Group};
use crate::Error;

/// Largest number of workers of all ranks together.
const WORKERS_MOST: u64 = 10_000_000;
/// Largest number of ranks of a pool or a program in supersteps, where each pair of ranks has a connection in memory.
const PAIRED_MOST: u32 = 1024;

impl Cluster<'_> {
    /// Refuses two groups of one name, of which neighbours could only mean one.
    pub(super) fn check_names(&self) -> Result<(), Error> {
        let name = |place: usize| self.groups[place].given.name.as_ref();
        let same =
            |&place: &usize| name(place).is_some() && (0..place).any(|other| name(other) == name(place));
        match (0..self.groups.len()).find(same) {
            None => Ok(()),
            Some(place) => {
                let name = name(place).map_or("", String::as_str);
                let what = format!("{name:?} is the name of other hosts too, expected another name");
                Err(self.wrong(&format!("hosts[{place}].name"), &"", &what))
            }
        }
    }

    /// Refuses hosts with different numbers of vCPUs where workers share them, and neighbours on one of these vCPUs.
    pub(super) fn check_crowded(&self) -> Result<(), Error> {
        let Some(shared) = self.shared_vcpus() else { return Ok(()) };
        if let Some(place) = self.groups.iter().position(|group| group.given.vcpus.unwrap_or(1) != shared) {
            let what = format!("expected {shared} as in hosts[0], where more ranks share the vCPUs");
            let vcpus = self.groups[place].given.vcpus.unwrap_or(1);
            return Err(self.wrong(&format!("hosts[{place}].vcpus"), &vcpus, &what));
        }
        if let Some(place) = self.description.neighbours.iter().position(|given| given.vcpu.is_some()) {
            let what = "workers of a host with more ranks than vCPUs are on any of them, expected no vcpu";
            return Err(self.wrong(&format!("neighbours[{place}].vcpu"), &"", what));
        }
        Ok(())
    }

    /// Refuses more ranks than vCPUs on a host, for programs that are not arrays.
    fn check_not_crowded(&self) -> Result<(), Error> {
        match (self.shared_vcpus(), self.groups.first()) {
            (Some(vcpus), Some(group)) => {
                let what = format!("only ranks of arrays can share vCPUs, expected {vcpus} at most");
                Err(self.wrong("hosts[0].ranks", &group.ranks, &what))
            }
            _ => Ok(()),
        }
    }

    /// Refuses hosts with different numbers of ranks: links are shared by equally many.
    pub(super) fn check_alike(&self) -> Result<(), Error> {
        let first = self.ranks_per_host();
        match self.groups.iter().position(|group| group.ranks != first) {
            None => Ok(()),
            Some(place) => {
                let ranks = self.groups[place].ranks;
                let what = format!("expected {first} as in hosts[0]: all hosts have equally many ranks");
                Err(self.wrong(&format!("hosts[{place}].ranks"), &ranks, &what))
            }
        }
    }

    /// Refuses more ranks or workers than fit into memory.
    pub(super) fn check_size(&self) -> Result<(), Error> {
        let ranks: u64 = self.groups.iter().map(|group| u64::from(group.ranks_in_all())).sum();
        let workers: u64 =
            self.groups.iter().map(|group| u64::from(group.ranks_in_all()) * u64::from(group.workers)).sum();
        let [_, vcpu] = self.source.words();
        if ranks > u64::from(RANKS_MOST) {
            let what = format!("expected {RANKS_MOST} ranks at most");
            return Err(self.wrong("hosts[0].count", &ranks, &what));
        }
        if workers > WORKERS_MOST {
            let what = format!("{workers} {vcpu}s on {ranks} ranks, expected {WORKERS_MOST} at most");
            return Err(self.wrong("hosts[0].vcpus", &self.groups[0].workers, &what));
        }
        Ok(())
    }

    /// Refuses more ranks than can be simulated if each exchanges messages with all others.
    pub(in super::super) fn check_pairs(&self) -> Result<(), Error> {
        self.check_not_crowded()?;
        match self.ranks() {
            0..=PAIRED_MOST => Ok(()),
            ranks => {
                let what =
                    format!("each rank has a connection to each other here, expected {PAIRED_MOST} at most");
                Err(self.wrong("hosts[0].count", &ranks, &what))
            }
        }
    }

    /// Refuses workers of speed 0, for programs in which each step waits for all workers.
    pub(in super::super) fn check_all_compute(&self) -> Result<(), Error> {
        let stands = |group: &Group<'_>| matches!(&group.given.speed, Some(Speeds::Each(speeds)) if speeds.contains(&0.0));
        match self.groups.iter().position(stands) {
            None => Ok(()),
            Some(place) => {
                let what = "a worker of speed 0 never ends a step, expected numbers above 0";
                Err(self.wrong(&format!("hosts[{place}].speed"), &"", what))
            }
        }
    }
}
