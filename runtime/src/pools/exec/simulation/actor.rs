//! An actor of a simulation: the task of a worker or of a communication thread, with its sleeper.

use std::fmt;
use std::time::Duration;

use lb_strategies::virtual_time::Worker as Place;

use crate::ids::WorkerId;
use crate::pools::exec::rank::Shared;
use crate::pools::exec::task::{StepOutcome, StepTask};
use crate::threads::sleep::Sleeper;

pub(super) struct Actor<'r> {
    shared: &'r Shared<'r>,
    /// The vCPU of the actor; a communication thread shares the vCPU of worker 0.
    pub(super) place: Place,
    /// None for the communication thread.
    pub(super) worker: Option<WorkerId>,
    task: Box<dyn StepTask + 'r>,
    pub(super) sleeper: &'r Sleeper,
    /// The next act.
    pub(super) act: Act,
    /// Number of sleeps so far.
    sleeps: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Step,
    /// A step that ends after this number of iterations.
    Execute(u64),
    /// The last check for work; a sleep if there is none.
    PrepareSleep(Option<Duration>),
    /// No act until the actor is woken or the timeout has passed.
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
        task: Box<dyn StepTask + 'r>,
    ) -> Actor<'r> {
        let driver = &shared.shared_driver;
        let sleeper = worker.map_or(driver.comm_thread(), |worker| driver.worker(worker));
        sleeper.bind_to_thread();
        Actor { shared, place, worker, task, sleeper, act: Act::Step, sleeps: 0 }
    }

    /// Does the next act. Returns the following act.
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
        self.shared.catching(&self.task.doing(), || next = self.task.step());
        match next {
            StepOutcome::Step => Act::Step,
            StepOutcome::Execute(iterations) => Act::Execute(iterations),
            StepOutcome::Sleep { timeout } => Act::PrepareSleep(timeout),
            StepOutcome::Over => {
                self.task.end();
                Act::Over
            }
        }
    }

    fn prepare_sleep(&mut self, timeout: Option<Duration>) -> Act {
        if self.sleeper.prepare_sleep(|| self.task.has_work()) {
            self.sleeps += 1;
            return Act::Sleep { timeout, sleep_number: self.sleeps };
        }
        self.sleeper.end_sleep();
        Act::Step
    }

    /// Ends the sleep of an actor that was woken. Returns whether the actor was woken.
    pub(super) fn wake_if_woken(&mut self) -> bool {
        let woken = matches!(self.act, Act::Sleep { .. }) && self.sleeper.is_woken();
        if woken {
            self.end_sleep();
        }
        woken
    }

    /// Ends the sleep with this number after its timeout. Returns whether the actor was still in it.
    pub(super) fn times_out(&mut self, timed_out: u64) -> bool {
        let sleeps = matches!(self.act, Act::Sleep { sleep_number, .. } if sleep_number == timed_out);
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
            None => write!(f, "the communication thread of rank {}", self.place.rank.0),
        }
    }
}
