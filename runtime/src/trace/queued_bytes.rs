//! The bytes of mail that wait on a rank: its workers count them, whoever watches reads them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// As far as workers have told: each keeps back a little, so that they do not contend for the number.
#[derive(Debug, Default)]
pub(crate) struct QueuedBytes {
    bytes: AtomicI64,
    bytes_max: AtomicI64,
}

impl QueuedBytes {
    /// So many more, or fewer. Returns how many wait then.
    pub(crate) fn add(&self, bytes: i64) -> i64 {
        let waiting = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if bytes > 0 && waiting > self.bytes_max.load(Ordering::Relaxed) {
            self.bytes_max.fetch_max(waiting, Ordering::Relaxed);
        }
        waiting
    }

    /// How many wait, by what was told.
    pub(crate) fn published(&self) -> i64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How many wait. One worker may have told what it read before another told that it was sent: then none.
    pub(crate) fn bytes(&self) -> u64 {
        self.published().max(0).unsigned_abs()
    }

    /// Bytes that wait for as long as what is returned exists.
    pub(crate) fn guard(self: &Arc<Self>, bytes: i64) -> QueuedBytesGuard {
        self.add(bytes);
        QueuedBytesGuard { bytes, queued: self.clone() }
    }

    /// The most that have waited.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.bytes_max.load(Ordering::Relaxed).unsigned_abs()
    }
}

/// Bytes that wait, until it is dropped.
#[derive(Debug)]
pub(crate) struct QueuedBytesGuard {
    bytes: i64,
    queued: Arc<QueuedBytes>,
}

impl QueuedBytesGuard {
    /// Bytes that wait in the same place, until what is returned is dropped.
    pub(crate) fn another(&self, bytes: i64) -> QueuedBytesGuard {
        self.queued.guard(bytes)
    }

    /// So many more, or fewer.
    pub(crate) fn change(&mut self, by: i64) {
        self.bytes += by;
        self.queued.add(by);
    }
}

impl Drop for QueuedBytesGuard {
    fn drop(&mut self) {
        self.queued.add(-self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_waits_until_it_is_dropped() {
        let waiting = Arc::new(QueuedBytes::default());
        let mut held = waiting.guard(50);
        held.change(20);
        assert_eq!(waiting.add(30), 100);
        held.change(-10);
        assert_eq!(waiting.published(), 90);
        drop(held);
        assert_eq!((waiting.published(), waiting.bytes_max()), (30, 100));
    }

    #[test]
    fn the_most_that_waited_is_kept() {
        let waiting = QueuedBytes::default();
        let steps = [(100, 100), (50, 150), (-120, 30), (-40, -10), (60, 50)];
        for (bytes, then) in steps {
            assert_eq!(waiting.add(bytes), then);
        }
        assert_eq!((waiting.bytes(), waiting.bytes_max()), (50, 150));
        waiting.add(-60);
        assert_eq!(waiting.bytes(), 0, "read before it was told that it was sent");
    }
}
