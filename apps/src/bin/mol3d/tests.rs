//! Tests that `mol3d` on the runtime gives the bits of the serial program under every strategy, placement and order.

use std::sync::Arc;

use caribou::{Config, Report};
use harness::iteration_clock::IterationClock;
use harness::{Program, RunContext};

use crate::problem::tests::problem;
use crate::run::Molecules;

const ITERATIONS: u32 = 9;

/// Runs a problem of 12 cells, and compares.
fn assert_serial(config: &Config, what: &str) -> Report {
    assert_problem(108, 2.1, config, what)
}

fn assert_problem(particles: u64, cell: f64, config: &Config, what: &str) -> Report {
    let molecules = Molecules { problem: problem(particles, cell, ITERATIONS), output: None };
    let clock = Arc::new(IterationClock::new(ITERATIONS));
    let outcome = molecules.run(&RunContext { config, clock: &clock, gathers: true });
    let outcome = outcome.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(Molecules::difference(&outcome.result.unwrap(), &molecules.reference()), None, "{what}");
    assert_eq!(clock.completed(), ITERATIONS, "{what}");
    outcome.report
}

fn balanced(lb: &str) -> Config {
    Config::default().lb(lb).unwrap().period(1)
}

#[test]
fn every_strategy_on_any_ranks_and_workers_gives_the_serial_result() {
    for lb in ["none", "rotate", "random", "greedy", "hierarchical", "refine"] {
        for (ranks, workers) in [(1, 1), (1, 2), (2, 1), (3, 2)] {
            let config = balanced(lb).ranks(ranks).workers(workers);
            assert_serial(&config, &format!("{lb}, {ranks} ranks of {workers} workers"));
        }
    }
}

#[test]
fn both_arrays_move_at_every_sync_and_give_the_serial_result() {
    for wire in [false, true] {
        let report = assert_serial(&balanced("rotate").ranks(3).wire_always(wire), "rotate");
        // All but the cell that logs the energies.
        assert!(report.syncs.iter().all(|sync| sync.moved == 8 * 15 - 1), "{:?}", report.syncs);
        // Chunks go on while they move, so the last iteration may end the run before the last sync has ended.
        let all = ITERATIONS - 1;
        assert!((all - 1..=all).contains(&(report.syncs.len() as u32)), "{:?}", report.syncs);
    }
}

#[test]
fn any_order_of_events_gives_the_serial_result() {
    for seed in 0..20 {
        assert_serial(&balanced("rotate").ranks(4).simulate(seed), &format!("seed {seed}"));
    }
}

#[test]
fn a_cell_may_be_its_own_neighbour_on_all_sides() {
    assert_problem(20, 2.1, &balanced("rotate").ranks(2), "one cell");
}
