//! Measures the relative speed of a vCPU by the computation loop of Gupta et al., 2013, figure 2.
//!
//! The loop is timed by the thread's CPU clock, so that waiting for the vCPU does not look like a slow vCPU (the rank's
//! *share* covers waiting). Single bursts err in both directions (an interrupt, a stolen slice, a corrected clock), so
//! the median of several counts. Every worker repeats a round of bursts at each sync or balancing window, busy or not,
//! because a worker may never be idle. After three rounds most bursts of the median are new.
//!
//! A round of bursts takes 60 us, and rounds are at least 20 ms apart: at most 0.3 % of the time.

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use super::cpu::thread_cpu_ns;

/// Turns of the loop in one burst, which takes about 20 us.
const TURNS: f64 = 1000.0;
/// Number of bursts of the median.
const BURSTS: usize = 15;
/// Number of bursts of one round.
const BURSTS_A_ROUND: usize = 3;
/// Minimum time between two rounds, ns.
const ROUND_INTERVAL_NS: u64 = 20_000_000;

/// The number of rounds that the workers of a rank are requested to run.
#[derive(Default)]
pub(crate) struct CalibrationRounds {
    asked: AtomicU64,
    requested_ns: AtomicU64,
}

impl CalibrationRounds {
    /// Requests a round from every worker, unless the last request is so recent that the cost would be too high.
    pub(crate) fn ask(&self, now_ns: u64) {
        if now_ns.saturating_sub(self.requested_ns.load(Ordering::Relaxed)) >= ROUND_INTERVAL_NS {
            self.requested_ns.store(now_ns, Ordering::Relaxed);
            self.asked.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The speed of one worker's vCPU: its last bursts, in turns of the loop per us of CPU time.
#[derive(Clone, Debug)]
pub(crate) struct Speed {
    bursts: VecDeque<f64>,
    /// The last requested round that the worker has run.
    answered: u64,
    slowness: f64,
}

impl Speed {
    /// Runs the first bursts, in about 0.3 ms. Each does `slowness` times the work that it counts; normally 1.
    pub(crate) fn measured(slowness: f64) -> Speed {
        Speed { bursts: (0..BURSTS).map(|_| burst(slowness)).collect(), answered: 0, slowness }
    }

    /// Runs a round that was requested since the last one. False if none was.
    #[inline]
    pub(crate) fn answer(&mut self, rounds: &CalibrationRounds) -> bool {
        let asked = rounds.asked.load(Ordering::Relaxed);
        if asked == self.answered {
            return false;
        }
        self.answered = asked;
        for _ in 0..BURSTS_A_ROUND {
            self.bursts.pop_front();
            self.bursts.push_back(burst(self.slowness));
        }
        true
    }

    pub(crate) fn turns_per_us(&self) -> f64 {
        let mut bursts: Vec<f64> = self.bursts.iter().copied().collect();
        bursts.sort_unstable_by(f64::total_cmp);
        bursts[bursts.len() / 2]
    }
}

/// Runs one burst. Returns turns per us of CPU time.
fn burst(slowness: f64) -> f64 {
    let start_ns = thread_cpu_ns();
    let mut result = black_box(1i32);
    for _ in 0..(TURNS * slowness) as u64 {
        let b = 0.1 + 0.1 * f64::from(black_box(result));
        result = (1.0 + (b * 1.57).cos()).sqrt() as i32;
    }
    black_box(result);
    let used_ns = thread_cpu_ns().saturating_sub(start_ns).max(1);
    TURNS * 1e3 / used_ns as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vcpu_has_a_speed_and_still_has_one_when_it_is_measured_again() {
        let (mut speed, rounds) = (Speed::measured(1.0), CalibrationRounds::default());
        for round in 1..=5 {
            let turns_per_us = speed.turns_per_us();
            assert!(turns_per_us > 0.1 && turns_per_us.is_finite(), "{turns_per_us} turns a us");
            rounds.ask(round * ROUND_INTERVAL_NS);
            assert!(speed.answer(&rounds));
        }
    }

    #[test]
    fn a_slow_rank_measures_itself_slower() {
        let ratio = Speed::measured(4.0).turns_per_us() / Speed::measured(1.0).turns_per_us();
        // A quarter is expected. A disturbance of one of the measurements stays within a factor of four.
        assert!(ratio < 1.0, "{ratio}");
    }

    #[test]
    fn every_worker_answers_a_round_once_and_rounds_are_not_too_close() {
        let rounds = CalibrationRounds::default();
        let mut workers = [Speed::measured(1.0), Speed::measured(1.0)];
        let mut answered = |now_ns| {
            rounds.ask(now_ns);
            workers.each_mut().map(|worker| {
                let before = worker.bursts.clone();
                let answers = worker.answer(&rounds);
                let kept = before.range(BURSTS_A_ROUND..).eq(worker.bursts.range(..BURSTS - BURSTS_A_ROUND));
                assert_eq!(answers, kept && before != worker.bursts);
                answers
            })
        };
        assert_eq!(answered(ROUND_INTERVAL_NS - 1), [false; 2]);
        assert_eq!(answered(ROUND_INTERVAL_NS), [true; 2]);
        assert_eq!(answered(2 * ROUND_INTERVAL_NS - 1), [false; 2]);
        assert_eq!(answered(2 * ROUND_INTERVAL_NS), [true; 2]);
    }
}
