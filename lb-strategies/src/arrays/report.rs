//! Defines the reports on a phase (the time between two syncs, or a balancing window) that the balancer decides by, and
//! the moves of its decisions.

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use super::edges::EdgeReports;
use super::estimate::{RankPlace, RankSample};
use super::snapshot::{ArrayId, ChunkId, ChunkLoad};
use super::step_cover::StepCover;
use crate::rank::Rank;

/// The reports of all ranks on one phase.
///
/// ```
/// let nothing = lb_strategies::balancer::PhaseReport::default();
/// assert!(nothing.ranks.is_empty() && nothing.chunks.is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseReport {
    /// All ranks, in order, the same in each phase.
    pub ranks: Vec<RankReport>,
    /// All chunks, in any order.
    pub chunks: Vec<ChunkReport>,
    /// The leader of each array. A chunk goes where the leader's chunk of the same key goes. An array that follows no
    /// other is its own leader. The list is the same in each phase, and empty where no array follows another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaders: Vec<ArrayId>,
    /// The messages between chunks, if they were recorded in this phase. A message counts on the rank that sent it, so
    /// edges of a chunk that has moved are complete.
    #[serde(default, skip_serializing_if = "EdgeReports::is_empty")]
    pub edges: EdgeReports,
    /// The ranks that must be emptied and get no more chunks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inactive: Vec<Rank>,
    /// True if the phase is a window, which cuts steps in the middle. False if a sync ended the phase.
    #[serde(default, skip_serializing_if = "is_false")]
    pub window: bool,
    /// Windows since the last decision on which nothing was decided, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undecided: Vec<PhaseReport>,
}

impl PhaseReport {
    /// Number of chunks, ranks and edges in this phase and in the undecided windows before it.
    pub fn size(&self) -> usize {
        let of_phase = self.chunks.len() + self.ranks.len() + self.edges.list.len();
        of_phase + self.undecided.iter().map(PhaseReport::size).sum::<usize>()
    }

    /// True if a chunk must leave its rank, because the rank is to be emptied or the program moves the chunk. O(chunks +
    /// inactive ranks).
    fn is_urgent(&self) -> bool {
        let inactive: FxHashSet<Rank> = self.inactive.iter().copied().collect();
        let must_leave = |load: &ChunkLoad| load.migratable && inactive.contains(&load.rank);
        self.chunks.iter().any(|chunk| chunk.wish.is_some() || must_leave(&chunk.load))
    }

    /// Length of the phase on the rank that measured the longest, ns.
    pub(super) fn length_ns(&self) -> f64 {
        let length_ns = |rank: &RankReport| Some(rank.sample?.wall_ns / u64::from(rank.place.workers.max(1)));
        self.ranks.iter().filter_map(length_ns).max().unwrap_or(0) as f64
    }

    /// Adds the window `later` that followed. The sum has the chunks of `later`, by identifier. The cost of chunks that
    /// are gone is dropped.
    pub fn extend(&mut self, mut later: PhaseReport) {
        self.chunks.sort_by_key(|chunk| chunk.load.id);
        later.chunks.sort_by_key(|chunk| chunk.load.id);
        let mut before = self.chunks.iter().peekable();
        for chunk in &mut later.chunks {
            while before.next_if(|earlier| earlier.load.id < chunk.load.id).is_some() {}
            if let Some(earlier) = before.next_if(|earlier| earlier.load.id == chunk.load.id)
                && earlier.declared == chunk.declared
            {
                chunk.load.ticks += earlier.load.ticks;
                chunk.handled = chunk.handled.saturating_add(earlier.handled);
            }
        }
        (self.chunks, self.inactive) = (later.chunks, later.inactive);
        self.edges.add(later.edges);
        for (rank, later) in self.ranks.iter_mut().zip(&later.ranks) {
            let both = rank.sample.zip(later.sample).map(|(sample, later)| sample.plus(&later));
            rank.sample = both.or(rank.sample).or(later.sample);
        }
    }
}

/// Collects the windows since the last decision for the next decision.
///
/// ```
/// use lb_strategies::balancer::{PhaseReport, UndecidedWindows};
/// let mut windows = UndecidedWindows::default();
/// windows.push(PhaseReport::default());
/// assert_eq!(windows.decide(PhaseReport::default()).undecided.len(), 1);
/// assert!(windows.decide(PhaseReport::default()).undecided.is_empty());
/// ```
#[derive(Debug, Default)]
pub struct UndecidedWindows {
    windows: Vec<PhaseReport>,
    /// The sum of the windows that are added to the next one.
    collected: Option<PhaseReport>,
    cover: StepCover,
}

impl UndecidedWindows {
    /// Keeps a window, to be added to the next window.
    pub fn collect(&mut self, window: PhaseReport) {
        self.collected = Some(self.sum(window));
    }

    /// Adds the collected windows to this one, and keeps the sum as an undecided window. While less than a step has been
    /// seen, the window is collected, and the answer is true.
    pub fn push(&mut self, window: PhaseReport) -> bool {
        let (collects, sum) = (self.cover.is_collecting(), self.sum(window));
        if collects {
            self.collected = Some(sum);
        } else {
            self.windows.push(sum);
        }
        collects
    }

    /// Returns the window to decide, with the collected windows added and the undecided windows before it. Keeps
    /// nothing.
    pub fn decide(&mut self, window: PhaseReport) -> PhaseReport {
        self.cover.end();
        PhaseReport { undecided: std::mem::take(&mut self.windows), ..self.sum(window) }
    }

    /// The same, if the window with the collected ones has seen about a step of the program. None if it has not: the
    /// window is collected. Ranks that must be emptied, chunks that their program moves, and strategies whose plans need
    /// not pay (`must_pay`) do not wait.
    pub fn decide_step(&mut self, window: PhaseReport, must_pay: bool) -> Option<PhaseReport> {
        let sum = self.sum(window);
        if must_pay && !sum.is_urgent() && self.cover.is_partial(&sum) {
            self.collected = Some(sum);
            return None;
        }
        Some(self.decide(sum))
    }

    fn sum(&mut self, window: PhaseReport) -> PhaseReport {
        let Some(mut sum) = self.collected.take() else { return window };
        sum.extend(window);
        sum
    }
}

/// The report of one rank.
///
/// ```
/// use lb_strategies::balancer::{RankPlace, RankReport};
/// let report = RankReport { place: RankPlace { host: 0, workers: 1 }, sample: None };
/// assert!(report.sample.is_none(), "it has no chunks");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankReport {
    /// The place of the rank.
    pub place: RankPlace,
    /// The measurements of the rank; none for a rank without chunks.
    pub sample: Option<RankSample>,
}

/// The report on one chunk.
///
/// ```
/// use lb_strategies::{ArrayId, ChunkId, ChunkLoad, Rank, balancer::ChunkReport};
/// let id = ChunkId { array: ArrayId(0), key: 7 };
/// let load = ChunkLoad { id, rank: Rank(1), ticks: 2_000_000, bytes: 4096, migratable: true };
/// assert!(!ChunkReport { load, declared: false, wish: None, handled: 0 }.declared, "2 ms of CPU time, at whatever speed");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChunkReport {
    /// The load of the chunk. Where the load is not declared, the ticks are ns of CPU time on the chunk's rank.
    pub load: ChunkLoad,
    /// True if the chunk itself declares its ticks.
    pub declared: bool,
    /// The rank to which the program sends the chunk by `Ctx::migrate_to`. The strategy cannot override it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wish: Option<Rank>,
    /// Number of messages that the chunk handled, if the phase is a window; else 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub handled: u32,
}

// `skip_serializing_if` requires these signatures.
#[expect(clippy::trivially_copy_pass_by_ref)]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[expect(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A chunk that changes its rank.
///
/// ```
/// use lb_strategies::{ArrayId, ChunkId, Rank, balancer::Move};
/// let one = Move { chunk: ChunkId { array: ArrayId(0), key: 7 }, from: Rank(0), to: Rank(1) };
/// assert_ne!(one.from, one.to);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// The chunk.
    pub chunk: ChunkId,
    /// The rank that the chunk leaves.
    pub from: Rank,
    /// The rank that the chunk goes to.
    pub to: Rank,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(key: u64, ticks: u64, handled: u32) -> ChunkReport {
        let id = ChunkId { array: ArrayId(0), key };
        let load = ChunkLoad { id, rank: Rank(0), ticks, bytes: 8, migratable: true };
        ChunkReport { load, declared: false, wish: None, handled }
    }

    fn window(chunks: Vec<ChunkReport>, samples: [Option<u64>; 2]) -> PhaseReport {
        let rank = |cpu_ns: Option<u64>| RankReport {
            place: RankPlace { host: 0, workers: 1 },
            sample: cpu_ns.map(|cpu_ns| RankSample { cpu_ns, ..RankSample::default() }),
        };
        PhaseReport { ranks: samples.map(rank).into(), chunks, window: true, ..PhaseReport::default() }
    }

    #[test]
    fn windows_add_up_by_chunk_and_rank() {
        let mut sum = window(vec![chunk(3, 30, 3), chunk(1, 10, 1), chunk(2, 20, 2)], [Some(7), None]);
        let edges = |messages| {
            let [from, to] = [chunk(1, 0, 0).load.id, chunk(3, 0, 0).load.id];
            EdgeReports::new(
                vec![super::super::edges::EdgeReport { from, to, messages, bytes: 8 * messages }],
                1,
            )
        };
        sum.edges = edges(5);
        let later = window(vec![chunk(4, 4, 1), chunk(1, 1, 1), chunk(3, 3, 1)], [Some(5), Some(2)]);
        sum.extend(PhaseReport { edges: edges(2), ..later });
        let expected = window(vec![chunk(1, 11, 2), chunk(3, 33, 4), chunk(4, 4, 1)], [Some(12), Some(2)]);
        let expected = PhaseReport { edges: EdgeReports { unlisted_messages: 2, ..edges(7) }, ..expected };
        assert_eq!(sum, expected, "chunk 2 was removed");
    }

    #[test]
    fn a_cost_that_is_declared_from_now_on_is_not_added_to_cpu_time() {
        let mut sum = window(vec![chunk(1, 10, 1)], [None; 2]);
        let declared = ChunkReport { declared: true, ..chunk(1, 500, 1) };
        sum.extend(window(vec![declared.clone()], [None; 2]));
        assert_eq!(sum.chunks, [declared]);
    }

    #[test]
    fn a_window_shorter_than_a_step_is_collected_unless_something_must_leave_or_plans_need_not_pay() {
        // One of four chunks has run in 7 ns of a step of about 28 ns.
        let partial = || {
            let chunks = (0..4).map(|key| chunk(key, 1, u32::from(key == 0))).collect();
            let mut window = window(chunks, [Some(1), Some(1)]);
            window.ranks.iter_mut().for_each(|rank| rank.sample.iter_mut().for_each(|it| it.wall_ns = 7));
            window
        };
        let decided = |window, must_pay| UndecidedWindows::default().decide_step(window, must_pay).is_some();
        assert!(!decided(partial(), true));
        assert!(decided(partial(), false));
        assert!(decided(PhaseReport { inactive: vec![Rank(0)], ..partial() }, true), "chunks are on rank 0");
        assert!(!decided(PhaseReport { inactive: vec![Rank(1)], ..partial() }, true), "rank 1 is empty");
        let mut wished = partial();
        wished.chunks[2].wish = Some(Rank(1));
        assert!(decided(wished, true));
        let mut windows = UndecidedWindows::default();
        assert!(windows.decide_step(partial(), true).is_none());
        assert!(windows.push(partial()), "it is collected too");
        let sum = windows.decide(partial());
        assert_eq!((sum.chunks[0].handled, sum.undecided.len()), (3, 0));
        assert!(!windows.push(partial()), "a decision ends the collection");
    }
}
