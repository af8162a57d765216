//! Builds a [`Trace`] from its files: reads records, gives names common numbers, and leaves events in the files.
//!
//! Contents of a file are kept only if the file belongs to the run. The size of records in memory is computed first,
//! because three bytes in a file may take a hundred times as much memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use caribou::trace::block::{Header, Kind, MAGIC};
use caribou::trace::{
    Activity, ArrayId, ChunkId, End, Look, Name, NameId, Names, Profile, Row, RunRecord, Sample, StepRecord,
    StepWorker, SyncReport, Taker, file_name,
};
use rustc_hash::FxHashMap;
use serde::Deserializer;
use serde::de::{DeserializeOwned, Error, SeqAccess, Visitor};

use super::blocks::{Blocks, check_magic, find, read_block};
use super::{Problem, RankTrace, Trace, TraceError};

/// Largest size in memory of all records of one kind, in bytes. Lists within records may add to it. `Names` has those
/// of all chunks.
fn records_max(kind: Kind) -> u64 {
    if kind == Kind::Names { 512 << 20 } else { 256 << 20 }
}

/// Largest number of workers of a rank that are assumed without recorded events.
const WORKERS_MAX: u32 = 4096;
/// Largest number of missing files that are reported.
const MISSING_MAX: usize = 8;
/// Characters of a file's text in a message.
const LINE_MAX: usize = 200;

/// The files of a trace, or the reason that there are none.
pub(super) fn files_of(path: &Path) -> Result<Vec<PathBuf>, TraceError> {
    let io_error = |source| TraceError::Io { path: path.to_owned(), source };
    if fs::metadata(path).map_err(io_error)?.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let (mut files, mut runs) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(path).map_err(io_error)? {
        let entry = entry.map_err(io_error)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("rank-") && name.ends_with(".trace") {
            files.push(entry.path());
        } else if name.starts_with("run-") && entry.file_type().map_err(io_error)?.is_dir() {
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

/// A trace while its files are read.
#[derive(Default)]
pub(super) struct TraceBuilder {
    pub(super) ranks: Vec<RankTrace>,
    pub(super) problems: Vec<Problem>,
    run: Option<RunRecord>,
    names: Vec<Name>,
    numbers: FxHashMap<Name, NameId>,
    arrays: Vec<String>,
    chunks: FxHashMap<ChunkId, String>,
    syncs: Vec<SyncReport>,
    steps: Vec<StepRecord>,
    taken: BTreeMap<Kind, u64>,
}

/// The records of one file.
#[derive(Default)]
struct Records {
    run: Option<RunRecord>,
    names: Names,
    syncs: Vec<SyncReport>,
    steps: Vec<StepRecord>,
    samples: Vec<Sample>,
    looks: Vec<Look>,
    profiles: BTreeMap<u16, Profile>,
    end: Option<End>,
    /// Whether some names are missing, so that the numbers of later names are unknown.
    names_lost: bool,
}

/// Removes the blocks of workers that the rank does not have.
fn of_workers(blocks: Blocks, run: &RunRecord, path: &Path, problems: &mut Vec<Problem>) -> Blocks {
    let Some(&workers) = run.workers.get(run.rank as usize) else { return blocks };
    let known = |header: &Header| header.kind != Kind::Events || u32::from(header.worker) < workers;
    let (known, strange): (Blocks, Blocks) = blocks.into_iter().partition(|(_, header)| known(header));
    problems.extend(strange.into_iter().map(|(at, header)| Problem {
        file: path.to_owned(),
        at,
        what: format!("a block of worker {} is left out: rank {} has {workers}", header.worker, run.rank),
    }));
    known
}

impl TraceBuilder {
    pub(super) fn rank(&mut self, path: &Path) -> Result<(), TraceError> {
        let not = |why: String| TraceError::NotATrace { path: path.to_owned(), why };
        let io_error = |source| TraceError::Io { path: path.to_owned(), source };
        // Checked before opening, because opening a pipe waits for a writer.
        if !fs::metadata(path).map_err(io_error)?.is_file() {
            return Err(not("it is not a file: expected one that CARIBOU_TRACE wrote".into()));
        }
        let mut file = File::open(path).map_err(io_error)?;
        let length = file.metadata().map_err(io_error)?.len();
        let mut magic = Vec::new();
        (&mut file).take(MAGIC.len() as u64).read_to_end(&mut magic).map_err(io_error)?;
        check_magic(&magic).map_err(not)?;
        let (blocks, fault) = find(&mut file, length);
        let mut problems: Vec<Problem> =
            fault.into_iter().map(|(at, what)| Problem { file: path.to_owned(), at, what }).collect();
        let mut records = self.records(path, &mut file, &blocks, &mut problems);
        let Some(run) = records.run.take() else {
            let why = problems.first().map_or(String::new(), |problem| format!(" ({})", problem.what));
            return Err(not(format!("it has no run record that can be read{why}")));
        };
        self.admit(&run).map_err(not)?;
        let blocks = of_workers(blocks, &run, path, &mut problems);
        self.problems.append(&mut problems);
        self.add(path, run, records, blocks);
        Ok(())
    }

    /// Checks that a file of this run and rank belongs to the trace.
    fn admit(&self, run: &RunRecord) -> Result<(), String> {
        if let Some(first) = &self.run
            && first.run_id != run.run_id
        {
            let (this, first) = (one_line(&run.run_id), one_line(&first.run_id));
            return Err(format!("it belongs to run {this}, not to {first}"));
        }
        if self.ranks.iter().any(|other| other.rank == run.rank) {
            return Err(format!("rank {} has another file", run.rank));
        }
        Ok(())
    }

    fn add(&mut self, path: &Path, run: RunRecord, records: Records, blocks: Blocks) {
        for (chunk, text) in records.names.chunk_names() {
            self.chunks.entry(chunk).or_insert_with(|| text.to_owned());
        }
        if self.arrays.is_empty() {
            self.arrays = records.names.arrays;
        }
        let names = records.names.names.into_iter().map(|name| self.number(name)).collect::<Vec<_>>();
        let rank = run.rank as usize;
        let mut events: Vec<_> =
            blocks.into_iter().filter(|(_, header)| header.kind == Kind::Events).collect();
        events.sort_by_key(|(_, header)| header.worker);
        let seen = events.last().map_or(1, |(_, header)| u32::from(header.worker) + 1);
        let said = run.workers.get(rank).copied().unwrap_or(1).min(WORKERS_MAX);
        let workers = seen.max(said);
        let mut profiles = vec![Profile::default(); workers as usize];
        for (worker, mut profile) in records.profiles {
            if let Some(place) = profiles.get_mut(usize::from(worker)) {
                renumber(&mut profile, &names);
                *place = profile;
            }
        }
        self.syncs.extend(records.syncs);
        self.steps.extend(records.steps);
        self.ranks.push(RankTrace {
            rank: run.rank,
            workers,
            host: run.hosts.get(rank).cloned().unwrap_or_default(),
            samples: records.samples,
            looks: records.looks,
            profiles,
            end: records.end,
            path: path.to_owned(),
            blocks: events,
            names: names.into(),
        });
        self.run.get_or_insert(run);
    }

    fn records(
        &mut self,
        path: &Path,
        file: &mut File,
        blocks: &[(u64, Header)],
        problems: &mut Vec<Problem>,
    ) -> Records {
        let mut records = Records::default();
        let (mut stored, mut raw) = (Vec::new(), Vec::new());
        for &(at, header) in blocks.iter().filter(|(_, header)| header.kind != Kind::Events) {
            let taken = self.taken.entry(header.kind).or_default();
            *taken = taken.saturating_add(size_of_records(&header));
            let most = records_max(header.kind);
            let read = if *taken > most {
                Err(format!("in all files they take more than {} MiB, the most that is read", most >> 20))
            } else {
                read_block(file, at, &header, &mut stored, &mut raw)
                    .and_then(|()| records.take(&header, &raw))
            };
            if let Err(why) = read {
                // Lost names of arrays do not count, because arrays have no such numbers.
                records.names_lost |= header.kind == Kind::Names && header.items > 0;
                let what = format!("the {} cannot be read: {why}", header.kind.name());
                problems.push(Problem { file: path.to_owned(), at, what });
            }
        }
        records
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

    pub(super) fn finish(mut self, path: &Path) -> Trace {
        let run = self.run.expect("a trace has a rank, and that a run record");
        self.ranks.sort_by_key(|rank| rank.rank);
        self.syncs.sort_by_key(|sync| sync.sync);
        self.steps.sort_by_key(|step| step.step);
        let there: BTreeSet<u32> = self.ranks.iter().map(|rank| rank.rank).collect();
        // A damaged record may state any number of ranks. A path to one file selects only that rank.
        let expected = if path.is_dir() { run.ranks } else { 0 };
        // A file that was left out is there, and its problem is already in the list.
        let left_out: BTreeSet<PathBuf> = self.problems.iter().map(|problem| problem.file.clone()).collect();
        let absent =
            (0..expected).filter(|rank| !there.contains(rank)).map(|rank| (rank, path.join(file_name(rank))));
        let missing = absent.filter(|(_, file)| !left_out.contains(file)).take(MISSING_MAX);
        for (rank, file) in missing {
            self.problems.push(Problem { file, at: 0, what: format!("the file of rank {rank} is missing") });
        }
        Trace {
            path: path.to_owned(),
            run,
            ranks: self.ranks,
            names: self.names,
            arrays: self.arrays,
            syncs: self.syncs,
            steps: self.steps,
            problems: self.problems,
            chunks: self.chunks,
        }
    }
}

impl Records {
    fn take(&mut self, header: &Header, raw: &[u8]) -> Result<(), String> {
        match header.kind {
            Kind::Run => self.run = Some(json(raw)?),
            Kind::Names => {
                let mut names: Names = json(raw)?;
                let found = names.names.len() + names.chunks.len();
                promised(found, header)?;
                self.names.chunks.append(&mut names.chunks);
                if self.names.arrays.is_empty() {
                    self.names.arrays = names.arrays;
                }
                if self.names_lost && !names.names.is_empty() {
                    return Err("earlier names are missing, so the numbers of these are unknown".into());
                }
                self.names.names.append(&mut names.names);
            }
            Kind::Syncs => self.syncs.append(&mut list(raw, header)?),
            Kind::Steps => self.steps.append(&mut list(raw, header)?),
            Kind::Samples => self.samples.append(&mut list(raw, header)?),
            Kind::Looks => self.looks.append(&mut list(raw, header)?),
            Kind::Profile => {
                let profile: Profile = json(raw)?;
                promised(profile.rows.len(), header)?;
                profile.check()?;
                self.profiles.insert(header.worker, profile);
            }
            Kind::End => self.end = Some(json(raw)?),
            Kind::Events | Kind::Index => {}
        }
        Ok(())
    }
}

/// Approximate size of a block's records in memory, which may be larger than their JSON.
fn size_of_records(header: &Header) -> u64 {
    let each = match header.kind {
        Kind::Names => 2 * size_of::<(ArrayId, u64, String)>(),
        Kind::Syncs => size_of::<SyncReport>(),
        Kind::Steps => size_of::<StepRecord>(),
        Kind::Samples => size_of::<Sample>(),
        Kind::Looks => size_of::<Look>(),
        Kind::Profile => size_of::<Row>(),
        Kind::Run | Kind::Events | Kind::End | Kind::Index => 0,
    };
    // A process or a worker in a list takes at least three bytes of JSON.
    let listed = match header.kind {
        Kind::Looks => size_of::<Taker>() as u64 / 3,
        Kind::Steps => size_of::<StepWorker>() as u64 / 3,
        _ => 0,
    };
    (u64::from(header.raw) * (1 + listed)).saturating_add(u64::from(header.items).saturating_mul(each as u64))
}

fn renumber(profile: &mut Profile, names: &[NameId]) {
    for row in &mut profile.rows {
        if let Activity::Kind(kind) = &mut row.activity {
            *kind = names.get(kind.0 as usize).copied().unwrap_or(NameId(u32::MAX));
        }
    }
}

fn json<T: DeserializeOwned>(raw: &[u8]) -> Result<T, String> {
    serde_json::from_slice(raw).map_err(|error| unreadable(&error))
}

fn unreadable(error: &serde_json::Error) -> String {
    format!("its JSON is not valid: {}", one_line(&error.to_string()))
}

fn promised(found: usize, header: &Header) -> Result<(), String> {
    if found == header.items as usize {
        return Ok(());
    }
    Err(format!("{found} records where {} should be", header.items))
}

/// Parses a list. Stops at the number of records in the header, by which the memory was computed.
fn list<T: DeserializeOwned>(raw: &[u8], header: &Header) -> Result<Vec<T>, String> {
    let mut from = serde_json::Deserializer::from_slice(raw);
    let records = List::<T> { most: header.items as usize, of: PhantomData };
    let records = from.deserialize_seq(records).map_err(|error| unreadable(&error))?;
    from.end().map_err(|error| unreadable(&error))?;
    promised(records.len(), header)?;
    Ok(records)
}

struct List<T> {
    most: usize,
    of: PhantomData<T>,
}

impl<'d, T: DeserializeOwned> Visitor<'d> for List<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a list of {} records", self.most)
    }

    fn visit_seq<A: SeqAccess<'d>>(self, mut from: A) -> Result<Vec<T>, A::Error> {
        let mut records = Vec::new();
        while let Some(record) = from.next_element()? {
            if records.len() == self.most {
                return Err(A::Error::invalid_length(records.len() + 1, &self));
            }
            records.push(record);
        }
        Ok(records)
    }
}

/// Shortens a text from a file to one line for a message.
fn one_line(text: &str) -> String {
    let mut line: String = text
        .chars()
        .take(LINE_MAX)
        .flat_map(|c| {
            let plain = (!c.is_control()).then_some(c);
            plain.into_iter().chain(c.is_control().then(|| c.escape_default()).into_iter().flatten())
        })
        .collect();
    if text.chars().nth(LINE_MAX).is_some() {
        line += "...";
    }
    line
}
