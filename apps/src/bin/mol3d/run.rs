//! Implements [`Program`] for `mol3d`, so that the harness can run it and compare strategies.

use std::path::{Path, PathBuf};

use harness::arrays::{self, Array};
use harness::{Conditions, Error, Outcome, Program, RunContext, Total};

use super::chunk::{Cell, EnergyLog, PairCompute, Particles};
use super::options::Options;
use super::physics::Physics;
use super::problem::{Pair, Problem, Rules};
use super::serial;

/// Particles that move for a number of steps.
#[derive(Clone, Debug)]
pub(crate) struct Molecules {
    /// All that decides the result.
    pub(crate) problem: Problem,
    /// The file for the energies.
    pub(crate) output: Option<PathBuf>,
}

impl Program for Molecules {
    const NAME: &'static str = "mol3d";
    type Shape = Array;
    type Options = Options;
    type Result = Physics;

    fn new(options: Options, conditions: Conditions) -> Result<Self, Error> {
        let problem = options.problem(conditions)?;
        Ok(Self { problem, output: options.output })
    }

    fn total(&self) -> Total {
        Total { count: self.problem.rules.iterations.into(), unit: "iterations" }
    }

    fn title(&self) -> String {
        let Rules { grid, cutoff, .. } = self.problem.rules;
        let ([a, b, c], [planes, rows, columns]) = (grid.extent(), grid.cells);
        format!(
            "{} particles in a box of {a:.1} x {b:.1} x {c:.1}, cut-off {cutoff}, in {planes} x {rows} x {columns} \
             cells and {} pairs of cells",
            self.problem.count(),
            14 * grid.count()
        )
    }

    fn description(&self) -> serde_json::Value {
        let Rules { grid, cutoff, timestep, exchange, .. } = self.problem.rules;
        serde_json::json!({
            "particles": self.problem.count(),
            "box": grid.extent(),
            "cells": grid.cells,
            "chunks": 15 * grid.count(),
            "cutoff": cutoff,
            "timestep": timestep,
            "exchange": exchange,
            "initial": self.problem.initial_hash(),
        })
    }

    fn run(&self, stage: &RunContext<'_>) -> Result<Outcome<Self>, Error> {
        let (rules, books) = (self.problem.rules, EnergyLog::default());
        let (parts, report) = arrays::run::<Particles>(stage, rules.grid.count(), |setup| {
            setup.service(books.clone());
            let all: Vec<Pair> = Pair::all(&rules.grid).collect();
            let pairs = setup.array(all, move |index| PairCompute::new(rules, index));
            let problem = self.problem.clone();
            setup.array(rules.grid.cells, move |index| Cell::new(&problem, index, pairs));
        })?;
        let particles = parts.into_iter().flat_map(|Particles(particles)| particles).collect();
        Ok(Outcome { result: Some(Physics::new(books.take(), particles)), report })
    }

    fn reference(&self) -> Physics {
        serial::run(&self.problem)
    }

    fn difference(physics: &Physics, reference: &Physics) -> Option<String> {
        physics.difference(reference)
    }

    fn results(&self, physics: &Physics) -> String {
        physics.words(self.problem.count())
    }

    fn file(&self) -> Option<&Path> {
        self.output.as_deref()
    }

    fn contents(&self, physics: &Physics) -> String {
        physics.csv()
    }
}
