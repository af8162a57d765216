//! The order in which a lone worker takes its entries: the newest first, or the oldest.
//!
//! *Newest first*, but for every eighth token, runs the chunk whose last message was sent a moment ago, so that its data and its
//! neighbour's are still in the cache, and a step follows the step before it through memory while both are warm: a stencil
//! that is larger than the cache takes a seventh less time. *Oldest first* lets messages gather: a chunk with four neighbours
//! runs once a step for all that they send, not once a message: small chunks take a tenth less. But that wants a cache that
//! holds what all ready chunks touch. Nobody says how much this is; it is no more than memory brings in the time of a
//! *round*, in which each of them runs once.
//!
//! | the order of a turn | this turn | the next order |
//! |---|---|---|
//! | oldest first | had runs of two messages or more ([`MESSAGES_A_RUN`]) and a short round ([`ROUND_MAX_NS`]) | the same |
//! | oldest first | anything else, for the second time in a row | newest first |
//! | newest first | is the last of [`PAUSE_MIN`], or of twice as many each time in a row, up to [`PAUSE_MAX`] | oldest first, to see |
//!
//! A worker begins with newest first, which is as good for coarse chunks: a turn of those takes long. Workers that share a rank
//! keep to it: the oldest are there for others to steal.

/// Messages gather where a run handles so many on average. A few do where nothing is gained: what two chunks send round a ring
/// goes on together once it has met.
const MESSAGES_A_RUN: u64 = 2;
/// The longest round for oldest first, ns: memory brings some 10 MB in it, about what a last-level cache holds.
const ROUND_MAX_NS: u64 = 1_000_000;
/// Turns with newest first until oldest first is tried again, at least and at most.
pub(super) const PAUSE_MIN: u32 = 16;
const PAUSE_MAX: u32 = 1024;
/// Runs below which a turn says nothing.
const RUNS_MIN: u64 = 64;

/// What a worker did in a turn.
#[derive(Debug)]
pub(super) struct TurnStats {
    /// Tokens that it took.
    pub(super) runs: u64,
    /// Messages that it handled.
    pub(super) messages: u64,
    /// The time, but for that without work as far as this is known, ns.
    pub(super) ns: u64,
}

/// A worker's order.
pub(crate) struct QueueOrder {
    /// Turns with newest first to come; 0 where the oldest goes first.
    newest_for: u32,
    /// So many the next time that oldest first does not pay.
    pause: u32,
    /// The last turn spoke against oldest first: it may have been interrupted.
    doubted: bool,
    /// Tokens that were ready when it ended.
    ready: usize,
}

impl QueueOrder {
    pub(crate) fn new() -> QueueOrder {
        QueueOrder { newest_for: PAUSE_MIN, pause: PAUSE_MIN, doubted: false, ready: 0 }
    }

    /// Tells whether the oldest token goes first.
    #[inline]
    pub(super) fn is_oldest_first(&self) -> bool {
        self.newest_for == 0
    }

    /// A turn in this order has ended, with so many entries ready.
    pub(super) fn learn(&mut self, turn: &TurnStats, ready: usize) {
        // At the end of a step there may be few.
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

    /// A turn of 512 runs that handled so many messages in so many ns.
    fn turn(messages: u64, ns: u64) -> TurnStats {
        TurnStats { runs: 512, messages, ns }
    }

    /// Learns from turns like this until the oldest goes first: how many it took.
    fn turns_of_newest(order: &mut QueueOrder, turn: &TurnStats, ready: usize) -> u32 {
        let mut turns = 0;
        while !order.is_oldest_first() {
            order.learn(turn, ready);
            turns += 1;
        }
        turns
    }

    /// An order whose first turns are over.
    fn oldest_first() -> QueueOrder {
        let mut order = QueueOrder::new();
        assert_eq!(turns_of_newest(&mut order, &turn(512, 0), 0), PAUSE_MIN);
        order
    }

    #[test]
    fn the_oldest_goes_first_while_messages_gather_and_a_round_is_short() {
        let mut order = oldest_first();
        let mut pause = |turn: &TurnStats, ready| {
            assert!(order.is_oldest_first());
            (0..2).for_each(|_| order.learn(turn, ready));
            turns_of_newest(&mut order, turn, ready)
        };
        // 256 chunks of 0.5 us: a round takes 128 us.
        assert_eq!(pause(&turn(2048, 256_000), 256), 0);
        // 4096 of them: 2 ms. Then as many chunks as before, but each for one message.
        assert_eq!(pause(&turn(2048, 256_000), 4096), PAUSE_MIN);
        assert_eq!(pause(&turn(512, 256_000), 256), 2 * PAUSE_MIN);
        assert_eq!(pause(&turn(2048, 256_000), 256), 0);
        assert_eq!(pause(&turn(512, 256_000), 256), PAUSE_MIN);
    }

    #[test]
    fn the_oldest_is_tried_ever_more_rarely_but_always_again() {
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
    fn a_turn_that_was_interrupted_changes_nothing() {
        let mut order = oldest_first();
        for ns in [256_000, 4_000_000, 256_000, 4_000_000, 256_000] {
            order.learn(&turn(2048, ns), 256);
            assert!(order.is_oldest_first());
        }
    }

    #[test]
    fn a_round_has_the_chunks_that_were_ready_before_or_after_the_turn() {
        let mut order = oldest_first();
        order.learn(&turn(2048, 256_000), 4096);
        assert!(order.is_oldest_first());
        order.learn(&turn(2048, 256_000), 0);
        assert!(!order.is_oldest_first());
    }

    #[test]
    fn a_turn_of_few_runs_says_nothing() {
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
