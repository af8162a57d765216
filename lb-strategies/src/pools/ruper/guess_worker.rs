//! Rank 0's record of another rank, which it treats as one worker known by predictions (paper, Fig. 3 right).
//!
//! The count that a rank reports is a guess, and may have been too large. Then the speed is multiplied by the ratio of
//! the rank's average now to its average at the last correction. Durations are on the rank's clock, so clocks may
//! differ.
//!
//! A difference of two predictions is a difference of large numbers, each of which is inexact by the age of the
//! workers' reports. If a rank asks to finish twice within seconds, its computed speed would be anything between zero
//! and twice the real one, and its quota would follow. So a known speed is corrected over `report-floor` at least.

use super::parameters::{Settings, seconds};
use crate::pools::machine::Nanos;

/// A rank, known by its predictions.
#[derive(Clone, Debug, Default)]
pub(crate) struct GuessWorker {
    /// Iterations that it predicted at its last report. May decrease.
    pub(crate) done: u64,
    /// Iterations per second, if measured.
    speed: Option<f64>,
    /// Time from its start to its last report, on its own clock.
    age: Nanos,
    /// Arrival of its last report, on the clock of rank 0.
    seen: Nanos,
    base: Base,
}

/// Count and age of a rank when its speed was last measured.
#[derive(Clone, Copy, Debug, Default)]
struct Base {
    done: u64,
    age: Nanos,
}

impl GuessWorker {
    /// A rank that starts now.
    pub(crate) fn start(now: Nanos) -> Self {
        Self { seen: now, ..Self::default() }
    }

    /// Iterations per second at the last measurement, if there was one.
    pub(crate) fn measured_speed(&self) -> Option<f64> {
        self.speed
    }

    /// Iterations that it has probably done by `now`.
    pub(crate) fn predicted(&self, now: Nanos) -> u64 {
        let since = seconds(now.saturating_sub(self.seen));
        self.done.saturating_add((self.speed.unwrap_or(0.0) * since) as u64)
    }

    /// Handles a report of about `predicted` iterations, `elapsed` after the last one. Returns new speed / old speed.
    pub(crate) fn measure(&mut self, now: Nanos, elapsed: Nanos, predicted: u64, settings: &Settings) -> f64 {
        if elapsed == 0 {
            return 1.0;
        }
        self.seen = now;
        self.age += elapsed;
        self.done = predicted;
        let shortest = if self.speed > Some(0.0) { settings.report_floor } else { settings.min_measure };
        if self.age - self.base.age < shortest.max(settings.min_measure) {
            return 1.0;
        }
        let ratio = self.correct();
        self.base = Base { done: self.done, age: self.age };
        ratio
    }

    fn correct(&mut self) -> f64 {
        let (speed, elapsed) = (self.speed.unwrap_or(0.0), seconds(self.age - self.base.age));
        if speed <= 0.0 {
            self.speed = Some(self.done.saturating_sub(self.base.done) as f64 / elapsed);
            return 1.0;
        }
        let ratio = if self.done > self.base.done {
            (self.done - self.base.done) as f64 / (elapsed * speed)
        } else {
            // The last prediction was too high, and so was the speed. The averages correct both.
            let before = self.base.done as f64 / seconds(self.base.age);
            let after = self.done as f64 / seconds(self.age);
            if self.base.age == 0 || before <= 0.0 { 1.0 } else { after / before }
        };
        self.speed = Some(ratio * speed);
        ratio
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pools::machine::SECOND;

    fn measure(guess: &mut GuessWorker, elapsed_seconds: u64, predicted: u64) -> f64 {
        guess.measure(0, elapsed_seconds * SECOND, predicted, &Settings::of(""))
    }

    #[test]
    fn a_prediction_that_was_too_optimistic_is_corrected_by_the_averages() {
        let mut guess = GuessWorker::start(0);
        measure(&mut guess, 100, 1000);
        for (predicted, deviation, speed) in
            [(1900, 0.9, 9.0), (1850, 0.649_123, 5.842_105), (1850, 0.75, 4.381_579)]
        {
            let ratio = measure(&mut guess, 100, predicted);
            assert!((ratio - deviation).abs() < 1e-6, "{ratio}");
            assert!((guess.speed.unwrap() - speed).abs() < 1e-6, "{guess:?}");
            assert_eq!(guess.done, predicted);
        }
    }

    #[test]
    fn a_rank_that_stands_still_has_a_speed_again_when_it_moves() {
        let mut guess = GuessWorker::start(0);
        for predicted in [0, 0, 0] {
            measure(&mut guess, 10, predicted);
        }
        measure(&mut guess, 10, 50);
        assert_eq!(guess.measured_speed(), Some(5.0), "50 in the last 10 s");
        measure(&mut guess, 0, 70);
        assert_eq!(guess.done, 50, "no time, no news");
    }

    #[test]
    fn a_rank_goes_on_at_its_speed_from_when_it_was_seen() {
        let mut guess = GuessWorker::start(0);
        guess.measure(100 * SECOND, 50 * SECOND, 500, &Settings::of(""));
        assert_eq!(guess.predicted(110 * SECOND), 600);
    }

    #[test]
    fn two_predictions_in_a_row_are_no_speed_but_count_in_the_next() {
        let mut guess = GuessWorker::start(0);
        measure(&mut guess, 300, 3000);
        measure(&mut guess, 2, 3100);
        assert_eq!((guess.measured_speed(), guess.done), (Some(10.0), 3100), "not 50");
        measure(&mut guess, 8, 3150);
        assert_eq!(guess.measured_speed(), Some(15.0), "150 in 10 s");
    }
}
