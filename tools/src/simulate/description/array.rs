//! Builds the scenario of a described array of chunks.

use std::sync::Arc;

use lb_strategies::balancer::MOVE_COST;
use lb_strategies::{Choice, MoveCost, Period};
use presentation::format;
use virtual_cluster::{
    Array, ArrayScenario, Bandwidths, ChunkCosts, DecisionCost, Network, Noise, Overheads, RecordedLoads,
};

use super::cluster::{Cluster, Defaults};
use super::program::{Generator, Pattern};
use super::{Decision, Description, Source, wrong};
use crate::simulate::chunk_cost::{self, ChunkCost, Shape};
use crate::simulate::overheads::clock;
use crate::{Error, MachineCosts, input, recorded, room};

/// Default number of chunks per worker.
const CHUNKS_PER_WORKER: u32 = 16;
/// Default number of iterations.
const ITERATIONS: u64 = 500;
/// Default size of a chunk in bytes.
const STATE_BYTES: u64 = 524_288;
/// Default period.
const PERIOD: Period = Period::Steps(20);
/// Default number of inputs of a task in the pattern `nearest`, as in Task Bench.
const RADIX: u32 = 3;
/// Largest number of chunks, because all are in memory.
pub(in super::super) const CHUNKS_MOST: u32 = 50_000_000;
/// Largest number of chunks times iterations. One strategy simulates as many in minutes.
const SIMULATED_MOST: f64 = 1e9;
/// Largest number of iterations in a run, because the end of each is stored.
const ITERATIONS_MOST: u64 = 10_000_000;
/// Largest number of costs of random walks, because all are stored.
const WALKED_MOST: f64 = 5e7;
/// Largest number of pairs of chunks that exchange messages, because all are in memory.
const PAIRS_MOST: f64 = 5e7;
/// Largest number of ranks times syncs, because each decision is kept with figures of all ranks.
const DECIDED_MOST: f64 = 1e8;
/// Largest number of iterations and messages of all chunks: those of `SIMULATED_MOST` with eight neighbours each.
const HANDLED_MOST: f64 = 9.0 * SIMULATED_MOST;
/// Largest time that messages and costs of the runtime may take in virtual time, s. Times are ns in 64 bits.
const TAKEN_MOST_S: f64 = 1e9;
/// Approximate memory of a simulation, in bytes per chunk and per rank.
const CHUNK_BYTES: u64 = 120;
const RANK_BYTES: u64 = 2_500;

/// The array of a description.
pub(in super::super) fn scenario(
    description: &Description,
    source: &dyn Source,
) -> Result<ArrayScenario, Error> {
    let generator = description.program.generator(source)?;
    let scenario = match cost(description, source, generator)? {
        ChunkCost::Shaped(shape) => shaped(description, source, shape)?,
        ChunkCost::Recorded { stem, scale } => recorded(description, source, &stem, scale)?,
    };
    let mut scenario = at(&scenario, period(description), source)?;
    overlay(description, source, &mut scenario)?;
    Ok(ArrayScenario { name: description.name(), ..scenario })
}

/// Gives any array the network and the costs of a description.
pub(in super::super) fn overlay(
    description: &Description,
    source: &dyn Source,
    scenario: &mut ArrayScenario,
) -> Result<(), Error> {
    set_network(description, &mut scenario.network);
    set_costs(description, source, scenario)?;
    check_count(scenario, source)?;
    check_times(scenario, source)?;
    let (chunks, ranks) = (scenario.array.chunks, scenario.array.workers.len());
    let needed = u64::from(chunks) * CHUNK_BYTES + ranks as u64 * RANK_BYTES;
    room::check(
        &format!("{chunks} chunks on {ranks} ranks: the simulation"),
        needed,
        caribou::machine::available_memory(),
    )
}

/// The period of a description.
pub(in super::super) fn period(description: &Description) -> Period {
    description.balance.period.unwrap_or(PERIOD)
}

/// The scenario with this period.
pub(in super::super) fn at(
    scenario: &ArrayScenario,
    period: Period,
    source: &dyn Source,
) -> Result<ArrayScenario, Error> {
    let array = Array { period, ..scenario.array.clone() };
    let decided = array.syncs() as f64 * array.workers.len() as f64;
    if decided > DECIDED_MOST {
        let what = format!(
            "figures of each rank are kept at each sync, {decided:.0e}, expected {DECIDED_MOST:e} at most"
        );
        return Err(wrong(source, "balance.period", &period, &what));
    }
    let scenario = ArrayScenario { name: format!("period {period}"), array, ..scenario.clone() };
    check_times(&scenario, source)?;
    Ok(scenario)
}

/// Sets what the description says about the network.
pub(in super::super) fn set_network(description: &Description, network: &mut Network) {
    network.rtt = description.network.rtt.unwrap_or(network.rtt);
    (network.jitter, network.seed) = (description.network.jitter.unwrap_or(0), description.seed());
}

/// Sets bandwidths, costs and errors.
fn set_costs(
    description: &Description,
    source: &dyn Source,
    scenario: &mut ArrayScenario,
) -> Result<(), Error> {
    let Description { network, costs, .. } = description;
    if let Some(rate) = costs.move_bandwidth {
        scenario.move_cost = MoveCost { bytes_per_second: rate, ..scenario.move_cost };
    }
    let per_link = description.hosts.first().and_then(|group| group.ranks).unwrap_or(1);
    scenario.slice = costs.time_slice.unwrap_or(0);
    scenario.overheads = Overheads {
        bandwidths: Bandwidths {
            between_hosts: network.bandwidth_between_hosts.unwrap_or(f64::INFINITY),
            within_host: network.bandwidth_within_host.unwrap_or(f64::INFINITY),
            ranks_per_host: description.ranks_per_link.unwrap_or(per_link),
            message_bytes: network.message_bytes.unwrap_or(0),
        },
        message_cpu: costs.message_cpu.unwrap_or(0),
        decision: match costs.decision {
            Some(Decision::Measured) => DecisionCost::Measured(clock()),
            Some(Decision::PerChunk(ns)) => DecisionCost::PerChunk(ns),
            None => DecisionCost::default(),
        },
        noise: Noise { relative_sd: costs.noise.unwrap_or(0.0), seed: description.seed() },
        ..Overheads::default()
    };
    if let Some(file) = &costs.calibration {
        let costs = MachineCosts::read(&description.folder.join(file));
        let place = source.place("costs.calibration");
        costs.map_err(|error| Error::File(format!("{place}{error}")))?.apply(scenario);
    }
    Ok(())
}

/// Number of messages that a chunk sends after an iteration at most: of the first, the middle and the last chunk, because a
/// pattern is the same for all but those at its ends.
fn sent(scenario: &ArrayScenario) -> f64 {
    let (receivers, chunks) = (scenario.receivers(), scenario.array.chunks);
    let some = [0, chunks / 2, chunks.saturating_sub(1)].map(|chunk| receivers(chunk).len());
    some.into_iter().max().unwrap_or(0) as f64
}

/// Refuses arrays of which the iterations, or the messages, are too many to simulate.
fn check_count(scenario: &ArrayScenario, source: &dyn Source) -> Result<(), Error> {
    let Array { chunks, iterations, .. } = scenario.array;
    let handled = f64::from(chunks) * iterations as f64 * (1.0 + sent(scenario));
    if handled <= HANDLED_MOST {
        return Ok(());
    }
    let what = format!(
        "{handled:.0e} messages and iterations of chunks to simulate, expected {HANDLED_MOST:e} at most"
    );
    Err(wrong(source, "program.iterations", &iterations, &what))
}

/// Refuses messages, and costs of the runtime, that take too long. Both are estimated from above: one message follows
/// another, the ranks pay one after another, and all chunks of a rank move at each sync.
fn check_times(scenario: &ArrayScenario, source: &dyn Source) -> Result<(), Error> {
    let messages_s = messages_s(scenario);
    let taken_s = messages_s + runtime_s(scenario);
    if taken_s <= TAKEN_MOST_S {
        return Ok(());
    }
    let (what, taken_s) = match messages_s > TAKEN_MOST_S {
        true => ("messages alone", messages_s),
        false => ("messages and the costs of the runtime", taken_s),
    };
    let what = format!(
        "{what} may take {taken_s:.2e} s, expected {TAKEN_MOST_S:e} s at most: fewer iterations, or lower costs"
    );
    Err(wrong(source, "program.iterations", &scenario.array.iterations, &what))
}

/// Number of chunks of a rank.
fn chunks_of_rank(array: &Array) -> f64 {
    (f64::from(array.chunks) / array.workers.len() as f64).ceil()
}

/// The time of all messages of a rank, s. A chunk has eight neighbours at least.
fn messages_s(scenario: &ArrayScenario) -> f64 {
    let Overheads { bandwidths, message_cpu, cpu, .. } = &scenario.overheads;
    let bytes = bandwidths.message_bytes as f64;
    let on_link_s = bytes / bandwidths.between_hosts.min(bandwidths.within_host);
    let cpu_ns = 2.0 * (*message_cpu as f64 + cpu.message_byte * bytes) + cpu.local_message;
    let each_s = on_link_s * f64::from(bandwidths.ranks_per_host) + cpu_ns / 1e9;
    let messages = sent(scenario).max(8.0) * chunks_of_rank(&scenario.array);
    (messages * each_s + scenario.network.rtt as f64 / 1e9) * scenario.array.iterations as f64
}

/// The time of all other costs of the runtime, and of chunks on their way, s. Windows are assumed to be as many as iterations.
fn runtime_s(scenario: &ArrayScenario) -> f64 {
    let (array, Overheads { cpu, decision, wake, .. }) = (&scenario.array, &scenario.overheads);
    let (all, own) = (f64::from(array.chunks), chunks_of_rank(array));
    let (ranks, iterations) = (array.workers.len() as f64, array.iterations as f64);
    let rounds = if matches!(array.period, Period::Steps(_)) { array.syncs() as f64 } else { iterations };
    let decision_ns = match decision {
        DecisionCost::PerChunk(ns) => *ns as f64 * all,
        DecisionCost::Linear { fixed, per_chunk, per_rank } => fixed + per_chunk * all + per_rank * ranks,
        DecisionCost::Measured(_) => 0.0,
    };
    let bytes = array.state_bytes;
    let move_ns = cpu.pack(bytes) + cpu.unpack(bytes) + cpu.reload_byte * bytes as f64 + cpu.packet;
    let rates = &scenario.overheads.bandwidths;
    // A rate of 0 means that the balancer expects no time.
    let rate = Some(scenario.move_cost.bytes_per_second).filter(|&rate| rate > 0.0).unwrap_or(f64::INFINITY);
    let slowest = rate.min(rates.between_hosts).min(rates.within_host);
    let travel_ns = bytes as f64 / slowest * f64::from(rates.ranks_per_host) * 1e9;
    let reports_ns = cpu.report + (cpu.report_chunk + cpu.sync_chunk) * own + cpu.collect_chunk * all;
    let round_ns = reports_ns + decision_ns + (move_ns + travel_ns) * own + cpu.packet * ranks;
    ((cpu.iteration + *wake as f64) * own * iterations + round_ns * rounds) / 1e9
}

/// The costs of the chunks.
fn cost(description: &Description, source: &dyn Source, generator: Generator) -> Result<ChunkCost, Error> {
    let program = &description.program;
    match generator {
        Generator::Pic => Ok(ChunkCost::Shaped(Shape::HotSpot(program.spot))),
        Generator::Recorded => {
            let Some(loads) = program.loads.as_ref().filter(|loads| !loads.is_empty()) else {
                let found = if program.loads.is_none() { "it is missing" } else { "an empty name" };
                let files = "a trace, or the files STEM.RANK.json or STEM.RANK.vom without RANK";
                return Err(wrong(source, "program.loads", &"", &format!("{found}, expected {files}")));
            };
            let stem = description.folder.join(loads).display().to_string();
            Ok(ChunkCost::Recorded { stem, scale: program.scale.unwrap_or(1.0) })
        }
        _ => {
            let text = program.cost.as_deref().unwrap_or("constant");
            match chunk_cost::parse(text) {
                Ok(ChunkCost::Recorded { .. }) => {
                    let what = "expected the generator \"recorded\" with `loads`";
                    Err(wrong(source, "program.cost", &format!("{text:?}"), what))
                }
                Ok(cost) => Ok(cost),
                Err(what) => Err(wrong(source, "program.cost", &format!("{text:?}"), &what)),
            }
        }
    }
}

/// Chunks in blocks, with synthetic costs.
fn shaped(description: &Description, source: &dyn Source, shape: Shape) -> Result<ArrayScenario, Error> {
    let program = &description.program;
    let per_second = program.per_second(source)?;
    let cluster = Cluster::new(description, source, Defaults::default(), per_second)?;
    let workers = cluster.workers();
    let each = workers.iter().sum::<u32>().saturating_mul(CHUNKS_PER_WORKER);
    if program.chunks.is_none() && each > CHUNKS_MOST {
        let [_, vcpu] = source.words();
        let what =
            format!("{each} chunks, {CHUNKS_PER_WORKER} for each {vcpu}, expected {CHUNKS_MOST} at most");
        return Err(wrong(source, "program.chunks", &"", &what));
    }
    let chunks = program.chunks.unwrap_or(each);
    // A unit of the simulation is the mean cost of a chunk.
    let cluster = cluster.faster(program.work.map_or(1.0, |work| f64::from(chunks) / work));
    let array = array(description, source, chunks, program.iterations.unwrap_or(ITERATIONS), workers)?;
    let walked = f64::from(chunks) * array.iterations as f64;
    if matches!(shape, Shape::Walk(_)) && walked > WALKED_MOST {
        let what = format!(
            "{walked:.0e} costs to keep, of each chunk in each iteration, expected {WALKED_MOST:e} at most"
        );
        return Err(wrong(source, "program.cost", &"walk", &what));
    }
    let costs = shape.costs(chunks, array.iterations, description.seed());
    let iterations = array.iterations;
    let scenario = ArrayScenario { costs, ..on(&cluster, array)? };
    let scenario = exchanging(description, source, scenario)?;
    cluster.check_work(walked, "program.iterations", iterations)?;
    cluster.check_ideal(scenario.ideal_s(), "program.iterations", scenario.array.iterations)?;
    Ok(scenario)
}

/// Chunks with recorded costs and placement.
fn recorded(
    description: &Description,
    source: &dyn Source,
    stem: &str,
    scale: f64,
) -> Result<ArrayScenario, Error> {
    let program = &description.program;
    let loads = recorded::read("", stem).map_err(|error| {
        let place = source.place("program.loads");
        Error::File(format!("{place}{error}"))
    })?;
    recorded::note(stem, &loads, scale);
    let cluster = Cluster::new(description, source, Defaults { hosts: loads.ranks(), speed: 1.0 }, None)?;
    let homes = loads.homes_on(cluster.ranks());
    let chunks = homes.len() as u32;
    if let Some(given) = program.chunks.filter(|&given| given != chunks) {
        let what = format!("the recorded loads are of {chunks} chunks, expected {chunks} or none");
        return Err(wrong(source, "program.chunks", &given, &what));
    }
    let iterations = program.iterations.unwrap_or(loads.phases());
    let workers = cluster.workers();
    // As if all workers had as much as the busiest rank.
    let work = scale
        * loads.mean_phase_s()
        * iterations as f64
        * workers.iter().map(|&one| f64::from(one)).sum::<f64>();
    let array = array(description, source, chunks, iterations, workers)?;
    let array = Array { state_bytes: state_bytes_of(program.state_bytes, stem, &loads), ..array };
    let costs = ChunkCosts::Listed(loads.costs(scale));
    let scenario = ArrayScenario { costs, homes: Some(homes.into()), ..on(&cluster, array)? };
    let scenario = exchanging(description, source, scenario)?;
    cluster.check_work(work, "program.iterations", iterations)?;
    cluster.check_ideal(scenario.ideal_s(), "program.iterations", scenario.array.iterations)?;
    Ok(scenario)
}

/// The size of a chunk. If it is not given, a line on standard error tells it.
fn state_bytes_of(given: Option<u64>, stem: &str, loads: &RecordedLoads) -> u64 {
    given.unwrap_or_else(|| {
        let (bytes, source) = match loads.mean_bytes() {
            Some(mean) => (mean, "the mean recorded size"),
            None => (STATE_BYTES, "because no size is recorded"),
        };
        input::note(&format!("{stem}: a chunk that moves has {}, {source}", format::bytes(bytes)));
        bytes
    })
}

/// The array, if its size can be simulated.
fn array(
    description: &Description,
    source: &dyn Source,
    chunks: u32,
    iterations: u64,
    workers: Vec<u32>,
) -> Result<Array, Error> {
    let simulated = f64::from(chunks) * iterations as f64;
    if simulated > SIMULATED_MOST {
        let what =
            format!("{simulated:.0e} iterations of chunks to simulate, expected {SIMULATED_MOST:e} at most");
        return Err(wrong(source, "program.iterations", &iterations, &what));
    }
    if iterations == 0 {
        return Err(wrong(source, "program.iterations", &iterations, "expected 1 at least"));
    }
    if iterations > ITERATIONS_MOST {
        let what = format!("expected {ITERATIONS_MOST} at most");
        return Err(wrong(source, "program.iterations", &iterations, &what));
    }
    let state_bytes = description.program.state_bytes.unwrap_or(STATE_BYTES);
    Ok(Array { chunks, iterations, period: period(description), state_bytes, workers })
}

/// An array on the cluster, with equal costs of all chunks.
fn on(cluster: &Cluster<'_>, array: Array) -> Result<ArrayScenario, Error> {
    let vcpus_per_host = cluster.shared_vcpus();
    Ok(ArrayScenario {
        move_cost: MOVE_COST,
        vcpus_per_host,
        ..ArrayScenario::new("", array, cluster.vcpus()?)
    })
}

/// The same scenario, in which the chunks exchange messages as the generator says.
fn exchanging(
    description: &Description,
    source: &dyn Source,
    scenario: ArrayScenario,
) -> Result<ArrayScenario, Error> {
    let program = &description.program;
    if program.generator == Some(Generator::TaskBench) {
        let (pattern, radix) =
            (program.pattern.unwrap_or(Pattern::Stencil1d), program.radix.unwrap_or(RADIX));
        if program.radix.is_some() && pattern != Pattern::Nearest {
            let what = "it is of the pattern \"nearest\", expected no radix";
            return Err(wrong(source, "program.radix", &radix, what));
        }
        let chunks = scenario.array.chunks;
        let pairs = match pattern {
            Pattern::AllToAll => f64::from(chunks) * f64::from(chunks),
            Pattern::Nearest => f64::from(chunks) * f64::from(radix),
            _ => f64::from(chunks) * 2.0,
        };
        if pairs > PAIRS_MOST {
            let what = format!(
                "{pairs:.0e} pairs of chunks that exchange messages, expected {PAIRS_MOST:e} at most"
            );
            return Err(wrong(source, "program.chunks", &chunks, &what));
        }
        let sends_to = move |chunk| pattern.sends_to(chunks, radix, chunk);
        return Ok(ArrayScenario { sends_to: Some(Arc::new(sends_to)), ..scenario });
    }
    let exchange = match program.exchange.as_deref() {
        None | Some("grid") => true,
        Some("none") => false,
        Some(other) => {
            let what = format!("unknown value {}", Choice::new(other, ["grid", "none"]));
            return Err(wrong(source, "program.exchange", &other, &what));
        }
    };
    Ok(ArrayScenario { exchange, ..scenario })
}
