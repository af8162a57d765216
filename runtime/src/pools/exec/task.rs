//! Cooperative tasks: the work of workers and communication threads, in steps that do not block.
//!
//! | a task is run by | and sleeps |
//! |---|---|
//! | a thread, with [`run_task`] | by parking the thread |
//! | the [simulation](super::simulation), which runs the tasks of all ranks step by step | in virtual time |
//!
//! Both follow the protocol of [`sleep`](crate::threads::sleep): a task that is about to sleep announces that, and
//! checks once more whether it has work.

use std::time::Duration;

use super::rank::Shared;
use crate::threads::sleep::Sleeper;

/// What follows after a step.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StepOutcome {
    /// Another step, at once.
    Step,
    /// Another step, which executes this number of iterations.
    Execute(u64),
    /// Another step when the task is woken, or when the timeout has passed.
    Sleep { timeout: Option<Duration> },
    /// The task has ended.
    Over,
}

/// The task of a worker or of the communication thread.
pub(super) trait StepTask {
    /// Does everything that needs no waiting.
    fn step(&mut self) -> StepOutcome;

    /// Tells whether a sleeping task has work. Changes nothing.
    fn has_work(&mut self) -> bool;

    /// A description of the task's activity, for the report of a panic.
    fn doing(&self) -> String;

    /// Called after the last step, also if that step panicked.
    fn end(&mut self) {}
}

/// Runs a task to its end on the calling thread, which parks when the task sleeps.
pub(super) fn run_task(task: &mut dyn StepTask, shared: &Shared<'_>, sleeper: &Sleeper) {
    shared.catching(&task.doing(), || {
        loop {
            match task.step() {
                StepOutcome::Step | StepOutcome::Execute(_) => {}
                StepOutcome::Sleep { timeout } => sleeper.park(timeout, || task.has_work()),
                StepOutcome::Over => return,
            }
        }
    });
    task.end();
}
