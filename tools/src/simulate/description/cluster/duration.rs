//! Estimates a run before it begins, and refuses one that takes too long: in virtual time, or to simulate.

use lb_strategies::pool::Nanos;
use lb_strategies::virtual_time::on_off::{LONGEST, SHORTEST};
use virtual_cluster::Crowded;

use super::super::{Neighbours, Place, Speeds};
use super::{Cluster, Group, as_s};
use crate::Error;

/// Longest ideal time in seconds, about three years. A policy may take 100 times as long: 64 bits of ns still suffice.
const IDEAL_MOST_S: f64 = 1e8;
/// Largest time of all workers together, s: the sum of their idle times fits into 64 bits of ns.
const ALL_MOST_S: f64 = 1e10;
/// Largest number of changes of speed in a run. One strategy simulates as many in minutes.
const CHANGES_MOST: f64 = 1e9;
/// Largest number of changes of speed times workers, all of which the ideal time adds up. It takes a minute.
pub(super) const ADDED_MOST: f64 = 1e10;

/// Mean time for which a neighbour at random is there, or is away, s.
fn stretch_s() -> f64 {
    as_s(SHORTEST.midpoint(LONGEST))
}

/// Numbers of changes of speed in a run.
#[derive(Default)]
struct Changes {
    /// Of neighbours at random, by all workers beside them.
    toggles: f64,
    /// Number of different schedules of neighbours at random.
    schedules: f64,
    /// Turns of workers and neighbours that share a vCPU in time slices.
    slices: f64,
    /// Turns of workers on hosts with fewer vCPUs. At each end of a turn, all workers of the host change their speed.
    turns: f64,
}

impl Group<'_> {
    /// The speeds of its workers without neighbours, each with the number of workers that have it.
    fn speeds(&self) -> Vec<(f64, f64)> {
        let workers = f64::from(self.ranks_in_all()) * f64::from(self.workers);
        match &self.given.speed {
            None => vec![(self.speed, workers)],
            Some(Speeds::Same(speed)) => vec![(*speed, workers)],
            Some(Speeds::Each(speeds)) => {
                speeds.iter().map(|&speed| (speed, workers / speeds.len() as f64)).collect()
            }
        }
    }

    /// The lowest speed above 0 of its workers; none if all stand still.
    fn slowest(&self) -> Option<f64> {
        let speeds = self.speeds().into_iter().map(|(speed, _)| speed);
        speeds.filter(|&speed| speed > 0.0).min_by(f64::total_cmp)
    }
}

impl Cluster<'_> {
    /// Refuses a run of `work` units that takes too long. Each worker is assumed to do an equal part, as without balancing.
    /// The work is `count` iterations or units, of which `field` is the number.
    pub(in super::super) fn check_work(&self, work: f64, field: &str, count: u64) -> Result<(), Error> {
        let crowding = self.crowding();
        let speeds =
            || self.groups.iter().flat_map(Group::speeds).map(|(speed, count)| (speed / crowding, count));
        let (workers, all) = speeds().fold((0.0, 0.0), |(workers, all), (speed, count)| {
            (workers + count, all + count * speed * self.scale)
        });
        let slowest =
            self.groups.iter().enumerate().filter_map(|(place, group)| Some((place, group.slowest()?)));
        let Some((place, slowest)) = slowest.min_by(|one, other| one.1.total_cmp(&other.1)) else {
            return self.check_ideal(f64::INFINITY, field, count);
        };
        self.check_ideal(work / all, field, count)?;
        let (part, most_s) = (work / workers / self.scale * crowding, IDEAL_MOST_S.min(ALL_MOST_S / workers));
        let longest_s = part / slowest;
        if longest_s > most_s {
            let what = format!(
                "an equal part of the work takes {longest_s:.0e} s at speed {slowest}, expected {most_s:.0e} s at most"
            );
            return Err(self.wrong(&format!("hosts[{place}].speed"), &"", &what));
        }
        self.check_changes(part, longest_s, work / all * workers)
    }

    /// Refuses changes of speed that are too many to simulate. A worker of speed 1 takes `part` seconds for its part of the
    /// work, the slowest `longest_s`. The ideal time is `ideal_s`, for each worker once.
    fn check_changes(&self, part: f64, longest_s: f64, ideal_s: f64) -> Result<(), Error> {
        let slice = self.description.costs.time_slice.filter(|&slice| slice > 0);
        let changes = self.changes(part, longest_s, slice)?;
        let too_many = [
            ("costs.time_slice", changes.slices, "longer slices"),
            ("hosts[0].ranks", changes.turns, "fewer ranks, more vCPUs"),
        ];
        if let Some((field, count, mend)) = too_many.into_iter().find(|(_, count, _)| *count > CHANGES_MOST) {
            let what = format!(
                "{count:.0e} turns on vCPUs to simulate, expected {CHANGES_MOST:e} at most: {mend}, or fewer iterations"
            );
            return Err(self.wrong(field, &"", &what));
        }
        let added = changes.schedules * ideal_s / stretch_s();
        if changes.toggles > CHANGES_MOST || added > ADDED_MOST {
            let place = self.description.neighbours.iter().position(|given| given.random.is_some());
            let field = format!("neighbours[{}].random", place.unwrap_or(0));
            let (found, most) = if changes.toggles > CHANGES_MOST {
                (changes.toggles, CHANGES_MOST)
            } else {
                (added, ADDED_MOST)
            };
            let what = format!(
                "{found:.0e} changes of speed to simulate, expected {most:e} at most: fewer such neighbours, or iterations"
            );
            return Err(self.wrong(&field, &"", &what));
        }
        Ok(())
    }

    /// Estimates the changes of speed in a run.
    fn changes(&self, part: f64, longest_s: f64, slice: Option<Nanos>) -> Result<Changes, Error> {
        let mut changes = Changes::default();
        // Each turn of the worker is followed by one of the others.
        let turns = |busy_s: f64| slice.map_or(0.0, |slice| 2.0 * busy_s / as_s(slice));
        for (place, given) in self.description.neighbours.iter().enumerate() {
            let there_s = stays_s(given);
            for host in self.selected(place, given)? {
                let group = self.group_of_host(host);
                let workers = if given.vcpu.is_some() { 1.0 } else { f64::from(group.ranks * group.workers) };
                if given.random.is_some() {
                    changes.toggles += workers * longest_s / stretch_s();
                    changes.schedules += 1.0;
                }
                let busy_s = group.slowest().map_or(0.0, |speed| (part / speed).min(there_s));
                if given.beside == Place::Vcpu {
                    changes.slices += workers * turns(busy_s);
                }
            }
        }
        if self.shared_vcpus().is_some() {
            let all = self.groups.iter().flat_map(Group::speeds).filter(|(speed, _)| *speed > 0.0);
            changes.turns = all.map(|(speed, workers)| workers * part / speed / as_s(Crowded::TURN)).sum();
        }
        Ok(changes)
    }

    /// Number of workers per vCPU where they take turns, else 1.
    fn crowding(&self) -> f64 {
        let workers = self.groups.first().map_or(1, |group| group.ranks * group.workers);
        self.shared_vcpus().map_or(1.0, |vcpus| f64::from(workers) / f64::from(vcpus))
    }

    /// Refuses a run that never ends or takes too long. `ideal_s` is about the best time of its `count` iterations or units,
    /// of which `field` is the number.
    pub(in super::super) fn check_ideal(&self, ideal_s: f64, field: &str, count: u64) -> Result<(), Error> {
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
}

/// The time for which neighbours stay, s; infinite if they never leave.
fn stays_s(given: &Neighbours) -> f64 {
    given.to.map_or(f64::INFINITY, as_s) - given.from.map_or(0.0, as_s)
}
