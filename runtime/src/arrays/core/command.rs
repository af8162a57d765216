//! The requests of the core to its executor. A [`Command`] runs under the lock of the core, a [`Task`] afterwards.

use std::collections::VecDeque;
use std::sync::Arc;

use super::checkpoint::{CoreImage, RankWritten};
use super::collectives::CollectivePacket;
use super::collectives::reduction::Values;
use super::lifecycle::signature::ArraySignature;
use super::lifecycle::transfer::{ChunkTransfer, Transit};
use super::packet::Packet;
use super::routing::envelope::Delivery;
use super::sync::coordinator::DecisionRequest;
use super::sync::sync_arrivals::UnmeasuredReport;
use crate::error::Error;
use crate::ids::{ArrayId, CellId, ChunkId, Rank};

/// The requests that follow from one input. Each queue runs in order, and all commands run before the first task.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    pub(crate) now: VecDeque<Command>,
    pub(crate) later: VecDeque<Task>,
}

impl Commands {
    pub(crate) fn is_empty(&self) -> bool {
        self.now.is_empty() && self.later.is_empty()
    }

    #[cfg(test)]
    pub(crate) fn clear(&mut self) {
        *self = Commands::default();
    }
}

/// A request that runs no user code. It runs before any other worker may enter the core.
#[derive(Debug)]
pub(crate) enum Command {
    /// Give a packet to the transport.
    Send(Rank, Packet),
    /// Append to a mailbox, even of a chunk that is about to leave.
    Enqueue { to: ChunkId, cell: CellId, delivery: Delivery },
    /// Append a [duplicate](super::collectives::broadcast::duplicate) of the delivery to each mailbox.
    EnqueueToAll { to: Vec<(ChunkId, CellId)>, delivery: Delivery },
    /// Start no more handlers of these chunks. Answer with `RankCore::held` for each, when no handler of it runs.
    Hold(Vec<CellId>),
    /// Let these chunks go on, which were held for a checkpoint. Answer with `RankCore::thawed` for each.
    Thaw(Vec<CellId>),
    /// Accept no more messages from chunks of this rank into this cell: the routes have changed.
    Close(CellId),
    /// The rank had no chunk that comes to syncs and gets one: its phase begins now.
    BeginPhase,
    /// Give an incoming chunk a cell, and answer with `RankCore::admit`.
    Admit(Box<ChunkTransfer>),
    /// The chunk of this cell is no longer blocked: queue its ready entry.
    Unpark(CellId),
    /// An ack may be due. Answer with `RankCore::below_low_watermark`, unless the rank stays full.
    CheckLowWatermark,
    /// Double the limit, to at least twice the queued bytes. Answer with `RankCore::below_low_watermark`.
    GrowLimit,
    /// All incoming chunks of a migration are admitted. Answer with `RankCore::incoming_admitted`.
    IncomingAdmitted,
}

/// A request that may run user code or take long. It runs with the core unlocked.
#[derive(Debug)]
pub(crate) enum Task {
    /// Let user code combine the values in a partial result of a reduction; answer with `RankCore::combined`.
    Combine(CollectivePacket),
    /// Take a held chunk out of its cell; answer with `RankCore::migrated_out`.
    MigrateOut { chunk: ChunkId, cell: CellId, to: Rank, transit: Transit },
    /// Measure this rank and the chunks that came to a sync; answer with `RankCore::sampled`.
    Sample(UnmeasuredReport),
    /// Measure this rank and these chunks of it, in a window; answer with `RankCore::window_sampled`.
    SampleWindow { number: u64, decides: bool, chunks: Vec<(ChunkId, CellId)> },
    /// From now on count the messages between chunks by sender and receiver, or no longer.
    RecordEdges(bool),
    /// Let the balancer decide a sync or a window; answer with `RankCore::decided`.
    Decide(Box<DecisionRequest>),
    /// List what every chunk of this rank waits for, and the chunks that have not contributed to these reductions;
    /// answer with `RankCore::explained`.
    Explain { open: Vec<(ArrayId, u64)> },
    /// Copy this rank for a checkpoint, answer with `RankCore::saved`, write the copy, and answer with
    /// `RankCore::rank_written`. `next_broadcasts` has the [`Transit::next_broadcast`] of each array.
    Save { number: u64, chunks: Vec<(ChunkId, CellId)>, next_broadcasts: Vec<u64>, rest: Box<CoreImage> },
    /// Complete the checkpoint, after all ranks have tried to write their copies; answer with `RankCore::committed`.
    CommitCheckpoint { number: u64, arrays: Vec<ArraySignature>, written: Vec<RankWritten> },
    /// Print this warning.
    Warn(String),
    /// `active` ranks are active now: print `line`.
    ResizeEnded { active: u32, line: String },
    /// Keep the result of a reduction for the caller of `run`.
    SetExitValue(Arc<Values>),
    /// Leave the scheduler.
    Stop(Result<(), Box<Error>>),
}
