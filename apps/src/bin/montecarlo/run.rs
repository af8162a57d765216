//! Implements [`Program`] for `montecarlo`, so that the harness can run it. Has the serial reference.

use std::path::Path;
use std::time::Duration;

use super::options::Options;
use super::results;
use super::tally::Tally;
use super::transport::{Problem, run_histories};
use harness::pools::{self, Pool};
use harness::{Conditions, Error, Outcome, Program, RunContext, Total};

/// Approximate time of a history without extra work.
const HISTORY: Duration = Duration::from_nanos(400);

/// All histories of a problem.
#[derive(Clone, Debug)]
pub(crate) struct Photons {
    options: Options,
    problem: Problem,
}

impl Program for Photons {
    const NAME: &'static str = "montecarlo";
    type Shape = Pool;
    type Options = Options;
    type Result = Tally;

    fn new(options: Options, _: Conditions) -> Result<Self, Error> {
        Ok(Self { problem: options.problem()?, options })
    }

    fn total(&self) -> Total {
        Total { count: self.options.histories, unit: "histories" }
    }

    fn title(&self) -> String {
        let Problem { stack, energy, .. } = &self.problem;
        let media: Vec<&str> = stack.slabs().iter().map(|slab| slab.medium.name()).collect();
        format!("photons of {} keV through {} cm of {}", energy.kev(), stack.depth_cm(), media.join(", "))
    }

    fn description(&self) -> serde_json::Value {
        self.options.description(&self.problem)
    }

    fn run(&self, stage: &RunContext<'_>) -> Result<Outcome<Self>, Error> {
        let cost = HISTORY + Duration::from_secs_f64(self.problem.cost.mean_us / 1e6);
        let init = || self.problem.empty_tally();
        let (tally, report) = pools::run(stage, self.options.histories, cost, init, |tally, range| {
            run_histories(&self.problem, range, tally);
        })?;
        Ok(Outcome { result: Some(tally), report })
    }

    fn reference(&self) -> Tally {
        serial(&self.problem, self.options.histories)
    }

    fn difference(tally: &Tally, reference: &Tally) -> Option<String> {
        tally.difference(reference)
    }

    fn results(&self, tally: &Tally) -> String {
        results::table(&self.problem, tally)
    }

    fn file(&self) -> Option<&Path> {
        self.options.output.as_deref()
    }

    fn contents(&self, tally: &Tally) -> String {
        results::depth_profile_csv(&self.problem, tally)
    }
}

/// The serial reference: all histories, one after the other, in one tally.
#[must_use]
pub(crate) fn serial(problem: &Problem, histories: u64) -> Tally {
    let mut tally = problem.empty_tally();
    run_histories(problem, 0..histories, &mut tally);
    tally
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use caribou::pools::Accumulator;
    use clap::Parser;

    fn problem(arguments: &str) -> Problem {
        Options::try_parse_from(arguments.split(' ')).unwrap().problem().unwrap()
    }

    #[test]
    fn parts_merge_to_the_serial_result_to_the_last_unit() {
        let problem = problem("montecarlo --slab water:3 --slab iron:1");
        let mut merged = problem.empty_tally();
        for part in [700..1000, 0..1, 300..700, 1..300] {
            let mut tally = problem.empty_tally();
            run_histories(&problem, part, &mut tally);
            merged.merge(tally);
        }
        assert_eq!(merged.difference(&serial(&problem, 1000)), None);
    }

    #[test]
    fn a_history_that_was_left_out_or_done_twice_is_noticed() {
        let problem = problem("montecarlo");
        let reference = serial(&problem, 1000);
        for histories in [999, 1001] {
            let difference = serial(&problem, histories).difference(&reference).unwrap();
            assert!(difference.starts_with(&format!("{histories} histories")), "{difference}");
        }
    }

    #[test]
    fn no_result_depends_on_what_histories_cost() {
        let free = serial(&problem("montecarlo"), 500);
        for cost in ["--cost-us 1", "--cost heterogeneous --cost-us 1"] {
            assert_eq!(serial(&problem(&format!("montecarlo {cost}")), 500), free, "{cost}");
        }
        assert_ne!(serial(&problem("montecarlo --seed 2"), 500), free);
    }
}
