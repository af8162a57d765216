//! A cut through the traffic between ranks: everything that was sent before it on any rank has come before a rank says that
//! it is drained.
//!
//! Each rank makes its cut once, when it has stopped what may not cross it. What it counted until then goes up the tree and
//! comes down again as what each rank is to get, see [`in_flight`](crate::arrays::core::routing::in_flight). Nothing here knows what a
//! cut is for: [`balance`](crate::arrays::core::sync::migration) changes routes at one.

use super::{Actions, RankCore};
use crate::arrays::core::packet::Packet;
use crate::arrays::core::routing::in_flight::CountsByRank;

impl RankCore {
    /// What this rank has sent to others so far was before the cut, what it sends from now on comes after it.
    pub(super) fn cut(&mut self, now_ns: u64, out: &mut Actions) {
        let counts = self.in_flight.end_epoch();
        self.sent(counts, now_ns, out);
    }

    /// This rank or a child has switched: what has been sent under the old routes, there and below.
    pub(super) fn sent(&mut self, counts: CountsByRank, now_ns: u64, out: &mut Actions) {
        let Some(all) = self.convergecasts.sent.add(&self.tree, |sum| sum.add(counts)) else { return };
        match self.root {
            None => self.send_up(Packet::SentCounts(all), now_ns, out),
            Some(_) => self.expect(all, now_ns, out),
        }
    }

    /// All ranks have switched: what was sent under the old routes to this rank and those below it.
    pub(super) fn expect(&mut self, counts: CountsByRank, now_ns: u64, out: &mut Actions) {
        let (own, below) = counts.split(&self.tree);
        for (child, counts) in below {
            self.send(child, Packet::ExpectedCounts(counts), now_ns, out);
        }
        if self.in_flight.expect(own) {
            self.drained(now_ns, out);
        }
    }
}
