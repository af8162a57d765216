//! Decides in phase 2 of `caa` between shares and a master. The decision is a pure function of the reports.
//!
//! If there are at most as many tasks left as workers, each worker gets one. Else four weighted conditions favour
//! shares. Shares are chosen if those that hold have at least half of all weights (paper of [`caa`](super), eq. 1-3).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::pools::machine::Nanos;

/// The tasks that one worker, or all workers together, have finished.
///
/// ```
/// use lb_strategies::pool::caa::decide::TaskStats;
/// let mut tally = TaskStats::default();
/// tally.add(1, 2_000_000_000);
/// tally.add(1, 4_000_000_000);
/// assert_eq!(tally.done, 2);
/// assert!((tally.deviation() - 1.0 / 3.0).abs() < 1e-12, "1 of 3 seconds");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskStats {
    /// Tasks finished.
    pub done: u64,
    /// Number of durations measured, one for each step. A step may have several short tasks.
    pub measured: u64,
    /// Sum over steps of the mean duration of a task, in seconds.
    pub sum: f64,
    /// Sum of the squares of these durations.
    pub squares: f64,
}

impl TaskStats {
    /// Adds a step of `count` tasks that took this long together.
    pub fn add(&mut self, count: u64, took: Nanos) {
        let each = took as f64 / 1e9 / count.max(1) as f64;
        self.done += count;
        self.measured += 1;
        self.sum += each;
        self.squares += each * each;
    }

    /// The tasks of both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            done: self.done + other.done,
            measured: self.measured + other.measured,
            sum: self.sum + other.sum,
            squares: self.squares + other.squares,
        }
    }

    /// Standard deviation of the durations as a part of their mean; 0 if nothing was measured.
    pub fn deviation(&self) -> f64 {
        deviation(self.measured as f64, self.sum, self.squares)
    }
}

/// The facts at the end of a round. Only workers that have come are counted.
///
/// ```
/// use lb_strategies::pool::caa::RoundStats;
/// let facts = RoundStats { done: vec![9, 10], ..RoundStats::default() };
/// assert_eq!(facts.left, 0);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundStats {
    /// Tasks left.
    pub left: u64,
    /// Clock speed of each worker.
    pub clocks: Vec<f64>,
    /// Tasks finished by each worker.
    pub done: Vec<u64>,
    /// Durations of tasks, of all workers together.
    pub tasks: TaskStats,
}

/// The thresholds below which the conditions hold, and the weights of the conditions.
///
/// ```
/// use lb_strategies::pool::caa::decide::Thresholds;
/// assert_eq!(Thresholds::PAPER.workers, 32);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// U1: standard deviation of the clocks, as a part of their mean.
    pub clocks: f64,
    /// U2: number of workers.
    pub workers: u64,
    /// U3: standard deviation of the tasks finished by a worker, as a part of their mean.
    pub done: f64,
    /// U4: standard deviation of the durations of all tasks, as a part of their mean.
    pub durations: f64,
    /// K1 to K4, each from 0 to 1.
    pub weights: [f64; 4],
}

impl Thresholds {
    /// The values of the paper's simulations.
    pub const PAPER: Self =
        Self { clocks: 0.1, workers: 32, done: 0.25, durations: 0.25, weights: [0.0, 1.0, 1.0, 0.5] };

    /// Whether U1 to U4 hold.
    pub fn hold(&self, facts: &RoundStats) -> [bool; 4] {
        [
            spread(facts.clocks.iter().copied()) < self.clocks,
            (facts.done.len() as u64) < self.workers,
            spread(facts.done.iter().map(|&done| done as f64)) < self.done,
            facts.tasks.deviation() < self.durations,
        ]
    }
}

/// What follows after a round.
///
/// ```
/// use lb_strategies::pool::caa::NextPhase;
/// assert_eq!(NextPhase::Master.to_string(), "MS");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextPhase {
    /// At most one task for each worker, because no more are left than workers. Also domain decomposition (DD).
    OneEach,
    /// Shares in proportion to finished tasks: domain decomposition (DD).
    Shares,
    /// A master hands out the tasks one by one (MS).
    Master,
}

impl fmt::Display for NextPhase {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::OneEach => "DD, one task each",
            Self::Shares => "DD",
            Self::Master => "MS",
        })
    }
}

/// Decides. If no worker has come, a master is chosen, from which late workers can request tasks.
///
/// ```
/// use lb_strategies::pool::caa::{NextPhase, RoundStats, decide, decide::Thresholds};
/// let mut facts = RoundStats { left: 20, clocks: vec![1.0; 16], done: vec![190; 16], ..RoundStats::default() };
/// assert_eq!(decide(&facts, &Thresholds::PAPER), NextPhase::Shares, "few workers, all alike");
/// facts.left = 16;
/// assert_eq!(decide(&facts, &Thresholds::PAPER), NextPhase::OneEach);
/// let many = RoundStats { left: 200, clocks: vec![1.0; 64], done: (1..=64).collect(), ..RoundStats::default() };
/// assert_eq!(decide(&many, &Thresholds::PAPER), NextPhase::Master);
/// ```
pub fn decide(facts: &RoundStats, conditions: &Thresholds) -> NextPhase {
    let workers = facts.done.len() as u64;
    if workers == 0 {
        return NextPhase::Master;
    }
    if facts.left <= workers {
        return NextPhase::OneEach;
    }
    let weights = conditions.weights;
    let held = conditions.hold(facts).into_iter().zip(weights).filter(|&(holds, _)| holds);
    let sum: f64 = held.map(|(_, weight)| weight).sum();
    if sum >= weights.iter().sum::<f64>() / 2.0 { NextPhase::Shares } else { NextPhase::Master }
}

/// Standard deviation as a part of the mean.
fn spread(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum, squares) = values.fold((0.0, 0.0, 0.0), |(count, sum, squares), value| {
        (count + 1.0, sum + value, squares + value * value)
    });
    deviation(count, sum, squares)
}

fn deviation(count: f64, sum: f64, squares: f64) -> f64 {
    if sum <= 0.0 {
        return 0.0;
    }
    let mean = sum / count;
    // Rounding may make the variance slightly negative.
    (squares / count - mean * mean).max(0.0).sqrt() / mean
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `RoundStats` of `workers` workers in which U3 and U4 hold or not.
    fn facts(workers: u64, alike_done: bool, alike_durations: bool) -> RoundStats {
        let done = |worker| if alike_done || worker % 2 == 0 { 100 } else { 10 };
        let mut tasks = TaskStats::default();
        tasks.add(1, 1_000_000_000);
        tasks.add(1, if alike_durations { 1_000_000_000 } else { 9_000_000_000 });
        let clocks = vec![1.0; workers as usize];
        RoundStats { left: 1000, clocks, done: (0..workers).map(done).collect(), tasks }
    }

    #[test]
    fn the_weights_of_the_paper_ask_few_workers_for_one_more_condition_and_many_for_both() {
        let shares = |workers, done, durations| {
            decide(&facts(workers, done, durations), &Thresholds::PAPER) == NextPhase::Shares
        };
        // At 31: 1 + 0.5 U4 + U3 of 2.5.
        assert_eq!(
            [shares(31, true, false), shares(31, false, true), shares(31, false, false)],
            [true, true, false]
        );
        // At 32: U3 + 0.5 U4 only.
        assert_eq!(
            [shares(32, true, true), shares(32, true, false), shares(32, false, true)],
            [true, false, false]
        );
    }

    #[test]
    fn a_weight_of_zero_takes_a_condition_out() {
        let mut unlike = facts(16, true, true);
        unlike.clocks[0] = 9.0;
        assert_eq!(decide(&unlike, &Thresholds::PAPER), NextPhase::Shares);
        let clocks_only = Thresholds { weights: [1.0, 0.0, 0.0, 0.0], ..Thresholds::PAPER };
        assert_eq!(decide(&unlike, &clocks_only), NextPhase::Master);
    }

    #[test]
    fn half_of_all_weights_is_enough_for_shares() {
        let conditions = Thresholds { weights: [0.0, 0.0, 0.5, 0.5], ..Thresholds::PAPER };
        assert_eq!(decide(&facts(64, true, false), &conditions), NextPhase::Shares);
        assert_eq!(decide(&facts(64, false, false), &conditions), NextPhase::Master);
    }

    #[test]
    fn as_many_tasks_as_workers_are_one_each_whatever_else_holds() {
        for left in [1, 16, 17] {
            let facts = RoundStats { left, ..facts(16, false, false) };
            let choice = if left <= 16 { NextPhase::OneEach } else { NextPhase::Master };
            assert_eq!(decide(&facts, &Thresholds::PAPER), choice);
        }
    }
}
