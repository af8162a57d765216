//! Implements `caribou simulate array`: runs arrays of chunks under array strategies.

use std::io::Write;

use lb_strategies::balancer::MOVE_COST;
use lb_strategies::{ARRAYS, EdgeUse, Listing, MoveCost, Period, Strategy};
use presentation::format;
use virtual_cluster::{ARRAY_SCENARIOS, Array, ArrayScenario, ChunkCosts, RecordedLoads, array_scenario};

use super::chunk_cost::{self, ChunkCost, Shape};
use super::cluster::{self, NetworkOptions};
use super::compare::{DESCRIBED, Policy, all_complete, write_tables};
use super::files::Files;
use super::overheads::OverheadOptions;
use super::{periods, values};
use crate::{Error, input, recorded, room};

/// Default of `--compare`. `program`, `rotate` and `random` are left out because they balance nothing here.
const COMPARED: &str = "none,refine,refine-paper,greedy";

/// Default number of chunks per worker.
const CHUNKS_PER_WORKER: u32 = 16;

/// Largest number of chunks times iterations. One strategy simulates as many in minutes.
const SIMULATED_MOST: f64 = 1e9;
/// Largest number of iterations in a run, because the end of each is stored.
const ITERATIONS_MOST: u64 = 10_000_000;
/// Default number of iterations.
const ITERATIONS: u64 = 500;
/// Default size of a chunk in bytes.
const STATE_BYTES: u64 = 524_288;
/// Largest number of costs of random walks, because all are stored.
const WALKED_MOST: f64 = 5e7;
/// Largest number of chunks, because all are in memory.
const CHUNKS_MOST: u32 = 50_000_000;
/// Largest number of ranks times syncs, because each decision is kept with figures of all ranks.
const DECIDED_MOST: f64 = 1e8;
/// Largest time that messages may take in virtual time, s. Times are ns in 64 bits.
const MESSAGES_MOST_S: f64 = 1e9;
/// Approximate memory of a simulation, in bytes per chunk and per rank.
const CHUNK_BYTES: u64 = 120;
const RANK_BYTES: u64 = 2_500;

/// An array with a name, or one described.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Options {
    /// Named scenarios, or `all`; --list lists them. Without one, the array described below.
    #[arg(long, value_name = "NAME[,NAME..]|all", value_delimiter = ',', conflicts_with_all = ["array", "cluster"])]
    scenario: Vec<String>,
    /// List scenarios and strategies.
    #[arg(long, exclusive = true)]
    list: bool,
    /// Strategies for arrays with their parameters, as in none,refine,tolerance=0.1; if not given all but `program`,
    /// `rotate` and `random`, which balance nothing here. Strategies get no messages between chunks, so `comm` differs from
    /// others by chance only. Rank 0 decides, also under `hierarchical`.
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
    #[command(flatten)]
    overheads: OverheadOptions,
}

/// An array.
#[derive(clap::Args)]
#[group(id = "array", multiple = true)]
#[command(next_help_heading = "Array")]
struct ArrayOptions {
    /// Chunks; if not given 16 for each worker.
    #[arg(long, value_parser = presentation::count_parser(1..=CHUNKS_MOST))]
    chunks: Option<u32>,
    /// Iterations of each chunk; if not given 500.
    #[arg(long, value_name = "COUNT", value_parser = values::count)]
    iterations: Option<u64>,
    /// When chunks are balanced: at syncs, with this number of iterations between two (0 for no sync); or in windows,
    /// when it is likely to pay (auto), or of a length such as 50ms. Several are compared. The default of a run is auto.
    #[arg(
        long,
        value_name = "ITERATIONS|auto|TIME[,..]",
        default_value = "20",
        value_delimiter = ',',
        value_parser = str::parse::<Period>
    )]
    period: Vec<Period>,
    #[arg(
        long,
        value_name = "SHAPE|recorded:STEM[:SCALE]",
        default_value = "constant",
        value_parser = chunk_cost::parse,
        help = chunk_cost::help()
    )]
    cost: ChunkCost,
    /// Chunks that must finish an iteration before a chunk begins its next: its neighbours in a grid that wraps around at its
    /// edges, or none.
    #[arg(long, default_value = "grid", value_parser = ["grid", "none"])]
    exchange: String,
    /// Bytes of a chunk that travel when it moves; if not given the mean recorded size, and 524288 without recorded sizes.
    #[arg(long, value_name = "BYTES", value_parser = presentation::count_parser(0..=1_000_000_000_000u64))]
    state_bytes: Option<u64>,
    /// Bytes a second at which a rank sends chunks that move; the balancer expects 4e9 until it has seen moves.
    #[arg(long, value_name = "BYTES/S", default_value = "4e9", value_parser = values::speed)]
    bandwidth: f64,
}

const AFTER_HELP: &str = "\
Excess is how much longer a run takes than with the best placement, if chunks could be divided and never waited for each
other. Saved is the part of the time of `none` that a strategy saves; at most, the part that the ideal saves.
Exit code: 0 done, 1 a run is incomplete or an output is lost, as on a full disk, 2 bad options or a file that
cannot be written at all.

Eight ranks of one worker, a neighbour beside the last for ten seconds
  caribou simulate array --ranks 8 --workers 1 --neighbour 7:2-12 --compare none,refine
A hot spot that moves, a sync every five iterations
  caribou simulate array --ranks 64 --workers 1 --cost hot-spot:5 --period 5
The loads of a run that vt recorded, under three strategies and seven periods
  caribou simulate array --cost recorded:lbaf/data --compare none,refine,greedy --period 1,2,5,10,20,50,auto
A run of Caribou recorded with CARIBOU_TRACE=traces and CARIBOU_LB_REPORTS=on, on 8 ranks
  caribou simulate array --cost recorded:traces/run-1 --ranks 8 --period 1,5,auto --compare none,refine
How long each iteration takes in figure 3 of the refinement paper
  caribou simulate array --scenario R3 --compare none,refine-paper,refine --plot r3.svg";

/// Runs the requested simulations and writes their results.
pub(super) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    if options.list {
        return write_list(out);
    }
    options.files.check()?;
    let strategies = Policy::list(&ARRAYS, Some(&options.compare))?;
    if let Some(line) = note_without_messages(&strategies) {
        input::note(&line);
    }
    let comparisons = write_tables(&options.scenarios()?, &strategies, about, out)?;
    let periods = &options.described.period;
    if options.scenario.is_empty() && periods.len() > 1 {
        periods::write(periods, &comparisons, out)?;
    }
    options.files.write(&comparisons)?;
    all_complete(&comparisons)
}

impl Options {
    /// The named scenarios, or the described one, on the requested network.
    fn scenarios(&self) -> Result<Vec<ArrayScenario>, Error> {
        let mut scenarios = match &self.scenario[..] {
            [] => self.described.scenarios(&self.cluster, self.wires.seed)?,
            [all] if all == "all" => ARRAY_SCENARIOS.iter().map(|entry| entry.build()).collect(),
            names => names.iter().map(|name| named(name)).collect::<Result<_, _>>()?,
        };
        let available = caribou::machine::available_memory();
        let machine = self.overheads.machine_costs()?;
        for scenario in &mut scenarios {
            self.wires.apply(&mut scenario.network);
            self.overheads.apply(scenario, self.wires.seed);
            if let Some(costs) = &machine {
                costs.apply(scenario);
            }
            let taken_s = self.overheads.messages_s(scenario) * scenario.array.iterations as f64;
            if taken_s > MESSAGES_MOST_S {
                return Err(Error::Usage(format!(
                    "messages alone may take {taken_s:.0e} s, expected {MESSAGES_MOST_S:e} s at most: fewer --iterations, \
                     or cheaper messages"
                )));
            }
            let (chunks, ranks) = (scenario.array.chunks, scenario.array.workers.len());
            let needed = u64::from(chunks) * CHUNK_BYTES + ranks as u64 * RANK_BYTES;
            room::check(&format!("{chunks} chunks on {ranks} ranks: the simulation"), needed, available)?;
        }
        Ok(scenarios)
    }
}

impl ArrayOptions {
    /// The described array on this cluster, once per period.
    fn scenarios(&self, cluster: &cluster::Options, seed: u64) -> Result<Vec<ArrayScenario>, Error> {
        let scenario = match &self.cost {
            ChunkCost::Shaped(shape) => self.shaped(*shape, cluster, seed)?,
            ChunkCost::Recorded { stem, scale } => self.recorded(stem, *scale, cluster, seed)?,
        };
        cluster.check_ideal(scenario.ideal_s(), "--iterations", scenario.array.iterations)?;
        self.period.iter().map(|&period| self.at(period, &scenario)).collect()
    }

    /// The scenario with this period.
    fn at(&self, period: Period, scenario: &ArrayScenario) -> Result<ArrayScenario, Error> {
        let array = Array { period, ..scenario.array.clone() };
        let decided = array.syncs() as f64 * array.workers.len() as f64;
        if decided > DECIDED_MOST {
            let why = "figures of each rank are kept at each sync";
            return Err(Error::Usage(format!(
                "--period {period}: {why}, {decided:.0e}, expected {DECIDED_MOST:e} at most"
            )));
        }
        Ok(ArrayScenario { name: format!("period {period}"), array, ..scenario.clone() })
    }

    /// Chunks in blocks, with synthetic costs.
    fn shaped(&self, shape: Shape, cluster: &cluster::Options, seed: u64) -> Result<ArrayScenario, Error> {
        cluster.check_workers()?;
        let workers = cluster.workers();
        let each = CHUNKS_PER_WORKER * workers.iter().sum::<u32>();
        if self.chunks.is_none() && each > CHUNKS_MOST {
            return Err(Error::Usage(format!(
                "{each} chunks, {CHUNKS_PER_WORKER} for each worker, expected --chunks {CHUNKS_MOST} at most"
            )));
        }
        let chunks = self.chunks.unwrap_or(each);
        let array = self.array(chunks, self.iterations.unwrap_or(ITERATIONS), workers)?;
        let walked = f64::from(chunks) * array.iterations as f64;
        if matches!(shape, Shape::Walk(_)) && walked > WALKED_MOST {
            return Err(Error::Usage(format!(
                "--cost walk: {walked:.0e} costs to keep, of each chunk in each iteration, expected {WALKED_MOST:e} at most"
            )));
        }
        let costs = shape.costs(chunks, array.iterations, seed);
        Ok(ArrayScenario { costs, ..self.on(cluster, array, seed)? })
    }

    /// Chunks with recorded costs and placement.
    fn recorded(
        &self,
        stem: &str,
        scale: f64,
        cluster: &cluster::Options,
        seed: u64,
    ) -> Result<ArrayScenario, Error> {
        let loads = recorded::read("--cost recorded:", stem)?;
        recorded::note(stem, &loads, scale);
        let cluster = cluster.recorded(loads.ranks());
        let homes = loads.homes_on(cluster.ranks());
        let chunks = homes.len() as u32;
        if let Some(given) = self.chunks.filter(|&given| given != chunks) {
            return Err(Error::Usage(format!(
                "--chunks {given}: the recorded loads are of {chunks} chunks, expected {chunks} or no --chunks"
            )));
        }
        let array = self.array(chunks, self.iterations.unwrap_or(loads.phases()), cluster.workers())?;
        let array = Array { state_bytes: self.state_bytes_of(stem, &loads), ..array };
        let costs = ChunkCosts::Listed(loads.costs(scale));
        Ok(ArrayScenario { costs, homes: Some(homes.into()), ..self.on(&cluster, array, seed)? })
    }

    /// The size of a chunk. If no option gives it, a line on standard error tells it.
    fn state_bytes_of(&self, stem: &str, loads: &RecordedLoads) -> u64 {
        self.state_bytes.unwrap_or_else(|| {
            let (bytes, source) = match loads.mean_bytes() {
                Some(mean) => (mean, "the mean recorded size"),
                None => (STATE_BYTES, "because no size is recorded"),
            };
            input::note(&format!("{stem}: a chunk that moves has {}, {source}", format::bytes(bytes)));
            bytes
        })
    }

    /// The array, if its size can be simulated. Its period is the first requested one.
    fn array(&self, chunks: u32, iterations: u64, workers: Vec<u32>) -> Result<Array, Error> {
        let simulated = f64::from(chunks) * iterations as f64;
        if simulated > SIMULATED_MOST {
            return Err(Error::Usage(format!(
                "--iterations {iterations}: {simulated:.0e} iterations of chunks to simulate, expected {SIMULATED_MOST:e} at most"
            )));
        }
        if iterations > ITERATIONS_MOST {
            let why = format!("--iterations {iterations}: expected {ITERATIONS_MOST} at most");
            return Err(Error::Usage(why));
        }
        let period = self.period.first().copied().unwrap_or(Period::Auto);
        let state_bytes = self.state_bytes.unwrap_or(STATE_BYTES);
        Ok(Array { chunks, iterations, period, state_bytes, workers })
    }

    /// This array on the cluster, with equal costs of all chunks.
    fn on(&self, cluster: &cluster::Options, array: Array, seed: u64) -> Result<ArrayScenario, Error> {
        Ok(ArrayScenario {
            exchange: self.exchange == "grid",
            move_cost: MoveCost { bytes_per_second: self.bandwidth, ..MOVE_COST },
            ..ArrayScenario::new(DESCRIBED, array, cluster.vcpus(seed)?)
        })
    }
}

/// A line about the strategies that use messages between chunks; none if no strategy does.
fn note_without_messages(strategies: &[Policy<dyn Strategy>]) -> Option<String> {
    let uses = |policy: &&Policy<dyn Strategy>| policy.strategy.terms().edges == EdgeUse::Always;
    let names: Vec<&str> = strategies.iter().filter(uses).map(|policy| policy.spec.as_str()).collect();
    let differ = "differ from those of other strategies by chance only";
    (!names.is_empty()).then(|| {
        let names = names.join("; ");
        format!("strategies get no messages between chunks here, so results of {names} {differ}")
    })
}

/// Description of a named scenario, to precede its size.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_uses_messages_is_told_to_get_none() {
        let note = |list| note_without_messages(&Policy::list(&ARRAYS, Some(list)).unwrap());
        assert_eq!(note(COMPARED), None);
        let line = note("none,comm,moves=5,refine,comm").expect("`comm` uses messages");
        assert!(
            line.contains(" no messages between chunks here, so results of comm,moves=5; comm differ "),
            "{line}"
        );
    }
}
