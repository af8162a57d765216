//! Moves packets between ranks, by one [`Transport`] per rank. The type `P` of packets depends on the program: arrays
//! and pools have other packets.

#[cfg(all(test, not(loom)))]
mod conformance;
mod fair_poller;
pub(crate) mod handle;
pub(crate) mod local;
#[cfg(feature = "mpi")]
pub(crate) mod mpi;
#[cfg(any(feature = "mpi", test))]
mod ring;
pub(crate) mod sim;

use std::time::Duration;

use crate::error::Error;
use crate::ids::Rank;
use crate::wire::codec::Encoded;

/// The connection of a rank to all other ranks. Only one thread per rank calls it: worker 0, or the communication
/// thread of a pool.
///
/// Every packet arrives exactly once. Packets from one rank to another arrive in the order of their sends. Freight (see
/// [`Codec`](crate::wire::codec::Codec)) keeps this order only among freight. No call blocks, except `close`.
pub(crate) trait Transport<P> {
    /// Sends a packet to another rank. The packet may leave now, or at the next `poll` or `idle`.
    ///
    /// # Errors
    /// [`Error::Wire`] when the packet cannot be encoded. The packet is then lost.
    fn send(&mut self, to: Rank, packet: P) -> Result<(), Error>;

    /// As [`send`](Self::send), for a transport that sends bytes: `write` appends the packet to the outgoing bytes,
    /// encoded as by its [`Codec`](crate::wire::codec::Codec). Not for freight. A transport that moves packets without
    /// encoding returns None, and does not call `write`.
    ///
    /// # Errors
    /// The errors of `write`.
    fn send_written(
        &mut self,
        _to: Rank,
        _write: &mut dyn FnMut(&mut Vec<u8>) -> Encoded,
    ) -> Option<Result<(), Error>> {
        None
    }

    /// Passes the packets that have arrived to the receiver, each with its sender. Ends when there are no more, or when
    /// the receiver returns false.
    ///
    /// # Errors
    /// [`Error::Wire`] when an arrived packet cannot be decoded or queued freight cannot be encoded, and errors of the
    /// network. That packet is lost; later packets are not.
    fn poll_each(&mut self, receiver: &mut dyn PacketHandler<P>) -> Result<(), Error>;

    /// Sets whether polls follow each other closely from now on. If so, a poll may skip ranks that have not sent
    /// lately. Otherwise, and by default, each poll covers all ranks.
    fn set_frequent_polls(&mut self, _often: bool) {}

    /// The next packet that has arrived.
    ///
    /// # Errors
    /// As [`poll_each`](Self::poll_each).
    fn poll(&mut self) -> Option<Result<(Rank, P), Error>> {
        let mut next = None;
        let polled = self.poll_each(&mut |from: Rank, packet: P| {
            next = Some((from, packet));
            false
        });
        match polled {
            Ok(()) => next.map(Ok),
            Err(error) => Some(Err(error)),
        }
    }

    /// Sends all queued packets, because the rank is idle. True if all have left.
    fn idle(&mut self) -> bool;

    /// Tells whether `poll` might return a packet. Takes no packet.
    fn ready(&mut self) -> bool;

    /// Tells whether the send queue to a slow receiver is so long that this rank should produce no more packets. The
    /// rank must still receive.
    fn congested(&self) -> bool {
        false
    }

    /// Tells whether a transfer is in flight that will soon be complete, and whose completion wakes no thread.
    fn has_transfers(&self) -> bool {
        false
    }

    /// How long this rank may sleep without missing packets. None means without limit, because senders wake the rank.
    fn nap(&mut self) -> Option<Duration> {
        None
    }

    /// Ends sending. Returns when all ranks have received all packets, or when `lost` returns true because the run is
    /// lost. The argument of `lost` lists the ranks that have not closed yet.
    fn close(&mut self, lost: &dyn Fn(OpenRanks<'_>) -> bool);
}

/// Receives the packets that have arrived.
pub(crate) trait PacketHandler<P> {
    /// Takes a packet from that rank. True if the handler wants more.
    fn take(&mut self, from: Rank, packet: P) -> bool;

    /// As [`take`](Self::take), for an encoded packet without blocks, which is read in place. None if the packet must
    /// be decoded and passed to `take` instead.
    ///
    /// # Errors
    /// [`Error::Wire`] when the bytes cannot be read.
    fn read(&mut self, _from: Rank, _bytes: &[u8]) -> Option<Result<bool, Box<Error>>> {
        None
    }
}

impl<P, T: FnMut(Rank, P) -> bool> PacketHandler<P> for T {
    fn take(&mut self, from: Rank, packet: P) -> bool {
        self(from, packet)
    }
}

/// Lists the ranks that may not have received all packets.
pub(crate) type OpenRanks<'s> = &'s dyn Fn() -> Vec<Rank>;
