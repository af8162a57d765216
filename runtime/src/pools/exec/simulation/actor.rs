//! One that acts in a simulation: a worker or a monitor, with the bed that it sleeps in.

use std::fmt;
use std::time::Duration;

use lb_strategies::virtual_time::Worker as Place;

use crate::ids::WorkerId;
use crate::pools::exec::rank::Shared;
use crate::pools::exec::steps::{Life, Next};
use crate::threads::sleep::Sleeper;

pub(super) struct Actor<'r> {
    shared: &'r Shared<'r>,
    /// The vCPU that it has; a monitor that of worker 0.
    pub(super) place: Place,
    /// None is the monitor.
    pub(super) worker: Option<WorkerId>,
    life: Box<dyn Life + 'r>,
    pub(super) sleeper: &'r Sleeper,
    /// Its next act.
    pub(super) act: Act,
    nights: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Step,
    /// A step after so many iterations.
    Execute(u64),
    /// Looks once more, and sleeps if nothing has come.
    LieDown(Option<Duration>),
    /// Nothing, until it is called or so much time has passed.
    Sleep {
        timeout: Option<Duration>,
        night: u64,
    },
    Over,
}

impl<'r> Actor<'r> {
    pub(super) fn new(
        shared: &'r Shared<'r>,
        place: Place,
        worker: Option<WorkerId>,
        life: Box<dyn Life + 'r>,
    ) -> Actor<'r> {
        let meeting = &shared.meeting;
        let sleeper = worker.map_or(meeting.monitor(), |worker| meeting.worker(worker));
        sleeper.occupy();
        Actor { shared, place, worker, life, sleeper, act: Act::Step, nights: 0 }
    }

    /// Does what it was about to do; says what it does next.
    pub(super) fn act(&mut self) -> Act {
        self.act = match self.act {
            Act::Step | Act::Execute(_) => self.step(),
            Act::LieDown(timeout) => self.lie_down(timeout),
            Act::Sleep { .. } | Act::Over => self.act,
        };
        self.act
    }

    fn step(&mut self) -> Act {
        let mut next = Next::Over;
        self.shared.catching(&self.life.doing(), || next = self.life.step());
        match next {
            Next::Step => Act::Step,
            Next::Execute(iterations) => Act::Execute(iterations),
            Next::Sleep { timeout } => Act::LieDown(timeout),
            Next::Over => {
                self.life.end();
                Act::Over
            }
        }
    }

    fn lie_down(&mut self, timeout: Option<Duration>) -> Act {
        if self.sleeper.lie_down(|| self.life.is_called()) {
            self.nights += 1;
            return Act::Sleep { timeout, night: self.nights };
        }
        self.sleeper.rise();
        Act::Step
    }

    /// Wakes it if it sleeps and was called; tells whether it did.
    pub(super) fn is_called(&mut self) -> bool {
        let called = matches!(self.act, Act::Sleep { .. }) && self.sleeper.is_called();
        if called {
            self.get_up();
        }
        called
    }

    /// Wakes it if it still sleeps in that night, which is over now; tells whether it did.
    pub(super) fn times_out(&mut self, over: u64) -> bool {
        let sleeps = matches!(self.act, Act::Sleep { night, .. } if night == over);
        if sleeps {
            self.get_up();
        }
        sleeps
    }

    fn get_up(&mut self) {
        self.sleeper.rise();
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
