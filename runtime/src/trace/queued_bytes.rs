//! Counts the queued bytes of a rank (bytes of messages that wait there). Workers count, and monitors read.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// The number of queued bytes that workers have reported. Each worker leaves a small difference unreported, so that
/// workers do not contend for this number.
#[derive(Debug, Default)]
pub(crate) struct QueuedBytes {
    bytes: AtomicI64,
    bytes_max: AtomicI64,
}

impl QueuedBytes {
    /// Adds `bytes`, which may be negative. Returns the new number.
    pub(crate) fn add(&self, bytes: i64) -> i64 {
        let waiting = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if bytes > 0 && waiting > self.bytes_max.load(Ordering::Relaxed) {
            self.bytes_max.fetch_max(waiting, Ordering::Relaxed);
        }
        waiting
    }

    /// The reported number, which may be negative.
    pub(crate) fn published(&self) -> i64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The number of queued bytes; 0 if the reported number is negative, as when a read is reported before its send.
    pub(crate) fn bytes(&self) -> u64 {
        self.published().max(0).unsigned_abs()
    }

    /// Counts `bytes` as queued until the guard is dropped.
    pub(crate) fn guard(self: &Arc<Self>, bytes: i64) -> QueuedBytesGuard {
        self.add(bytes);
        QueuedBytesGuard { bytes, queued: self.clone() }
    }

    /// The maximum number of bytes that were queued.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.bytes_max.load(Ordering::Relaxed).unsigned_abs()
    }
}

/// Bytes that count as queued until this guard is dropped.
#[derive(Debug)]
pub(crate) struct QueuedBytesGuard {
    bytes: i64,
    queued: Arc<QueuedBytes>,
}

impl QueuedBytesGuard {
    /// Another guard, for `bytes` queued in the same place.
    pub(crate) fn another(&self, bytes: i64) -> QueuedBytesGuard {
        self.queued.guard(bytes)
    }

    /// Adds `by` bytes, which may be negative.
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
    fn guarded_bytes_are_queued_until_the_guard_is_dropped() {
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
    fn the_maximum_is_kept() {
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
