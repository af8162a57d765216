//! Tests that Jacobi on the runtime gives the serial answer under every policy, and that of a direct solution.

use std::sync::Arc;

use caribou::Config;
use caribou::supersteps::{Exchange, SuperstepReport};
use clap::Parser;
use harness::iteration_clock::IterationClock;
use harness::{Conditions, Program, RunContext};
use lb_strategies::{Listing, SUPERSTEPS};
use nalgebra::{DMatrix, DVector};

use crate::options::Options;
use crate::run::Jacobi;
use crate::solver::{Limits, Solver};
use crate::system::System;

fn program(arguments: &str) -> Jacobi {
    let options = Options::try_parse_from(format!("jacobi {arguments}").split_whitespace()).unwrap();
    Jacobi::new(options, Conditions { ranks: 1, launch: caribou::Launch::Alone, checks: true }).unwrap()
}

fn assert_serial(program: &Jacobi, config: &Config, what: &str) -> SuperstepReport {
    let clock = Arc::new(IterationClock::new(program.total().count as u32));
    let outcome = program.run(&RunContext { config, clock: &clock, gathers: true });
    let outcome = outcome.unwrap_or_else(|error| panic!("{what}: {error}"));
    let (answer, reference) = (outcome.result.unwrap(), program.reference());
    assert_eq!(Jacobi::difference(&answer, &reference), None, "{what}");
    assert_eq!((clock.completed(), outcome.report.steps), (answer.steps, answer.steps.into()), "{what}");
    outcome.report
}

#[test]
fn every_policy_on_any_ranks_and_workers_gives_the_serial_answer() {
    let program = program("--size 37 --dominance 1.3");
    for lb in SUPERSTEPS.names() {
        for (ranks, workers) in [(1, 1), (1, 2), (2, 1), (3, 2)] {
            for wire in [false, true] {
                let config =
                    Config::default().ranks(ranks).workers(workers).lb(lb).unwrap().wire_always(wire);
                assert_serial(&program, &config, &format!("{lb}, {ranks} ranks of {workers}, wire {wire}"));
            }
        }
    }
}

#[test]
fn any_order_of_events_gives_the_serial_answer() {
    let ways = ["direct", "ring", "gather"];
    let programs = ways.map(|way| program(&format!("--size 23 --dominance 1.5 --exchange {way}")));
    let (mut moved, mut dropped) = (0, 0);
    for (seed, lb) in (0..60).zip(SUPERSTEPS.names().into_iter().cycle()) {
        let program = &programs[seed as usize / 20];
        let config = Config::default().ranks(4).lb(lb).unwrap();
        let report = assert_serial(program, &config.simulate(seed), &format!("seed {seed}, {lb}"));
        moved += report.divisions.iter().map(|division| division.moved).sum::<u64>();
        dropped += report.workers.iter().map(|worker| worker.dropped).sum::<u64>();
    }
    assert!(moved > 500 && dropped > 500, "moved {moved}, dropped {dropped}");
}

/// A direct solution, which has nothing in common with the iteration.
fn direct(system: &System) -> DVector<f64> {
    let (size, rows) = (system.size(), (0..system.size()).map(|row| system.row(row)));
    let (values, right): (Vec<_>, Vec<_>) = rows.map(|row| (row.values, row.rhs)).unzip();
    let matrix = DMatrix::from_row_iterator(size, size, values.into_iter().flatten());
    matrix.lu().solve(&DVector::from_vec(right)).expect("a dominant matrix has an inverse")
}

#[test]
fn the_answer_is_that_of_a_direct_solution() {
    let (system, residual) = (Arc::new(System::generated(60, 3, 1.2)), 1e-10);
    let solver = Solver {
        system: system.clone(),
        limits: Limits { residual, steps: 10_000 },
        exchange: Exchange::Gather,
    };
    let answer = caribou::supersteps(&Config::default().ranks(2), solver).unwrap().shared;
    assert!(answer.residual <= residual);
    // Ahlberg and Nilson: the norm of the inverse is at most 1 over the smallest surplus of a diagonal.
    let surplus = |row: usize| {
        let values = system.row(row).values;
        2.0 * values[row] - values.iter().sum::<f64>()
    };
    let least = (0..system.size()).map(surplus).fold(f64::INFINITY, f64::min);
    for (at, (x, direct)) in answer.x.iter().zip(&direct(&system)).enumerate() {
        assert!((x - direct).abs() <= residual / least + 1e-12, "x[{at}]: {x} and {direct}");
    }
}

#[test]
fn one_equation_and_fewer_rows_than_workers_are_solved() {
    for size in [1, 2, 3] {
        let config = Config::default().ranks(2).workers(2).lb("equal").unwrap();
        assert_serial(&program(&format!("--size {size}")), &config, &format!("{size} equations"));
    }
}

#[test]
fn the_end_comes_after_the_most_steps_or_when_there_is_no_hope() {
    let config = Config::default().ranks(2);
    let report = assert_serial(&program("--size 30 --steps 5"), &config, "5 steps");
    assert_eq!(report.steps, 5);
    let matrix = std::env::temp_dir().join(format!("caribou-jacobi-{}.mtx", std::process::id()));
    std::fs::write(&matrix, "%%MatrixMarket matrix array real general\n2 2\n1\n1e200\n1e200\n1\n").unwrap();
    let hopeless = program(&format!("--matrix {}", matrix.display()));
    std::fs::remove_file(&matrix).unwrap();
    let report = assert_serial(&hopeless, &config, "a matrix that diverges");
    assert!(report.steps < 10, "{}", report.steps);
    let said = hopeless.results(&hopeless.reference());
    let lack = hopeless.lacks(&hopeless.reference()).unwrap();
    assert!(lack.contains("diverged") && said.contains("Row 1 is not diagonally dominant"), "{said}");
}
