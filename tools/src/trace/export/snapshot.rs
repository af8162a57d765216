//! Writes a snapshot of one phase, so that `caribou balance` can apply other strategies to it.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use caribou::trace::ChunkId;
use lb_strategies::{ChunkLoad, Edge, LinkCosts, Memory, Rank, RankLoad, Snapshot};
use trace_reader::Trace;

use super::phases::{Phase, RunPhases, Strays, for_each, no_loads, say_estimated, say_partial};
use crate::trace::select::Selection;
use crate::{Error, output};

/// Writes the snapshot of a phase; without a number, of the last phase that has loads of all chunks.
pub(super) fn export(
    trace: &Trace,
    phase: Option<u64>,
    path: &Path,
    out: &mut dyn Write,
) -> Result<(), Error> {
    if trace.ranks.iter().zip(0..trace.run.ranks).any(|(rank, expected)| rank.rank != expected)
        || trace.ranks.len() != trace.run.ranks as usize
    {
        return Err(Error::Usage("a snapshot needs the files of all ranks, and some are missing".into()));
    }
    let window = Selection::default().window(trace);
    let mut known = RunPhases::new(trace, window);
    let left_out = known.leave_out_partial(trace);
    let last = known.phases.keys().last().copied().ok_or_else(|| no_loads(trace))?;
    let id = phase.unwrap_or(last);
    let mut strays = Strays::new(trace, window)?;
    let mut phases = Vec::<Phase>::new();
    for rank in &trace.ranks {
        let mut found = Phase::default();
        for_each(trace, rank, window, &mut strays, |phase| {
            if phase.id == id {
                found = phase;
            }
            Ok(())
        })?;
        phases.push(found);
    }
    let snapshot = snapshot(trace, id, &phases);
    if snapshot.chunks.is_empty() {
        return Err(Error::Usage(format!(
            "no loads of phase {id} are in the trace; the last phase is {last}"
        )));
    }
    let json = serde_json::to_vec(&snapshot).expect("a snapshot is numbers, and those are finite");
    output::write(path, json)?;
    let (chunks, ranks) = (snapshot.chunks.len(), snapshot.ranks.len());
    writeln!(out, "{}: phase {id}, {chunks} chunks on {ranks} ranks", path.display())?;
    if phase.is_none() {
        say_partial(left_out, out)?;
    }
    if phases.iter().any(|phase| phase.is_estimated) { say_estimated(trace, out) } else { Ok(()) }
}

fn snapshot(trace: &Trace, id: u64, phases: &[Phase]) -> Snapshot {
    let ranks: Vec<RankLoad> = (0..phases.len()).map(|rank| rank_load(trace, rank, id)).collect();
    let mut chunks = Vec::new();
    for (number, phase) in (0..).zip(phases) {
        let speed = ranks[number as usize].speed / workers(trace, number as usize) as f64;
        chunks.extend(phase.loads.iter().map(|load| ChunkLoad {
            id: load.chunk,
            rank: Rank(number),
            ticks: (load.load_ns as f64 * speed).round() as u64,
            bytes: load.bytes,
            migratable: true,
        }));
    }
    let place: BTreeMap<ChunkId, usize> =
        chunks.iter().enumerate().map(|(place, chunk)| (chunk.id, place)).collect();
    let all = phases.iter().flat_map(|phase| &phase.edges);
    let edge = |(&(from, to), &(messages, bytes)): (&(ChunkId, ChunkId), &(u64, u64))| {
        Some(Edge { from: *place.get(&from)?, to: *place.get(&to)?, messages, bytes })
    };
    let edges: Vec<Edge> = all.filter_map(edge).collect();
    // A trace has no prices of messages.
    let links = if edges.is_empty() { LinkCosts::default() } else { LinkCosts::assumed() };
    let limits = |limit| Memory { limits: vec![limit; ranks.len()], ..Memory::default() };
    let memory = trace.run.memory_limit.map(limits);
    Snapshot { phase: id, ranks, chunks, edges, links, memory }
}

/// Number of workers. The speed in a snapshot is that of all vCPUs of a rank, but the background that of one vCPU.
fn workers(trace: &Trace, rank: usize) -> u64 {
    trace.run.workers.get(rank).map_or(1, |&workers| u64::from(workers.max(1)))
}

/// The load of the rank as the strategy got it, if the report is recorded; otherwise as the rank measured itself.
fn rank_load(trace: &Trace, rank: usize, id: u64) -> RankLoad {
    let samples = |rank: usize| trace.ranks[rank].samples.iter().filter(|sample| sample.sync == Some(id));
    // A phase of several balancing windows has a sample of each. The last one was decided.
    let sample = |rank: usize| samples(rank).next_back();
    let report = trace.syncs.iter().find(|sync| sync.sync == id);
    let reported = report.and_then(|sync| Some((*sync.share.get(rank)?, *sync.capacity.get(rank)?)));
    let measured = || {
        let (own, first) = (sample(rank)?, sample(0)?);
        let speed = workers(trace, rank) as f64 * own.speed / first.speed;
        Some((own.share(), own.share() * speed))
    };
    let (share, capacity) = reported.or_else(measured).unwrap_or((1.0, 1.0));
    let share = if share > 0.0 && share <= 1.0 { share } else { 1.0 };
    let speed = Some(capacity / share).filter(|speed| (1e-3..1e3).contains(speed)).unwrap_or(1.0);
    let hosts = &trace.run.hosts;
    let host = hosts.get(rank).and_then(|host| hosts.iter().position(|other| other == host)).unwrap_or(rank);
    let background_ns: u64 = samples(rank).map(|sample| sample.background_ns / workers(trace, rank)).sum();
    RankLoad { speed, share, background_ns, available: true, host: host as u32 }
}
