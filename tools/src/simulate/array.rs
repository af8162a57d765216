//! `caribou simulate array`: arrays of chunks, under some strategies or all that balance.

use std::io::Write;

use lb_strategies::balancer::MOVE_COST;
use lb_strategies::{ARRAYS, Listing, MoveCost, Period};
use virtual_cluster::{ARRAY_SCENARIOS, Array, ArrayScenario, array_scenario};

use super::cluster::{self, NetworkOptions};
use super::compare::{DESCRIBED, Policy, all_complete, write_tables};
use super::files::Files;
use super::values::{self, ChunkCost};
use crate::Error;

/// Those compared unless a person says otherwise; `program`, `rotate` and `random` balance nothing here.
const COMPARED: &str = "none,refine,refine-best,refine-paper,greedy-refine,greedy";

/// Chunks of each worker unless a person says otherwise.
const CHUNKS_PER_WORKER: u32 = 16;

/// Simulated in minutes, for each strategy.
const SIMULATED_MOST: f64 = 1e9;
/// The most iterations in a run: the end of each is kept.
const ITERATIONS_MOST: u64 = 10_000_000;
/// Chunks that ranks look at in all syncs together.
const LOOKED_AT_MOST: f64 = 1e10;

/// An array with a name, or one described.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Options {
    /// Scenarios with names, or `all`; --list says which there are. Without one, the array described below.
    #[arg(long, value_name = "NAME[,NAME..]|all", value_delimiter = ',', conflicts_with_all = ["array", "cluster"])]
    scenario: Vec<String>,
    /// List scenarios and strategies.
    #[arg(long, exclusive = true)]
    list: bool,
    /// Strategies for arrays with their parameters, as in none,refine,tolerance=0.1; if not given all but `program`,
    /// `rotate` and `random`, which balance nothing here.
    #[arg(long, value_name = "SPEC[,SPEC..]", default_value = COMPARED, hide_default_value = true)]
    compare: String,
    #[command(flatten)]
    wires: NetworkOptions,
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    cluster: cluster::Options,
    #[command(flatten)]
    described: ArrayOptions,
}

/// An array.
#[derive(clap::Args)]
#[group(id = "array", multiple = true)]
#[command(next_help_heading = "An array described")]
struct ArrayOptions {
    /// Chunks; if not given 16 for each worker.
    #[arg(long, value_parser = presentation::count_parser(1..=1_000_000u32))]
    chunks: Option<u32>,
    /// Iterations of each chunk.
    #[arg(long, value_name = "COUNT", default_value = "500", value_parser = values::count)]
    iterations: u64,
    /// When chunks are balanced: at syncs, with so many iterations from one to the next (0 for no sync); or in windows,
    /// when it is likely to pay (auto), or of a length such as 50ms.
    #[arg(long, value_name = "ITERATIONS|auto|TIME", default_value = "20", value_parser = str::parse::<Period>)]
    period: Period,
    /// The cost of a chunk: all the same; lognormal with this sigma; up and down by a half in so many iterations; 1.5 in
    /// one half of the chunks and 0.5 in the other, which swap every so many iterations; or the more the nearer it is to a hot spot, which stands still, or moves 2K+1 thousandths of the grid an iteration.
    /// The mean is 1.
    #[arg(
        long,
        value_name = "constant|lognormal:SIGMA|drift:ITERATIONS|alternate:ITERATIONS|hot-spot[:K]",
        default_value = "constant",
        value_parser = values::chunk_cost
    )]
    cost: ChunkCost,
    /// Whom a chunk needs to have finished an iteration before its next: those beside it in a grid, or nobody.
    #[arg(long, default_value = "grid", value_parser = ["grid", "none"])]
    exchange: String,
    /// Bytes of a chunk that travel when it moves.
    #[arg(long, value_name = "BYTES", default_value = "524288", value_parser = presentation::count_parser(0..=1_000_000_000_000u64))]
    state_bytes: u64,
    /// Bytes a second at which a rank sends chunks that move; the balancer expects 4e9 until it has seen moves.
    #[arg(long, value_name = "BYTES/S", default_value = "4e9", value_parser = values::speed)]
    bandwidth: f64,
}

const AFTER_HELP: &str = "\
Excess is how much longer a run takes than the best placement would if chunks could be divided and never waited for each
other; saved is what part of the time of `none` a strategy saves. The ideal saves as much as can be saved: at most.
Exit code: 0 done, 1 a run is incomplete or its tables cannot be printed, 2 bad options or a file that
cannot be written.

Eight ranks of one worker, a neighbour beside the last for ten seconds
  caribou simulate array --ranks 8 --workers 1 --neighbour 7:2-12 --compare none,refine
A hot spot that moves, a sync every five iterations
  caribou simulate array --ranks 64 --workers 1 --cost hot-spot:5 --period 5
How long each iteration takes in figure 3 of the refinement paper
  caribou simulate array --scenario R3 --compare none,refine-paper,refine --plot r3.svg";

/// Runs what was asked for, and writes what came of it.
pub(super) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    if options.list {
        return write_list(out);
    }
    options.files.check()?;
    let strategies = Policy::list(&ARRAYS, Some(&options.compare))?;
    let comparisons = write_tables(&options.scenarios()?, &strategies, about, out)?;
    options.files.write(&comparisons)?;
    all_complete(&comparisons)
}

impl Options {
    /// Those named, or the one described, on the network asked for.
    fn scenarios(&self) -> Result<Vec<ArrayScenario>, Error> {
        let mut scenarios = match &self.scenario[..] {
            [] => vec![self.described.scenario(&self.cluster, self.wires.seed)?],
            [all] if all == "all" => ARRAY_SCENARIOS.iter().map(|entry| entry.build()).collect(),
            names => names.iter().map(|name| named(name)).collect::<Result<_, _>>()?,
        };
        scenarios.iter_mut().for_each(|scenario| self.wires.apply(&mut scenario.network));
        Ok(scenarios)
    }
}

impl ArrayOptions {
    /// The array on this cluster.
    fn scenario(&self, cluster: &cluster::Options, seed: u64) -> Result<ArrayScenario, Error> {
        let workers = cluster.workers();
        let array = Array {
            chunks: self.chunks.unwrap_or(CHUNKS_PER_WORKER * workers.iter().sum::<u32>()),
            iterations: self.iterations,
            period: self.period,
            state_bytes: self.state_bytes,
            workers,
        };
        let simulated = f64::from(array.chunks) * array.iterations as f64;
        if simulated > SIMULATED_MOST {
            return Err(Error::Usage(format!(
                "--iterations {}: {simulated:.0e} iterations of chunks to simulate, expected {SIMULATED_MOST:e} at most",
                array.iterations
            )));
        }
        if array.iterations > ITERATIONS_MOST {
            let why = format!("--iterations {}: expected {ITERATIONS_MOST} at most", array.iterations);
            return Err(Error::Usage(why));
        }
        let looked_at = array.syncs() as f64 * f64::from(array.chunks) * array.workers.len() as f64;
        if looked_at > LOOKED_AT_MOST {
            let why = "each rank looks at all chunks in each sync";
            return Err(Error::Usage(format!(
                "--period {}: {why}, {looked_at:.0e} times, expected {LOOKED_AT_MOST:e} at most",
                array.period
            )));
        }
        let scenario = ArrayScenario {
            costs: self.cost.costs(seed),
            exchange: self.exchange == "grid",
            move_cost: MoveCost { bytes_per_second: self.bandwidth, ..MOVE_COST },
            ..ArrayScenario::new(DESCRIBED, array, cluster.vcpus(seed)?)
        };
        cluster.check_ideal(scenario.ideal_s(), "--iterations", self.iterations)?;
        Ok(scenario)
    }
}

/// Description of a scenario, before its size.
fn about(scenario: &ArrayScenario) -> String {
    let entry = ARRAY_SCENARIOS.iter().find(|entry| entry.name == scenario.name);
    entry.map_or_else(String::new, |entry| format!("{}; ", entry.about))
}

fn named(name: &str) -> Result<ArrayScenario, Error> {
    array_scenario(name.trim())
        .map_err(|choice| Error::Usage(format!("--scenario: unknown scenario {choice}, or all")))
}

fn write_list(out: &mut dyn Write) -> Result<(), Error> {
    writeln!(out, "scenarios")?;
    for entry in ARRAY_SCENARIOS {
        writeln!(out, "  {:<12}{}", entry.name, entry.about)?;
    }
    writeln!(out, "\nstrategies")?;
    Ok(out.write_all(ARRAYS.help().as_bytes())?)
}
