//! Moves packets between ranks, and does nothing else. `P` is the packet type of the program's shape.

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

/// A connection to all other ranks. Only one thread per rank calls it: worker 0, or the communication thread of a pool.
///
/// Every packet arrives exactly once. Packets from one rank to another arrive in the order they were sent, except freight
/// (see [`Codec`](crate::wire::codec::Codec)), which is ordered only among itself. No other order is promised. No call
/// blocks, except `close`.
pub(crate) trait Transport<P> {
    /// Sends a packet to another rank. It may leave now or at the next `poll` or `idle`.
    ///
    /// # Errors
    /// [`Error::Wire`] when it cannot be encoded; then the packet is lost.
    fn send(&mut self, to: Rank, packet: P) -> Result<(), Error>;

    /// As [`send`](Self::send), for a transport that sends bytes: `write` appends the encoded packet to the bytes that
    /// leave, as its [`Codec`](crate::wire::codec::Codec) would encode it. Not for freight. Returns None, and does not call
    /// `write`, where packets are sent as they are.
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

    /// Gives the receiver the packets that have arrived, each with its sender, until there are no more or the receiver wants
    /// no more.
    ///
    /// # Errors
    /// [`Error::Wire`] when a packet cannot be decoded, or freight that waited here cannot be encoded; and errors of the
    /// network. That packet is lost; others may follow it.
    fn poll_each(&mut self, receiver: &mut dyn PacketHandler<P>) -> Result<(), Error>;

    /// Tells whether polls follow each other closely from now on. If so a poll may skip ranks that have not sent lately. At
    /// first, and with false, each poll asks all ranks.
    fn set_frequent_polls(&mut self, _often: bool) {}

    /// The next packet that has arrived.
    ///
    /// # Errors
    /// As of `poll_each`.
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

    /// The rank is idle: sends all packets still queued here. True if all have left.
    fn idle(&mut self) -> bool;

    /// Tells whether `poll` might return something. Takes no packet.
    fn ready(&mut self) -> bool;

    /// Tells whether the send queue of a slow receiver is so long that this rank should produce no more packets. It goes on
    /// receiving.
    fn congested(&self) -> bool {
        false
    }

    /// Tells whether a transfer is in flight that will soon be complete, and whose completion wakes no thread.
    fn has_transfers(&self) -> bool {
        false
    }

    /// The time that this rank may sleep without missing packets. None, if senders wake it, means without limit.
    fn nap(&mut self) -> Option<Duration> {
        None
    }

    /// The rank sends no more. Returns when all ranks have received all packets, or when `lost` tells that the run is
    /// lost. `lost` is given a function that lists the ranks that have not closed yet.
    fn close(&mut self, lost: &dyn Fn(OpenRanks<'_>) -> bool);
}

/// Receives the packets that have arrived.
pub(crate) trait PacketHandler<P> {
    /// Takes a packet from that rank. True if the handler wants more.
    fn take(&mut self, from: Rank, packet: P) -> bool;

    /// As [`take`](Self::take), for an encoded packet without blocks, to be read in place. None if it is to be decoded
    /// first and given to `take`.
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

/// Lists the ranks that are not known to have received everything.
pub(crate) type OpenRanks<'s> = &'s dyn Fn() -> Vec<Rank>;
