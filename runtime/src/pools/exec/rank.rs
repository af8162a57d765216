//! The threads of one rank of a pool.
//!
//! | thread | does |
//! |---|---|
//! | the *monitor*, which is the calling thread | takes and sends packets, passes time, collects parts; sleeps nearly always |
//! | one for each worker, on its vCPU | asks the driver for a range, executes it, asks again |
//!
//! Each lives in [`task`](super::task), between which it sleeps.
//!
//! A monitor of its own, because an iteration may take seconds and other ranks must not wait for an answer that long. It
//! has no vCPU of its own; a few hundred wake-ups a run cost nothing that could be seen. Workers wait on one lock, once per
//! range (0.1 s by default), so it is a plain mutex.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use lb_strategies::Shape;
use lb_strategies::pool::{Action, Input, Machine, Output, PoolRank};

use super::comm_thread::CommThread;
use super::shared_driver::{Inner, SharedDriver};
use super::task::run_task;
use super::worker::Worker;
use crate::config::Config;
use crate::error::Error;
use crate::ids::{Rank, WorkerId};
use crate::measure::counters::{RankCounters, SampleTrigger};
use crate::panics::panic_message;
use crate::pools::core::packet::{Part, PoolPacket, PoolResult};
use crate::pools::core::work::{Accumulated, PoolWork};
use crate::run::context::{RankContext, thread_refused};
use crate::run::outcome::Outcome;
use crate::threads::clock::Clock;
use crate::trace::recording::Recording;

/// One rank of a pool about to run.
pub(crate) struct PoolRun<'p> {
    pub(crate) work: &'p dyn PoolWork,
    pub(crate) context: RankContext<'p, PoolPacket>,
    /// Makes the policy's machine of this rank.
    pub(crate) make: &'p dyn Fn() -> Machine,
    /// Takes the result, in each process once.
    pub(crate) deliver: &'p (dyn Fn(Accumulated, PoolResult) + Sync),
}

/// The state that the threads of a rank share.
pub(super) struct Shared<'p> {
    pub(super) work: &'p dyn PoolWork,
    pub(super) rank: Rank,
    pub(super) clock: &'p Clock,
    pub(super) outcome: &'p Outcome,
    pub(super) recording: Arc<Recording>,
    pub(super) meeting: SharedDriver,
    /// The gauges of the workers.
    pub(super) gauges: RankCounters,
    /// Asking the policy, in words.
    pub(super) asking: String,
}

impl PoolRun<'_> {
    /// Runs the rank; returns when its part and all others' are in the result, or when the run has failed.
    pub(crate) fn run(self) {
        let RankContext {
            config,
            rank,
            plan,
            watch,
            team,
            clock,
            outcome,
            transport,
            run_recording: session,
        } = self.context;
        let (recording, untraced) = session.rank(rank, &[], &clock);
        let seats = &plan.placements[rank.index()];
        let (machine, refused) = machine(self.make);
        let shared = &Shared {
            work: self.work,
            rank,
            clock: &clock,
            outcome: &outcome,
            recording,
            meeting: SharedDriver::new(team, machine, seats.workers),
            gauges: RankCounters::new(seats.workers, config.background),
            asking: asking_policy(config),
        };
        shared.recording.describe(Box::new(|_| None), config.lb_spec(Shape::Pools));
        shared.recording.iterations_total.get_or_init(|| shared.work.iterations());
        shared.meeting.comm_thread().bind_to_thread();
        if shared.recording.has_file() {
            shared.gauges.begin_process_scans(clock.now_ns());
        }
        let mut monitor =
            CommThread::new(shared, transport, plan.placements.len() as u32, config, self.deliver);
        if let Some(error) = untraced {
            shared.fail(error);
        }
        monitor.begin(refused);
        thread::scope(|scope| {
            for worker in (0..seats.workers).map(WorkerId) {
                let builder = thread::Builder::new().name(format!("caribou {rank}.{worker}"));
                let run = move || {
                    let _bound = seats.pin_worker(rank, worker, watch);
                    let bed = shared.meeting.worker(worker);
                    bed.bind_to_thread();
                    shared.gauges.workers[worker.index()].bind_to_thread();
                    run_task(&mut Worker::new(shared, worker), shared, bed);
                };
                let started = builder.spawn_scoped(scope, move || shared.catching("starting a worker", run));
                if let Err(why) = started {
                    shared.fail(thread_refused(rank, &why));
                    break;
                }
            }
            run_task(&mut monitor, shared, shared.meeting.comm_thread());
        });
        monitor.close();
        outcome.finish(clock.now_ns());
    }
}

/// In place of a machine that could not be made.
struct NullMachine;

impl PoolRank for NullMachine {
    type Message = ();

    fn step(&mut self, _now: u64, _input: Input<()>, _out: &mut Vec<Output<()>>) {}
}

/// The policy's machine; another, and the panic, if it could not be made.
pub(super) fn machine(make: &dyn Fn() -> Machine) -> (Machine, Option<Box<dyn Any + Send>>) {
    match catch_unwind(AssertUnwindSafe(make)) {
        Ok(machine) => (machine, None),
        Err(panic) => (Machine::new(NullMachine), Some(panic)),
    }
}

/// The action in which the policy may panic, in words.
pub(super) fn asking_policy(config: &Config) -> String {
    format!("asking the policy `{}`", config.lb_spec(Shape::Pools))
}

impl Shared<'_> {
    /// Gives the driver an input, and sees to what follows from it.
    pub(super) fn with<T>(&self, input: impl FnOnce(&mut Inner, u64, &mut Vec<Action>) -> T) -> T {
        self.meeting.with(|inner, actions| input(inner, self.clock.now_ns(), actions))
    }

    /// Ends the run on this rank; the monitor tells the others.
    pub(super) fn fail(&self, error: Error) {
        self.outcome.fail(error);
        self.meeting.team.stop();
    }

    /// A panic of user code, or of the policy, ends the run.
    pub(super) fn catching(&self, doing: &str, act: impl FnOnce()) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(act)) {
            self.fail(Error::Panicked {
                rank: self.rank,
                doing: doing.into(),
                panic: panic_message(&*panic),
            });
        }
    }

    /// Keeps for the record how the rank is doing, if that was not done just before.
    pub(super) fn observe(&self, when: SampleTrigger) {
        if self.recording.profiled
            && let Some(sample) = self.gauges.sample_for_record(self.clock.now_ns(), when)
        {
            self.recording.sample(sample);
            self.recording.competing_processes(|| self.gauges.competing_processes(&sample));
        }
    }

    /// The part of this rank, once all workers have handed in; their values merged in their order.
    pub(super) fn part(&self) -> Option<(Accumulated, Part)> {
        let (mut parts, messages, said) = {
            let mut inner = self.meeting.lock();
            if !inner.is_through() {
                return None;
            }
            (std::mem::take(&mut inner.parts), inner.driver.messages(), inner.driver.said())
        };
        self.recording.count(messages);
        parts.sort_unstable_by_key(|(_, _, record)| record.worker);
        let mut part = Part { messages, said, ..Part::default() };
        let mut all = None;
        for (accumulated, tally, record) in parts {
            part.checksum.add(tally);
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
    use crate::measure::cpu_limits::CpuLimitsWatch;
    use crate::measure::topology::{self, plan::plan};
    use crate::run::recording::{RunName, Session};
    use crate::threads::team::Team;
    use crate::wire::WireError;

    /// Work that nobody begins.
    struct Untouched;

    impl PoolWork for Untouched {
        fn iterations(&self) -> u64 {
            8
        }

        fn init(&self) -> Accumulated {
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
        let session = Session::begin(&config, Shape::Pools, "silent", &plan, name);
        // One vCPU too few.
        plan.placements[0].vcpus = Some(Vec::new());
        let seat = RankContext {
            config: &config,
            rank: Rank(0),
            plan: &plan,
            watch: &CpuLimitsWatch::start(),
            team: Arc::new(Team::new(2)),
            clock: Clock::machine(),
            outcome: outcome.clone(),
            run_recording: &session,
            transport: None,
        };
        PoolRun { work: &Untouched, context: seat, make: &|| Machine::new(NullMachine), deliver: &|_, _| {} }
            .run();
        let Some(Error::Panicked { doing, .. }) = outcome.error() else { panic!("no panic") };
        assert_eq!(doing, "starting a worker");
    }
}
