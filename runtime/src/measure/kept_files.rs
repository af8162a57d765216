//! Keeps files of the kernel open that are read repeatedly, because opening such a file takes longer than reading it.
//!
//! `/proc` and control groups generate the contents for each reading from the beginning. A file that cannot be read any
//! more, such as a file of a removed group, is opened again.
//!
//! A path that names a different file for each thread, such as `/proc/thread-self/cgroup`, must not be kept: the open
//! file remains that of the thread that opened it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;

/// Number of bytes to read at once, which is all of most such files.
const READ_BYTES: usize = 4096;

/// The open files, by path.
#[derive(Default)]
pub(super) struct KeptFiles(Mutex<FxHashMap<PathBuf, File>>);

impl KeptFiles {
    /// The current contents; none if the file cannot be read.
    pub(super) fn read(&self, path: &Path) -> Option<String> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Ok(text)) = files.get(path).map(contents) {
            return Some(text);
        }
        files.remove(path);
        let file = File::open(path).ok()?;
        let text = contents(&file).ok()?;
        files.insert(path.to_path_buf(), file);
        Some(text)
    }
}

#[cfg(unix)]
fn contents(file: &File) -> io::Result<String> {
    use std::os::unix::fs::FileExt;
    let (mut bytes, mut length) = (vec![0; READ_BYTES], 0);
    loop {
        match file.read_at(&mut bytes[length..], length as u64) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if bytes.len() - length < READ_BYTES / 2 {
            bytes.resize(2 * bytes.len(), 0);
        }
    }
    bytes.truncate(length);
    String::from_utf8(bytes).map_err(io::Error::other)
}

#[cfg(not(unix))]
fn contents(_: &File) -> io::Result<String> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_kept_file_is_read_from_its_beginning_each_time_however_long_it_is() {
        let name = format!("caribou-kept-file-{}", std::process::id());
        let (path, files) = (std::env::temp_dir().join(name), KeptFiles::default());
        assert_eq!(files.read(&path), None, "there is none yet");
        for text in ["1 2 3\n".into(), "x".repeat(5 * READ_BYTES + 1), String::new(), "4\n".into()] {
            std::fs::write(&path, &text).unwrap();
            assert_eq!(files.read(&path), Some(text));
        }
        assert_eq!(files.0.lock().unwrap().len(), 1);
        std::fs::write(&path, [0xff]).unwrap();
        assert_eq!(files.read(&path), None, "it is no text");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_that_cannot_be_read_any_more_is_opened_again() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let dead = File::open(format!("/proc/{}/schedstat", child.id())).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let (path, files) = (Path::new("/proc/stat"), KeptFiles::default());
        files.0.lock().unwrap().insert(path.to_path_buf(), dead);
        assert!(files.read(path).is_some_and(|stat| stat.starts_with("cpu ")));
    }
}
