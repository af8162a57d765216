//! Reads what a replay needs out of a trace: the work of chunks by step, their messages, and what ranks got of their vCPUs.

use std::collections::BTreeSet;

use caribou::trace::ChunkId;
use lb_strategies::balancer::MOVE_COST;
use lb_strategies::{MoveCost, Period, Rank};
use trace_reader::{RankTrace, Trace};
use virtual_cluster::Home;

use super::command_line;
use super::steps::{RankTimes, Steps, Totals};
use crate::Error;
use crate::calibrate::MachineCosts;
use crate::trace::analysis::events::{Scope, by_worker, in_order};
use crate::trace::open::warn;
use crate::trace::page::plural;

/// Number of costs, of each chunk on each step, that are replayed. More would take minutes.
const CELLS_MAX: usize = 500_000;
/// Speeds that differ by less are equal but for chance.
const SPEED_NOISE: f64 = 0.05;
/// The part of a vCPU that a rank has at least in a replay.
const SHARE_MIN: f64 = 0.02;
/// The speed that a rank has at least in a replay, relative to the fastest.
const SPEED_MIN: f64 = 0.01;
/// The longest run that is replayed, and the longest time of its work on its vCPUs, s. Virtual time is ns in 64 bits.
const TIME_MAX_S: f64 = 1e8;
/// The CPU time of a message if the trace does not show it, ns.
const MESSAGE_NS: u64 = 300;
/// The time of a message to another rank if the trace has none, ns.
const LATENCY_NS: u64 = 2_000;
/// The time of a decision for each chunk if none was made, ns.
const DECISION_NS: u64 = 50;

/// A recorded run, as the replay sees it.
#[derive(Debug)]
pub(super) struct Recording {
    /// By step and chunk, CPU seconds on the fastest vCPU.
    pub(super) work: Vec<Vec<f32>>,
    pub(super) homes: Vec<Home>,
    /// Pairs of chunks that exchange messages on most steps, sender first, ascending.
    pub(super) edges: Vec<(u32, u32)>,
    pub(super) message_bytes: u64,
    pub(super) state_bytes: u64,
    pub(super) vcpus: Vec<Vcpu>,
    /// Host of each rank, as a number.
    pub(super) hosts: Vec<u32>,
    pub(super) workers: Vec<u32>,
    pub(super) latency_ns: u64,
    /// For how long others have a vCPU before the worker has it again, ns; none if they hardly ever do.
    pub(super) turn_ns: Option<u64>,
    pub(super) message_ns: u64,
    /// CPU time of the runtime beside that: receiving a message, and deferring it, in the mean of all messages.
    pub(super) keep_ns: f64,
    pub(super) decision_ns: u64,
    pub(super) move_cost: MoveCost,
    /// Time from the first handler to the end of the last replayed step, s.
    pub(super) took_s: f64,
    /// True if later steps are left out.
    pub(super) is_cut: bool,
    /// The strategy of the run, as it was given.
    pub(super) lb: String,
    pub(super) period: Period,
    /// Number of steps in an iteration of the program, after which it may come to a sync.
    pub(super) steps_per_iteration: u64,
    pub(super) ranks: Vec<RankTimes>,
    /// Costs of the runtime that were measured on this machine, if there is a file of them.
    pub(super) costs: Option<MachineCosts>,
    /// The command line.
    pub(super) arguments: Vec<String>,
    /// Standard deviation of measured speeds, as a part of their mean.
    pub(super) noise: f64,
    /// Reasons for which a replay is less certain.
    pub(super) doubts: Vec<String>,
}

/// What a rank got of its vCPUs over time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Vcpu {
    /// Speed relative to the fastest rank.
    pub(super) speed: f64,
    /// From which time on, s, it got which part of each vCPU.
    pub(super) shares: Vec<(f64, f64)>,
    /// The part of its time in which it wrote the trace.
    pub(super) flush: f64,
}

impl Vcpu {
    /// The mean share until `end_s`.
    pub(super) fn mean_share(&self, end_s: f64) -> f64 {
        let ends = self.shares.iter().skip(1).map(|&(at, _)| at).chain([end_s]);
        let length = |from: f64, to: f64| (to.min(end_s) - from.min(end_s)).max(0.0);
        let parts = self.shares.iter().zip(ends).map(|(&(from, share), to)| share * length(from, to));
        if end_s > 0.0 { parts.sum::<f64>() / end_s } else { 1.0 }
    }
}

/// Reads the trace.
///
/// # Errors
/// One line about what to record instead, if the trace cannot be replayed.
pub(super) fn read(trace: &Trace) -> Result<Recording, Error> {
    read_at_most(trace, CELLS_MAX)
}

/// Reads the trace, and keeps this number of costs.
pub(super) fn read_at_most(trace: &Trace, cells_max: usize) -> Result<Recording, Error> {
    super::usable::check(trace)?;
    let refuse = |why: String| Err(Error::Usage(format!("{}: {why}", trace.path.display())));
    let mut totals = Totals::default();
    warn(&by_worker(&Scope::all(trace), &mut [&mut totals]));
    let chunks = totals.chunks();
    if chunks.is_empty() {
        return refuse("no chunk computed anything".into());
    }
    if chunks.len() < trace.ranks.len() {
        return refuse(format!(
            "{} on {}, expected a chunk for each rank at least",
            plural(chunks.len(), "chunk"),
            plural(trace.ranks.len(), "rank")
        ));
    }
    let speeds = speeds(trace);
    let mut steps = Steps::new(&chunks, speeds.clone(), cells_max);
    // The first reading told the problems.
    in_order(Scope::all(trace), &mut [&mut steps]);
    let recording = Recording::of(trace, &chunks, &totals, steps, &speeds);
    if recording.took_s <= 0.0 || recording.work_s() <= 0.0 {
        return refuse("chunks computed for no time at all".into());
    }
    let longest_s = recording.took_s.max(recording.work_s() / recording.capacity());
    // A time that is not a number is refused too.
    if longest_s.is_nan() || longest_s > TIME_MAX_S {
        return refuse(format!(
            "a replay takes {longest_s:.0e} s or more, expected {TIME_MAX_S:e} s at most"
        ));
    }
    Ok(recording)
}

impl Recording {
    fn of(trace: &Trace, chunks: &[ChunkId], totals: &Totals, mut steps: Steps, speeds: &[f64]) -> Recording {
        let mut doubts = super::usable::doubts(trace, &steps, totals.part_of(chunks));
        let end_ns = steps.ends_ns.iter().copied().max().unwrap_or(0);
        let took_ns = end_ns.saturating_sub(steps.begin_ns);
        let moved = steps.moved();
        // The command line and the syncs are of the whole run, also if only its first steps are kept.
        let per_iteration = steps_per_iteration(&trace.run.arguments, steps.all_steps);
        let period = period(trace, steps.all_steps as u64 / per_iteration);
        if period.is_none() && trace.run.lb != "none" && !trace.run.lb.is_empty() {
            doubts.push(
                "the trace has no period, and neither the command line nor the syncs tell it, so auto is assumed"
                    .into(),
            );
        }
        let pinned = pinned(trace);
        let homes = chunks.iter().zip(&steps.homes).map(|(chunk, home)| Home {
            rank: Rank(home.unwrap_or(0).min(speeds.len() as u32 - 1)),
            migratable: !pinned.contains(chunk),
        });
        let hosts = &trace.run.hosts;
        let host = |rank: usize| {
            hosts.get(rank).and_then(|host| hosts.iter().position(|other| other == host)).unwrap_or(0) as u32
        };
        Recording {
            homes: homes.collect(),
            edges: edges(&steps),
            message_bytes: mean_bytes(&steps),
            state_bytes: moved.map(|(bytes, _)| bytes).or_else(|| reported_bytes(trace)).unwrap_or(65_536),
            vcpus: vcpus(trace, speeds, &steps, took_ns),
            hosts: (0..speeds.len()).map(host).collect(),
            workers: workers(trace),
            turn_ns: steps.turn_ns(),
            latency_ns: steps.latency_ns().unwrap_or(LATENCY_NS),
            message_ns: steps.message_ns().unwrap_or(MESSAGE_NS),
            keep_ns: steps.keep_ns(),
            decision_ns: decision_ns(trace).unwrap_or(DECISION_NS),
            move_cost: moved.map_or(MOVE_COST, |(_, rate)| MoveCost { bytes_per_second: rate, ..MOVE_COST }),
            took_s: took_ns as f64 / 1e9,
            is_cut: steps.is_cut,
            lb: if trace.run.lb.is_empty() { "none".into() } else { trace.run.lb.clone() },
            period: period.unwrap_or(Period::Auto),
            steps_per_iteration: per_iteration,
            ranks: steps.ranks.clone(),
            costs: None,
            arguments: trace.run.arguments.clone(),
            noise: noise(trace),
            work: work(&mut steps),
            doubts,
        }
    }

    /// Number of chunks.
    pub(super) fn chunks(&self) -> usize {
        self.homes.len()
    }

    /// Number of steps.
    pub(super) fn steps(&self) -> usize {
        self.work.len()
    }

    /// The standard deviation of the work of chunks over its mean.
    pub(super) fn unevenness(&self) -> f64 {
        let of_chunk = |chunk: usize| self.work.iter().map(|row| f64::from(row[chunk])).sum::<f64>();
        let works: Vec<f64> = (0..self.chunks()).map(of_chunk).collect();
        let mean = works.iter().sum::<f64>() / works.len().max(1) as f64;
        let square = works.iter().map(|work| (work - mean).powi(2)).sum::<f64>() / works.len().max(1) as f64;
        if mean > 0.0 { square.sqrt() / mean } else { 0.0 }
    }

    /// What all vCPUs did in a second, in seconds on the fastest vCPU: a mean over the run.
    fn capacity(&self) -> f64 {
        let of_rank = |(vcpu, &workers): (&Vcpu, &u32)| {
            f64::from(workers) * vcpu.speed * vcpu.mean_share(self.took_s).max(SHARE_MIN)
        };
        self.vcpus.iter().zip(&self.workers).map(of_rank).sum()
    }

    /// All work, in seconds on the fastest vCPU.
    pub(super) fn work_s(&self) -> f64 {
        self.work.iter().flatten().map(|&ns| f64::from(ns)).sum::<f64>() / 1e9
    }
}

/// The chunks that may not migrate, by the reports of ranks.
fn pinned(trace: &Trace) -> BTreeSet<ChunkId> {
    let reports = trace.syncs.iter().filter_map(|sync| sync.reported.as_deref());
    let loads = reports.flat_map(|report| &report.chunks).map(|chunk| &chunk.load);
    loads.filter(|load| !load.migratable).map(|load| load.id).collect()
}

/// The work of chunks, with what the runtime did for their messages: receiving, and deferring. It is spread by work.
fn work(steps: &mut Steps) -> Vec<Vec<f32>> {
    let sum = |of: fn(&RankTimes) -> u64| steps.ranks.iter().map(of).sum::<u64>() as f64;
    let factor = 1.0 + sum(|times| times.keep) / sum(|times| times.chunks).max(1.0);
    let mut work = std::mem::take(&mut steps.work);
    work.iter_mut().flatten().for_each(|ns| *ns *= factor.min(2.0) as f32);
    work
}

fn workers(trace: &Trace) -> Vec<u32> {
    trace.ranks.iter().map(|rank| rank.workers.max(1)).collect()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The speed of each rank relative to the fastest.
fn speeds(trace: &Trace) -> Vec<f64> {
    let of_rank = |rank: &RankTrace| median(rank.samples.iter().map(|sample| sample.speed).collect());
    let measured: Vec<f64> =
        trace.ranks.iter().map(|rank| of_rank(rank).filter(|&speed| speed > 0.0).unwrap_or(0.0)).collect();
    let fastest = measured.iter().copied().fold(0.0, f64::max);
    let relative = |speed: f64| if speed > 0.0 { speed / fastest } else { 1.0 };
    let rounded = |speed: f64| if speed > 1.0 - SPEED_NOISE { 1.0 } else { speed };
    measured.into_iter().map(relative).map(rounded).map(|speed| speed.clamp(SPEED_MIN, 1.0)).collect()
}

/// The relative standard deviation of the measured speeds of a rank, in the median of the ranks.
fn noise(trace: &Trace) -> f64 {
    let of_rank = |rank: &RankTrace| {
        let speeds: Vec<f64> =
            rank.samples.iter().map(|sample| sample.speed).filter(|speed| *speed > 0.0).collect();
        let middle = median(speeds.clone())?;
        let off = median(speeds.iter().map(|speed| (speed / middle - 1.0).abs()).collect())?;
        Some(1.48 * off)
    };
    median(trace.ranks.iter().filter_map(of_rank).collect()).unwrap_or(0.0).min(0.1)
}

/// What each rank got of its vCPUs, by its samples.
fn vcpus(trace: &Trace, speeds: &[f64], steps: &Steps, took_ns: u64) -> Vec<Vcpu> {
    let of_rank = |(rank, &speed): (&RankTrace, &f64)| {
        let times = steps.ranks.get(rank.rank as usize).copied().unwrap_or_default();
        // Times of ranks are of the whole run.
        let all = (steps.whole_ns() as f64 * f64::from(rank.workers.max(1))).max(1.0);
        Vcpu {
            speed,
            shares: shares(rank, &times, steps.begin_ns, took_ns),
            flush: (times.flush as f64 / all).min(0.5),
        }
    };
    trace.ranks.iter().zip(speeds).map(of_rank).collect()
}

/// The share of a rank from sample to sample, until the end of the kept steps. Without samples, what its handlers got.
fn shares(rank: &RankTrace, times: &RankTimes, begin_ns: u64, took_ns: u64) -> Vec<(f64, f64)> {
    let mut from_s = 0.0;
    let mut shares = Vec::new();
    let took_s = took_ns as f64 / 1e9;
    for sample in &rank.samples {
        let at_s = sample.at_ns.saturating_sub(begin_ns) as f64 / 1e9;
        if at_s > from_s && from_s < took_s {
            shares.push((from_s, sample.share().clamp(SHARE_MIN, 1.0)));
            from_s = at_s;
        }
    }
    if shares.is_empty() {
        let wanted = times.chunks.saturating_add(times.lost).max(1) as f64;
        shares.push((0.0, (times.chunks as f64 / wanted).clamp(SHARE_MIN, 1.0)));
    }
    shares
}

/// Pairs that exchange a message on a good part of the steps.
fn edges(steps: &Steps) -> Vec<(u32, u32)> {
    let least = (steps.work.len() as u64 / 4).max(1);
    let often = steps.traffic.iter().filter(|(ends, traffic)| ends.0 != ends.1 && traffic.messages >= least);
    often.map(|(&ends, _)| ends).collect()
}

fn mean_bytes(steps: &Steps) -> u64 {
    let sum = |(messages, bytes): (u64, u64), traffic: &super::steps::Traffic| {
        (messages + traffic.messages, bytes.saturating_add(traffic.bytes))
    };
    let (messages, bytes) = steps.traffic.values().fold((0, 0), sum);
    bytes.checked_div(messages).unwrap_or(0)
}

/// The mean size of a chunk in the reports.
fn reported_bytes(trace: &Trace) -> Option<u64> {
    let report = trace.syncs.iter().rev().find_map(|sync| sync.reported.as_deref())?;
    let bytes: u64 = report.chunks.iter().map(|chunk| chunk.load.bytes).sum();
    bytes.checked_div(report.chunks.len() as u64).filter(|&mean| mean > 0)
}

/// The median time of a decision of a strategy that was asked, for each chunk.
fn decision_ns(trace: &Trace) -> Option<u64> {
    let asked = trace.syncs.iter().filter(|sync| sync.decide_ns > 0 && trace.run.lb != "none");
    let mut each: Vec<u64> = asked
        .filter_map(|sync| {
            let chunks: u64 = sync.chunks_per_rank.iter().copied().map(u64::from).sum();
            sync.decide_ns.checked_div(chunks)
        })
        .collect();
    super::steps::quantile(&mut each, 0.5)
}

/// Number of steps in an iteration, if the command line says how many iterations there are. Else a step is one. `steps` are
/// those of the whole run.
fn steps_per_iteration(arguments: &[String], steps: usize) -> u64 {
    let iterations =
        command_line::option_value(arguments, "--iterations").and_then(|value| value.parse::<f64>().ok());
    let each = iterations.map_or(1.0, |iterations| (steps as f64 / iterations.max(1.0)).round());
    each.clamp(1.0, steps.max(1) as f64) as u64
}

/// When the run was balanced. A trace has no period: the command line tells it, or the syncs do. Windows of any length are
/// taken for those of auto. None if nothing tells it.
fn period(trace: &Trace, iterations: u64) -> Option<Period> {
    if let Some(Ok(period)) = command_line::option_value(&trace.run.arguments, "--period").map(str::parse) {
        return Some(period);
    }
    let windows = trace.syncs.iter().filter(|sync| sync.window).count();
    match (trace.syncs.len() - windows) as u64 {
        0 if windows > 0 => Some(Period::Auto),
        syncs if syncs > 0 && windows == 0 => Some(Period::Steps((iterations / (syncs + 1)).max(1))),
        _ => None,
    }
}
