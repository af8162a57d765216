//! Runs the play around a run: neighbours enter and leave at their iterations, quotas close in, the progress is shown.
//!
//! The program computes on its own thread; the director sleeps on another, and is woken when the next neighbour is due.

use std::time::Duration;

use crate::disturbance::{NeighbourSpec, QuotaSpec};
use crate::error::Error;
use crate::experiment::Experiment;
use crate::iteration_clock::IterationClock;
use crate::neighbour::Neighbour;
use crate::progress::Progress;
use crate::quota::{Quota, worker_threads};

/// Ten looks a second are smooth enough for a bar, and too few to be seen in an iteration.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// While workers are awaited, or the run is about to end, somebody waits for us.
const LOOK_OFTEN: Duration = Duration::from_millis(2);

pub(crate) struct Director<'a> {
    experiment: &'a Experiment,
    clock: &'a IterationClock,
    progress: Progress,
    neighbours: Vec<(&'a NeighbourSpec, Option<Neighbour>)>,
    quotas: Vec<ConfinedRank<'a>>,
}

struct ConfinedRank<'a> {
    spec: &'a QuotaSpec,
    quota: Quota,
    confined: bool,
}

impl<'a> Director<'a> {
    /// Prepares the quotas and starts the neighbours that are there from the beginning.
    pub(crate) fn new(
        experiment: &'a Experiment,
        clock: &'a IterationClock,
        lb: &str,
    ) -> Result<Self, Error> {
        let progress = Progress::new(lb, experiment.iterations);
        let neighbours = experiment.disturbances.neighbours.iter().map(|spec| (spec, None)).collect();
        let mut director = Self { experiment, clock, progress, neighbours, quotas: Vec::new() };
        for spec in &experiment.disturbances.quotas {
            let vcpus = spec.share * f64::from(experiment.workers);
            match Quota::new(&format!("rank-{}", spec.rank), vcpus) {
                Ok(quota) => director.quotas.push(ConfinedRank { spec, quota, confined: false }),
                Err(error) => director.progress.note(&format!(
                    "rank {} runs without its quota: control groups are not writable here ({error})",
                    spec.rank
                )),
            }
        }
        director.move_neighbours(0)?;
        Ok(director)
    }

    /// Follows the run until `is_over`.
    pub(crate) fn follow(&mut self, is_over: impl Fn() -> bool) -> Result<(), Error> {
        while !is_over() {
            let completed = self.clock.completed();
            self.move_neighbours(completed)?;
            self.progress.show(completed);
            let awaiting_workers = !self.confine_workers()?;
            let alarm = self.next_cue(completed);
            self.clock.wake_me_at(alarm);
            if self.clock.completed() < alarm || completed == self.experiment.iterations {
                let ending = completed == self.experiment.iterations;
                std::thread::park_timeout(if awaiting_workers || ending { LOOK_OFTEN } else { LOOK_EVERY });
            }
        }
        self.progress.show(self.clock.completed());
        Ok(())
    }

    /// Whether every quota that was asked for holds the threads it is meant for.
    pub(crate) fn quotas_hold(&self) -> bool {
        self.quotas.len() == self.experiment.disturbances.quotas.len()
            && self.quotas.iter().all(|rank| rank.confined)
    }

    fn move_neighbours(&mut self, completed: u32) -> Result<(), Error> {
        let over = completed == self.experiment.iterations;
        for (spec, neighbour) in &mut self.neighbours {
            if !spec.acts(completed) || over {
                *neighbour = None;
            } else if neighbour.is_none() {
                *neighbour = Some(Neighbour::start(self.experiment.vcpu_of(spec.rank)?, spec.duty)?);
            }
        }
        Ok(())
    }

    /// Puts workers that have appeared under their quota; false while some rank's are missing.
    fn confine_workers(&mut self) -> Result<bool, Error> {
        for rank in self.quotas.iter_mut().filter(|rank| !rank.confined) {
            let threads = worker_threads(rank.spec.rank);
            if threads.len() == self.experiment.workers as usize {
                let what = format!("cannot put rank {} under its quota", rank.spec.rank);
                rank.quota.confine(&threads).map_err(|source| Error::System { what, source })?;
                rank.confined = true;
            }
        }
        Ok(self.quotas.iter().all(|rank| rank.confined))
    }

    /// The next number of completed iterations at which there is something to do.
    fn next_cue(&self, completed: u32) -> u32 {
        let cues = self.neighbours.iter().flat_map(|(spec, _)| [Some(spec.from), spec.to]).flatten();
        cues.filter(|&cue| cue > completed).fold(self.experiment.iterations, u32::min)
    }
}
