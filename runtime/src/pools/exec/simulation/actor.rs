//! One that acts in a simulation: a worker or a monitor, with the bed that it sleeps in.

use std::fmt;
use std::time::Duration;

use lb_strategies::virtual_time::Worker as Place;

use crate::ids::WorkerId;
use crate::pools::exec::rank::Shared;
use crate::pools::exec::task::{StepOutcome, StepTask};
use crate::threads::sleep::Sleeper;

pub(super) struct Actor<'r> {
    shared: &'r Shared<'r>,
    /// The vCPU that it has; a monitor that of worker 0.
    pub(super) place: Place,
    /// None is the monitor.
    pub(super) worker: Option<WorkerId>,
    life: Box<dyn StepTask + 'r>,
    pub(super) sleeper: &'r Sleeper,
    /// Its next act.
    pub(super) act: Act,
    sleeps: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Step,
    /// A step after so many iterations.
    Execute(u64),
    /// Looks once more, and sleeps if nothing has come.
    PrepareSleep(Option<Duration>),
    /// Nothing, until it is called or so much time has passed.
    Sleep {
        timeout: Option<Duration>,
        sleep_number: u64,
    },
    Over,
}

impl<'r> Actor<'r> {
    pub(super) fn new(
        shared: &'r Shared<'r>,
        place: Place,
        worker: Option<WorkerId>,
        life: Box<dyn StepTask + 'r>,
    ) -> Actor<'r> {
        let meeting = &shared.meeting;
        let sleeper = worker.map_or(meeting.comm_thread(), |worker| meeting.worker(worker));
        sleeper.bind_to_thread();
        Actor { shared, place, worker, life, sleeper, act: Act::Step, sleeps: 0 }
    }

    /// Does what it was about to do; says what it does next.
    pub(super) fn act(&mut self) -> Act {
        self.act = match self.act {
            Act::Step | Act::Execute(_) => self.step(),
            Act::PrepareSleep(timeout) => self.prepare_sleep(timeout),
            Act::Sleep { .. } | Act::Over => self.act,
        };
        self.act
    }

    fn step(&mut self) -> Act {
        let mut next = StepOutcome::Over;
        self.shared.catching(&self.life.doing(), || next = self.life.step());
        match next {
            StepOutcome::Step => Act::Step,
            StepOutcome::Execute(iterations) => Act::Execute(iterations),
            StepOutcome::Sleep { timeout } => Act::PrepareSleep(timeout),
            StepOutcome::Over => {
                self.life.end();
                Act::Over
            }
        }
    }

    fn prepare_sleep(&mut self, timeout: Option<Duration>) -> Act {
        if self.sleeper.prepare_sleep(|| self.life.has_work()) {
            self.sleeps += 1;
            return Act::Sleep { timeout, sleep_number: self.sleeps };
        }
        self.sleeper.end_sleep();
        Act::Step
    }

    /// Wakes it if it sleeps and was called; tells whether it did.
    pub(super) fn wake_if_woken(&mut self) -> bool {
        let called = matches!(self.act, Act::Sleep { .. }) && self.sleeper.is_woken();
        if called {
            self.end_sleep();
        }
        called
    }

    /// Wakes it if it still sleeps in that night, which is over now; tells whether it did.
    pub(super) fn times_out(&mut self, over: u64) -> bool {
        let sleeps = matches!(self.act, Act::Sleep { sleep_number, .. } if sleep_number == over);
        if sleeps {
            self.end_sleep();
        }
        sleeps
    }

    fn end_sleep(&mut self) {
        self.sleeper.end_sleep();
        self.act = Act::Step;
    }
}

impl fmt::Display for Actor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.worker {
            Some(_) => write!(f, "worker {}", self.place),
            None => write!(f, "the monitor of rank {}", self.place.rank.0),
        }
    }
}
