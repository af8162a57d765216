//! Collects findings: counts them by kind, and keeps the text of the first of each kind.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// A fault, which no valid trace has.
    Wrong,
    /// Not a fault.
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
    /// A time on a worker.
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

/// One finding.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    /// The same text for all findings of one kind.
    pub(crate) kind: &'static str,
    pub(crate) file: PathBuf,
    pub(crate) place: FindingLocation,
    pub(crate) what: String,
}

/// All findings. Memory is bounded, because only the first of each kind are kept.
#[derive(Debug)]
pub(crate) struct Findings {
    examples: usize,
    kinds: BTreeMap<(Severity, &'static str), (u64, Vec<Finding>)>,
}

impl Findings {
    pub(crate) fn new(examples: usize) -> Findings {
        Findings { examples, kinds: BTreeMap::new() }
    }

    /// Counts a finding. Its text is generated only if it is kept.
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

    /// The kinds, and the number of findings of each.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (&'static str, Severity, u64)> {
        self.kinds.iter().map(|((severity, kind), (count, _))| (*kind, *severity, *count))
    }

    /// The findings that are kept.
    pub(crate) fn told(&self) -> impl Iterator<Item = &Finding> {
        self.kinds.values().flat_map(|(_, kept)| kept)
    }

    /// The findings as text, one line each.
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
