//! Programs whose chunks come and go have the result of a loop, wherever their chunks are: under strategies, ranks, workers
//! and wires, and under simulation by seed.
//!
//! 60 seeds by default; `SEEDS=10000` runs as many. A failure prints the seed and the command that repeats it.

use std::time::Duration;

use caribou::Config;
use caribou::config::Period;
use caribou_tests::dynamic::{PROGRAMS, Program};
use caribou_tests::seeds;

/// At syncs, and in windows that are as short as they can be.
const PERIODS: [Period; 2] = [Period::Steps(2), Period::Every(Duration::from_micros(50))];
const STRATEGIES: [&str; 5] = ["none", "refine", "greedy", "rotate", "random"];

fn program(name: &str) -> Program {
    PROGRAMS.into_iter().find(|program| program.name == name).expect("there is such a program")
}

fn assert_as_serial(name: &str) {
    let (program, mut configs) = (program(name), Vec::new());
    for lb in STRATEGIES {
        for (ranks, workers) in [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)] {
            for period in PERIODS {
                configs.extend([false, true].map(|wire| (lb, ranks, workers, wire, period)));
            }
        }
    }
    let expected = (program.serial)();
    for case @ (lb, ranks, workers, wire, period) in configs {
        let config = Config::default().balance(period).ranks(ranks).workers(workers).wire_always(wire);
        let result = config.lb(lb).and_then(program.run);
        assert_eq!(result.as_ref().ok(), Some(&expected), "{name}, {case:?}: {result:?}");
    }
}

fn assert_as_serial_by_seed(name: &str) {
    let program = program(name);
    let expected = (program.serial)();
    for seed in seeds(60, "--test dynamic") {
        let [lb, ranks, workers, period] = [5, 4, 2, 2].map({
            let mut left = seed;
            move |choices| (left % choices, left /= choices).0 as u32
        });
        let config = Config::default().simulate(seed).ranks(1 + ranks).workers(1 + workers);
        let config = config.balance(PERIODS[period as usize]);
        let result = config.lb(STRATEGIES[lb as usize]).and_then(program.run);
        assert_eq!(result.as_ref().ok(), Some(&expected), "{result:?}");
    }
}

#[test]
fn patches_that_come_and_go_have_the_heat_of_the_serial_mesh() {
    assert_as_serial("patches");
}

#[test]
fn patches_that_come_and_go_have_the_heat_of_the_serial_mesh_by_seed() {
    assert_as_serial_by_seed("patches");
}

#[test]
fn agents_that_are_born_and_die_are_those_of_the_serial_loop() {
    assert_as_serial("agents");
}

#[test]
fn agents_that_are_born_and_die_are_those_of_the_serial_loop_by_seed() {
    assert_as_serial_by_seed("agents");
}

#[test]
fn tours_that_are_searched_in_branches_are_the_shortest() {
    assert_as_serial("tours");
}

#[test]
fn tours_that_are_searched_in_branches_are_the_shortest_by_seed() {
    assert_as_serial_by_seed("tours");
}
