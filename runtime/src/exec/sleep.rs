//! Puts workers to sleep and wakes them, without losing a wake-up.
//!
//! # Words
//! *Work* is anything that a worker looks for: a token on a queue it may take from, a packet in the transport, the stop
//! flag. A worker that finds none spins a little, then *parks*.
//!
//! # The race, and why it cannot happen
//! The sleeper says "I am parked" and then looks for work once more; the waker makes work visible and then looks whether
//! the sleeper is parked. With a sequentially consistent fence between the two halves on both sides, at least one of them
//! sees the other (Dekker). If both do, the `unpark` comes early, and `park` returns at once: a token, not a signal.
//!
//! | state | set by | meaning |
//! |---|---|---|
//! | AWAKE | the sleeper after a park; a waker that will unpark it | looks for work, or will |
//! | PARKED | the sleeper before its last look | must be unparked after work was made visible |

use super::sync::{AtomicU32, Ordering, fence};

#[cfg(loom)]
use loom::thread::{self, Thread};
#[cfg(not(loom))]
use std::thread::{self, Thread};

const AWAKE: u32 = 0;
const PARKED: u32 = 1;

/// One worker's bed.
pub(crate) struct Sleeper {
    state: AtomicU32,
    thread: std::sync::OnceLock<Thread>,
}

impl Sleeper {
    pub(crate) fn new() -> Sleeper {
        Sleeper { state: AtomicU32::new(AWAKE), thread: std::sync::OnceLock::new() }
    }

    /// The calling thread is the one that parks here. Before that, nobody can be asleep.
    pub(crate) fn occupy(&self) {
        let first = self.thread.set(thread::current());
        assert!(first.is_ok(), "one thread sleeps here");
    }

    /// Parks the calling thread until woken, or until `timeout_ms` has passed; not at all if `work` finds some.
    pub(crate) fn park(&self, timeout_ms: Option<u64>, work: impl FnOnce() -> bool) {
        self.state.store(PARKED, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !work() {
            sleep(timeout_ms);
        }
        self.state.store(AWAKE, Ordering::Relaxed);
    }

    /// Wakes the worker if it is parked. To be called after the work was made visible. About 10 ns if it is awake.
    #[inline]
    pub(crate) fn wake(&self) -> bool {
        fence(Ordering::SeqCst);
        if self.state.load(Ordering::Relaxed) != PARKED || self.state.swap(AWAKE, Ordering::Relaxed) != PARKED
        {
            return false;
        }
        self.thread.get().expect("only a thread that occupies it parks").unpark();
        true
    }
}

#[cfg(not(loom))]
fn sleep(timeout_ms: Option<u64>) {
    match timeout_ms {
        Some(timeout_ms) => thread::park_timeout(std::time::Duration::from_millis(timeout_ms)),
        None => thread::park(),
    }
}

#[cfg(loom)]
fn sleep(_timeout_ms: Option<u64>) {
    thread::park();
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;

    #[test]
    fn loom_work_made_visible_before_a_wake_is_found_or_wakes_the_sleeper() {
        loom::model(|| {
            let sleeper = Arc::new(Sleeper::new());
            sleeper.occupy();
            let work = Arc::new(AtomicU32::new(0));
            let (waker_sleeper, waker_work) = (sleeper.clone(), work.clone());
            let waker = thread::spawn(move || {
                waker_work.store(1, Ordering::Relaxed);
                waker_sleeper.wake();
            });
            // A lost wake-up is a park that never ends: loom reports it as a deadlock.
            while work.load(Ordering::Relaxed) == 0 {
                sleeper.park(None, || work.load(Ordering::Relaxed) == 1);
            }
            waker.join().expect("the waker does not panic");
        });
    }
}
