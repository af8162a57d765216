//! Balance: the migrations that a sync decides, as one rank goes through them.
//!
//! # States of a migration on one rank
//!
//! | state | input | next state | what the rank does |
//! |---|---|---|---|
//! | Settled | rank 0's `Moves`, with outgoing here | Stopping | starts no more handlers of its outgoing |
//! | Settled | rank 0's `Moves`, without | Draining | switches to the new routes, counts what it has sent under the old ones |
//! | Stopping | the last outgoing_chunk is held: its handler has returned | Draining | the same |
//! | Draining | the rank is drained: no message under the old routes is on its way to it | Receiving | sends its outgoing with their mail |
//! | Receiving | the last arrival | Flushed | has it added to those that have flushed |
//! | Flushed | rank 0's `Land`: all ranks have flushed | Settled | gives its incoming a cell, their mail, their stash, and resumes them |
//!
//! A state whose input has come before is left at once. An arrival may come before the rank is drained, but not before
//! it has switched, since whoever sent it was drained.
//!
//! # Who says what to whom
//!
//! Everything but the chunks themselves goes by the [tree](crate::arrays::core::collectives::tree) of ranks. `Moves` goes down. A rank that has
//! switched adds up its counts of messages and those of its children, by receiver, and passes them on to its parent (`Sent`).
//! Rank 0 so knows how many messages under the old routes there are for each rank, and says so down the tree, to each
//! child for the ranks from there on (`ExpectedCounts`): see [`in_flight`](crate::arrays::core::routing::in_flight). That all have flushed is counted up
//! the tree (`Flushed`), and `Land` goes down.
//!
//! # Rules
//!
//! 1. A rank counts when its outgoing have stopped and it has switched, in one step: every message that it sent under the
//!    old routes is counted, and none under the new ones, of which each carries the mark.
//! 2. A outgoing_chunk is sent when its rank is drained: every message under the old routes is then in its mailbox.
//! 3. An arrival runs when all ranks have flushed: every message it sent from its old rank has then arrived.
//! 4. Messages under the new routes wait in the stash of the new rank until the chunk lands.
//!
//! No rule needs an arrival to stay in order with what its old rank says besides, so between processes it may be overtaken
//! by that, and may overtake it (it is *migration_bytes*, see [`Codec`](crate::wire::codec::Codec)): until the chunk lands nobody
//! asks whether it has come but `Flushed`, which its new rank says once it has; and whoever sends it is drained, so
//! that all ranks have switched and know of the moves.
//!
//! From 2 and 4: messages *to* a migrating chunk stay in order. From 1 and 3: so do messages *from* it. Nothing is
//! forwarded, and chunks that stay never wait for chunks that move.
//!
//! Rule 2 holds since rank 0 says what to expect only when it has the counts of all ranks, and by then all have switched:
//! nobody sends under the old routes any more, and the sum is what was sent. A message under the new routes may come
//! before the sum, before the rank has switched, even before it has heard of the moves: the mark keeps it out of the count.
//! One bit is enough. A rank switches again when it has heard of the next moves; rank 0 has decided on them after all
//! ranks had flushed, so all were drained, and no message of the epoch before is on its way. Results of reductions, which
//! come down the tree, are not counted: what rank 0 says under the old routes is said before `ExpectedCounts`, and so comes before.
//!
//! What is counted are all packets that go where a chunk is said to be, and those by which a chunk asks rank 0 for a
//! broadcast: of those by a chunk that moves the first is numbered before the second. No other packet depends on where a
//! chunk is: contributions are numbered, and those to a section meet on a rank that stays the same.
//!
//! # Cost
//!
//! At each edge of the tree five packets, whatever the number of ranks: one with all moves, which every rank hears, and four
//! small ones, with up to one count for every rank that was sent to. It takes as long as the tree is deep, five times;
//! markers that each rank sends to each other are there after one hop, but are ranks^2 packets: on 1000 ranks a thousand
//! times as many, and each rank has to take a thousand of them.
//!
//! Here is only when something is to be done; [`rank`](crate::arrays::core::rank) does it. Who comes to a sync is in
//! [`collect`](super::sync_arrivals), what rank 0 makes of the reports in [`coordinator`](super::coordinator).

use std::collections::{BTreeMap, BTreeSet};

use litemap::LiteMap;

pub(crate) use lb_strategies::balancer::Move;

use super::migration_bytes::MigrationBytes;
use crate::arrays::core::lifecycle::transfer::{ChunkTransfer, Transit};
use crate::ids::{ArrayId, CellId, ChunkId, Rank, SyncId};

#[cfg(test)]
mod tests;

/// A chunk that leaves this rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outgoing {
    pub(crate) chunk: ChunkId,
    pub(crate) cell: CellId,
    pub(crate) to: Rank,
}

/// One thing to do for a migration. To be done in order, before the next input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MigrationStep {
    /// Start no more handlers of these chunks: [`Migrations::held`] for each, once none of it runs.
    Hold(Vec<CellId>),
    /// Let the new routes of these outgoing be in force, and count what was sent under the old ones.
    SwitchRoutes { sync: SyncId, outgoing: Vec<Outgoing> },
    /// Send this chunk with its mail.
    MigrateOut { outgoing_chunk: Outgoing, transit: Transit },
    /// This rank is drained and has all incoming.
    Flushed(MigrationBytes),
}

/// The migrations of one rank, one after the other.
#[derive(Debug)]
pub(crate) struct Migrations {
    rank: Rank,
    now: Migration,
}

/// A state of the table above, with what is known in it.
#[derive(Debug, Default)]
enum Migration {
    #[default]
    Settled,
    Stopping {
        outgoing: BTreeMap<ChunkId, Outgoing>,
        /// Leavers of which a handler may run.
        running: usize,
        incoming: Incoming,
    },
    Draining {
        outgoing: BTreeMap<ChunkId, Outgoing>,
        /// The transits of outgoing from this rank, by array.
        transits: LiteMap<ArrayId, Transit>,
        incoming: Incoming,
    },
    Receiving(Incoming),
    Flushed(Incoming),
}

/// The chunks that come to this rank at a sync.
#[derive(Debug)]
struct Incoming {
    sync: SyncId,
    expected: BTreeSet<ChunkId>,
    chunks: Vec<ChunkTransfer>,
}

impl Migrations {
    pub(crate) fn new(rank: Rank) -> Migrations {
        Migrations { rank, now: Migration::Settled }
    }

    /// Rank 0 has decided who moves, if anybody does. `cell` finds a chunk of this rank.
    pub(crate) fn begin(
        &mut self,
        sync: SyncId,
        moves: &[Move],
        cell: impl Fn(ChunkId) -> Option<CellId>,
    ) -> Vec<MigrationStep> {
        if moves.is_empty() {
            return Vec::new();
        }
        assert!(matches!(self.now, Migration::Settled), "a migration ends before the next sync is decided");
        let outgoing_chunk = |&Move { chunk, to, .. }: &Move| {
            (chunk, Outgoing { chunk, cell: cell(chunk).expect("the snapshot saw it here"), to })
        };
        let leaving = moves.iter().filter(|leaving| leaving.from == self.rank);
        let outgoing: BTreeMap<_, _> = leaving.map(outgoing_chunk).collect();
        let arriving = moves.iter().filter(|arriving| arriving.to == self.rank);
        let expected = arriving.map(|arriving| arriving.chunk).collect();
        let incoming = Incoming { sync, expected, chunks: Vec::new() };
        if outgoing.is_empty() {
            return self.switch(outgoing, LiteMap::new(), incoming);
        }
        let cells = outgoing.values().map(|outgoing_chunk| outgoing_chunk.cell).collect();
        self.now = Migration::Stopping { running: outgoing.len(), outgoing, incoming };
        vec![MigrationStep::Hold(cells)]
    }

    /// No handler of one more outgoing_chunk runs. `transit` is what chunks of an array that leave now remember of this rank.
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

    /// Every message under the old routes has come, to this rank.
    pub(crate) fn drained(&mut self) -> Vec<MigrationStep> {
        let Migration::Draining { outgoing, transits, incoming } = std::mem::take(&mut self.now) else {
            unreachable!("a rank is drained when it has switched")
        };
        let release = |outgoing_chunk: Outgoing| MigrationStep::MigrateOut {
            outgoing_chunk,
            transit: transits[&outgoing_chunk.chunk.array],
        };
        let releases = outgoing.into_values().map(release);
        self.now = Migration::Receiving(incoming);
        releases.chain(self.check_flushed()).collect()
    }

    /// A chunk has come that moves here.
    pub(crate) fn receive(&mut self, transfer: ChunkTransfer) -> Option<MigrationStep> {
        let (Migration::Draining { incoming, .. } | Migration::Receiving(incoming)) = &mut self.now else {
            unreachable!("a chunk comes from a drained rank, and none is drained before all have switched")
        };
        incoming.chunks.push(transfer);
        self.check_flushed()
    }

    /// Leaves the state of receiving if everybody has come.
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

    /// Rank 0 has heard of all ranks that they have flushed. Returns the incoming, which may run.
    pub(crate) fn complete(&mut self) -> Vec<ChunkTransfer> {
        let Migration::Flushed(incoming) = std::mem::take(&mut self.now) else {
            unreachable!("all ranks have flushed, this one too")
        };
        incoming.chunks
    }

    /// The outgoing have stopped.
    fn switch(
        &mut self,
        outgoing: BTreeMap<ChunkId, Outgoing>,
        transits: LiteMap<ArrayId, Transit>,
        incoming: Incoming,
    ) -> Vec<MigrationStep> {
        let switch = MigrationStep::SwitchRoutes {
            sync: incoming.sync,
            outgoing: outgoing.values().copied().collect(),
        };
        self.now = Migration::Draining { outgoing, transits, incoming };
        vec![switch]
    }

    /// The cell of a chunk that is about to leave and has not been released.
    pub(crate) fn outgoing_cell(&self, chunk: ChunkId) -> Option<CellId> {
        match &self.now {
            Migration::Stopping { outgoing, .. } | Migration::Draining { outgoing, .. } => {
                outgoing.get(&chunk).map(|outgoing_chunk| outgoing_chunk.cell)
            }
            Migration::Settled | Migration::Receiving(_) | Migration::Flushed(_) => None,
        }
    }

    /// Tells whether no migration is under way here.
    pub(crate) fn are_settled(&self) -> bool {
        matches!(self.now, Migration::Settled)
    }

    /// Tells whether a chunk is to come to this rank, or has come and has not landed.
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
