//! The failures of a link to another process, and the errors of the run that they become.

use super::raw::MpiError;
use crate::error::Error;
use crate::ids::Rank;

pub(crate) enum Failure {
    /// A packet cannot be encoded or decoded.
    Wire(Box<Error>),
    /// The other process sent bytes that are no frame.
    Malformed {
        from: u32,
    },
    Mpi(MpiError),
}

impl From<MpiError> for Failure {
    fn from(why: MpiError) -> Failure {
        Failure::Mpi(why)
    }
}

impl Failure {
    #[cold]
    pub(super) fn wire(why: Error) -> Failure {
        Failure::Wire(Box::new(why))
    }

    /// The error of the run on rank `rank`.
    pub(super) fn error(self, rank: u32) -> Error {
        match self {
            Failure::Wire(error) => *error,
            Failure::Malformed { from } => Error::Wire {
                rank: Rank(rank),
                what: format!("the data from rank {from}"),
                why: "it is not a frame, so the memory or the program of one of the two ranks is damaged"
                    .into(),
            },
            Failure::Mpi(why) => Error::System { what: format!("rank {rank}: MPI"), why: why.to_string() },
        }
    }
}
