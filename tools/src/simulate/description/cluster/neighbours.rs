//! Puts other processes on hosts: always, for a time, or at random.

use std::collections::BTreeSet;

use lb_strategies::Rank;
use lb_strategies::virtual_time::OnOff;
use virtual_cluster::{Beside, Neighbour, NeighbourShares, Presence};

use super::super::{HostName, Neighbours, Place};
use super::{Cluster, Group, as_s};
use crate::Error;

impl<'d> Cluster<'d> {
    /// The shares beside neighbours on the same vCPU, and on the same core.
    pub(super) fn neighbours(&self) -> Result<[Option<NeighbourShares>; 2], Error> {
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

    pub(super) fn group_of_host(&self, host: u32) -> &Group<'d> {
        let next = self.groups.partition_point(|group| group.first_host <= host);
        &self.groups[next - 1]
    }

    /// The hosts of an entry.
    pub(super) fn selected(&self, place: usize, given: &Neighbours) -> Result<BTreeSet<u32>, Error> {
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
}
