//! The sleep states of a rank's workers, and the choice of a worker to wake for work that any of them could do.
//!
//! # The race
//! A worker that parks counts itself as parked and then looks for work once more. A worker that has put a ready entry
//! on its own queue then checks whether any worker is parked. A sequentially consistent
//! fence of [`sleep`](super::sleep) lies between the two halves on both sides. So at least one side sees the write of
//! the other: an entry that could be stolen wakes a worker that can steal it. (Otherwise the entry would wait for its
//! owner, which may be in a long handler.)

use std::time::Duration;

use super::sleep::{Fences, Sleeper};
use super::sync::{AtomicBool, AtomicU64, Ordering};

/// The sleepers of one rank.
pub(crate) struct Team {
    pub(crate) sleepers: Vec<Sleeper>,
    /// Number of workers that are parked or about to park.
    parked: AtomicU64,
    stop: AtomicBool,
    fences: Fences,
}

impl Team {
    pub(crate) fn new(workers: u32) -> Team {
        let sleepers = (0..workers).map(|_| Sleeper::new()).collect();
        Team {
            sleepers,
            parked: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            fences: Fences::of_threads(),
        }
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Tells whether all workers except the caller are parked.
    pub(crate) fn others_are_parked(&self) -> bool {
        self.parked.load(Ordering::SeqCst) == self.sleepers.len() as u64 - 1
    }

    /// Parks worker `me`, the calling thread, until it is woken or `timeout` has passed, unless `work` is true.
    pub(crate) fn park(&self, me: u32, timeout: Option<Duration>, work: impl FnOnce() -> bool) {
        self.parked.fetch_add(1, Ordering::SeqCst);
        self.sleepers[me as usize].park(timeout, work);
        self.parked.fetch_sub(1, Ordering::SeqCst);
    }

    /// Wakes one worker other than `me`, if one is parked. Must be called after the work was made visible, and only on
    /// a rank with several workers.
    #[inline]
    pub(crate) fn wake_one(&self, me: u32) {
        self.fences.pass_as_waker();
        if self.parked.load(Ordering::Relaxed) > 0 {
            let others = self.sleepers.iter().enumerate().filter(|&(worker, _)| worker != me as usize);
            let _ = others.into_iter().any(|(_, sleeper)| sleeper.wake());
        }
    }

    pub(crate) fn wake_all(&self) {
        for sleeper in &self.sleepers {
            sleeper.wake();
        }
    }

    /// Ends the rank's scheduler: every worker leaves its loop at its next check.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.wake_all();
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::threads::sync::AtomicU32;
    use loom::sync::Arc;
    use loom::thread;

    #[test]
    fn loom_a_ready_entry_on_an_own_queue_is_seen_by_a_parking_worker_or_wakes_it() {
        loom::model(|| {
            let team = Arc::new(Team::new(2));
            let queue = Arc::new(AtomicU32::new(0));
            let (owner_team, owner_queue) = (team.clone(), queue.clone());
            team.sleepers[1].bind_to_thread();
            let owner = thread::spawn(move || {
                // The order in which the owner of a deque publishes an entry.
                owner_queue.store(1, Ordering::Release);
                owner_team.wake_one(0);
            });
            // A lost wake-up is a park that never ends: loom reports it as a deadlock.
            while queue.load(Ordering::Acquire) == 0 {
                team.park(1, None, || queue.load(Ordering::Acquire) == 1);
            }
            owner.join().expect("the owner does not panic");
        });
    }
}
