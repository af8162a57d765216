//! Pool scenarios after figures 6, 7 and 8 of the RUPER-LB paper (Gimenez-Alventosa, Molto and Segrelles).
//!
//! The paper gives run times of ranks and threads, and speeds in figure 9. Here the speeds behind figures 6 to 8 are
//! chosen so that equal shares take about as long as the paper measured. Its quiet threads do 2163 and 2180 iterations
//! per second. A process on the other hardware thread of the core leaves 0.47 of this ([`Beside::Core`]).

use std::f64::consts::TAU;

use crate::hardware_threads::{HardwareThreads, Host};
use crate::jumps::{Jumps, Level};
use crate::neighbours::Beside;
use crate::pool_scenario::Scenario;
use lb_strategies::Rank;
use lb_strategies::pools::machine::SECOND;
use lb_strategies::pools::policy::Pool;
use lb_strategies::virtual_time::vcpus::{Traces, Worker};

const WORKERS: u32 = 8;

/// The position of a worker on its rank, from -1 for the first to 1 for the last.
fn position(worker: Worker) -> f64 {
    (2.0 * f64::from(worker.number) - 7.0) / 7.0
}

/// A quiet rank 0 whose workers differ by 0.3 %, and a rank 1 beside neighbours that want this part of a vCPU (`duty`).
fn beside_neighbours(quiet: f64, duty: impl Fn(Worker, f64) -> f64) -> impl Fn(Worker, f64) -> f64 {
    move |worker, seconds| match worker.rank {
        Rank(0) => quiet * (1.0 + 0.003 * position(worker)),
        _ => quiet * Beside::Core.share(&[duty(worker, seconds)]),
    }
}

/// Runs 1 to 4 of figure 6: 2 x 8 threads. Duties are about 0.43, 0.70, 0.62 and 0.73, and swing by 0.12 every 1700 s.
pub fn figure_6(run: u32) -> Scenario {
    let mean = [0.43, 0.70, 0.62, 0.73][run as usize - 1];
    Scenario::new("F6", Pool::new(100_000_000, vec![WORKERS; 2]), move || {
        let duty = move |worker, seconds: f64| {
            let swing = 0.12 * (TAU * seconds / 1700.0 + f64::from(run)).sin();
            (mean * (1.0 + 0.08 * position(worker)) + swing).clamp(0.0, 1.0)
        };
        Box::new(Traces::new(SECOND, beside_neighbours(2163.0, duty)))
    })
}

/// Figure 7: 2 x 8 threads for four hours. Duties change every 2400 s.
pub fn figure_7() -> Scenario {
    const DUTIES: [f64; 8] = [0.35, 0.55, 0.8, 0.95, 0.9, 0.7, 0.85, 0.6];
    Scenario::new("F7", Pool::new(400_000_000, vec![WORKERS; 2]), || {
        let duty = |worker, seconds: f64| {
            let now = DUTIES[((seconds + 1200.0) / 2400.0) as usize % DUTIES.len()];
            (now * 0.96 * (1.0 + 0.05 * position(worker))).min(1.0)
        };
        // Duties change at odd multiples of 1200 s.
        Box::new(Traces::new(1200 * SECOND, beside_neighbours(2180.0, duty)))
    })
}

/// The pool of figure 8. Its number of iterations is the sum of figure 9, which is the same run.
fn figure_8_pool() -> Pool {
    Pool::new(104_000_000, vec![WORKERS; 4])
}

/// Figure 8: 4 x 8 threads of one host. Each has speeds of 1030 (shared core), 1500 or 2200, for 230 s in the mean.
pub fn figure_8_jumps() -> Scenario {
    Scenario::new("F8a", figure_8_pool(), || {
        let levels = [(1030.0, 0.62), (1500.0, 0.24), (2200.0, 0.14)];
        let levels = levels.map(|(speed, part)| Level { speed, part });
        Box::new(Jumps::new(levels.to_vec(), 230.0, |worker| u64::from(100 * worker.rank.0 + worker.number)))
    })
}

/// Figure 8 again: threads move over 64 hardware threads of 32 cores, and slow down the thread on the same core.
pub fn figure_8_cores() -> Scenario {
    figure_8_cores_of(200.0, 8)
}

/// The same with other times for which a thread stays on a core, s in the mean, and another seed of its moves.
pub fn figure_8_cores_of(hold: f64, seed: u64) -> Scenario {
    let host = Host { cores: 32, alone: 2250.0, together: 1030.0, hold, seed };
    Scenario::new("F8b", figure_8_pool(), move || Box::new(HardwareThreads::new(&figure_8_pool(), host)))
}
