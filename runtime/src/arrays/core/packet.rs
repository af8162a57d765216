//! The packets between ranks of a program of arrays: a message between chunks, or a packet of one of the protocols.
//!
//! A transport keeps the order of packets between each pair of ranks and promises nothing else. All decisions of rank 0
//! (numbers of broadcasts, migrations) rely on that order, along the edges of the [tree](super::collectives::tree) of
//! ranks.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::checkpoint::CheckpointPacket;
use super::collectives::CollectivePacket;
use super::flow::FlowPacket;
use super::lifecycle::LifecyclePacket;
use super::lifecycle::erased::ErasedArray;
use super::routing::cut::CutPacket;
use super::routing::envelope::Envelope;
use super::routing::in_flight::Epoch;
use super::routing::message_list::MessageNode;
use super::sync::SyncPacket;
use super::termination::TerminationPacket;
use crate::error::Error;
use crate::wire::WireError;

/// A packet from one rank to another.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Packet {
    Message(Envelope),
    Collective(CollectivePacket),
    Checkpoint(CheckpointPacket),
    Cut(CutPacket),
    Flow(FlowPacket),
    Lifecycle(LifecyclePacket),
    Sync(SyncPacket),
    Termination(TerminationPacket),
    /// The run is over.
    Exit,
    /// The run cannot go on.
    Abort(Box<Error>),
}

/// Converts a packet of a protocol to a [`Packet`].
macro_rules! nested {
    ($($protocol:ident($packet:ty)),* $(,)?) => {$(
        impl From<$packet> for Packet {
            fn from(packet: $packet) -> Packet {
                Packet::$protocol(packet)
            }
        }
    )*};
}

nested! {
    Checkpoint(CheckpointPacket),
    Collective(CollectivePacket),
    Cut(CutPacket),
    Flow(FlowPacket),
    Lifecycle(LifecyclePacket),
    Sync(SyncPacket),
    Termination(TerminationPacket),
}

impl Packet {
    /// Takes the message of a node, which is free afterwards.
    #[inline(always)]
    pub(crate) fn from_node(node: &mut MessageNode, epoch: Epoch) -> Packet {
        Packet::Message(Envelope { to: node.to, delivery: node.message.take(), epoch })
    }

    /// True if the search for quiescence counts the packet. The search does not count its own packets.
    pub(crate) fn is_counted(&self) -> bool {
        match self {
            Packet::Termination(packet) => !packet.is_of_search(),
            // An idle rank may signal once more.
            Packet::Sync(SyncPacket::Signal(_) | SyncPacket::Resize { .. }) | Packet::Checkpoint(_) => false,
            _ => true,
        }
    }

    /// The epoch of the routes under which the packet was sent, if a [cut](super::routing::cut) counts it.
    pub(crate) fn epoch_mut(&mut self) -> Option<&mut Epoch> {
        match self {
            Packet::Message(Envelope { epoch, .. }) => Some(epoch),
            Packet::Collective(packet) => packet.epoch_mut(),
            Packet::Lifecycle(packet) => packet.epoch_mut(),
            _ => None,
        }
    }

    /// A copy for a child in the tree, if rank 0 sends the packet to all ranks.
    pub(crate) fn copy_to_child(&self) -> Option<Packet> {
        match self {
            Packet::Checkpoint(packet) => packet.copy_to_child().map(Packet::Checkpoint),
            Packet::Collective(packet) => packet.copy_to_child().map(Packet::Collective),
            Packet::Flow(packet) => packet.copy_to_child().map(Packet::Flow),
            Packet::Sync(packet) => packet.copy_to_child().map(Packet::Sync),
            Packet::Termination(packet) => packet.copy_to_child().map(Packet::Termination),
            _ => None,
        }
    }

    /// True if rank 0 sends the packet to all ranks, down the tree.
    pub(crate) fn is_tree_broadcast(&self) -> bool {
        match self {
            Packet::Checkpoint(packet) => packet.is_tree_broadcast(),
            Packet::Collective(packet) => matches!(packet, CollectivePacket::Broadcast { .. }),
            Packet::Flow(packet) => matches!(packet, FlowPacket::MaxReceivers { .. }),
            Packet::Sync(packet) => {
                matches!(
                    packet,
                    SyncPacket::ActiveRanks { .. }
                        | SyncPacket::OpenWindow { .. }
                        | SyncPacket::Decision { .. }
                        | SyncPacket::CompleteMigration(_)
                )
            }
            Packet::Termination(packet) => {
                matches!(packet, TerminationPacket::Probe | TerminationPacket::Explain { .. })
            }
            _ => false,
        }
    }

    /// Encodes all typed messages and seeds inside, so that the packet can be serialised. A transferred chunk stays
    /// live.
    pub(crate) fn encode_in_place(&mut self, arrays: &[Arc<dyn ErasedArray>]) -> Result<(), WireError> {
        match self {
            Packet::Message(envelope) => envelope.encode_in_place(arrays),
            Packet::Collective(packet) => packet.encode_in_place(arrays),
            Packet::Lifecycle(packet) => packet.encode_in_place(arrays),
            Packet::Termination(TerminationPacket::AtQuiescence(envelope)) => {
                envelope.encode_in_place(arrays)
            }
            _ => Ok(()),
        }
    }

    /// The name of the packet's kind, for an error.
    pub(crate) fn name(&self) -> &'static str {
        let name = match self {
            Packet::Checkpoint(packet) => serde_variant::to_variant_name(packet),
            Packet::Collective(packet) => serde_variant::to_variant_name(packet),
            Packet::Cut(packet) => serde_variant::to_variant_name(packet),
            Packet::Flow(packet) => serde_variant::to_variant_name(packet),
            Packet::Lifecycle(packet) => serde_variant::to_variant_name(packet),
            Packet::Sync(packet) => serde_variant::to_variant_name(packet),
            Packet::Termination(packet) => serde_variant::to_variant_name(packet),
            Packet::Message(_) | Packet::Exit | Packet::Abort(_) => serde_variant::to_variant_name(self),
        };
        name.unwrap_or("packet")
    }
}
