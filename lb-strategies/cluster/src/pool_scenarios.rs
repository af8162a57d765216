//! The table of named pool scenarios: those of the RUPER-LB paper, and others that show the weaknesses of policies.
//!
//! | names | file | content |
//! |---|---|---|
//! | F6-1 ... F8b | [`paper`] | figures 6, 7 and 8 of the paper, rebuilt from its plots |
//! | L1 ... L8 | [`one_rank`] | one rank: unequal, collapsing, stopping and late workers, few and expensive iterations |
//! | M1, M3 ... M5 | [`many_ranks`] | many ranks, collapsing ranks, and ranks that are slow periodically |
//! | S1 ... S6, S8 | [`sweeps`] | many scenarios of one kind, because the result of a single one may be luck |
//!
//! Speeds are in iterations per second, times in seconds. Scenarios are formulas with fixed seeds, and read no files.

pub mod many_ranks;
pub mod one_rank;
pub mod paper;
pub mod sweeps;

use self::many_ranks::{H_ALTERNATE, H_TOGETHER};
use super::pool_scenario::Scenario;
use lb_strategies::choice::Choice;

/// A row of the table of scenarios.
///
/// ```
/// use virtual_cluster::SCENARIOS;
/// let entry = SCENARIOS.iter().find(|entry| entry.name == "F7").expect("listed");
/// assert_eq!(entry.build().pool.iterations, 400_000_000);
/// ```
#[derive(Clone, Copy)]
pub struct ScenarioEntry {
    /// The name in commands and reports.
    pub name: &'static str,
    /// The scenario in one line.
    pub about: &'static str,
    build: fn() -> Scenario,
}

impl ScenarioEntry {
    /// The scenario.
    pub fn build(&self) -> Scenario {
        Scenario { name: self.name.to_owned(), ..(self.build)() }
    }
}

const fn entry(name: &'static str, about: &'static str, build: fn() -> Scenario) -> ScenarioEntry {
    ScenarioEntry { name, about, build }
}

/// All scenarios, the paper's first.
pub const SCENARIOS: &[ScenarioEntry] = &[
    entry("F6-1", "RUPER-LB paper, figure 6, run 1: two ranks, neighbours on one", || paper::figure_6(1)),
    entry("F6-2", "RUPER-LB paper, figure 6, run 2: the neighbours busier", || paper::figure_6(2)),
    entry("F6-3", "RUPER-LB paper, figure 6, run 3: the neighbours between both", || paper::figure_6(3)),
    entry("F6-4", "RUPER-LB paper, figure 6, run 4: the neighbours busiest", || paper::figure_6(4)),
    entry("F7", "RUPER-LB paper, figure 7: four times the iterations", paper::figure_7),
    entry("F8a", "RUPER-LB paper, figure 8: 32 threads on one host, speeds that jump", paper::figure_8_jumps),
    entry(
        "F8b",
        "RUPER-LB paper, figure 8: the same as 32 threads on 64 hardware threads",
        paper::figure_8_cores,
    ),
    entry("L1", "eight workers from 1000 to 2050 it/s", one_rank::unequal),
    entry("L2", "four workers, each twice as fast as the one before", one_rank::doubling),
    entry("L3", "one of eight workers falls to a tenth at half time", one_rank::early_collapse),
    entry("L4", "one of eight workers falls to a twentieth near the end", || one_rank::collapse(2850.0)),
    entry("L5", "L1 with a worker that stands still for 900 s", one_rank::standstill),
    entry("L6", "L1 with a worker that begins at 492 s", one_rank::late),
    entry("L7-0", "four workers, nothing to do", || one_rank::few(0)),
    entry("L7-1", "four workers, one iteration", || one_rank::few(1)),
    entry("L7-3", "four workers, three iterations", || one_rank::few(3)),
    entry("L7-4", "four workers, four iterations", || one_rank::few(4)),
    entry("L7-5", "four workers, five iterations", || one_rank::few(5)),
    entry("L8-1ms", "lognormal costs, 1 ms in the mean, one rank", || one_rank::lognormal(1, 0, 1)),
    entry("L8-1s", "lognormal costs, 1 s in the mean, one rank", || one_rank::lognormal(1, 1, 1)),
    entry("L8-30s", "lognormal costs, 30 s in the mean, one rank", || one_rank::lognormal(1, 2, 1)),
    entry("L8-1ms-4", "lognormal costs, 1 ms in the mean, four ranks", || one_rank::lognormal(4, 0, 1)),
    entry("L8-1s-4", "lognormal costs, 1 s in the mean, four ranks", || one_rank::lognormal(4, 1, 1)),
    entry("L8-30s-4", "lognormal costs, 30 s in the mean, four ranks", || one_rank::lognormal(4, 2, 1)),
    entry("M1-2", "2 ranks of constant unequal speeds, RTT 0.1 ms", || many_ranks::constant(2, 0.0001)),
    entry("M1-8", "8 ranks", || many_ranks::constant(8, 0.0001)),
    entry("M1-64", "64 ranks", || many_ranks::constant(64, 0.0001)),
    entry("M1-256", "256 ranks", || many_ranks::constant(256, 0.0001)),
    entry("M1-2-far", "2 ranks of constant unequal speeds, RTT 50 ms", || many_ranks::constant(2, 0.05)),
    entry("M1-8-far", "8 ranks", || many_ranks::constant(8, 0.05)),
    entry("M1-64-far", "64 ranks", || many_ranks::constant(64, 0.05)),
    entry("M1-256-far", "256 ranks", || many_ranks::constant(256, 0.05)),
    entry("M3-late", "one of two ranks falls to a twentieth near the end", || many_ranks::collapse(2880.0)),
    entry("M3-mid", "the same at two thirds", || many_ranks::collapse(2000.0)),
    entry("M4", "workers of a rank slow by turns, 250 s each", || many_ranks::periodic(H_ALTERNATE, 0.0)),
    entry("M5", "all workers of a rank slow every other 250 s", || many_ranks::periodic(H_TOGETHER, 0.0)),
];

/// The scenario with this name.
///
/// # Errors
/// If no scenario has this name. The error lists similar names, or all names.
///
/// ```
/// use virtual_cluster::scenario;
/// assert_eq!(scenario("L1")?.ideal_s().round(), 1639.0);
/// assert!(scenario("M3").is_err());
/// # Ok::<(), lb_strategies::Choice>(())
/// ```
pub fn scenario(name: &str) -> Result<Scenario, Choice> {
    let entry = SCENARIOS.iter().find(|entry| entry.name == name);
    entry.map(ScenarioEntry::build).ok_or_else(|| Choice::new(name, SCENARIOS.iter().map(|entry| entry.name)))
}

#[cfg(test)]
mod tests;
