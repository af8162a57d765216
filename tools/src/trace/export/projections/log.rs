//! Writes the logs of Projections: one file per row, with records in order of time and an event counter.
//!
//! There may be more rows than a process can have open files. So each row buffers its lines and opens its file only
//! when the buffer is full. Large files are compressed at the end, one by one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::record::{NUMBER_MAX, Record, Source};
use crate::Error;

/// Size of a row's buffer in bytes.
const BUFFER: usize = 64 << 10;
/// Size in bytes above which a log is compressed.
const PLAIN_MAX: u64 = 1 << 20;

/// The log of one row.
pub(super) struct Log {
    path: PathBuf,
    row: u32,
    buffer: Vec<u8>,
    /// Time of the last record. No later record may have an earlier time.
    last_us: u64,
    event: u32,
    /// CPU time of the row so far.
    pub(super) cpu_ns: u64,
}

impl Log {
    pub(super) fn create(dir: &Path, base: &str, row: u32) -> Result<Log, Error> {
        let path = dir.join(format!("{base}.{row}.log"));
        File::create_new(&path).map_err(|source| Error::Unwritable { file: path.clone(), source })?;
        let buffer = b"PROJECTIONS-RECORD 0\n".to_vec();
        let mut log = Log { path, row, buffer, last_us: 0, event: 0, cpu_ns: 0 };
        log.write(0, &Record::BeginComputation)?;
        Ok(log)
    }

    /// The number of the next event of this row.
    pub(super) fn next_event(&mut self) -> Result<u32, Error> {
        if self.event >= NUMBER_MAX - 1 {
            let why =
                format!("row {} has more events than Projections can count: choose with --time", self.row);
            return Err(Error::Usage(why));
        }
        self.event += 1;
        Ok(self.event)
    }

    /// A source for a message that no row sent.
    pub(super) fn own_source(&mut self, bytes: u64) -> Result<Source, Error> {
        Ok(Source { row: self.row, event: self.next_event()?, bytes })
    }

    /// CPU time of the row so far, in us.
    pub(super) fn cpu_us(&self) -> u64 {
        self.cpu_ns / 1000
    }

    pub(super) fn write(&mut self, at_us: u64, record: &Record) -> Result<(), Error> {
        self.last_us = self.last_us.max(at_us);
        record.write(self.last_us, &mut self.buffer)?;
        if self.buffer.len() < BUFFER { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> Result<(), Error> {
        let written = OpenOptions::new()
            .append(true)
            .open(&self.path)
            .and_then(|mut file| file.write_all(&self.buffer));
        self.buffer.clear();
        written.map_err(|source| Error::Unwritable { file: self.path.clone(), source })
    }

    /// Time of the last record, in us.
    pub(super) fn last_us(&self) -> u64 {
        self.last_us
    }

    /// Ends the log at the common end of all logs. Returns the size of the file.
    pub(super) fn finish(mut self, end_us: u64) -> Result<u64, Error> {
        self.write(end_us, &Record::EndComputation)?;
        self.flush()?;
        let compressed = compress_if_large(&self.path);
        compressed.map_err(|source| Error::Unwritable { file: self.path, source })
    }
}

fn compress_if_large(path: &Path) -> io::Result<u64> {
    let size = fs::metadata(path)?.len();
    if size <= PLAIN_MAX {
        return Ok(size);
    }
    let packed = path.with_extension("log.gz");
    let mut encoder = GzEncoder::new(BufWriter::new(File::create_new(&packed)?), Compression::default());
    io::copy(&mut BufReader::new(File::open(path)?), &mut encoder)?;
    encoder.finish()?.flush()?;
    fs::remove_file(path)?;
    Ok(fs::metadata(&packed)?.len())
}
