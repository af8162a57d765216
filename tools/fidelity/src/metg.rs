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

/// Task Bench, as a real run measures it.
struct Real {
    metg_ns: f64,
    /// Time of a worker for the smallest task, without the work of its kernel, ns.
    least_ns: f64,
}

/// A table of METG on these numbers of ranks, real and simulated. A simulation knows the smallest task of a run on one
/// rank, and predicts the rest.
pub(crate) fn compare(dir: &Path, ranks: &[u32], runs: u32, costs: &MachineCosts) -> Result<Table, String> {
    let mut table = Table::new([
        "METG(50 %) of a one-dimensional stencil",
        "ranks",
        "real us",
        "lowest to highest",
        "simulated",
        "%",
    ]);
    let alone: Vec<f64> = (0..runs).map(|_| Ok(real(dir, 1)?.least_ns)).collect::<Result<_, String>>()?;
    // The time of a task that belongs to the program alone: neither its kernel's nor the runtime's.
    let own_ns = (lb_strategies::median(alone).unwrap_or(0.0) - grain_ns(1, 0.0, costs)?).max(0.0);
    for &ranks in ranks {
        let mut real: Vec<f64> =
            (0..runs).map(|_| Ok(real(dir, ranks)?.metg_ns)).collect::<Result<_, String>>()?;
        real.sort_by(f64::total_cmp);
        let median = lb_strategies::median(real.clone()).unwrap_or(1.0);
        let simulated = simulated_ns(ranks, own_ns, costs)?;
        table.row([
            format!("{WIDTH} points per rank"),
            ranks.to_string(),
            format!("{:.3}", median / 1e3),
            format!("{:.3} to {:.3}", real[0] / 1e3, real[real.len() - 1] / 1e3),
            format!("{:.3}", simulated / 1e3),
            format!("{:+.0}", 100.0 * (simulated / median - 1.0)),
        ]);
    }
    Ok(table)
}

fn real(dir: &Path, ranks: u32) -> Result<Real, String> {
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
    let system = &json["metg"]["systems"][0];
    let metg_ns = system["metg_ns"].as_f64();
    let metg_ns = metg_ns.ok_or_else(|| format!("{NAME}: no run reached half of the peak rate"))?;
    let grain = system["grains"].as_array().and_then(|grains| grains.last());
    let part = |field: &str| grain.and_then(|grain| grain[field].as_f64());
    let (Some(grain_ns), Some(efficiency)) = (part("grain_ns"), part("efficiency")) else {
        return Err(format!("{NAME}: no grains in its results"));
    };
    Ok(Real { metg_ns, least_ns: grain_ns * (1.0 - efficiency) })
}

/// The grain of Task Bench, ns: the simulated time of a worker per task. `work_ns` is what a task does itself.
fn grain_ns(ranks: u32, work_ns: f64, costs: &MachineCosts) -> Result<f64, String> {
    let none = ARRAYS.parse("none").map_err(|error| error.to_string())?;
    let run =
        scenario(&row(ranks, work_ns, costs), &row(ranks, 0.0, costs), STEPS, 0, costs).run(none.into());
    Ok(run.makespan() as f64 / (f64::from(WIDTH) * STEPS as f64))
}

/// Halves the kernel of a task until less than half of the rate is left, and interpolates between the last two grains.
fn simulated_ns(ranks: u32, own_ns: f64, costs: &MachineCosts) -> Result<f64, String> {
    let vcpus = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    // Workers beyond the vCPUs compute nothing more.
    let workers_per_vcpu = f64::from(ranks) / f64::from(ranks.min(vcpus));
    let mut before: Option<(f64, f64)> = None;
    let mut kernel_ns = 65_536.0;
    while kernel_ns > 1.0 {
        let grain = grain_ns(ranks, kernel_ns + own_ns, costs)?;
        let efficiency = kernel_ns * workers_per_vcpu / grain;
        if efficiency < 0.5 {
            let Some((coarser, more)) = before else { return Ok(grain) };
            let part = (more - 0.5) / (more - efficiency);
            return Ok(coarser * (grain / coarser).powf(part));
        }
        before = Some((grain, efficiency));
        kernel_ns /= 2.0;
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
