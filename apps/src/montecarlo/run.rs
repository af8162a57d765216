//! The program: all histories of a problem, by one thread or as a pool, and the check that both are the same.

use std::time::Duration;

use super::tally::Tally;
use super::transport::{Problem, run_histories};
use crate::harness::error::Error;
use crate::harness::pooling::{PoolRuns, PoolSummary, same};

/// What the physics of a history costs, roughly.
const HISTORY: Duration = Duration::from_nanos(400);

/// The serial reference: all histories, one after the other, in one tally.
#[must_use]
pub fn serial(problem: &Problem, histories: u64) -> Tally {
    let mut tally = problem.empty_tally();
    run_histories(problem, 0..histories, &mut tally);
    tally
}

/// All histories, as a pool, once with each strategy; with `check` each run is compared with the serial program.
///
/// Of several processes all call this; each gets the result of the last run, and what is told of all.
///
/// # Errors
/// [`Error::Differs`] when a result is wrong; the runtime's own when a run cannot go on.
pub fn run(
    runs: &PoolRuns,
    problem: &Problem,
    histories: u64,
    check: bool,
) -> Result<(Tally, PoolSummary), Error> {
    let reference = (check && runs.launch().speaks()).then(|| serial(problem, histories));
    let cost = HISTORY + Duration::from_secs_f64(problem.cost.mean_us / 1e6);
    runs.run(
        cost,
        || problem.empty_tally(),
        |tally, range| run_histories(problem, range, tally),
        |lb, tally| same(lb, reference.as_ref().and_then(|reference| tally.difference(reference))),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::montecarlo::options::Options;
    use caribou::Accumulator;
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
