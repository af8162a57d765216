//! The store of a run's checkpoints: a directory that the run locks, writes to and cleans up.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Once, PoisonError};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use rustix::process::Signal;

use super::packed::pack;
use super::saved::{Checksummed, MANIFEST, Manifest, Written, check_directory, complete, entries, numbered};
use super::settings::Settings;
use crate::ids::{ROOT, Rank};
use crate::warn::warn;

const LOCK: &str = "lock";
/// A file that exists from the beginning of a run until the run has its result.
const UNFINISHED: &str = "unfinished";
/// Bytes of a file that are written together.
const BUFFER_BYTES: usize = 256 << 10;

/// The directory of a run's checkpoints.
#[derive(Debug)]
pub(crate) struct Store {
    settings: Settings,
    /// On rank 0, the number of the run's first checkpoint; 0 on other ranks.
    first_number: u64,
    /// On rank 0, the lock that is held while the run writes to the directory.
    lock: Option<Mutex<File>>,
}

impl Store {
    /// Creates the directory if necessary. Rank 0 makes sure that no other run writes to it.
    pub(crate) fn new(settings: &Settings, rank: Rank) -> Result<Store, String> {
        let dir = &settings.dir;
        if dir.exists() {
            check_directory(dir)?;
        }
        make_directory(dir).map_err(|why| format!("{} cannot be created: {why}", dir.display()))?;
        survive_file_size_limit();
        let settings = settings.clone();
        if rank != ROOT {
            return Ok(Store { settings, first_number: 0, lock: None });
        }
        let lock = Some(Mutex::new(lock(dir)?));
        mark_unfinished(dir)?;
        let store = Store { first_number: next_number(dir), settings, lock };
        // Frees their space. Their numbers are not used again: a late process of that run may write there.
        store.remove_partial(u64::MAX);
        store.warn_of_another_run();
        Ok(store)
    }

    /// Warns if the first run of a process begins anew, so that it will remove the checkpoints of another run.
    fn warn_of_another_run(&self) {
        let Settings { dir, run, elapsed_before_ns, .. } = &self.settings;
        if *run == 0 && elapsed_before_ns.is_none() && !complete(dir).is_empty() {
            warn(&format!(
                "{} has checkpoints of another run: this run starts from the beginning, and replaces them with its own",
                dir.display()
            ));
        }
    }

    /// On rank 0: locks the directory again if it was removed and created anew, so that no other run writes to it.
    fn keep_lock(&self) -> Result<(), String> {
        let Some(held) = &self.lock else { return Ok(()) };
        let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_at(&held, &self.settings.dir.join(LOCK)) {
            *held = lock(&self.settings.dir)?;
        }
        Ok(())
    }

    /// On rank 0: the number of the run's first checkpoint.
    pub(crate) fn first_number(&self) -> u64 {
        self.first_number
    }

    fn partial(&self, number: u64) -> PathBuf {
        self.settings.dir.join(format!("{number:06}.partial"))
    }

    /// Writes the file of a rank, compressed, to the disk.
    pub(crate) fn write_rank(
        &self,
        number: u64,
        rank: Rank,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<Written, String> {
        let dir = self.partial(number);
        let path = dir.join(format!("rank-{rank}"));
        let write_file = || -> io::Result<Written> {
            make_directory(&self.settings.dir)?;
            self.keep_lock().map_err(io::Error::other)?;
            make_directory(&dir)?;
            let mut content = 0;
            let mut written = write_new(&path, |out| {
                content = pack(out, write)?;
                Ok(())
            })?;
            written.content = content;
            Ok(written)
        };
        write_file().map_err(|why| format!("{} cannot be written: {why}", path.display()))
    }

    /// Completes a checkpoint whose files are all written, and removes old ones. Returns its name.
    fn commit(&self, number: u64, manifest: Manifest) -> Result<String, String> {
        let Settings { dir, keep: _, every: _, run, program, elapsed_before_ns } = &self.settings;
        let elapsed_ns = elapsed_before_ns.unwrap_or(0).saturating_add(manifest.elapsed_ns);
        let manifest = &Manifest { run: *run, program: program.clone(), elapsed_ns, ..manifest };
        let (partial, whole) = (self.partial(number), dir.join(format!("{number:06}")));
        let commit = || {
            self.keep_lock().map_err(io::Error::other)?;
            let writer = manifest.content.writer();
            for (rank, file) in manifest.files.iter().enumerate() {
                let length = fs::metadata(partial.join(format!("rank-{rank}"))).map(|file| file.len());
                if !length.is_ok_and(|length| length == file.bytes) {
                    let why = format!(
                        "the file of {writer} {rank} is missing: all processes must write to the same directory"
                    );
                    return Err(io::Error::other(why));
                }
            }
            let text = manifest.text().map_err(io::Error::other)?;
            write_new(&partial.join(MANIFEST), |out| out.write_all(&text))?;
            File::open(&partial)?.sync_all()?;
            fs::rename(&partial, &whole)?;
            File::open(dir)?.sync_all()
        };
        commit().map_err(|why| format!("{} cannot be completed: {why}", whole.display()))?;
        self.remove_old(number);
        tracing::info!(number, "checkpoint");
        Ok(whole.display().to_string())
    }

    /// Completes a checkpoint after all ranks have written their files, or removes its remains if a rank has failed.
    /// Returns its name, or why it was not made.
    pub(crate) fn complete(
        &self,
        number: u64,
        manifest: Manifest,
        written: Vec<(Rank, Result<Written, String>)>,
    ) -> Result<String, String> {
        let committed = manifest.with_files(written).and_then(|manifest| self.commit(number, manifest));
        committed.map_err(|why| {
            if self.keep_lock().is_ok() {
                self.abandon(number);
            }
            let newest = complete(&self.settings.dir).into_iter().next();
            let newest = newest
                .map_or("there is none yet".into(), |(_, path)| format!("the newest is {}", path.display()));
            format!("checkpoint {number} was not made: {why}; {newest}")
        })
    }

    /// Removes the remains of a checkpoint that failed.
    fn abandon(&self, number: u64) {
        // Remains that cannot be removed do no harm, because they do not count as a checkpoint.
        let _ = fs::remove_dir_all(self.partial(number));
    }

    fn remove_old(&self, newest: u64) {
        self.remove_partial(newest);
        for (number, path) in complete(&self.settings.dir).into_iter().skip(self.settings.keep as usize) {
            // Renamed first, so that a partly removed checkpoint does not count as damaged.
            if fs::rename(path, self.partial(number)).is_ok() {
                self.abandon(number);
            }
        }
    }

    /// Removes incomplete checkpoints before this number.
    fn remove_partial(&self, before: u64) {
        let partial = entries(&self.settings.dir)
            .into_iter()
            .filter(|&(number, is_whole)| !is_whole && number < before);
        partial.for_each(|(number, _)| self.abandon(number));
    }
}

/// Removes the checkpoint that was being made, because the run has ended.
impl Drop for Store {
    fn drop(&mut self) {
        if self.lock.is_some() && self.keep_lock().is_ok() {
            self.remove_partial(u64::MAX);
        }
    }
}

/// Marks the directory of a run that begins. If the disk is full, the run begins without the mark.
fn mark_unfinished(dir: &Path) -> Result<(), String> {
    let path = dir.join(UNFINISHED);
    match create_new(&path) {
        Err(why) if why.kind() != io::ErrorKind::StorageFull => {
            Err(format!("{} cannot be written: {why}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Tells whether the last run that wrote to this directory has no result: it still runs, or has ended early.
///
/// ```
/// assert!(!caribou::checkpoint::is_unfinished("nowhere"));
/// ```
pub fn is_unfinished(dir: impl AsRef<Path>) -> bool {
    dir.as_ref().join(UNFINISHED).exists()
}

/// Removes the mark of the directory, because the run has its result.
pub(crate) fn finish(dir: &Path) {
    // Fails for a directory that was removed meanwhile.
    let _ = fs::remove_file(dir.join(UNFINISHED));
}

/// The number after those of all checkpoints of the directory.
pub(super) fn next_number(dir: &Path) -> u64 {
    let newest = numbered(dir).into_iter().map(|(number, _)| number).max();
    newest.map_or(1, |number| number + 1)
}

/// Makes writing beyond the limit of file sizes (`ulimit -f`) fail, instead of ending the process.
fn survive_file_size_limit() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Without the handler the process ends, as by default.
        let _ = signal_hook::flag::register(Signal::XFSZ.as_raw(), Arc::default());
    });
}

/// Creates a directory that only its owner can read, and its parents.
fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Tells whether `path` names this open file.
fn is_at(file: &File, path: &Path) -> bool {
    let place = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let (its, there) = (file.metadata().map(place), fs::symlink_metadata(path).map(place));
    its.ok().zip(there.ok()).is_some_and(|(its, there)| its == there)
}

/// Locks the directory until the returned file is closed.
fn lock(dir: &Path) -> Result<File, String> {
    let fault = |why: &dyn std::fmt::Display| format!("{} cannot be locked: {why}", dir.join(LOCK).display());
    // Follows no link, and does not wait if the file is a pipe.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
    let file = options.open(dir.join(LOCK)).map_err(|why| fault(&why))?;
    if !file.metadata().is_ok_and(|file| file.is_file()) {
        return Err(fault(&"it is not a file"));
    }
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(format!("another run writes to {}", dir.display())),
        Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOLCK) => {
            warn(&format!(
                "the file system of {} has no locks, so another run may write there at the same time",
                dir.display()
            ));
            Ok(file)
        }
        Err(why) => Err(fault(&why)),
    }
}

/// Creates a file that only its owner can read. Replaces a file or a link of that name, and follows no link.
fn create_new(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Writes a new file to the disk. Replaces a file or a link of that name, and follows no link.
fn write_new(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<Written> {
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, Checksummed::new(create_new(path)?));
    write(&mut out)?;
    let (written, file) = out.into_inner().map_err(io::IntoInnerError::into_error)?.finish();
    file.sync_all()?;
    Ok(written)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::packed::unpack;
    use super::super::saved::Saved;
    use super::*;

    /// A name for a directory of this test.
    pub(in crate::checkpoint) fn temporary(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("caribou-checkpoint-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        dir
    }

    /// Makes a checkpoint of two ranks.
    pub(in crate::checkpoint) fn make(store: &Store, number: u64, files: [&[u8]; 2]) {
        let written = (0..)
            .map(Rank)
            .zip(files)
            .map(|(rank, bytes)| store.write_rank(number, rank, |out| out.write_all(bytes)));
        let files = written.collect::<Result<_, _>>().expect("the directory is writable");
        let manifest = Manifest { files, elapsed_ns: number, ..Manifest::default() };
        store.commit(number, manifest).expect("it is complete");
    }

    #[test]
    fn a_file_that_rank_0_does_not_see_fails_the_checkpoint() {
        let dir = temporary("apart");
        let store = Store::new(&Settings::new(&dir), ROOT).expect("it can be made");
        let written = store.write_rank(1, Rank(0), |out| out.write_all(b"state")).expect("it can be written");
        let manifest = Manifest { files: vec![written; 2], ..Manifest::default() };
        let why = store.commit(1, manifest).expect_err("rank 1 has written elsewhere");
        assert!(why.contains("rank 1") && why.contains("the same directory"), "{why}");
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
    fn a_file_in_the_place_of_the_directory_is_named() {
        let path = temporary("file");
        fs::write(&path, b"precious").expect("it can be written");
        let why = Store::new(&Settings::new(&path), ROOT).expect_err("it is a file");
        assert!(why.ends_with("is a file, expected a directory"), "{why}");
        fs::remove_file(path).expect("it is there");
    }

    #[test]
    fn a_directory_that_was_removed_is_locked_anew() {
        let dir = temporary("removed");
        let first = Store::new(&Settings::new(&dir), ROOT).expect("it can be made");
        fs::remove_dir_all(&dir).expect("it is there");
        make(&first, 1, [b"one", b"two"]);
        let why = Store::new(&Settings::new(&dir), ROOT).expect_err("it is locked");
        assert!(why.contains("another run"), "{why}");
        fs::remove_dir_all(&dir).expect("it is there");
        let second = Store::new(&Settings::new(&dir), ROOT).expect("it can be made");
        second.write_rank(2, ROOT, |out| out.write_all(b"half")).expect("it can be written");
        let written = first.write_rank(2, ROOT, |out| out.write_all(b"other"));
        let why = first.complete(2, Manifest::default(), vec![(ROOT, written)]).expect_err("it is locked");
        assert!(why.contains("another run"), "{why}");
        drop(first);
        let file = fs::read(second.partial(2).join("rank-0")).expect("it is there");
        assert_eq!(unpack(&file, 4).expect("it is whole"), b"half");
        drop(second);
        fs::remove_dir_all(dir).expect("it is there");
    }

    #[test]
    fn a_checkpoint_with_a_file_in_another_directory_is_not_completed() {
        let [dir, other] = ["here", "elsewhere"].map(temporary);
        let first = Store::new(&Settings::new(&dir), ROOT).expect("it can be made");
        let second = Store::new(&Settings::new(&other), Rank(1)).expect("it can be made");
        let written = [(&first, ROOT), (&second, Rank(1))]
            .map(|(store, rank)| (rank, store.write_rank(1, rank, |out| out.write_all(b"state"))));
        let why = first.complete(1, Manifest::default(), written.into()).expect_err("a file is elsewhere");
        assert!(why.contains("rank 1 is missing: all processes must write to the same directory"), "{why}");
        assert_eq!(entries(&dir), []);
        [dir, other].into_iter().for_each(|dir| fs::remove_dir_all(dir).expect("it is there"));
    }

    #[test]
    fn the_time_of_a_run_has_that_of_the_runs_that_it_went_on_from() {
        let dir = temporary("time");
        let settings = Settings { elapsed_before_ns: Some(40), ..Settings::new(&dir) };
        make(&Store::new(&settings, ROOT).expect("it can be made"), 2, [b"one", b"two"]);
        let saved = Saved::open(dir.join("000002")).expect("it is whole");
        assert_eq!(saved.elapsed().as_nanos(), 42);
        fs::remove_dir_all(dir).expect("it is there");
    }

    #[test]
    fn what_is_left_of_a_checkpoint_goes_with_the_run() {
        let dir = temporary("left");
        let store = Store::new(&Settings::new(&dir), ROOT).expect("it can be made");
        make(&store, 1, [b"one", b"two"]);
        store.write_rank(2, Rank(0), |out| out.write_all(b"half")).expect("it can be written");
        drop(store);
        assert_eq!(entries(&dir), [(1, true)]);
        // A process that ended later than rank 0.
        let late = Store::new(&Settings::new(&dir), Rank(1)).expect("it can be made");
        late.write_rank(2, Rank(1), |out| out.write_all(b"half")).expect("it can be written");
        let next = Store::new(&Settings::new(&dir), ROOT).expect("it can be made");
        assert_eq!(next.first_number(), 3, "it does not write where another process may");
        assert_eq!(entries(&dir), [(1, true)], "it needs the room");
        make(&next, 3, [b"one", b"two"]);
        assert!(entries(&dir).iter().all(|&(_, is_whole)| is_whole));
        fs::remove_dir_all(dir).expect("it is there");
    }

    #[test]
    fn a_link_in_the_place_of_a_file_is_not_followed() {
        let dir = temporary("link");
        fs::create_dir_all(dir.join("store/000001.partial")).expect("it can be made");
        let victim = dir.join("victim");
        let link = |at: &str| std::os::unix::fs::symlink(&victim, dir.join(at)).expect("it can be made");
        fs::write(&victim, b"precious").expect("it can be written");
        link("store/lock");
        let why = Store::new(&Settings::new(dir.join("store")), ROOT).expect_err("the lock is a link");
        assert!(why.contains("store/lock cannot be locked"), "{why}");
        let store = Store::new(&Settings::new(dir.join("store")), Rank(1)).expect("it locks nothing");
        link("store/000001.partial/rank-1");
        store.write_rank(1, Rank(1), |out| out.write_all(b"state")).expect("the link is replaced");
        assert_eq!(fs::read(&victim).expect("it is there"), b"precious");
        fs::remove_dir_all(dir).expect("it is there");
    }
}
