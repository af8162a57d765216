//! Puts measured hosts under workers: the share of its speed that each has left, by traces.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rustc_hash::FxHashSet;
use virtual_cluster::{PerWorker, Series, on_hosts};

use super::super::super::host_trace::{self, Hosts};
use super::super::Neighbours;
use super::duration::ADDED_MOST;
use super::{Cluster, as_s};
use crate::{Error, input};

impl Cluster<'_> {
    /// For each entry with a trace, the share of each worker's host that is left for it, and whether other processes take
    /// turns with the workers.
    pub(super) fn measured(&self) -> Result<Vec<(PerWorker, bool)>, Error> {
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
        self.check_jumps(&hosts, &field("trace"))?;
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

    /// Refuses traces with so many changes of speed that the ideal time takes too long to add up.
    fn check_jumps(&self, hosts: &Hosts, field: &str) -> Result<(), Error> {
        let times: FxHashSet<u64> = hosts.parts.iter().flat_map(Series::jumps).map(f64::to_bits).collect();
        let workers = self.workers().into_iter().map(f64::from).sum::<f64>();
        let added = times.len() as f64 * workers;
        if added <= ADDED_MOST {
            return Ok(());
        }
        let what = format!(
            "{added:.0e} changes of speed to simulate, {} for each worker, expected {ADDED_MOST:e} at most",
            times.len()
        );
        Err(self.wrong(field, &"", &what))
    }
}
