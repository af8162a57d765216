//! Termination: detects that nothing is left to do, and counts messages that reached no chunk.
//!
//! | module | purpose |
//! |---|---|
//! | [`quiescence`] | detects on rank 0 that no handler runs and no packet is in flight |
//! | [`undelivered`] | counts the messages that no chunk has received when the run ends |

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

/// The state of one rank for the search for quiescence, and its counts of undelivered messages.
#[derive(Default)]
pub(crate) struct Termination {
    /// Packets that this rank has sent and received.
    pub(crate) traffic: Traffic,
    /// Messages that wait on this rank until a timer expires.
    pub(crate) delayed: u64,
    /// True if this rank is to reply to a probe as soon as it is idle.
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
    /// Number of `Decision`s with moves that this rank has received.
    pub(crate) migrations: u64,
    /// Numbers of chunks that handlers of this rank have inserted, by the rank that got them.
    pub(crate) inserted: BTreeMap<Rank, u64>,
    /// Number of inserted chunks that have come to this rank.
    pub(crate) admitted: u64,
    /// The first [`REMOVED_MAX`] chunks that removed themselves on this rank. A report marks messages to them.
    pub(crate) removed: BTreeSet<ChunkId>,
}

/// The most removed chunks that a rank remembers.
pub(crate) const REMOVED_MAX: usize = 4096;

/// A packet of the search for quiescence, or of the steps that follow it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum TerminationPacket {
    /// A message between chunks that rank 0 sends at quiescence.
    AtQuiescence(Box<Envelope>),
    /// Requests a reply once the receiver has nothing to do. Down the tree.
    Probe,
    /// Packets sent and received so far by idle ranks. To the parent.
    ProbeReply(Traffic),
    /// The run has stalled: requests what waits, and which chunks have not contributed to these reductions. Down the
    /// tree.
    Explain { open: Vec<(ArrayId, u64)> },
    /// What waits on some ranks. To the parent.
    StallExplanation(StallExplanation),
}

impl TerminationPacket {
    /// True if the packet belongs to the search itself, which does not count its own packets.
    pub(crate) fn is_of_search(&self) -> bool {
        !matches!(self, TerminationPacket::AtQuiescence(_))
    }

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
    /// Tallies of reports to syncs that have not been sent to rank 0.
    pub(crate) reported: Vec<(SyncId, ArrayId, Tally)>,
}
