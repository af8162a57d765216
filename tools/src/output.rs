//! Files for results.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use crate::Error;

/// Begin of every trace, of whatever version.
const TRACE: &[u8] = b"caribou-trace ";

/// A file to be written, in place of an older one. Not in place of a trace: that can be recorded only once, and may be
/// what the result is made of.
pub(crate) fn create(file: &Path) -> Result<File, Error> {
    let unwritable = |source| Error::Unwritable { file: file.to_owned(), source };
    if is_trace(file) {
        return Err(unwritable(io::Error::other("it is a trace; name another file")));
    }
    File::create(file).map_err(unwritable)
}

/// Writes a whole result, in place of an older one.
pub(crate) fn write(file: &Path, result: impl AsRef<[u8]>) -> Result<(), Error> {
    let written = create(file)?.write_all(result.as_ref());
    written.map_err(|source| Error::Unwritable { file: file.to_owned(), source })
}

/// Error of values separated by commas that could not be written. A reader that has gone away is known by its kind.
pub(crate) fn unwritten(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(source) => source,
        other => io::Error::other(format!("{other:?}")),
    }
}

fn is_trace(file: &Path) -> bool {
    // A pipe that is opened for reading would wait for somebody to write.
    if !file.metadata().is_ok_and(|found| found.is_file()) {
        return false;
    }
    let mut begin = [0; TRACE.len()];
    File::open(file).and_then(|mut file| file.read_exact(&mut begin)).is_ok() && begin == TRACE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_result_is_replaced_and_a_trace_is_not() {
        let path = std::env::temp_dir().join(format!("caribou-result-{}", std::process::id()));
        write(&path, "a long older result").unwrap();
        write(&path, "new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        std::fs::write(&path, b"caribou-trace 2\nand events").unwrap();
        let error = write(&path, "new").unwrap_err().to_string();
        assert!(error.contains("it is a trace; name another file"), "{error}");
        assert!(std::fs::read(&path).unwrap().ends_with(b"and events"));
        std::fs::remove_file(&path).unwrap();
    }
}
