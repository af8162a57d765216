//! A worker of a pool, which requests an order from the driver and follows it. An *order* is to execute a range of
//! iterations, or to leave.
//!
//! | state | what its step does |
//! |---|---|
//! | `New` | makes the initial accumulated value |
//! | `Wants` | requests an order, and follows it if it comes at once |
//! | `Waits` | follows an order that has come since, or copies the worker's results for a [checkpoint](super::checkpoint) |
//! | `Runs` | executes the range |
//! | `Through` | nothing: the result was handed in |
//!
//! If the run is over on this rank, the step ends the worker in any state.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lb_strategies::pool::{Action, Order};

use super::checkpoint::RankCheckpoints;
use super::rank::Shared;
use super::shared_driver::Inner;
use super::task::{StepOutcome, StepTask};
use super::worker_log::WorkerLog;
use crate::error::Error;
use crate::ids::{ROOT, WorkerId};
use crate::measure::counters::SampleTrigger;
use crate::measure::cpu::thread_cpu_ns;
use crate::panics::panic_message;
use crate::pools::core::image::{WorkerImage, add_range};
use crate::pools::core::packet::IterationChecksum;
use crate::pools::core::work::{Accumulated, Restored};

pub(super) struct Worker<'p> {
    shared: &'p Shared<'p>,
    id: WorkerId,
    state: State,
    /// None before the first step, and after the result was handed in.
    accumulated: Option<Accumulated>,
    /// The iterations whose results are in `accumulated`, except those from before a restart.
    checksum: IterationChecksum,
    /// The indices of all these iterations, if checkpoints are made.
    done: Vec<Range<u64>>,
    /// The number of the last checkpoint for which the worker has made a copy.
    saved: u64,
    /// The result of a speculative range, until the driver tells whether it counts.
    speculative: Option<(Accumulated, Range<u64>)>,
    log: WorkerLog,
}

#[derive(Default)]
enum State {
    New,
    Wants,
    Waits,
    Runs {
        range: Range<u64>,
        /// The accumulated value of a speculative range; none for other ranges.
        speculative: Option<Accumulated>,
    },
    Through,
    #[default]
    Over,
}

impl<'p> Worker<'p> {
    pub(super) fn new(shared: &'p Shared<'p>, id: WorkerId) -> Worker<'p> {
        let log = WorkerLog::new(&shared.recording, shared.rank, id, shared.clock.now_ns());
        Worker {
            shared,
            id,
            state: State::New,
            accumulated: None,
            checksum: IterationChecksum::default(),
            done: Vec::new(),
            saved: 0,
            speculative: None,
            log,
        }
    }

    /// Makes the initial accumulated value. One worker of a restarted pool adds the value from before the restart.
    fn begin(&mut self) -> State {
        let (shared, mut accumulated) = (self.shared, self.shared.work.init());
        if shared.rank == ROOT
            && self.id == WorkerId(0)
            && let Some(Restored { done, accumulated: before }) = shared.work.take_restored()
        {
            shared.work.merge(&mut accumulated, before);
            self.done = done;
        }
        self.accumulated = Some(accumulated);
        self.log.waited(shared.clock.now_ns());
        State::Wants
    }

    /// True if a checkpoint waits for the worker's copy.
    fn is_to_save(&self) -> bool {
        let wanted = |checkpoints: &RankCheckpoints| checkpoints.copies.wanted() > self.saved;
        self.accumulated.is_some() && self.shared.checkpoints.as_ref().is_some_and(wanted)
    }

    /// Copies the worker's results for a checkpoint that waits for them. The `last` copy is for all later checkpoints.
    fn save(&mut self, last: bool) {
        let Some(checkpoints) = self.shared.checkpoints.as_ref().filter(|_| last || self.is_to_save()) else {
            return;
        };
        self.saved = checkpoints.copies.wanted();
        let accumulated = self.shared.work.encode(self.accumulated.as_ref().expect(BEGUN));
        let image = accumulated.map(|accumulated| WorkerImage { done: self.done.clone(), accumulated });
        let number = (!last).then_some(self.saved);
        if checkpoints.copies.put(self.id, number, image.map_err(|why| why.to_string())) {
            self.shared.shared_driver.comm_thread().wake();
        }
    }

    fn ask(&mut self) -> State {
        self.save(false);
        let (shared, id) = (self.shared, self.id);
        let cancelled = shared.work.is_cancelled();
        shared.recording.at_work[id.index()].set_asking();
        let ask = |inner: &mut Inner, now_ns, actions: &mut Vec<Action>| {
            // Done here, because all iterations may be executed before the communication thread sees the cancellation.
            if cancelled {
                inner.driver.cancel(actions);
            }
            inner.driver.wants(id, now_ns, actions);
            let receiver = |action: &Action| match action {
                Action::Send { to, .. } => Some(to.0),
                _ => None,
            };
            let sent: Vec<u32> = actions.iter().filter_map(receiver).collect();
            (inner.driver.take_order(id), sent)
        };
        let (answer, sent) = shared.with(ask);
        shared.recording.at_work[id.index()].set_idle();
        self.log.asked(&sent, shared.clock.now_ns());
        if shared.shared_driver.team.stopped() {
            return self.leave(false);
        }
        match answer {
            Some((accepted, order)) => self.follow(accepted, order),
            None => self.rests(State::Waits),
        }
    }

    fn look_for_order(&mut self) -> State {
        self.save(false);
        let answer = self.shared.shared_driver.lock().driver.take_order(self.id);
        let Some((accepted, order)) = answer else { return State::Waits };
        self.wakes();
        self.follow(accepted, order)
    }

    fn follow(&mut self, accepted: Option<bool>, order: Order) -> State {
        if let Some((kept, range)) = self.speculative.take() {
            if accepted == Some(true) {
                self.shared.work.merge(self.accumulated.as_mut().expect(BEGUN), kept);
                self.count(&range);
            } else {
                self.log.record.discarded += range.end - range.start;
            }
        }
        let speculative = matches!(order, Order::Run { apart: true, .. }).then(|| self.shared.work.init());
        self.log.waited(self.shared.clock.now_ns());
        match order {
            Order::Run { range, .. } => State::Runs { range, speculative },
            Order::Leave => {
                self.save(true);
                let accumulated = self.accumulated.take().expect(BEGUN);
                let (checksum, record) = (self.checksum, self.log.record);
                self.shared.with(|inner, _, _| inner.hand_in(accumulated, checksum, record));
                self.rests(State::Through)
            }
        }
    }

    fn execute(&mut self, range: Range<u64>, mut speculative: Option<Accumulated>) -> State {
        let shared = self.shared;
        let cpu_start_ns = self.cpu_ns();
        let into = speculative.as_mut().or(self.accumulated.as_mut()).expect(BEGUN);
        let at_work = &shared.recording.at_work[self.id.index()];
        at_work.set_iterations(range.start);
        let executed = catch_unwind(AssertUnwindSafe(|| shared.work.execute(into, range.clone())));
        at_work.set_idle();
        let end_ns = shared.clock.now_ns();
        if let Err(panic) = executed {
            let indices = shared.work.indices(&range);
            let (first, last) = (indices.first(), indices.last());
            let (start, end) = first.zip(last).map_or((0, 0), |(first, last)| (first.start, last.end));
            let doing = format!("executing iterations {start}..{end}");
            let panic = panic_message(&*panic);
            shared.fail(Error::Panicked { rank: shared.rank, doing, panic });
            return State::Over;
        }
        let cpu_clock_ns = self.cpu_ns();
        self.log.executed(&range, cpu_clock_ns - cpu_start_ns, end_ns, || shared.clock.now_ns());
        shared.gauges.workers[self.id.index()].publish(self.log.published(cpu_clock_ns));
        shared.observe(SampleTrigger::Periodic);
        match speculative {
            Some(kept) => self.speculative = Some((kept, range)),
            None => self.count(&range),
        }
        State::Wants
    }

    /// Counts executed iterations.
    fn count(&mut self, executed: &Range<u64>) {
        if self.shared.checkpoints.is_some() {
            let indices = self.shared.work.indices(executed);
            indices.into_iter().for_each(|indices| add_range(&mut self.done, indices));
        }
        self.checksum.add(IterationChecksum::of(executed));
        self.log.record.iterations = self.checksum.count;
        self.shared.recording.at_work[self.id.index()].set_done(self.checksum.count);
    }

    /// CPU time of the worker's thread; 0 in virtual time, where the worker has no thread.
    fn cpu_ns(&self) -> u64 {
        if self.shared.clock.is_virtual() { 0 } else { thread_cpu_ns() }
    }

    /// Marks the worker as idle.
    fn rests(&self, state: State) -> State {
        let shared = self.shared;
        shared.gauges.workers[self.id.index()].begin_park(self.log.last_ns());
        let at_work = &shared.recording.at_work[self.id.index()];
        match state {
            State::Waits => at_work.set_waiting(),
            State::Through => at_work.set_released(),
            _ => {}
        }
        state
    }

    /// Marks the worker as no longer idle.
    fn wakes(&mut self) {
        let now_ns = self.shared.clock.now_ns();
        self.shared.gauges.workers[self.id.index()].end_park(now_ns);
        self.shared.recording.at_work[self.id.index()].set_idle();
        self.log.rested(now_ns);
    }

    fn leave(&mut self, idle: bool) -> State {
        if idle {
            self.wakes();
        }
        self.log.waited(self.shared.clock.now_ns());
        State::Over
    }
}

const BEGUN: &str = "it has begun and not handed in";

impl StepTask for Worker<'_> {
    fn step(&mut self) -> StepOutcome {
        let over = self.shared.shared_driver.team.stopped();
        // A step that panics leaves the default state, `Over`.
        self.state = match std::mem::take(&mut self.state) {
            state if over => self.leave(matches!(state, State::Waits | State::Through)),
            State::New => self.begin(),
            State::Runs { range, speculative } => self.execute(range, speculative),
            State::Wants => self.ask(),
            State::Waits => self.look_for_order(),
            state @ (State::Through | State::Over) => state,
        };
        match &self.state {
            State::New | State::Wants => StepOutcome::Step,
            State::Runs { range, .. } => StepOutcome::Execute(range.end - range.start),
            State::Waits | State::Through => StepOutcome::Sleep { timeout: None },
            State::Over => StepOutcome::Over,
        }
    }

    fn has_work(&mut self) -> bool {
        let waits = matches!(self.state, State::Waits);
        self.shared.shared_driver.has_work_for_worker(self.id, waits) || (waits && self.is_to_save())
    }

    fn doing(&self) -> String {
        format!("{}, or creating or merging accumulated values", self.shared.asking)
    }
}
