//! Moves packets between ranks, and nothing else.

pub(crate) mod local;
pub(crate) mod sim;

use crate::core::packet::Packet;
use crate::ids::Rank;

/// The way between ranks. Only worker 0 of a rank calls it.
///
/// Every packet arrives exactly once; packets from one rank to another arrive in the order they were sent; no other
/// order is promised. No call blocks.
pub(crate) trait Transport: Send {
    /// Takes a packet for another rank. It may leave now or at the next `poll` or `idle`.
    fn send(&mut self, to: Rank, packet: Packet);

    /// The next packet that has arrived, with its sender.
    fn poll(&mut self) -> Option<(Rank, Packet)>;

    /// The rank has nothing else to do: everything that still lies here should leave. True if it all has.
    fn idle(&mut self) -> bool;

    /// Whether `poll` would return something, without taking it.
    fn ready(&self) -> bool;
}
