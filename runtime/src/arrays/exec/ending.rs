//! The end of the run on a rank: its outcome, and the figures that the rank contributes to the report.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::arrays::core::collectives::exit_value::ExitValue;
use crate::arrays::report::Figures;
use crate::error::Error;
use crate::run::outcome::Outcome;
use crate::threads::clock::Clock;
use crate::transport::OpenRanks;

/// The outcome and the figures of one rank.
pub(crate) struct Ending {
    /// The outcome of all ranks of the process.
    outcome: Arc<Outcome>,
    figures: Mutex<Figures>,
    /// Time for which a failed run waits for ranks that do not reply.
    timeout: Duration,
    /// True if the run has failed here and the core could not send the error. Worker 0 sends it at the end.
    unannounced: AtomicBool,
}

impl Ending {
    pub(crate) fn new(outcome: Arc<Outcome>, timeout: Duration) -> Ending {
        Ending { outcome, figures: Mutex::default(), timeout, unannounced: AtomicBool::new(false) }
    }

    /// Ends the run, with success or an error.
    pub(crate) fn finish(&self, result: Result<(), Error>, now_ns: u64) {
        if let Err(error) = result {
            self.outcome.fail(error);
        }
        self.outcome.finish(now_ns);
    }

    /// Fails the run without sending the error to other ranks.
    pub(crate) fn fail_unannounced(&self, error: Error) {
        self.outcome.fail(error);
        self.unannounced.store(true, Ordering::Release);
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.outcome.error().is_some()
    }

    /// The error that was not sent to the other ranks yet, if there is one.
    pub(crate) fn unannounced(&self) -> Option<Error> {
        self.unannounced.load(Ordering::Acquire).then(|| self.outcome.error()).flatten()
    }

    /// The condition under which to stop waiting for other ranks, see [`Outcome::give_up_condition`].
    pub(crate) fn gives_up<'a>(&'a self, clock: &'a Clock) -> impl Fn(OpenRanks<'_>) -> bool + 'a {
        self.outcome.give_up_condition(clock, self.timeout)
    }

    /// Sets the exit value of the run. The first value of a rank counts.
    pub(crate) fn set_exit_value(&self, value: ExitValue) {
        self.add(|figures| {
            figures.value.get_or_insert(value);
        });
    }

    pub(crate) fn add(&self, add: impl FnOnce(&mut Figures)) {
        add(&mut self.figures.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn into_figures(self) -> Figures {
        self.figures.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
