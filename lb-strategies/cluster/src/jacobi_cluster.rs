//! Simulates the cluster and program of Al-Ameedi and Fanfakh (2021), section 5: nodes of four kinds, and a dense
//! Jacobi iteration.
//!
//! The paper gives the speed of the nodes and the bandwidth between them. It does not give the time of a message, the
//! number of iterations, or the node of the serial program. Here the serial program runs on the slowest kind of node,
//! and there are [`STEPS`] iterations. A message takes [`DELAY_S`], which is fitted to one number of the paper: the
//! speedup of 12.38 with 6000 rows. All other numbers follow. The simulated speedups grow faster with the size than the
//! paper's. By the paper's speedups, an iteration takes 84, 145 and 208 us with 4000, 6000 and 8000 rows: 31 us for
//! each 1000 rows, as if eight bytes per row were sent at a fifth of 10 Gbit/s.

use std::sync::Arc;

use super::exchange::{Exchange, Wire};
use super::step_scenario::{StepScenario, Times};
use super::step_simulation::StepProgram;
use lb_strategies::supersteps::Weights;

/// Numbers of rows of the systems.
pub const SIZES: [u64; 3] = [4000, 6000, 8000];

/// Numbers of nodes.
pub const NODES: [usize; 6] = [4, 8, 16, 24, 32, 64];

/// The paper's greatest speedup over the serial program, by size.
pub const SPEEDUPS: [f64; 3] = [9.54, 12.38, 15.40];

/// Operations per second of the four kinds of nodes; node i is of kind i mod 4 (table 1).
const FLOPS: [f64; 4] = [40e9, 50e9, 60e9, 70e9];

/// Number of iterations of a run.
pub const STEPS: u64 = 1000;

/// Time of a message without content, s; fitted.
pub const DELAY_S: f64 = 14.3e-6;

/// 10 Gbit/s, in bytes per second.
const BYTES_PER_S: f64 = 1.25e9;

/// Time of a row, s: one multiplication and one addition per element.
fn row_s(size: u64, node: usize) -> f64 {
    2.0 * size as f64 / FLOPS[node % FLOPS.len()]
}

/// Time of the serial program on a node of the slowest kind, s.
///
/// ```
/// assert!((virtual_cluster::jacobi_cluster::serial_s(4000) - 0.8).abs() < 1e-9);
/// ```
pub fn serial_s(size: u64) -> f64 {
    STEPS as f64 * size as f64 * row_s(size, 0)
}

/// A system of `size` rows on `nodes` nodes.
pub fn scenario(size: u64, nodes: usize, exchange: Exchange) -> StepScenario {
    let program = StepProgram {
        steps: STEPS,
        part_bytes: 8.0,
        unit_bytes: 8.0 * (size + 1) as f64,
        exchange,
        link: Wire { delay_s: DELAY_S, bytes_per_s: BYTES_PER_S },
        notify_s: DELAY_S,
        lag: 0,
        ..StepProgram::new(Weights::Equal(size), nodes)
    };
    let series = (0..nodes).map(|node| vec![row_s(size, node)]).collect();
    StepScenario {
        name: format!("{size} rows, {nodes} nodes"),
        program,
        times: Times::Jobs(Arc::new(series)),
    }
}
