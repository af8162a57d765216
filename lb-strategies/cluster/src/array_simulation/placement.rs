//! A chunk and a rank, as far as a history has to know them.

use std::collections::{BTreeMap, VecDeque};

use super::Home;
use lb_strategies::arrays::balancer::ChunkReport;

pub(super) struct Chunk {
    /// The iteration that it executes next.
    pub(super) next: u64,
    /// Number of chunks that send to it.
    pub(super) senders: u32,
    /// Number of messages that have come for `next`, for the iteration after it, and so on.
    received: VecDeque<u32>,
    /// The rank that messages to it are sent to; it may still be on its way there.
    pub(super) rank: u32,
    /// True if it may be moved.
    pub(super) migratable: bool,
    /// True if it is ready or being executed.
    pub(super) taken: bool,
    /// True if it waits for the end of a sync.
    pub(super) waits: bool,
    /// CPU time and iterations since they were last reported.
    pub(super) cpu_ns: f64,
    pub(super) handled: u32,
    /// Where it goes after the iteration that it executes.
    pub(super) leaves_for: Option<u32>,
}

impl Chunk {
    pub(super) fn new(home: Home, senders: u32) -> Self {
        // The first iteration needs nothing.
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

    /// One of its senders has sent what it needs for this iteration, the next or a later one.
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

    /// It is held on its way to another rank.
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
    /// Number of its chunks, those on their way here included.
    pub(super) chunks: usize,
    /// By phase, the chunks that have come to its end.
    pub(super) reports: BTreeMap<u64, Vec<ChunkReport>>,
    /// Ranks of which a marker has come.
    pub(super) markers: u32,
    /// Its part in a migration, from the moves on.
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
