//! Findings: their number by kind, the first of each in words.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// A sound trace does not have it.
    Wrong,
    /// Good to know.
    Note,
}

impl Severity {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Severity::Wrong => "wrong",
            Severity::Note => "note",
        }
    }
}

/// A place in a file or run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FindingLocation {
    Byte(u64),
    /// A moment on a worker.
    Time {
        worker: u32,
        ns: u64,
    },
    Worker(u32),
    Sync(u64),
    Step(u64),
    Whole,
}

impl fmt::Display for FindingLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FindingLocation::Byte(at) => write!(f, "byte {at}"),
            FindingLocation::Time { worker, ns } => write!(f, "worker {worker} at {ns} ns"),
            FindingLocation::Worker(worker) => write!(f, "worker {worker}"),
            FindingLocation::Sync(sync) => write!(f, "sync {sync}"),
            FindingLocation::Step(step) => write!(f, "step {step}"),
            FindingLocation::Whole => write!(f, "all of it"),
        }
    }
}

/// One thing that was found.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    /// Of what kind: the same words for all of it.
    pub(crate) kind: &'static str,
    pub(crate) file: PathBuf,
    pub(crate) place: FindingLocation,
    pub(crate) what: String,
}

/// All that was found. Memory is bounded: of each kind only the first are kept.
#[derive(Debug)]
pub(crate) struct Findings {
    examples: usize,
    kinds: BTreeMap<(Severity, &'static str), (u64, Vec<Finding>)>,
}

impl Findings {
    pub(crate) fn new(examples: usize) -> Findings {
        Findings { examples, kinds: BTreeMap::new() }
    }

    /// Counts a finding; its words are only made if they are kept.
    pub(crate) fn add(
        &mut self,
        (severity, kind): (Severity, &'static str),
        file: &Path,
        place: FindingLocation,
        what: impl FnOnce() -> String,
    ) {
        let (count, kept) = self.kinds.entry((severity, kind)).or_default();
        *count += 1;
        if kept.len() < self.examples {
            kept.push(Finding { severity, kind, file: file.to_owned(), place, what: what() });
        }
    }

    pub(crate) fn count(&self, severity: Severity) -> u64 {
        self.kinds.iter().filter(|((other, _), _)| *other == severity).map(|(_, (count, _))| count).sum()
    }

    /// Kinds, and how many there are of each.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (&'static str, Severity, u64)> {
        self.kinds.iter().map(|((severity, kind), (count, _))| (*kind, *severity, *count))
    }

    /// Those that are told one by one.
    pub(crate) fn told(&self) -> impl Iterator<Item = &Finding> {
        self.kinds.values().flat_map(|(_, kept)| kept)
    }

    /// A line a finding.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for ((severity, kind), (count, kept)) in &self.kinds {
            lines.extend(kept.iter().map(|Finding { file, place, what, .. }| {
                format!("{}: {}: {place}: {what}", severity.name(), file.display())
            }));
            let more = count - kept.len() as u64;
            if more > 0 {
                lines.push(format!("{}: {more} more of this kind: {kind}", severity.name()));
            }
        }
        lines
    }
}
