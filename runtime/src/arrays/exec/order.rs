//! The order in which a lone worker takes its tokens: the newest first, or the oldest.
//!
//! *Newest first* runs the chunk whose last message was sent a moment ago, so that its data and its neighbour's are still in
//! the cache, and a step follows the step before it through memory while both are warm: a stencil that is larger than the
//! cache takes a fifth less time. *Oldest first* lets messages gather: a chunk with four neighbours runs once a step for all
//! that they send, not once a message: small chunks take a tenth less. But that wants a cache that holds what all ready
//! chunks touch. Nobody says how much this is; it is no more than memory brings in the time of a *round*, in which each of
//! them runs once.
//!
//! | the order of a turn | in this turn | the next order |
//! |---|---|---|
//! | oldest first | runs of several messages ([`MESSAGES`] in [`RUNS`]) and a short round ([`ROUND_MAX_NS`]) | the same |
//! | oldest first | anything else | newest first for a while, then oldest first to see: after [`PAUSE_MIN`] turns, twice as many each time in a row, up to [`PAUSE_MAX`] |
//!
//! Workers that share a rank take the newest first always: the oldest are there for others to steal.

/// Messages gather where runs handle so many
const MESSAGES: u64 = 5;
/// in so many runs.
const RUNS: u64 = 4;
/// The longest round for oldest first, ns: memory brings some 10 MB in it, about what a last-level cache holds.
const ROUND_MAX_NS: u64 = 1_000_000;
/// Turns with newest first until oldest first is tried again, at least and at most.
const PAUSE_MIN: u32 = 16;
const PAUSE_MAX: u32 = 1024;
/// Runs below which a turn says nothing.
const RUNS_MIN: u64 = 64;

/// What a worker did in a turn of so many ns.
#[derive(Debug)]
pub(super) struct Turn {
    /// Runs of chunks.
    pub(super) runs: u64,
    /// Messages that they handled.
    pub(super) messages: u64,
    pub(super) ns: u64,
}

/// A worker's order.
pub(crate) struct Order {
    /// Turns with newest first to come; 0 where the oldest goes first.
    newest_for: u32,
    /// The same of the next time.
    pause: u32,
}

impl Order {
    pub(crate) fn new() -> Order {
        Order { newest_for: 0, pause: PAUSE_MIN }
    }

    /// Tells whether the oldest token goes first.
    #[inline]
    pub(super) fn is_oldest_first(&self) -> bool {
        self.newest_for == 0
    }

    /// A turn in this order has ended, with so many tokens ready.
    pub(super) fn learn(&mut self, turn: &Turn, ready: usize) {
        if turn.runs < RUNS_MIN {
            return;
        }
        if !self.is_oldest_first() {
            self.newest_for -= 1;
        } else if turn.gathers() && turn.round_ns(ready) <= ROUND_MAX_NS {
            self.pause = PAUSE_MIN;
        } else {
            self.newest_for = self.pause;
            self.pause = (2 * self.pause).min(PAUSE_MAX);
        }
    }
}

impl Turn {
    fn gathers(&self) -> bool {
        self.messages * RUNS >= self.runs * MESSAGES
    }

    fn round_ns(&self, ready: usize) -> u64 {
        self.ns.saturating_mul(ready as u64) / self.runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns of 512 runs that the worker takes its newest first, after one with oldest first that was like this.
    fn pause(order: &mut Order, messages: u64, ns: u64, ready: usize) -> u32 {
        let turn = Turn { runs: 512, messages, ns };
        assert!(order.is_oldest_first());
        order.learn(&turn, ready);
        let mut turns = 0;
        while !order.is_oldest_first() {
            order.learn(&turn, ready);
            turns += 1;
        }
        turns
    }

    #[test]
    fn the_oldest_goes_first_while_messages_gather_and_a_round_is_short() {
        let mut order = Order::new();
        // 256 chunks of 0.5 us: a round takes 128 us.
        assert_eq!(pause(&mut order, 2048, 256_000, 256), 0);
        // 4096 of them: 2 ms. Then as many chunks as before, but each for one message.
        assert_eq!(pause(&mut order, 2048, 256_000, 4096), PAUSE_MIN);
        assert_eq!(pause(&mut order, 512, 256_000, 256), 2 * PAUSE_MIN);
        assert_eq!(pause(&mut order, 2048, 256_000, 256), 0);
        assert_eq!(pause(&mut order, 512, 256_000, 256), PAUSE_MIN);
    }

    #[test]
    fn the_oldest_is_tried_ever_more_rarely_but_always_again() {
        let mut order = Order::new();
        let pauses: Vec<u32> = (0..9).map(|_| pause(&mut order, 512, 25_600, 256)).collect();
        assert_eq!(pauses, [16, 32, 64, 128, 256, 512, 1024, 1024, 1024]);
    }

    #[test]
    fn a_turn_of_few_runs_says_nothing() {
        let mut order = Order::new();
        order.learn(&Turn { runs: 0, messages: 0, ns: 1_000_000 }, 0);
        order.learn(&Turn { runs: RUNS_MIN - 1, messages: 0, ns: u64::MAX }, usize::MAX);
        assert!(order.is_oldest_first());
        order.learn(&Turn { runs: RUNS_MIN, messages: 0, ns: u64::MAX }, usize::MAX);
        assert!(!order.is_oldest_first());
    }
}
