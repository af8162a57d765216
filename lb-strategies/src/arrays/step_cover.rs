//! Tells windows that are shorter than a step of the program from those that can be decided.
//!
//! In a window much shorter than a step, a few chunks have run and the others have not, and where all wait for the last
//! rank of a step only this rank is busy. Such loads say nothing about the next step. So the window is collected: it is
//! added to the next one, until it has seen about a step.
//!
//! A window has seen enough if half of the chunks that usually run in a step have run. There are also programs in which
//! few chunks run at all. So if `part` of the usual chunks ran in the first window, the collected one is at most
//! 1 / `part` times as long, and 4 s. What ran in it is then what usually runs. So steps of more than 8 s are decided by a
//! part of them.
//!
//! A chunk has run if it has handled messages, and computed more than a chunk that has only received a part of what it
//! waits for: an eighth of the mean of those that handled messages.

use super::report::{ChunkReport, PhaseReport};

/// A chunk has not run if it took this part of the mean or less: 1 / `IDLE`.
const IDLE: f64 = 8.0;

/// The longest collected window, ns.
const LONGEST_NS: f64 = 4e9;

/// What is known about the steps of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StepCover {
    /// Number of chunks that usually run in a step; none before the first decision.
    usual: Option<f64>,
    /// The length at which the collected window is decided in any case, ns; none if nothing is collected.
    enough_ns: Option<f64>,
}

impl StepCover {
    /// Notes that what was collected is decided.
    pub(super) fn end(&mut self) {
        self.enough_ns = None;
    }

    /// True if the last window was too short to be decided.
    pub(super) fn is_collecting(&self) -> bool {
        self.enough_ns.is_some()
    }

    /// True if the window, with the collected ones added, is too short to be decided. O(chunks).
    pub(super) fn is_partial(&mut self, window: &PhaseReport) -> bool {
        let chunks = window.chunks.len() as f64;
        let ran = ran(&window.chunks) as f64;
        let usual = self.usual.map_or(chunks, |usual| usual.min(chunks));
        let length_ns = window.length_ns();
        let enough_ns = *self.enough_ns.get_or_insert((length_ns * usual / ran.max(1.0)).min(LONGEST_NS));
        let is_covered = 2.0 * ran >= usual;
        if !is_covered && length_ns < enough_ns {
            return true;
        }
        self.usual = Some(if is_covered { usual.max(ran) } else { ran });
        self.enough_ns = None;
        false
    }
}

/// Number of chunks that have run. Declared loads do not tell it, so there messages count alone.
fn ran(chunks: &[ChunkReport]) -> usize {
    let handled = || chunks.iter().filter(|chunk| chunk.handled > 0);
    let measured = || handled().filter(|chunk| !chunk.declared).map(|chunk| chunk.load.ticks as f64);
    let least = measured().sum::<f64>() / (IDLE * measured().count().max(1) as f64);
    handled().filter(|chunk| chunk.declared || chunk.load.ticks as f64 >= least).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::estimate::{RankPlace, RankSample};
    use crate::arrays::report::{ChunkReport, RankReport};
    use crate::arrays::snapshot::{ArrayId, ChunkId, ChunkLoad};
    use crate::rank::Rank;

    /// A window of `ms` ms in which `ran` of 100 chunks have run.
    fn window(ms: u64, ran: u64) -> PhaseReport {
        let chunk = |key| {
            let id = ChunkId { array: ArrayId(0), key };
            let load = ChunkLoad { id, rank: Rank(0), ticks: 1, bytes: 0, migratable: true };
            ChunkReport { load, declared: false, wish: None, handled: u32::from(key < ran) }
        };
        let sample = RankSample { wall_ns: ms * 1_000_000, ..RankSample::default() };
        let rank = RankReport { place: RankPlace { host: 0, workers: 1 }, sample: Some(sample) };
        PhaseReport {
            ranks: vec![rank],
            chunks: (0..100).map(chunk).collect(),
            window: true,
            ..Default::default()
        }
    }

    #[test]
    fn a_window_is_collected_until_half_of_the_chunks_have_run() {
        let mut cover = StepCover::default();
        for _ in 0..3 {
            let partial = [10, 30, 49, 50].map(|ran| cover.is_partial(&window(4 * ran, ran)));
            assert_eq!(partial, [true, true, true, false]);
        }
        assert!(!cover.is_partial(&window(40, 100)));
    }

    #[test]
    fn where_a_tenth_of_the_chunks_ever_runs_one_window_shows_it() {
        let mut cover = StepCover::default();
        let partial = [40, 200, 399, 400].map(|ms| cover.is_partial(&window(ms, 10)));
        assert_eq!(partial, [true, true, true, false]);
        assert!(!cover.is_partial(&window(40, 10)));
        assert!(!cover.is_partial(&window(40, 80)), "more of them run");
        assert!(cover.is_partial(&window(40, 10)));
    }

    #[test]
    fn chunks_that_only_received_a_message_have_not_run() {
        let mut chunks = window(40, 100).chunks;
        for chunk in &mut chunks[..60] {
            chunk.load.ticks = 1;
        }
        for chunk in &mut chunks[60..] {
            chunk.load.ticks = 1000;
        }
        assert_eq!(ran(&chunks), 40);
        chunks[0].declared = true;
        assert_eq!(ran(&chunks), 41);
    }

    #[test]
    fn what_was_collected_before_a_decision_does_not_count_for_the_next_one() {
        let mut cover = StepCover::default();
        assert!(cover.is_partial(&window(40, 1)), "up to 4 s");
        cover.end();
        assert!(!cover.is_collecting());
        assert_eq!([40, 400].map(|ms| cover.is_partial(&window(ms, 10))), [true, false]);
    }

    #[test]
    fn a_run_in_which_nothing_happens_is_decided_in_the_end() {
        let mut cover = StepCover::default();
        assert_eq!([40, 3_999, 4_000].map(|ms| cover.is_partial(&window(ms, 0))), [true, true, false]);
    }
}
