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
//!
//! # Who pays for the fences
//! A waker's costs as much as a message, since it waits until the line that was written has come from the reader's cache,
//! and sleepers are few. So where the kernel can make all threads that may wake fence at once (`membarrier`), the sleeper
//! asks for that, and wakers only keep the compiler from changing their order: a fence that falls between a waker's two
//! halves does what both fences do. Loom, which knows no such kernel, tries the fences of both.
//!
//! # Beds outside of the process
//! Ranks that are processes of one host wake each other: the state of a worker 0 then lies in memory that they share
//! ([`share`](Sleeper::share)), and the sleeper waits there (a futex) rather than in its thread's own parking place.

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

/// Who fences between the halves of the race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fences {
    /// Sleeper and waker, each for itself.
    Both,
    /// The sleeper, for all.
    Sleeper,
}

impl Fences {
    /// Those of the threads of this process.
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

/// One worker's bed.
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

    /// The calling thread is the one that parks here. Before that, nobody can be asleep.
    pub(crate) fn bind_to_thread(&self) {
        let first = self.thread.set(thread::current());
        assert!(first.is_ok(), "one thread sleeps here");
    }

    /// Parks the calling thread until woken, or until `timeout` has passed; not at all if `work` finds some.
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

    /// The first half of [`park`](Self::park): true if `work` finds none, so that the worker may sleep until it is
    /// [called](Self::is_called). Then, or with a false, it must [`rise`](Self::rise). Alone it is for a simulation, whose
    /// wakers are the same thread: it fences for nobody.
    pub(crate) fn prepare_sleep(&self, work: impl FnOnce() -> bool) -> bool {
        self.state().store(PARKED, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        !work()
    }

    /// The second half of [`park`](Self::park).
    pub(crate) fn end_sleep(&self) {
        self.state().store(AWAKE, Ordering::Relaxed);
    }

    /// Tells whether a worker that lay down was woken, for a simulation, in which no thread sleeps for real.
    pub(crate) fn is_woken(&self) -> bool {
        self.state().load(Ordering::Relaxed) == AWAKE
    }

    /// Wakes the worker if it is parked. To be called after the work was made visible. A few ns if it is awake, where the
    /// sleeper fences.
    #[inline]
    pub(crate) fn wake(&self) -> bool {
        self.fences.pass_as_waker();
        if !calls(self.state()) {
            return false;
        }
        #[cfg(feature = "mpi")]
        if let Some(bed) = self.shared.get() {
            futex_wake(bed.state());
            return true;
        }
        self.thread.get().expect("only a thread that occupies it parks").unpark();
        true
    }
}

/// What a waker does after its fence: whether there is somebody to be woken, which is then nobody else's task.
#[inline]
fn calls(state: &AtomicU32) -> bool {
    state.load(Ordering::Relaxed) == PARKED && state.swap(AWAKE, Ordering::Relaxed) == PARKED
}

/// Lets all threads of this process fence, where wakers do not.
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

    /// A state in memory that other processes see too.
    pub(crate) trait SharedSleepState: Send + Sync {
        fn state(&self) -> &AtomicU32;
        fn fences(&self) -> Fences;
    }

    impl Fences {
        /// Lets sleepers of other processes fence in this one. False where the kernel does not.
        pub(crate) fn register() -> bool {
            let registered = membarrier(MembarrierCommand::RegisterGlobalExpedited);
            registered.and_then(|()| membarrier(MembarrierCommand::GlobalExpedited)).is_ok()
        }
    }

    impl Sleeper {
        /// From now on the worker sleeps in this bed. Nobody may be asleep.
        pub(crate) fn share(&self, bed: Box<dyn SharedSleepState>) {
            assert!(self.shared.set(bed).is_ok(), "a bed is shared once");
        }

        #[inline]
        pub(super) fn state(&self) -> &AtomicU32 {
            self.shared.get().map_or(&self.state, |bed| bed.state())
        }

        pub(super) fn fence_for_wakers(&self) {
            match self.shared.get().map(|bed| bed.fences()) {
                // Those of this process too.
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
                // Woken, changed, interrupted or timed out: the worker looks for itself.
                Some(bed) => {
                    let timeout = timeout.and_then(|timeout| timeout.try_into().ok());
                    let _ = futex::wait(bed.state(), futex::Flags::empty(), PARKED, timeout.as_ref());
                }
            }
        }
    }

    /// Ends the sleep of whoever waits on this state.
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
