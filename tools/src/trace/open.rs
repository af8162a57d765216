//! Opens the trace that a subcommand of `caribou trace` analyses.

use std::io::Write;
use std::path::PathBuf;

use trace_reader::{Problem, Trace};

use super::select::Selection;
use crate::Error;

/// Number of problems that are printed.
const PROBLEMS_MAX: usize = 5;

/// The trace.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Input {
    /// A run: the directory that CARIBOU_TRACE named, one run in it, or one rank's file
    #[arg(value_name = "TRACE")]
    pub(crate) path: PathBuf,
}

impl Input {
    /// Opens the trace. Prints problems of parts of it on standard error, and omits those parts.
    pub(crate) fn open(&self) -> Result<Trace, Error> {
        let trace = Trace::open(&self.path)?;
        warn(&trace.problems);
        Ok(trace)
    }
}

/// The trace, and the part of it that a command analyses.
#[derive(clap::Args)]
pub(crate) struct TracePart {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    pub(crate) selection: Selection,
}

impl TracePart {
    /// Opens the trace, and refuses a selection that the trace has nothing of.
    pub(crate) fn open(&self) -> Result<Trace, Error> {
        let trace = self.input.open()?;
        self.selection.check(&trace)?;
        Ok(trace)
    }
}

/// Prints on standard error what could not be read.
pub(crate) fn warn(problems: &[Problem]) {
    let mut err = std::io::stderr();
    for problem in problems.iter().take(PROBLEMS_MAX) {
        // If standard error is closed, the problem is lost.
        let _ = writeln!(err, "caribou: {problem}");
    }
    if let Some(more) = problems.len().checked_sub(PROBLEMS_MAX).filter(|&more| more > 0) {
        let _ = writeln!(err, "caribou: and {more} more problems; `caribou trace check` lists them");
    }
}
