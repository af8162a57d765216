//! A worker of a pool: asks the driver for a range, executes it, asks again.
//!
//! | state | a step |
//! |---|---|
//! | `New` | makes what it accumulates into |
//! | `Wants` | asks for an order, and follows it if there is one |
//! | `Waits` | follows the order that has come |
//! | `Runs` | executes the range |
//! | `Through` | has handed in; nothing |
//!
//! A step ends its life instead if the run is over on this rank.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lb_strategies::pool::{Action, Order};

use super::rank::Shared;
use super::shared_driver::Inner;
use super::task::{StepOutcome, StepTask};
use super::worker_log::WorkerLog;
use crate::error::Error;
use crate::ids::WorkerId;
use crate::measure::counters::SampleTrigger;
use crate::measure::cpu::thread_cpu_ns;
use crate::panics::panic_message;
use crate::pools::core::packet::IterationChecksum;
use crate::pools::core::work::Accumulated;

pub(super) struct Worker<'p> {
    shared: &'p Shared<'p>,
    id: WorkerId,
    state: State,
    /// None before it begins, and when it has handed in.
    accumulated: Option<Accumulated>,
    tally: IterationChecksum,
    /// The result that it keeps apart until it is told whether that counts.
    speculative: Option<(Accumulated, IterationChecksum)>,
    log: WorkerLog,
}

#[derive(Default)]
enum State {
    New,
    Wants,
    Waits,
    Runs {
        range: Range<u64>,
        /// The value to accumulate into, if it is kept apart.
        speculative: Option<Accumulated>,
    },
    Through,
    #[default]
    Over,
}

impl<'p> Worker<'p> {
    pub(super) fn new(shared: &'p Shared<'p>, id: WorkerId) -> Worker<'p> {
        let log = WorkerLog::new(&shared.recording, shared.rank, id, shared.clock.now_ns());
        let tally = IterationChecksum::default();
        Worker { shared, id, state: State::New, accumulated: None, tally, speculative: None, log }
    }

    fn ask(&mut self) -> State {
        let (shared, id) = (self.shared, self.id);
        let cancelled = shared.work.is_cancelled();
        shared.recording.at_work[id.index()].set_asking();
        let ask = |inner: &mut Inner, now_ns, actions: &mut Vec<Action>| {
            // At once: until the monitor looks, cheap iterations may all be executed.
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
        if shared.meeting.team.stopped() {
            return self.leave(false);
        }
        match answer {
            Some((counts, order)) => self.follow(counts, order),
            None => self.rests(State::Waits),
        }
    }

    fn look_for_order(&mut self) -> State {
        let answer = self.shared.meeting.lock().driver.take_order(self.id);
        let Some((counts, order)) = answer else { return State::Waits };
        self.wakes();
        self.follow(counts, order)
    }

    fn follow(&mut self, counts: Option<bool>, order: Order) -> State {
        if let Some((kept, tally)) = self.speculative.take() {
            if counts == Some(true) {
                self.shared.work.merge(self.accumulated.as_mut().expect(BEGUN), kept);
                self.count(tally);
            } else {
                self.log.record.discarded += tally.count;
            }
        }
        let fresh = matches!(order, Order::Run { apart: true, .. }).then(|| self.shared.work.init());
        self.log.waited(self.shared.clock.now_ns());
        match order {
            Order::Run { range, .. } => State::Runs { range, speculative: fresh },
            Order::Leave => {
                let accumulated = self.accumulated.take().expect(BEGUN);
                let (tally, record) = (self.tally, self.log.record);
                self.shared.with(|inner, _, _| inner.hand_in(accumulated, tally, record));
                self.rests(State::Through)
            }
        }
    }

    fn execute(&mut self, range: Range<u64>, mut fresh: Option<Accumulated>) -> State {
        let shared = self.shared;
        let cpu_start_ns = self.cpu_ns();
        let into = fresh.as_mut().or(self.accumulated.as_mut()).expect(BEGUN);
        let at_work = &shared.recording.at_work[self.id.index()];
        at_work.set_iterations(range.start);
        let executed = catch_unwind(AssertUnwindSafe(|| shared.work.execute(into, range.clone())));
        at_work.set_idle();
        let end_ns = shared.clock.now_ns();
        if let Err(panic) = executed {
            let doing = format!("executing iterations {}..{}", range.start, range.end);
            let panic = panic_message(&*panic);
            shared.fail(Error::Panicked { rank: shared.rank, doing, panic });
            return State::Over;
        }
        let cpu_clock_ns = self.cpu_ns();
        self.log.executed(&range, cpu_clock_ns - cpu_start_ns, end_ns, || shared.clock.now_ns());
        shared.gauges.workers[self.id.index()].publish(self.log.published(cpu_clock_ns));
        shared.observe(SampleTrigger::Periodic);
        match fresh {
            Some(kept) => self.speculative = Some((kept, IterationChecksum::of(&range))),
            None => self.count(IterationChecksum::of(&range)),
        }
        State::Wants
    }

    /// Some iterations count.
    fn count(&mut self, its: IterationChecksum) {
        self.tally.add(its);
        self.log.record.iterations = self.tally.count;
        self.shared.recording.at_work[self.id.index()].set_done(self.tally.count);
    }

    /// CPU time of its thread; in virtual time it has none of its own.
    fn cpu_ns(&self) -> u64 {
        if self.shared.clock.is_virtual() { 0 } else { thread_cpu_ns() }
    }

    /// From now on it is idle.
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
        let over = self.shared.meeting.team.stopped();
        // A step that panics is its last.
        self.state = match std::mem::take(&mut self.state) {
            state if over => self.leave(matches!(state, State::Waits | State::Through)),
            State::New => {
                self.accumulated = Some(self.shared.work.init());
                self.log.waited(self.shared.clock.now_ns());
                State::Wants
            }
            State::Runs { range, speculative: fresh } => self.execute(range, fresh),
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
        self.shared.meeting.has_work_for_worker(self.id, matches!(self.state, State::Waits))
    }

    fn doing(&self) -> String {
        format!("{}, or making or merging what is accumulated", self.shared.asking)
    }
}
