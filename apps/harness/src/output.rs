//! Writes results to standard output and to files. Files are opened before the run, so that a mistyped path costs a
//! second and not the whole run.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write, stderr, stdout};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use caribou::Launch;
use caribou::trace::block::is_trace;
use presentation::format::escape_control;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use serde::Serialize;

use crate::error::Error;

/// Prints to standard output. A reader that closes it early, as `head` does, is no error.
///
/// # Errors
/// [`Error::Output`], of a full disk for instance.
pub fn print(text: &str) -> Result<(), Error> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(source) if source.kind() != ErrorKind::BrokenPipe => {
            Err(Error::Output { path: "standard output".into(), source })
        }
        _ => Ok(()),
    }
}

/// Prints a note on standard error. In a job only one process prints it.
pub fn note(launch: Launch, line: &str) {
    if launch.speaks() {
        // One write, because other processes may also print. A closed stream is no reason to stop.
        let _ = stderr().write_all(escape_control(&format!("note: {line}\n")).as_bytes());
    }
}

/// A file that is open for a result. Until [`write`](Self::write) it keeps an older result. A new file is removed again
/// if no result is written.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    /// The file that the path led to, through links, when it was opened.
    target: PathBuf,
    /// The name in the same folder under which the result is first written.
    part: PathBuf,
    file: File,
    /// True for a new file until the whole result is written.
    is_empty: bool,
}

impl Output {
    /// Opens the file, or creates it.
    ///
    /// # Errors
    /// [`Error::Unwritable`], naming the path.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let opened = match OpenOptions::new().write(true).create_new(true).open(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                // A link to a missing file also ends up here.
                OpenOptions::new()
                    .write(true)
                    .create(true)
                    .truncate(false)
                    .open(path)
                    .map(|file| (file, false))
            }
            made => made.map(|file| (file, true)),
        };
        let opened = opened.and_then(|(file, is_empty)| {
            let file = alone(file)?;
            if !is_empty && is_trace(path) {
                return Err(io::Error::other("it is a trace; name another file"));
            }
            // Pipes have no name.
            let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
            let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let part = target.with_file_name(format!("{name}.{}.part", std::process::id()));
            Ok(Self { path: path.to_owned(), target, part, file, is_empty })
        });
        opened.map_err(|source| Error::Unwritable { path: path.to_owned(), source })
    }

    /// Replaces the contents of the file at once, by a rename where possible. If that fails, for instance on a full
    /// disk, an older result stays. A file that was removed meanwhile is created again.
    ///
    /// # Errors
    /// [`Error::Output`], naming the path.
    pub fn write(mut self, text: &str) -> Result<(), Error> {
        let written = self.replace(text.as_bytes());
        self.is_empty &= written.is_err();
        written.map_err(|source| Error::Output { path: self.path.clone(), source })
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        let found = self.file.metadata()?;
        if is_standard_stream(&found) {
            // Appends to the earlier output.
            self.file.seek(SeekFrom::End(0))?;
        } else if found.is_file() {
            within(bytes.len() as u64, getrlimit(Resource::Fsize).current)?;
            // A killed process with the same id may have left one.
            let _ = fs::remove_file(&self.part);
            match File::create_new(&self.part) {
                Ok(part) => {
                    // Not every file system has permissions.
                    let _ = part.set_permissions(found.permissions());
                    let whole = (&part).write_all(bytes).and_then(|()| part.sync_all());
                    let renamed = whole.is_ok() && fs::rename(&self.part, &self.target).is_ok();
                    if renamed {
                        return Ok(());
                    }
                    let _ = fs::remove_file(&self.part);
                    whole?;
                }
                // A process that may not make files in the folder may still write this one.
                Err(error) if is_refusal(error.kind()) => {}
                Err(error) => return Err(error),
            }
            // The rename failed: the file is a mount point, or another user's.
            if !self.target.exists() {
                return Err(io::Error::new(ErrorKind::NotFound, "it was removed, and cannot be made again"));
            }
            self.file.set_len(0)?;
        }
        self.file.write_all(bytes)
    }

    /// Replaces the contents of the file by `numbers` as JSON.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    ///
    /// # Panics
    /// If a map in `numbers` has keys that are no text.
    pub fn write_json(self, numbers: &impl Serialize) -> Result<(), Error> {
        let text = serde_json::to_string_pretty(numbers).expect("numbers have only names as keys");
        self.write(&(text + "\n"))
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.is_empty {
            let _ = fs::remove_file(&self.target);
        }
    }
}

/// True if standard output or error goes to this file, which must then not be replaced.
fn is_standard_stream(file: &Metadata) -> bool {
    let is_it = |stream: BorrowedFd<'_>| {
        rustix::fs::fstat(stream).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == (file.dev(), file.ino()))
    };
    file.is_file() && (is_it(stdout().as_fd()) || is_it(stderr().as_fd()))
}

/// Refuses contents above the process's limit of file sizes, because the signal for it would end the process.
fn within(bytes: u64, most: Option<u64>) -> io::Result<()> {
    if most.is_some_and(|most| bytes > most) { Err(Errno::FBIG.into()) } else { Ok(()) }
}

/// True if the folder accepts no new file at all.
fn is_refusal(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
}

/// Locks the file. Fails if another option or another program reads or writes it.
fn alone(file: File) -> io::Result<File> {
    let is_device = !file.metadata()?.is_file();
    if !is_device && flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        return Err(io::Error::other("another option, or another program, reads it or writes to it"));
    }
    Ok(file)
}

/// Opens a file to read and locks it until the process ends. No process can then open it as an [`Output`].
///
/// # Errors
/// If the file cannot be opened, or is already open as an output.
pub fn open_input(path: &Path) -> io::Result<File> {
    static KEPT: Mutex<Vec<File>> = Mutex::new(Vec::new());
    let file = File::open(path)?;
    let kept = file.try_clone()?;
    if flock(&kept, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK) {
        return Err(io::Error::other("another option, or another program, writes to it"));
    }
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(kept);
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_a_trace_nor_an_input_becomes_an_output() {
        let folder = std::env::temp_dir().join(format!("caribou-inputs-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (trace, input) = (folder.join("rank-00000.trace"), folder.join("input"));
        fs::write(&trace, b"caribou-trace 2\nand events").unwrap();
        fs::write(&input, "numbers").unwrap();
        let error = Output::open(&trace).unwrap_err().to_string();
        assert!(error.contains("it is a trace"), "{error}");
        let output = Output::open(&input).unwrap();
        assert!(open_input(&input).unwrap_err().to_string().contains("writes to it"));
        drop(output);
        let _input = open_input(&input).unwrap();
        let error = Output::open(&input).unwrap_err().to_string();
        assert!(error.contains("another option"), "{error}");
        assert_eq!(fs::read(&input).unwrap(), b"numbers");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn an_older_result_is_replaced_whole_and_not_before() {
        let path = std::env::temp_dir().join(format!("caribou-output-{}", std::process::id()));
        fs::write(&path, "a long older result").unwrap();
        let output = Output::open(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "a long older result");
        output.write("new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_file_that_was_removed_meanwhile_comes_again_and_a_failed_one_leaves_the_older() {
        let folder = std::env::temp_dir().join(format!("caribou-gone-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let [path, link] = ["result", "link"].map(|name| folder.join(name));
        let output = Output::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        output.write("new").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let output = Output::open(&link).unwrap();
        fs::write(&output.part, "of a killed process").unwrap();
        fs::remove_file(&path).unwrap();
        output.write("newer").unwrap();
        assert!(link.is_symlink(), "what it leads to is made again");
        assert_eq!(fs::read_to_string(&path).unwrap(), "newer");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "no part is left");
        let error = Output::open(Path::new("/dev/full")).unwrap().write("new").unwrap_err().to_string();
        assert!(error.contains("/dev/full"), "{error}");
        let output = Output::open(&path).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        let error = output.write("lost").unwrap_err().to_string();
        assert!(error.contains("result"), "{error}");
    }

    #[test]
    fn two_results_are_not_written_to_one_file() {
        let path = std::env::temp_dir().join(format!("caribou-twice-{}", std::process::id()));
        let first = Output::open(&path).unwrap();
        let error = Output::open(&path).unwrap_err().to_string();
        assert!(error.contains("caribou-twice") && error.contains("another option"), "{error}");
        first.write("one").unwrap();
        Output::open(&path).unwrap().write("later").unwrap();
        drop(Output::open(&path).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "later");
        fs::remove_file(&path).unwrap();
        drop(Output::open(&path).unwrap());
        assert!(!path.exists(), "nothing came of it");
    }

    #[test]
    fn an_impossible_path_is_named() {
        let error = Output::open(Path::new("/nowhere/at/all.svg")).unwrap_err().to_string();
        assert!(error.contains("/nowhere/at/all.svg") && !error.contains('\n'), "{error}");
    }
}
