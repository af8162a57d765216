//! Applies the disturbances of a run: starts and ends neighbours (busy processes) at their iterations, puts workers
//! under CPU quotas, and shows the progress. The program runs on its caller's thread. The injector sleeps on a second
//! thread and is woken when the next neighbour is due. Each process of a job has an injector, which disturbs only its
//! own rank.

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

/// Time between two checks: short enough for a smooth progress bar, too long to slow an iteration visibly.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Time between two checks while workers are missing.
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
    /// Not all workers of the rank have started.
    Awaiting,
    /// In force until dropped.
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

    /// Applies the disturbances until `is_over` returns true. The thread that ends the run unparks this thread.
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
        // A neighbour may have ended since the last check.
        self.update_neighbours(completed)?;
        self.neighbours
            .iter_mut()
            .try_for_each(|(spec, neighbour)| stop_neighbour(spec, neighbour, completed))
    }

    /// The amount of work in `completed` steps.
    fn done(&self, completed: u32) -> u64 {
        let Experiment { steps, total, .. } = self.experiment;
        (u128::from(total.count) * u128::from(completed) / u128::from((*steps).max(1))) as u64
    }

    /// True if every requested quota of this process's ranks is in force. Other processes report their own refusals.
    pub(crate) fn quotas_hold(&self) -> bool {
        self.quotas.iter().all(|(_, grip)| matches!(grip, QuotaState::Held { .. }))
    }

    /// Starts and ends neighbours. Returns false while a neighbour is due but its worker is not pinned yet.
    fn update_neighbours(&mut self, completed: u32) -> Result<bool, Error> {
        let (steps, launch) = (self.experiment.steps, self.experiment.launch);
        let mut all_there = true;
        for (spec, neighbour) in &mut self.neighbours {
            if let Some(status) = neighbour.as_mut().and_then(Neighbour::ended) {
                // A run with too little disturbance is worthless. At its maximum age a neighbour exits with success.
                if !status.success() {
                    return Err(Error::NeighbourEnded { rank: spec.rank, completed, status });
                }
                *neighbour = None;
            }
            if !spec.acts(completed) || completed == steps {
                stop_neighbour(spec, neighbour, completed)?;
            } else if neighbour.is_none() {
                // Under MPI, libraries may bind the main thread (worker 0) elsewhere while they inspect the machine.
                let seated = completed > 0 || launch == Launch::Alone;
                match seated.then(|| workers::first_vcpu(spec.rank, launch)).flatten() {
                    Some(vcpu) => *neighbour = Some(Neighbour::start(vcpu, spec.duty, spec.seed)?),
                    // Workers are pinned before the first iteration and unpinned after the last.
                    None if (1..steps).contains(&self.clock.completed()) => {
                        return Err(Error::NotPinned { rank: spec.rank });
                    }
                    None => all_there = false,
                }
            }
        }
        Ok(all_there)
    }

    /// Puts the workers of each rank under its quota. Returns false while workers of a rank are missing.
    fn confine_workers(&mut self, completed: u32) -> Result<bool, Error> {
        let mut all_there = true;
        for (spec, grip) in &mut self.quotas {
            if !matches!(grip, QuotaState::Awaiting) {
                continue;
            }
            let threads = workers::of_rank(spec.rank, self.experiment.launch);
            // If the run chooses the number of workers, all of them exist when the first step is complete.
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

    /// The next number of completed iterations at which a neighbour starts or ends, or at which the run ends.
    fn next_change(&self, completed: u32) -> u32 {
        let cues = self.neighbours.iter().flat_map(|(spec, _)| [Some(spec.from), spec.to]).flatten();
        cues.filter(|&cue| cue > completed).fold(self.experiment.steps, u32::min)
    }
}

/// Ends a neighbour, if any. Returns an error if a signal had stopped it: the run was not disturbed as requested.
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
