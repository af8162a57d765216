//! Balance: the migrations that a sync decides, as one rank goes through them.
//!
//! # States of a migration on one rank
//!
//! | state | input | next state | what the rank does |
//! |---|---|---|---|
//! | Settled | rank 0's `Moves`, with leavers here | Stopping | starts no more handlers of its leavers |
//! | Settled | rank 0's `Moves`, without | Draining | switches to the new routes, sends a `Marker` to every other rank |
//! | Stopping | the last leaver is held: its handler has returned | Draining | the same |
//! | Draining | the last `Marker` of another rank | Receiving | sends its leavers with their mail |
//! | Receiving | the last arrival | Flushed | says `Flushed` to rank 0 |
//! | Flushed | rank 0's `Land`: all ranks have flushed | Settled | gives its arrivals a cell, their mail, their stash, and resumes them |
//!
//! A state whose input has come before is left at once. A marker may come in any state: before the moves it belongs to,
//! and even before the landing of the sync before. An arrival may come before the last marker, but not before the own
//! markers are sent, since whoever sent it had them.
//!
//! # Rules
//!
//! 1. A rank sends its markers after its last message under the old routes, and after its leavers have stopped.
//! 2. A leaver is sent when all markers are in: every message under the old routes is then in its mailbox.
//! 3. An arrival runs when all ranks have flushed: every message it sent from its old rank has then arrived.
//! 4. Messages under the new routes wait in the stash of the new rank until the chunk lands.
//!
//! From 2 and 4: messages *to* a migrating chunk stay in order. From 1 and 3: so do messages *from* it. Nothing is
//! forwarded, and chunks that stay never wait for chunks that move. The price is one small packet between every two
//! ranks per sync that moves something.
//!
//! Here is only when something is to be done; [`rank`](super::rank) does it. Who comes to a sync is in
//! [`collect`](super::collect), what rank 0 makes of the reports in [`coordinator`](super::coordinator).

use std::collections::{BTreeMap, BTreeSet};

use litemap::LiteMap;

pub(crate) use lb_strategies::balancer::Move;

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
    /// Let the new routes of these leavers be in force; then send the markers.
    Switch { sync: SyncId, leavers: Vec<Leaver> },
    /// Send this chunk with its mail.
    Release { leaver: Leaver, journey: Journey },
    /// Tell rank 0 that this rank has all markers and all arrivals.
    Flushed { sync: SyncId, moved_bytes: u64 },
}

/// The migrations of one rank, one after the other.
#[derive(Debug)]
pub(crate) struct Migrations {
    rank: Rank,
    others: u32,
    /// Markers of other ranks, by sync.
    markers: LiteMap<SyncId, u32>,
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
    pub(crate) fn new(rank: Rank, ranks: u32) -> Migrations {
        Migrations { rank, others: ranks - 1, markers: LiteMap::new(), now: Migration::Settled }
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

    /// A marker of another rank has come.
    pub(crate) fn marker(&mut self, sync: SyncId) -> Vec<Step> {
        *self.markers.entry(sync).or_default() += 1;
        self.advance()
    }

    /// A chunk has come that moves here.
    pub(crate) fn arrive(&mut self, traveller: Traveller) -> Vec<Step> {
        let (Migration::Draining { arrivals, .. } | Migration::Receiving(arrivals)) = &mut self.now else {
            unreachable!("a chunk comes after the markers, they after the moves")
        };
        arrivals.travellers.push(traveller);
        self.advance()
    }

    /// Rank 0 has heard of all ranks that they have flushed. Returns the arrivals, which may run.
    pub(crate) fn land(&mut self, sync: SyncId) -> Vec<Traveller> {
        let Migration::Flushed(arrivals) = std::mem::take(&mut self.now) else {
            unreachable!("all ranks have flushed, this one too")
        };
        self.markers.remove(&sync);
        arrivals.travellers
    }

    /// The leavers have stopped.
    fn switch(
        &mut self,
        leavers: BTreeMap<ChunkId, Leaver>,
        journeys: LiteMap<ArrayId, Journey>,
        arrivals: Arrivals,
    ) -> Vec<Step> {
        let mut steps =
            vec![Step::Switch { sync: arrivals.sync, leavers: leavers.values().copied().collect() }];
        self.now = Migration::Draining { leavers, journeys, arrivals };
        steps.extend(self.advance());
        steps
    }

    /// Leaves each state that ends by what has come already.
    fn advance(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        loop {
            self.now = match std::mem::take(&mut self.now) {
                Migration::Draining { leavers, journeys, arrivals }
                    if self.has_all_markers(arrivals.sync) =>
                {
                    let release =
                        |leaver: Leaver| Step::Release { leaver, journey: journeys[&leaver.chunk.array] };
                    steps.extend(leavers.into_values().map(release));
                    Migration::Receiving(arrivals)
                }
                Migration::Receiving(arrivals) if arrivals.travellers.len() == arrivals.expected.len() => {
                    let moved_bytes = arrivals
                        .travellers
                        .iter()
                        .fold(0, |sum: u64, traveller| sum.saturating_add(traveller.bytes));
                    steps.push(Step::Flushed { sync: arrivals.sync, moved_bytes });
                    Migration::Flushed(arrivals)
                }
                state => {
                    self.now = state;
                    return steps;
                }
            };
        }
    }

    fn has_all_markers(&self, sync: SyncId) -> bool {
        self.markers.get(&sync).copied().unwrap_or(0) == self.others
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
