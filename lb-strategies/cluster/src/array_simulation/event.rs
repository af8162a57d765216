//! Events of an array on the cluster, packets between its ranks, and a digest of a whole history.

use std::rc::Rc;

use crate::execution::WorkerEvent;
use lb_strategies::arrays::balancer::{ChunkReport, Move, RankSample};
use lb_strategies::pools::machine::Nanos;
use lb_strategies::virtual_time::events::digested;

#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    WorkerEvent(WorkerEvent),
    /// A worker has executed an iteration without work.
    IterationDone {
        worker: usize,
    },
    /// A message has arrived; it waits in its queue.
    Delivered {
        from: u32,
        to: u32,
    },
    /// Rank 0 looks at how busy ranks are, where chunks are balanced in windows.
    Look,
    /// A rank has time for a message that has arrived.
    Served {
        from: u32,
        to: u32,
    },
    /// A chunk is packed.
    Departs {
        chunk: u32,
        from: u32,
    },
}

impl From<WorkerEvent> for Event {
    fn from(look: WorkerEvent) -> Self {
        Self::WorkerEvent(look)
    }
}

/// A packet from one rank to another.
pub(super) enum Packet {
    /// The message that a chunk needs of another for this iteration.
    Halo { to: u32, iteration: u64 },
    /// All chunks of a rank have come to the sync at the end of this phase.
    Reports { phase: u64, sample: RankSample, chunks: Vec<ChunkReport> },
    /// Ranks report at once.
    OpenWindow,
    /// The report of a rank in a window.
    WindowReports { sample: RankSample, chunks: Vec<ChunkReport> },
    /// Rank 0 has decided.
    Moves(Rc<[Move]>),
    /// The last message of this rank by the old routes has come.
    Marker,
    /// A chunk moves.
    Chunk(u32),
    /// All outgoing chunks of a rank are gone, and all incoming ones are here.
    Flushed,
    /// That holds for all ranks.
    Land,
}

/// `before`, with one more event.
pub(super) fn digest(before: u64, now: Nanos, event: &Event) -> u64 {
    let kind = match event {
        Event::WorkerEvent(WorkerEvent { worker, version }) => 1 + 8 * (*worker as u64) + (version << 32),
        Event::IterationDone { worker } => 5 + 8 * (*worker as u64),
        Event::Look => 6,
        Event::Delivered { from, to } => 2 + 8 * u64::from(*from) + (u64::from(*to) << 32),
        Event::Served { from, to } => 3 + 8 * u64::from(*from) + (u64::from(*to) << 32),
        Event::Departs { chunk, from } => 4 + 8 * u64::from(*chunk) + (u64::from(*from) << 32),
    };
    digested(before, now, kind)
}
