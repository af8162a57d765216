//! Termination: detects that nothing is left to do, and counts messages that reached no chunk.
//!
//! | module | part |
//! |---|---|
//! | [`quiescence`] | rank 0 searches for the moment when no handler runs and no packet is in flight |
//! | [`undelivered`] | messages that reached no chunk, at the end of a run |

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use self::quiescence::{Quiescence, Traffic};
use self::undelivered::Addressees;
use super::collectives::population::Tally;
use super::collectives::tree::Convergecast;
use super::routing::envelope::Envelope;
use crate::ids::{ArrayId, ChunkId, Rank, SyncId};

pub(crate) mod quiescence;
pub(crate) mod undelivered;

/// One rank's part of the search for quiescence, and its counts of undelivered messages.
#[derive(Default)]
pub(crate) struct Termination {
    /// Packets that this rank has sent and received.
    pub(crate) traffic: Traffic,
    /// Messages that wait on this rank until a timer expires.
    pub(crate) delayed: u64,
    /// Rank 0 has asked: this rank replies as soon as it is idle.
    pub(crate) probed: bool,
    pub(crate) replies: Convergecast<Traffic>,
    pub(crate) explanations: Convergecast<StallExplanation>,
    pub(crate) undelivered: DeliveryCounts,
    /// Used by rank 0 only.
    pub(crate) quiescence: Quiescence,
    /// Messages that rank 0 sends at quiescence.
    pub(crate) at_quiescence: Vec<Envelope>,
}

/// The counts that distinguish undelivered messages from messages in flight, see [`undelivered`].
#[derive(Default)]
pub(crate) struct DeliveryCounts {
    pub(crate) unread: Addressees,
    /// Migrations that this rank has heard of.
    pub(crate) migrations: u64,
    /// Numbers of chunks that handlers of this rank have inserted, by the rank they were sent to.
    pub(crate) inserted: BTreeMap<Rank, u64>,
    /// Number of inserted chunks that have come to this rank.
    pub(crate) admitted: u64,
    /// The first chunks that removed themselves on this rank. A report marks messages to them.
    pub(crate) removed: BTreeSet<ChunkId>,
}

/// The most removed chunks that a rank remembers.
pub(crate) const REMOVED_MAX: usize = 4096;

/// A packet of the search for quiescence, or of the steps that follow it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum TerminationPacket {
    /// A message between chunks that rank 0 sends at quiescence.
    AtQuiescence(Box<Envelope>),
    /// Asks for a reply once the receiver has nothing to do. Down the tree.
    Probe,
    /// Packets sent and received so far by idle ranks. To the parent.
    ProbeReply(Traffic),
    /// The run has stalled: asks what waits, and which chunks have not contributed to these reductions. Down the tree.
    Explain { open: Vec<(ArrayId, u64)> },
    /// What waits on some ranks. To the parent.
    StallExplanation(StallExplanation),
}

impl TerminationPacket {
    /// Tells whether the packet belongs to the search itself, which does not count its own packets.
    pub(crate) fn is_of_search(&self) -> bool {
        !matches!(self, TerminationPacket::AtQuiescence(_))
    }

    /// A copy for a child in the tree.
    pub(crate) fn copy_to_child(&self) -> Option<TerminationPacket> {
        match self {
            TerminationPacket::Probe => Some(TerminationPacket::Probe),
            TerminationPacket::Explain { open } => Some(TerminationPacket::Explain { open: open.clone() }),
            _ => None,
        }
    }
}

/// The explanation of a stall: what waits on some ranks, for people.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct StallExplanation {
    pub(crate) lines: Vec<String>,
    /// Reports to syncs, with their arrays, that have not gone to rank 0.
    pub(crate) reported: Vec<(SyncId, ArrayId, Tally)>,
}
