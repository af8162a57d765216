//! The end of the run on a rank, and what the rank can tell then.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::arrays::core::collectives::exit_value::ExitValue;
use crate::arrays::report::Figures;
use crate::error::Error;
use crate::run::outcome::Outcome;
use crate::threads::clock::Clock;
use crate::transport::OpenRanks;

/// The end of the run on one rank.
pub(crate) struct Ending {
    /// Of all ranks of the process.
    outcome: Arc<Outcome>,
    figures: Mutex<Figures>,
    /// Time that a run that has failed waits for ranks that do not answer.
    timeout: Duration,
    /// The run has failed here in a way that the core could not tell the others of: worker 0 does so at the end.
    unannounced: AtomicBool,
}

impl Ending {
    pub(crate) fn new(outcome: Arc<Outcome>, timeout: Duration) -> Ending {
        Ending { outcome, figures: Mutex::default(), timeout, unannounced: AtomicBool::new(false) }
    }

    /// The run is over, well or not.
    pub(crate) fn finish(&self, result: Result<(), Error>, now_ns: u64) {
        if let Err(error) = result {
            self.outcome.fail(error);
        }
        self.outcome.finish(now_ns);
    }

    /// The run has failed, and no other rank has heard of it.
    pub(crate) fn fail_unannounced(&self, error: Error) {
        self.outcome.fail(error);
        self.unannounced.store(true, Ordering::Release);
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.outcome.error().is_some()
    }

    /// The error of which the other ranks have not heard, if there is one.
    pub(crate) fn unannounced(&self) -> Option<Error> {
        self.unannounced.load(Ordering::Acquire).then(|| self.outcome.error()).flatten()
    }

    /// Says when to wait no longer for other ranks, see [`Outcome::gives_up`].
    pub(crate) fn gives_up<'a>(&'a self, clock: &'a Clock) -> impl Fn(OpenRanks<'_>) -> bool + 'a {
        self.outcome.give_up_condition(clock, self.timeout)
    }

    /// Keeps the value that the run ends with. The first one of a rank counts.
    pub(crate) fn set_exit_value(&self, value: ExitValue) {
        self.add(|figures| {
            figures.value.get_or_insert(value);
        });
    }

    /// Adds to what the rank knows at the end.
    pub(crate) fn add(&self, add: impl FnOnce(&mut Figures)) {
        add(&mut self.figures.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn into_figures(self) -> Figures {
        self.figures.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
