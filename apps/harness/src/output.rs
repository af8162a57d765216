//! Outputs: standard output, and files, which are opened before the run, so that a mistyped path costs a second
//! and not the whole run.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write, stdout};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::Serialize;

use crate::error::Error;

/// Prints to standard output. That somebody has read enough of it, as `head` does, is no error.
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

/// A file that can be written, and is not yet: until [`write`](Self::write) an older result in it stays, and one that was not
/// there goes again if nothing comes of it.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    file: File,
    /// True until all is written to a file that was not there.
    is_empty: bool,
}

impl Output {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// [`Error::Unwritable`], naming the path.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let opened = match OpenOptions::new().write(true).create_new(true).open(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                // A link that leads to nothing exists as well.
                OpenOptions::new()
                    .write(true)
                    .create(true)
                    .truncate(false)
                    .open(path)
                    .map(|file| (file, false))
            }
            made => made.map(|file| (file, true)),
        };
        let opened = opened.and_then(|(file, is_new)| Ok((alone(file)?, is_new)));
        opened
            .map(|(file, is_empty)| Self { path: path.to_owned(), file, is_empty })
            .map_err(|source| Error::Unwritable { path: path.to_owned(), source })
    }

    /// Replaces what the file holds.
    ///
    /// # Errors
    /// [`Error::Output`], naming the path.
    pub fn write(mut self, text: &str) -> Result<(), Error> {
        // Devices such as /dev/stdout cannot be cut, and need not be.
        let _ = self.file.set_len(0);
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.flush());
        self.is_empty &= written.is_err();
        written.map_err(|source| Error::Output { path: self.path.clone(), source })
    }

    /// Replaces it with `numbers` as JSON.
    ///
    /// # Errors
    /// As of [`write`](Self::write).
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
            // Nobody misses it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The file, unless somebody else is going to write it: another option, or another program.
fn alone(file: File) -> io::Result<File> {
    let is_device = !file.metadata()?.is_file();
    if !is_device && flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        return Err(io::Error::other("another option, or another program, writes to it"));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_result_is_replaced_whole_and_not_before() {
        let path = std::env::temp_dir().join(format!("caribou-output-{}", std::process::id()));
        std::fs::write(&path, "a long older result").unwrap();
        let output = Output::open(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a long older result");
        output.write("new").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        std::fs::remove_file(&path).unwrap();
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
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "later");
        std::fs::remove_file(&path).unwrap();
        drop(Output::open(&path).unwrap());
        assert!(!path.exists(), "nothing came of it");
    }

    #[test]
    fn an_impossible_path_is_named() {
        let error = Output::open(Path::new("/nowhere/at/all.svg")).unwrap_err().to_string();
        assert!(error.contains("/nowhere/at/all.svg") && !error.contains('\n'), "{error}");
    }
}
