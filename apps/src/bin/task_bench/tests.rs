//! Tests that every task is executed and every input checked, under every strategy, placement and order of events.

use std::ffi::OsString;

use caribou::lb::Shape;
use caribou::{Config, Launch};
use clap::Parser;
use harness::disturbance::Disturbances;

use crate::options::{Options, arguments};
use crate::report::Outcome;
use crate::run::{Backend, Bench};

const PATTERNS: [&str; 11] = [
    "trivial",
    "no_comm",
    "stencil_1d",
    "stencil_1d_periodic",
    "dom",
    "tree",
    "fft",
    "all_to_all",
    "nearest",
    "spread -period 2",
    "random_nearest",
];

const TASKS: [&str; 5] = [
    "",
    "-kernel compute_bound -iter 1024",
    "-kernel memory_bound -iter 1024 -scratch 1024",
    "-kernel load_imbalance -iter 1024 -imbalance 0.1",
    "-output 1024",
];

/// Executes graphs; a task or an input left out, or an input that is wrong, is an error or a panic.
fn assert_done(line: &str, config: Config, what: &str) -> Outcome {
    let given = format!("task_bench {line}");
    let options = Options::try_parse_from(arguments(given.split(' ').map(OsString::from))).unwrap();
    let config = options.configure(config);
    let graphs = options.graphs(Launch::Alone).unwrap();
    let bench = Bench::new(graphs, config.rank_count(), &config, Disturbances::default()).unwrap();
    bench.run(&Backend::Runtime(Box::new(config))).unwrap_or_else(|error| panic!("{line}, {what}: {error}"))
}

fn all() -> impl Iterator<Item = String> {
    let with = |pattern| TASKS.map(|task| format!("-steps 23 -type {pattern} {task}").trim_end().to_owned());
    PATTERNS.into_iter().flat_map(with)
}

fn balanced(lb: &str, ranks: u32) -> Config {
    Config::default().ranks(ranks).lb(lb).unwrap().period(3)
}

#[test]
fn every_pattern_with_every_task_is_executed_once_and_twice_on_any_ranks() {
    for line in all() {
        for ranks in [1, 2, 4] {
            assert_done(&line, balanced("refine", ranks), &format!("{ranks} ranks"));
            let twice = format!("{line} -and {line}");
            assert_done(&twice, balanced("rotate", ranks), &format!("{ranks} ranks"));
        }
    }
}

#[test]
fn every_strategy_on_any_workers_executes_every_task() {
    for (pattern, lb) in
        PATTERNS.into_iter().zip(["none", "rotate", "random", "greedy", "sfc", "refine"].into_iter().cycle())
    {
        for workers in [1, 2] {
            let line = format!("-steps 23 -width 9 -type {pattern}");
            assert_done(&line, balanced(lb, 3).workers(workers), &format!("{lb}, {workers} workers"));
        }
    }
}

#[test]
fn encoded_messages_and_points_give_the_same() {
    for pattern in PATTERNS {
        let line = format!("-steps 23 -type {pattern} -output 64 -scratch 64");
        assert_done(&line, balanced("rotate", 3).wire_always(true), "wire");
    }
}

#[test]
fn any_order_of_events_gives_the_same() {
    for (pattern, seed) in PATTERNS.into_iter().cycle().zip(0..44) {
        let line = format!("-steps 23 -width 6 -type {pattern} -and -type dom -steps 9");
        assert_done(&line, balanced("rotate", 3).simulate(seed), &format!("seed {seed}"));
    }
}

#[test]
fn points_migrate_at_every_sync_whatever_the_pattern_and_the_lengths_of_graphs() {
    for pattern in PATTERNS {
        let line = format!("-steps 23 -width 6 -type {pattern} -and -steps 10 -type no_comm");
        let Outcome { syncs, moved, .. } = assert_done(&line, balanced("rotate", 2), "rotate");
        // After timesteps 3, 6 and 9 of the shorter graph, twice; the run may end before the last of them is decided.
        assert!((5..=6).contains(&syncs) && moved == 10 * syncs, "{pattern}: {moved} moved in {syncs}");
    }
}

#[test]
fn bare_is_a_run_of_messages_alone() {
    let Backend::Bare(config) = Backend::bare(&balanced("rotate", 2)).unwrap() else { panic!("not bare") };
    assert!(!config.measures() && !config.profiles());
    assert_eq!((config.lb_spec(Shape::Arrays), config.sync_period()), ("none", 0));
}
