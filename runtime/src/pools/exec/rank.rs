//! Runs one rank of a pool with its threads.
//!
//! | thread | does |
//! |---|---|
//! | the *communication thread*, which is the calling thread | handles packets, passes time to the driver, collects results |
//! | one thread per worker, on its vCPU | requests a range from the driver, executes it, requests the next |
//!
//! Each thread runs a [`task`](super::task), in steps with sleep between them. The communication thread mostly sleeps.
//!
//! # Decisions
//! - *A separate thread for communication*: an iteration may take seconds, and other ranks must not wait that long. The
//!   thread has no vCPU of its own, because a few hundred wake-ups per run have no measurable cost.
//! - *A plain mutex*: each worker takes one lock once per range (0.1 s by default).

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use lb_strategies::Shape;
use lb_strategies::pool::{Action, Input, Machine, Output, PoolRank};

use super::checkpoint::RankCheckpoints;
use super::comm_thread::CommThread;
use super::shared_driver::{Inner, SharedDriver};
use super::task::run_task;
use super::worker::Worker;
use crate::config::Config;
use crate::error::Error;
use crate::ids::{ROOT, Rank, WorkerId};
use crate::launch::Launch;
use crate::measure::counters::{RankCounters, SampleTrigger};
use crate::panics::panic_message;
use crate::pools::core::packet::{Part, PoolPacket, PoolResult};
use crate::pools::core::work::{Accumulated, PoolWork};
use crate::run::context::{RankContext, thread_refused};
use crate::run::outcome::Outcome;
use crate::run::resize::{ASK_RANK_0, POLICY_ASSIGNS, ResizeRequests};
use crate::threads::clock::Clock;
use crate::trace::recording::Recording;

/// One rank of a pool, ready to run.
pub(crate) struct PoolRun<'p> {
    pub(crate) work: &'p dyn PoolWork,
    pub(crate) context: RankContext<'p, PoolPacket>,
    /// Set if checkpoints are made.
    pub(crate) checkpoints: Option<RankCheckpoints>,
    /// True if the policy supports ranks without work.
    pub(crate) resizes: bool,
    /// Makes the policy's machine for this rank.
    pub(crate) make: &'p dyn Fn() -> Machine,
    /// Takes the result, once per process.
    pub(crate) deliver: &'p (dyn Fn(Accumulated, PoolResult) + Sync),
}

/// The state that the threads of a rank share.
pub(super) struct Shared<'p> {
    pub(super) work: &'p dyn PoolWork,
    pub(super) rank: Rank,
    pub(super) clock: &'p Clock,
    pub(super) outcome: &'p Outcome,
    pub(super) recording: Arc<Recording>,
    pub(super) shared_driver: SharedDriver,
    /// The performance counters of the workers.
    pub(super) gauges: RankCounters,
    /// A description of calls of the policy, for the report of a panic.
    pub(super) asking: String,
    /// Set if checkpoints are made.
    pub(super) checkpoints: Option<RankCheckpoints>,
    /// The requests to shrink or expand the run, on rank 0, if the policy supports ranks without work.
    pub(super) resizes: Option<Arc<ResizeRequests>>,
}

impl PoolRun<'_> {
    /// Runs the rank. Returns when the results of all ranks are merged, or when the run has failed.
    pub(crate) fn run(self) {
        let RankContext { config, rank, plan, watch, team, clock, outcome, transport, run_recording } =
            self.context;
        let (recording, untraced) = run_recording.rank(rank, &[], &clock);
        let placement = &plan.placements[rank.index()];
        let (machine, refused) = machine(self.make);
        let takes_resizes = self.resizes && rank == ROOT;
        if !self.resizes {
            run_recording.resizes().refuse(POLICY_ASSIGNS);
        } else if rank != ROOT && config.launch() != Launch::Alone {
            run_recording.resizes().refuse(ASK_RANK_0);
        }
        let shared = &Shared {
            work: self.work,
            rank,
            clock: &clock,
            outcome: &outcome,
            recording,
            shared_driver: SharedDriver::new(team, machine, placement.workers),
            gauges: RankCounters::new(placement.workers, config.background),
            asking: asking_policy(config),
            checkpoints: self.checkpoints,
            resizes: takes_resizes.then(|| run_recording.resizes().clone()),
        };
        shared.recording.describe(Box::new(|_| None), config.lb_spec(Shape::Pools));
        shared.recording.iterations_total.get_or_init(|| shared.work.iterations());
        shared.shared_driver.comm_thread().bind_to_thread();
        if shared.recording.has_file() {
            shared.gauges.begin_process_scans(clock.now_ns());
        }
        let mut comm_thread =
            CommThread::new(shared, transport, plan.placements.len() as u32, config, self.deliver);
        if let Some(error) = untraced {
            shared.fail(error);
        }
        comm_thread.begin(refused);
        thread::scope(|scope| {
            for worker in (0..placement.workers).map(WorkerId) {
                let builder = thread::Builder::new().name(format!("caribou {rank}.{worker}"));
                let run = move || {
                    let _bound = placement.pin_worker(rank, worker, watch);
                    let sleeper = shared.shared_driver.worker(worker);
                    sleeper.bind_to_thread();
                    shared.gauges.workers[worker.index()].bind_to_thread();
                    run_task(&mut Worker::new(shared, worker), shared, sleeper);
                };
                let started = builder.spawn_scoped(scope, move || shared.catching("starting a worker", run));
                if let Err(why) = started {
                    shared.fail(thread_refused(rank, &why));
                    break;
                }
            }
            run_task(&mut comm_thread, shared, shared.shared_driver.comm_thread());
        });
        comm_thread.close();
        outcome.finish(clock.now_ns());
    }
}

/// Replaces a machine that could not be made.
struct NullMachine;

impl PoolRank for NullMachine {
    type Message = ();

    fn step(&mut self, _now: u64, _input: Input<()>, _out: &mut Vec<Output<()>>) {}
}

/// Makes the policy's machine. If that panics, returns a [`NullMachine`] and the panic.
pub(super) fn machine(make: &dyn Fn() -> Machine) -> (Machine, Option<Box<dyn Any + Send>>) {
    match catch_unwind(AssertUnwindSafe(make)) {
        Ok(machine) => (machine, None),
        Err(panic) => (Machine::new(NullMachine), Some(panic)),
    }
}

/// A description of calls of the policy, for the report of a panic.
pub(super) fn asking_policy(config: &Config) -> String {
    format!("calling the policy `{}`", config.lb_spec(Shape::Pools))
}

impl Shared<'_> {
    /// Gives the driver an input and carries out the resulting actions.
    pub(super) fn with<T>(&self, input: impl FnOnce(&mut Inner, u64, &mut Vec<Action>) -> T) -> T {
        self.shared_driver.with(|inner, actions| input(inner, self.clock.now_ns(), actions))
    }

    /// Ends the run on this rank. The communication thread notifies the other ranks.
    pub(super) fn fail(&self, error: Error) {
        self.outcome.fail(error);
        self.shared_driver.team.stop();
    }

    /// Calls user code or the policy; a panic there ends the run.
    pub(super) fn catching(&self, doing: &str, act: impl FnOnce()) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(act)) {
            self.fail(Error::Panicked {
                rank: self.rank,
                doing: doing.into(),
                panic: panic_message(&*panic),
            });
        }
    }

    /// Adds a sample of the counters to the record of the run, unless the last sample is too recent.
    pub(super) fn observe(&self, when: SampleTrigger) {
        if self.recording.profiled
            && let Some(sample) = self.gauges.sample_for_record(self.clock.now_ns(), when)
        {
            self.recording.sample(sample);
            self.recording.competing_processes(|| self.gauges.competing_processes(&sample));
        }
    }

    /// Takes the rank's part of the result, after all workers have handed in theirs. Merges in worker order.
    pub(super) fn take_part(&self) -> Option<(Accumulated, Part)> {
        let (mut parts, messages, said) = {
            let mut inner = self.shared_driver.lock();
            if !inner.has_part() {
                return None;
            }
            (std::mem::take(&mut inner.parts), inner.driver.messages(), inner.driver.said())
        };
        self.recording.count(messages);
        parts.sort_unstable_by_key(|(_, _, record)| record.worker);
        let mut part = Part { messages, said, ..Part::default() };
        let mut all = None;
        for (accumulated, checksum, record) in parts {
            part.checksum.add(checksum);
            part.workers.push(record);
            self.work.gather(&mut all, accumulated);
        }
        Some((all.expect("a rank has a worker"), part))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::checkpoint::PoolSignature;
    use crate::measure::cpu_limits::CpuLimitsWatch;
    use crate::measure::topology::{self, plan::plan};
    use crate::pools::core::work::Restored;
    use crate::run::recording::{RunName, Session};
    use crate::threads::team::Team;
    use crate::wire::WireError;

    /// Work without executed iterations.
    struct Untouched;

    impl PoolWork for Untouched {
        fn iterations(&self) -> u64 {
            8
        }

        fn init(&self) -> Accumulated {
            unreachable!()
        }

        fn indices(&self, numbers: &Range<u64>) -> Vec<Range<u64>> {
            vec![numbers.clone()]
        }

        fn take_restored(&self) -> Option<Restored> {
            None
        }

        fn signature(&self) -> PoolSignature {
            unreachable!()
        }

        fn execute(&self, _: &mut Accumulated, _: Range<u64>) {}

        fn merge(&self, _: &mut Accumulated, _: Accumulated) {}

        fn encode(&self, _: &Accumulated) -> Result<Vec<u8>, WireError> {
            unreachable!()
        }

        fn decode(&self, _: &[u8]) -> Result<Accumulated, WireError> {
            unreachable!()
        }

        fn may_be_cancelled(&self) -> bool {
            false
        }

        fn is_cancelled(&self) -> bool {
            false
        }

        fn progress_interval_ns(&self) -> Option<u64> {
            None
        }

        fn progress(&self, _: u64, _: u64) {}
    }

    #[test]
    fn a_worker_that_panics_before_it_begins_ends_the_run() {
        let (config, outcome) = (Config::default(), Arc::<Outcome>::default());
        let mut plan =
            plan(&[topology::rank_resources(Some(1))], config.pin).expect("one worker can be placed");
        let name = RunName::new(&config).expect("no trace is wanted");
        let run_recording = Session::begin(&config, Shape::Pools, "silent", &plan, name);
        // With one vCPU too few.
        plan.placements[0].vcpus = Some(Vec::new());
        let context = RankContext {
            config: &config,
            rank: Rank(0),
            plan: &plan,
            watch: &CpuLimitsWatch::start(drop),
            team: Arc::new(Team::new(2)),
            clock: Clock::machine(),
            outcome: outcome.clone(),
            run_recording: &run_recording,
            transport: None,
        };
        PoolRun {
            work: &Untouched,
            context,
            checkpoints: None,
            resizes: false,
            make: &|| Machine::new(NullMachine),
            deliver: &|_, _| {},
        }
        .run();
        let Some(Error::Panicked { doing, .. }) = outcome.error() else { panic!("no panic") };
        assert_eq!(doing, "starting a worker");
    }
}
