//! Wraps a program in supersteps so that it records each complete step in an [`IterationClock`].
//!
//! Every share (a worker's units of data) combines the results of all shares at the end of a step. The first share of a
//! process to do so has all results, so the step is complete everywhere. This share records the step in the clock.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use caribou::supersteps::{Exchange, Job, Parts, Supersteps, Then};

use crate::iteration_clock::IterationClock;

/// A program, and the clock that records its steps.
pub(super) struct ClockedProgram<P> {
    program: P,
    clock: Arc<IterationClock>,
    told: Mutex<ClockState>,
}

/// What the clock has recorded.
#[derive(Default)]
struct ClockState {
    /// The moment at which the first job began.
    began: Option<Instant>,
    steps: u32,
}

impl<P> ClockedProgram<P> {
    pub(super) fn new(program: P, clock: Arc<IterationClock>) -> Self {
        Self { program, clock, told: Mutex::default() }
    }

    fn begin(&self) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).began.get_or_insert_with(now);
    }

    fn complete(&self, steps: u32) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        // A share without units combines without having begun.
        let began = *told.began.get_or_insert_with(now);
        if steps > told.steps {
            told.steps = steps;
            self.clock.record(steps, now().duration_since(began).as_nanos() as u64);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a run is timed as a person would time it")]
fn now() -> Instant {
    Instant::now()
}

impl<P: Supersteps> Supersteps for ClockedProgram<P> {
    type Unit = P::Unit;
    type Edge = P::Edge;
    type Part = P::Part;
    /// Steps so far, and the shared data of the program.
    type Shared = (u32, P::Shared);

    fn units(&self) -> u64 {
        self.program.units()
    }

    fn weight(&self, unit: u64) -> f64 {
        self.program.weight(unit)
    }

    fn begin(&self) -> Self::Shared {
        (0, self.program.begin())
    }

    fn unit(&self, number: u64) -> P::Unit {
        self.program.unit(number)
    }

    fn edge(&self, unit: &P::Unit) -> Option<P::Edge> {
        self.program.edge(unit)
    }

    fn compute(&self, job: Job<'_, Self>) -> P::Part {
        let Job { step, units, data, shared, before, after } = job;
        if step == 0 {
            self.begin();
        }
        self.program.compute(Job { step, units, data, shared: &shared.1, before, after })
    }

    fn changes(&self) -> bool {
        self.program.changes()
    }

    fn combine(&self, (steps, shared): &mut Self::Shared, parts: Parts<'_, P::Part>) -> Then {
        let then = self.program.combine(shared, parts);
        *steps += 1;
        self.complete(*steps);
        then
    }

    fn exchange(&self) -> Exchange {
        self.program.exchange()
    }

    fn collects(&self) -> bool {
        self.program.collects()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_is_told_once_and_in_order() {
        let clock = Arc::new(IterationClock::new(3));
        let clocked = ClockedProgram::new((), clock.clone());
        clocked.begin();
        for steps in [1, 1, 2, 1, 2, 3] {
            clocked.complete(steps);
        }
        let (start_ns, complete_ns) = clock.times_ns();
        assert_eq!((start_ns, complete_ns.len()), (0, 3));
        assert!(complete_ns.is_sorted(), "{complete_ns:?}");
    }
}
