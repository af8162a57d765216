//! What can go wrong in a program of this package, sorted by what the person at the keyboard can do about it.

use std::path::PathBuf;

/// Why a program ended without a result. Every message is one line.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An option that cannot be met: change the command line.
    #[error("{0}")]
    Usage(String),
    /// A file that cannot be written: choose another path, or change its permissions.
    #[error("cannot write {}: {source}", path.display())]
    Output {
        /// The path as it was given.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The system refused something the experiment needs.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The runtime could not start the run, or could not go on with it.
    #[error(transparent)]
    Runtime(#[from] caribou::Error),
    /// The result is wrong: never the user's fault.
    #[error("the result of `{lb}` is not that of the serial reference: {difference}")]
    Differs {
        /// The strategy that ran.
        lb: String,
        /// Which cells.
        difference: String,
    },
}

impl Error {
    /// The exit code of a program that ends with this error: 2 for a bad command line, 1 otherwise.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Runtime(caribou::Error::Config { .. }) => 2,
            Self::Output { .. } | Self::System { .. } | Self::Differs { .. } | Self::Runtime(_) => 1,
        }
    }
}
