//! Divides the range of a worker into steps, so that new decisions can reach the worker between two steps.
//!
//! Policies without a reporting scheme measure the speed of workers here.

use std::ops::Range;

use super::sizer::Sizer;
use crate::pools::machine::Nanos;
use crate::pools::range_set::RangeSet;

/// The size of a step.
///
/// ```
/// use lb_strategies::pool::steps::Pace;
/// assert_ne!(Pace::Single, Pace::Fitting);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// One index: the indices are whole tasks.
    Single,
    /// As many indices as fit into a given time, by the measured speed of the worker.
    Fitting,
}

/// The indices that one worker has been given and has not begun, and its present step.
///
/// ```
/// use lb_strategies::pool::steps::{Pace, Steps};
/// let mut steps = Steps::new(Pace::Fitting, 100, None).with(0..10);
/// assert_eq!(steps.next(0), Some(0..1), "nothing is known of its speed");
/// assert_eq!(steps.finish_step(50), Some((1, 50)));
/// assert_eq!(steps.next(50), Some(1..3), "two fit into 100 ns");
/// assert_eq!(steps.take_rest().ranges().collect::<Vec<_>>(), [3..10]);
/// ```
#[derive(Clone, Debug)]
pub struct Steps {
    left: RangeSet,
    pace: Pace,
    sizer: Sizer,
    /// Number of indices in the present step, and its start.
    running: Option<(u64, Nanos)>,
}

impl Steps {
    /// No indices yet. With [`Pace::Fitting`], a step lasts about `chunk`; `cost_hint` is the time of an index, if
    /// known.
    pub fn new(pace: Pace, chunk: Nanos, cost_hint: Option<Nanos>) -> Self {
        Self { left: RangeSet::default(), pace, sizer: Sizer::new(chunk, cost_hint), running: None }
    }

    /// Adds a range.
    #[must_use]
    pub fn with(mut self, range: Range<u64>) -> Self {
        self.give(range);
        self
    }

    /// Adds a range of indices.
    pub fn give(&mut self, range: Range<u64>) {
        self.left.insert(range);
    }

    /// Ends the present step, if there is one. Returns its number of indices and its time.
    pub fn finish_step(&mut self, now: Nanos) -> Option<(u64, Nanos)> {
        let (count, since) = self.running.take()?;
        let took = now.saturating_sub(since);
        self.sizer.ran(count, took);
        Some((count, took))
    }

    /// Starts the next step; `None` if nothing is left.
    pub fn next(&mut self, now: Nanos) -> Option<Range<u64>> {
        let count = match self.pace {
            Pace::Single => 1,
            Pace::Fitting => self.fitting(),
        };
        let range = self.left.take_front(count)?;
        self.running = Some((range.end - range.start, now));
        Some(range)
    }

    /// Number of indices that fit into a step; at least one.
    pub fn fitting(&self) -> u64 {
        self.sizer.next()
    }

    /// True during a step.
    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// True if all indices have been begun.
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// Takes the indices that have not been begun.
    pub fn take_rest(&mut self) -> RangeSet {
        self.left.take()
    }
}
