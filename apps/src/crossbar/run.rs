//! The program: all tasks of a grid, by one thread or as a pool, and the check that both are the same.

use std::time::Duration;

use super::grid::Grid;
use super::tally::{Tally, run_tasks};
use crate::harness::error::Error;
use crate::harness::pooling::{PoolRuns, PoolSummary, same};

/// What a packet costs, roughly: tasks are told apart by their number of packets.
const PACKET: Duration = Duration::from_nanos(30);

/// The serial reference: all tasks, one after the other, in one tally.
#[must_use]
pub fn serial(grid: &Grid, tasks: u64) -> Tally {
    let mut tally = Tally::new(grid);
    run_tasks(grid, 0..tasks, &mut tally);
    tally
}

/// All tasks, as a pool, once with each strategy; with `check` each run is compared with the serial program.
///
/// Of several processes all call this; each gets the result of the last run, and what is told of all.
///
/// # Errors
/// [`Error::Differs`] when a result is wrong; the runtime's own when a run cannot go on.
pub fn run(runs: &PoolRuns, grid: &Grid, tasks: u64, check: bool) -> Result<(Tally, PoolSummary), Error> {
    let reference = (check && runs.launch().speaks()).then(|| serial(grid, tasks));
    let cost = PACKET.saturating_mul(u32::try_from(grid.requests).unwrap_or(u32::MAX));
    runs.run(
        cost,
        || Tally::new(grid),
        |tally, range| run_tasks(grid, range, tally),
        |lb, tally| same(lb, reference.as_ref().and_then(|reference| tally.difference(reference))),
    )
}
