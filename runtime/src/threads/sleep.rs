//! Sleep and wake-up of workers, without lost wake-ups.
//!
//! # Words
//! *Work* is anything that a worker looks for: a ready entry on a queue it may take from, a packet in the transport, the
//! stop flag. A worker that finds none spins a little, then *parks*.
//!
//! # The race, and why no wake-up is lost
//! The sleeper sets its state to PARKED and then looks for work once more. The waker makes work visible and then reads the
//! state of the sleeper. Between the two halves lies a sequentially consistent fence on both sides, so at least one side
//! sees the other (Dekker). If both do, `unpark` comes before `park`, which then returns at once: `unpark` leaves a permit,
//! not a signal.
//!
//! | state | set by | meaning |
//! |---|---|---|
//! | AWAKE | the sleeper after a park; a waker that will unpark it | looks for work, or will |
//! | PARKED | the sleeper before it looks for the last time | must be unparked after work was made visible |
//!
//! # The cost of the fences
//! A fence in the waker costs as much as a message: it waits until the written cache line has come from the reader's
//! cache. Sleepers are few. So where the kernel can make all threads that may wake execute a fence (`membarrier`), the
//! sleeper requests that. Wakers then use only a compiler fence: a fence between the two halves of a waker does what both
//! fences do. Loom does not model such a kernel, so it tests both fences.
//!
//! # Sleep states shared by processes
//! Ranks that are processes of one host wake each other. The sleep state of worker 0 then lies in shared memory
//! (`Sleeper::share`). The sleeper waits there by a futex instead of parking its thread.

use std::sync::OnceLock;
use std::sync::atomic::compiler_fence;
use std::time::Duration;

use rustix::thread::{MembarrierCommand, membarrier};

use super::sync::{AtomicU32, Ordering, fence};

#[cfg(loom)]
use loom::thread::{self, Thread};
#[cfg(not(loom))]
use std::thread::{self, Thread};

const AWAKE: u32 = 0;
const PARKED: u32 = 1;

/// The side that fences between the halves of the race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fences {
    /// Sleeper and waker, each for itself.
    Both,
    /// The sleeper, for all threads.
    Sleeper,
}

impl Fences {
    /// The fences among the threads of this process.
    pub(crate) fn of_threads() -> Fences {
        static FENCES: OnceLock<Fences> = OnceLock::new();
        *FENCES.get_or_init(|| {
            let registered = membarrier(MembarrierCommand::RegisterPrivateExpedited);
            let tried = registered.and_then(|()| membarrier(MembarrierCommand::PrivateExpedited));
            if tried.is_ok() && !cfg!(loom) { Fences::Sleeper } else { Fences::Both }
        })
    }

    /// The fence of a waker.
    #[inline]
    pub(crate) fn pass_as_waker(self) {
        match self {
            Fences::Both => fence(Ordering::SeqCst),
            Fences::Sleeper => compiler_fence(Ordering::SeqCst),
        }
    }
}

/// The sleep state of one worker.
pub(crate) struct Sleeper {
    state: AtomicU32,
    fences: Fences,
    thread: OnceLock<Thread>,
    #[cfg(feature = "mpi")]
    shared: OnceLock<Box<dyn SharedSleepState>>,
}

impl Sleeper {
    pub(crate) fn new() -> Sleeper {
        Sleeper {
            state: AtomicU32::new(AWAKE),
            fences: Fences::of_threads(),
            thread: OnceLock::new(),
            #[cfg(feature = "mpi")]
            shared: OnceLock::new(),
        }
    }

    /// Makes the calling thread the one that parks here. No thread can be asleep before that.
    pub(crate) fn bind_to_thread(&self) {
        let first = self.thread.set(thread::current());
        assert!(first.is_ok(), "one thread sleeps here");
    }

    /// Parks the calling thread until it is woken or `timeout` has passed. Does not park if `work` finds any.
    pub(crate) fn park(&self, timeout: Option<Duration>, work: impl FnOnce() -> bool) {
        let fenced = || {
            self.fence_for_wakers();
            work()
        };
        if self.prepare_sleep(fenced) {
            self.sleep(timeout);
        }
        self.end_sleep();
    }

    /// The first half of [`park`](Self::park): true if `work` finds none, so that the worker may sleep until it [is
    /// woken](Self::is_woken). Then, or after a false, it must [end the sleep](Self::end_sleep). Only a simulation uses it
    /// alone. Its wakers are the same thread, so this makes no other thread fence.
    pub(crate) fn prepare_sleep(&self, work: impl FnOnce() -> bool) -> bool {
        self.state().store(PARKED, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        !work()
    }

    /// The second half of [`park`](Self::park).
    pub(crate) fn end_sleep(&self) {
        self.state().store(AWAKE, Ordering::Relaxed);
    }

    /// Tells whether a worker that prepared to sleep was woken. For a simulation, in which no thread sleeps for real.
    pub(crate) fn is_woken(&self) -> bool {
        self.state().load(Ordering::Relaxed) == AWAKE
    }

    /// Wakes the worker if it is parked; returns whether it was. Must be called after the work was made visible. Takes a few
    /// ns for an awake worker where the sleeper fences.
    #[inline]
    pub(crate) fn wake(&self) -> bool {
        self.fences.pass_as_waker();
        if !calls(self.state()) {
            return false;
        }
        #[cfg(feature = "mpi")]
        if let Some(shared) = self.shared.get() {
            futex_wake(shared.state());
            return true;
        }
        self.thread.get().expect("only a thread that occupies it parks").unpark();
        true
    }
}

/// The waker's half after its fence. True if the sleeper must be woken; no other waker is told the same.
#[inline]
fn calls(state: &AtomicU32) -> bool {
    state.load(Ordering::Relaxed) == PARKED && state.swap(AWAKE, Ordering::Relaxed) == PARKED
}

/// Makes all threads of this process fence, if wakers do not.
fn fence_threads(fences: Fences) {
    if fences == Fences::Sleeper {
        membarrier(MembarrierCommand::PrivateExpedited).expect("it was tried");
    }
}

#[cfg(not(feature = "mpi"))]
impl Sleeper {
    #[inline]
    fn state(&self) -> &AtomicU32 {
        &self.state
    }

    fn fence_for_wakers(&self) {
        fence_threads(self.fences);
    }

    fn sleep(&self, timeout: Option<Duration>) {
        park_thread(timeout);
    }
}

#[cfg(not(loom))]
fn park_thread(timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => thread::park_timeout(timeout),
        None => thread::park(),
    }
}

#[cfg(loom)]
fn park_thread(_timeout: Option<Duration>) {
    thread::park();
}

#[cfg(feature = "mpi")]
pub(crate) use shared::{SharedSleepState, futex_wake, wake_at};

#[cfg(feature = "mpi")]
mod shared {
    use super::{AtomicU32, Duration, Fences, PARKED, Sleeper, calls, fence_threads, park_thread};
    use rustix::thread::{MembarrierCommand, futex, membarrier};

    /// A sleep state in memory that is shared with other processes.
    pub(crate) trait SharedSleepState: Send + Sync {
        fn state(&self) -> &AtomicU32;
        fn fences(&self) -> Fences;
    }

    impl Fences {
        /// Allows the sleepers of other processes to make this process fence. False if the kernel does not support it.
        pub(crate) fn register() -> bool {
            let registered = membarrier(MembarrierCommand::RegisterGlobalExpedited);
            registered.and_then(|()| membarrier(MembarrierCommand::GlobalExpedited)).is_ok()
        }
    }

    impl Sleeper {
        /// Moves the worker to this shared sleep state. The worker must not be asleep.
        pub(crate) fn share(&self, shared: Box<dyn SharedSleepState>) {
            assert!(self.shared.set(shared).is_ok(), "a bed is shared once");
        }

        #[inline]
        pub(super) fn state(&self) -> &AtomicU32 {
            self.shared.get().map_or(&self.state, |shared| shared.state())
        }

        pub(super) fn fence_for_wakers(&self) {
            match self.shared.get().map(|shared| shared.fences()) {
                // This includes the threads of this process.
                Some(Fences::Sleeper) => {
                    membarrier(MembarrierCommand::GlobalExpedited)
                        .expect("it was tried when all agreed on it");
                }
                Some(Fences::Both) | None => fence_threads(self.fences),
            }
        }

        pub(super) fn sleep(&self, timeout: Option<Duration>) {
            match self.shared.get() {
                None => park_thread(timeout),
                // The worker looks for work itself, whether it was woken, interrupted or timed out, or the state had
                // changed.
                Some(shared) => {
                    let timeout = timeout.and_then(|timeout| timeout.try_into().ok());
                    let _ = futex::wait(shared.state(), futex::Flags::empty(), PARKED, timeout.as_ref());
                }
            }
        }
    }

    /// Wakes the thread that waits on this state.
    #[cold]
    pub(crate) fn futex_wake(state: &AtomicU32) {
        // Fails only for an address that is not mapped.
        let _ = futex::wake(state, futex::Flags::empty(), 1);
    }

    /// [`Sleeper::wake`] for the worker 0 of another process.
    #[inline]
    pub(crate) fn wake_at(state: &AtomicU32, fences: Fences) {
        fences.pass_as_waker();
        if calls(state) {
            futex_wake(state);
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;

    #[test]
    fn loom_work_made_visible_before_a_wake_is_found_or_wakes_the_sleeper() {
        loom::model(|| {
            let sleeper = Arc::new(Sleeper::new());
            sleeper.bind_to_thread();
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
