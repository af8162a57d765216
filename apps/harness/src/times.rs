//! Computes the times of a run and of its steps from the moments at which the steps were complete.

/// The times of one run, in nanoseconds since it began. A step is its unit of progress.
#[derive(Clone, Debug, Default)]
pub struct Times {
    start_ns: u64,
    complete_ns: Vec<u64>,
}

impl Times {
    /// Takes from a clock when the first step began (the time before is setup) and when each was complete on all ranks.
    /// Moments after `end_ns`, the end of the run, count as `end_ns`.
    #[must_use]
    pub fn new((start_ns, complete_ns): (u64, Vec<u64>), end_ns: u64) -> Self {
        Self { start_ns, complete_ns: complete_ns.into_iter().map(|at_ns| at_ns.min(end_ns)).collect() }
    }

    /// Steps that were complete.
    #[must_use]
    pub fn steps(&self) -> u32 {
        self.complete_ns.len() as u32
    }

    /// Seconds from the first step's begin to the last one's end.
    #[must_use]
    pub fn total_s(&self) -> f64 {
        self.span_ns(0, self.steps()) as f64 / 1e9
    }

    /// Milliseconds of each step.
    #[must_use]
    pub fn steps_ms(&self) -> Vec<f64> {
        (0..self.steps()).map(|step| self.span_ns(step, step + 1) as f64 / 1e6).collect()
    }

    /// Mean milliseconds of the steps `from..to`; `None` when none of them is complete.
    #[must_use]
    pub fn mean_ms(&self, from: u32, to: u32) -> Option<f64> {
        let to = to.min(self.steps());
        (from < to).then(|| self.span_ns(from, to) as f64 / 1e6 / f64::from(to - from))
    }

    /// Steps that were complete at `at_ns`.
    #[must_use]
    pub fn completed_at(&self, at_ns: u64) -> u32 {
        self.complete_ns.partition_point(|&complete| complete <= at_ns) as u32
    }

    /// The time from the first step's begin to `at_ns`, ns.
    #[must_use]
    pub fn since_start_ns(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.start_ns)
    }

    /// The moment at which `completed` steps were complete, ns since the run began; the start if they never were.
    #[must_use]
    pub fn completed_ns(&self, completed: u32) -> u64 {
        let last = completed.checked_sub(1).and_then(|last| self.complete_ns.get(last as usize));
        last.copied().unwrap_or(self.start_ns)
    }

    fn span_ns(&self, from: u32, to: u32) -> u64 {
        self.completed_ns(to).saturating_sub(self.completed_ns(from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn setting_up_counts_neither_in_the_total_nor_in_the_first_step() {
        let times = Times::new((1000 * MS, vec![1010 * MS, 1030 * MS, 1060 * MS]), u64::MAX);
        assert_eq!(times.steps_ms(), [10.0, 20.0, 30.0]);
        assert_eq!((times.total_s() * 1e3).round() as u64, 60);
        assert_eq!(times.mean_ms(1, 3), Some(25.0));
        assert_eq!(times.mean_ms(3, 9), None);
    }

    #[test]
    fn all_steps_together_take_no_longer_than_the_run() {
        assert_eq!(Times::new((0, vec![2 * MS, 6 * MS]), 5 * MS).steps_ms(), [2.0, 3.0]);
    }
}
