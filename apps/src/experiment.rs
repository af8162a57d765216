//! One program, run once per strategy under the same disturbances.
//!
//! It knows nothing of what the program computes: the program is a closure that records its iterations in a clock and
//! returns its syncs.

use crate::director::Director;
use crate::disturbance::Disturbances;
use crate::error::Error;
use crate::iteration_clock::IterationClock;
use crate::machine::Machine;
use crate::record::{Run, SyncRecord};
use std::sync::Arc;

/// What all runs of a comparison share.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Iterations of each run.
    pub iterations: u32,
    /// Ranks.
    pub ranks: u32,
    /// Workers of each rank.
    pub workers: u32,
    /// What is done to each run.
    pub disturbances: Disturbances,
    /// Where it runs.
    pub machine: Machine,
}

impl Experiment {
    /// Checks that every disturbance has a rank, and every neighbour a vCPU, to disturb.
    ///
    /// # Errors
    /// [`Error::Usage`], naming the option.
    pub fn check(&self) -> Result<(), Error> {
        let neighbours = self.disturbances.neighbours.iter().map(|spec| ("--neighbour", spec.rank));
        let quotas = self.disturbances.quotas.iter().map(|spec| ("--quota", spec.rank));
        for (option, rank) in neighbours.clone().chain(quotas) {
            if rank >= self.ranks {
                let last = self.ranks - 1;
                return Err(Error::Usage(format!(
                    "{option} {rank}: there is no rank {rank}, the last one is {last}"
                )));
            }
        }
        for spec in &self.disturbances.neighbours {
            if spec.from >= self.iterations {
                return Err(Error::Usage(format!(
                    "--neighbour {}:{}-...: the run ends at iteration {}",
                    spec.rank, spec.from, self.iterations
                )));
            }
        }
        neighbours.take(1).try_for_each(|(_, rank)| self.vcpu_of(rank).map(|_| ()))
    }

    /// Runs `program` with the strategy `lb`, which it gets only as a name to record.
    ///
    /// `program` must record every iteration in the clock and return its syncs; it runs on a thread of its own.
    ///
    /// # Errors
    /// The program's own, or [`Error::System`] when a neighbour or a quota could not be had.
    ///
    /// # Panics
    /// When `program` does.
    pub fn run(
        &self,
        lb: &str,
        program: impl FnOnce(&Arc<IterationClock>) -> Result<Vec<SyncRecord>, Error> + Send,
    ) -> Result<Run, Error> {
        let clock = Arc::new(IterationClock::new(self.iterations));
        let mut director = Director::new(self, &clock, lb)?;
        let syncs = std::thread::scope(|scope| {
            let running = scope.spawn(|| program(&clock));
            let directed = director.follow(|| running.is_finished());
            let syncs = running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            directed.map(|()| syncs)
        })?;
        let (start_ns, complete_ns) = clock.times_ns();
        Ok(Run { lb: lb.to_owned(), quotas_held: director.quotas_hold(), start_ns, complete_ns, syncs })
    }

    /// The vCPU of a rank's first worker.
    ///
    /// # Errors
    /// [`Error::Usage`] when the ranks do not have vCPUs of their own: a neighbour would then disturb all of them.
    pub fn vcpu_of(&self, rank: u32) -> Result<usize, Error> {
        let vcpu = self.machine.vcpu_of(rank, self.ranks, self.workers);
        vcpu.ok_or_else(|| {
            Error::Usage(format!(
                "--neighbour needs a vCPU for each worker: {} ranks of {} workers do not fit {} vCPUs",
                self.ranks,
                self.workers,
                self.machine.vcpus.len()
            ))
        })
    }

    /// The best gain possible over no balancing, if the disturbances could be had; see
    /// [`Disturbances::possible_gain`]. `None` when workers share vCPUs, which the formula does not describe.
    #[must_use]
    pub fn possible_gain(&self) -> Option<f64> {
        let own_vcpus = self.machine.vcpu_of(0, self.ranks, self.workers).is_some();
        own_vcpus.then(|| self.disturbances.possible_gain(self.iterations, self.ranks, self.workers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disturbance::{NeighbourSpec, QuotaSpec};

    fn experiment(neighbours: &[&str]) -> Experiment {
        let neighbours = neighbours.iter().map(|spec| NeighbourSpec::parse(spec).unwrap()).collect();
        let machine = Machine { vcpus: vec![0, 1], model: String::new(), vcpu_distance: "unknown" };
        let disturbances = Disturbances { neighbours, quotas: Vec::new() };
        Experiment { iterations: 8, ranks: 2, workers: 1, disturbances, machine }
    }

    #[test]
    fn a_disturbance_nobody_would_feel_is_refused() {
        let complaint = |experiment: &Experiment| experiment.check().unwrap_err().to_string();
        assert!(complaint(&experiment(&["2"])).contains("the last one is 1"));
        assert!(complaint(&experiment(&["1:8-9"])).contains("ends at iteration 8"));
        let crowded = Experiment { workers: 2, ..experiment(&["1"]) };
        assert!(complaint(&crowded).contains("do not fit 2 vCPUs"));
        assert_eq!(crowded.possible_gain(), None);
        let mut quota = experiment(&[]);
        quota.disturbances.quotas.push(QuotaSpec { rank: 5, share: 0.5 });
        assert!(complaint(&quota).contains("--quota 5"));
        assert!(experiment(&["0", "1:2-4:0.5"]).check().is_ok());
    }

    #[test]
    fn a_run_keeps_the_programs_times_and_syncs() {
        let run = experiment(&[]).run("none", |clock| {
            clock.record_start(100);
            (1..=8).for_each(|completed| clock.record(completed, 100 + 10 * u64::from(completed)));
            Ok(vec![SyncRecord { at_ns: 140, ..Default::default() }])
        });
        let run = run.unwrap();
        assert_eq!((run.start_ns, run.iterations(), run.syncs.len()), (100, 8, 1));
    }

    #[test]
    fn an_error_of_the_program_is_the_error_of_the_run() {
        let run = experiment(&[]).run("none", |_| Err(Error::Usage("no".to_owned())));
        assert_eq!(run.unwrap_err().to_string(), "no");
    }
}
