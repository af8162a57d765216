//! Builds the vCPUs of a described cluster: speeds of hosts, neighbours, and shares of measured hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::PathBuf;

use lb_strategies::Rank;
use lb_strategies::virtual_time::OnOff;
use virtual_cluster::{
    Beside, Neighbour, NeighbourShares, PerWorker, Presence, Series, Shared, Vcpus, on_hosts,
};

use super::super::cluster::RANKS_MOST;
use super::super::host_trace::{self, Hosts};
use super::{Description, HostGroup, HostName, Neighbours, Place, Source, Speeds, wrong};
use crate::{Error, input};

/// Longest ideal time in seconds, about three years. A policy may take 100 times as long: 64 bits of ns still suffice.
const IDEAL_MOST_S: f64 = 1e8;
/// Largest number of workers of all ranks together.
const WORKERS_MOST: u64 = 10_000_000;
/// Largest number of ranks of a pool or a program in supersteps, where each pair of ranks has a connection in memory.
const PAIRED_MOST: u32 = 1024;
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
        cluster.check_alike()?;
        cluster.check_size()?;
        cluster.check_crowded()?;
        Ok(cluster)
    }

    /// The vCPUs that the workers of each host share, if they are fewer than the workers.
    pub(super) fn shared_vcpus(&self) -> Option<u32> {
        let vcpus = |group: &Group<'_>| group.given.vcpus.unwrap_or(1);
        self.groups.first().filter(|group| group.ranks > vcpus(group)).map(vcpus)
    }

    /// Refuses hosts with different numbers of vCPUs where workers share them, and neighbours on one of these vCPUs.
    fn check_crowded(&self) -> Result<(), Error> {
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

    fn wrong(&self, field: &str, value: &dyn Display, what: &str) -> Error {
        wrong(self.source, field, value, what)
    }

    /// Refuses hosts with different numbers of ranks: links are shared by equally many.
    fn check_alike(&self) -> Result<(), Error> {
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
    fn check_size(&self) -> Result<(), Error> {
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
    pub(super) fn check_pairs(&self) -> Result<(), Error> {
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

    /// Refuses a run that never ends or takes too long. `ideal_s` is about the best time of `count` turns of `field`.
    pub(super) fn check_ideal(&self, ideal_s: f64, field: &str, count: u64) -> Result<(), Error> {
        if !ideal_s.is_finite() {
            let what = "all speeds stay 0 from some time on, expected a worker that can end the run";
            return Err(self.wrong("hosts", &"", what));
        }
        if ideal_s > IDEAL_MOST_S {
            let what =
                format!("even the best schedule takes {ideal_s:.0e} s, expected {IDEAL_MOST_S:e} s at most");
            return Err(self.wrong(field, &format!("{count:e}"), &what));
        }
        Ok(())
    }

    /// Refuses workers of speed 0, for programs in which each step waits for all workers.
    pub(super) fn check_all_compute(&self) -> Result<(), Error> {
        let stands = |group: &Group<'_>| matches!(&group.given.speed, Some(Speeds::Each(speeds)) if speeds.contains(&0.0));
        match self.groups.iter().position(stands) {
            None => Ok(()),
            Some(place) => {
                let what = "a worker of speed 0 never ends a step, expected numbers above 0";
                Err(self.wrong(&format!("hosts[{place}].speed"), &"", what))
            }
        }
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

    /// The shares beside neighbours on the same vCPU, and on the same core.
    fn neighbours(&self) -> Result<[Option<NeighbourShares>; 2], Error> {
        let mut beside = [Vec::new(), Vec::new()];
        for (place, given) in self.description.neighbours.iter().enumerate() {
            if given.trace.is_some() {
                continue;
            }
            let them = self.beside(place, given)?;
            beside[usize::from(given.beside == Place::Core)].extend(them);
        }
        let [vcpu, core] = beside;
        let shares = |beside: Beside, them: Vec<Neighbour>| (!them.is_empty()).then(|| beside.shares(&them));
        Ok([shares(Beside::Vcpu, vcpu), shares(Beside::Core, core)])
    }

    /// The neighbours of one entry.
    fn beside(&self, place: usize, given: &Neighbours) -> Result<Vec<Neighbour>, Error> {
        let field = |name: &str| format!("neighbours[{place}].{name}");
        let Neighbours { from, to, duty, random, .. } = given;
        let of_traces = [
            ("format", given.format.is_some()),
            ("step", given.step.is_some()),
            ("first", given.first.is_some()),
        ];
        if let Some((name, _)) = of_traces.iter().find(|(_, is_given)| *is_given) {
            return Err(self.wrong(&field(name), &"", "it is of a trace, expected `trace` with it"));
        }
        if random.is_some() && (from.is_some() || to.is_some()) {
            let name = if from.is_some() { "from" } else { "to" };
            return Err(self.wrong(
                &field(name),
                &"",
                "neighbours at random have no times, expected `random` or times",
            ));
        }
        let [from_s, to_s] = [from.map_or(0.0, as_s), to.map_or(f64::INFINITY, as_s)];
        if from_s >= to_s {
            return Err(self.wrong(
                &field("to"),
                &format!("{to_s} s"),
                &format!("expected a time after `from`, which is {from_s} s"),
            ));
        }
        let presence = |number: u64| match random {
            Some(seed) => Presence::Random(OnOff::new(seed.wrapping_add(number))),
            None => Presence::Between { from_s, to_s },
        };
        let neighbour = |number: u64, (rank, worker): (u32, Option<u32>)| Neighbour {
            rank: Rank(rank),
            worker,
            presence: presence(number),
            duty: duty.unwrap_or(1.0),
        };
        let mut all = Vec::new();
        for (number, host) in (0..).zip(self.selected(place, given)?) {
            let group = self.group_of_host(host);
            let first = group.first_rank + (host - group.first_host) * group.ranks;
            match given.vcpu {
                None => all.extend((first..first + group.ranks).map(|rank| neighbour(number, (rank, None)))),
                Some(vcpu) if vcpu < group.ranks * group.workers => {
                    let (rank, worker) = (first + vcpu / group.workers, vcpu % group.workers);
                    all.push(neighbour(number, (rank, Some(worker))));
                }
                Some(vcpu) => {
                    let [_, word] = self.source.words();
                    let last = group.ranks * group.workers - 1;
                    let what = format!("expected a {word} from 0 to {last}");
                    return Err(self.wrong(&field("vcpu"), &vcpu, &what));
                }
            }
        }
        Ok(all)
    }

    fn group_of_host(&self, host: u32) -> &Group<'d> {
        let next = self.groups.partition_point(|group| group.first_host <= host);
        &self.groups[next - 1]
    }

    /// The hosts of an entry.
    fn selected(&self, place: usize, given: &Neighbours) -> Result<BTreeSet<u32>, Error> {
        let Some(names) = &given.host else { return Ok((0..self.hosts()).collect()) };
        let field = format!("neighbours[{place}].host");
        let mut hosts = BTreeSet::new();
        for name in names {
            match name {
                HostName::Number(host) if *host < self.hosts() => {
                    hosts.insert(*host);
                }
                HostName::Number(host) => {
                    let ([word, _], last) = (self.source.words(), self.hosts() - 1);
                    let what = format!("expected a {word} from 0 to {last}");
                    return Err(self.wrong(&field, &host, &what));
                }
                HostName::Group(name) => {
                    let named = |group: &&Group<'_>| group.given.name.as_ref() == Some(name);
                    let Some(group) = self.groups.iter().find(named) else {
                        return Err(self.wrong(&field, &name, &self.unknown_group(name)));
                    };
                    hosts.extend(group.first_host..group.first_host + group.hosts);
                }
            }
        }
        Ok(hosts)
    }

    /// The line about the name of a group that does not exist.
    fn unknown_group(&self, name: &str) -> String {
        let known: Vec<&str> = self.groups.iter().filter_map(|group| group.given.name.as_deref()).collect();
        let last = self.hosts() - 1;
        let distance = |known: &&str| strsim::damerau_levenshtein(name, known);
        match known.iter().copied().min_by_key(distance) {
            None => format!("{name:?}, expected a host from 0 to {last}; no [[hosts]] has a name"),
            Some(nearest) if 3 * distance(&nearest) <= nearest.len().max(3) => {
                format!("unknown hosts {name:?}, did you mean {nearest:?}? known: {}", known.join(", "))
            }
            Some(_) => {
                format!("unknown hosts {name:?}; known: {}, and numbers from 0 to {last}", known.join(", "))
            }
        }
    }

    /// For each entry with a trace, the share of each worker's host that is left for it, and whether other processes take
    /// turns with the workers.
    fn measured(&self) -> Result<Vec<(PerWorker, bool)>, Error> {
        let entries = self.description.neighbours.iter().enumerate();
        let traced = entries.filter_map(|(place, given)| Some((place, given, given.trace.as_ref()?)));
        traced.map(|(place, given, files)| self.measured_by(place, given, files)).collect()
    }

    fn measured_by(
        &self,
        place: usize,
        given: &Neighbours,
        files: &[PathBuf],
    ) -> Result<(PerWorker, bool), Error> {
        let field = |name: &str| format!("neighbours[{place}].{name}");
        let has = [
            ("from", given.from.is_some()),
            ("to", given.to.is_some()),
            ("duty", given.duty.is_some()),
            ("random", given.random.is_some()),
            ("vcpu", given.vcpu.is_some()),
        ];
        if let Some((name, _)) = has.iter().find(|(_, is_given)| *is_given) {
            let what =
                format!("a trace has its own times and is of whole hosts, expected `trace` or `{name}`");
            return Err(self.wrong(&field(name), &"", &what));
        }
        let files: Vec<PathBuf> = files.iter().map(|file| self.description.folder.join(file)).collect();
        let read = host_trace::read(&files, given.step.map(as_s), given.format);
        let hosts =
            read.map_err(|what| Error::File(format!("{}{what}", self.source.place(&field("trace")))))?;
        hosts.notes.iter().for_each(|note| input::note(note));
        let selected = self.selected(place, given)?;
        let word = self.source.words()[0];
        let place = self.source.place(&field("trace"));
        hosts.shared(selected.len(), word, &place).iter().for_each(|note| input::note(note));
        let Hosts { mut parts, time_sliced, .. } = hosts;
        let chosen = u128::from(self.description.seed()) * selected.len() as u128
            + u128::from(given.first.unwrap_or(0));
        let first = (chosen % parts.len() as u128) as usize;
        parts.rotate_left(first);
        let workers = self.workers();
        if selected.len() == self.ranks() as usize {
            return Ok((on_hosts(&workers, &parts), time_sliced));
        }
        let rows: BTreeMap<u32, usize> = selected.into_iter().zip(0..).collect();
        let share = |rank: u32| {
            let group = self.group_of(rank);
            let host = group.first_host + (rank - group.first_rank) / group.ranks;
            rows.get(&host).map_or_else(|| Series::constant(1.0), |row| parts[row % parts.len()].clone())
        };
        Ok((PerWorker::new(&workers, |worker| share(worker.rank.0)), time_sliced))
    }
}

impl HostGroup {
    /// A group that says nothing.
    const NONE: Self = Self { name: None, count: None, vcpus: None, ranks: None, speed: None };
}

fn as_s(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}
