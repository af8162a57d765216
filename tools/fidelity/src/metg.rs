//! Compares METG(50 %): the smallest grain of a task at which a run reaches half of its peak rate.

use std::path::Path;
use std::process::{Command, Stdio};

use caribou_tools::MachineCosts;
use lb_strategies::{ARRAYS, ArrayId, ChunkId};
use presentation::Table;
use serde_json::Value;

use crate::program::{scratch, start};
use crate::recorded::Loads;
use crate::simulated::scenario;

/// The program.
pub(crate) const NAME: &str = "task_bench";
/// Points per rank, and timesteps.
const WIDTH: u32 = 16;
const STEPS: u64 = 1000;

/// A table of METG on these numbers of ranks, real and simulated.
pub(crate) fn compare(dir: &Path, ranks: &[u32], costs: &MachineCosts) -> Result<Table, String> {
    let mut table =
        Table::new(["METG(50 %) of a one-dimensional stencil", "ranks", "real us", "simulated", "%"]);
    for &ranks in ranks {
        let (real, simulated) = (real_ns(dir, ranks)?, simulated_ns(ranks, costs)?);
        table.row([
            format!("{WIDTH} points per rank"),
            ranks.to_string(),
            format!("{:.3}", real / 1e3),
            format!("{:.3}", simulated / 1e3),
            format!("{:+.0}", 100.0 * (simulated / real - 1.0)),
        ]);
    }
    Ok(table)
}

fn real_ns(dir: &Path, ranks: u32) -> Result<f64, String> {
    let results = scratch(NAME, "json");
    let (width, steps, ranks) = ((WIDTH * ranks).to_string(), STEPS.to_string(), ranks.to_string());
    let mut command = Command::new(dir.join(NAME));
    command.args(["-type", "stencil_1d", "-steps", &steps, "-width", &width, "-kernel", "compute_bound"]);
    command.args(["-iter", "1024", "--metg", "--repetitions", "5", "--lb", "none", "--ranks", &ranks]);
    command.args(["--workers", "1", "--json"]).arg(&results).stdout(Stdio::null()).stderr(Stdio::null());
    start(&mut command, NAME)?;
    let text = std::fs::read_to_string(&results).map_err(|error| format!("{NAME}: {error}"))?;
    let _ = std::fs::remove_file(&results);
    let json: Value = serde_json::from_str(&text).map_err(|error| format!("{NAME}: its results: {error}"))?;
    let metg = json["metg"]["systems"][0]["metg_ns"].as_f64();
    metg.ok_or_else(|| format!("{NAME}: no run reached half of the peak rate"))
}

/// Halves the work of a task until less than half of the rate is left, and interpolates between the last two grains.
fn simulated_ns(ranks: u32, costs: &MachineCosts) -> Result<f64, String> {
    let none = ARRAYS.parse("none").map_err(|error| error.to_string())?;
    let strategy: std::sync::Arc<dyn lb_strategies::Strategy> = none.into();
    let vcpus = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    let mut before: Option<(f64, f64)> = None;
    let mut work_ns = 65_536.0;
    while work_ns > 1.0 {
        let run = scenario(&row(ranks, work_ns, costs), &row(ranks, 0.0, costs), STEPS, 0, costs)
            .run(strategy.clone());
        let tasks = f64::from(WIDTH * ranks) * STEPS as f64;
        // The grain of Task Bench: the time of a worker per task. Workers beyond the vCPUs compute nothing more.
        let grain = run.makespan() as f64 * f64::from(ranks) / tasks;
        let efficiency = work_ns * f64::from(ranks) / f64::from(ranks.min(vcpus)) / grain;
        if efficiency < 0.5 {
            let Some((coarser, more)) = before else { return Ok(grain) };
            let part = (more - 0.5) / (more - efficiency);
            return Ok(coarser * (grain / coarser).powf(part));
        }
        before = Some((grain, efficiency));
        work_ns /= 2.0;
    }
    before.map(|(grain, _)| grain).ok_or_else(|| "no grain was simulated".to_owned())
}

/// A row of points, each of which sends to both neighbours. It reads itself without a message. The work does not include
/// messages.
fn row(ranks: u32, work_ns: f64, costs: &MachineCosts) -> Loads {
    let points = WIDTH * ranks;
    let beside = |point: u32| {
        let row = point.saturating_sub(1)..(point + 2).min(points);
        row.filter(|&other| other != point).collect::<Vec<u32>>()
    };
    let id = |key: u32| ChunkId { array: ArrayId(0), key: u64::from(key) };
    let sends_to: Vec<Vec<u32>> = (0..points).map(beside).collect();
    // What a simulation subtracts, because recorded loads include it.
    let costs = &costs.costs;
    let rank = |point: u32| point / WIDTH;
    let paid = |point: u32| {
        let far = beside(point).into_iter().filter(|&to| rank(to) != rank(point)).count() as f64;
        let near = beside(point).len() as f64 - far;
        let far_ns = costs.remote_message_ns.round() + costs.remote_byte_ns * 16.0;
        costs.iteration_ns + near * costs.local_message_ns + 2.0 * far * far_ns
    };
    Loads {
        chunks: (0..points).map(id).collect(),
        ranks: (0..points).map(rank).collect(),
        ns: vec![(0..points).map(|point| work_ns + paid(point)).collect()],
        sends_to,
        message_bytes: 16.0,
    }
}
