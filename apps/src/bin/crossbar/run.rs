//! Implements [`Program`] for `crossbar`, so that the harness can run it. Has the serial reference.

use std::path::Path;
use std::time::Duration;

use super::grid::Grid;
use super::grid_results::{GridResults, run_tasks};
use super::options::Options;
use super::results;
use harness::pools::{self, Pool};
use harness::{Conditions, Error, Outcome, Program, RunContext, Total};

/// Approximate time per packet. The cost of a task is its number of packets times this.
const PACKET: Duration = Duration::from_nanos(30);

/// All tasks of a grid.
#[derive(Clone, Debug)]
pub(crate) struct Crossbar {
    options: Options,
    grid: Grid,
}

impl Program for Crossbar {
    const NAME: &'static str = "crossbar";
    type Shape = Pool;
    type Options = Options;
    type Result = GridResults;

    fn new(options: Options, _: Conditions) -> Result<Self, Error> {
        Ok(Self { grid: options.grid()?, options })
    }

    fn total(&self) -> Total {
        Total { count: self.options.tasks, unit: "tasks" }
    }

    fn title(&self) -> String {
        let Grid { ports, requests, .. } = self.grid;
        format!("{ports} x {ports} ports at {} points, {requests} packets a task", self.grid.points())
    }

    fn description(&self) -> serde_json::Value {
        self.options.description(&self.grid)
    }

    fn run(&self, stage: &RunContext<'_>) -> Result<Outcome<Self>, Error> {
        let cost = PACKET.saturating_mul(u32::try_from(self.grid.requests).unwrap_or(u32::MAX));
        let init = || GridResults::new(&self.grid);
        let (tally, report) = pools::run(stage, self.options.tasks, cost, init, |tally, range| {
            run_tasks(&self.grid, range, tally);
        })?;
        Ok(Outcome { result: Some(tally), report })
    }

    fn reference(&self) -> GridResults {
        let mut tally = GridResults::new(&self.grid);
        run_tasks(&self.grid, 0..self.options.tasks, &mut tally);
        tally
    }

    fn difference(tally: &GridResults, reference: &GridResults) -> Option<String> {
        tally.difference(reference)
    }

    fn results(&self, tally: &GridResults) -> String {
        results::table(&self.grid, tally)
    }

    fn file(&self) -> Option<&Path> {
        self.options.output.as_deref()
    }

    fn contents(&self, tally: &GridResults) -> String {
        results::grid_csv(&self.grid, tally)
    }
}
