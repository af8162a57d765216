//! The state of a chunk and of a rank in a simulated array.

use std::collections::{BTreeMap, VecDeque};

use super::Home;
use super::chores::Chores;
use super::tree::Heard;
use lb_strategies::pools::machine::Nanos;

/// The time between two polls of a rank, ns: the runtime's between two runs of chunks.
const POLL: Nanos = 1_000;

pub(super) struct Chunk {
    /// The iteration that it executes next.
    pub(super) next: u64,
    /// Number of chunks that send to the chunk.
    pub(super) senders: u32,
    /// Number of messages that have come for iteration `next` and the one after it.
    received: [u32; 2],
    /// The same for later iterations, which only chunks that need no answer reach.
    received_later: Vec<u32>,
    /// The rank that messages to the chunk are sent to. The chunk may still be on its way there.
    pub(super) rank: u32,
    /// True if the chunk may be moved.
    pub(super) migratable: bool,
    /// True if the chunk is ready or being executed.
    pub(super) taken: bool,
    /// True if the chunk waits for the end of a sync.
    pub(super) waits: bool,
    /// Number of messages of other ranks since it began its last iteration; not counted where they cost nothing.
    pub(super) crossed: u32,
    /// True from its arrival on a rank until its next iteration, for which no cache has its state.
    pub(super) reloads: bool,
    /// CPU time and iterations since they were last reported.
    pub(super) cpu_ns: f64,
    pub(super) handled: u32,
    /// The rank that rank 0 has moved the chunk to. The chunk leaves once its own rank is told.
    pub(super) leaves_for: Option<u32>,
}

impl Chunk {
    pub(super) fn new(home: Home, senders: u32) -> Self {
        // The first iteration needs no messages.
        Self {
            next: 0,
            senders,
            received: [senders, 0],
            received_later: Vec::new(),
            rank: home.rank.0,
            migratable: home.migratable,
            taken: false,
            waits: false,
            crossed: 0,
            reloads: false,
            cpu_ns: 0.0,
            handled: 0,
            leaves_for: None,
        }
    }

    /// Counts a message for this iteration, which is the next or a later one.
    pub(super) fn receive_halo(&mut self, iteration: u64) {
        let place = (iteration - self.next) as usize;
        if let Some(received) = self.received.get_mut(place) {
            *received += 1;
            return;
        }
        let place = place - self.received.len();
        if place >= self.received_later.len() {
            self.received_later.resize(place + 1, 0);
        }
        self.received_later[place] += 1;
    }

    pub(super) fn is_ready(&self, iterations: u64) -> bool {
        let has_heard = self.senders == 0 || self.received[0] == self.senders;
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
        let later = if self.received_later.is_empty() { 0 } else { self.received_later.remove(0) };
        self.received = [self.received[1], later];
    }
}

#[derive(Default)]
pub(super) struct RankState {
    /// Chunks that can be executed, the first ready first.
    pub(super) ready: VecDeque<u32>,
    /// What the workers do for the runtime.
    pub(super) chores: Chores,
    /// Number of chunks of the rank, including incoming ones.
    pub(super) chunks: u32,
    /// Number of chunks of the rank and the ranks below it.
    pub(super) awaited: u32,
    /// The syncs to which some of these chunks have come.
    syncs: Vec<OpenSync>,
    pub(super) heard: Heard,
    pub(super) migration: Migration,
    /// By rank: messages from it that come before this time belong to its last packet.
    next_packets: BTreeMap<u32, Nanos>,
}

impl RankState {
    /// True if a message of another rank that comes now begins a packet. A rank sends packets once in [`POLL`], so
    /// messages travel together.
    pub(super) fn begins_packet(&mut self, from: u32, now: Nanos) -> bool {
        let next = self.next_packets.entry(from).or_default();
        let begins = now >= *next;
        if begins {
            *next = now + POLL;
        }
        begins
    }
}

/// A sync to which some chunks have come.
struct OpenSync {
    phase: u64,
    /// Number of chunks of the rank that have come, and of the rank and those below it.
    own: u32,
    all: u32,
}

/// The migration of a rank. Rank 0 writes the moves when it decides; the rank reads them when it is told.
#[derive(Default)]
pub(super) struct Migration {
    /// True from the moment at which the rank is told of moves until all ranks are flushed.
    pub(super) is_told: bool,
    pub(super) outgoing: Vec<u32>,
    pub(super) outgoing_left: u32,
    /// Number of outgoing chunks that still execute an iteration here.
    pub(super) running: u32,
    pub(super) incoming: Vec<u32>,
    pub(super) incoming_left: u32,
    pub(super) has_sent: bool,
}

impl RankState {
    /// Number of jobs that free workers may begin.
    pub(super) fn jobs(&self) -> usize {
        self.ready.len() + usize::from(self.chores.can_begin())
    }

    fn sync(&mut self, phase: u64) -> usize {
        self.syncs.iter().position(|sync| sync.phase == phase).unwrap_or_else(|| {
            self.syncs.push(OpenSync { phase, own: 0, all: 0 });
            self.syncs.len() - 1
        })
    }

    /// Notes that a chunk of the rank has come to a sync. Returns true if all chunks of the rank have.
    pub(super) fn has_come(&mut self, phase: u64) -> bool {
        let sync = self.sync(phase);
        self.syncs[sync].own += 1;
        self.syncs[sync].own == self.chunks
    }

    /// Notes that chunks of the rank or the ranks below it have come to a sync. Returns how many once all have.
    pub(super) fn come_to_sync(&mut self, phase: u64, chunks: u32) -> Option<u32> {
        let sync = self.sync(phase);
        self.syncs[sync].all += chunks;
        (self.syncs[sync].all == self.awaited).then(|| self.syncs.swap_remove(sync).all)
    }

    /// Notes that the rank is told of the moves.
    pub(super) fn begin_migration(&mut self) {
        let migration = &mut self.migration;
        migration.is_told = true;
        migration.outgoing_left = migration.outgoing.len() as u32;
        self.chunks = self.chunks + migration.incoming_left - migration.outgoing_left;
    }

    /// Ends the migration. Returns the chunks that have come. Moves of the next decision may be there already.
    pub(super) fn end_migration(&mut self) -> Vec<u32> {
        (self.migration.is_told, self.migration.has_sent) = (false, false);
        std::mem::take(&mut self.migration.incoming)
    }
}
