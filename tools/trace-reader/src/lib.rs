//! Reads traces, for the `caribou` command. It also reads truncated traces, and damaged traces as far as possible.
//!
//! Files are not trusted. Lengths are bounded before memory is allocated, and each block has a checksum. [`Stream`]
//! checks its events: their times are in order and at most [`TIME_MAX_NS`]. Records in JSON are not checked, so their
//! figures may have any value.

mod blocks;
mod builder;
mod stream;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use blocks::Blocks;
use builder::{TraceBuilder, files_of};
use caribou::trace::block::Header;
use caribou::trace::{
    Activity, ArrayId, ChunkId, End, Event, Look, Name, NameId, Profile, RUNTIME, RunRecord, Sample,
    StepRecord, SyncReport, TIME_MAX_NS,
};
pub use stream::Stream;

/// Reason that there is no trace: one line with the fault, its place and the expected form.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// Name another file or directory.
    #[error("{}: {why}", path.display())]
    NotATrace {
        /// The file.
        path: PathBuf,
        /// The fault in the file.
        why: String,
    },
    /// Name one of the runs.
    #[error("{}: {} runs are in there, name one of them: {}", path.display(), runs.len(), runs.join(", "))]
    SeveralRuns {
        /// The directory.
        path: PathBuf,
        /// The runs in the directory.
        runs: Vec<String>,
    },
    /// Name a file or directory that the system can read.
    #[error("{}: cannot be read: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// A fault of a trace that does not prevent reading the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file with the fault.
    pub file: PathBuf,
    /// Offset in the file, in bytes.
    pub at: u64,
    /// The fault and its consequence.
    pub what: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: byte {}: {}", self.file.display(), self.at, self.what)
    }
}

/// A recorded run.
///
/// ```
/// use caribou::trace::{End, Event, RunRecord, What, Writer};
/// use trace_reader::Trace;
///
/// let dir = std::env::temp_dir().join(format!("caribou-doc-reader-{}", std::process::id()));
/// let run = RunRecord { ranks: 1, workers: vec![1], ..RunRecord::default() };
/// let mut writer = Writer::create(&dir, &run)?;
/// writer.events(0, &[Event { begin_ns: 0, end_ns: 70, what: What::Idle }])?;
/// writer.finish(&End { elapsed_ns: 70, ..End::default() })?;
///
/// let trace = Trace::open(&dir)?;
/// assert_eq!(trace.ranks[0].stream(0).map(|event| event.duration_ns()).sum::<u64>(), 70);
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Trace {
    /// The path that was opened.
    pub path: PathBuf,
    /// The record of the run.
    pub run: RunRecord,
    /// Records of ranks, in rank order. Ranks may be missing.
    pub ranks: Vec<RankTrace>,
    /// Table of all names. Events of all ranks refer to it.
    pub names: Vec<Name>,
    /// Names of the arrays, by array number.
    pub arrays: Vec<String>,
    /// Reports of syncs, in order.
    pub syncs: Vec<SyncReport>,
    /// Steps of a program in supersteps, in order. Their records may contain any numbers.
    pub steps: Vec<StepRecord>,
    /// Faults found while opening. Faults of events are found only when events are read.
    pub problems: Vec<Problem>,
    chunks: FxHashMap<ChunkId, String>,
}

/// The trace of one rank.
#[derive(Debug)]
#[non_exhaustive]
pub struct RankTrace {
    /// The number of the rank.
    pub rank: u32,
    /// Number of its workers.
    pub workers: u32,
    /// Host on which it ran.
    pub host: String,
    /// Its measurements of itself, in order.
    pub samples: Vec<Sample>,
    /// Processes observed on its vCPUs when it lost much time, in order.
    pub looks: Vec<Look>,
    /// The profile of each worker, empty if the worker has none.
    pub profiles: Vec<Profile>,
    /// The record of its end; none if the trace was cut off.
    pub end: Option<End>,
    /// The file of this rank.
    pub path: PathBuf,
    /// Offset and header of each block of events, by worker, in the order of the file.
    blocks: Blocks,
    /// Number of each name of this file in [`Trace::names`].
    names: Arc<[NameId]>,
}

impl Trace {
    /// Opens a trace: the directory of a run, a directory with one run in it, or the file of one rank.
    ///
    /// Reads all but the events. Takes O(blocks + records) time and memory.
    ///
    /// # Errors
    /// [`TraceError`] if nothing can be read. Faults of parts are in [`problems`](Self::problems).
    pub fn open(path: &Path) -> Result<Trace, TraceError> {
        let files = files_of(path)?;
        let mut opening = TraceBuilder::default();
        let mut refused = Vec::new();
        for file in files {
            if let Err(error) = opening.rank(&file) {
                refused.push((file, error));
            }
        }
        if opening.ranks.is_empty() && !refused.is_empty() {
            return Err(refused.swap_remove(0).1);
        }
        let left_out = refused.into_iter().map(|(file, error)| {
            let why = match error {
                TraceError::NotATrace { why, .. } => why,
                TraceError::Io { source, .. } => format!("it cannot be read: {source}"),
                several @ TraceError::SeveralRuns { .. } => several.to_string(),
            };
            Problem { file, at: 0, what: format!("left out: {why}") }
        });
        opening.problems.extend(left_out);
        Ok(opening.finish(path))
    }

    /// Time in ns from the begin of the run to the last record.
    #[must_use]
    pub fn elapsed_ns(&self) -> u64 {
        let ends = self.ranks.iter().filter_map(|rank| rank.end.as_ref()).map(|end| end.elapsed_ns);
        let events = self.ranks.iter().flat_map(|rank| &rank.blocks).map(|(_, header)| header.last_ns);
        let profiles = self.ranks.iter().flat_map(|rank| &rank.profiles).map(|profile| {
            let bins = profile.rows.iter().map(|row| row.ns.len()).max().unwrap_or(0) as u64;
            bins.saturating_sub(1).saturating_mul(profile.bin_ns)
        });
        // Where the end of a run is recorded, its last samples may be later.
        let cut = self.ranks.iter().filter(|rank| rank.end.is_none());
        let samples = cut.flat_map(|rank| &rank.samples).map(|sample| sample.at_ns);
        let known = ends.chain(events).chain(profiles).chain(samples).max().unwrap_or(0);
        known.min(TIME_MAX_NS)
    }

    /// Number of recorded events of all ranks.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.ranks.iter().map(RankTrace::events).sum()
    }

    /// Number of dropped events of all ranks.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        let ends = self.ranks.iter().filter_map(|rank| rank.end.as_ref());
        ends.fold(0, |sum, end| sum.saturating_add(end.dropped))
    }

    /// The name of a chunk, such as `Block[3, 4]`.
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

    /// The index of a chunk as text, if it is known.
    #[must_use]
    pub fn chunk_index(&self, chunk: ChunkId) -> Option<&str> {
        self.chunks.get(&chunk).map(String::as_str)
    }

    /// The name of an array.
    #[must_use]
    pub fn array_name(&self, array: ArrayId) -> String {
        self.arrays.get(array.index()).cloned().unwrap_or_else(|| format!("array {array}"))
    }

    /// The name of a message kind with its array (`Block::Halo`), or of a mark, span or counter.
    #[must_use]
    pub fn name(&self, id: NameId) -> String {
        match self.names.get(id.0 as usize) {
            Some(Name { array: Some(array), text }) => format!("{}::{text}", self.array_name(*array)),
            Some(Name { array: None, text }) => text.clone(),
            None => format!("name {}", id.0),
        }
    }

    /// The name of an activity in tables.
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

    /// Passes each event to `visit`: rank by rank, worker by worker, in the order of the worker. Returns what could not
    /// be read. Takes as much memory as one block.
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
    /// Number of recorded events.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.blocks.iter().map(|(_, header)| u64::from(header.items)).sum()
    }

    /// The events of one worker, in order.
    #[must_use]
    pub fn stream(&self, worker: u32) -> Stream {
        self.stream_between(worker, 0, u64::MAX)
    }

    /// The events of one worker in the blocks that overlap a span of time. Some events may be outside of it.
    #[must_use]
    pub fn stream_between(&self, worker: u32, from_ns: u64, to_ns: u64) -> Stream {
        let first = self.blocks.partition_point(|(_, header)| u32::from(header.worker) < worker);
        let of_worker =
            self.blocks[first..].iter().take_while(|(_, header)| u32::from(header.worker) == worker);
        let touches = |header: &Header| header.first_ns <= to_ns && header.last_ns >= from_ns;
        let blocks = of_worker.copied().filter(|(_, header)| touches(header)).collect();
        Stream::new(self.path.clone(), blocks, self.names.clone())
    }

    /// Reads the headers of all blocks and returns those that differ from the index of the file. Their bytes have
    /// changed, but no data is lost.
    #[must_use]
    pub fn differing_headers(&self) -> Vec<Problem> {
        let problem = |(at, what)| Problem { file: self.path.clone(), at, what };
        let opened = File::open(&self.path).and_then(|file| Ok((file.metadata()?.len(), file)));
        match opened {
            Ok((length, mut file)) => {
                blocks::differing_headers(&mut file, length).into_iter().map(problem).collect()
            }
            Err(error) => vec![problem((0, format!("cannot be read: {error}")))],
        }
    }

    /// Size of the file in bytes; 0 if it is unknown.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |metadata| metadata.len())
    }
}
