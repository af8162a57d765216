//! A timer that is due periodically.

/// A timer that is due at once and then at each interval; never due without an interval.
#[derive(Default)]
pub(super) struct Periodic {
    pub(super) every_ns: Option<u64>,
    next_ns: u64,
}

impl Periodic {
    pub(super) fn new(every_ns: Option<u64>) -> Periodic {
        Periodic { every_ns, next_ns: 0 }
    }

    /// Tells whether the timer is due. If so, it is next due an interval from now.
    pub(super) fn is_due(&mut self, now_ns: u64) -> bool {
        let due = self.next_ns().is_some_and(|next_ns| now_ns >= next_ns);
        if due {
            self.restart(now_ns);
        }
        due
    }

    /// Makes the timer due an interval from now.
    pub(super) fn restart(&mut self, now_ns: u64) {
        self.next_ns = now_ns.saturating_add(self.every_ns.unwrap_or(0));
    }

    pub(super) fn next_ns(&self) -> Option<u64> {
        self.every_ns.map(|_| self.next_ns)
    }
}
