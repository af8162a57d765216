//! The records of a trace that are not events. They are JSON, in separate blocks.

use lb_strategies::Shape;
use serde::{Deserialize, Serialize};

use super::event::{ArrayId, ChunkId};

/// The description of a run, written at its beginning. Ranks differ in `rank`, and processes in `pid` and
/// `started_unix_ns`.
///
/// ```
/// let run = caribou::trace::RunRecord { ranks: 2, workers: vec![1, 4], ..Default::default() };
/// let read: caribou::trace::RunRecord = serde_json::from_str(&serde_json::to_string(&run)?)?;
/// assert_eq!(read, run);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunRecord {
    /// A unique name: the time when rank 0 began the run, and the process of rank 0.
    pub run_id: String,
    /// The command line before it is parsed, with the program first.
    pub arguments: Vec<String>,
    /// Caribou's version.
    pub version: String,
    /// The commit that Caribou was built from, if that is known.
    pub git_hash: String,
    /// The time at which the run began, ns since 1970.
    pub started_unix_ns: u64,
    /// The shape of the program.
    pub shape: Shape,
    /// The strategy or policy and its parameters, as given.
    pub lb: String,
    /// The requested predictor of loads, as given; empty if loads are not predicted.
    pub predict: String,
    /// Bytes that no strategy let the chunks of a rank exceed: `CARIBOU_LB_MEMORY`; none if there was no limit.
    pub memory_limit: Option<u64>,
    /// Number of ranks.
    pub ranks: u32,
    /// Workers of each rank.
    pub workers: Vec<u32>,
    /// Host of each rank.
    pub hosts: Vec<String>,
    /// Hosts, ranks, workers and their vCPUs, in one line.
    pub placement: String,
    /// True if every worker had a vCPU for itself.
    pub pinned: bool,
    /// The directory of the trace, as the rank names it; empty without a trace.
    pub trace: String,
    /// The filter of the recording: `CARIBOU_TRACE_FILTER`.
    pub filter: String,
    /// One of `arrows` sends is recorded; 0 if none is.
    pub arrows: u32,
    /// The rank of the file.
    pub rank: u32,
    /// The process of that rank.
    pub pid: u32,
}

/// The end of a run on one rank.
///
/// ```
/// assert_eq!(caribou::trace::End::default().failed, None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct End {
    /// Time from the set-up of all ranks to the end of this rank, ns.
    pub elapsed_ns: u64,
    /// Number of messages handled on this rank.
    pub messages: u64,
    /// The reason why the run failed, if it did.
    pub failed: Option<String>,
    /// Number of events, samples and syncs that were not written.
    pub dropped: u64,
    /// Clocks of all ranks; empty if all ranks are in one process.
    pub clocks: Vec<ClockOffset>,
}

/// A name that events refer to by number.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Name {
    /// The array, if this is the name of a message kind; none for marks, spans and counters.
    pub array: Option<ArrayId>,
    /// The name.
    pub text: String,
}

/// New names. Numbers continue those of earlier blocks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Names {
    /// Names, to which the next numbers belong.
    pub names: Vec<Name>,
    /// Chunks: array, key, and the text of the index for people.
    pub chunks: Vec<(ArrayId, u64, String)>,
    /// Names of all arrays, in order; written once.
    pub arrays: Vec<String>,
}

impl Names {
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.chunks.is_empty() && self.arrays.is_empty()
    }

    /// Chunks, and the texts of their indices for people.
    pub fn chunk_names(&self) -> impl Iterator<Item = (ChunkId, &str)> {
        self.chunks.iter().map(|(array, key, text)| (ChunkId { array: *array, key: *key }, text.as_str()))
    }
}

/// The offset of a rank's clock to the clock of rank 0. All times of a run are corrected by `begin_ns`.
///
/// ```
/// let clock = caribou::report::ClockOffset { begin_ns: -1_200, drift_ns: 40, error_ns: 900 };
/// assert!(clock.drift_ns.unsigned_abs() < clock.error_ns, "nothing that could be told from an error");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// The rank's clock minus the clock of rank 0 at the beginning of the run, ns.
    pub begin_ns: i64,
    /// Growth of this difference until the end of the run, ns.
    pub drift_ns: i64,
    /// The largest possible error of both, ns; 0 if both ranks read the same clock.
    pub error_ns: u64,
}
