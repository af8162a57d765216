//! Chooses the queue order of a worker that is alone on its rank: newest entry first (LIFO) or oldest entry first
//! (FIFO).
//!
//! * *Newest first*, except for every eighth entry, runs the chunk whose last message was sent a moment ago. Its data
//!   and its neighbour's are still in the cache. Each step then follows the previous one through memory while both are
//!   cached. A stencil larger than the cache takes a seventh less time.
//! * *Oldest first* lets messages batch up: a chunk with four neighbours runs once per step for all their messages, not
//!   once per message. Small chunks take a tenth less time. This needs a cache that holds the data of all ready chunks.
//!
//! The worker cannot measure the size of that data. It is at most what memory delivers in the time of a *round*, in
//! which each ready chunk runs once.
//!
//! | order of a turn | this turn | next order |
//! |---|---|---|
//! | oldest first | had [`MESSAGES_A_RUN`] messages per run or more, and a short round ([`ROUND_MAX_NS`]) | oldest first |
//! | oldest first | anything else, once | oldest first |
//! | oldest first | anything else, for the second time in a row | newest first |
//! | newest first | was the last of [`PAUSE_MIN`] such turns; this number doubles each time in a row, up to [`PAUSE_MAX`] | oldest first, to try |
//!
//! A worker begins with newest first, which is as good for coarse chunks with their long turns. Workers that share a
//! rank always use newest first: the oldest entries are left for other workers to steal.

/// Average number of messages per run from which messages batch up. With fewer there is no gain: messages that two
/// chunks send round a ring travel on together once they have met.
const MESSAGES_A_RUN: u64 = 2;
/// Longest round for oldest first, ns. Memory delivers about 10 MB in it, the size of a last-level cache.
const ROUND_MAX_NS: u64 = 1_000_000;
/// Minimum and maximum number of turns with newest first until oldest first is tried again.
pub(super) const PAUSE_MIN: u32 = 16;
const PAUSE_MAX: u32 = 1024;
/// Minimum number of runs of a turn that counts.
const RUNS_MIN: u64 = 64;

/// Statistics of one turn of a worker.
#[derive(Debug)]
pub(super) struct TurnStats {
    pub(super) runs: u64,
    pub(super) messages: u64,
    /// Duration without idle time, where that is measured, ns.
    pub(super) ns: u64,
}

/// The adaptive queue order of a worker.
pub(crate) struct QueueOrder {
    /// Number of turns to come with newest first; 0 means oldest first.
    newest_for: u32,
    /// Number of turns with newest first, the next time that oldest first does not pay off.
    pause: u32,
    /// True if the last turn was against oldest first. One turn alone does not count: it may have been interrupted.
    doubted: bool,
    /// Number of entries that were ready at the end of the last turn.
    ready: usize,
}

impl QueueOrder {
    pub(crate) fn new() -> QueueOrder {
        QueueOrder { newest_for: PAUSE_MIN, pause: PAUSE_MIN, doubted: false, ready: 0 }
    }

    /// True if the oldest entry goes first.
    #[inline]
    pub(super) fn is_oldest_first(&self) -> bool {
        self.newest_for == 0
    }

    /// Updates the order after a turn that left `ready` entries in the queue.
    pub(super) fn learn(&mut self, turn: &TurnStats, ready: usize) {
        // The maximum over two turns, since few entries may be ready at the end of a step.
        let ready_max = ready.max(std::mem::replace(&mut self.ready, ready));
        if turn.runs < RUNS_MIN {
            return;
        }
        if !self.is_oldest_first() {
            self.newest_for -= 1;
        } else if turn.gathers() && turn.round_ns(ready_max) <= ROUND_MAX_NS {
            (self.doubted, self.pause) = (false, PAUSE_MIN);
        } else if !self.doubted {
            self.doubted = true;
        } else {
            (self.doubted, self.newest_for) = (false, self.pause);
            self.pause = (2 * self.pause).min(PAUSE_MAX);
        }
    }
}

impl TurnStats {
    fn gathers(&self) -> bool {
        self.messages >= self.runs * MESSAGES_A_RUN
    }

    fn round_ns(&self, ready: usize) -> u64 {
        self.ns.saturating_mul(ready as u64) / self.runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A turn of 512 runs that handled `messages` in `ns`.
    fn turn(messages: u64, ns: u64) -> TurnStats {
        TurnStats { runs: 512, messages, ns }
    }

    /// Learns from this turn repeatedly until the oldest goes first. Returns the number of repetitions.
    fn turns_of_newest(order: &mut QueueOrder, turn: &TurnStats, ready: usize) -> u32 {
        let mut turns = 0;
        while !order.is_oldest_first() {
            order.learn(turn, ready);
            turns += 1;
        }
        turns
    }

    /// A queue order after its first turns with newest first.
    fn oldest_first() -> QueueOrder {
        let mut order = QueueOrder::new();
        assert_eq!(turns_of_newest(&mut order, &turn(512, 0), 0), PAUSE_MIN);
        order
    }

    #[test]
    fn the_oldest_goes_first_while_messages_batch_up_and_a_round_is_short() {
        let mut order = oldest_first();
        let mut pause = |turn: &TurnStats, ready| {
            assert!(order.is_oldest_first());
            (0..2).for_each(|_| order.learn(turn, ready));
            turns_of_newest(&mut order, turn, ready)
        };
        // 256 chunks of 0.5 us: a round takes 128 us.
        assert_eq!(pause(&turn(2048, 256_000), 256), 0);
        // 4096 chunks: a round takes 2 ms. Then 256 chunks again, with one message per run.
        assert_eq!(pause(&turn(2048, 256_000), 4096), PAUSE_MIN);
        assert_eq!(pause(&turn(512, 256_000), 256), 2 * PAUSE_MIN);
        assert_eq!(pause(&turn(2048, 256_000), 256), 0);
        assert_eq!(pause(&turn(512, 256_000), 256), PAUSE_MIN);
    }

    #[test]
    fn oldest_first_is_tried_ever_more_rarely_but_always_again() {
        let mut order = oldest_first();
        let one_each = turn(512, 25_600);
        let pauses: Vec<u32> = std::iter::repeat_with(|| {
            (0..2).for_each(|_| order.learn(&one_each, 256));
            turns_of_newest(&mut order, &one_each, 256)
        })
        .take(9)
        .collect();
        assert_eq!(pauses, [16, 32, 64, 128, 256, 512, 1024, 1024, 1024]);
    }

    #[test]
    fn an_interrupted_turn_changes_nothing() {
        let mut order = oldest_first();
        for ns in [256_000, 4_000_000, 256_000, 4_000_000, 256_000] {
            order.learn(&turn(2048, ns), 256);
            assert!(order.is_oldest_first());
        }
    }

    #[test]
    fn a_round_counts_the_entries_ready_before_or_after_the_turn() {
        let mut order = oldest_first();
        order.learn(&turn(2048, 256_000), 4096);
        assert!(order.is_oldest_first());
        order.learn(&turn(2048, 256_000), 0);
        assert!(!order.is_oldest_first());
    }

    #[test]
    fn a_turn_of_few_runs_does_not_count() {
        let few = TurnStats { runs: RUNS_MIN - 1, messages: 0, ns: u64::MAX };
        let mut order = QueueOrder::new();
        (0..2 * PAUSE_MIN).for_each(|_| order.learn(&few, usize::MAX));
        assert_eq!(turns_of_newest(&mut order, &turn(512, 0), 0), PAUSE_MIN);
        (0..2).for_each(|_| order.learn(&few, usize::MAX));
        (0..2).for_each(|_| order.learn(&TurnStats { runs: 0, messages: 0, ns: 1 }, 0));
        assert!(order.is_oldest_first());
        (0..2).for_each(|_| order.learn(&TurnStats { runs: RUNS_MIN, ..few }, usize::MAX));
        assert!(!order.is_oldest_first());
    }
}
