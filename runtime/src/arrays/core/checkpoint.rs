//! Coordinated checkpoints: all ranks stop and copy their states, so that a run can be restarted from consistent
//! copies. [`Checkpoints`] is the state machine of one rank. Rank 0 also begins and commits checkpoints.
//!
//! # States of a rank
//!
//! | state | input | next state | output |
//! |---|---|---|---|
//! | Running | `Freeze` | Freezing | starts no more handlers |
//! | Freezing | the last chunk is held: its handler has returned | Frozen | none |
//! | Frozen | `Probe`, and the rank has nothing to do | Frozen | its counts of packets, to the parent |
//! | Frozen | `Save` | Frozen | copies its chunks with their messages, reports to the parent, and begins to write the copy |
//! | Frozen | `Thaw` | Running | its chunks go on |
//! | Frozen or Running | the copy is written, or cannot be | the same | reports to the parent |
//!
//! Rank 0 sends `Freeze` when a checkpoint is due, no balancing window is open and no chunk is migrating. It probes all
//! ranks until two waves of replies are alike, as in the search for [quiescence](super::termination::quiescence). Then
//! it sends `Save`, and `Thaw` once all ranks have copied. It commits the checkpoint when all ranks have written their
//! copies. A program that reduces over sections gets no checkpoints. A rank that is given [notice](crate::notice) sends
//! `Notice` to rank 0, which makes a checkpoint at once and ends the run.
//!
//! # Rules
//!
//! 1. *No handler* starts on a rank that is not Running, except `start` of a chunk that is already in its cell. Chunks
//!    that are inserted meanwhile are kept, with the broadcasts that come, and are admitted by `Thaw`.
//! 2. *All packets are handled* nevertheless: messages go into the mailboxes, partial results go up the tree.
//! 3. A frozen rank does not reply to the search for quiescence, because its chunks have unread messages.
//! 4. Packets of a checkpoint are not counted.
//! 5. *No request* to shrink or expand the run is carried out between rank 0's `Freeze` and its `Thaw`.
//! 6. *No timer* expires on a rank that is not Running: the message of a due timer waits until `Thaw`.
//!
//! # Proof that the copies are consistent
//!
//! 1. Each rank was frozen when it replied. Two waves were alike, and as many packets were received as sent. So no
//!    packet is in flight, and no rank has handled one since its first reply (see
//!    [quiescence](super::termination::quiescence)).
//! 2. So until `Thaw` nothing changes on any rank (rules 1, 5 and 6). Each message is in one mailbox, or waits for a
//!    timer or for a chunk that does not exist. Idle ranks have sent on their partial results, so all contributions so
//!    far are on rank 0. All ranks have applied the same broadcasts.
//! 3. Rank 0 sends `Save` after the second wave, and `Thaw` after all ranks have copied. So all copies are of one
//!    state.
//!
//! # What is not saved
//!
//! | not saved | reason |
//! |---|---|
//! | acks and blocked chunks of flow control | a restarted run has sent nothing yet |
//! | the search for quiescence | it begins again; messages that wait for quiescence are saved |
//! | measurements of the balancer | the restarted run may be on other machines, and a few windows replace them |
//! | placement, if the number of ranks differs, not all ranks were active, or the strategy moves no chunk | chunks restart at home |
//! | the number of active ranks | there may be another number of ranks |
//! | groups | they belong to processes |

use serde::{Deserialize, Serialize};

use super::collectives::reduction::RootReductions;
use super::collectives::tree::Convergecast;
use super::lifecycle::transfer::ChunkTransfer;
use super::routing::envelope::{Delivery, Envelope};
use super::termination::quiescence::{Quiescence, Traffic};
use crate::checkpoint::{Schedule, Written};
use crate::ids::{CellId, ChunkId, Rank};

/// A packet of a checkpoint.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum CheckpointPacket {
    /// Stops handlers, and requests a reply once the receiver has nothing to do. Down the tree.
    Freeze,
    /// Requests another reply. Down the tree.
    Probe,
    /// The counts of the sender and the ranks below it. To the parent.
    ProbeReply(FrozenCounts),
    /// All ranks are to copy their state. Down the tree.
    Save { number: u64 },
    /// The sender and the ranks below it have copied their state. To the parent.
    Copied,
    /// Handlers may start again. Down the tree.
    Thaw,
    /// The sender and the ranks below it have written their copies. To the parent.
    Written(Vec<RankWritten>),
    /// The sender was given notice; the text names the source. To rank 0.
    Notice(String),
    /// A chunk requests a checkpoint. To rank 0.
    Ask,
}

impl CheckpointPacket {
    /// True if rank 0 sends the packet to all ranks, down the tree.
    pub(crate) fn is_tree_broadcast(&self) -> bool {
        self.copy_to_child().is_some()
    }

    pub(crate) fn copy_to_child(&self) -> Option<CheckpointPacket> {
        Some(match self {
            CheckpointPacket::Freeze => CheckpointPacket::Freeze,
            CheckpointPacket::Probe => CheckpointPacket::Probe,
            &CheckpointPacket::Save { number } => CheckpointPacket::Save { number },
            CheckpointPacket::Thaw => CheckpointPacket::Thaw,
            _ => return None,
        })
    }
}

/// A rank, with the file that it has written or the reason why it could not.
pub(crate) type RankWritten = (Rank, Result<Written, String>);

/// Counts of frozen ranks that have nothing to do.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct FrozenCounts {
    pub(crate) traffic: Traffic,
    /// Sections that are reduced over.
    pub(crate) sections: u64,
}

impl std::ops::AddAssign for FrozenCounts {
    fn add_assign(&mut self, other: FrozenCounts) {
        self.traffic += other.traffic;
        self.sections += other.sections;
    }
}

/// The state of one rank in a checkpoint.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct RankImage {
    /// Its chunks with their messages, encoded.
    pub(crate) chunks: Vec<ChunkTransfer>,
    /// Messages that wait for timers, each with the time that is left, ns.
    pub(crate) timers: Vec<(u64, Envelope)>,
    pub(crate) rest: CoreImage,
}

/// The state of a rank besides its chunks.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct CoreImage {
    /// Messages for chunks that do not exist yet.
    pub(crate) pending: Vec<(ChunkId, Vec<Delivery>)>,
    /// Chunks that were inserted and are not admitted, each with the rank that inserted it.
    pub(crate) insertions: Vec<(Rank, Box<ChunkTransfer>)>,
    /// Rank 0 only: messages that wait for quiescence.
    pub(crate) at_quiescence: Vec<Envelope>,
    /// Rank 0 only.
    pub(crate) root: Option<RootImage>,
}

/// The state that rank 0 keeps for all ranks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RootImage {
    pub(crate) reductions: RootReductions,
    /// By array, the number of the next broadcast.
    pub(crate) broadcasts: Vec<u64>,
    /// True if not all ranks were active, or their number was changing.
    pub(crate) is_resized: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Running,
    Freezing {
        /// Number of chunks that are not held yet: their handlers may be running.
        running: usize,
    },
    Frozen,
}

/// The state of one rank for checkpoints.
#[derive(Debug, Default)]
pub(crate) struct Checkpoints {
    state: State,
    /// Chunks that are held until `Thaw`.
    pub(crate) held: Vec<CellId>,
    /// True if this rank is to reply as soon as it is frozen and idle.
    probed: bool,
    /// Chunks that were inserted since `Freeze`.
    pub(crate) insertions: Vec<(Rank, Box<ChunkTransfer>)>,
    pub(crate) replies: Convergecast<FrozenCounts>,
    pub(crate) copied: Convergecast<()>,
    pub(crate) written: Convergecast<Vec<RankWritten>>,
    /// Rank 0 only, where checkpoints are made.
    pub(crate) schedule: Option<Schedule>,
    /// Rank 0 only: the waves of probes of the present checkpoint.
    pub(crate) search: Quiescence,
}

impl Checkpoints {
    /// True from `Freeze` to `Thaw`.
    pub(crate) fn stops(&self) -> bool {
        self.state != State::Running
    }

    /// True on rank 0 once the run was given notice.
    pub(crate) fn has_notice(&self) -> bool {
        self.schedule.as_ref().is_some_and(|schedule| schedule.notice.is_some())
    }

    /// True from `Freeze` until all chunks are held.
    pub(crate) fn is_freezing(&self) -> bool {
        matches!(self.state, State::Freezing { .. })
    }

    /// `Freeze` has come to a rank with these chunks.
    pub(crate) fn freeze(&mut self, chunks: Vec<CellId>) {
        self.state = match chunks.len() {
            0 => State::Frozen,
            running => State::Freezing { running },
        };
        (self.held, self.probed) = (chunks, true);
    }

    /// One more chunk is held, or was removed by its last handler.
    pub(crate) fn one_held(&mut self) {
        let State::Freezing { running } = &mut self.state else {
            unreachable!("a chunk is held once: {:?}", self.state)
        };
        *running -= 1;
        if *running == 0 {
            self.state = State::Frozen;
        }
    }

    /// A chunk was removed, so it will not be thawed.
    pub(crate) fn forget(&mut self, cell: CellId) {
        self.held.retain(|&held| held != cell);
    }

    /// `Probe` has come.
    pub(crate) fn probe(&mut self) {
        self.probed = true;
    }

    /// True if this rank is frozen and is to reply once it is idle.
    pub(crate) fn is_probed(&self) -> bool {
        self.state == State::Frozen && self.probed
    }

    /// The rank is idle. True if it is to reply now.
    pub(crate) fn take_probe(&mut self) -> bool {
        self.is_probed() && std::mem::take(&mut self.probed)
    }

    /// `Thaw` has come. Returns the chunks that go on.
    pub(crate) fn thaw(&mut self) -> Vec<CellId> {
        self.state = State::Running;
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_frozen_when_its_last_chunk_is_held_and_replies_once_a_probe() {
        let mut rank = Checkpoints::default();
        rank.freeze(vec![CellId(3), CellId(4)]);
        rank.one_held();
        assert!(rank.is_freezing() && !rank.take_probe(), "a handler may run");
        rank.one_held();
        assert!(rank.stops() && rank.take_probe() && !rank.take_probe());
        rank.probe();
        assert!(rank.take_probe());
        assert_eq!(rank.thaw(), [CellId(3), CellId(4)]);
        assert!(!rank.stops());
        rank.freeze(Vec::new());
        assert!(rank.take_probe(), "a rank without chunks is frozen at once");
    }
}
