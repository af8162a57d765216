//! Balance: the migrations that a sync decides, as one rank goes through them.
//!
//! # States of a migration on one rank
//!
//! | state | input | next state | what the rank does |
//! |---|---|---|---|
//! | Settled | rank 0's `Moves`, with leavers here | Stopping | starts no more handlers of its leavers |
//! | Settled | rank 0's `Moves`, without | Draining | switches to the new routes, counts what it has sent under the old ones |
//! | Stopping | the last leaver is held: its handler has returned | Draining | the same |
//! | Draining | the rank is drained: no message under the old routes is on its way to it | Receiving | sends its leavers with their mail |
//! | Receiving | the last arrival | Flushed | has it added to those that have flushed |
//! | Flushed | rank 0's `Land`: all ranks have flushed | Settled | gives its arrivals a cell, their mail, their stash, and resumes them |
//!
//! A state whose input has come before is left at once. An arrival may come before the rank is drained, but not before
//! it has switched, since whoever sent it was drained.
//!
//! # Who says what to whom
//!
//! Everything but the chunks themselves goes by the [tree](super::tree) of ranks. `Moves` goes down. A rank that has
//! switched adds up its counts of messages and those of its children, by receiver, and passes them on to its parent (`Sent`).
//! Rank 0 so knows how many messages under the old routes there are for each rank, and says so down the tree, to each
//! child for the ranks from there on (`Expect`): see [`crossings`](super::crossings). That all have flushed is counted up
//! the tree (`Flushed`), and `Land` goes down.
//!
//! # Rules
//!
//! 1. A rank counts when its leavers have stopped and it has switched, in one step: every message that it sent under the
//!    old routes is counted, and none under the new ones, of which each carries the mark.
//! 2. A leaver is sent when its rank is drained: every message under the old routes is then in its mailbox.
//! 3. An arrival runs when all ranks have flushed: every message it sent from its old rank has then arrived.
//! 4. Messages under the new routes wait in the stash of the new rank until the chunk lands.
//!
//! No rule needs an arrival to stay in order with what its old rank says besides, so between processes it may be overtaken
//! by that, and may overtake it (it is *freight*, see [`Codec`](crate::wire::codec::Codec)): until the chunk lands nobody
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
//! come down the tree, are not counted: what rank 0 says under the old routes is said before `Expect`, and so comes before.
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
//! Here is only when something is to be done; [`rank`](super::rank) does it. Who comes to a sync is in
//! [`collect`](super::collect), what rank 0 makes of the reports in [`coordinator`](super::coordinator).

use std::collections::{BTreeMap, BTreeSet};

use litemap::LiteMap;

pub(crate) use lb_strategies::balancer::Move;

use super::freight::Freight;
use super::packet::{Journey, Traveller};
use crate::ids::{ArrayId, CellId, ChunkId, Rank, SyncId};

#[cfg(test)]
mod tests;

/// A chunk that leaves this rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leaver {
    pub(crate) chunk: ChunkId,
    pub(crate) cell: CellId,
    pub(crate) to: Rank,
}

/// One thing to do for a migration. To be done in order, before the next input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Start no more handlers of these chunks: [`Migrations::held`] for each, once none of it runs.
    Hold(Vec<CellId>),
    /// Let the new routes of these leavers be in force, and count what was sent under the old ones.
    Switch { sync: SyncId, leavers: Vec<Leaver> },
    /// Send this chunk with its mail.
    Release { leaver: Leaver, journey: Journey },
    /// This rank is drained and has all arrivals.
    Flushed(Freight),
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
        leavers: BTreeMap<ChunkId, Leaver>,
        /// Leavers of which a handler may run.
        running: usize,
        arrivals: Arrivals,
    },
    Draining {
        leavers: BTreeMap<ChunkId, Leaver>,
        /// The journeys of leavers from this rank, by array.
        journeys: LiteMap<ArrayId, Journey>,
        arrivals: Arrivals,
    },
    Receiving(Arrivals),
    Flushed(Arrivals),
}

/// The chunks that come to this rank at a sync.
#[derive(Debug)]
struct Arrivals {
    sync: SyncId,
    expected: BTreeSet<ChunkId>,
    travellers: Vec<Traveller>,
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
    ) -> Vec<Step> {
        if moves.is_empty() {
            return Vec::new();
        }
        assert!(matches!(self.now, Migration::Settled), "a migration ends before the next sync is decided");
        let leaver = |&Move { chunk, to, .. }: &Move| {
            (chunk, Leaver { chunk, cell: cell(chunk).expect("the snapshot saw it here"), to })
        };
        let leaving = moves.iter().filter(|leaving| leaving.from == self.rank);
        let leavers: BTreeMap<_, _> = leaving.map(leaver).collect();
        let arriving = moves.iter().filter(|arriving| arriving.to == self.rank);
        let expected = arriving.map(|arriving| arriving.chunk).collect();
        let arrivals = Arrivals { sync, expected, travellers: Vec::new() };
        if leavers.is_empty() {
            return self.switch(leavers, LiteMap::new(), arrivals);
        }
        let cells = leavers.values().map(|leaver| leaver.cell).collect();
        self.now = Migration::Stopping { running: leavers.len(), leavers, arrivals };
        vec![Step::Hold(cells)]
    }

    /// No handler of one more leaver runs. `journey` is what chunks of an array that leave now remember of this rank.
    pub(crate) fn held(&mut self, journey: impl Fn(ArrayId) -> Journey) -> Vec<Step> {
        match std::mem::take(&mut self.now) {
            Migration::Stopping { leavers, running: 1, arrivals } => {
                let mut journeys = LiteMap::new();
                for &ChunkId { array, .. } in leavers.keys() {
                    journeys.entry(array).or_insert_with(|| journey(array));
                }
                self.switch(leavers, journeys, arrivals)
            }
            Migration::Stopping { leavers, running, arrivals } => {
                self.now = Migration::Stopping { leavers, running: running - 1, arrivals };
                Vec::new()
            }
            other => unreachable!("chunks are held for a migration, once each: {other:?}"),
        }
    }

    /// Every message under the old routes has come, to this rank.
    pub(crate) fn drained(&mut self) -> Vec<Step> {
        let Migration::Draining { leavers, journeys, arrivals } = std::mem::take(&mut self.now) else {
            unreachable!("a rank is drained when it has switched")
        };
        let release = |leaver: Leaver| Step::Release { leaver, journey: journeys[&leaver.chunk.array] };
        let releases = leavers.into_values().map(release);
        self.now = Migration::Receiving(arrivals);
        releases.chain(self.flush()).collect()
    }

    /// A chunk has come that moves here.
    pub(crate) fn arrive(&mut self, traveller: Traveller) -> Option<Step> {
        let (Migration::Draining { arrivals, .. } | Migration::Receiving(arrivals)) = &mut self.now else {
            unreachable!("a chunk comes from a drained rank, and none is drained before all have switched")
        };
        arrivals.travellers.push(traveller);
        self.flush()
    }

    /// Leaves the state of receiving if everybody has come.
    fn flush(&mut self) -> Option<Step> {
        match std::mem::take(&mut self.now) {
            Migration::Receiving(arrivals) if arrivals.travellers.len() == arrivals.expected.len() => {
                let freight = Freight::of(&arrivals.travellers);
                self.now = Migration::Flushed(arrivals);
                Some(Step::Flushed(freight))
            }
            state => {
                self.now = state;
                None
            }
        }
    }

    /// Rank 0 has heard of all ranks that they have flushed. Returns the arrivals, which may run.
    pub(crate) fn land(&mut self) -> Vec<Traveller> {
        let Migration::Flushed(arrivals) = std::mem::take(&mut self.now) else {
            unreachable!("all ranks have flushed, this one too")
        };
        arrivals.travellers
    }

    /// The leavers have stopped.
    fn switch(
        &mut self,
        leavers: BTreeMap<ChunkId, Leaver>,
        journeys: LiteMap<ArrayId, Journey>,
        arrivals: Arrivals,
    ) -> Vec<Step> {
        let switch = Step::Switch { sync: arrivals.sync, leavers: leavers.values().copied().collect() };
        self.now = Migration::Draining { leavers, journeys, arrivals };
        vec![switch]
    }

    /// The cell of a chunk that is about to leave and has not been released.
    pub(crate) fn leaver(&self, chunk: ChunkId) -> Option<CellId> {
        match &self.now {
            Migration::Stopping { leavers, .. } | Migration::Draining { leavers, .. } => {
                leavers.get(&chunk).map(|leaver| leaver.cell)
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
            Migration::Stopping { arrivals, .. }
            | Migration::Draining { arrivals, .. }
            | Migration::Receiving(arrivals)
            | Migration::Flushed(arrivals) => arrivals.expected.contains(&chunk),
        }
    }
}
