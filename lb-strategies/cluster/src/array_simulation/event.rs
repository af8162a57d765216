//! Defines the events of a simulated array, the packets between its ranks, and the digest of a history.

use super::tree::{Down, Up};
use crate::execution::WorkerEvent;
use lb_strategies::pools::machine::Nanos;
use lb_strategies::virtual_time::events::digested;

#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    WorkerEvent(WorkerEvent),
    /// A worker has executed a job without work.
    JobDone {
        worker: usize,
    },
    /// A message has arrived, and waits until its receiver has handled earlier ones.
    Delivered {
        from: u32,
        to: u32,
        packet: Packet,
    },
    /// In windows: rank 0 reads how busy ranks are.
    Look,
    /// A rank handles a message that has arrived.
    Served {
        from: u32,
        to: u32,
        packet: Packet,
    },
    /// Rank 0 has decided.
    Decided {
        moves: u32,
    },
    /// All chunks have passed the barrier, and may begin iterations up to this one.
    Released {
        through: u64,
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

/// A packet from one rank to another. Measurements do not travel in packets: ranks write them into the report on rank
/// 0, which is read when all packets have come.
#[derive(Clone, Copy, Debug)]
pub(super) enum Packet {
    /// The message of another chunk that a chunk needs for this iteration.
    Halo { to: u32, iteration: u64 },
    /// These chunks of a rank and the ranks below it have come to the sync that ends this phase.
    Reports { phase: u64, chunks: u32 },
    /// A packet to the parent of a rank.
    Up(Up),
    /// A packet to the children of a rank.
    Down(Down),
    /// A chunk moves.
    Chunk(u32),
}

/// About the size of the report of a chunk, of a move in a decision, and of any other packet of the runtime.
const REPORT_BYTES: u64 = 32;
const MOVE_BYTES: u64 = 16;
const PACKET_BYTES: u64 = 64;

impl Packet {
    /// Size of a packet. `chunk_bytes` has the sizes of a message and of the state of a chunk, and `awaited` the number of
    /// chunks of the sender and the ranks below it.
    pub(super) fn bytes(self, [message, state]: [u64; 2], awaited: u32) -> u64 {
        match self {
            Packet::Halo { .. } => message,
            Packet::Chunk(_) => state,
            Packet::Reports { .. } | Packet::Up(Up::WindowReports) => {
                PACKET_BYTES + REPORT_BYTES * u64::from(awaited)
            }
            Packet::Down(Down::Decision { moves }) => PACKET_BYTES + MOVE_BYTES * u64::from(moves),
            Packet::Up(_) | Packet::Down(_) => PACKET_BYTES,
        }
    }
}

/// The digest `before`, extended by one event.
pub(super) fn digest(before: u64, now: Nanos, event: &Event) -> u64 {
    let kind = match event {
        Event::WorkerEvent(WorkerEvent { worker, version }) => 1 + 8 * (*worker as u64) + (version << 32),
        Event::JobDone { worker } => 5 + 8 * (*worker as u64),
        Event::Look => 6,
        Event::Released { through } => 8 + 8 * through,
        Event::Decided { moves } => 7 + 8 * u64::from(*moves),
        Event::Delivered { from, to, .. } => 2 + 8 * u64::from(*from) + (u64::from(*to) << 32),
        Event::Served { from, to, .. } => 3 + 8 * u64::from(*from) + (u64::from(*to) << 32),
        Event::Departs { chunk, from } => 4 + 8 * u64::from(*chunk) + (u64::from(*from) << 32),
    };
    digested(before, now, kind)
}
