//! Sleep and wake-up of workers, without lost wake-ups.
//!
//! # Words
//! *Work* is anything that a worker looks for: a ready entry on a queue that it may take from, a packet in the
//! transport, the stop flag. A worker that finds no work spins for a while, and then *parks*.
//!
//! # The race, and why no wake-up is lost
//! The sleeper sets its state to PARKED and then looks for work once more. The waker makes work visible and then reads
//! the state of the sleeper. On each side a sequentially consistent fence lies between the two halves, so at least one
//! side sees the write of the other (Dekker). If both sides do, `unpark` comes before `park`, which then returns at
//! once, because `unpark` leaves a permit.
//!
//! | state | set by | meaning |
//! |---|---|---|
//! | AWAKE | the sleeper after a park; a waker that will unpark it | looks for work, or is about to |
//! | PARKED | the sleeper before it looks for work the last time | must be unparked after work was made visible |
//!
//! # The cost of the fences
//! A fence in the waker costs as much as a message, because it waits until the written cache line has come from the
//! reader's cache. Sleepers are few. Where the kernel supports `membarrier`, the sleeper therefore makes all threads
//! that may wake it execute a fence, and wakers use only a compiler fence. A fence by `membarrier` between the two
//! halves of a waker has the effect of both fences. Loom does not model `membarrier`, so its tests use both fences.
//!
//! # Sleep states shared by processes
//! Ranks that are processes of one host wake each other. The sleep state of worker 0 is then in shared memory
//! (`Sleeper::share`), where the sleeper waits by a futex instead of parking its thread.

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

/// The side that executes the fences between the halves of the race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fences {
    /// Sleeper and waker, each for its own side.
    Both,
    /// The sleeper, for all threads, by `membarrier`.
    Sleeper,
}

impl Fences {
    /// The fences to use among the threads of this process.
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

    /// Makes the calling thread the one that parks here. Must be called before the first park.
    pub(crate) fn bind_to_thread(&self) {
        let first = self.thread.set(thread::current());
        assert!(first.is_ok(), "one thread sleeps here");
    }

    /// Parks the calling thread until it is woken or `timeout` has passed. Does not park if `work` returns true.
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

    /// The first half of [`park`](Self::park). True if `work` returns false, so that the worker may sleep until it [is
    /// woken](Self::is_woken). In either case [`end_sleep`](Self::end_sleep) must follow. Only a simulation calls this
    /// alone. Its wakers are the same thread, so no other thread has to fence.
    pub(crate) fn prepare_sleep(&self, work: impl FnOnce() -> bool) -> bool {
        self.state().store(PARKED, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        !work()
    }

    /// The second half of [`park`](Self::park).
    pub(crate) fn end_sleep(&self) {
        self.state().store(AWAKE, Ordering::Relaxed);
    }

    /// Tells whether a worker that prepared to sleep was woken. For a simulation, in which no thread really sleeps.
    pub(crate) fn is_woken(&self) -> bool {
        self.state().load(Ordering::Relaxed) == AWAKE
    }

    /// Wakes the worker if it is parked; returns whether it was. Must be called after the work was made visible. For an
    /// awake worker this takes a few ns where the sleeper fences.
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

/// The waker's half after its fence. Returns true to exactly one waker of a parked sleeper.
#[inline]
fn calls(state: &AtomicU32) -> bool {
    state.load(Ordering::Relaxed) == PARKED && state.swap(AWAKE, Ordering::Relaxed) == PARKED
}

/// Makes all threads of this process execute a fence, if wakers do not.
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
        /// Lets the sleepers of other processes make this process fence. False if the kernel does not support that.
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
                // The global fence includes the threads of this process.
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
                // The worker looks for work after every return: a wake-up, an interrupt, a timeout, or a state that had
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

    /// [`Sleeper::wake`] for worker 0 of another process.
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
