//! Defines the errors of all programs, their exit codes, and which processes of a job have them.

use std::path::PathBuf;

/// Why a program ended without a result. Every message is one line.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An option that cannot be met: change the command line.
    #[error("{0}")]
    Usage(String),
    /// An output that could not be written, on a full disk for instance: make room.
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
    /// A neighbour was requested beside a worker that is not pinned to one vCPU. It would disturb all workers.
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
    /// A neighbour was stopped by a signal: the run was not disturbed as requested. Try again.
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
    /// Not an error: help or the list of strategies was requested instead of a run.
    #[error("{0}")]
    Listed(String),
    /// The result lacks a part of the request: request less, or allow more time.
    #[error("{0}")]
    Lacking(String),
    /// The result is wrong: never the user's fault.
    #[error("the result of `{lb}` is not that of the serial reference: {difference}")]
    Differs {
        /// The strategy that ran.
        lb: String,
        /// The first difference, in words.
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

    /// True if every process of a job has this error when one process has it.
    ///
    /// All processes read the same command line, and a run ends with an error on all ranks. But when a rank is lost,
    /// each remaining process reports its own observation, and a refusal of the system concerns only one process.
    #[must_use]
    pub fn is_known_to_all(&self) -> bool {
        match self {
            Self::Usage(_) | Self::Listed(_) | Self::Lacking(_) => true,
            Self::Runtime(error) => {
                // If the processes of a job cannot connect, this process may be the only one.
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
