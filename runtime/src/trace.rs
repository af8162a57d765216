//! Records what happens in a run, and writes it to files if requested (a *trace*).
//!
//! | always recorded | on request (`CARIBOU_TRACE`) |
//! |---|---|
//! | a bounded [`Profile`] of each worker: time by message kind and state, in bins | every [`Event`] of every worker |
//! | a [`Sample`] of each rank at syncs | a [`Look`] at other processes where much time was lost |
//! | a [`SyncReport`] of each sync, on rank 0 | |
//! | the [`RunRecord`] | a [`StepRecord`] of each step of a program in supersteps, on rank 0 |
//!
//! On request both columns are written, one file per rank, block by block. Memory is bounded, and a run that dies
//! leaves the blocks that it has written. The package `trace-reader` reads traces, and `caribou trace` shows them.
//!
//! Layers, each of which uses only earlier ones: data (`event`, `records`, `profile`), events as bytes ([`encoding`]),
//! blocks and checksums ([`block`]), files ([`Writer`]).

pub(crate) mod activity_board;
pub mod block;
pub mod encoding;
mod event;
pub(crate) mod filter;
mod profile;
pub(crate) mod queued_bytes;
pub(crate) mod recorder;
pub(crate) mod recording;
pub(crate) mod records;
mod steps;
mod syncs;
mod writer;

pub use crate::measure::records::{Look, Sample, Taker};
pub(crate) use event::UserEvent;
pub use event::{ArrayId, ChunkId, Event, NameId, Part, RUNTIME, What};
pub use filter::Filter;
pub use lb_strategies::Shape;
pub use profile::{Activity, BINS_MAX, Profile, Row};
pub use recording::RankProfile;
pub use records::{ClockOffset, End, Name, Names, RunRecord};
pub use steps::{StepRecord, StepWorker, StepsSoFar};
pub use syncs::{SyncReport, SyncTotals};
pub use writer::{Writer, file_name};

/// The longest run that a trace can hold: 104 days. Up to this time, sums over some thousand workers do not overflow,
/// and times are exact as `f64`.
pub const TIME_MAX_NS: u64 = 1 << 53;
