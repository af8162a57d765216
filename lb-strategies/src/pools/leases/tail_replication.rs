//! Records on a rank which workers execute the same piece, and which result counts (tail replication).
//!
//! A piece begun while the root has nothing left is *open*: its result is kept apart until one execution counts.
//!
//! | a piece is | its executions | leaves when |
//! |---|---|---|
//! | open | the owner's, and at most one copy | the first execution finishes and counts |
//! | settled | unfinished ones are discarded | never |
//!
//! 1. The rank that holds a piece decides. A rank with a copy asks it through the root, and waits for the answer.
//! 2. Each piece has a number on its rank.
//! 3. If the copy of another rank counts, the owner no longer holds the piece.

use std::ops::Range;

use litemap::LiteMap;

use crate::rank::{Rank, WorkerId};

/// What a worker executes: a piece or a copy, by its number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Role {
    /// A piece of this rank, or a copy of it.
    Own(u64),
    /// A copy of another rank's piece.
    Foreign(Rank, u64),
}

#[derive(Debug)]
struct OpenPiece {
    range: Range<u64>,
    owner: WorkerId,
    /// True if there is a copy, or one was offered to the root.
    copied: bool,
}

/// The open pieces of one rank.
#[derive(Debug, Default)]
pub(super) struct TailReplication {
    open: LiteMap<u64, OpenPiece>,
    roles: LiteMap<WorkerId, Role>,
    /// Workers that keep a result apart until the owner answers.
    asking: LiteMap<(Rank, u64), WorkerId>,
    next: u64,
}

impl TailReplication {
    /// Notes that a worker begins a piece of its own rank.
    pub(super) fn begin(&mut self, worker: WorkerId, range: Range<u64>) {
        self.open.insert(self.next, OpenPiece { range, owner: worker, copied: false });
        self.roles.insert(worker, Role::Own(self.next));
        self.next += 1;
    }

    /// Notes that a worker begins a copy.
    pub(super) fn copy(&mut self, worker: WorkerId, role: Role) {
        self.roles.insert(worker, role);
    }

    /// Ends the role of a worker, and returns it.
    pub(super) fn finish(&mut self, worker: WorkerId) -> Option<Role> {
        self.roles.remove(&worker)
    }

    /// Settles a piece, and returns its range; `None` if it was settled before.
    pub(super) fn settle(&mut self, piece: u64) -> Option<Range<u64>> {
        self.open.remove(&piece).map(|open| open.range)
    }

    /// True if this rank may still count the worker's execution.
    pub(super) fn matters(&self, worker: WorkerId) -> bool {
        match self.roles.get(&worker) {
            None => true,
            Some(Role::Own(piece)) => self.open.contains_key(piece),
            Some(Role::Foreign(..)) => false,
        }
    }

    /// Open pieces without a copy, each with its number, range and worker.
    pub(super) fn without_copy(&self) -> impl Iterator<Item = (u64, Range<u64>, WorkerId)> {
        let alone = self.open.iter().filter(|(_, open)| !open.copied);
        alone.map(|(&piece, open)| (piece, open.range.clone(), open.owner))
    }

    /// Notes that there is a copy of this piece.
    pub(super) fn mark_copied(&mut self, piece: u64) {
        if let Some(open) = self.open.get_mut(&piece) {
            open.copied = true;
        }
    }

    /// Notes that the worker keeps its copy apart until the owner answers.
    pub(super) fn ask(&mut self, owner: Rank, piece: u64, worker: WorkerId) {
        self.asking.insert((owner, piece), worker);
    }

    /// Takes the worker that waits for this answer.
    pub(super) fn answered(&mut self, owner: Rank, piece: u64) -> Option<WorkerId> {
        self.asking.remove(&(owner, piece))
    }

    /// Takes the workers whose answers will not come.
    pub(super) fn give_up(&mut self) -> Vec<WorkerId> {
        std::mem::take(&mut self.asking).into_iter().map(|(_, worker)| worker).collect()
    }
}
