//! Tests that `stencil2d` on the runtime gives the serial result, under every strategy, placement and order of events.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;

use caribou::Config;
use caribou_apps::stencil2d::options::Start;
use caribou_apps::stencil2d::plate::Shape;
use caribou_apps::stencil2d::run::Plate;
use harness::iteration_clock::IterationClock;
use harness::{Program, RunContext};

const ITERATIONS: u32 = 25;

/// Runs a plate with chunks of four sizes, and compares.
fn assert_serial(config: Config, what: &str) -> caribou::Report {
    assert_plate(Shape::new(43, 8).unwrap(), &config.period(4), what)
}

fn assert_plate(shape: Shape, config: &Config, what: &str) -> caribou::Report {
    let plate = Plate { shape, iterations: ITERATIONS, placement: Start::Block };
    let clock = Arc::new(IterationClock::new(ITERATIONS));
    let outcome = plate.run(&RunContext { config, clock: &clock, gathers: true });
    let outcome = outcome.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(Plate::difference(&outcome.result.unwrap(), &plate.reference()), None, "{what}");
    assert_eq!(clock.completed(), ITERATIONS, "{what}");
    outcome.report
}

#[test]
fn every_strategy_on_any_ranks_and_workers_gives_the_serial_result() {
    for lb in ["none", "rotate", "random", "greedy", "sfc", "refine"] {
        for ranks in [1, 2, 3] {
            for workers in [1, 2] {
                let config = Config::default().ranks(ranks).workers(workers).lb(lb).unwrap();
                assert_serial(config, &format!("{lb}, {ranks} ranks of {workers} workers"));
            }
        }
    }
}

#[test]
fn chunks_that_move_at_every_sync_give_the_serial_result() {
    let report = assert_serial(Config::default().ranks(3).lb("rotate").unwrap(), "rotate");
    assert!(report.syncs.iter().all(|sync| sync.moved == 36), "{:?}", report.syncs);
    assert_eq!(report.syncs.len() as u32, (ITERATIONS - 1) / 4);
}

#[test]
fn encoded_messages_and_chunks_give_the_serial_result() {
    assert_serial(Config::default().ranks(3).lb("rotate").unwrap().wire_always(true), "wire");
}

#[test]
fn any_order_of_events_gives_the_serial_result() {
    for seed in 0..20 {
        assert_serial(
            Config::default().ranks(4).lb("rotate").unwrap().simulate(seed),
            &format!("seed {seed}"),
        );
    }
}

#[test]
fn a_plate_of_one_chunk_runs() {
    assert_plate(Shape::new(5, 5).unwrap(), &Config::default().ranks(1).period(3), "alone");
}
