//! Runs a program in virtual time, with the costs of a calibration.

use std::path::Path;
use std::sync::Arc;

use caribou_tools::MachineCosts;
use lb_strategies::pool::Pool;
use lb_strategies::supersteps::Weights;
use lb_strategies::{ARRAYS, POOLS, Period, Rank, SUPERSTEPS};
use virtual_cluster::{
    Array, ArrayScenario, ChunkCosts, CostTable, Crowded, Home, RunPool, StepProgram, StepScenario, Times,
    Traces, Vcpus, Wire,
};

use crate::program::{Base, Program};
use crate::recorded::Loads;

/// A simulated run.
pub(crate) struct Simulated {
    pub(crate) iteration_ns: f64,
    /// The same with loads that were recorded on as many ranks.
    pub(crate) own_ns: Option<f64>,
    pub(crate) moves: Option<u64>,
}

/// Number of vCPUs of this machine.
fn vcpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as u32)
}

/// Runs a program on so many ranks of one worker, threads of one process.
pub(crate) fn run(
    program: &Program,
    base: &Base,
    ranks: u32,
    lb: &str,
    costs: &MachineCosts,
    dir: &Path,
) -> Result<Simulated, String> {
    match (base, program.shape) {
        (Base::Loads(alone), _) => {
            let own = program.loads(dir, ranks)?;
            let moved = alone.placed_as(&own)?;
            let (iteration_ns, moves) = array(program, &moved, alone, lb, costs)?;
            let (own_ns, _) = array(program, &own, &own, lb, costs)?;
            Ok(Simulated { iteration_ns, own_ns: Some(own_ns), moves: Some(moves) })
        }
        (Base::PerSecond(speed), crate::Shape::Pool) => pool(program, *speed, ranks, lb, costs),
        (Base::PerSecond(speed), _) => steps(program, *speed, ranks, lb, costs),
    }
}

/// An array of one process on this machine, with these loads per iteration. `recorded` has the same chunks on the ranks
/// on which they were when loads were recorded: what messages cost there is not work.
pub(crate) fn scenario(
    loads: &Loads,
    recorded: &Loads,
    iterations: u64,
    state_bytes: u64,
    costs: &MachineCosts,
) -> ArrayScenario {
    let ranks = loads.ranks.iter().max().map_or(1, |last| last + 1);
    let chunks = loads.chunks.len() as u32;
    let array =
        Array { chunks, iterations, period: Period::Auto, state_bytes, workers: vec![1; ranks as usize] };
    let mut scenario = ArrayScenario::new("real", array, || Box::new(Traces::constant(|_| 1e9)));
    scenario.overheads.bandwidths.ranks_per_host = ranks;
    scenario.overheads.bandwidths.message_bytes = loads.message_bytes as u64;
    scenario.vcpus_per_host = (ranks > vcpus()).then(vcpus);
    costs.apply(&mut scenario);
    let rank_of: std::collections::BTreeMap<_, _> = recorded.chunks.iter().zip(&recorded.ranks).collect();
    let paid: Vec<f64> = (0..loads.chunks.len())
        .map(|chunk| {
            let rank = |chunk: usize| rank_of.get(&loads.chunks[chunk]);
            let far = |to: &&u32| rank(**to as usize) != rank(chunk);
            let far = loads.sends_to[chunk].iter().filter(far).count() as f64;
            let near = loads.sends_to[chunk].len() as f64 - far;
            let overheads = &scenario.overheads;
            let far_ns = overheads.message_cpu as f64 + overheads.cpu.message_byte * loads.message_bytes;
            overheads.cpu.iteration + near * overheads.cpu.local_message + 2.0 * far * far_ns
        })
        .collect();
    let table = (0..iterations).flat_map(|iteration| {
        let paid = &paid;
        (0..chunks).map(move |chunk| (loads.at(chunk, iteration) - paid[chunk as usize]).max(0.0))
    });
    scenario.costs = ChunkCosts::Listed(CostTable::new(chunks, table.collect()));
    let home = |&rank: &u32| Home { rank: Rank(rank), migratable: true };
    scenario.homes = Some(loads.ranks.iter().map(home).collect());
    let sends_to = loads.sends_to.clone();
    scenario.sends_to = Some(Arc::new(move |chunk| sends_to[chunk as usize].clone()));
    scenario
}

fn array(
    program: &Program,
    loads: &Loads,
    recorded: &Loads,
    lb: &str,
    costs: &MachineCosts,
) -> Result<(f64, u64), String> {
    let scenario = scenario(loads, recorded, program.iterations, program.state_bytes, costs);
    let strategy = ARRAYS.parse(lb).map_err(|error| error.to_string())?;
    let run = scenario.run(strategy.into());
    Ok((run.makespan() as f64 / program.iterations as f64, run.moves()))
}

/// Workers that compute so many units per second, on the vCPUs of this machine.
fn shared(speed: f64, ranks: u32) -> Box<dyn Vcpus> {
    Box::new(Crowded::new(
        Box::new(Traces::constant(move |_| speed)),
        &vec![1; ranks as usize],
        ranks,
        vcpus(),
    ))
}

fn pool(
    program: &Program,
    speed: f64,
    ranks: u32,
    lb: &str,
    costs: &MachineCosts,
) -> Result<Simulated, String> {
    let policy = POOLS.parse(lb).map_err(|error| error.to_string())?;
    let pool = Pool::new(program.iterations, vec![1; ranks as usize]);
    let mut vcpus = shared(speed, ranks);
    let latency_ns = costs.costs.latency_ns as u64;
    let run = RunPool::new(&pool, &*policy, &mut *vcpus).links(latency_ns).run();
    let iteration_ns = run.makespan() as f64 / program.iterations as f64;
    Ok(Simulated { iteration_ns, own_ns: None, moves: None })
}

fn steps(
    program: &Program,
    speed: f64,
    ranks: u32,
    lb: &str,
    costs: &MachineCosts,
) -> Result<Simulated, String> {
    let policy = SUPERSTEPS.parse(lb).map_err(|error| error.to_string())?;
    // The unit is a step of one worker, in a thousand parts.
    let units = 1000;
    let speed = speed * units as f64 * f64::from(vcpus().min(ranks)) / f64::from(ranks);
    let message_s = (costs.costs.latency_ns + costs.costs.remote_message_ns) / 1e9;
    let link = Wire { delay_s: if ranks > 1 { message_s } else { 0.0 }, bytes_per_s: f64::INFINITY };
    let program_of_steps = StepProgram {
        steps: program.iterations,
        link,
        ..StepProgram::new(Weights::Equal(units), ranks as usize)
    };
    let make = Arc::new(move || Box::new(Traces::constant(move |_| speed)) as Box<dyn Vcpus>);
    let times = Times::Vcpus(make, vec![1; ranks as usize]);
    let run = StepScenario { name: program.name.into(), program: program_of_steps, times }.run(&*policy);
    let iteration_ns = run.makespan_s() * 1e9 / program.iterations as f64;
    Ok(Simulated { iteration_ns, own_ns: None, moves: None })
}
