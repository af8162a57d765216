//! Defines the events of a simulated array, the packets between its ranks, and the digest of a history.

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
    /// A message has arrived, and waits in the queue of its receiver.
    Delivered {
        from: u32,
        to: u32,
    },
    /// In windows: rank 0 reads how busy ranks are.
    Look,
    /// A rank handles a message that has arrived.
    Served {
        from: u32,
        to: u32,
    },
    /// A chunk is packed and leaves.
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
    /// The message of another chunk that a chunk needs for this iteration.
    Halo { to: u32, iteration: u64 },
    /// All chunks of a rank have come to the sync that ends this phase.
    Reports { phase: u64, sample: RankSample, chunks: Vec<ChunkReport> },
    /// The request to all ranks to report at once.
    OpenWindow,
    /// The report of a rank in a window.
    WindowReports { sample: RankSample, chunks: Vec<ChunkReport> },
    /// The moves that rank 0 has decided.
    Moves(Rc<[Move]>),
    /// The last message of this rank on the old routes.
    Marker,
    /// A chunk moves.
    Chunk(u32),
    /// The rank has sent all outgoing chunks, and got all incoming ones.
    Flushed,
    /// All ranks are flushed: incoming chunks continue.
    Land,
}

/// The digest `before`, extended by one event.
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
