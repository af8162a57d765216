//! The state of a chunk and of a rank in a simulated array.

use std::collections::{BTreeMap, VecDeque};

use super::Home;
use lb_strategies::arrays::balancer::ChunkReport;

pub(super) struct Chunk {
    /// The iteration that it executes next.
    pub(super) next: u64,
    /// Number of chunks that send to the chunk.
    pub(super) senders: u32,
    /// Number of messages that have come for iteration `next`, for the one after it, and so on.
    received: VecDeque<u32>,
    /// The rank that messages to the chunk are sent to. The chunk may still be on its way there.
    pub(super) rank: u32,
    /// True if the chunk may be moved.
    pub(super) migratable: bool,
    /// True if the chunk is ready or being executed.
    pub(super) taken: bool,
    /// True if the chunk waits for the end of a sync.
    pub(super) waits: bool,
    /// CPU time and iterations since they were last reported.
    pub(super) cpu_ns: f64,
    pub(super) handled: u32,
    /// The rank that the chunk goes to after its current iteration.
    pub(super) leaves_for: Option<u32>,
}

impl Chunk {
    pub(super) fn new(home: Home, senders: u32) -> Self {
        // The first iteration needs no messages.
        Self {
            next: 0,
            senders,
            received: VecDeque::from([senders]),
            rank: home.rank.0,
            migratable: home.migratable,
            taken: false,
            waits: false,
            cpu_ns: 0.0,
            handled: 0,
            leaves_for: None,
        }
    }

    /// Counts a message for this iteration, which is the next or a later one.
    pub(super) fn receive_halo(&mut self, iteration: u64) {
        let place = (iteration - self.next) as usize;
        if place >= self.received.len() {
            self.received.resize(place + 1, 0);
        }
        self.received[place] += 1;
    }

    pub(super) fn is_ready(&self, iterations: u64) -> bool {
        let has_heard = self.senders == 0 || self.received.front() == Some(&self.senders);
        !self.taken && !self.waits && self.next < iterations && has_heard
    }

    /// Sets the new rank of the chunk, which then waits until it arrives there.
    pub(super) fn leave(&mut self) {
        self.rank = self.leaves_for.take().unwrap_or(self.rank);
    }

    pub(super) fn has_executed(&mut self) {
        self.next += 1;
        self.handled += 1;
        self.taken = false;
        self.received.pop_front();
    }
}

#[derive(Default)]
pub(super) struct RankState {
    /// Chunks that can be executed, the first ready first.
    pub(super) ready: VecDeque<u32>,
    /// Number of chunks of the rank, including incoming ones.
    pub(super) chunks: usize,
    /// By phase, the chunks that have come to its end.
    pub(super) reports: BTreeMap<u64, Vec<ChunkReport>>,
    /// Number of ranks whose marker has come.
    pub(super) markers: u32,
    /// The migration of the rank, from the moves on.
    pub(super) migration: Option<Migration>,
}

#[derive(Default)]
pub(super) struct Migration {
    pub(super) outgoing: Vec<u32>,
    pub(super) outgoing_left: usize,
    /// Number of outgoing chunks that still execute an iteration here.
    pub(super) running: usize,
    pub(super) incoming: Vec<u32>,
    pub(super) incoming_left: usize,
    pub(super) has_sent: bool,
}
