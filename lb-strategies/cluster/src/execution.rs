//! The execution of work by workers, at the speed of their vCPUs: the part of every history that is independent of the
//! program.

use lb_strategies::pools::machine::{Nanos, SECOND};
use lb_strategies::virtual_time::events::Events;
use lb_strategies::virtual_time::vcpus::{Vcpus, Worker};

/// A worker is looked at: its speed changes, or it is through.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkerEvent {
    pub(super) worker: usize,
    /// An older one is of no use.
    pub(super) version: u64,
}

/// The time of a worker while it had something to execute, by its use, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct WorkerTime {
    /// It ran.
    pub(super) cpu_ns: f64,
    /// Others ran on its vCPU.
    pub(super) wait_ns: f64,
}

pub(super) struct Execution<'r> {
    vcpus: &'r mut dyn Vcpus,
    names: Vec<Worker>,
    states: Vec<State>,
}

#[derive(Default)]
struct State {
    running: Option<Running>,
    /// True if the vCPUs count it as running: between two pieces of work without a pause it does not stop for them.
    occupies: bool,
    version: u64,
    spent: WorkerTime,
}

struct Running {
    left: f64,
    since: Nanos,
    speed: f64,
    share: f64,
}

impl<'r> Execution<'r> {
    /// Workers of these names, none of which executes anything.
    pub(super) fn new(vcpus: &'r mut dyn Vcpus, names: Vec<Worker>) -> Self {
        Self { vcpus, states: names.iter().map(|_| State::default()).collect(), names }
    }

    pub(super) fn name(&self, worker: usize) -> Worker {
        self.names[worker]
    }

    pub(super) fn is_running(&self, worker: usize) -> bool {
        self.states[worker].running.is_some()
    }

    /// As of the last look at it.
    pub(super) fn spent(&self, worker: usize) -> WorkerTime {
        self.states[worker].spent
    }

    /// As of `now`, not before the last look.
    pub(super) fn spent_at(&self, worker: usize, now: Nanos) -> WorkerTime {
        let state = &self.states[worker];
        let mut spent = state.spent;
        if let Some(running) = &state.running {
            let since = now.saturating_sub(running.since) as f64;
            spent.cpu_ns += running.share * since;
            spent.wait_ns += (1.0 - running.share) * since;
        }
        spent
    }

    /// Units of work per second while it runs, as a burst of computation shows; 0 on a vCPU that stands still.
    pub(super) fn clock(&mut self, worker: usize, now: Nanos) -> f64 {
        let name = self.names[worker];
        let (speed, share) = (self.vcpus.speed(name, now).0, self.vcpus.share(name, now));
        if speed > 0.0 { speed / share } else { 0.0 }
    }

    /// A worker begins `work`. True if it is through at once, since there is none.
    pub(super) fn begin<E: From<WorkerEvent>>(
        &mut self,
        worker: usize,
        work: f64,
        now: Nanos,
        events: &mut Events<E>,
    ) -> bool {
        let running = Running { left: work, since: now, speed: 0.0, share: 0.0 };
        self.states[worker].running = Some(running);
        self.occupies(worker, true, now, events);
        self.advance(worker, now, events)
    }

    /// Looks at a worker. True if it is through.
    pub(super) fn advance_to<E: From<WorkerEvent>>(
        &mut self,
        look: WorkerEvent,
        now: Nanos,
        events: &mut Events<E>,
    ) -> bool {
        self.states[look.worker].version == look.version && self.advance(look.worker, now, events)
    }

    /// A worker that is through, and has begun nothing else, leaves its vCPU.
    pub(super) fn rest<E: From<WorkerEvent>>(&mut self, worker: usize, now: Nanos, events: &mut Events<E>) {
        if !self.is_running(worker) {
            self.occupies(worker, false, now, events);
        }
    }

    /// A worker begins to run or stops, which may change the speed of others.
    fn occupies<E: From<WorkerEvent>>(
        &mut self,
        worker: usize,
        occupied: bool,
        now: Nanos,
        events: &mut Events<E>,
    ) {
        let before = std::mem::replace(&mut self.states[worker].occupies, occupied);
        if before != occupied && self.vcpus.occupied(self.names[worker], occupied, now) {
            self.look_at_all_but(worker, now, events);
        }
    }

    #[expect(clippy::float_cmp, reason = "it is the same number or another speed")]
    fn look_at_all_but<E: From<WorkerEvent>>(&mut self, but: usize, now: Nanos, events: &mut Events<E>) {
        for worker in 0..self.states.len() {
            let Some(running) = &self.states[worker].running else { continue };
            // An earlier look stays planned, and is right as long as the speed is.
            if worker == but || self.vcpus.speed(self.names[worker], now).0 == running.speed {
                continue;
            }
            if self.account(worker, now) {
                // The driver learns of it by an event.
                events.at(now, WorkerEvent { worker, version: self.states[worker].version }.into());
            } else {
                self.plan(worker, now, events);
            }
        }
    }

    /// Goes on from the last look to the next. True if the worker is through.
    fn advance<E: From<WorkerEvent>>(&mut self, worker: usize, now: Nanos, events: &mut Events<E>) -> bool {
        let through = self.account(worker, now);
        if through {
            self.states[worker].running = None;
        } else {
            self.plan(worker, now, events);
        }
        through
    }

    /// Accounts for the work of a worker since the last look. True if nothing is left.
    fn account(&mut self, worker: usize, now: Nanos) -> bool {
        let state = &mut self.states[worker];
        state.version += 1;
        let running = state.running.as_mut().expect("only a running worker is looked at");
        let since = (now - running.since) as f64;
        running.left -= running.speed * since / SECOND as f64;
        running.since = now;
        state.spent.cpu_ns += running.share * since;
        state.spent.wait_ns += (1.0 - running.share) * since;
        running.left <= 1e-9 * running.speed.max(1.0)
    }

    /// Plans the next look.
    fn plan<E: From<WorkerEvent>>(&mut self, worker: usize, now: Nanos, events: &mut Events<E>) {
        let state = &mut self.states[worker];
        let running = state.running.as_mut().expect("only a running worker is looked at");
        let (speed, until) = self.vcpus.speed(self.names[worker], now);
        debug_assert!(until > now, "a speed holds for a while");
        running.speed = speed;
        // A vCPU that stands still gives no CPU time.
        running.share = if speed > 0.0 { self.vcpus.share(self.names[worker], now) } else { 0.0 };
        let rest = running.left / speed * SECOND as f64;
        // Zero speed gives infinity, which is too long.
        let end = if rest < 1e18 { now + (rest.ceil() as Nanos).max(1) } else { Nanos::MAX };
        let next = end.min(until);
        if next < Nanos::MAX {
            events.at(next, WorkerEvent { worker, version: state.version }.into());
        }
    }
}
