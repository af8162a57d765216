//! Writes parts of a checkpoint on a separate thread, while the run goes on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use super::saved::Written;
use crate::panics::panic_message;

/// The outcome of writing a part of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IoOutcome {
    /// The file of a rank.
    Written(Result<Written, String>),
    /// The whole checkpoint, by rank 0: its name, or why it was not completed.
    Committed(Result<String, String>),
}

/// A part of a checkpoint that a thread writes.
pub(crate) struct Background {
    outcome: Arc<OnceLock<IoOutcome>>,
    thread: JoinHandle<()>,
}

/// A part of a checkpoint whose writing was started.
pub(crate) enum Started {
    Runs(Background),
    /// In virtual time, or because no thread can be started.
    Ended(IoOutcome),
}

impl Background {
    /// Starts a thread that writes, and then calls `wake`. In virtual time writes at once. A panic becomes an error.
    pub(crate) fn start<T: 'static>(
        is_virtual: bool,
        write: impl FnOnce() -> Result<T, String> + Send + 'static,
        outcome: fn(Result<T, String>) -> IoOutcome,
        wake: impl FnOnce() + Send + 'static,
    ) -> Started {
        if is_virtual {
            return Started::Ended(outcome(catching(write)));
        }
        let ended = Arc::new(OnceLock::new());
        let body = {
            let ended = ended.clone();
            move || {
                let _ = ended.set(outcome(catching(write)));
                wake();
            }
        };
        match thread::Builder::new().name("caribou saves".into()).spawn(body) {
            Ok(thread) => Started::Runs(Background { outcome: ended, thread }),
            Err(why) => {
                Started::Ended(outcome(Err(format!("the thread that writes it cannot be started: {why}"))))
            }
        }
    }

    /// True after the write has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.outcome.get().is_some()
    }

    /// The outcome of the write, if it has ended.
    pub(crate) fn outcome(&self) -> Option<IoOutcome> {
        self.outcome.get().cloned()
    }

    /// Waits until the write has ended.
    pub(crate) fn join(self) {
        // The thread catches its panics.
        let _ = self.thread.join();
    }
}

/// Calls `act`. A panic becomes an error.
pub(crate) fn catching<O>(act: impl FnOnce() -> Result<O, String>) -> Result<O, String> {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|panic| Err(panic_message(&*panic)))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_panic_is_an_error_and_the_waiting_thread_is_woken() {
        let (sender, receiver) = channel();
        let wake = move || sender.send(()).expect("it is waited for");
        let fails = || -> Result<String, String> { panic!("no disk") };
        let Started::Runs(background) = Background::start(false, fails, IoOutcome::Committed, wake) else {
            panic!("there are threads")
        };
        receiver.recv().expect("it wakes");
        assert!(background.has_ended());
        assert_eq!(background.outcome(), Some(IoOutcome::Committed(Err("no disk".into()))));
        background.join();
    }
}
