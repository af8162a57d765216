//! Reads the load-balancing data of vt in JSON:
//!
//! `{"phases": [{"id": 0, "tasks": [{"time": 0.5, "entity": {"id": 7, "migratable": true}}]}]}`
//!
//! Numbers may be written as whole numbers or with a decimal point, because writers differ.

use std::fmt::Display;
use std::ops::RangeInclusive;

use serde::Deserialize;
use serde_json::{Number, Value};

use super::RecordedLoadsError;
use super::rank_file::{Entry, Listed, Name, NamedEdge, RankFile, Sizes, Task, load};

/// Number of characters of the JSON reader's message that are shown.
const SHOWN_MAX: usize = 200;

/// Largest number of bytes that is allowed.
const BYTES_MAX: f64 = 1e18;

#[derive(Deserialize)]
struct File {
    metadata: Option<Metadata>,
    phases: Vec<Phase>,
}

#[derive(Default, Deserialize)]
struct Metadata {
    rank: Option<Number>,
    rank_alpha: Option<f64>,
    shared_node: Option<SharedNode>,
    phases: Option<PhaseLists>,
    attributes: Option<Value>,
}

#[derive(Deserialize)]
struct SharedNode {
    id: Number,
}

#[derive(Deserialize)]
struct PhaseLists {
    skipped: PhaseList,
    identical_to_previous: PhaseList,
}

#[derive(Deserialize)]
struct PhaseList {
    list: Vec<Number>,
    range: Vec<[Number; 2]>,
}

#[derive(Deserialize)]
struct Phase {
    id: Number,
    #[serde(default)]
    tasks: Vec<TimedTask>,
    #[serde(default)]
    communications: Vec<Communication>,
}

#[derive(Deserialize)]
struct TimedTask {
    entity: Entity,
    /// Seconds.
    time: f64,
    user_defined: Option<UserDefined>,
    attributes: Option<Value>,
}

#[derive(Deserialize)]
struct Entity {
    id: Option<Number>,
    /// Instead of an id, in files that were not written by a run.
    seq_id: Option<Number>,
    home: Option<Number>,
    migratable: bool,
}

#[derive(Default, Deserialize)]
struct UserDefined {
    shared_id: Option<Number>,
    shared_bytes: Option<f64>,
    task_working_bytes: Option<f64>,
    task_footprint_bytes: Option<f64>,
    task_serialized_bytes: Option<f64>,
    rank_working_bytes: Option<f64>,
}

#[derive(Deserialize)]
struct Communication {
    r#type: Value,
    from: End,
    to: End,
    messages: Option<Number>,
    bytes: f64,
}

#[derive(Deserialize)]
struct End {
    r#type: Option<String>,
    id: Option<Number>,
    seq_id: Option<Number>,
    home: Option<Number>,
    migratable: Option<bool>,
}

/// Reads the file of a rank.
pub(super) fn read(rank: usize, file: &str, bytes: &[u8]) -> Result<RankFile, RecordedLoadsError> {
    let parsed: File = serde_json::from_slice(bytes).map_err(|error| {
        // The message may repeat text of the file of any length.
        let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
        let message: String = error.to_string().chars().map(plain).take(SHOWN_MAX).collect();
        let what = format!("no LB data of vt: {message}");
        RecordedLoadsError { place: format!("{file}:{}", error.line()), what }
    })?;
    content(rank, parsed)
        .map_err(|(place, what)| RecordedLoadsError { place: format!("{file}: {place}"), what })
}

/// A field, and what is wrong with it.
type Fault = (String, String);

fn content(rank: usize, file: File) -> Result<RankFile, Fault> {
    let metadata = file.metadata.unwrap_or_default();
    if let Some(other) = metadata.rank.as_ref().filter(|number| whole(number) != Some(rank as u64)) {
        let what = format!("{other}, expected {rank}, the rank in the name of the file");
        return Err(("metadata.rank".to_owned(), what));
    }
    if let Some(alpha) = metadata.rank_alpha.filter(|alpha| *alpha < 0.0) {
        return Err(("metadata.rank_alpha".to_owned(), format!("{alpha}, expected a number from 0")));
    }
    let named = || metadata.attributes.as_ref()?.get("host").map(Value::to_string);
    let host = metadata.shared_node.as_ref().map(|node| node.id.to_string()).or_else(named);
    let listed = metadata.phases.as_ref().map(listed).transpose()?;
    let mut content = RankFile { host, alpha: metadata.rank_alpha, listed, ..RankFile::default() };
    for (number, phase) in file.phases.iter().enumerate() {
        let place = format!("phases[{number}]");
        let id = whole(&phase.id).ok_or_else(|| (format!("{place}.id"), no_number(&phase.id)))?;
        let entry = entry(id, phase).map_err(|(field, what)| (format!("{place}.{field}"), what))?;
        if content.entries.insert(id, entry).is_some() {
            return Err((place, format!("phase {id} is there twice, expected each phase once")));
        }
    }
    Ok(content)
}

fn listed(lists: &PhaseLists) -> Result<Listed, Fault> {
    let skipped = ranges("skipped", &lists.skipped)?;
    Ok(Listed { skipped, repeated: ranges("identical_to_previous", &lists.identical_to_previous)? })
}

/// The phases of a list, in order and without overlap.
fn ranges(name: &str, phases: &PhaseList) -> Result<Vec<RangeInclusive<u64>>, Fault> {
    let single = phases.list.iter().map(|phase| [phase, phase]);
    let all = single.chain(phases.range.iter().map(|[from, to]| [from, to]));
    let range = |[from, to]: [&Number; 2]| {
        let range = whole(from).zip(whole(to)).filter(|(from, to)| from <= to && *to < u64::MAX);
        range.map(|(from, to)| from..=to).ok_or_else(|| {
            (
                format!("metadata.phases.{name}"),
                format!("{from} to {to}, expected numbers of phases in order"),
            )
        })
    };
    let mut ranges: Vec<RangeInclusive<u64>> = all.map(range).collect::<Result<_, _>>()?;
    ranges.sort_by_key(|range| *range.start());
    ranges.dedup_by(|next, range| {
        let overlaps = next.start() <= range.end();
        if overlaps {
            *range = *range.start()..=*range.end().max(next.end());
        }
        overlaps
    });
    Ok(ranges)
}

fn entry(id: u64, phase: &Phase) -> Result<Entry, Fault> {
    let mut entry = Entry::default();
    for (position, task) in phase.tasks.iter().enumerate() {
        let at_place = |what| (format!("tasks[{position}]"), what);
        let user_defined = task.user_defined.as_ref();
        // The last task counts, as in LBAF.
        entry.rank_bytes =
            size("rank_working_bytes", user_defined.and_then(|sizes| sizes.rank_working_bytes))
                .map_err(at_place)?
                .unwrap_or(0);
        entry.tasks.extend(timed(id, task).map_err(at_place)?);
    }
    for (position, communication) in phase.communications.iter().enumerate() {
        let edge = edge(communication).map_err(|what| (format!("communications[{position}]"), what))?;
        entry.rounded_edges += usize::from(edge.is_some() && communication.bytes.fract() != 0.0);
        entry.edges.extend(edge);
    }
    Ok(entry)
}

/// The task. None for the task of time 0 with an invalid id that vt writes in phase 0.
fn timed(phase: u64, task: &TimedTask) -> Result<Option<Task>, String> {
    let Entity { id, seq_id, home, migratable } = &task.entity;
    let seconds = load(task.time)?;
    let sequence = if id.is_none() { seq_id.as_ref().and_then(whole) } else { None };
    let packed = sequence.and_then(|sequence| pack(sequence, home.as_ref(), *migratable));
    let object = id.as_ref().and_then(whole).filter(|&id| id != u64::MAX).or(packed);
    let is_void = object.is_none() || (object == Some(0) && phase == 0 && !migratable);
    match object {
        _ if is_void && seconds <= 0.0 => Ok(None),
        Some(object) => {
            Ok(Some(Task { object, sequence, seconds, migratable: *migratable, sizes: sizes(task)? }))
        }
        None => Err("no id, expected entity.id or entity.seq_id, a whole number".to_owned()),
    }
}

/// The id that vt packs from a sequence number, the home of the object and whether it may migrate.
fn pack(sequence: u64, home: Option<&Number>, migratable: bool) -> Option<u64> {
    let home = home.map_or(Some(0), whole).filter(|&home| home < 1 << 16)?;
    let sequence = Some(sequence).filter(|&sequence| sequence < 1 << 46)?;
    Some(sequence << 18 | home << 2 | if migratable { 3 } else { 2 })
}

fn sizes(task: &TimedTask) -> Result<Sizes, String> {
    let empty = UserDefined::default();
    let given = task.user_defined.as_ref().unwrap_or(&empty);
    let footprint = size("task_footprint_bytes", given.task_footprint_bytes)?;
    let state = size("task_serialized_bytes", given.task_serialized_bytes)?;
    let attribute = || task.attributes.as_ref()?.get("state_bytes")?.as_u64();
    let shared_bytes = size("shared_bytes", given.shared_bytes)?.unwrap_or(0);
    // A negative number stands for no block.
    let block = given.shared_id.as_ref().and_then(whole).map(|number| (number, shared_bytes));
    Ok(Sizes {
        state: state.or_else(|| if footprint.is_none() { attribute() } else { None }),
        footprint,
        working: size("task_working_bytes", given.task_working_bytes)?,
        block,
    })
}

/// The edge, if it is of messages between two objects.
fn edge(communication: &Communication) -> Result<Option<NamedEdge>, String> {
    let Communication { r#type: kind, from, to, messages, bytes } = communication;
    let is_message = *kind == "SendRecv" || *kind == 1;
    let is_object = |end: &End| end.r#type.as_ref().is_none_or(|kind| kind == "object");
    if !(is_message && is_object(from) && is_object(to)) {
        return Ok(None);
    }
    let messages = match messages {
        None => 1,
        Some(number) => whole(number).ok_or_else(|| format!("messages: {}", no_number(number)))?,
    };
    let bytes = size("bytes", Some(*bytes))?.unwrap_or(0);
    let named = name(from).zip(name(to));
    Ok(named.map(|(from, to)| NamedEdge { from, to, messages, bytes }))
}

fn name(end: &End) -> Option<Name> {
    if let Some(id) = &end.id {
        return whole(id).map(Name::Id);
    }
    let sequence = whole(end.seq_id.as_ref()?)?;
    match (&end.home, end.migratable) {
        (Some(home), Some(migratable)) => pack(sequence, Some(home), migratable).map(Name::Id),
        _ => Some(Name::Sequence(sequence)),
    }
}

/// A size in bytes, rounded to whole bytes.
fn size(field: &str, bytes: Option<f64>) -> Result<Option<u64>, String> {
    match bytes {
        Some(bytes) if !(0.0..=BYTES_MAX).contains(&bytes) => {
            Err(format!("{field} is {bytes}, expected bytes, a number from 0 to {BYTES_MAX:e}"))
        }
        bytes => Ok(bytes.map(|bytes| bytes.round() as u64)),
    }
}

/// The number, if it is whole and not negative.
fn whole(number: &Number) -> Option<u64> {
    let rounded = || number.as_f64().filter(|float| float.fract() == 0.0 && (0.0..=9e15).contains(float));
    number.as_u64().or_else(|| rounded().map(|float| float as u64))
}

fn no_number(text: impl Display) -> String {
    format!("{text}, expected a whole number")
}
