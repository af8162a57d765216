//! Counts the bytes in flight from this rank to each other rank, and in broadcasts, against a window.
//!
//! A sender has one window for each destination. Bytes are in flight until the receiver acknowledges them, and the
//! sender requests an ack several times per window. A destination *blocks* senders once more than a window is in flight
//! to it, until half a window or less is.

use litemap::LiteMap;

use super::Destination;
use crate::ids::Rank;

/// Number of ack requests per window.
const ACK_REQUESTS_PER_WINDOW: u64 = 4;
/// The limit of a rank, divided by the sum of the windows of all other ranks to it.
const WINDOWS_PER_LIMIT: u64 = 4;
/// The minimum window, bytes. A limit of less than 16 times as much makes it smaller: a sixteenth of the limit.
const WINDOW_MIN: u64 = 64 << 10;

/// The consequences of a message to another rank, or of a broadcast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SendOutcome {
    /// An ack is to be requested behind the message.
    pub(crate) ack_request_due: bool,
    /// Its sender is blocked.
    pub(crate) blocks: bool,
}

/// Bytes to and from one destination.
#[derive(Debug, Default)]
struct ByteCounts {
    /// Briefly negative: where bytes moved on twice, the last ack may arrive before the first `DeferredAckMoved`.
    in_flight: i64,
    /// Bytes in flight that were sent since the last request for an ack.
    since_ack_request: u64,
    /// Bytes from that rank for which an ack was requested and deferred.
    deferred_ack: u64,
}

impl ByteCounts {
    #[inline]
    fn add(&mut self, bytes: u64, window: u64) -> SendOutcome {
        self.in_flight += bytes as i64;
        self.since_ack_request += bytes;
        SendOutcome {
            ack_request_due: self.since_ack_request >= (window / ACK_REQUESTS_PER_WINDOW).max(1),
            blocks: self.exceeds(window),
        }
    }

    /// True if more than `bytes` bytes are in flight.
    #[inline]
    fn exceeds(&self, bytes: u64) -> bool {
        u64::try_from(self.in_flight).is_ok_and(|in_flight| in_flight > bytes)
    }
}

/// The bytes in flight from one rank, and the acks that it has deferred.
#[derive(Debug)]
pub(super) struct Credits {
    /// Bytes that may be in flight to another rank.
    pub(super) window: u64,
    /// Bytes of broadcasts that may be in flight.
    pub(super) broadcast_window: u64,
    ranks: LiteMap<Rank, ByteCounts>,
    broadcasts: ByteCounts,
}

impl Credits {
    /// The credits of one of `ranks` ranks, each with this limit of queued bytes.
    pub(super) fn new(ranks: u32, limit: u64) -> Credits {
        // The windows of all senders to a rank are together a quarter of its limit, unless there are very many senders.
        let shared_out = limit / WINDOWS_PER_LIMIT / u64::from(ranks.max(2) - 1);
        let window = shared_out.max(WINDOW_MIN.min(limit / 16));
        Credits {
            window,
            // At most a few ranks broadcast at a time: a window divided among thousands would block each broadcast.
            broadcast_window: window.max(limit / WINDOWS_PER_LIMIT / WINDOWS_PER_LIMIT),
            ranks: LiteMap::new(),
            broadcasts: ByteCounts::default(),
        }
    }

    #[inline]
    pub(super) fn count_sent(&mut self, to: Rank, bytes: u64) -> SendOutcome {
        let window = self.window;
        self.rank(to).add(bytes, window)
    }

    pub(super) fn count_broadcast(&mut self, bytes: u64) -> SendOutcome {
        self.broadcasts.add(bytes, self.broadcast_window)
    }

    /// Bytes that were first sent to another rank have moved on to `to` with a chunk.
    pub(super) fn count_moved(&mut self, to: Rank, bytes: u64) {
        self.rank(to).in_flight += bytes as i64;
    }

    /// Takes the bytes since the last request for an ack, for the request that is sent now.
    pub(super) fn take_ack_request(&mut self, to: Destination) -> u64 {
        std::mem::take(&mut self.counts_of(to).since_ack_request)
    }

    pub(super) fn count_acked(&mut self, by: Destination, bytes: u64) {
        self.counts_of(by).in_flight -= bytes as i64;
    }

    pub(super) fn defer_ack(&mut self, to: Rank, bytes: u64) {
        self.rank(to).deferred_ack += bytes;
    }

    /// Takes the deferred acks, as pairs of receiver and bytes.
    pub(super) fn take_deferred_acks(&mut self) -> Vec<(Rank, u64)> {
        let deferred = self.ranks.iter_mut().filter(|(_, counts)| counts.deferred_ack > 0);
        deferred.map(|(&rank, counts)| (rank, std::mem::take(&mut counts.deferred_ack))).collect()
    }

    /// True if more than half a window is in flight: senders that the destination blocks stay blocked.
    pub(super) fn blocks(&self, by: Destination) -> bool {
        let (counts, window) = match by {
            Destination::Rank(rank) => (self.ranks.get(&rank), self.window),
            Destination::AllRanks => (Some(&self.broadcasts), self.broadcast_window),
        };
        counts.is_some_and(|counts| counts.exceeds(window / 2))
    }

    /// All destinations that block senders now.
    pub(super) fn blocking(&self) -> Vec<Destination> {
        let ranks = self.ranks.keys().copied().map(Destination::Rank);
        ranks.chain([Destination::AllRanks]).filter(|&destination| self.blocks(destination)).collect()
    }

    pub(super) fn grow(&mut self) {
        for window in [&mut self.window, &mut self.broadcast_window] {
            *window = (*window).max(1).saturating_mul(2);
        }
    }

    fn rank(&mut self, rank: Rank) -> &mut ByteCounts {
        self.ranks.entry(rank).or_default()
    }

    fn counts_of(&mut self, destination: Destination) -> &mut ByteCounts {
        match destination {
            Destination::Rank(rank) => self.rank(rank),
            Destination::AllRanks => &mut self.broadcasts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_for_broadcasts_is_no_part_of_one_for_each_rank() {
        let window = |ranks| Credits::new(ranks, 64 << 20).broadcast_window;
        assert_eq!([2, 5, 1000].map(window), [16 << 20, 4 << 20, 4 << 20]);
    }

    #[test]
    fn a_destination_blocks_above_a_window_until_half_of_it_is_in_flight() {
        let (to, other) = (Rank(1), Destination::Rank(Rank(1)));
        let mut credits = Credits { window: 100, ..Credits::new(2, 1 << 20) };
        assert_eq!(credits.count_sent(to, 24), SendOutcome { ack_request_due: false, blocks: false });
        assert_eq!(credits.count_sent(to, 70), SendOutcome { ack_request_due: true, blocks: false });
        assert_eq!(credits.take_ack_request(other), 94);
        assert_eq!(credits.count_sent(to, 7), SendOutcome { ack_request_due: false, blocks: true });
        credits.count_acked(other, 50);
        assert_eq!(credits.blocking(), [other]);
        credits.count_acked(other, 1);
        assert_eq!(credits.blocking(), []);
    }

    #[test]
    fn windows_grow_also_from_nothing() {
        let mut credits = Credits { window: 0, broadcast_window: 3, ..Credits::new(2, 1 << 20) };
        credits.grow();
        assert_eq!((credits.window, credits.broadcast_window), (2, 6));
    }
}
