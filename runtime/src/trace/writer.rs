//! Writes the trace file of one rank.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};
use serde::Serialize;

use super::block::{Block, HEADER, Header, INDEX_MAGIC, INDEXED_MAX, Kind, MAGIC, RAW_MAX};
use super::encoding::Encoder;
use super::event::{ChunkId, Event};
use super::profile::Profile;
use super::records::{End, Name, Names, RunRecord};
use crate::measure::records::{Look, Sample};
use crate::trace::{StepRecord, SyncReport};
use crate::warn::warn;

/// Maximum number of chunk names in one block.
const NAMES_MAX: usize = 16_384;

/// The trace file of one rank, while it is written.
///
/// Records are in the file when a call returns, so a process that dies leaves a trace that can be read up to there. The
/// runtime writes traces if `CARIBOU_TRACE` is set. Programs can use this type to write traces themselves.
///
/// ```
/// use caribou::trace::{End, Event, RunRecord, What, Writer};
/// let dir = std::env::temp_dir().join(format!("caribou-doc-{}", std::process::id()));
/// let run = RunRecord { ranks: 1, workers: vec![1], ..RunRecord::default() };
/// let mut writer = Writer::create(&dir, &run)?;
/// writer.events(0, &[Event { begin_ns: 0, end_ns: 70, what: What::Idle }])?;
/// let path = writer.path().to_owned();
/// writer.finish(&End { elapsed_ns: 70, ..End::default() })?;
/// assert!(std::fs::read(path)?.starts_with(b"caribou-trace 2\n"));
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Writer {
    file: File,
    path: PathBuf,
    at: u64,
    /// The file size limit (`ulimit -f`), bytes. One more byte would end the process.
    bytes_max: u64,
    /// Position and header of each block.
    blocks: Vec<(u64, Header)>,
    /// True if the reports of ranks to a sync were left out.
    shortened: bool,
}

/// The name of a rank's file.
#[must_use]
pub fn file_name(rank: u32) -> String {
    format!("rank-{rank:05}.trace")
}

impl Writer {
    /// Creates the file of the rank in `run`, and its directory if that does not exist.
    ///
    /// # Errors
    /// Errors of the file system; `AlreadyExists` if the directory has a trace of this rank.
    pub fn create(dir: &Path, run: &RunRecord) -> io::Result<Writer> {
        fs::create_dir_all(dir)?;
        let path = dir.join(file_name(run.rank));
        let file = File::create_new(&path)?;
        let bytes_max = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
        let mut writer = Writer { file, path, at: 0, bytes_max, blocks: Vec::new(), shortened: false };
        writer.append(MAGIC)?;
        writer.record(Kind::Run, 0, 1, run)?;
        Ok(writer)
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes written so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.at
    }

    /// Writes a block.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn write(&mut self, block: &Block) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(HEADER + block.bytes.len());
        bytes.extend_from_slice(&block.header.to_bytes());
        bytes.extend_from_slice(&block.bytes);
        let at = self.at;
        self.append(&bytes)?;
        self.blocks.push((at, block.header));
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let end = self.at + bytes.len() as u64;
        if end > self.bytes_max {
            let why = format!("a file may have at most {} bytes here (`ulimit -f`)", self.bytes_max);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        self.file.write_all(bytes)?;
        self.at = end;
        Ok(())
    }

    fn record<T: Serialize>(&mut self, kind: Kind, worker: u32, items: usize, record: &T) -> io::Result<()> {
        self.json(kind, worker, items, &serde_json::to_vec(record)?)
    }

    fn json(&mut self, kind: Kind, worker: u32, items: usize, json: &[u8]) -> io::Result<()> {
        if json.len() > RAW_MAX {
            let why = format!("{} of {} bytes, expected at most {RAW_MAX} bytes", kind.name(), json.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        self.write(&Block::new(kind, worker, items, (0, 0), json))
    }

    /// Writes names, which get the next numbers.
    pub fn names(&mut self, names: &[Name]) -> io::Result<()> {
        self.write_names(&Names { names: names.to_vec(), ..Names::default() })
    }

    /// Writes the names of all arrays, in their order.
    pub fn arrays(&mut self, arrays: &[String]) -> io::Result<()> {
        self.write_names(&Names { arrays: arrays.to_vec(), ..Names::default() })
    }

    /// Writes the indices of chunks as text for people.
    pub fn chunks(&mut self, chunks: &[(ChunkId, String)]) -> io::Result<()> {
        chunks.chunks(NAMES_MAX).try_for_each(|some| {
            let chunks = some.iter().map(|(chunk, text)| (chunk.array, chunk.key, text.clone())).collect();
            self.write_names(&Names { chunks, ..Names::default() })
        })
    }

    fn write_names(&mut self, names: &Names) -> io::Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        self.record(Kind::Names, 0, names.names.len() + names.chunks.len(), names)
    }

    /// Writes events of one worker, in the order of their ends, as one block.
    ///
    /// # Panics
    /// If the events do not fit in a block, which is possible from about 40 000 events on.
    pub fn events(&mut self, worker: u32, events: &[Event]) -> io::Result<()> {
        if events.is_empty() {
            return Ok(());
        }
        let (mut encoder, mut bytes) = (Encoder::default(), Vec::with_capacity(16 * events.len()));
        events.iter().for_each(|event| encoder.encode(event, &mut bytes));
        self.write(&Block::new(Kind::Events, worker, events.len(), times_of(events), &bytes))
    }

    /// Writes records of syncs. Each record with the reports of ranks gets a separate block. If such a record does not
    /// fit, its reports are left out, with a warning.
    pub fn syncs(&mut self, syncs: &[SyncReport]) -> io::Result<()> {
        let together =
            |one: &SyncReport, next: &SyncReport| one.reported.is_none() && next.reported.is_none();
        syncs.chunk_by(together).try_for_each(|some| self.block_of_syncs(some))
    }

    fn block_of_syncs(&mut self, syncs: &[SyncReport]) -> io::Result<()> {
        let json = serde_json::to_vec(syncs)?;
        match syncs {
            [sync] if sync.reported.is_some() && json.len() > RAW_MAX => {
                self.warn_shortened(sync.sync, json.len());
                self.record(Kind::Syncs, 0, 1, &[SyncReport { reported: None, ..sync.clone() }])
            }
            _ => self.json(Kind::Syncs, 0, syncs.len(), &json),
        }
    }

    /// Warns the first time that reports are left out.
    fn warn_shortened(&mut self, sync: u64, bytes: usize) {
        if !std::mem::replace(&mut self.shortened, true) {
            let file = self.path.display();
            warn(&format!(
                "{file} lacks the reports of ranks for sync {sync}, and for other long syncs: they would have {bytes} \
                 bytes, expected at most {RAW_MAX} bytes"
            ));
        }
    }

    /// Writes samples.
    pub fn samples(&mut self, samples: &[Sample]) -> io::Result<()> {
        if samples.is_empty() { Ok(()) } else { self.record(Kind::Samples, 0, samples.len(), &samples) }
    }

    /// Writes records of steps, in as many blocks as they need.
    pub fn steps(&mut self, steps: &[StepRecord]) -> io::Result<()> {
        let json = serde_json::to_vec(steps)?;
        match steps.len() {
            0 => Ok(()),
            count if count > 1 && json.len() > RAW_MAX => {
                let (former, latter) = steps.split_at(count / 2);
                self.steps(former).and_then(|()| self.steps(latter))
            }
            count => self.json(Kind::Steps, 0, count, &json),
        }
    }

    /// Writes which processes were seen on the rank's vCPUs.
    pub fn looks(&mut self, looks: &[Look]) -> io::Result<()> {
        if looks.is_empty() { Ok(()) } else { self.record(Kind::Looks, 0, looks.len(), &looks) }
    }

    /// Writes the current profile of one worker, coarser if it is too large for a block.
    pub fn profile(&mut self, worker: u32, profile: &Profile) -> io::Result<()> {
        let mut profile = profile.clone();
        let bytes = |profile: &Profile| serde_json::to_vec(profile).map_or(0, |json| json.len());
        while bytes(&profile) > RAW_MAX && profile.rows.iter().any(|row| row.ns.len() > 1) {
            profile.merge_bins();
        }
        self.record(Kind::Profile, worker, profile.rows.len(), &profile)
    }

    /// Writes the end of the run, and the index.
    pub fn finish(mut self, end: &End) -> io::Result<()> {
        self.record(Kind::End, 0, 1, end)?;
        let mut index = Vec::with_capacity(self.blocks.len() * (HEADER + 8));
        for (at, header) in &self.blocks {
            index.extend_from_slice(&at.to_le_bytes());
            index.extend_from_slice(&header.to_bytes());
        }
        if self.blocks.len() > INDEXED_MAX {
            // Readers find the blocks one after the other.
            return Ok(());
        }
        let at = self.at;
        self.write(&Block::new(Kind::Index, 0, self.blocks.len(), (0, 0), &index))?;
        self.append(&at.to_le_bytes())?;
        self.append(INDEX_MAGIC)
    }
}

/// The earliest begin and the latest end of these events.
pub(crate) fn times_of(events: &[Event]) -> (u64, u64) {
    let first_ns = events.iter().map(|event| event.begin_ns).min().unwrap_or(0);
    let last_ns = events.iter().map(|event| event.end_ns).max().unwrap_or(0);
    (first_ns, last_ns)
}
