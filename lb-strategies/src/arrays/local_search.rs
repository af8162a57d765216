//! Improves a placement by random changes, for what Algorithm 1 of `refine` does not see: messages between chunks,
//! limits of memory, and a limit of moves.
//!
//! The method is threshold accepting (Dueck and Scheuer, "Threshold accepting: a general purpose optimization algorithm
//! appearing superior to simulated annealing", Journal of Computational Physics 90, 1990). A change moves a chunk or
//! exchanges two. It is kept if the cost of the placement rises by less than a threshold, which falls to zero.
//!
//! | kind of change | what it is for |
//! |---|---|
//! | from the latest rank, or from anywhere | most changes begin at the latest rank, which determines the time |
//! | to a rank with a partner of the chunk | joins chunks that exchange messages, or use the same block of memory |
//! | with all sharers of its block, or with a partner | frees the block on the rank that they leave, keeps partners together |
//! | back to its rank in the snapshot | makes room for another move, if moves are limited |
//!
//! Only basic arithmetic and comparisons decide, so every machine decides alike. A change takes O(messages of the chunk +
//! log ranks).

mod boundary;
mod latest_rank;
mod placement;
mod random;

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use placement::{Placement, Streams};
use random::below;

use crate::arrays::snapshot::{Assignment, Snapshot};
use crate::arrays::strategy::Background;
use crate::rank::Rank;

/// Number of thresholds.
const STAGES: u64 = 64;
/// The first threshold times the number of ranks, as a part of the time of a balanced phase.
const FIRST_THRESHOLD: f64 = 1.0;
/// A threshold divided by the one before it. The last one is zero.
const FALL: f64 = 0.91;
/// First and last weight of the mean square of completion times beside the latest one. It tells placements with the same
/// latest rank apart. It falls with the threshold, because in the end only the latest rank counts.
const SPREAD: f64 = 0.5;
const SPREAD_LAST: f64 = 0.001;
/// Part above the time of a balanced phase from which on moves are not worth making.
const SETTLED: f64 = 0.005;
/// Changes in 8 that begin with a chunk of the latest rank, and that exchange chunks.
const AT_LATEST: usize = 5;
const EXCHANGES: usize = 3;
/// Most chunks that one change takes back to keep to the limit of moves.
const BACK_MAX: usize = 16;

/// A snapshot with what all searches of a decision need.
pub(crate) struct Problem<'a> {
    snapshot: &'a Snapshot,
    /// The model of a neighbour's load.
    background: Background,
    streams: Option<Streams>,
    /// No placement finishes before, ns.
    least_ns: f64,
}

impl<'a> Problem<'a> {
    /// Places the chunks of a snapshot, in which no placement finishes before `least_ns`.
    pub(crate) fn new(snapshot: &'a Snapshot, background: Background, least_ns: f64) -> Self {
        Self { snapshot, background, streams: Streams::new(snapshot), least_ns }
    }

    fn placement(&self, start: Assignment) -> Placement<'_> {
        Placement::new(self.snapshot, self.streams.as_ref(), self.background, start)
    }
}

/// What the search may do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    /// Number of changes to try from each start.
    pub(crate) steps: u64,
    /// Largest number of chunks that move, or the number of those that must.
    pub(crate) moves: usize,
    /// Cost of moving all chunks, as a part of the time of a balanced phase.
    pub(crate) move_cost: f64,
    /// Seed of the draws.
    pub(crate) seed: u64,
}

impl Search {
    /// Improves each of these placements, in which chunks that may move are on available ranks. Returns the best
    /// result.
    pub(crate) fn best(&self, problem: &Problem<'_>, starts: &[Assignment]) -> Option<Assignment> {
        let (snapshot, least_ns) = (problem.snapshot, problem.least_ns);
        let movable = (0..).zip(&snapshot.chunks).filter(|(_, chunk)| chunk.migratable);
        let movable: Vec<u32> = movable.map(|(position, _)| position).collect();
        if movable.is_empty() || snapshot.ranks.iter().filter(|rank| rank.available).count() < 2 {
            return starts.first().cloned();
        }
        let placements: Vec<Placement<'_>> =
            starts.iter().map(|start| problem.placement(start.clone())).collect();
        let scale_ns = |placement: &Placement<'_>| least_ns.max(placement.mean_square().sqrt()).max(1.0);
        // Results of different starts are compared in the same unit.
        let common_ns = placements.iter().map(scale_ns).fold(f64::INFINITY, f64::min);
        let found = (0..).zip(starts).zip(placements).map(|((number, start), placement)| {
            let scale_ns = scale_ns(&placement);
            let moves = self.moves.max(placement.moved().len());
            let rng = Pcg64Mcg::seed_from_u64(self.seed.wrapping_add(number));
            let mut climb = Climb {
                search: Self { moves, ..*self },
                placement,
                movable: &movable,
                scale_ns,
                spread: SPREAD_LAST,
                rng,
            };
            let before = climb.final_cost(common_ns);
            climb.scale_ns = scale_ns;
            climb.improve();
            climb.take_back(least_ns * (1.0 + SETTLED));
            let after = climb.final_cost(common_ns);
            if after < before { (after, climb.placement.into_assignment()) } else { (before, start.clone()) }
        });
        found.min_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, assignment)| assignment)
    }
}

/// The search from one start.
struct Climb<'a> {
    search: Search,
    placement: Placement<'a>,
    /// Positions of the chunks that may move.
    movable: &'a [u32],
    /// The time that costs are relative to.
    scale_ns: f64,
    /// The weight of the mean square of completion times.
    spread: f64,
    rng: Pcg64Mcg,
}

/// A transfer that can be undone: the chunk, and the rank that it left.
type Undo = (usize, Rank);

impl Climb<'_> {
    fn improve(&mut self) {
        let mut undo = Vec::new();
        let mut part = 1.0;
        for stage in 1..=STAGES {
            part *= if stage == STAGES { 0.0 } else { FALL };
            let threshold = part * FIRST_THRESHOLD / self.placement.available().len() as f64;
            self.spread = SPREAD_LAST.max(part * SPREAD);
            let mut cost = self.cost();
            for _ in 0..self.search.steps / STAGES {
                undo.clear();
                if !self.change(&mut undo) {
                    continue;
                }
                let changed = self.cost();
                if changed <= cost + threshold && self.placement.moved().len() <= self.search.moves {
                    cost = changed;
                } else {
                    self.undo(&mut undo);
                }
            }
        }
    }

    /// The cost of the placement: its latest time, a little of the spread of times, and its moves.
    fn cost(&self) -> f64 {
        let moves = self.placement.moved().len() as f64 / self.movable.len() as f64;
        self.placement.latest_ns() / self.scale_ns
            + self.spread * self.placement.mean_square() / (self.scale_ns * self.scale_ns)
            + self.search.move_cost * moves
    }

    /// The cost of the placement at the end of a search, relative to `scale_ns`.
    fn final_cost(&mut self, scale_ns: f64) -> f64 {
        (self.scale_ns, self.spread) = (scale_ns, SPREAD_LAST);
        self.cost()
    }

    /// Makes a random change, and notes how to undo it. Returns false, and changes nothing, if a rank would exceed its
    /// memory or if the draw gives no change.
    fn change(&mut self, undo: &mut Vec<Undo>) -> bool {
        let of_latest = self.placement.held(self.placement.latest());
        let at_latest = below(&mut self.rng, 8) < AT_LATEST && !of_latest.is_empty();
        let among = if at_latest { of_latest } else { self.movable };
        let chunk = among[below(&mut self.rng, among.len())] as usize;
        let from = self.placement.rank_of(chunk);
        let to = self.target(chunk, from);
        if to == from || !self.placement.is_available(to) {
            return false;
        }

        let excess = [from, to].map(|rank| self.placement.excess(rank));
        let theirs = self.placement.held(to);
        if below(&mut self.rng, 8) < EXCHANGES && !theirs.is_empty() {
            let back = theirs[below(&mut self.rng, theirs.len())] as usize;
            self.transfer(back, from, undo);
        }
        self.transfer(chunk, to, undo);
        if below(&mut self.rng, 4) == 0 {
            let sharers = self.placement.sharers_on(chunk, from);
            sharers.into_iter().for_each(|sharer| self.transfer(sharer, to, undo));
            let partner = self.placement.partner(chunk, &mut self.rng);
            if let Some(partner) = partner.filter(|&partner| self.placement.may_leave(partner, from)) {
                self.transfer(partner, to, undo);
            }
        }
        self.keep_to_moves(undo);
        let fits =
            [from, to].into_iter().zip(excess).all(|(rank, before)| self.placement.excess(rank) <= before);
        if !fits {
            self.undo(undo);
        }
        fits
    }

    /// A rank for a chunk of rank `from`, drawn at random.
    fn target(&mut self, chunk: usize, from: Rank) -> Rank {
        let home = self.placement.home(chunk);
        let better = match below(&mut self.rng, 8) {
            0 | 1 => Some(home).filter(|home| *home != from),
            2..=4 => {
                self.placement.partner(chunk, &mut self.rng).map(|partner| self.placement.rank_of(partner))
            }
            5 | 6 => self.placement.sharer(chunk, &mut self.rng),
            _ => None,
        };
        let available = self.placement.available();
        better.unwrap_or_else(|| available[below(&mut self.rng, available.len())])
    }

    /// Takes back moves, drawn at random, while there are more than allowed.
    fn keep_to_moves(&mut self, undo: &mut Vec<Undo>) {
        for _ in 0..BACK_MAX {
            let moved = self.placement.moved();
            if moved.len() <= self.search.moves {
                return;
            }
            let back = moved[below(&mut self.rng, moved.len())] as usize;
            let home = self.placement.home(back);
            if self.placement.is_available(home) && self.placement.fits(back, home) {
                self.transfer(back, home, undo);
            }
        }
    }

    /// Takes back moves without which the latest rank finishes by `limit_ns`, or no later than now.
    fn take_back(&mut self, limit_ns: f64) {
        let placement = &mut self.placement;
        let mut moved = placement.moved().to_vec();
        // Light chunks first: a heavy chunk may be worth several of them.
        moved.sort_unstable_by_key(|&chunk| (placement.ticks(chunk as usize), chunk));
        let limit_ns = limit_ns.max(placement.latest_ns());
        for chunk in moved {
            let chunk = chunk as usize;
            let (home, away) = (placement.home(chunk), placement.rank_of(chunk));
            if placement.is_available(home) && placement.fits(chunk, home) {
                placement.transfer(chunk, home);
                if placement.latest_ns() > limit_ns {
                    placement.transfer(chunk, away);
                }
            }
        }
    }

    fn transfer(&mut self, chunk: usize, to: Rank, undo: &mut Vec<Undo>) {
        undo.push((chunk, self.placement.rank_of(chunk)));
        self.placement.transfer(chunk, to);
    }

    fn undo(&mut self, undo: &mut Vec<Undo>) {
        undo.drain(..).rev().for_each(|(chunk, rank)| self.placement.transfer(chunk, rank));
    }
}
