//! Names slices and chunks for other tools.

use caribou::trace::{ChunkId, NameId};
use trace_reader::Trace;

/// Name of a message kind without a recorded name.
pub(super) const UNKNOWN: &str = "unknown";
/// Name of a range of iterations in a pool.
pub(super) const ITERATIONS: &str = "pool::iterations";
/// Name of the slice of a departure.
pub(super) const MIGRATE_OUT: &str = "migrate_out";
/// Name of the slice or point of an arrival.
pub(super) const MIGRATE_IN: &str = "migrate_in";

/// The names of a trace.
pub(super) struct Names {
    /// `array::kind`, or the name of a mark, span or counter, by [`NameId`].
    all: Vec<String>,
}

impl Names {
    pub(super) fn new(trace: &Trace) -> Names {
        Names { all: (0..trace.names.len() as u32).map(|id| trace.name(NameId(id))).collect() }
    }

    pub(super) fn of(&self, id: NameId) -> &str {
        self.all.get(id.0 as usize).map_or(UNKNOWN, String::as_str)
    }

    pub(super) fn all(&self) -> &[String] {
        &self.all
    }
}

/// The index of a chunk as numbers, if its text has only numbers, such as `[3, 4]`.
pub(super) fn index_of(trace: &Trace, chunk: ChunkId) -> Option<Vec<i64>> {
    let text = trace.chunk_index(chunk)?;
    let numbers = text.trim().trim_start_matches(['[', '(']).trim_end_matches([']', ')']);
    numbers.trim_end_matches(',').split(',').map(|number| number.trim().parse().ok()).collect()
}

/// The hosts of a run, each once.
pub(super) fn hosts(trace: &Trace) -> String {
    let mut hosts: Vec<&str> = Vec::new();
    for host in trace.run.hosts.iter().map(String::as_str) {
        // Ranks of one host have adjacent numbers, so the search is seldom needed.
        if hosts.last() != Some(&host) && !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    hosts.join(" ")
}
