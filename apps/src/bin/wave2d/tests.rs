//! Tests that waves on the runtime give the serial result, under every strategy, placement and order of events.

use std::sync::Arc;

use caribou::{Config, Report};
use harness::iteration_clock::IterationClock;
use harness::{Program, RunContext};

use crate::problem::Problem;
use crate::problem::tests::problem;
use crate::run::Wave2d;

/// Runs waves with chunks of four sizes, and compares.
fn assert_serial(config: Config, what: &str) -> Report {
    assert_waves(problem(43, 8), &config.period(4), what)
}

fn assert_waves(problem: Problem, config: &Config, what: &str) -> Report {
    let program = Wave2d { problem, picture: None };
    let clock = Arc::new(IterationClock::new(problem.iterations));
    let outcome = program.run(&RunContext { config, clock: &clock, gathers: true });
    let outcome = outcome.unwrap_or_else(|error| panic!("{what}: {error}"));
    let waves = outcome.result.unwrap();
    assert_eq!(Wave2d::difference(&waves, &program.reference()), None, "{what}");
    assert!(waves.field.is_some() && waves.drift().abs() < 1e-10, "{what}: {:?}", waves.energies);
    assert_eq!(clock.completed(), problem.iterations, "{what}");
    outcome.report
}

#[test]
fn every_strategy_on_any_ranks_and_workers_gives_the_serial_result() {
    for lb in ["none", "rotate", "random", "greedy", "refine", "sfc", "comm"] {
        for (ranks, workers) in [(1, 2), (2, 1), (3, 2)] {
            let config = Config::default().ranks(ranks).workers(workers).lb(lb).unwrap();
            assert_serial(config, &format!("{lb}, {ranks} ranks of {workers} workers"));
        }
    }
}

#[test]
fn chunks_that_move_at_every_sync_give_the_serial_result() {
    for wire in [false, true] {
        let config = Config::default().ranks(3).lb("rotate").unwrap().wire_always(wire);
        let report = assert_serial(config, &format!("wire {wire}"));
        assert!(report.syncs.iter().all(|sync| sync.moved == 36), "{:?}", report.syncs);
        assert_eq!(report.syncs.len(), 6, "after 4, 8 and so on of 25 iterations");
    }
}

#[test]
fn any_order_of_events_gives_the_serial_result() {
    for seed in 0..20 {
        let lb = if seed % 2 == 0 { "rotate" } else { "refine" };
        let config = Config::default().ranks(4).lb(lb).unwrap().simulate(seed);
        assert_serial(config, &format!("seed {seed}"));
    }
}

#[test]
fn a_grid_of_one_chunk_or_of_chunks_of_one_cell_runs() {
    for (grid, chunk) in [(5, 5), (1, 1), (4, 1), (6, 5)] {
        let config = Config::default().ranks(2).period(3).lb("rotate").unwrap();
        assert_waves(problem(grid, chunk), &config, &format!("{grid} in chunks of {chunk}"));
    }
}
