//! Defines the content of one file of recorded loads, for both formats.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::{SECONDS_MAX, no_load};

/// The content of the file of a rank.
#[derive(Default)]
pub(super) struct RankFile {
    /// Name of the host, if the file has one.
    pub(super) host: Option<String>,
    /// Factor on the loads of the rank, if the file has one.
    pub(super) alpha: Option<f64>,
    /// The phases that are written in full.
    pub(super) entries: BTreeMap<u64, Entry>,
    /// The other phases, if the file lists them.
    pub(super) listed: Option<Listed>,
}

/// Phases without an entry. Ranges are in order and do not overlap.
pub(super) struct Listed {
    /// Phases of which nothing is known.
    pub(super) skipped: Vec<RangeInclusive<u64>>,
    /// Phases like the last one before them that has an entry.
    pub(super) repeated: Vec<RangeInclusive<u64>>,
}

/// A phase.
#[derive(Default)]
pub(super) struct Entry {
    pub(super) tasks: Vec<Task>,
    pub(super) edges: Vec<NamedEdge>,
    /// Number of edges whose bytes were not whole and are rounded.
    pub(super) rounded_edges: usize,
    /// Bytes that the rank uses besides its tasks.
    pub(super) rank_bytes: u64,
}

/// The load of an object in a phase.
pub(super) struct Task {
    pub(super) object: u64,
    /// The sequence number, if the object is named by it.
    pub(super) sequence: Option<u64>,
    /// From 0 to [`SECONDS_MAX`].
    pub(super) seconds: f64,
    pub(super) migratable: bool,
    pub(super) sizes: Sizes,
}

/// Sizes of an object in bytes, where known.
#[derive(Clone, Copy, Default)]
pub(super) struct Sizes {
    pub(super) state: Option<u64>,
    pub(super) footprint: Option<u64>,
    pub(super) working: Option<u64>,
    /// Number and size of the block that the object shares with others.
    pub(super) block: Option<(u64, u64)>,
}

/// The messages of a phase from one object to another.
pub(super) struct NamedEdge {
    pub(super) from: Name,
    pub(super) to: Name,
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

/// What an edge calls an object.
#[derive(Clone, Copy)]
pub(super) enum Name {
    Id(u64),
    /// The sequence number alone.
    Sequence(u64),
}

/// The load, if it is one.
pub(super) fn load(seconds: f64) -> Result<f64, String> {
    if (0.0..=SECONDS_MAX).contains(&seconds) { Ok(seconds) } else { Err(no_load(&seconds.to_string())) }
}
