//! Lives in steps that do not block: what workers and monitors do, apart from who lets them do it.
//!
//! A thread drives a life and parks where it sleeps; the [simulation](super::simulation) drives those of all ranks, one step
//! at a time, and lets them sleep in virtual time. Both keep to the protocol of [`sleep`](crate::threads::sleep): who would
//! sleep says so, and asks once more whether it is called.

use std::time::Duration;

use super::rank::Shared;
use crate::threads::sleep::Sleeper;

/// The continuation after a step.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StepOutcome {
    /// Another, at once.
    Step,
    /// Another, in which so many iterations are executed.
    Execute(u64),
    /// Another when it is called, or when so much time has passed.
    Sleep { timeout: Option<Duration> },
    /// Nothing.
    Over,
}

/// The life of a worker, or of the monitor.
pub(super) trait StepTask {
    /// Does what there is to do, as far as that does not take waiting.
    fn step(&mut self) -> StepOutcome;

    /// Tells whether there is something to do for one that sleeps. Changes nothing.
    fn has_work(&mut self) -> bool;

    /// In what it may panic, in words.
    fn doing(&self) -> String;

    /// After the last step, also if that panicked.
    fn end(&mut self) {}
}

/// Lives to the end, on the calling thread, which sleeps here.
pub(super) fn run_task(life: &mut dyn StepTask, shared: &Shared<'_>, sleeper: &Sleeper) {
    shared.catching(&life.doing(), || {
        loop {
            match life.step() {
                StepOutcome::Step | StepOutcome::Execute(_) => {}
                StepOutcome::Sleep { timeout } => sleeper.park(timeout, || life.has_work()),
                StepOutcome::Over => return,
            }
        }
    });
    life.end();
}
