//! Tests that every particle is where it has to be, under every strategy, placement and order of events.

use std::sync::Arc;

use caribou::Config;
use harness::iteration_clock::IterationClock;
use harness::{Program, RunContext};

use crate::distribution::Distribution;
use crate::problem::Problem;
use crate::run::Pic;
use crate::tiling::Tiling;

const ITERATIONS: u32 = 25;

const DISTRIBUTIONS: [&str; 4] = ["geometric:0.9", "sinusoidal", "linear:1,3", "patch:0,4,2,6"];

/// A hot spot that goes around the grid more than once, in tiles of two sizes.
fn problem(distribution: &str) -> Problem {
    Problem {
        tiling: Tiling::new(20, 3).unwrap(),
        particles: 2000,
        distribution: Distribution::parse(distribution).unwrap(),
        k: 2,
        m: -3,
        iterations: ITERATIONS,
    }
}

/// Runs the problem and verifies every particle.
fn assert_verified(problem: Problem, config: &Config, what: &str) -> caribou::Report {
    let pic = Pic { problem };
    let clock = Arc::new(IterationClock::new(ITERATIONS));
    let outcome = pic.run(&RunContext { config, clock: &clock, gathers: true });
    let outcome = outcome.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(Pic::difference(&outcome.result.unwrap(), &pic.reference()), None, "{what}");
    assert_eq!(clock.completed(), ITERATIONS, "{what}");
    outcome.report
}

fn config(lb: &str) -> Config {
    Config::default().lb(lb).unwrap().period(1)
}

#[test]
fn every_distribution_is_verified_under_every_strategy_with_a_sync_every_step() {
    for lb in ["none", "rotate", "random", "greedy", "refine", "sfc", "comm"] {
        for distribution in DISTRIBUTIONS {
            for (ranks, workers) in [(1, 2), (2, 1), (3, 2)] {
                let config = config(lb).ranks(ranks).workers(workers);
                let what = format!("{distribution}, {lb}, {ranks} ranks of {workers} workers");
                assert_verified(problem(distribution), &config, &what);
            }
        }
    }
}

#[test]
fn tiles_that_move_at_every_sync_keep_their_particles() {
    for wire in [false, true] {
        let config = config("rotate").ranks(3).wire_always(wire);
        let report = assert_verified(problem("geometric:0.9"), &config, "rotate");
        assert!(report.syncs.iter().all(|sync| sync.moved == 9), "{:?}", report.syncs);
        assert_eq!(report.syncs.len() as u32, ITERATIONS - 1);
    }
}

#[test]
fn any_order_of_events_is_verified() {
    for seed in 0..40 {
        for distribution in DISTRIBUTIONS {
            let config = config(if seed % 2 == 0 { "rotate" } else { "refine" }).ranks(4).simulate(seed);
            assert_verified(problem(distribution), &config, &format!("{distribution}, seed {seed}"));
        }
    }
}

#[test]
fn a_tile_may_be_its_own_neighbour() {
    for (side, k) in [(1, 9), (2, 4)] {
        let tiling = Tiling::new(20, side).unwrap();
        let problem = Problem { tiling, k, ..problem("sinusoidal") };
        assert_verified(problem, &config("rotate").ranks(2), &format!("{side} tiles a side"));
    }
}
