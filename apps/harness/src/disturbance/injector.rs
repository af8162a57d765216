//! Runs the play around a run: neighbours enter and leave at their iterations, quotas close in, the progress is shown.
//!
//! The program computes on the thread that started it; the director sleeps on another, and is woken when the next
//! neighbour is due. Of several processes each has a director, for what disturbs its own rank.

use std::time::Duration;

use caribou::Launch;

use crate::disturbance::neighbour::Neighbour;
use crate::disturbance::quota::Quota;
use crate::disturbance::workers;
use crate::disturbance::{NeighbourSpec, QuotaSpec};
use crate::error::Error;
use crate::experiment::Experiment;
use crate::iteration_clock::IterationClock;
use crate::progress::Progress;

/// Ten looks a second are smooth enough for a bar, and too few to be seen in an iteration.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// While workers are awaited.
const LOOK_OFTEN: Duration = Duration::from_millis(2);

pub(crate) struct DisturbanceInjector<'a> {
    experiment: &'a Experiment,
    clock: &'a IterationClock,
    progress: Progress,
    neighbours: Vec<(&'a NeighbourSpec, Option<Neighbour>)>,
    quotas: Vec<(&'a QuotaSpec, QuotaState)>,
}

/// The state of a quota.
enum QuotaState {
    /// The workers it is for are not all there yet.
    Awaiting,
    /// In force, until this is dropped.
    Held { _quota: Quota },
    /// The system does not allow it.
    Refused,
}

impl<'a> DisturbanceInjector<'a> {
    pub(crate) fn new(experiment: &'a Experiment, clock: &'a IterationClock, lb: &str) -> Self {
        let here = |&rank: &u32| experiment.is_here(rank);
        let (neighbours, quotas) = (&experiment.disturbances.neighbours, &experiment.disturbances.quotas);
        Self {
            experiment,
            clock,
            progress: Progress::new(lb, experiment.total, experiment.launch.speaks()),
            neighbours: neighbours.iter().filter(|spec| here(&spec.rank)).map(|spec| (spec, None)).collect(),
            quotas: quotas
                .iter()
                .filter(|spec| here(&spec.rank))
                .map(|spec| (spec, QuotaState::Awaiting))
                .collect(),
        }
    }

    /// Follows the run until `is_over`; the thread that ends the run unparks this one.
    pub(crate) fn follow(&mut self, is_over: impl Fn() -> bool) -> Result<(), Error> {
        while !is_over() {
            let completed = self.clock.completed();
            self.progress.show(self.done(completed));
            let all_there = self.update_neighbours(completed)? & self.confine_workers(completed)?;
            let alarm = self.next_change(completed);
            self.clock.wake_me_at(alarm);
            if self.clock.completed() < alarm || completed == self.experiment.steps {
                std::thread::park_timeout(if all_there { LOOK_EVERY } else { LOOK_OFTEN });
            }
        }
        let completed = self.clock.completed();
        self.progress.show(self.done(completed));
        // One may have ended since the last look.
        self.update_neighbours(completed)?;
        self.neighbours
            .iter_mut()
            .try_for_each(|(spec, neighbour)| stop_neighbour(spec, neighbour, completed))
    }

    /// The part of the whole run that `completed` steps are.
    fn done(&self, completed: u32) -> u64 {
        let Experiment { steps, total, .. } = self.experiment;
        (u128::from(total.count) * u128::from(completed) / u128::from((*steps).max(1))) as u64
    }

    /// Tells if every quota that was asked for holds the threads of this process that it is meant for. Of other processes
    /// nothing is known: each says itself that it could not have one.
    pub(crate) fn quotas_hold(&self) -> bool {
        self.quotas.iter().all(|(_, grip)| matches!(grip, QuotaState::Held { .. }))
    }

    /// Starts and ends neighbours; false while one is due whose worker has not taken its seat.
    fn update_neighbours(&mut self, completed: u32) -> Result<bool, Error> {
        let (steps, launch) = (self.experiment.steps, self.experiment.launch);
        let mut all_there = true;
        for (spec, neighbour) in &mut self.neighbours {
            if let Some(status) = neighbour.as_mut().and_then(Neighbour::ended) {
                // Figures of a run that was not disturbed as it says are worth nothing. Of age they end with success.
                if !status.success() {
                    return Err(Error::NeighbourEnded { rank: spec.rank, completed, status });
                }
                *neighbour = None;
            }
            if !spec.acts(completed) || completed == steps {
                stop_neighbour(spec, neighbour, completed)?;
            } else if neighbour.is_none() {
                // Worker 0 may be a thread that libraries bind here and there while they look around the machine.
                let seated = completed > 0 || launch == Launch::Alone;
                match seated.then(|| workers::first_vcpu(spec.rank, launch)).flatten() {
                    Some(vcpu) => *neighbour = Some(Neighbour::start(vcpu, spec.duty, spec.seed)?),
                    // Workers take their seats before the first iteration, and leave them after the last.
                    None if (1..steps).contains(&self.clock.completed()) => {
                        return Err(Error::NotPinned { rank: spec.rank });
                    }
                    None => all_there = false,
                }
            }
        }
        Ok(all_there)
    }

    /// Puts workers that have appeared under their quota; false while some rank's are missing.
    fn confine_workers(&mut self, completed: u32) -> Result<bool, Error> {
        let mut all_there = true;
        for (spec, grip) in &mut self.quotas {
            if !matches!(grip, QuotaState::Awaiting) {
                continue;
            }
            let threads = workers::of_rank(spec.rank, self.experiment.launch);
            // Where the run chooses how many workers there are, they are all there when they have done something.
            let there = match self.experiment.workers {
                Some(workers) => threads.len() == workers as usize,
                None => completed > 0,
            };
            if !there {
                all_there = false;
                continue;
            }
            *grip = match Quota::new(&format!("rank-{}", spec.rank), spec.share * threads.len() as f64) {
                Ok(quota) => {
                    let what = format!("cannot put rank {} under its quota", spec.rank);
                    quota.confine(&threads).map_err(|source| Error::System { what, source })?;
                    QuotaState::Held { _quota: quota }
                }
                Err(error) => {
                    self.progress.note(&format!(
                        "rank {} runs without its quota: control groups are not writable here ({error})",
                        spec.rank
                    ));
                    QuotaState::Refused
                }
            };
        }
        Ok(all_there)
    }

    /// The next number of completed iterations at which there is something to do.
    fn next_change(&self, completed: u32) -> u32 {
        let cues = self.neighbours.iter().flat_map(|(spec, _)| [Some(spec.from), spec.to]).flatten();
        cues.filter(|&cue| cue > completed).fold(self.experiment.steps, u32::min)
    }
}

/// Ends a neighbour that was there, if it disturbed the run as asked.
fn stop_neighbour(
    spec: &NeighbourSpec,
    neighbour: &mut Option<Neighbour>,
    completed: u32,
) -> Result<(), Error> {
    match neighbour.take() {
        Some(neighbour) if neighbour.was_stopped() => {
            Err(Error::NeighbourStopped { rank: spec.rank, completed })
        }
        _ => Ok(()),
    }
}
