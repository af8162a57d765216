//! The requests of the core to its executor.

use std::sync::Arc;

use super::collectives::reduction::Values;
use super::packet::{ChunkTransfer, Packet, Transit};
use super::routing::envelope::Delivery;
use super::sync::coordinator::DecisionRequest;
use super::sync::sync_arrivals::UnmeasuredReport;
use crate::error::Error;
use crate::ids::{ArrayId, CellId, ChunkId, Rank};

/// One thing to do. Executed in order.
///
/// Those of the first group run no user code and are carried out before anybody else may enter the core; those of the
/// second group may run user code or take long, and are carried out afterwards.
#[derive(Debug)]
pub(crate) enum Action {
    /// Give a packet to the transport.
    Send(Rank, Packet),
    /// Append to a mailbox, even of a chunk that is about to leave.
    Enqueue { to: ChunkId, cell: CellId, delivery: Delivery },
    /// Append the same to several mailboxes, each of which gets it [again](super::collectives::broadcast::duplicate).
    EnqueueToAll { to: Vec<(ChunkId, CellId)>, delivery: Delivery },
    /// Start no more handlers of these chunks. Answer with `RankCore::held` for each, at once or when its handler returned.
    Hold(Vec<CellId>),
    /// Take no more mail from this rank's own chunks: the routes have changed.
    Close(CellId),
    /// The rank had no chunk that comes to syncs and gets one: its phase begins now.
    BeginPhase,
    /// Give an arrived chunk a cell and answer with `RankCore::admit`.
    Admit(Box<ChunkTransfer>),
    /// The chunk of this cell is not pressed any more: run it, its entry is the receiver's.
    Unpark(CellId),
    /// A mark of another rank has come, or what was on its way has landed: answer with `RankCore::below_low_watermark` if there is room.
    CheckLowWatermark,
    /// Let more bytes wait, so many that there is room; answer with `RankCore::below_low_watermark`.
    GrowLimit,
    /// All arrivals of a sync are admitted: answer with `RankCore::incoming_admitted`.
    IncomingAdmitted,

    /// Let user code combine the values in a part of a reduction; answer with `RankCore::combined`.
    Combine(Packet),
    /// Take a held chunk out of its cell and send it.
    MigrateOut { chunk: ChunkId, cell: CellId, to: Rank, transit: Transit },
    /// Measure this rank and the chunks that came to a sync; answer with `RankCore::sampled`.
    Sample(UnmeasuredReport),
    /// Let the balancer decide a sync; answer with `RankCore::decided`.
    Decide(Box<DecisionRequest>),
    /// Say what every chunk of this rank waits for, and which have not contributed to these reductions; answer with
    /// `RankCore::explained`.
    Explain { open: Vec<(ArrayId, u64)> },
    /// Keep the result of a reduction for the caller of `run`.
    SetExitValue(Arc<Values>),
    /// Leave the scheduler.
    Stop(Result<(), Box<Error>>),
}
