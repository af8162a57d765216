//! What a thread of its own does in the background, such as writing a file.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use crate::panics::panic_message;

/// What a thread does, and how it ended.
pub(crate) struct Background<T> {
    outcome: Arc<OnceLock<T>>,
    thread: JoinHandle<()>,
}

impl<T: Clone + Send + Sync + 'static> Background<T> {
    /// Starts a thread that does this, and wakes who waits for it. A panic is an error.
    pub(crate) fn start<O: 'static>(
        act: impl FnOnce() -> Result<O, String> + Send + 'static,
        outcome: fn(Result<O, String>) -> T,
        wake: impl FnOnce() + Send + 'static,
    ) -> io::Result<Background<T>> {
        let ended = Arc::new(OnceLock::new());
        let body = {
            let ended = ended.clone();
            move || {
                let _ = ended.set(outcome(catching(act)));
                wake();
            }
        };
        let thread = thread::Builder::new().name("caribou saves".into()).spawn(body)?;
        Ok(Background { outcome: ended, thread })
    }

    /// True once it has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.outcome.get().is_some()
    }

    /// How it ended, if it has.
    pub(crate) fn outcome(&self) -> Option<T> {
        self.outcome.get().cloned()
    }

    /// Waits until it has ended.
    pub(crate) fn join(self) {
        // It catches its panics.
        let _ = self.thread.join();
    }
}

/// Does this; a panic is an error.
pub(crate) fn catching<O>(act: impl FnOnce() -> Result<O, String>) -> Result<O, String> {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|panic| Err(panic_message(&*panic)))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_panic_is_an_error_and_whoever_waits_is_woken() {
        let (sender, receiver) = channel();
        let wake = move || sender.send(()).expect("it is waited for");
        let fails = || -> Result<(), String> { panic!("no disk") };
        let background = Background::start(fails, |outcome| outcome, wake).expect("there are threads");
        receiver.recv().expect("it wakes");
        assert!(background.has_ended());
        assert_eq!(background.outcome(), Some(Err("no disk".into())));
        background.join();
    }
}
