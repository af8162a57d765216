//! Defines the interface of formats for timeline viewers: slices, points, counters and arrows.

use std::io;

use clap::ValueEnum;

use super::names::{ITERATIONS, MIGRATE_IN, MIGRATE_OUT};
use super::rows::Row;

/// Selects the messages that have arrows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Flows {
    /// Those for which a worker had waited, and chunks that migrated
    Waits,
    /// All
    All,
    /// None
    None,
}

/// Value of an argument.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    Count(u64),
    Number(f64),
}

/// Named values that explain a slice or point.
pub(super) type Arguments = Vec<(&'static str, Value)>;

/// Names of all arguments.
pub(super) const ARGUMENTS: [&str; 17] = [
    "chunk",
    "cpu_us",
    "bytes_in",
    "src_rank",
    "src_chunk",
    "phase",
    "bytes",
    "to_rank",
    "sync",
    "first",
    "count",
    "run_id",
    "command",
    "version",
    "git_hash",
    "lb",
    "placement",
];

/// Names of slices and points that do not come from the trace.
pub(super) const NAMES: [&str; 12] = [
    "idle",
    ITERATIONS,
    MIGRATE_OUT,
    MIGRATE_IN,
    "send",
    "contribute",
    "start",
    "measure",
    "decide",
    "migrate",
    "trace_flush",
    "run",
];

/// The track of a point or counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Track {
    Run,
    Rank(u32),
    Worker(Row),
}

/// The part of an arrow at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrow {
    Begins(u64),
    /// Arrives from one point and continues to another.
    Passes(u64),
    Ends(u64),
}

/// A slice of a worker's time.
pub(super) struct Slice<'a> {
    pub(super) row: Row,
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
    pub(super) name: &'a str,
    pub(super) arguments: Arguments,
    /// CPU time, for slices that can lose time.
    pub(super) cpu_ns: Option<u64>,
    /// Begin, end and name; strictly nested, outer before inner.
    pub(super) spans: Vec<(u64, u64, &'a str)>,
    /// Arrows that end here.
    pub(super) arrows: Vec<u64>,
}

/// An event without duration.
pub(super) struct Point<'a> {
    pub(super) place: Track,
    pub(super) at_ns: u64,
    pub(super) name: &'a str,
    pub(super) arguments: Arguments,
    pub(super) arrow: Option<Arrow>,
    /// Whether it marks missing events.
    pub(super) dropped: bool,
}

/// A new value of a counter.
pub(super) struct Count<'a> {
    /// A rank, or the run.
    pub(super) place: Track,
    pub(super) name: &'a str,
    pub(super) unit: &'static str,
    pub(super) at_ns: u64,
    pub(super) value: f64,
}

/// A format for viewers.
pub(super) trait Viewer {
    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()>;
    fn point(&mut self, point: &Point<'_>) -> io::Result<()>;
    fn count(&mut self, count: &Count<'_>) -> io::Result<()>;
    /// Ends a turn. The next slice on a track is later than all that was passed for this track.
    fn end_slice(&mut self) -> io::Result<()> {
        Ok(())
    }
}
