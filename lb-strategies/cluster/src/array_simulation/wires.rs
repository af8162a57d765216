//! Computes when messages between ranks arrive, in order per pair of ranks.

use std::collections::BTreeMap;

use lb_strategies::Rank;
use lb_strategies::pools::machine::Nanos;
use lb_strategies::virtual_time::links::Links;

/// The wires between all ranks. Memory is linear in ranks, and in messages in flight where links have jitter.
pub(super) struct Wires<'r> {
    links: Box<dyn Links + 'r>,
    /// By sender and receiver, the last arrival; empty for links that keep the order.
    last: BTreeMap<(u32, u32), Nanos>,
    /// Number of entries of `last` at which those of the past are removed.
    last_most: usize,
    /// By receiver, when it has handled the messages that it has taken.
    free: Vec<Nanos>,
}

impl<'r> Wires<'r> {
    pub(super) fn new(ranks: usize, links: Box<dyn Links + 'r>) -> Self {
        Self { links, last: BTreeMap::new(), last_most: 1024, free: vec![0; ranks] }
    }

    /// The arrival of a message that is sent now.
    pub(super) fn arrival(&mut self, from: u32, to: u32, now: Nanos) -> Nanos {
        let arrival = now.saturating_add(self.links.delay(Rank(from), Rank(to), now));
        if self.links.keeps_order() {
            return arrival;
        }
        if self.last.len() >= self.last_most {
            // A later message arrives later than these anyway.
            self.last.retain(|_, &mut last| last > now);
            self.last_most = 1024.max(2 * self.last.len());
        }
        let last = self.last.entry((from, to)).or_insert(0);
        *last = arrival.max(*last);
        *last
    }

    /// Handles a message that arrives now. Returns when the receiver has handled it, after earlier messages.
    pub(super) fn serve(&mut self, to: u32, now: Nanos) -> Nanos {
        let service = self.links.service(Rank(to));
        let free = &mut self.free[to as usize];
        *free = (*free).max(now).saturating_add(service);
        *free
    }
}
