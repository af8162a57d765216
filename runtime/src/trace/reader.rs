//! Reads traces: whole ones, those that were cut off, damaged ones as far as they go, and nothing else.
//!
//! A trace may come from anywhere. Every length is bounded before memory is taken, every block has a checksum, and what
//! comes out of [`Stream`] has been looked at: times are in order and below [`TIME_MAX_NS`](super::TIME_MAX_NS). Records
//! that are JSON are as they were written; whoever adds up their figures must expect any.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::de::DeserializeOwned;

use super::block::{HEADER, Header, INDEX_MAGIC, Kind, MAGIC, TRAILER, unpack};
use super::encoding::Decoder;
use super::event::{ChunkId, Event, NameId, RUNTIME, What};
use super::profile::{Activity, Profile};
use super::records::{End, Name, Names, RunRecord, Sample};
use super::writer::file_name;
use crate::report::SyncReport;

/// Bytes of records, as opposed to events, that a reader takes into memory.
const RECORDS_MAX: u64 = 512 << 20;

/// Why there is no trace to read: one line, saying what, where and what was expected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// Name another file or directory.
    #[error("{}: {why}", path.display())]
    NotATrace {
        /// What was to be read.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Name one of the runs.
    #[error("{}: {} runs are in there, name one of them: {}", path.display(), runs.len(), runs.join(", "))]
    SeveralRuns {
        /// The directory.
        path: PathBuf,
        /// What is in it.
        runs: Vec<String>,
    },
    /// The system would not read it.
    #[error("{}: cannot be read: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Something that is wrong with a trace, and does not keep the rest from being read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub file: PathBuf,
    /// Where in it, bytes from its start.
    pub at: u64,
    /// What is wrong, and what that means.
    pub what: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: byte {}: {}", self.file.display(), self.at, self.what)
    }
}

/// A run, as it was recorded. [`Writer`](super::Writer) has an example.
#[derive(Debug)]
#[non_exhaustive]
pub struct Trace {
    /// The directory.
    pub path: PathBuf,
    /// What the run was.
    pub run: RunRecord,
    /// What ranks recorded, in rank order. Not all need to be there.
    pub ranks: Vec<RankTrace>,
    /// All names; events of all ranks refer to this table.
    pub names: Vec<Name>,
    /// Names of the arrays, in their order.
    pub arrays: Vec<String>,
    /// What syncs found and did, in order.
    pub syncs: Vec<SyncReport>,
    /// What was wrong with the files, as far as it has been looked at: events are looked at when they are read.
    pub problems: Vec<Problem>,
    chunks: FxHashMap<ChunkId, String>,
}

/// What one rank recorded.
#[derive(Debug)]
#[non_exhaustive]
pub struct RankTrace {
    /// Which.
    pub rank: u32,
    /// How many workers it had.
    pub workers: u32,
    /// Where it ran.
    pub host: String,
    /// What it measured about itself, in order.
    pub samples: Vec<Sample>,
    /// The profile of each worker; of those that left none, empty.
    pub profiles: Vec<Profile>,
    /// How it ended; none if it was cut off.
    pub end: Option<End>,
    /// Its file.
    pub path: PathBuf,
    /// Blocks of events: place and header, in the order of the file.
    blocks: Blocks,
    /// From the numbers of this file to those of the trace.
    names: Arc<[NameId]>,
}

impl Trace {
    /// Opens a trace: the directory of a run, a directory with one run in it, or the file of one rank.
    ///
    /// Reads all but the events. Takes O(blocks + records) time and memory.
    ///
    /// # Errors
    /// [`TraceError`] if there is nothing that can be read. What is wrong in parts is in [`problems`](Self::problems).
    pub fn open(path: &Path) -> Result<Trace, TraceError> {
        let files = files_of(path)?;
        let mut opening = Opening::default();
        let mut refused = None;
        for file in files {
            match opening.rank(&file) {
                Ok(()) => {}
                Err(error) => refused = refused.or(Some((file, error))),
            }
        }
        match refused {
            Some((_, error)) if opening.ranks.is_empty() => return Err(error),
            Some((file, error)) => {
                let what = format!("left out: {error}");
                opening.problems.push(Problem { file, at: 0, what });
            }
            None => {}
        }
        Ok(opening.finish(path))
    }

    /// From the begin of the run to the last that is known of it, ns.
    #[must_use]
    pub fn elapsed_ns(&self) -> u64 {
        let ends = self.ranks.iter().filter_map(|rank| rank.end.as_ref()).map(|end| end.elapsed_ns);
        let events = self.ranks.iter().flat_map(|rank| &rank.blocks).map(|(_, header)| header.last_ns);
        let profiles = self.ranks.iter().flat_map(|rank| &rank.profiles).map(|profile| {
            let bins = profile.rows.iter().map(|row| row.ns.len()).max().unwrap_or(0) as u64;
            bins.saturating_sub(1).saturating_mul(profile.bin_ns)
        });
        let known = ends.chain(events).chain(profiles).max().unwrap_or(0);
        known.min(super::TIME_MAX_NS)
    }

    /// Events recorded, of all ranks.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.ranks.iter().map(RankTrace::events).sum()
    }

    /// Events that could not be kept, of all ranks.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        let ends = self.ranks.iter().filter_map(|rank| rank.end.as_ref());
        ends.fold(0, |sum, end| sum.saturating_add(end.dropped))
    }

    /// A chunk as people write it: `Block[[3, 4]]`.
    #[must_use]
    pub fn chunk_name(&self, chunk: ChunkId) -> String {
        if chunk == RUNTIME {
            return "runtime".into();
        }
        let array = self.array_name(chunk.array);
        match self.chunks.get(&chunk) {
            Some(index) => format!("{array}[{index}]"),
            None => format!("{array}[#{:x}]", chunk.key),
        }
    }

    /// The index of a chunk as people write it, if it is known.
    #[must_use]
    pub fn chunk_index(&self, chunk: ChunkId) -> Option<&str> {
        self.chunks.get(&chunk).map(String::as_str)
    }

    /// The name of an array.
    #[must_use]
    pub fn array_name(&self, array: u32) -> String {
        self.arrays.get(array as usize).cloned().unwrap_or_else(|| format!("array {array}"))
    }

    /// A kind of message with its array, as people write it (`Block::Halo`), or the name of a mark, span or counter.
    #[must_use]
    pub fn name(&self, id: NameId) -> String {
        match self.names.get(id.0 as usize) {
            Some(Name { array: Some(array), text }) => format!("{}::{text}", self.array_name(*array)),
            Some(Name { array: None, text }) => text.clone(),
            None => format!("name {}", id.0),
        }
    }

    /// What an activity is called in tables.
    #[must_use]
    pub fn activity_name(&self, activity: Activity) -> String {
        match activity {
            Activity::Kind(kind) => self.name(kind),
            Activity::Iterations => "iterations".into(),
            Activity::Idle => "idle".into(),
            Activity::Runtime(part) => part.name().into(),
            Activity::Lost => "lost".into(),
        }
    }

    /// Shows every event of every worker, rank by rank and worker by worker, each in its order. Returns what could not be
    /// read. Takes as much memory as one block.
    pub fn for_each(&self, mut visit: impl FnMut(&RankTrace, u32, &Event)) -> Vec<Problem> {
        let mut problems = Vec::new();
        for rank in &self.ranks {
            for worker in 0..rank.workers {
                let mut stream = rank.stream(worker);
                while let Some(block) = stream.next_block() {
                    match block {
                        Ok(events) => events.iter().for_each(|event| visit(rank, worker, event)),
                        Err(problem) => problems.push(problem),
                    }
                }
            }
        }
        problems
    }
}

impl RankTrace {
    /// Events recorded.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.blocks.iter().map(|(_, header)| u64::from(header.items)).sum()
    }

    /// The events of one worker, in order.
    #[must_use]
    pub fn stream(&self, worker: u32) -> Stream {
        self.stream_between(worker, 0, u64::MAX)
    }

    /// The events of one worker in the blocks that touch this stretch of time; some lie outside of it.
    #[must_use]
    pub fn stream_between(&self, worker: u32, from_ns: u64, to_ns: u64) -> Stream {
        let touches = |header: &Header| {
            u32::from(header.worker) == worker && header.first_ns <= to_ns && header.last_ns >= from_ns
        };
        let blocks: Vec<_> = self.blocks.iter().copied().filter(|(_, header)| touches(header)).collect();
        Stream {
            path: self.path.clone(),
            file: None,
            blocks: blocks.into_iter(),
            names: self.names.clone(),
            stored: Vec::new(),
            raw: Vec::new(),
            events: Vec::new(),
            next: 0,
            last_ns: 0,
            problems: Vec::new(),
        }
    }
}

/// Events of one worker, block by block or one by one.
#[derive(Debug)]
pub struct Stream {
    path: PathBuf,
    file: Option<File>,
    blocks: std::vec::IntoIter<(u64, Header)>,
    names: Arc<[NameId]>,
    stored: Vec<u8>,
    raw: Vec<u8>,
    events: Vec<Event>,
    next: usize,
    /// The end of the last slice that was no span.
    last_ns: u64,
    problems: Vec<Problem>,
}

impl Stream {
    /// The next block of events, or what is wrong with it; the one after it can be read all the same.
    pub fn next_block(&mut self) -> Option<Result<&[Event], Problem>> {
        let (at, header) = self.blocks.next()?;
        self.next = 0;
        self.events.clear();
        match self.read(at, &header) {
            Ok(()) => Some(Ok(&self.events)),
            Err(what) => {
                self.events.clear();
                Some(Err(Problem { file: self.path.clone(), at, what }))
            }
        }
    }

    /// What could not be read so far, by the iterator.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    fn read(&mut self, at: u64, header: &Header) -> Result<(), String> {
        let refused = |error: io::Error| format!("cannot be read: {error}");
        if self.file.is_none() {
            self.file = Some(File::open(&self.path).map_err(refused)?);
        }
        let file = self.file.as_mut().expect("it was just opened");
        read_block(file, at, header, &mut self.stored, &mut self.raw)?;
        let mut decoder = Decoder::new(&self.raw);
        let wrong = |at: usize, why: &str| format!("{why}, at byte {at} of the block's events");
        while let Some(mut event) = decoder.next().map_err(|error| wrong(error.at, error.why))? {
            self.last_ns = check(&event, header, self.last_ns)?;
            self.rename(&mut event.what);
            self.events.push(event);
        }
        if self.events.len() != header.items as usize {
            return Err(format!("{} events where {} should be", self.events.len(), header.items));
        }
        Ok(())
    }

    fn rename(&self, what: &mut What) {
        if let What::Handler { kind: name, .. }
        | What::Mark { name, .. }
        | What::Span { name, .. }
        | What::Counter { name, .. } = what
        {
            *name = self.names.get(name.0 as usize).copied().unwrap_or(NameId(u32::MAX));
        }
    }
}

/// Skips blocks that cannot be read; they are in [`Stream::problems`].
impl Iterator for Stream {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        while self.next == self.events.len() {
            if let Err(problem) = self.next_block()? {
                self.problems.push(problem);
            }
        }
        self.next += 1;
        Some(self.events[self.next - 1])
    }
}

/// Whether an event may follow what ended at `last_ns`; returns what the next may follow.
fn check(event: &Event, header: &Header, last_ns: u64) -> Result<u64, String> {
    if event.begin_ns < header.first_ns || event.end_ns > header.last_ns {
        return Err(format!("an event at {} ns lies outside of its block's time", event.begin_ns));
    }
    if let What::Handler { lost_ns, .. } | What::Range { lost_ns, .. } = event.what
        && lost_ns > event.duration_ns()
    {
        return Err(format!("a handler at {} ns lost more than it took", event.begin_ns));
    }
    // What a program tells lies inside the handler that follows.
    if matches!(event.what, What::Span { .. } | What::Mark { .. } | What::Counter { .. }) {
        return Ok(last_ns);
    }
    if event.begin_ns < last_ns {
        return Err(format!("an event at {} ns begins before the last one ended", event.begin_ns));
    }
    Ok(event.end_ns)
}

fn read_block(
    file: &mut File,
    at: u64,
    header: &Header,
    stored: &mut Vec<u8>,
    raw: &mut Vec<u8>,
) -> Result<(), String> {
    stored.resize(header.stored as usize, 0);
    let bytes = file.seek(SeekFrom::Start(at + HEADER as u64)).and_then(|_| file.read_exact(stored));
    bytes.map_err(|error| format!("cannot be read: {error}"))?;
    unpack(header, stored, raw).map_err(str::to_owned)
}

/// The files of a trace, or why there is none.
fn files_of(path: &Path) -> Result<Vec<PathBuf>, TraceError> {
    let io_error = |source| TraceError::Io { path: path.to_owned(), source };
    if fs::metadata(path).map_err(io_error)?.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let (mut files, mut runs) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(path).map_err(io_error)? {
        let entry = entry.map_err(io_error)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_dir = entry.file_type().map_err(io_error)?.is_dir();
        if !is_dir && name.starts_with("rank-") && name.ends_with(".trace") {
            files.push(entry.path());
        } else if is_dir && name.starts_with("run-") {
            runs.push(name);
        }
    }
    files.sort();
    runs.sort_by_key(|name| (name.len(), name.clone()));
    match &runs[..] {
        _ if !files.is_empty() => Ok(files),
        [] => {
            let why = "no trace is in there: expected rank-00000.trace, as CARIBOU_TRACE writes it".into();
            Err(TraceError::NotATrace { path: path.to_owned(), why })
        }
        [run] => files_of(&path.join(run)),
        _ => Err(TraceError::SeveralRuns { path: path.to_owned(), runs }),
    }
}

/// A trace being put together from its files.
#[derive(Default)]
struct Opening {
    ranks: Vec<RankTrace>,
    run: Option<RunRecord>,
    names: Vec<Name>,
    numbers: FxHashMap<Name, NameId>,
    arrays: Vec<String>,
    chunks: FxHashMap<ChunkId, String>,
    syncs: Vec<SyncReport>,
    problems: Vec<Problem>,
    taken: u64,
}

/// The records of one file.
#[derive(Default)]
struct Records {
    run: Option<RunRecord>,
    names: Vec<Name>,
    syncs: Vec<SyncReport>,
    samples: Vec<Sample>,
    profiles: Vec<(u16, Profile)>,
    end: Option<End>,
}

impl Opening {
    fn rank(&mut self, path: &Path) -> Result<(), TraceError> {
        let not = |why: String| TraceError::NotATrace { path: path.to_owned(), why };
        let io_error = |source| TraceError::Io { path: path.to_owned(), source };
        let mut file = File::open(path).map_err(io_error)?;
        let length = file.metadata().map_err(io_error)?.len();
        let mut magic = Vec::new();
        (&mut file).take(MAGIC.len() as u64).read_to_end(&mut magic).map_err(io_error)?;
        check_magic(&magic).map_err(not)?;
        let blocks = match indexed(&mut file, length) {
            Ok(Some(blocks)) => blocks,
            not_indexed => {
                let (blocks, broken) = scanned(&mut file, length);
                let why = match (not_indexed, broken) {
                    (Err(at), _) => Some((at, "the index is damaged: the blocks were searched for".into())),
                    (_, Some((at, why))) => Some((at, format!("{why}: the file is read up to here"))),
                    (_, None) => Some((length, "the file was not closed: the run was cut off".into())),
                };
                self.problems.extend(why.map(|(at, what)| Problem { file: path.to_owned(), at, what }));
                blocks
            }
        };
        let records = self.records(path, &mut file, &blocks);
        let Some(run) = records.run else { return Err(not("it has no run record that can be read".into())) };
        if let Some(first) = &self.run
            && first.run_id != run.run_id
        {
            return Err(not(format!("it belongs to run {}, not to {}", run.run_id, first.run_id)));
        }
        if self.ranks.iter().any(|other| other.rank == run.rank) {
            return Err(not(format!("rank {} has another file", run.rank)));
        }
        let names = records.names.into_iter().map(|name| self.number(name)).collect::<Vec<_>>();
        let rank = run.rank as usize;
        let events: Vec<_> = blocks.into_iter().filter(|(_, header)| header.kind == Kind::Events).collect();
        let seen = events.iter().map(|(_, header)| u32::from(header.worker) + 1).max().unwrap_or(1);
        let said = run.workers.get(rank).copied().unwrap_or(1).min(u32::from(u16::MAX));
        let workers = seen.max(said);
        let mut profiles = vec![Profile::default(); workers as usize];
        for (worker, mut profile) in records.profiles {
            if let Some(place) = profiles.get_mut(usize::from(worker)) {
                renumber(&mut profile, &names);
                *place = profile;
            }
        }
        self.syncs.extend(records.syncs);
        self.ranks.push(RankTrace {
            rank: run.rank,
            workers,
            host: run.hosts.get(rank).cloned().unwrap_or_default(),
            samples: records.samples,
            profiles,
            end: records.end,
            path: path.to_owned(),
            blocks: events,
            names: names.into(),
        });
        self.run.get_or_insert(run);
        Ok(())
    }

    fn records(&mut self, path: &Path, file: &mut File, blocks: &[(u64, Header)]) -> Records {
        let mut records = Records::default();
        let (mut stored, mut raw) = (Vec::new(), Vec::new());
        for &(at, header) in blocks.iter().filter(|(_, header)| header.kind != Kind::Events) {
            self.taken += u64::from(header.raw);
            let read = if self.taken > RECORDS_MAX {
                Err("more than 512 MiB of records".into())
            } else {
                read_block(file, at, &header, &mut stored, &mut raw)
                    .and_then(|()| self.record(&mut records, &header, &raw))
            };
            if let Err(why) = read {
                let what = format!("the {} is left out: {why}", header.kind.name());
                self.problems.push(Problem { file: path.to_owned(), at, what });
            }
        }
        records
    }

    fn record(&mut self, records: &mut Records, header: &Header, raw: &[u8]) -> Result<(), String> {
        match header.kind {
            Kind::Run => records.run = Some(json(raw)?),
            Kind::Names => {
                let names: Names = json(raw)?;
                for (chunk, text) in names.chunk_names() {
                    self.chunks.entry(chunk).or_insert_with(|| text.to_owned());
                }
                records.names.extend(names.names);
                if self.arrays.is_empty() {
                    self.arrays = names.arrays;
                }
            }
            Kind::Syncs => records.syncs.extend(json::<Vec<SyncReport>>(raw)?),
            Kind::Samples => records.samples.extend(json::<Vec<Sample>>(raw)?),
            Kind::Profile => {
                let profile: Profile = json(raw)?;
                profile.check()?;
                records.profiles.push((header.worker, profile));
            }
            Kind::End => records.end = Some(json(raw)?),
            Kind::Events | Kind::Index => {}
        }
        Ok(())
    }

    /// The number of a name in the table of the trace.
    fn number(&mut self, name: Name) -> NameId {
        let next = NameId(self.names.len() as u32);
        let number = *self.numbers.entry(name.clone()).or_insert(next);
        if number == next {
            self.names.push(name);
        }
        number
    }

    fn finish(mut self, path: &Path) -> Trace {
        let run = self.run.expect("a trace has a rank, and that a run record");
        self.ranks.sort_by_key(|rank| rank.rank);
        self.syncs.sort_by_key(|sync| sync.sync);
        let there = |rank: &u32| self.ranks.iter().any(|other| other.rank == *rank);
        // A damaged or foreign record may claim any number of them.
        let missing: Vec<u32> = (0..run.ranks.min(1 << 16)).filter(|rank| !there(rank)).take(8).collect();
        for rank in missing {
            let file = path.join(file_name(rank));
            self.problems.push(Problem { file, at: 0, what: format!("the file of rank {rank} is missing") });
        }
        Trace {
            path: path.to_owned(),
            run,
            ranks: self.ranks,
            names: self.names,
            arrays: self.arrays,
            syncs: self.syncs,
            problems: self.problems,
            chunks: self.chunks,
        }
    }
}

fn renumber(profile: &mut Profile, names: &[NameId]) {
    for row in &mut profile.rows {
        if let Activity::Kind(kind) = &mut row.activity {
            *kind = names.get(kind.0 as usize).copied().unwrap_or(NameId(u32::MAX));
        }
    }
}

fn json<T: DeserializeOwned>(raw: &[u8]) -> Result<T, String> {
    serde_json::from_slice(raw).map_err(|error| format!("it does not read as one: {error}"))
}

fn check_magic(magic: &[u8]) -> Result<(), String> {
    if magic == MAGIC {
        return Ok(());
    }
    let expected = "a Caribou trace begins with `caribou-trace 1`";
    match magic.strip_prefix(b"caribou-trace ") {
        Some(version) => {
            let version = String::from_utf8_lossy(version);
            Err(format!("it has version {} of the format, this reads version 1", version.trim_end()))
        }
        None if magic.is_empty() => Err(format!("it is empty: {expected}")),
        None => Err(format!("it is something else: {expected}")),
    }
}

/// The blocks that the index at the end of a file names; none if there is none. The error is where a bad one lies.
fn indexed(file: &mut File, length: u64) -> Result<Option<Blocks>, u64> {
    let Some(trailer_at) = length.checked_sub(TRAILER as u64) else { return Ok(None) };
    let mut trailer = [0; TRAILER];
    let there = file.seek(SeekFrom::Start(trailer_at)).and_then(|_| file.read_exact(&mut trailer));
    if there.is_err() || trailer[8..] != INDEX_MAGIC[..] {
        return Ok(None);
    }
    let at = u64::from_le_bytes(trailer[..8].try_into().expect("eight bytes"));
    let blocks = read_index(file, at, trailer_at);
    blocks.map(Some).ok_or(at.min(length))
}

fn read_index(file: &mut File, at: u64, end: u64) -> Option<Blocks> {
    let header = header_at(file, at, end).ok()?;
    let (mut stored, mut raw) = (Vec::new(), Vec::new());
    read_block(file, at, &header, &mut stored, &mut raw).ok()?;
    let entries = raw.chunks(8 + HEADER).map(|entry| {
        let place = u64::from_le_bytes(entry.get(..8)?.try_into().ok()?);
        let header = Header::from_bytes(entry.get(8..)?.try_into().ok()?).ok()?;
        let end_of_it = place.checked_add(HEADER as u64)?.checked_add(u64::from(header.stored))?;
        (end_of_it <= at).then_some((place, header))
    });
    (header.kind == Kind::Index).then(|| entries.collect())?
}

/// Blocks, each with its place.
type Blocks = Vec<(u64, Header)>;

/// The blocks found one after the other, and where and why that ended before the end of the file.
fn scanned(file: &mut File, length: u64) -> (Blocks, Option<(u64, String)>) {
    let mut blocks = Vec::new();
    let mut at = MAGIC.len() as u64;
    while at < length {
        match header_at(file, at, length) {
            Ok(header) => {
                if header.kind == Kind::Index {
                    return (blocks, None);
                }
                blocks.push((at, header));
                at += HEADER as u64 + u64::from(header.stored);
            }
            Err(why) => return (blocks, Some((at, why))),
        }
    }
    (blocks, None)
}

fn header_at(file: &mut File, at: u64, end: u64) -> Result<Header, String> {
    let mut bytes = [0; HEADER];
    if at.checked_add(HEADER as u64).is_none_or(|rest| rest > end) {
        return Err("the file ends within the header of a block".into());
    }
    let read = file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut bytes));
    read.map_err(|error| format!("cannot be read: {error}"))?;
    let header = Header::from_bytes(&bytes)?;
    if at + HEADER as u64 + u64::from(header.stored) > end {
        return Err("the file ends within a block".into());
    }
    Ok(header)
}
