//! One run of a pool for each strategy, under the same disturbances.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use caribou::lb::Shape;
use caribou::{Accumulator, Config, Launch, Pool, PoolProgress, PoolReport};

use super::PARTS;
use super::summary::{PoolSummary, PooledRun};
use crate::harness::error::Error;
use crate::harness::experiment::{Disturbed, Experiment};
use crate::harness::iteration_clock::IterationClock;

/// Forty looks a second tell the percents of a run of some seconds apart, and cost nothing.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// The runs of a comparison, checked: only the runs themselves can still fail.
#[derive(Debug)]
pub struct PoolRuns {
    /// In order; at least one.
    configs: Vec<Config>,
    experiment: Experiment,
}

impl PoolRuns {
    pub(super) fn new(configs: Vec<Config>, experiment: Experiment) -> Self {
        Self { configs, experiment }
    }

    /// Whether the ranks are in this process, or this process is one of them.
    #[must_use]
    pub fn launch(&self) -> Launch {
        self.experiment.launch
    }

    /// Makes the runs. An iteration costs about `cost`; `check` looks at each result with the name of its strategy. Returns
    /// the last result, and what is told of all.
    ///
    /// Of several processes all call this; what is wrong in one alone waits until all runs are made, because the others know
    /// nothing of it and count on this one.
    ///
    /// # Errors
    /// The runtime's own, those of `check`, or of a disturbance that could not be had.
    pub fn run<A: Accumulator>(
        &self,
        cost: Duration,
        init: impl Fn() -> A + Sync,
        body: impl Fn(&mut A, Range<u64>) + Sync,
        check: impl Fn(&str, &A) -> Result<(), Error>,
    ) -> Result<(A, PoolSummary), Error> {
        let (mut result, mut failed, mut runs) = (None, None, Vec::new());
        for config in &self.configs {
            let made = self.experiment.disturb(config.lb_spec(Shape::Pools), |clock| {
                let marks = Marks::of(clock);
                let total = self.experiment.total.count;
                let pool = Pool::new(config, total).cost_hint(cost);
                let outcome =
                    pool.on_progress(LOOK_EVERY, |progress| marks.tell(progress)).run(&init, &body)?;
                marks.end(outcome.report.elapsed_ns);
                Ok(outcome)
            });
            match made {
                Ok(Disturbed { outcome, quotas_held, clock }) => {
                    let report: PoolReport = outcome.report;
                    failed = failed.or(check(&report.lb, &outcome.result).err());
                    runs.push(PooledRun::new(report, quotas_held, &clock.times_ns().1));
                    result = Some(outcome.result);
                }
                Err(error) if self.launch() != Launch::Alone && !matches!(error, Error::Runtime(_)) => {
                    failed = failed.or(Some(error));
                }
                Err(error) => return Err(failed.unwrap_or(error)),
            }
        }
        match (result, failed) {
            (Some(result), None) => Ok((result, PoolSummary::new(&self.experiment, runs))),
            (_, failed) => Err(failed.expect("a run without a result has failed")),
        }
    }
}

/// Turns progress into parts that are complete.
struct Marks<'c> {
    clock: &'c IterationClock,
    told: Mutex<u32>,
}

impl<'c> Marks<'c> {
    fn of(clock: &'c IterationClock) -> Self {
        Self { clock, told: Mutex::new(0) }
    }

    fn tell(&self, progress: PoolProgress) {
        let part = u128::from(progress.done) * u128::from(PARTS) / u128::from(progress.iterations.max(1));
        // The last is complete when everything is.
        self.reach((part as u32).min(PARTS - 1), progress.elapsed_ns);
    }

    fn end(&self, elapsed_ns: u64) {
        self.reach(PARTS, elapsed_ns);
    }

    fn reach(&self, part: u32, now_ns: u64) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        for complete in *told + 1..=part {
            self.clock.record(complete, now_ns);
        }
        *told = part.max(*told);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Pooling, same};
    use super::*;
    use crate::harness::experiment::Total;

    fn runs(pooling: &Pooling) -> PoolRuns {
        pooling.prepare(Total { count: 1000, unit: "darts" }).unwrap()
    }

    fn count(
        runs: &PoolRuns,
        check: impl Fn(&str, &u64) -> Result<(), Error>,
    ) -> Result<(u64, PoolSummary), Error> {
        let body = |sum: &mut u64, range: Range<u64>| *sum += range.count() as u64;
        runs.run(Duration::from_nanos(10), || 0, body, check)
    }

    #[test]
    fn each_strategy_is_a_run_with_the_whole_result() {
        let compare = Some("static,chunk=0.01;static".to_owned());
        let pooling = Pooling { compare, ranks: Some(2), workers: Some(2), ..Pooling::default() };
        let (sum, summary) = count(&runs(&pooling), |_, _| Ok(())).unwrap();
        assert_eq!((sum, summary.runs.len()), (1000, 2));
        assert!(summary.runs.iter().all(|run| run.parts_ms.len() == PARTS as usize));
        let (sum, summary) = count(&runs(&Pooling::default()), |_, _| Ok(())).unwrap();
        assert_eq!((sum, summary.runs.len()), (1000, 1));
    }

    #[test]
    fn a_wrong_result_is_named_when_all_runs_are_made() {
        let pooling = Pooling { compare: Some("static,chunk=0.01;static".to_owned()), ..Pooling::default() };
        let seen = std::cell::RefCell::new(Vec::new());
        let check = |lb: &str, _: &u64| {
            seen.borrow_mut().push(lb.to_owned());
            same(lb, Some("one dart too few".to_owned()))
        };
        let error = count(&runs(&pooling), check).unwrap_err().to_string();
        assert_eq!(seen.into_inner(), ["static,chunk=0.01", "static"]);
        assert!(error.contains("`static,chunk=0.01`") && error.contains("one dart too few"), "{error}");
    }

    #[test]
    fn a_strategy_nobody_knows_is_refused_before_anything_runs() {
        let pooling = Pooling { lb: Some("statik".to_owned()), ..Pooling::default() };
        let error = pooling.prepare(Total { count: 1, unit: "darts" }).unwrap_err();
        assert!(error.exit_code() == 2 && error.to_string().contains("static"), "{error}");
    }

    #[test]
    fn parts_are_complete_when_progress_has_passed_them_and_the_last_at_the_end() {
        let clock = IterationClock::new(PARTS);
        let marks = Marks::of(&clock);
        let progress = |done, elapsed_ns| PoolProgress { done, iterations: 1000, elapsed_ns };
        marks.tell(progress(25, 10));
        assert_eq!(clock.completed(), 2);
        marks.tell(progress(20, 11));
        marks.tell(progress(1000, 12));
        assert_eq!(clock.completed(), 99);
        marks.end(13);
        let times = clock.times_ns().1;
        assert_eq!((times[1], times[2], times[99]), (10, 12, 13));
    }
}
