//! Moves packets between ranks, and nothing else: `P` is the packet of whatever shape of program runs.

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

/// The way between ranks. Only one thread of a rank calls it: worker 0, or the monitor of a pool.
///
/// Every packet arrives exactly once; packets from one rank to another arrive in the order they were sent, but for freight
/// (see [`Codec`](crate::wire::codec::Codec)), which keeps an order of its own; no other order is promised. No call blocks,
/// but for `close`.
pub(crate) trait Transport<P> {
    /// Takes a packet for another rank. It may leave now or at the next `poll` or `idle`.
    ///
    /// # Errors
    /// [`Error::Wire`] when it cannot be encoded; it is gone then.
    fn send(&mut self, to: Rank, packet: P) -> Result<(), Error>;

    /// The same of a packet that `write` appends to the bytes that leave, for a transport that sends bytes: as its
    /// [`Codec`](crate::wire::codec::Codec) would encode it, and no freight. None, and `write` is not called, where packets are sent
    /// as they are.
    ///
    /// # Errors
    /// That of `write`.
    fn send_written(
        &mut self,
        _to: Rank,
        _write: &mut dyn FnMut(&mut Vec<u8>) -> Encoded,
    ) -> Option<Result<(), Error>> {
        None
    }

    /// Gives the packets that have arrived, each with its sender, as long as there are any and the receiver wants more.
    ///
    /// # Errors
    /// [`Error::Wire`] when one cannot be decoded, or freight that waited here cannot be encoded; and what the network says.
    /// That packet is gone; others may follow it.
    fn poll_each(&mut self, receiver: &mut dyn PacketHandler<P>) -> Result<(), Error>;

    /// Tells whether polls follow each other soon from now on. Then one may overlook those who have not spoken lately; at first,
    /// and where they do not, each asks everybody.
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

    /// The rank has nothing else to do: everything that still lies here should leave. True if it all has.
    fn idle(&mut self) -> bool;

    /// Tells whether `poll` might return something. Takes nothing.
    fn ready(&mut self) -> bool;

    /// Tells whether so much waits for a slow receiver that this rank should make no more of it. It goes on taking
    /// packets.
    fn congested(&self) -> bool {
        false
    }

    /// Tells whether something is under way that will be complete soon, and wakes nobody.
    fn has_transfers(&self) -> bool {
        false
    }

    /// The time that this rank may sleep without missing what arrives; none, which is for ever, where senders wake it.
    fn nap(&mut self) -> Option<Duration> {
        None
    }

    /// The rank sends no more. Returns when everybody has what was sent to them, or when `lost` says that the run is lost;
    /// it is given a way to ask who has not taken leave yet.
    fn close(&mut self, lost: &dyn Fn(OpenRanks<'_>) -> bool);
}

/// Who takes what has arrived.
pub(crate) trait PacketHandler<P> {
    /// Takes a packet from that rank. True if it wants more.
    fn take(&mut self, from: Rank, packet: P) -> bool;

    /// The same of an encoded packet that needs nothing beside its bytes, for who reads them where they lie. None if it is to be
    /// decoded, and taken so.
    ///
    /// # Errors
    /// [`Error::Wire`] when they cannot be read.
    fn read(&mut self, _from: Rank, _bytes: &[u8]) -> Option<Result<bool, Box<Error>>> {
        None
    }
}

impl<P, T: FnMut(Rank, P) -> bool> PacketHandler<P> for T {
    fn take(&mut self, from: Rank, packet: P) -> bool {
        self(from, packet)
    }
}

/// The ranks of which nobody knows yet whether they have everything.
pub(crate) type OpenRanks<'s> = &'s dyn Fn() -> Vec<Rank>;
