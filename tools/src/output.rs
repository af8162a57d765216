//! Writes result files. A failed write leaves an older file intact, and no result replaces a trace or an input.

mod files;
mod until_closed;

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use caribou::trace::block::is_trace;
use rustix::process::{Resource, getrlimit};

pub(crate) use self::files::Files;
pub(crate) use self::until_closed::UntilClosed;
use crate::{Error, input};

/// A result file that is being written. [`persist`](Self::persist) gives it its name and so replaces an older file. A
/// result that is not persisted, because the disk is full or the command is interrupted, leaves the older file.
pub(crate) struct Output {
    file: File,
    path: PathBuf,
    /// Temporary name before `persist`. `None` if the file is written in place: a pipe, or a file in a folder in which
    /// no other file can be created.
    part: Option<PathBuf>,
    /// Bytes that the process may still write (`ulimit -f`). Writing more would end the process by a signal.
    left: u64,
}

impl Output {
    /// Opens the temporary file, or the file itself where it is written in place.
    pub(crate) fn create(file: &Path) -> Result<Output, Error> {
        let unwritable = |source| Error::Unwritable { file: file.to_owned(), source };
        refuse(file).map_err(unwritable)?;
        let left = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
        // If the path is a symbolic link, its target is replaced, not the link.
        let path = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        let beside = |name: &OsStr| {
            path.with_file_name(format!("{}.{}.part", name.to_string_lossy(), std::process::id()))
        };
        let part =
            path.file_name().map(beside).filter(|_| path.metadata().map_or(true, |found| found.is_file()));
        if let Some(part) = part
            && let Ok(file) = File::create_new(&part)
        {
            return Ok(Output { file, path, part: Some(part), left });
        }
        // A pipe, or a folder in which no other file can be created.
        let file = File::create(&path).map_err(unwritable)?;
        Ok(Output { file, path, part: None, left })
    }

    /// Gives the complete result its name. Returns its size in bytes, 0 if it is not a file.
    pub(crate) fn persist(mut self) -> io::Result<u64> {
        if let Some(part) = self.part.take() {
            fs::rename(part, &self.path)?;
        }
        Ok(fs::metadata(&self.path).map_or(0, |file| file.len()))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let why = "it would be longer than this process may make a file (ulimit -f)";
        let too_long = || io::Error::new(ErrorKind::FileTooLarge, why);
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or_else(too_long)?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            let _ = fs::remove_file(part);
        }
    }
}

/// Checks that a result can be written to `file`, before a long computation. An existing file stays as it is.
pub(crate) fn check(file: &Path) -> Result<(), Error> {
    let found = file.metadata();
    // Opening a pipe would wait for a reader.
    if found.as_ref().is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return Ok(());
    }
    let opened = refuse(file)
        .and_then(|()| OpenOptions::new().write(true).create(true).truncate(false).open(file))
        .map_err(|source| Error::Unwritable { file: file.to_owned(), source })?;
    drop(opened);
    if found.is_err() {
        // Created only for this check.
        let _ = fs::remove_file(file);
    }
    Ok(())
}

/// Creates a directory for results, and checks that a file can be written into it, before a long computation.
pub(crate) fn check_dir(dir: &Path) -> Result<(), Error> {
    let unwritable = |source| Error::Unwritable { file: dir.to_owned(), source };
    fs::create_dir_all(dir).map_err(unwritable)?;
    let probe = dir.join(format!("probe.{}.part", std::process::id()));
    File::create_new(&probe).and_then(|_| fs::remove_file(&probe)).map_err(unwritable)
}

/// Refuses files that no result may replace: traces, because they can be recorded only once, and inputs.
fn refuse(file: &Path) -> io::Result<()> {
    let what = match (is_trace(file), input::was_read(file)) {
        (true, _) => "a trace",
        (_, true) => "an input of this command",
        _ => return Ok(()),
    };
    Err(io::Error::other(format!("it is {what}; name another file")))
}

/// Writes a complete result and replaces an older one.
pub(crate) fn write(file: &Path, result: impl AsRef<[u8]>) -> Result<(), Error> {
    let mut output = Output::create(file)?;
    let written = output.write_all(result.as_ref()).and_then(|()| output.persist());
    written.map(drop).map_err(|source| Error::Unwritable { file: file.to_owned(), source })
}

/// Returns whether the file can be written but the data was lost: a full disk, a quota, or a limit of file size.
pub(crate) fn is_lost(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}

/// Converts an error of the CSV writer. An IO error keeps its kind, by which the caller recognises a closed pipe.
pub(crate) fn csv_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(source) => source,
        other => io::Error::other(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_result_is_replaced_and_a_trace_is_not() {
        let path = std::env::temp_dir().join(format!("caribou-result-{}", std::process::id()));
        write(&path, "a long older result").unwrap();
        write(&path, "new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        fs::write(&path, b"caribou-trace 2\nand events").unwrap();
        let error = write(&path, "new").unwrap_err().to_string();
        assert!(error.contains("it is a trace; name another file"), "{error}");
        assert!(fs::read(&path).unwrap().ends_with(b"and events"));
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_result_that_is_not_kept_leaves_nothing_and_the_older_one_as_it_was() {
        let dir = std::env::temp_dir().join(format!("caribou-part-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let path = dir.join("result.csv");
        write(&path, "older").unwrap();
        let mut half = Output::create(&path).unwrap();
        half.write_all(b"half of").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"older");
        drop(half);
        let names =
            || fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
        assert_eq!((names(), fs::read(&path).unwrap()), (vec!["result.csv".into()], b"older".to_vec()));
        // A symbolic link remains a link.
        let link = dir.join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write(&link, "new").unwrap();
        assert!(link.is_symlink() && fs::read(&path).unwrap() == b"new");
        let error = write(Path::new("/dev/full"), "new").unwrap_err();
        assert_eq!(error.exit_code(), 1, "{error}");
        assert!(error.to_string().contains("No space left"), "{error}");
        let error = write(&dir.join("none/result.csv"), "new").unwrap_err();
        assert_eq!(error.exit_code(), 2, "{error}");
        fs::remove_dir_all(&dir).unwrap();
    }
}
