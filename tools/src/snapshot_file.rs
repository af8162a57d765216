//! Reads a recorded snapshot, and refuses one that cannot be.
//!
//! Strategies put up with any snapshot; a person who passes a damaged file wants to hear about it.

use std::io;
use std::path::{Path, PathBuf};

use lb_strategies::Snapshot;

use crate::input;

/// Reasons that a file is no snapshot.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Name a file that can be read.
    #[error("{}: cannot be read: {source}", file.display())]
    Unreadable {
        /// The file named.
        file: PathBuf,
        /// Message of the system.
        source: io::Error,
    },
    /// Name a file that holds a snapshot in JSON.
    #[error("{}: not a snapshot: {source}", file.display())]
    Malformed {
        /// The file named.
        file: PathBuf,
        /// Expected text, with line and column.
        source: serde_json::Error,
    },
    /// The file is JSON of the right shape, but contradicts itself.
    #[error("{}: {what}", file.display())]
    Inconsistent {
        /// The file named.
        file: PathBuf,
        /// Place, text, and what was expected.
        what: String,
    },
}

/// Reads the snapshot in `file`.
pub(crate) fn read(file: &Path) -> Result<Snapshot, Error> {
    let bytes = input::read(file).map_err(|source| Error::Unreadable { file: file.to_owned(), source })?;
    let snapshot = serde_json::from_slice(&bytes)
        .map_err(|source| Error::Malformed { file: file.to_owned(), source })?;
    match contradiction(&snapshot) {
        None => Ok(snapshot),
        Some(what) => Err(Error::Inconsistent { file: file.to_owned(), what }),
    }
}

/// The first thing in the snapshot that cannot have been measured.
fn contradiction(snapshot: &Snapshot) -> Option<String> {
    for (position, rank) in snapshot.ranks.iter().enumerate() {
        if !(rank.speed.is_finite() && rank.speed > 0.0) {
            return Some(format!("ranks[{position}]: speed is {}, expected a number above 0", rank.speed));
        }
        if !(rank.share > 0.0 && rank.share <= 1.0) {
            return Some(format!(
                "ranks[{position}]: share is {}, expected a number above 0 and up to 1",
                rank.share
            ));
        }
    }
    let ranks = snapshot.ranks.len();
    let lost = snapshot.chunks.iter().position(|chunk| chunk.rank.index() >= ranks);
    if let Some(position) = lost {
        let rank = snapshot.chunks[position].rank;
        return Some(format!(
            "chunks[{position}]: rank is {rank}, expected one of the {ranks} ranks, counted from 0"
        ));
    }
    let chunks = snapshot.chunks.len();
    let loose = snapshot.edges.iter().position(|edge| edge.from.max(edge.to) >= chunks)?;
    Some(format!("edges[{loose}]: names a chunk that is not there, expected a position below {chunks}"))
}
