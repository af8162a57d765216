//! The data that all shares of a process have in common: the user's program, the weights of units, the stopwatch. Each
//! call of the program carries a description, which the report of a panic shows.

use std::ops::Range;

use lb_strategies::supersteps::Row;

use super::api::{Exchange, Job, Parts, Supersteps, Then};
use super::measure::Stopwatch;
use crate::checkpoint::SuperstepsState;
use crate::panics::with_panic_context;
use crate::text::type_name_without_paths;

/// The data that all shares of a process have in common.
pub(super) struct Program<P> {
    user: P,
    pub(super) row: Row,
    pub(super) stopwatch: Stopwatch,
}

impl<P: Supersteps> Program<P> {
    pub(super) fn new(user: P, row: Row, stopwatch: Stopwatch) -> Program<P> {
        Program { user, row, stopwatch }
    }

    pub(super) fn begin(&self) -> P::Shared {
        with_panic_context(|| "creating the shared data".to_owned(), || self.user.begin())
    }

    pub(super) fn units(&self, numbers: Range<u64>) -> Vec<P::Unit> {
        let unit =
            |number| with_panic_context(|| format!("creating unit {number}"), || self.user.unit(number));
        numbers.map(unit).collect()
    }

    pub(super) fn edge(&self, unit: &P::Unit) -> Option<P::Edge> {
        with_panic_context(|| "returning the edge of a unit".to_owned(), || self.user.edge(unit))
    }

    pub(super) fn compute(&self, job: Job<'_, P>) -> P::Part {
        let (step, units) = (job.step, job.units.clone());
        let doing = || format!("computing units {} to {} in step {step}", units.start, units.end - 1);
        with_panic_context(doing, || self.user.compute(job))
    }

    pub(super) fn combine(&self, step: u64, shared: &mut P::Shared, parts: Parts<'_, P::Part>) -> Then {
        with_panic_context(
            || format!("combining the parts of step {step}"),
            || self.user.combine(shared, parts),
        )
    }

    /// The state of a run without its step and division.
    pub(super) fn state(&self) -> SuperstepsState {
        let program = type_name_without_paths::<P>();
        let (unit, shared) = (type_name_without_paths::<P::Unit>(), type_name_without_paths::<P::Shared>());
        let (units, changes) = (self.row.units(), self.changes());
        SuperstepsState { units, program, unit, shared, changes, ..SuperstepsState::default() }
    }

    pub(super) fn changes(&self) -> bool {
        self.user.changes()
    }

    pub(super) fn collects(&self) -> bool {
        self.user.collects()
    }

    pub(super) fn exchange(&self) -> Exchange {
        self.user.exchange()
    }
}
