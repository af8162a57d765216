//! Errors of a program of this package, sorted by what the user can do about it.

use std::path::PathBuf;

/// Why a program ended without a result. Every message is one line.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An option that cannot be met: change the command line.
    #[error("{0}")]
    Usage(String),
    /// An output that was lost on the way, on a full disk for instance: make room.
    #[error("cannot write {}: {source}", path.display())]
    Output {
        /// The path as it was given.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A file named on the command line that cannot be opened: choose another path, or change its permissions.
    #[error("cannot write {}: {source}", path.display())]
    Unwritable {
        /// The path as it was given.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The system refused something the experiment needs.
    #[error("{what}: {source}")]
    System {
        /// The thing that was tried.
        what: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A neighbour was asked for beside a worker that has no vCPU to itself: the neighbour would disturb all of them.
    #[error("--neighbour needs a vCPU for each worker: worker 0 of rank {rank} is not pinned to one")]
    NotPinned {
        /// The rank.
        rank: u32,
    },
    /// A neighbour was killed, say for memory: the run was not disturbed as requested. Try again.
    #[error(
        "the neighbour of rank {rank} ended after {completed} steps ({status}), before it was due: the run was not disturbed as asked"
    )]
    NeighbourEnded {
        /// The rank.
        rank: u32,
        /// Steps of the run by then.
        completed: u32,
        /// How it ended.
        status: std::process::ExitStatus,
    },
    /// A neighbour was stopped, by a signal: as of one that was killed.
    #[error(
        "the neighbour of rank {rank} was stopped for a time, seen after {completed} steps: the run was not disturbed as asked"
    )]
    NeighbourStopped {
        /// The rank.
        rank: u32,
        /// Steps of the run by then.
        completed: u32,
    },
    /// The runtime could not start the run, or could not go on with it.
    #[error(transparent)]
    Runtime(#[from] caribou::Error),
    /// No error: help or the list of strategies was asked for, instead of a run.
    #[error("{0}")]
    Listed(String),
    /// The result is not what was asked for: ask for less, or for more time.
    #[error("{0}")]
    Lacking(String),
    /// The result is wrong: never the user's fault.
    #[error("the result of `{lb}` is not that of the serial reference: {difference}")]
    Differs {
        /// The strategy that ran.
        lb: String,
        /// The cells that differ.
        difference: String,
    },
}

impl Error {
    /// The exit code of a program that ends with this error: 2 for a bad command line, the runtime's for an error of a run,
    /// 1 otherwise.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Listed(_) => 0,
            Self::Usage(_) | Self::Unwritable { .. } => 2,
            Self::Runtime(error) => error.exit_code(),
            Self::Output { .. }
            | Self::System { .. }
            | Self::NeighbourEnded { .. }
            | Self::NeighbourStopped { .. }
            | Self::NotPinned { .. }
            | Self::Lacking(_)
            | Self::Differs { .. } => 1,
        }
    }

    /// Tells if every process of a job has this error when one has it.
    ///
    /// All read the same command line, and a run ends with an error on all ranks. But when a rank is lost, each remaining
    /// process reports what it knows, and what a system refuses it refuses one process.
    #[must_use]
    pub fn is_known_to_all(&self) -> bool {
        match self {
            Self::Usage(_) | Self::Listed(_) | Self::Lacking(_) => true,
            Self::Runtime(error) => {
                // Of processes that cannot meet, this may be the only one.
                let alone =
                    matches!(error, caribou::Error::Config { setting, .. } if setting == "CARIBOU_PROCESSES");
                !alone && !matches!(error, caribou::Error::RankLost { .. } | caribou::Error::System { .. })
            }
            Self::Output { .. }
            | Self::Unwritable { .. }
            | Self::System { .. }
            | Self::NeighbourEnded { .. }
            | Self::NeighbourStopped { .. }
            | Self::NotPinned { .. }
            | Self::Differs { .. } => false,
        }
    }
}
