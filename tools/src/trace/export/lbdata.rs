//! Writes LB data, the files of vt that LBAF and vt-tv read: one file per rank, one phase per sync. Each file has all
//! phases in full, because not all readers support phases that refer to other phases. `time` is the CPU time of a chunk
//! in seconds on a vCPU as fast as that of rank 0. `rank_alpha` is the time of a rank for a second of such work, in the
//! median of its samples.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use caribou::trace::ChunkId;
use serde_json::{Value, json};
use trace_reader::{RankTrace, Trace};

use super::names;
use super::phases::{Phase, RunPhases, Strays, for_each, no_loads, say_estimated, say_partial};
use crate::Error;
use crate::trace::page::plural;
use crate::trace::select::Selection;

/// Number of ranks that an id can represent.
const RANKS_MAX: u32 = 1 << 16;

/// Relative difference of speeds that is taken for chance.
const CHANCE: f64 = 0.05;

/// Writes `data.<rank>.json` of each rank to an empty directory.
pub(super) fn export(
    trace: &Trace,
    selection: &Selection,
    dir: &Path,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let window = selection.window(trace);
    let mut known = RunPhases::new(trace, window);
    if !known.has_loads {
        return Err(no_loads(trace));
    }
    let left_out = known.leave_out_partial(trace);
    let objects = objects(trace, &known)?;
    let mut strays = Strays::new(trace, window)?;
    let mut is_estimated = false;
    for rank in selection.ranks(trace) {
        let path = dir.join(format!("data.{}.json", rank.rank));
        let unwritable = |source| Error::Unwritable { file: path.clone(), source };
        let mut file = BufWriter::new(File::create_new(&path).map_err(unwritable)?);
        let write =
            |file: &mut BufWriter<File>, text: String| file.write_all(text.as_bytes()).map_err(unwritable);
        let speed = speed_of(trace, rank);
        write(&mut file, head(trace, rank, speed))?;
        let mut missing = known.phases.keys().copied().peekable();
        let mut first = true;
        let mut put = |phase: Phase| -> Result<(), Error> {
            is_estimated |= phase.is_estimated;
            // Phases without a load on this rank, or of repeated number, keep their place.
            while let Some(id) = missing.next_if(|&id| id <= phase.id) {
                let empty = Phase { id, ..Phase::default() };
                let phase = if id == phase.id { &phase } else { &empty };
                let comma = if std::mem::take(&mut first) { "\n" } else { ",\n" };
                write(&mut file, format!("{comma}{}", of_phase(rank, phase, speed, &objects)))?;
            }
            Ok(())
        };
        for_each(trace, rank, window, &mut strays, &mut put)?;
        put(Phase { id: u64::MAX, ..Phase::default() })?;
        write(&mut file, "\n]}\n".into())?;
        file.flush().map_err(unwritable)?;
    }
    let (phases, ranks) = (known.phases.len(), selection.ranks(trace).count());
    let (phases, ranks) = (plural(phases, "phase"), plural(ranks, "rank"));
    writeln!(out, "{}: {phases} of {ranks}", dir.display())?;
    say_partial(left_out, out)?;
    if is_estimated { say_estimated(trace, out) } else { Ok(()) }
}

/// The JSON fields that identify each chunk.
fn objects(trace: &Trace, known: &RunPhases) -> Result<BTreeMap<ChunkId, Value>, Error> {
    let mut objects = BTreeMap::new();
    for (number, (&chunk, &(_, home))) in (0u64..).zip(&known.homes) {
        if home >= RANKS_MAX {
            return Err(Error::Usage(format!("LB data has room for {RANKS_MAX} ranks, this is rank {home}")));
        }
        // The id is packed as in vt: number of the chunk, rank where it was created, flag for a migratable chunk.
        let id = number << 18 | u64::from(home) << 2 | 3;
        let index = names::index_of(trace, chunk).map_or_else(|| json!([chunk.key]), |index| json!(index));
        let object = json!({
            "type": "object", "id": id, "home": home, "migratable": true,
            "collection_id": chunk.array, "index": index,
        });
        objects.insert(chunk, object);
    }
    Ok(objects)
}

/// Speed of a vCPU of the rank relative to rank 0, in the median of their samples. Differences of a few per cent are
/// chance.
fn speed_of(trace: &Trace, rank: &RankTrace) -> f64 {
    let median = |rank: &RankTrace| {
        let mut speeds: Vec<f64> = rank.samples.iter().map(|sample| sample.speed).collect();
        speeds.sort_by(f64::total_cmp);
        speeds.get(speeds.len() / 2).copied().filter(|speed| *speed > 0.0)
    };
    let first = trace.ranks.iter().find(|rank| rank.rank == 0).and_then(median);
    let speed = median(rank).zip(first).map_or(1.0, |(own, first)| own / first);
    if (speed - 1.0).abs() < CHANCE { 1.0 } else { speed }
}

/// The beginning of the file, up to the first phase.
fn head(trace: &Trace, rank: &RankTrace, speed: f64) -> String {
    let version = format!("caribou {}", trace.run.version);
    let attributes =
        json!({"run_id": trace.run.run_id, "version": version, "clock": "cpu", "host": rank.host});
    let alpha = 1.0 / (speed * f64::from(rank.workers.max(1)));
    let metadata =
        json!({"type": "LBDatafile", "rank": rank.rank, "rank_alpha": alpha, "attributes": attributes});
    format!("{{\"type\":\"LBDatafile\",\"metadata\":{metadata},\"phases\":[")
}

fn of_phase(rank: &RankTrace, phase: &Phase, speed: f64, objects: &BTreeMap<ChunkId, Value>) -> Value {
    let task = |load: &super::phases::Load| {
        Some(json!({
            "entity": objects.get(&load.chunk)?, "node": rank.rank, "resource": "cpu",
            "time": load.load_ns as f64 * speed / 1e9, "attributes": {"state_bytes": load.bytes},
        }))
    };
    let edge = |(&(from, to), &(messages, bytes)): (&(ChunkId, ChunkId), &(u64, u64))| {
        Some(json!({
            "type": "SendRecv", "from": objects.get(&from)?, "to": objects.get(&to)?,
            "messages": messages, "bytes": bytes as f64,
        }))
    };
    let tasks: Vec<Value> = phase.loads.iter().filter_map(task).collect();
    let communications: Vec<Value> = phase.edges.iter().filter_map(edge).collect();
    let mut value = json!({"id": phase.id, "tasks": tasks, "communications": communications});
    if let Some(sample) = rank.samples.iter().find(|sample| sample.sync == Some(phase.id)) {
        value["user_defined"] = json!({
            "speed": sample.speed, "share": sample.share(),
            "background_s": sample.background_ns as f64 / 1e9, "steal_s": sample.steal_ns as f64 / 1e9,
        });
    }
    value
}
