//! The record of one rank, which its workers write and the monitor reads.
//!
//! All locks are held for a short time and taken rarely. A worker adds what its [`Recorder`](super::recorder::Recorder)
//! has buffered every 0.2 ms, and when a block of events is full. One lock covers the file. Names are written before
//! the events that use them.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crossbeam_utils::CachePadded;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::activity_board::AtWork;
use super::block::{Block, Header};
use super::event::{ArrayId, ChunkId, Event, NameId, What};
use super::filter::{Class, Filter};
use super::profile::Profile;
use super::queued_bytes::QueuedBytes;
use super::records::{End, Name, RunRecord};
use super::writer::Writer;
use crate::error::Error;
use crate::ids::{Rank, WorkerId};
use crate::measure::records::{Look, Sample};
use crate::trace::{StepRecord, StepsSoFar, SyncReport, SyncTotals};
use crate::warn::warn;

/// Maximum number of samples in memory. When it is reached, samples are merged in pairs.
const SAMPLES_MAX: usize = 1024;
/// Number of latest syncs that are kept for the monitor.
const SYNCS_MAX: usize = 20;

/// What to record of a run, by the configuration.
#[derive(Clone, Debug)]
pub(crate) struct RecordingOptions {
    /// The directory of this run.
    pub(crate) dir: Option<PathBuf>,
    pub(crate) filter: Filter,
    /// Maximum bytes of a rank's file.
    pub(crate) bytes_max: u64,
    pub(crate) profile: bool,
}

/// How a rank spent its time. A [`Report`](crate::Report) has one profile per rank of this process.
///
/// ```
/// assert!(caribou::trace::RankProfile::default().workers.is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankProfile {
    /// The rank.
    pub rank: u32,
    /// The names of message kinds, by number.
    pub names: Vec<Name>,
    /// One profile per worker.
    pub workers: Vec<Profile>,
    /// The rank's samples, in order; coarser in a long run.
    pub samples: Vec<Sample>,
    /// Why the trace could not be written to the end, such as a full disk. None for a trace that reached its limit.
    pub broken: Option<String>,
}

/// A function that names a chunk for people; none if the array does not exist.
pub(crate) type NameChunk = Box<dyn Fn(ChunkId) -> Option<String> + Send + Sync>;

/// The record of one rank.
pub(crate) struct Recording {
    rank: Rank,
    pub(crate) profiled: bool,
    filter: Filter,
    /// True for arrays whose chunks are recorded.
    arrays: Vec<bool>,
    array_names: Vec<String>,
    /// The names of chunks, once they are known.
    pub(super) name_chunk: OnceLock<NameChunk>,
    /// The name of the strategy, once it is known.
    pub(super) strategy: OnceLock<String>,
    /// Number of iterations of the pool, once it is known; not set for arrays.
    pub(crate) iterations_total: OnceLock<u64>,
    /// The current activity of each worker, padded because each worker writes its own with every message.
    pub(crate) at_work: Vec<CachePadded<AtWork>>,
    /// The current activity of the strategy, if it decides on a separate thread.
    pub(crate) strategy_activity: AtWork,
    /// The bytes queued on this rank.
    pub(crate) waiting: Arc<QueuedBytes>,
    /// Workers of other processes may be executing something that workers of this process wait for.
    pub(crate) other_ranks_busy: AtomicBool,
    profiles: Vec<Mutex<Profile>>,
    names: Mutex<NameTable>,
    samples: Mutex<Vec<Sample>>,
    syncs: Mutex<Syncs>,
    steps: Mutex<StepsSoFar>,
    messages: AtomicU64,
    log: Option<Mutex<Log>>,
}

#[derive(Default)]
struct NameTable {
    numbers: FxHashMap<(Option<ArrayId>, &'static str), NameId>,
    names: Vec<Name>,
}

/// The latest syncs, and sums over all syncs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Syncs {
    pub(crate) latest: VecDeque<SyncReport>,
    pub(crate) total: u64,
    pub(crate) moved: u64,
}

/// The file, and the records that must be written before the next events.
struct Log {
    /// None after a write has failed.
    writer: Option<Writer>,
    /// The error of that write.
    broken: Option<String>,
    bytes_max: u64,
    names_written: usize,
    /// The end of the last event of worker 0 that was written.
    last_ns: u64,
    chunks: Vec<(ChunkId, String)>,
    dropped: u64,
}

impl Log {
    /// Tells whether no more records are written. Samples, syncs and names are `few`: they are still written after
    /// events have stopped, up to an eighth beyond the limit.
    fn is_full(&self, few: bool) -> bool {
        let bytes_max = self.bytes_max.saturating_add(if few { self.bytes_max / 8 } else { 0 });
        self.writer.as_ref().is_none_or(|writer| writer.bytes() >= bytes_max)
    }
}

impl Recording {
    /// The record of a rank in a run that records nothing.
    pub(crate) fn disabled_for(rank: Rank, workers: u32) -> Recording {
        Recording { rank, ..Recording::disabled(workers) }
    }

    /// The record of rank 0 in a run that records nothing.
    pub(crate) fn disabled(workers: u32) -> Recording {
        Recording {
            rank: Rank(0),
            profiled: false,
            filter: Filter::default(),
            arrays: Vec::new(),
            array_names: Vec::new(),
            name_chunk: OnceLock::new(),
            strategy: OnceLock::new(),
            iterations_total: OnceLock::new(),
            at_work: (0..workers).map(|_| CachePadded::new(AtWork::new())).collect(),
            strategy_activity: AtWork::new(),
            waiting: Arc::default(),
            other_ranks_busy: AtomicBool::new(false),
            profiles: (0..workers).map(|_| Mutex::default()).collect(),
            names: Mutex::default(),
            samples: Mutex::default(),
            syncs: Mutex::default(),
            steps: Mutex::default(),
            messages: AtomicU64::new(0),
            log: None,
        }
    }

    /// Begins a record, and creates the file if one is requested. If that fails, returns the error too.
    pub(crate) fn begin(
        wanted: &RecordingOptions,
        run: &RunRecord,
        arrays: &[String],
    ) -> (Recording, Option<Error>) {
        let workers = run.workers.get(run.rank as usize).copied().unwrap_or(1);
        let mut recording = Recording {
            rank: Rank(run.rank),
            profiled: wanted.profile || wanted.dir.is_some(),
            filter: wanted.filter.clone(),
            arrays: arrays.iter().map(|array| wanted.filter.keeps_array(array)).collect(),
            array_names: arrays.to_vec(),
            ..Recording::disabled(workers)
        };
        let Some(dir) = &wanted.dir else { return (recording, None) };
        let made = Writer::create(dir, run).and_then(|mut writer| writer.arrays(arrays).map(|()| writer));
        match made {
            Ok(writer) => {
                recording.log = Some(Mutex::new(Log {
                    writer: Some(writer),
                    broken: None,
                    bytes_max: wanted.bytes_max,
                    names_written: 0,
                    last_ns: 0,
                    chunks: Vec::new(),
                    dropped: 0,
                }));
                (recording, None)
            }
            Err(why) => (recording, Some(refused(dir, &why))),
        }
    }

    /// Sets the names of chunks and of the strategy.
    pub(crate) fn describe(&self, name_chunk: NameChunk, strategy: &str) {
        self.name_chunk.get_or_init(|| name_chunk);
        self.strategy.get_or_init(|| strategy.to_owned());
    }

    /// Tells whether events of this class are recorded.
    pub(crate) fn keeps(&self, class: Class) -> bool {
        self.log.is_some() && self.filter.keeps(class)
    }

    /// Tells whether any events are recorded.
    pub(crate) fn keeps_events(&self) -> bool {
        self.log.is_some() && self.filter.keeps_any()
    }

    /// See [`Filter::arrows`].
    pub(crate) fn arrows(&self) -> u32 {
        if self.log.is_some() { self.filter.arrows() } else { 0 }
    }

    pub(crate) fn keeps_array(&self, array: ArrayId) -> bool {
        self.arrays.get(array.index()).copied().unwrap_or(true)
    }

    /// The number of a name.
    pub(crate) fn name(&self, array: Option<ArrayId>, text: &'static str) -> NameId {
        let NameTable { numbers, names } = &mut *lock(&self.names);
        *numbers.entry((array, text)).or_insert_with(|| {
            names.push(Name { array, text: text.into() });
            NameId(names.len() as u32 - 1)
        })
    }

    /// Keeps the text of a chunk's index, for people.
    pub(crate) fn chunk(&self, chunk: ChunkId, text: String) {
        if let Some(log) = &self.log {
            let log = &mut *lock(log);
            if !log.is_full(true) {
                log.chunks.push((chunk, text));
            }
        }
    }

    pub(crate) fn profile(&self, worker: WorkerId) -> MutexGuard<'_, Profile> {
        lock(&self.profiles[worker.index()])
    }

    /// Writes a block of events of one worker, or counts them as dropped.
    pub(crate) fn write(&self, block: &Block) {
        let Some(log) = &self.log else { return };
        let log = &mut *lock(log);
        let Header { items, worker, last_ns, .. } = block.header;
        let full = log.is_full(false);
        if !full && self.in_file(log, |writer| writer.write(block)) {
            log.last_ns = if worker == 0 { last_ns } else { log.last_ns };
        } else {
            self.drop(log, u64::from(items));
        }
    }

    /// Writes `count` records that are not events.
    fn write_records(
        &self,
        log: &mut Log,
        count: usize,
        write: impl FnOnce(&mut Writer) -> std::io::Result<()>,
    ) {
        let full = log.is_full(true);
        if full || !self.in_file(log, write) {
            self.drop(log, count as u64);
        }
    }

    /// Counts records that were not written.
    fn drop(&self, log: &mut Log, records: u64) {
        if log.dropped == 0 && log.writer.is_some() {
            let (rank, bytes_max) = (self.rank, log.bytes_max);
            warn(&format!(
                "the trace of rank {rank} is full at {bytes_max} bytes: later records are dropped"
            ));
        }
        log.dropped += records;
    }

    /// Writes a block, after new names. If a write fails, no more is written to the file.
    fn in_file(&self, log: &mut Log, write: impl FnOnce(&mut Writer) -> std::io::Result<()>) -> bool {
        let Some(writer) = &mut log.writer else { return false };
        let new: Vec<Name> = lock(&self.names).names[log.names_written..].to_vec();
        let chunks = std::mem::take(&mut log.chunks);
        log.names_written += new.len();
        let names = if new.is_empty() { Ok(()) } else { writer.names(&new) };
        let written = names.and_then(|()| writer.chunks(&chunks)).and_then(|()| write(writer));
        if let Err(why) = &written {
            let file = writer.path().display().to_string();
            warn(&format!("the trace of rank {} cannot be continued: {file}: {why}", self.rank));
            log.broken = Some(format!("{file}: {why}"));
            log.writer = None;
        }
        written.is_ok()
    }

    /// Counts deliveries that were handled.
    pub(crate) fn count(&self, messages: u64) {
        self.messages.fetch_add(messages, Ordering::Relaxed);
    }

    /// Keeps a sample.
    pub(crate) fn sample(&self, sample: Sample) {
        let samples = &mut *lock(&self.samples);
        if samples.len() == SAMPLES_MAX {
            *samples = samples
                .chunks(2)
                .map(|pair| {
                    pair.iter().copied().reduce(|first, later| first.plus(&later)).unwrap_or_default()
                })
                .collect();
        }
        samples.push(sample);
        if let Some(log) = &self.log {
            self.write_records(&mut lock(log), 1, |writer| writer.samples(&[sample]));
        }
    }

    /// Tells whether there is a file.
    pub(crate) fn has_file(&self) -> bool {
        self.log.is_some()
    }

    /// Writes step records.
    pub(crate) fn steps(&self, steps: &[StepRecord]) {
        if let Some(log) = self.log.as_ref().filter(|_| !steps.is_empty()) {
            self.write_records(&mut lock(log), steps.len(), |writer| writer.steps(steps));
        }
    }

    /// Writes which processes ran on the rank's vCPUs. `look` is called only if there is a file.
    pub(crate) fn competing_processes(&self, look: impl FnOnce() -> Option<Look>) {
        if let Some(log) = &self.log
            && let Some(look) = look()
        {
            self.write_records(&mut lock(log), 1, |writer| writer.looks(&[look]));
        }
    }

    pub(crate) fn last_sample(&self) -> Option<Sample> {
        lock(&self.samples).last().copied()
    }

    /// Adds records of new syncs, in order, and sets the sums over all syncs. `new` gets the number of recorded syncs.
    pub(crate) fn syncs(&self, new: impl FnOnce(u64) -> (Vec<SyncReport>, SyncTotals)) {
        // Two workers of rank 0 may call this at once.
        let syncs = &mut *lock(&self.syncs);
        let (reports, totals) = new(syncs.total);
        if reports.is_empty() {
            return;
        }
        (syncs.total, syncs.moved) = (totals.syncs, totals.moved);
        syncs.latest.extend(reports.iter().map(|report| SyncReport { reported: None, ..report.clone() }));
        let more = syncs.latest.len().saturating_sub(SYNCS_MAX);
        syncs.latest.drain(..more);
        if let Some(log) = &self.log {
            self.write_records(&mut lock(log), reports.len(), |writer| writer.syncs(&reports));
        }
    }

    /// Updates the steps so far.
    pub(crate) fn stepped(&self, update: &mut dyn FnMut(&mut StepsSoFar)) {
        update(&mut lock(&self.steps));
    }

    pub(crate) fn steps_so_far(&self) -> StepsSoFar {
        lock(&self.steps).clone()
    }

    /// The latest records of syncs, and sums over all syncs.
    pub(crate) fn syncs_so_far(&self) -> Syncs {
        lock(&self.syncs).clone()
    }

    /// Ends the record: writes the profiles, the end and the index to the file.
    pub(crate) fn end(&self, end: End) -> RankProfile {
        let workers: Vec<Profile> = self.profiles.iter().map(|profile| lock(profile).clone()).collect();
        let mut broken = None;
        if let Some(log) = &self.log {
            let log = &mut *lock(log);
            if log.dropped > 0 {
                let what = What::Dropped { events: log.dropped };
                let last = Event::point(end.elapsed_ns.max(log.last_ns), what);
                self.in_file(log, |writer| writer.events(0, &[last]));
            }
            for (worker, profile) in (0..).zip(&workers) {
                self.in_file(log, |writer| writer.profile(worker, profile));
            }
            let messages = self.messages.load(Ordering::Relaxed);
            let end = End { dropped: log.dropped, messages, ..end };
            if let Some(writer) = log.writer.as_ref().filter(|writer| !writer.path().exists()) {
                log.broken =
                    Some(format!("{}: it was removed while it was written", writer.path().display()));
            }
            if let Some(Err(why)) = log.writer.take().map(|writer| writer.finish(&end)) {
                warn(&format!("the end of the trace of rank {} cannot be written: {why}", self.rank));
                log.broken = Some(format!("rank {}: {why}", self.rank));
            }
            broken = log.broken.take();
        }
        let (names, samples) = (lock(&self.names).names.clone(), lock(&self.samples).clone());
        RankProfile { rank: self.rank.0, names, workers, samples, broken }
    }

    pub(crate) fn names(&self) -> Vec<Name> {
        lock(&self.names).names.clone()
    }

    pub(crate) fn array_names(&self) -> &[String] {
        &self.array_names
    }

    pub(crate) fn rank(&self) -> Rank {
        self.rank
    }

    pub(crate) fn workers(&self) -> u32 {
        self.profiles.len() as u32
    }
}

fn refused(dir: &Path, why: &std::io::Error) -> Error {
    let why = match why.kind() {
        std::io::ErrorKind::AlreadyExists => {
            format!("{} already has a trace, expected another directory", dir.display())
        }
        _ => format!("{}: {why}", dir.display()),
    };
    Error::Config { setting: "CARIBOU_TRACE".into(), why }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
