//! Checkpoints on disk: how a run that died goes on.
//!
//! A run with a [`Settings`] directory writes its state there now and then, while it goes on. [`Config::restart`] goes on from
//! the newest checkpoint of a directory, on any number of ranks and workers, as threads or processes.
//!
//! # Files
//!
//! | path | content |
//! |---|---|
//! | `DIR/lock` | locked while a run writes there |
//! | `DIR/000007.partial/` | a checkpoint that is being written, or was when the run died |
//! | `DIR/000007/rank-0`, ... | one file a rank |
//! | `DIR/000007/manifest` | written last: the arrays, and the length and checksum of each file (JSON) |
//!
//! The directory gets its name when all of it is on the disk. Files can be read by their owner only.
//!
//! # What a checkpoint has
//!
//! All chunks with their messages, reductions in progress, messages that wait for quiescence. Chunks restart on their home
//! ranks; [`Chunk::on_arrive`](crate::Chunk::on_arrive) is called as if they had moved there. A chunk's own random stream is
//! part of its state, as the program keeps it.
//!
//! Chunks have to be balanced while they run ([`Period`](crate::config::Period)): the state of syncs is not saved. No checkpoint
//! is made while messages wait for [`send_after`](crate::Ctx::send_after), nor of a program that reduces over sections or
//! spawns chunks. Pools and supersteps have none.
//!
//! [`Config::restart`]: crate::Config::restart

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::arrays::core::lifecycle::signature::ArraySignature;
use crate::ids::{ROOT, Rank};

/// The version of the files.
const FORMAT: u32 = 1;
const MANIFEST: &str = "manifest";
const LOCK: &str = "lock";
/// The longest manifest that is read, bytes.
const MANIFEST_MAX: u64 = 64 << 20;
const EXPECTED: &str = "expected DIR[,every=TIME][,keep=COUNT], as in checkpoints,every=10m,keep=3";

/// Where and how often a run writes checkpoints.
///
/// ```
/// use std::time::Duration;
/// use caribou::checkpoint::Settings;
/// let settings: Settings = "checkpoints,every=90s,keep=2".parse()?;
/// assert_eq!(settings, Settings::new("checkpoints").every(Duration::from_secs(90)).keep(2));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub(crate) dir: PathBuf,
    pub(crate) every: Duration,
    keep: u32,
}

impl Settings {
    /// A checkpoint every 10 minutes in this directory, which is made if it does not exist; the last 3 are kept.
    pub fn new(dir: impl Into<PathBuf>) -> Settings {
        Settings { dir: dir.into(), every: Duration::from_secs(600), keep: 3 }
    }

    /// The time from one checkpoint to the next.
    #[must_use]
    pub fn every(self, every: Duration) -> Settings {
        Settings { every, ..self }
    }

    /// The number of checkpoints that are kept, at least 1.
    #[must_use]
    pub fn keep(self, keep: u32) -> Settings {
        Settings { keep: keep.max(1), ..self }
    }
}

impl FromStr for Settings {
    type Err = String;

    fn from_str(text: &str) -> Result<Settings, String> {
        let mut parts = text.split(',');
        let dir = parts.next().filter(|dir| !dir.is_empty()).ok_or(EXPECTED)?;
        parts.try_fold(Settings::new(dir), |settings, part| {
            let wrong = || format!("`{part}` is not understood, {EXPECTED}");
            match part.split_once('=').ok_or_else(wrong)? {
                ("every", time) => Ok(settings.every(parse_time(time).ok_or_else(wrong)?)),
                ("keep", count) => {
                    let keep = count.parse().ok().filter(|&keep| keep > 0).ok_or_else(wrong)?;
                    Ok(settings.keep(keep))
                }
                _ => Err(wrong()),
            }
        })
    }
}

/// A number with a unit: ms, s, m or h; of at least 1 ms.
fn parse_time(text: &str) -> Option<Duration> {
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
    let (number, ms) = units.iter().find_map(|(unit, ms)| Some((text.strip_suffix(unit)?, ms)))?;
    let ms = number.parse::<u64>().ok()?.checked_mul(*ms)?;
    (ms > 0).then(|| Duration::from_millis(ms))
}

/// The file of a rank in a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Written {
    bytes: u64,
    crc: u32,
}

/// What a checkpoint is of, and how its files are recognised as whole.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) arrays: Vec<ArraySignature>,
    /// By rank.
    pub(crate) files: Vec<Written>,
    /// Time from the start of the run, ns.
    pub(crate) elapsed_ns: u64,
}

/// A manifest as it is in its file.
#[derive(Serialize, Deserialize)]
struct Versioned<M> {
    format: u32,
    caribou: String,
    #[serde(flatten)]
    manifest: M,
}

/// The directory of a run's checkpoints.
#[derive(Debug)]
pub(crate) struct Store {
    dir: PathBuf,
    keep: u32,
    /// On rank 0: held for as long as the run writes there.
    _lock: Option<File>,
}

impl Store {
    /// Makes the directory if it does not exist. Rank 0 makes sure that no other run writes there.
    pub(crate) fn new(settings: &Settings, rank: Rank) -> Result<Store, String> {
        let dir = settings.dir.clone();
        let fault = |what: &str, why: io::Error| format!("{} cannot be {what}: {why}", dir.display());
        DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(|why| fault("made", why))?;
        let lock = || {
            let path = dir.join(LOCK);
            let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
            let file = file.map_err(|why| fault("written", why))?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => Ok(file),
                Err(Errno::WOULDBLOCK) => Err(format!("another run writes to {}", dir.display())),
                Err(why) => Err(fault("locked", why.into())),
            }
        };
        let _lock = if rank == ROOT { Some(lock()?) } else { None };
        Ok(Store { _lock, keep: settings.keep, dir })
    }

    /// The number of the next checkpoint.
    pub(crate) fn next_number(&self) -> u64 {
        let newest = entries(&self.dir).into_iter().map(|(number, _)| number).max();
        newest.map_or(1, |number| number + 1)
    }

    fn partial(&self, number: u64) -> PathBuf {
        self.dir.join(format!("{number:06}.partial"))
    }

    /// Writes the file of a rank, to the disk.
    pub(crate) fn write_rank(&self, number: u64, rank: Rank, bytes: &[u8]) -> Result<Written, String> {
        let dir = self.partial(number);
        let path = dir.join(format!("rank-{rank}"));
        let write = || {
            DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
            write_new(&path, bytes)
        };
        write().map_err(|why| format!("{} cannot be written: {why}", path.display()))?;
        Ok(Written { bytes: bytes.len() as u64, crc: crc32fast::hash(bytes) })
    }

    /// All ranks have written their files: completes the checkpoint, and removes old ones.
    pub(crate) fn commit(&self, number: u64, manifest: &Manifest) -> Result<(), String> {
        let (partial, whole) = (self.partial(number), self.dir.join(format!("{number:06}")));
        let caribou = env!("CARGO_PKG_VERSION").to_owned();
        let versioned = Versioned { format: FORMAT, caribou, manifest };
        let commit = || {
            for (rank, file) in manifest.files.iter().enumerate() {
                let length = fs::metadata(partial.join(format!("rank-{rank}"))).map(|file| file.len());
                if !length.is_ok_and(|length| length == file.bytes) {
                    let why =
                        format!("the file of rank {rank} is not there: all processes must see one directory");
                    return Err(io::Error::other(why));
                }
            }
            let text = serde_json::to_vec(&versioned).map_err(io::Error::other)?;
            write_new(&partial.join(MANIFEST), &text)?;
            File::open(&partial)?.sync_all()?;
            fs::rename(&partial, &whole)?;
            File::open(&self.dir)?.sync_all()
        };
        commit().map_err(|why| format!("{} cannot be completed: {why}", whole.display()))?;
        self.remove_old(number);
        Ok(())
    }

    /// Removes what is left of a checkpoint that failed.
    pub(crate) fn abandon(&self, number: u64) {
        // One that cannot be removed does no harm: it is not whole.
        let _ = fs::remove_dir_all(self.partial(number));
    }

    fn remove_old(&self, newest: u64) {
        let partial =
            entries(&self.dir).into_iter().filter(|&(number, is_whole)| !is_whole && number < newest);
        partial.for_each(|(number, _)| self.abandon(number));
        for (_, path) in complete(&self.dir).into_iter().skip(self.keep as usize) {
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Writes a new file to the disk. A file or a link of that name is replaced, and no link is followed.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// The checkpoints of a directory: their numbers, and whether they have been completed. Other directories are not meant.
fn entries(dir: &Path) -> Vec<(u64, bool)> {
    let number = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let (digits, is_whole) = match name.strip_suffix(".partial") {
            Some(digits) => (digits, false),
            None => (name.as_str(), true),
        };
        let number: u64 = digits.parse().ok()?;
        let is_ours = digits == format!("{number:06}") && number < u64::MAX;
        let is_meant = is_ours && (!is_whole || entry.path().join(MANIFEST).exists());
        is_meant.then_some((number, is_whole))
    };
    fs::read_dir(dir).into_iter().flatten().flatten().filter_map(number).collect()
}

/// The numbers and paths of the checkpoints of a directory that have been completed, newest first.
fn complete(dir: &Path) -> Vec<(u64, PathBuf)> {
    let mut numbers: Vec<u64> =
        entries(dir).into_iter().filter_map(|(number, is_whole)| is_whole.then_some(number)).collect();
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    numbers.into_iter().map(|number| (number, dir.join(format!("{number:06}")))).collect()
}

/// The checkpoint that a restart begins from: the newest of a directory, or the directory itself if it is one. All ranks have
/// to begin from the same, so none falls back to an older one.
pub(crate) fn chosen(dir: &Path) -> Result<PathBuf, String> {
    if dir.join(MANIFEST).exists() {
        return Ok(dir.to_owned());
    }
    let newest = complete(dir).into_iter().next();
    newest.map(|(_, path)| path).ok_or_else(|| format!("{} has no complete checkpoint", dir.display()))
}

/// Reads a checkpoint: its manifest, and the files of the ranks that wrote it. The error offers an older one that is whole.
pub(crate) fn read(path: &Path) -> Result<(Manifest, Vec<Vec<u8>>), String> {
    read_whole(path).map_err(|why| {
        let number = |path: &Path| path.file_name()?.to_str()?.parse::<u64>().ok();
        let (parent, newest) = (path.parent().unwrap_or(path), number(path).unwrap_or(0));
        let mut older = complete(parent).into_iter().filter(|&(number, _)| number < newest);
        match older.find(|(_, path)| read_whole(path).is_ok()) {
            Some((_, older)) => format!("{why}; {} is whole: CARIBOU_RESTART may name it", older.display()),
            None => why,
        }
    })
}

fn read_whole(dir: &Path) -> Result<(Manifest, Vec<Vec<u8>>), String> {
    let path = dir.join(MANIFEST);
    let damaged = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let text = read_up_to(&path, MANIFEST_MAX).map_err(|why| damaged(&why))?;
    let versioned: Versioned<serde_json::Value> =
        serde_json::from_slice(&text).map_err(|why| damaged(&why))?;
    if versioned.format != FORMAT {
        let (format, caribou) = (versioned.format, versioned.caribou);
        return Err(damaged(&format!(
            "format {format}, of Caribou {caribou}; this one reads format {FORMAT}"
        )));
    }
    let manifest: Manifest = serde_json::from_value(versioned.manifest).map_err(|why| damaged(&why))?;
    let file = |(rank, written): (usize, &Written)| {
        let path = dir.join(format!("rank-{rank}"));
        let damaged = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        let bytes = read_up_to(&path, written.bytes).map_err(|why| damaged(&why))?;
        let found = Written { bytes: bytes.len() as u64, crc: crc32fast::hash(&bytes) };
        let is_whole = found == *written;
        is_whole
            .then_some(bytes)
            .ok_or_else(|| damaged(&"it is not what was written: length or checksum differ"))
    };
    let files = manifest.files.iter().enumerate().map(file).collect::<Result<_, String>>()?;
    Ok((manifest, files))
}

/// Reads a file of at most so many bytes, checked before memory is taken.
fn read_up_to(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    if length > most {
        return Err(io::Error::other(format!("{length} bytes, expected at most {most}")));
    }
    let mut bytes = Vec::with_capacity(length as usize);
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temporary(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("caribou-checkpoint-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        dir
    }

    fn make(store: &Store, number: u64, files: [&[u8]; 2]) {
        let written = (0..).map(Rank).zip(files).map(|(rank, bytes)| store.write_rank(number, rank, bytes));
        let files = written.collect::<Result<_, _>>().expect("the directory is writable");
        store
            .commit(number, &Manifest { arrays: Vec::new(), files, elapsed_ns: number })
            .expect("it is complete");
    }

    #[test]
    fn settings_are_read_and_faults_name_the_part() {
        let settings: Settings = "a/b,keep=1,every=5m".parse().expect("it is right");
        assert_eq!(settings, Settings::new("a/b").keep(1).every(Duration::from_secs(300)));
        for (text, part) in
            [("", "DIR"), ("a,keep=0", "`keep=0`"), ("a,every=5", "`every=5`"), ("a,b", "`b`")]
        {
            let why = text.parse::<Settings>().expect_err(text);
            assert!(why.contains(part) && why.contains("every=10m"), "{text}: {why}");
        }
    }

    #[test]
    fn the_newest_whole_checkpoint_is_read_and_old_ones_are_removed() {
        let dir = temporary("newest");
        let store = Store::new(&Settings::new(&dir).keep(2), ROOT).expect("it can be made");
        assert_eq!(store.next_number(), 1);
        for number in 1..=3 {
            make(&store, number, [b"first", &[number as u8]]);
        }
        // One that was being written when the run died.
        store.write_rank(4, Rank(0), b"half").expect("it can be written");
        assert_eq!(store.next_number(), 5);
        // Directories of the user are left alone.
        for name in ["7", "202411", "notes"] {
            fs::create_dir(dir.join(name)).expect("it can be made");
        }
        let (manifest, files) = read(&chosen(&dir).expect("there is one")).expect("it is whole");
        assert_eq!((manifest.elapsed_ns, files), (3, vec![b"first".to_vec(), vec![3]]));
        let mut numbers = entries(&dir);
        numbers.sort_unstable();
        assert_eq!(numbers, [(2, true), (3, true), (4, false)]);
        fs::remove_dir_all(dir).expect("it is there");
    }

    #[test]
    fn a_damaged_checkpoint_is_named_and_the_one_before_is_offered() {
        let dir = temporary("damaged");
        let store = Store::new(&Settings::new(&dir), ROOT).expect("it can be made");
        make(&store, 1, [b"one", b"two"]);
        make(&store, 2, [b"one", b"two"]);
        fs::write(dir.join("000002/rank-1"), b"twO").expect("it is there");
        let why = read(&chosen(&dir).expect("there is one")).expect_err("it is damaged");
        let parts = ["000002/rank-1", "checksum", "000001 is whole"];
        assert!(parts.iter().all(|part| why.contains(part)), "{why}");
        let older = chosen(&dir.join("000001")).expect("it is one itself");
        assert!(read(&older).is_ok());
        fs::write(dir.join("000001/manifest"), b"{}").expect("it is there");
        let why = read(&older).expect_err("it is damaged");
        assert!(why.contains("000001/manifest") && !why.contains("is whole"), "{why}");
        let why = chosen(&dir.join("lock")).expect_err("it is a file");
        assert!(why.contains("no complete checkpoint"), "{why}");
        fs::remove_dir_all(dir).expect("it is there");
    }

    #[test]
    fn a_file_that_rank_0_does_not_see_fails_the_checkpoint() {
        let dir = temporary("apart");
        let store = Store::new(&Settings::new(&dir), ROOT).expect("it can be made");
        let written = store.write_rank(1, Rank(0), b"state").expect("it can be written");
        let manifest = Manifest { arrays: Vec::new(), files: vec![written; 2], elapsed_ns: 0 };
        let why = store.commit(1, &manifest).expect_err("rank 1 has written elsewhere");
        assert!(why.contains("rank 1") && why.contains("one directory"), "{why}");
        fs::remove_dir_all(dir).expect("it is there");
    }

    #[test]
    fn two_runs_do_not_write_to_one_directory() {
        let dir = temporary("two");
        let first = Store::new(&Settings::new(&dir), ROOT).expect("it can be made");
        assert!(Store::new(&Settings::new(&dir), Rank(1)).is_ok(), "another rank of the run");
        let why = Store::new(&Settings::new(&dir), ROOT).expect_err("it is locked");
        assert!(why.contains("another run"), "{why}");
        drop(first);
        assert!(Store::new(&Settings::new(&dir), ROOT).is_ok());
        fs::remove_dir_all(dir).expect("it is there");
    }

    #[test]
    fn a_link_in_the_place_of_a_file_is_replaced_and_not_followed() {
        let dir = temporary("link");
        let store = Store::new(&Settings::new(dir.join("store")), ROOT).expect("it can be made");
        let victim = dir.join("victim");
        fs::write(&victim, b"precious").expect("it can be written");
        fs::create_dir_all(dir.join("store/000001.partial")).expect("it can be made");
        std::os::unix::fs::symlink(&victim, dir.join("store/000001.partial/rank-0")).expect("it can be made");
        store.write_rank(1, Rank(0), b"state").expect("it can be written");
        assert_eq!(fs::read(&victim).expect("it is there"), b"precious");
        fs::remove_dir_all(dir).expect("it is there");
    }
}
