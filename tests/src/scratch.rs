//! Folders for the files of a test.

use std::ffi::OsStr;
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The path of a folder that does not exist yet. The folder is removed with the value.
pub struct Scratch(PathBuf);

/// A path that no other test has.
pub fn scratch() -> Scratch {
    static FOLDERS: AtomicU32 = AtomicU32::new(0);
    let (process, number) = (std::process::id(), FOLDERS.fetch_add(1, Ordering::Relaxed));
    let folder = Scratch(std::env::temp_dir().join(format!("caribou-tests-{process}-{number}")));
    // A process that was killed may have had the same number.
    let _ = fs::remove_dir_all(&*folder);
    folder
}

impl Deref for Scratch {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<OsStr> for Scratch {
    fn as_ref(&self) -> &OsStr {
        self.0.as_ref()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left lies among temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
