//! Records the time at which each iteration is complete on all ranks. The disturbance injector reads these times to
//! start and stop *neighbours* (busy processes on the vCPU of a rank).
//!
//! Any worker of the program may record. Recording takes two atomic writes and one read, so that it does not show in an
//! iteration of a millisecond.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::thread::Thread;

/// The times of a run, in nanoseconds since it began.
#[derive(Debug)]
pub struct IterationClock {
    start_ns: AtomicU64,
    complete_ns: Box<[AtomicU64]>,
    completed: AtomicU32,
    /// The number of complete iterations at which `record` wakes the injector.
    alarm: AtomicU32,
    director: OnceLock<Thread>,
}

impl IterationClock {
    /// A clock for a run of `iterations` iterations.
    #[must_use]
    pub fn new(iterations: u32) -> Self {
        Self {
            start_ns: AtomicU64::new(0),
            complete_ns: (0..iterations).map(|_| AtomicU64::new(0)).collect(),
            completed: AtomicU32::new(0),
            alarm: AtomicU32::new(u32::MAX),
            director: OnceLock::new(),
        }
    }

    /// Records the begin of the first iteration. The time before it is setup.
    pub fn record_start(&self, now_ns: u64) {
        self.start_ns.store(now_ns, SeqCst);
    }

    /// Records that `completed` iterations are complete on all ranks. Called once for each number.
    ///
    /// # Panics
    /// If `completed` is zero or more than the run has.
    pub fn record(&self, completed: u32, now_ns: u64) {
        self.complete_ns[completed as usize - 1].store(now_ns, SeqCst);
        self.completed.fetch_max(completed, SeqCst);
        // All accesses are `SeqCst`: either this load sees the alarm, or the injector sees the count after setting it.
        if completed >= self.alarm.load(SeqCst)
            && let Some(director) = self.director.get()
        {
            director.unpark();
        }
    }

    /// Iterations that are complete.
    #[must_use]
    pub fn completed(&self) -> u32 {
        self.completed.load(SeqCst)
    }

    /// Iterations of the run.
    #[must_use]
    pub fn iterations(&self) -> u32 {
        self.complete_ns.len() as u32
    }

    /// Makes [`record`](Self::record) unpark the calling thread at `completed` iterations. The caller must read
    /// [`completed`](Self::completed) again before it parks. Only one thread may ever call this.
    pub fn wake_me_at(&self, completed: u32) {
        self.director.get_or_init(std::thread::current);
        self.alarm.store(completed, SeqCst);
    }

    /// When the first iteration began and when each was complete; shorter than the run if it ended early.
    #[must_use]
    pub fn times_ns(&self) -> (u64, Vec<u64>) {
        let complete = self.complete_ns.iter().take(self.completed() as usize);
        (self.start_ns.load(SeqCst), complete.map(|at| at.load(SeqCst)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_clock_returns_what_was_recorded_and_no_more() {
        let clock = IterationClock::new(3);
        clock.record_start(5);
        clock.record(1, 10);
        clock.record(2, 30);
        assert_eq!(clock.times_ns(), (5, vec![10, 30]));
    }

    #[test]
    fn the_director_is_woken_at_its_iteration() {
        let clock = IterationClock::new(100);
        std::thread::scope(|scope| {
            let director = scope.spawn(|| {
                clock.wake_me_at(50);
                let mut parks = 0;
                while clock.completed() < 50 {
                    std::thread::park_timeout(Duration::from_secs(60));
                    parks += 1;
                }
                parks
            });
            while clock.alarm.load(SeqCst) != 50 {
                std::thread::yield_now();
            }
            (1..=100).for_each(|completed| clock.record(completed, u64::from(completed)));
            assert!(director.join().unwrap() <= 2);
        });
    }
}
