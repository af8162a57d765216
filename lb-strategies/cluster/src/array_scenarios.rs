//! The table of named array scenarios: the plate of the README, figures of the refinement paper, and a moving hot spot.
//!
//! The refinement paper (Gupta, Sarood, Kale and Milojicic, 2013) runs Stencil2D on VMs with one vCPU each. It runs 500
//! iterations of about 0.1 s, with a sync every 20. *Slow* nodes have 2.13 GHz, *fast* nodes 3.00 GHz, and both have
//! four VMs. An interfering VM takes turns with one vCPU. Communication, caches and differences between fast nodes are
//! not modelled; [`cloud_cluster`](super::cloud_cluster) has communication and the costs of syncs.

use super::array_scenario::ArrayScenario;
use super::array_simulation::Array;
use super::chunk_costs::ChunkCosts;
use super::neighbours::{Beside, Neighbour, Presence};
use super::series::{PerWorker, Series, Shared};
use lb_strategies::choice::Choice;
use lb_strategies::virtual_time::vcpus::Traces;
use lb_strategies::{Period, Rank};

/// A row of the table of scenarios.
///
/// ```
/// use virtual_cluster::ARRAY_SCENARIOS;
/// let entry = ARRAY_SCENARIOS.iter().find(|entry| entry.name == "demo").expect("listed");
/// assert_eq!(entry.build().array.chunks, 256);
/// ```
#[derive(Clone, Copy)]
pub struct ArrayScenarioEntry {
    /// The name in commands and reports.
    pub name: &'static str,
    /// The scenario in one line.
    pub about: &'static str,
    build: fn() -> ArrayScenario,
}

impl ArrayScenarioEntry {
    /// The scenario.
    pub fn build(&self) -> ArrayScenario {
        ArrayScenario { name: self.name.to_owned(), ..(self.build)() }
    }
}

const fn entry(name: &'static str, about: &'static str, build: fn() -> ArrayScenario) -> ArrayScenarioEntry {
    ArrayScenarioEntry { name, about, build }
}

/// Every scenario.
pub const ARRAY_SCENARIOS: &[ArrayScenarioEntry] = &[
    entry("demo", "the README's plate for 500 iterations, a neighbour beside one rank of two", demonstration),
    entry("R3", "refinement paper, figure 3: a slow node (4 VMs), a neighbour for 200 iterations", figure_3),
    entry("R6a", "refinement paper, figure 6a: a neighbour beside one of 32 VMs", || {
        paper(0, Some((0.0, f64::INFINITY)))
    }),
    entry("R6b", "refinement paper, figure 6b: a slow node: 4 of the 32 VMs", || paper(SLOW, None)),
    entry("R6c", "refinement paper, figure 6c: a slow node, and a neighbour from iteration 50", || {
        paper(SLOW, Some((50.0 * SLOW_ITERATION_S, f64::INFINITY)))
    }),
    entry("spot", "a hot spot on 64 ranks that stands still", || hot_spot(None)),
    entry("spot-0", "the same, but moving by 1 of 1000 columns an iteration", || hot_spot(Some(0))),
    entry("spot-5", "the same, by 11 columns", || hot_spot(Some(5))),
    entry("spot-20", "the same, by 41 columns", || hot_spot(Some(20))),
];

/// The scenario with this name.
///
/// # Errors
/// If no scenario has this name. The error lists similar names, or all names.
///
/// ```
/// use virtual_cluster::array_scenario;
/// assert_eq!(array_scenario("R6b")?.array.workers.len(), 32);
/// assert!(array_scenario("R6").is_err());
/// # Ok::<(), lb_strategies::Choice>(())
/// ```
pub fn array_scenario(name: &str) -> Result<ArrayScenario, Choice> {
    let entry = ARRAY_SCENARIOS.iter().find(|entry| entry.name == name);
    let names = ARRAY_SCENARIOS.iter().map(|entry| entry.name);
    entry.map(ArrayScenarioEntry::build).ok_or_else(|| Choice::new(name, names))
}

/// 4096 x 4096 cells in 256 chunks on two vCPUs: 3.64 s without a neighbour, so a chunk takes 57 us per iteration.
fn demonstration() -> ArrayScenario {
    let array = Array {
        chunks: 256,
        iterations: 500,
        period: Period::Steps(20),
        state_bytes: 512 << 10,
        workers: vec![1; 2],
    };
    let shares = Beside::Vcpu.shares(&[Neighbour::always(Rank(1))]);
    let speed = 256.0 * 500.0 / (2.0 * 3.64);
    ArrayScenario::new("demo", array, move || {
        Box::new(Shared::new(Box::new(Traces::constant(move |_| speed)), shares.clone()))
    })
}

/// VMs of the paper's figures 3 and 6.
const VMS: u32 = 32;
/// VMs of the slow node.
const SLOW: u32 = 4;
/// Clock of a slow node, relative to a fast one.
const SLOW_CLOCK: f64 = 2.13 / 3.0;
/// Number of chunks per VM.
const CHUNKS_PER_VM: u32 = 32;
/// Time of an iteration on a quiet fast VM, s.
const ITERATION_S: f64 = 0.1;
/// Time of an iteration in which all wait for a slow node, s.
const SLOW_ITERATION_S: f64 = ITERATION_S / SLOW_CLOCK;

/// The paper's cluster with `slow` slow VMs, and a neighbour beside the last VM between two times.
fn paper(slow: u32, neighbour_s: Option<(f64, f64)>) -> ArrayScenario {
    let array = Array {
        chunks: VMS * CHUNKS_PER_VM,
        iterations: 500,
        period: Period::Steps(20),
        state_bytes: 512 << 10,
        workers: vec![1; VMS as usize],
    };
    let beside = Neighbour::always(Rank(VMS - 1));
    let neighbour = neighbour_s
        .map(|(from_s, to_s)| Neighbour { presence: Presence::Between { from_s, to_s }, ..beside });
    let shares = Beside::Vcpu.shares(neighbour.as_slice());
    let clocks = PerWorker::new(&array.workers, move |worker| {
        let clock = if worker.rank.0 < slow { SLOW_CLOCK } else { 1.0 };
        Series::constant(clock * f64::from(CHUNKS_PER_VM) / ITERATION_S)
    });
    ArrayScenario::new("R", array, move || Box::new(Shared::new(Box::new(clocks.clone()), shares.clone())))
}

/// The neighbour comes after 100 iterations and leaves after 300, by the time of a run without balancing.
fn figure_3() -> ArrayScenario {
    let from_s = 100.0 * SLOW_ITERATION_S;
    paper(SLOW, Some((from_s, from_s + 200.0 * 2.0 * ITERATION_S)))
}

/// 64 quiet ranks, with 16 chunks of 1 ms each.
fn hot_spot(k: Option<u32>) -> ArrayScenario {
    let array = Array {
        chunks: 1024,
        iterations: 400,
        period: Period::Steps(10),
        state_bytes: 64 << 10,
        workers: vec![1; 64],
    };
    let scenario = ArrayScenario::new("spot", array, || Box::new(Traces::constant(|_| 1000.0)));
    ArrayScenario { costs: ChunkCosts::HotSpot { k }, ..scenario }
}
