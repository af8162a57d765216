//! Tests that over-relaxation on the runtime gives the serial result, and approaches the solution of the equation.

use std::sync::Arc;

use caribou::Config;
use caribou::supersteps::SuperstepReport;
use harness::iteration_clock::IterationClock;
use harness::{Program, RunContext};
use lb_strategies::{Listing, SUPERSTEPS};

use crate::problem::Problem;
use crate::run::Sor;

fn program(grid: usize) -> Sor {
    Sor { problem: Problem { grid, tolerance: 1e-9, sweeps: 200 } }
}

fn assert_serial(program: Sor, config: &Config, what: &str) -> SuperstepReport {
    let clock = Arc::new(IterationClock::new(program.total().count as u32));
    let outcome = program.run(&RunContext { config, clock: &clock, gathers: true });
    let outcome = outcome.unwrap_or_else(|error| panic!("{what}: {error}"));
    let relaxed = outcome.result.unwrap();
    assert_eq!(Sor::difference(&relaxed, &program.reference()), None, "{what}");
    assert_eq!(u64::from(clock.completed()), relaxed.known.steps, "{what}");
    outcome.report
}

#[test]
fn every_policy_on_any_ranks_and_workers_gives_the_serial_result() {
    for lb in SUPERSTEPS.names() {
        for (ranks, workers) in [(1, 1), (1, 2), (2, 1), (3, 2)] {
            for wire in [false, true] {
                let config =
                    Config::default().ranks(ranks).workers(workers).lb(lb).unwrap().wire_always(wire);
                assert_serial(
                    program(29),
                    &config,
                    &format!("{lb}, {ranks} ranks of {workers}, wire {wire}"),
                );
            }
        }
    }
}

#[test]
fn any_order_of_events_gives_the_serial_result() {
    let mut moved = 0;
    for (seed, lb) in (0..20).zip(SUPERSTEPS.names().into_iter().cycle()) {
        let config = Config::default().ranks(4).lb(lb).unwrap();
        let report = assert_serial(program(19), &config.simulate(seed), &format!("seed {seed}, {lb}"));
        moved += report.divisions.iter().map(|division| division.moved).sum::<u64>();
    }
    assert!(moved > 100, "moved {moved}");
}

#[test]
fn a_square_of_few_points_is_relaxed() {
    for grid in [1, 2, 3] {
        assert_serial(
            program(grid),
            &Config::default().ranks(2).lb("equal").unwrap(),
            &format!("{grid} points"),
        );
    }
}

#[test]
fn the_error_shrinks_with_the_square_of_the_spacing() {
    let error = |grid| {
        let program = program(grid);
        let relaxed = program.reference();
        assert!(relaxed.known.change <= 1e-9, "{grid}: {:?}", relaxed.known);
        program.problem.error(&relaxed.rows)
    };
    let [coarse, fine] = [15, 31].map(error);
    assert!((3.5..4.5).contains(&(coarse / fine)), "{coarse} and {fine}");
}
