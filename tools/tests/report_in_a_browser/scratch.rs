//! Creates a directory with a trace and its report.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

/// A directory for one test. Dropping it removes the directory.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("caribou-browser-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        Scratch(dir)
    }

    pub(crate) fn trace(&self) -> PathBuf {
        self.0.join("trace")
    }

    pub(crate) fn page(&self) -> PathBuf {
        self.0.join("report.html")
    }

    /// A synthetic run of about `events` events, and its report.
    pub(crate) fn generated(name: &str, events: u64) -> Scratch {
        let scratch = Scratch::new(name);
        caribou(&["generate".as_ref(), scratch.trace().as_ref(), format!("--events={events}").as_ref()]);
        scratch.report()
    }

    pub(crate) fn report(self) -> Scratch {
        caribou(&["report".as_ref(), self.trace().as_ref(), "-o".as_ref(), self.page().as_ref()]);
        self
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn caribou(arguments: &[&OsStr]) {
    let output = Command::new(env!("CARGO_BIN_EXE_caribou")).arg("trace").args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
