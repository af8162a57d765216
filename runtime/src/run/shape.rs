//! The interface between a shape of program (arrays, pools) and the code that starts its ranks.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::context::RankContext;
use crate::config::Config;
use crate::error::Error;
use crate::ids::Rank;
#[cfg(feature = "mpi")]
use crate::wire::codec::Codec;

/// A shape of program, with the setup of one run.
pub(crate) trait Shape: Sync {
    /// A packet between ranks.
    type Packet: Send;

    /// What a rank reports at its end. Each process of a job gets all ranks' figures, without fields that serde skips.
    type Figures: Default + Send + Serialize + DeserializeOwned;

    /// A rank that is set up.
    type Rank<'s>: ReadyRank<Packet = Self::Packet, Figures = Self::Figures>
    where
        Self: 's;

    /// The name of the shape in records.
    fn recorded(&self) -> lb_strategies::Shape;

    /// The program in one line, which must be the same on every rank.
    #[cfg(feature = "mpi")]
    fn text(&self) -> String;

    /// The strategy or policy that balances the run, as given.
    fn lb<'c>(&self, config: &'c Config) -> &'c str;

    /// Number of ranks in one process, and of workers of each.
    fn size(&self, config: &Config) -> (u32, u32);

    /// Number of threads of a rank that sleep and are woken. The first of them drives the transport.
    fn sleepers(&self, workers: u32) -> u32;

    /// The name of the thread that drives a rank's transport.
    fn driver_thread_name(&self, rank: Rank) -> String;

    /// Sets a rank up before the run begins, on the thread that will run it.
    fn set_up(&self, rank: Rank, ranks: u32) -> Result<Self::Rank<'_>, Error>;
}

/// A rank that is set up.
pub(crate) trait ReadyRank {
    type Packet;
    type Figures;
    #[cfg(feature = "mpi")]
    type Codec: Codec<Packet = Self::Packet>;

    /// Encodes and decodes packets to and from other processes.
    #[cfg(feature = "mpi")]
    fn codec(&self, rank: Rank) -> Self::Codec;

    /// Runs the rank. The calling thread drives its transport. If the rank fails, the outcome has the error.
    fn run(self, seat: RankContext<'_, Self::Packet>) -> Self::Figures;
}
