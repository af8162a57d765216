//! One shape of program, as the code that starts its ranks sees it.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::context::RankContext;
use crate::config::Config;
use crate::error::Error;
use crate::ids::Rank;
#[cfg(feature = "mpi")]
use crate::wire::codec::Codec;

/// One shape of program, as its ranks run it.
pub(crate) trait Shape: Sync {
    /// A packet between its ranks.
    type Packet: Send;

    /// The figures of a rank at the end. Each of several processes gets the figures of all ranks, without the fields that
    /// serde skips.
    type Figures: Default + Send + Serialize + DeserializeOwned;

    /// A rank that is set up.
    type Rank<'s>: ReadyRank<Packet = Self::Packet, Figures = Self::Figures>
    where
        Self: 's;

    /// Its name in records.
    fn recorded(&self) -> lb_strategies::Shape;

    /// The program in one line: the same on every rank.
    #[cfg(feature = "mpi")]
    fn text(&self) -> String;

    /// The strategy that balances it, as given.
    fn lb<'c>(&self, config: &'c Config) -> &'c str;

    /// Ranks in one process, and the workers of each.
    fn size(&self, config: &Config) -> (u32, u32);

    /// Threads of a rank that sleep and are woken; the first of them drives its transport.
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

    /// Runs it, with the calling thread as the one that drives its transport. If it fails, the outcome has the error.
    fn run(self, seat: RankContext<'_, Self::Packet>) -> Self::Figures;
}
