//! Files that a person names, which may be anything: a device never ends.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use presentation::format::escape_control;

/// Nothing longer is a snapshot, a list of speeds or a trace of hosts, bytes.
const BYTES_MAX: u64 = 1 << 30;

/// What was read: no output may take its place.
static READ: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Tells whether this file was read.
pub(crate) fn was_read(file: &Path) -> bool {
    let read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    file.canonicalize().is_ok_and(|file| read.contains(&file))
}

/// Some editors put it before text in UTF-8; it is no part of the text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The text without a byte order mark before it.
pub(crate) fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// The whole file, unless it is too long to be meant.
pub(crate) fn read(file: &Path) -> io::Result<Vec<u8>> {
    read_at_most(file, BYTES_MAX)
}

/// The same as text.
pub(crate) fn read_text(file: &Path) -> io::Result<String> {
    let text = String::from_utf8(read(file)?);
    text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// Prints notes about a file that was read, on standard error.
pub(crate) fn note(line: &str) {
    // Nothing is left to be said if standard error is closed.
    let _ = writeln!(io::stderr(), "{}", escape_control(&format!("caribou: {line}")));
}

fn read_at_most(file: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Ok(path) = file.canonicalize() {
        READ.lock().unwrap_or_else(PoisonError::into_inner).push(path);
    }
    File::open(file)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {bytes_max} bytes"),
        ));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_never_ends_is_given_up() {
        let endless = Path::new("/dev/zero");
        assert_eq!(read_at_most(endless, 4096).unwrap_err().to_string(), "it has more than 4096 bytes");
        assert!(read_at_most(Path::new("/dev/null"), 0).unwrap().is_empty());
    }
}
