//! Reads files that the user names. Limits their size, because a device such as `/dev/zero` never ends, and remembers
//! their names, so that no output replaces an input.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use presentation::format::escape_control;

/// Largest size in bytes of a snapshot, a list of speeds or a trace of hosts.
const BYTES_MAX: u64 = 1 << 30;

/// Files that were read. No output may replace them.
static READ: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Notes that were printed.
static NOTED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Returns whether this process has read the file.
pub(crate) fn was_read(file: &Path) -> bool {
    let read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    file.canonicalize().is_ok_and(|file| read.contains(&file))
}

/// Some editors write this mark before text in UTF-8. It is not part of the text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Removes a byte order mark from the beginning of the text.
pub(crate) fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// Reads a file of at most `BYTES_MAX` bytes.
pub(crate) fn read(file: &Path) -> io::Result<Vec<u8>> {
    read_at_most(file, BYTES_MAX)
}

/// Reads a file of at most `BYTES_MAX` bytes as UTF-8.
pub(crate) fn read_text(file: &Path) -> io::Result<String> {
    let text = String::from_utf8(read(file)?);
    text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// Prints a note about a file that was read on standard error, once.
pub(crate) fn note(line: &str) {
    let mut noted = NOTED.lock().unwrap_or_else(PoisonError::into_inner);
    if noted.iter().any(|before| before == line) {
        return;
    }
    noted.push(line.to_owned());
    // If standard error is closed, the note is lost.
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
