//! Makes one run of a program under disturbances: the program on the caller's thread, the disturbance injector on
//! another. The program is a closure that records its steps in an [`IterationClock`].

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

use caribou::Launch;

use super::disturbance::Disturbances;
use super::disturbance::injector::DisturbanceInjector;
use super::error::Error;
use super::iteration_clock::IterationClock;
use super::launch;
use super::machine::Machine;
use super::program::Total;

/// The settings that all runs of a comparison share.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Steps of each run.
    pub steps: u32,
    /// The name of a step.
    pub step: &'static str,
    /// The work of a run, for the progress line.
    pub total: Total,
    /// Ranks.
    pub ranks: u32,
    /// Workers of each rank; `None` if the runtime chooses when the run starts.
    pub workers: Option<u32>,
    /// Disturbances of each run.
    pub disturbances: Disturbances,
    /// The machine it runs on.
    pub machine: Machine,
    /// How the process was started: with all ranks in it, or as one of them.
    pub launch: Launch,
}

/// The result of a run under disturbances.
#[derive(Debug)]
pub struct DisturbedRun<T> {
    /// The value that the program returned.
    pub outcome: T,
    /// True if every requested quota was in force.
    pub quotas_held: bool,
    /// The clock in which the program recorded its steps.
    pub clock: Arc<IterationClock>,
}

impl Experiment {
    /// Checks that each disturbance has an existing rank, begins before the end, and finds a vCPU per worker.
    ///
    /// # Errors
    /// [`Error::Usage`], naming the option.
    pub fn check(&self) -> Result<(), Error> {
        let neighbours = self.disturbances.neighbours.iter().map(|spec| ("--neighbour", spec.rank));
        let quotas = self.disturbances.quotas.iter().map(|spec| ("--quota", spec.rank));
        let slowed = self.disturbances.slowed.iter().map(|spec| ("--slow", spec.rank));
        for (option, rank) in neighbours.chain(quotas).chain(slowed) {
            if rank >= self.ranks {
                let last = self.ranks - 1;
                return Err(Error::Usage(format!(
                    "{option} {rank}: there is no rank {rank}, the last one is {last}"
                )));
            }
        }
        let mut limited: Vec<u32> = self.disturbances.quotas.iter().map(|spec| spec.rank).collect();
        limited.sort_unstable();
        if let Some(twice) = limited.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::Usage(format!("--quota: rank {} has two quotas, expected one", twice[0])));
        }
        for spec in &self.disturbances.neighbours {
            if spec.from >= self.steps {
                let (Self { step, steps, .. }, rank, from) = (self, spec.rank, spec.from);
                return Err(Error::Usage(format!(
                    "--neighbour on rank {rank} from {step} {from} on: the run ends at {step} {steps}"
                )));
            }
        }
        if self.disturbances.neighbours.is_empty() { Ok(()) } else { self.check_room() }
    }

    /// The processes of a job may be on several hosts, so only the pinning of their workers shows if there is room.
    fn check_room(&self) -> Result<(), Error> {
        let (Launch::Alone, Some(workers)) = (self.launch, self.workers) else { return Ok(()) };
        if self.machine.has_room_for(self.ranks, workers) {
            return Ok(());
        }
        Err(Error::Usage(format!(
            "--neighbour needs a vCPU for each worker: {} ranks of {workers} workers do not fit {} vCPUs",
            self.ranks,
            self.machine.vcpus.len()
        )))
    }

    /// Runs `program` under the disturbances. `lb` is its name in the progress lines.
    ///
    /// `program` runs on this thread and must record every step in the clock. Each process of a job calls this.
    ///
    /// # Errors
    /// The error of `program`, or of a neighbour or a quota: [`Error::System`], [`Error::NotPinned`] and the like.
    ///
    /// # Panics
    /// If `program` panics.
    pub fn run<T>(
        &self,
        lb: &str,
        program: impl FnOnce(&Arc<IterationClock>) -> Result<T, Error>,
    ) -> Result<DisturbedRun<T>, Error> {
        let clock = Arc::new(IterationClock::new(self.steps));
        let over = AtomicBool::new(false);
        let (outcome, directed) = thread::scope(|scope| {
            let direct = || {
                let mut director = DisturbanceInjector::new(self, &clock, lb);
                director.follow(|| over.load(SeqCst)).map(|()| director.quotas_hold())
            };
            let directing = thread::Builder::new().name("director".to_owned()).spawn_scoped(scope, direct);
            // A panic must also end the injector.
            let ran = catch_unwind(AssertUnwindSafe(|| program(&clock)));
            over.store(true, SeqCst);
            let directed = match directing {
                Ok(director) => {
                    director.thread().unpark();
                    director.join().unwrap_or_else(|panic| resume_unwind(panic))
                }
                // Other processes need this process in the run, so the program ran without an injector.
                Err(source) => Err(Error::System { what: "a thread for the director".to_owned(), source }),
            };
            (ran.unwrap_or_else(|panic| resume_unwind(panic)), directed)
        });
        let outcome = outcome?;
        let agreed = match self.disturbances.need_vcpus() {
            true => launch::agree_on_disturbances(self.launch, directed.as_ref().err()),
            false => Ok(()),
        };
        // An error of this process goes before the disagreement that follows from it.
        let quotas_held = directed?;
        agreed.map(|()| DisturbedRun { outcome, quotas_held, clock })
    }

    /// True if this process has `rank`, and so disturbs it.
    #[must_use]
    pub fn is_here(&self, rank: u32) -> bool {
        match self.launch {
            Launch::Alone => true,
            Launch::Together { process, .. } => process == rank,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disturbance::{NeighbourSpec, QuotaSpec, SlowSpec};

    fn experiment(neighbours: &[&str]) -> Experiment {
        let neighbours = neighbours.iter().map(|spec| NeighbourSpec::parse(spec).unwrap()).collect();
        let machine =
            Machine { vcpus: vec![0, 1], quota: None, model: String::new(), vcpu_distance: "unknown" };
        let disturbances = Disturbances { neighbours, ..Disturbances::default() };
        let (workers, launch) = (Some(1), Launch::Alone);
        let total = Total { count: 8, unit: "iterations" };
        Experiment { steps: 8, step: "iteration", total, ranks: 2, workers, disturbances, machine, launch }
    }

    #[test]
    fn a_disturbance_nobody_would_feel_is_refused() {
        let complaint = |experiment: &Experiment| experiment.check().unwrap_err().to_string();
        assert!(complaint(&experiment(&["2"])).contains("the last one is 1"));
        assert!(
            complaint(&experiment(&["1:8-9"]))
                .contains("rank 1 from iteration 8 on: the run ends at iteration 8")
        );
        let crowded = Experiment { workers: Some(2), ..experiment(&["1"]) };
        assert!(complaint(&crowded).contains("do not fit 2 vCPUs"));
        let mut quota = experiment(&[]);
        quota.disturbances.quotas.push(QuotaSpec { rank: 5, share: 0.5 });
        assert!(complaint(&quota).contains("--quota 5"));
        quota.disturbances.quotas =
            vec![QuotaSpec { rank: 1, share: 0.5 }, QuotaSpec { rank: 1, share: 0.2 }];
        assert!(complaint(&quota).contains("rank 1 has two quotas"));
        let mut slow = experiment(&[]);
        slow.disturbances.slowed.push(SlowSpec { rank: 5, factor: 2.0 });
        assert!(complaint(&slow).contains("--slow 5"));
        assert!(experiment(&["0", "1:2-4:0.5"]).check().is_ok());
    }

    #[test]
    fn each_process_disturbs_its_own_rank() {
        let alone = experiment(&["0", "1"]);
        assert!(alone.is_here(0) && alone.is_here(1));
        let second = Experiment { launch: Launch::Together { process: 1, processes: 2 }, ..alone };
        assert!(!second.is_here(0) && second.is_here(1));
    }

    #[test]
    fn a_run_keeps_the_programs_times_and_its_outcome_on_the_callers_thread() {
        let caller = thread::current().id();
        let run = experiment(&[]).run("none", |clock| {
            assert_eq!(thread::current().id(), caller);
            clock.record_start(100);
            (1..=8).for_each(|completed| clock.record(completed, 100 + 10 * u64::from(completed)));
            Ok("done")
        });
        let DisturbedRun { outcome, quotas_held, clock } = run.unwrap();
        let (start_ns, complete_ns) = clock.times_ns();
        assert_eq!((outcome, quotas_held, start_ns, complete_ns.len()), ("done", true, 100, 8));
    }

    #[test]
    fn an_error_of_the_program_is_the_error_of_the_run() {
        let run = experiment(&[]).run::<()>("none", |_| Err(Error::Usage("no".to_owned())));
        assert_eq!(run.unwrap_err().to_string(), "no");
    }

    #[test]
    fn a_panic_of_the_program_does_not_leave_the_director_waiting() {
        let run = || experiment(&[]).run::<()>("none", |_| panic!("on purpose"));
        let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"on purpose"));
    }

    #[test]
    fn a_neighbour_without_a_vcpu_to_go_to_is_an_error_and_the_run_goes_on() {
        let mut ended = false;
        let run = experiment(&["1"]).run("none", |clock| {
            clock.record(1, 10);
            thread::sleep(std::time::Duration::from_millis(50));
            ended = true;
            Ok(())
        });
        assert!(matches!(run, Err(Error::NotPinned { rank: 1 })) && ended);
    }
}
