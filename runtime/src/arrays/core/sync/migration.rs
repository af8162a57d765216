//! Migrates chunks between ranks, at a sync or in a balancing window, without losing or reordering a message. This
//! module is the state machine of one rank. The driver in [`rank`](crate::arrays::core::rank) passes inputs to
//! [`Migrations`] and carries out the returned [`MigrationStep`]s.
//!
//! # States of a migration on one rank
//!
//! | state | input | next state | output |
//! |---|---|---|---|
//! | Settled | `Decision`, some chunks leave this rank | Stopping | starts no more handlers of its outgoing chunks |
//! | Settled | `Decision`, no chunk leaves this rank | Draining | switches to the new routes and makes its cut |
//! | Stopping | the last outgoing chunk is held: its handler has returned | Draining | switches to the new routes and makes its cut |
//! | Stopping | a handler removes its outgoing chunk (in a window) | as if the chunk were held | the index leaves without a chunk (rule 5) |
//! | Draining | the rank is drained (see below) | Receiving | sends its outgoing chunks with their messages |
//! | Receiving | the last incoming chunk | Flushed | counts itself among the ranks that have flushed |
//! | Flushed | `CompleteMigration`: all ranks have flushed | Settled | admits its incoming chunks |
//!
//! A rank is *drained* once no message that was sent to it under the old routes is in flight. To *admit* a chunk is to
//! give the chunk a cell, the messages that came with it and its pending messages. At a sync the chunk then resumes.
//!
//! If the input of a state came before the state, the rank leaves the state at once. An incoming chunk may arrive
//! before its new rank is drained, but never before that rank has switched. The reason: the chunk's old rank was
//! drained, and no rank is drained before all ranks have switched.
//!
//! # Packets
//!
//! | packet | path | content |
//! |---|---|---|
//! | [`Decision`] | down the [tree] | all moves |
//! | [`SentCounts`] | up the tree | number of messages sent under the old routes, by receiver; each rank adds its own |
//! | [`ExpectedCounts`] | down the tree | number of messages under the old routes to the child and each rank below it |
//! | [`TransferChunk`] | old rank to new rank | the chunk and its messages |
//! | [`Flushed`] | up the tree | the sender and the ranks below it have flushed |
//! | [`CompleteMigration`] | down the tree | the incoming chunks may run |
//!
//! The counts belong to the [cut], and count each message by its epoch, see [`in_flight`].
//!
//! [tree]: crate::arrays::core::collectives::tree
//! [cut]: crate::arrays::core::routing::cut
//! [`in_flight`]: crate::arrays::core::routing::in_flight
//! [`Decision`]: super::SyncPacket::Decision
//! [`SentCounts`]: crate::arrays::core::routing::cut::CutPacket::SentCounts
//! [`ExpectedCounts`]: crate::arrays::core::routing::cut::CutPacket::ExpectedCounts
//! [`TransferChunk`]: crate::arrays::core::lifecycle::LifecyclePacket::TransferChunk
//! [`Flushed`]: super::SyncPacket::Flushed
//! [`CompleteMigration`]: super::SyncPacket::CompleteMigration
//!
//! # Rules
//!
//! 1. *Cut.* A rank counts its sent messages and switches routes in one step, after its outgoing chunks have stopped.
//!    The count has every message that it sent under the old routes. Later messages carry the next epoch and are not
//!    counted.
//! 2. *Departure.* A rank sends an outgoing chunk when the rank is drained. Every message to the chunk under the old
//!    routes is then in the chunk's mailbox.
//! 3. *Admission.* An incoming chunk runs when all ranks have flushed. Its messages from its old rank have then
//!    arrived.
//! 4. *Pending messages.* Messages under the new routes wait on the new rank until the chunk is admitted.
//! 5. *Removed chunks.* In a window a chunk may be removed after rank 0 measured it. Its index still moves, since all
//!    ranks switch its route: the old rank sends the pending messages of the index in place of the chunk.
//! 6. *Insertions.* A chunk that is inserted under a moving index waits on the new rank until all ranks have flushed.
//!    If the chunk comes to the old rank, the old rank forwards it under the new routes. A waiting insertion may carry
//!    either epoch: a rank in Stopping already uses the new routes of other ranks' chunks, in its old epoch.
//!
//! # Proof that messages stay in order
//!
//! 1. Messages *to* a migrating chunk: messages under the old routes travel with the chunk (rule 2, Draining to
//!    Receiving). Messages under the new routes are handled after them (rule 4, Flushed to Settled).
//! 2. Messages *from* a migrating chunk: messages from its old rank are counted (rule 1, Stopping to Draining). They
//!    have arrived before the chunk runs again (rule 3, Flushed to Settled).
//! 3. So no message is forwarded (an insertion may be, rule 6), and chunks that stay never wait for chunks that move.
//!
//! # Proof that a drained rank has all messages under the old routes
//!
//! 1. Rank 0 sends `ExpectedCounts` only when it has the counts of all ranks. By then all have switched (to Draining).
//! 2. No rank sends under the old routes any more, so the sum is the number of messages that were sent.
//! 3. A message under the new routes may arrive before the sum, and even before the receiver has the `Decision`. The
//!    epoch of the message keeps it out of the count.
//! 4. One bit is enough for the epoch. A rank switches again only after the next `Decision`, which rank 0 sends after
//!    all ranks have flushed. So all ranks are drained then, and no message of the epoch before is in flight.
//!
//! # Counted packets
//!
//! | packet | counted | reason |
//! |---|---|---|
//! | any packet to the current rank of a chunk | yes | its route changes with the move |
//! | a chunk's request to rank 0 for a broadcast | yes | so that rank 0 numbers a moving chunk's requests in order |
//! | the result of a reduction, down the tree | no | under the old routes it is sent, and arrives, before `ExpectedCounts` |
//! | a contribution | no | it is numbered; contributions to a section meet on a rank that stays the same |
//!
//! No other packet depends on the rank of a chunk.
//!
//! # Proof that a chunk in transit may be overtaken
//!
//! Between processes, a chunk and the other packets of its old rank may overtake each other: the chunk is *freight*,
//! see [`Codec`](crate::wire::codec::Codec).
//! 1. Until the chunk is admitted, only `Flushed` depends on its arrival. Its new rank sends `Flushed` after the
//!    arrival (Receiving to Flushed).
//! 2. The old rank of the chunk is drained (Draining to Receiving). So all ranks have switched and have the moves.
//!
//! # Cost
//!
//! Five packets on each edge of the tree, whatever the number of ranks. One has all moves. The other four are small,
//! with at most one count per receiving rank. The time is five times the depth of the tree. The alternative, markers
//! from each rank to each other rank, takes one hop but ranks^2 packets. On 1000 ranks that is 200 times as many, and
//! each rank receives 999.

use std::collections::{BTreeMap, BTreeSet};

use litemap::LiteMap;
use serde::{Deserialize, Serialize};

pub(crate) use lb_strategies::balancer::Move;

use super::migration_bytes::MigrationBytes;
use crate::arrays::core::lifecycle::transfer::{ChunkTransfer, Transit};
use crate::ids::{ArrayId, CellId, ChunkId, Rank, SyncId};

#[cfg(test)]
mod tests;

/// The reason why chunks move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Occasion {
    /// The chunks have come to this sync, and resume on their new ranks.
    Sync(SyncId),
    /// Rank 0 has measured the chunks while they ran: they go on, on their new ranks, without `resume`.
    Window,
}

impl Occasion {
    pub(crate) fn is_window(self) -> bool {
        self == Occasion::Window
    }
}

/// An index that leaves this rank, with its chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outgoing {
    pub(crate) chunk: ChunkId,
    /// The cell of the chunk. None if the chunk was removed after rank 0 measured it.
    pub(crate) cell: Option<CellId>,
    pub(crate) to: Rank,
}

/// One output of a migration. The driver carries out all outputs, in order, before the next input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MigrationStep {
    /// Start no more handlers of these chunks. Call [`Migrations::held`] for each chunk, when none of its handlers
    /// runs.
    Hold(Vec<CellId>),
    /// Switch to the new routes, with these outgoing chunks, and make the cut (rule 1).
    SwitchRoutes { occasion: Occasion, outgoing: Vec<Outgoing> },
    /// Send this chunk with its messages (rule 2).
    MigrateOut { chunk: ChunkId, cell: CellId, to: Rank, transit: Transit },
    /// Send the pending messages of this index (rule 5).
    MigrateIndex { chunk: ChunkId, to: Rank },
    /// This rank is drained and has all its incoming chunks.
    Flushed(MigrationBytes),
}

/// The migrations of one rank, one at a time.
#[derive(Debug)]
pub(crate) struct Migrations {
    rank: Rank,
    now: Migration,
}

/// A state of the table above, with its data.
#[derive(Debug, Default)]
enum Migration {
    #[default]
    Settled,
    Stopping {
        outgoing: BTreeMap<ChunkId, Outgoing>,
        /// Number of outgoing chunks that are not held yet: their handlers may be running.
        running: usize,
        incoming: Incoming,
    },
    Draining {
        outgoing: BTreeMap<ChunkId, Outgoing>,
        /// The transits of outgoing chunks, by array.
        transits: LiteMap<ArrayId, Transit>,
        incoming: Incoming,
    },
    Receiving(Incoming),
    Flushed(Incoming),
}

/// The chunks that come to this rank.
#[derive(Debug)]
struct Incoming {
    occasion: Occasion,
    expected: BTreeSet<ChunkId>,
    chunks: Vec<ChunkTransfer>,
}

impl Migrations {
    pub(crate) fn new(rank: Rank) -> Migrations {
        Migrations { rank, now: Migration::Settled }
    }

    /// Rank 0 has decided these moves. `cell` finds a chunk of this rank.
    pub(crate) fn begin(
        &mut self,
        occasion: Occasion,
        moves: &[Move],
        cell: impl Fn(ChunkId) -> Option<CellId>,
    ) -> Vec<MigrationStep> {
        if moves.is_empty() {
            return Vec::new();
        }
        assert!(matches!(self.now, Migration::Settled), "a migration ends before the next sync is decided");
        let outgoing_chunk =
            |&Move { chunk, to, .. }: &Move| (chunk, Outgoing { chunk, cell: cell(chunk), to });
        let leaving = moves.iter().filter(|leaving| leaving.from == self.rank);
        let outgoing: BTreeMap<_, _> = leaving.map(outgoing_chunk).collect();
        let arriving = moves.iter().filter(|arriving| arriving.to == self.rank);
        let expected = arriving.map(|arriving| arriving.chunk).collect();
        let incoming = Incoming { occasion, expected, chunks: Vec::new() };
        let cells: Vec<CellId> = outgoing.values().filter_map(|outgoing_chunk| outgoing_chunk.cell).collect();
        if cells.is_empty() {
            return self.switch(outgoing, LiteMap::new(), incoming);
        }
        self.now = Migration::Stopping { running: cells.len(), outgoing, incoming };
        vec![MigrationStep::Hold(cells)]
    }

    /// One more outgoing chunk is held. `transit` returns the transit of an array's chunks, as of this rank now.
    pub(crate) fn held(&mut self, transit: impl Fn(ArrayId) -> Transit) -> Vec<MigrationStep> {
        match std::mem::take(&mut self.now) {
            Migration::Stopping { outgoing, running: 1, incoming } => {
                let mut transits = LiteMap::new();
                for &ChunkId { array, .. } in outgoing.keys() {
                    transits.entry(array).or_insert_with(|| transit(array));
                }
                self.switch(outgoing, transits, incoming)
            }
            Migration::Stopping { outgoing, running, incoming } => {
                self.now = Migration::Stopping { outgoing, running: running - 1, incoming };
                Vec::new()
            }
            other => unreachable!("chunks are held for a migration, once each: {other:?}"),
        }
    }

    /// A chunk of this rank was removed by its handler. If the chunk was to leave, only its index leaves (rule 5).
    pub(crate) fn removed(
        &mut self,
        chunk: ChunkId,
        transit: impl Fn(ArrayId) -> Transit,
    ) -> Vec<MigrationStep> {
        let Migration::Stopping { outgoing, .. } = &mut self.now else { return Vec::new() };
        match outgoing.get_mut(&chunk).and_then(|outgoing_chunk| outgoing_chunk.cell.take()) {
            Some(_) => self.held(transit),
            None => Vec::new(),
        }
    }

    /// This rank is drained: it has every message that was sent to it under the old routes.
    pub(crate) fn drained(&mut self) -> Vec<MigrationStep> {
        let Migration::Draining { outgoing, transits, incoming } = std::mem::take(&mut self.now) else {
            unreachable!("a rank is drained when it has switched")
        };
        let resumes = matches!(incoming.occasion, Occasion::Sync(_));
        let release = |Outgoing { chunk, cell, to }: Outgoing| match cell {
            Some(cell) => {
                let transit = Transit { resumes, ..transits[&chunk.array] };
                MigrationStep::MigrateOut { chunk, cell, to, transit }
            }
            None => MigrationStep::MigrateIndex { chunk, to },
        };
        let releases = outgoing.into_values().map(release);
        self.now = Migration::Receiving(incoming);
        releases.chain(self.check_flushed()).collect()
    }

    pub(crate) fn receive(&mut self, transfer: ChunkTransfer) -> Option<MigrationStep> {
        let (Migration::Draining { incoming, .. } | Migration::Receiving(incoming)) = &mut self.now else {
            unreachable!("a chunk comes from a drained rank, and none is drained before all have switched")
        };
        incoming.chunks.push(transfer);
        self.check_flushed()
    }

    /// Leaves the state Receiving if all incoming chunks have come.
    fn check_flushed(&mut self) -> Option<MigrationStep> {
        match std::mem::take(&mut self.now) {
            Migration::Receiving(incoming) if incoming.chunks.len() == incoming.expected.len() => {
                let migration_bytes = MigrationBytes::of(&incoming.chunks);
                self.now = Migration::Flushed(incoming);
                Some(MigrationStep::Flushed(migration_bytes))
            }
            state => {
                self.now = state;
                None
            }
        }
    }

    /// All ranks have flushed. Returns the incoming chunks, which may run (rule 3).
    pub(crate) fn complete(&mut self) -> Vec<ChunkTransfer> {
        let Migration::Flushed(incoming) = std::mem::take(&mut self.now) else {
            unreachable!("all ranks have flushed, this one too")
        };
        incoming.chunks
    }

    /// All outgoing chunks have stopped (rule 1).
    fn switch(
        &mut self,
        outgoing: BTreeMap<ChunkId, Outgoing>,
        transits: LiteMap<ArrayId, Transit>,
        incoming: Incoming,
    ) -> Vec<MigrationStep> {
        let switch = MigrationStep::SwitchRoutes {
            occasion: incoming.occasion,
            outgoing: outgoing.values().copied().collect(),
        };
        self.now = Migration::Draining { outgoing, transits, incoming };
        vec![switch]
    }

    /// The cell of an outgoing chunk that has not been sent yet.
    pub(crate) fn outgoing_cell(&self, chunk: ChunkId) -> Option<CellId> {
        match &self.now {
            Migration::Stopping { outgoing, .. } | Migration::Draining { outgoing, .. } => {
                outgoing.get(&chunk).and_then(|outgoing_chunk| outgoing_chunk.cell)
            }
            Migration::Settled | Migration::Receiving(_) | Migration::Flushed(_) => None,
        }
    }

    /// True if the index of a removed chunk is to leave this rank, and this rank has not switched routes yet.
    pub(crate) fn is_leaving_removed(&self, chunk: ChunkId) -> bool {
        let Migration::Stopping { outgoing, .. } = &self.now else { return false };
        outgoing.get(&chunk).is_some_and(|outgoing_chunk| outgoing_chunk.cell.is_none())
    }

    /// True if a migration is in progress and this rank has switched to its routes.
    pub(crate) fn has_switched(&self) -> bool {
        !matches!(self.now, Migration::Settled | Migration::Stopping { .. })
    }

    /// True if no migration is in progress on this rank.
    pub(crate) fn are_settled(&self) -> bool {
        matches!(self.now, Migration::Settled)
    }

    /// True if this chunk is to come to this rank, or has come and is not admitted yet.
    pub(crate) fn expects(&self, chunk: ChunkId) -> bool {
        match &self.now {
            Migration::Settled => false,
            Migration::Stopping { incoming, .. }
            | Migration::Draining { incoming, .. }
            | Migration::Receiving(incoming)
            | Migration::Flushed(incoming) => incoming.expected.contains(&chunk),
        }
    }
}
