//! Counts the messages that each chunk handles, to compare the costs of chunks although balancing windows cut their
//! steps in the middle. The balancer corrects measured costs with these counts.
//!
//! In a short window, one chunk may have made four steps and another five. The cost per message, times the messages per
//! window in the long run, is the cost of a whole number of steps.

use rustc_hash::{FxHashMap, FxHashSet};

use super::report::ChunkReport;
use super::snapshot::{ArrayId, ChunkId};
use crate::rank::Rank;

/// The part of the older counts that is kept in each window.
const DECAY: f64 = 0.97;

/// The largest factor by which a cost is corrected, because messages of one chunk differ too.
const MOST: f64 = 4.0;

/// Number of windows without a message after which a chunk counts as finished, if it never paused before.
const SILENT_MAX: u32 = 2;

/// CPU time that a message costs more if it crosses from one rank to another, ns, on both ranks together.
pub(super) const CROSSING_NS: f64 = 100.0;

/// The messages of a chunk, and of the mean chunk of its array in the same windows.
#[derive(Clone, Copy, Debug)]
struct Counts {
    /// The rank on which the chunk began, or was first seen.
    home: Rank,
    handled: f64,
    mean: f64,
    /// Cost of a message in the last window in which the chunk handled any, ticks.
    cost: f64,
    /// Number of windows since then.
    silent: u32,
    /// The longest pause, in windows, after which the chunk went on.
    pause: u32,
}

impl Counts {
    fn of_home(home: Rank) -> Counts {
        Counts { home, handled: 0.0, mean: 0.0, cost: 0.0, silent: 0, pause: 0 }
    }

    /// The messages that the chunk handles in the long run while the mean chunk of its array handles `mean`.
    fn messages(&self, mean: f64) -> f64 {
        if self.mean > 0.0 { self.handled / self.mean * mean } else { 0.0 }
    }

    /// Notes the count of a window.
    fn follow(&mut self, handled: u32) {
        if handled == 0 {
            self.silent = self.silent.saturating_add(1);
        } else {
            (self.silent, self.pause) = (0, self.pause.max(self.silent));
        }
    }

    /// True if the chunk has paused for so long that it counts as finished. Short pauses are normal: with long
    /// mailboxes, a chunk may run in one of several windows only.
    fn has_ended(&self) -> bool {
        self.silent > SILENT_MAX.saturating_add(2 * self.pause)
    }
}

/// The messages that chunks have handled. Older messages have less weight.
#[derive(Clone, Debug, Default)]
pub(super) struct Activity {
    chunks: FxHashMap<ChunkId, Counts>,
    /// Mean number of messages of the chunks of each array in the newest window.
    means: FxHashMap<ArrayId, f64>,
    /// Mean number of messages of all chunks in the newest window.
    steps: f64,
}

impl Activity {
    /// Notes the counts of a phase; only windows have counts. True if any chunk has handled a message in the phase.
    pub(super) fn follow(&mut self, chunks: &[ChunkReport]) -> bool {
        let mut sums = FxHashMap::<ArrayId, (f64, f64)>::default();
        for chunk in chunks {
            let (handled, count) = sums.entry(chunk.load.id.array).or_default();
            *handled += f64::from(chunk.handled);
            *count += 1.0;
        }
        let any_handled = sums.values().any(|&(handled, _)| handled > 0.0);
        self.steps = 1.0;
        if any_handled {
            let handled: f64 = sums.values().map(|&(handled, _)| handled).sum();
            self.steps = handled / chunks.len().max(1) as f64;
            self.means = sums.into_iter().map(|(array, (handled, count))| (array, handled / count)).collect();
            for chunk in chunks {
                let anew = Counts::of_home(chunk.load.rank);
                let counts = self.chunks.entry(chunk.load.id).or_insert(anew);
                counts.follow(chunk.handled);
                counts.handled = DECAY * counts.handled + f64::from(chunk.handled);
                counts.mean = DECAY * counts.mean + self.means[&chunk.load.id.array];
            }
            if self.chunks.len() > chunks.len() {
                self.forget_all_but(chunks);
            }
        }
        any_handled
    }

    /// Notes that a chunk that was not seen yet began on this rank.
    pub(super) fn began_on(&mut self, chunk: ChunkId, home: Rank) {
        self.chunks.entry(chunk).or_insert_with(|| Counts::of_home(home));
    }

    /// Removes chunks that are gone.
    fn forget_all_but(&mut self, chunks: &[ChunkReport]) {
        let here: FxHashSet<ChunkId> = chunks.iter().map(|chunk| chunk.load.id).collect();
        self.chunks.retain(|chunk, _| here.contains(chunk));
    }

    /// The rank on which a chunk began; none if neither `began_on` nor a report has named the chunk.
    pub(super) fn home(&self, chunk: ChunkId) -> Option<Rank> {
        Some(self.chunks.get(&chunk)?.home)
    }

    /// CPU time that a move adds to a window as long as the newest, on both ranks together, ns. It is negative for a
    /// chunk that goes home. Which chunks exchange messages is not recorded. So a chunk is assumed to send as many
    /// messages as it handles, all within the rank on which it began.
    pub(super) fn crossing_ns(&self, chunk: ChunkId, from: Rank, to: Rank) -> f64 {
        let Some(counts) = self.chunks.get(&chunk) else { return 0.0 };
        let away = f64::from(u8::from(to != counts.home)) - f64::from(u8::from(from != counts.home));
        let mean = self.means.get(&chunk.array).copied().unwrap_or(0.0);
        2.0 * CROSSING_NS * away * counts.messages(mean)
    }

    /// Length of the newest phase in steps: messages per chunk in a window, 1 at a sync.
    pub(super) fn steps(&self) -> f64 {
        self.steps
    }

    /// The long-run cost of a chunk in a window as long as the newest, in which it has handled `handled` messages that
    /// cost `ticks`. Without messages, its last cost per message counts, unless the chunk counts as finished.
    pub(super) fn whole_steps(&mut self, chunk: ChunkId, handled: u32, ticks: f64) -> f64 {
        let (Some(counts), Some(mean)) = (self.chunks.get_mut(&chunk), self.means.get(&chunk.array)) else {
            return ticks;
        };
        if counts.mean <= 0.0 {
            return ticks;
        }
        let expected = counts.messages(*mean);
        if handled == 0 {
            return if counts.has_ended() { ticks } else { counts.cost * expected };
        }
        counts.cost = ticks / f64::from(handled);
        ticks * (expected / f64::from(handled)).clamp(1.0 / MOST, MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::snapshot::ChunkLoad;
    use crate::rank::Rank;

    fn chunk(key: u64) -> ChunkId {
        ChunkId { array: ArrayId(0), key }
    }

    fn window(handled: [u32; 2]) -> Vec<ChunkReport> {
        let report = |(key, handled): (u64, u32)| ChunkReport {
            load: ChunkLoad { id: chunk(key), rank: Rank(0), ticks: 0, bytes: 0, migratable: true },
            declared: false,
            wish: None,
            handled,
        };
        (0..).zip(handled).map(report).collect()
    }

    #[test]
    fn a_chunk_that_was_cut_off_in_the_middle_of_a_step_counts_as_in_a_whole_one() {
        let mut activity = Activity::default();
        for _ in 0..50 {
            assert!(activity.follow(&window([400, 200])));
        }
        assert!(activity.follow(&window([20, 8])), "the second chunk is a step behind");
        let costs = [(0, 20), (1, 8)].map(|(key, handled)| activity.whole_steps(chunk(key), handled, 1.0));
        assert!((costs[0] - 14.0 * 4.0 / 3.0 / 20.0).abs() < 0.01, "{costs:?}");
        assert!((costs[1] - 14.0 * 2.0 / 3.0 / 8.0).abs() < 0.01, "{costs:?}");
    }

    #[test]
    fn a_chunk_that_has_handled_nothing_costs_what_its_last_messages_did() {
        let mut activity = Activity::default();
        assert!(activity.follow(&window([2, 2])));
        assert!((activity.steps() - 2.0).abs() < 1e-9);
        assert!((activity.whole_steps(chunk(0), 2, 600.0) - 600.0).abs() < 1e-9);
        assert!(activity.follow(&window([0, 2])));
        let before = DECAY * 2.0;
        let expected = 300.0 * before / (before + 1.0);
        assert!((activity.whole_steps(chunk(0), 0, 0.0) - expected).abs() < 1e-9);
    }

    #[test]
    fn a_chunk_that_pauses_for_longer_than_ever_has_come_to_its_end() {
        let mut activity = Activity::default();
        // Its mailbox is long, so it runs in one window of three.
        for number in 0..9 {
            assert!(activity.follow(&window([if number % 3 == 0 { 120 } else { 0 }, 40])));
            let cost = activity.whole_steps(chunk(0), if number % 3 == 0 { 120 } else { 0 }, 600.0);
            assert!(number < 3 || cost > 50.0, "it goes on: {cost} in window {number}");
        }
        let costs: Vec<bool> = (0..6)
            .map(|_| {
                assert!(activity.follow(&window([0, 40])));
                activity.whole_steps(chunk(0), 0, 0.0) > 0.0
            })
            .collect();
        assert_eq!(costs, [true, true, true, true, false, false], "two of them were the pause of before");
    }

    #[test]
    fn a_chunk_that_is_gone_is_forgotten_and_the_others_are_not() {
        let mut activity = Activity::default();
        assert!(activity.follow(&window([400, 200])));
        assert!(activity.follow(&window([400, 200])[1..]));
        assert_eq!(activity.chunks.len(), 1);
        assert!(activity.chunks[&chunk(1)].handled > 300.0);
        assert!(activity.follow(&window([400, 200])));
        assert!(activity.chunks[&chunk(0)].handled < 401.0, "it is a new one");
    }

    #[test]
    fn a_phase_that_ends_at_a_sync_is_not_corrected() {
        let mut activity = Activity::default();
        assert!(!activity.follow(&window([0, 0])));
        assert_eq!(activity.whole_steps(chunk(0), 0, 7.0).to_bits(), 7.0f64.to_bits());
        assert_eq!(activity.steps().to_bits(), 1.0f64.to_bits());
    }
}
