//! Executes the work of simulated workers at the speed of their vCPUs. Arrays and pools are both simulated with it.

use lb_strategies::pools::machine::{Nanos, SECOND};
use lb_strategies::virtual_time::events::Events;
use lb_strategies::virtual_time::vcpus::{Vcpus, Worker};

/// A time at which a worker's speed changes, or its work may have ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkerEvent {
    pub(super) worker: usize,
    /// An event with an older version is ignored.
    pub(super) version: u64,
}

/// The time of a worker while it had something to execute, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct WorkerTime {
    /// Time in which it ran.
    pub(super) cpu_ns: f64,
    /// Time in which others ran on its vCPU.
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
    /// True if the vCPUs count the worker as running. It stays true between two pieces of work without a pause.
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
    /// Workers with these names, all idle.
    pub(super) fn new(vcpus: &'r mut dyn Vcpus, names: Vec<Worker>) -> Self {
        Self { vcpus, states: names.iter().map(|_| State::default()).collect(), names }
    }

    pub(super) fn name(&self, worker: usize) -> Worker {
        self.names[worker]
    }

    pub(super) fn is_running(&self, worker: usize) -> bool {
        self.states[worker].running.is_some()
    }

    /// The time spent until the last event of the worker.
    pub(super) fn spent(&self, worker: usize) -> WorkerTime {
        self.states[worker].spent
    }

    /// The time spent until `now`, which is not before the last event of the worker.
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

    /// Units of work per second while the worker runs, as a short burst of computation shows; 0 on a stopped vCPU.
    pub(super) fn clock(&mut self, worker: usize, now: Nanos) -> f64 {
        self.vcpus.clock(self.names[worker], now)
    }

    /// Starts `work` on a worker. Returns true if it has ended at once, because it is zero.
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

    /// Handles an event of a worker. Returns true if its work has ended.
    pub(super) fn advance_to<E: From<WorkerEvent>>(
        &mut self,
        look: WorkerEvent,
        now: Nanos,
        events: &mut Events<E>,
    ) -> bool {
        self.states[look.worker].version == look.version && self.advance(look.worker, now, events)
    }

    /// Lets a worker leave its vCPU if it has ended its work and not begun more.
    pub(super) fn rest<E: From<WorkerEvent>>(&mut self, worker: usize, now: Nanos, events: &mut Events<E>) {
        if !self.is_running(worker) {
            self.occupies(worker, false, now, events);
        }
    }

    /// Notes that a worker begins or stops running, which may change the speed of others.
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
            // An earlier event stays planned, and is right as long as the speed stays.
            if worker == but || self.vcpus.speed(self.names[worker], now).0 == running.speed {
                continue;
            }
            if self.account(worker, now) {
                // The simulation learns this by an event.
                events.at(now, WorkerEvent { worker, version: self.states[worker].version }.into());
            } else {
                self.plan(worker, now, events);
            }
        }
    }

    /// Accounts for the work of a worker until now, and plans its next event. Returns true if the work has ended.
    fn advance<E: From<WorkerEvent>>(&mut self, worker: usize, now: Nanos, events: &mut Events<E>) -> bool {
        let through = self.account(worker, now);
        if through {
            self.states[worker].running = None;
        } else {
            self.plan(worker, now, events);
        }
        through
    }

    /// Accounts for the work of a worker since its last event. Returns true if nothing is left.
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

    /// Plans the next event.
    fn plan<E: From<WorkerEvent>>(&mut self, worker: usize, now: Nanos, events: &mut Events<E>) {
        let state = &mut self.states[worker];
        let running = state.running.as_mut().expect("only a running worker is looked at");
        let (speed, until) = self.vcpus.speed(self.names[worker], now);
        debug_assert!(until > now, "a speed holds for a while");
        running.speed = speed;
        // A stopped vCPU gives no CPU time.
        running.share = if speed > 0.0 { self.vcpus.share(self.names[worker], now) } else { 0.0 };
        let rest = running.left / speed * SECOND as f64;
        // With speed 0, the quotient is infinite, and no end is planned.
        let end = if rest < 1e18 { now + (rest.ceil() as Nanos).max(1) } else { Nanos::MAX };
        let next = end.min(until);
        if next < Nanos::MAX {
            events.at(next, WorkerEvent { worker, version: state.version }.into());
        }
    }
}
