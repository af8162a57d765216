//! Computes when messages between ranks arrive, in order per pair of ranks.

use rustc_hash::FxHashMap;

use crate::overheads::Bandwidths;
use lb_strategies::Rank;
use lb_strategies::pools::machine::{Nanos, SECOND};
use lb_strategies::virtual_time::links::Links;

/// The wires between all ranks. Memory is linear in ranks, and in messages in flight where links have jitter.
pub(super) struct Wires<'r> {
    links: Box<dyn Links + 'r>,
    /// By sender and receiver, the last arrival; empty for links that keep the order.
    last: FxHashMap<(u32, u32), Nanos>,
    /// Number of entries of `last` at which those of the past are removed.
    last_most: usize,
    bandwidths: Bandwidths,
    /// By host, until when it sends to other hosts, and by rank, until when it sends within its host.
    sending: [Vec<Nanos>; 2],
    /// By receiver, when it has handled the messages that it has taken.
    free: Vec<Nanos>,
}

impl<'r> Wires<'r> {
    pub(super) fn new(ranks: usize, links: Box<dyn Links + 'r>, bandwidths: Bandwidths) -> Self {
        let rates = [bandwidths.between_hosts, bandwidths.within_host];
        let sending = rates.map(|rate| if rate.is_finite() { vec![0; ranks] } else { Vec::new() });
        Self { links, last: FxHashMap::default(), last_most: 1024, bandwidths, sending, free: vec![0; ranks] }
    }

    /// The arrival of a message of this size that is sent now.
    pub(super) fn arrival(&mut self, from: u32, to: u32, bytes: u64, now: Nanos) -> Nanos {
        let sent = self.sent(from, to, bytes, now);
        let arrival = sent.saturating_add(self.links.delay(Rank(from), Rank(to), now));
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

    /// The time at which the last byte leaves the sender, after those of earlier messages.
    fn sent(&mut self, from: u32, to: u32, bytes: u64, now: Nanos) -> Nanos {
        let hosts = [from, to].map(|rank| self.bandwidths.host(rank));
        let (which, sender, rate) = match hosts[0] == hosts[1] {
            false => (0, hosts[0], self.bandwidths.between_hosts),
            true => (1, from, self.bandwidths.within_host),
        };
        let Some(until) = self.sending[which].get_mut(sender as usize) else { return now };
        *until = (*until).max(now).saturating_add((bytes as f64 / rate * SECOND as f64) as Nanos);
        *until
    }

    /// Handles a message that arrives now. Returns when the receiver has handled it, after earlier messages.
    pub(super) fn serve(&mut self, to: u32, now: Nanos) -> Nanos {
        let service = self.links.service(Rank(to));
        let free = &mut self.free[to as usize];
        *free = (*free).max(now).saturating_add(service);
        *free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_sends_one_message_after_the_other_and_a_rank_within_its_host() {
        let rates = Bandwidths { between_hosts: 1e9, within_host: 1e10, ranks_per_host: 2, message_bytes: 0 };
        let mut wires = Wires::new(4, Box::new(50), rates);
        assert_eq!(wires.arrival(0, 2, 1000, 0), 1050);
        assert_eq!(wires.arrival(1, 3, 1000, 0), 2050, "it waits for the message of rank 0");
        assert_eq!(wires.arrival(3, 1, 1000, 0), 1050, "another host");
        assert_eq!(wires.arrival(0, 1, 1000, 0), 150);
        assert_eq!(wires.arrival(1, 0, 1000, 0), 150, "another rank");
        assert_eq!(wires.arrival(0, 2, 1000, 5000), 6050);
        let mut free = Wires::new(4, Box::new(50), Bandwidths::default());
        assert_eq!(free.arrival(0, 2, u64::MAX, 7), 57);
    }

    #[test]
    fn messages_of_a_pair_stay_in_order_and_those_that_have_arrived_are_forgotten() {
        let jitter = lb_strategies::virtual_time::links::Jitter::new(10u64, 1000, 3);
        let mut wires = Wires::new(100_000, Box::new(jitter), Bandwidths::default());
        let mut last = 0;
        for now in 0..50_000 {
            let arrival = wires.arrival(0, 1, 0, now);
            assert!(arrival >= last, "{now}");
            last = arrival;
            wires.arrival(2, 3 + now as u32, 0, now);
        }
        assert!(wires.last.len() <= 2048 + 1024, "{} pairs", wires.last.len());
    }
}
