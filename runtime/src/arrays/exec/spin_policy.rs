//! The time that a worker without work spins before it sleeps: long for as long as answers have lately come soon.
//!
//! A worker that sleeps gives its vCPU away, and beside a busy neighbour has to win it back, which may take a time slice
//! of milliseconds; one that spins keeps it. What is waited for often takes just longer than the short spin that every
//! wait begins with: somebody has to be woken first. So a wait that outlasts the short spin is spun on where such waits
//! have lately been worth it, and where they have not the worker sleeps, and tries again now and then.
//!
//! | a look at a wait that outlasts the short spin | afterwards |
//! |---|---|
//! | it ended within the long spin, or within as much sleep after it | one more in favour, up to [`TRUST_MAX`] |
//! | it did not | half as many in favour |
//!
//! Spins are counted in turns, not by the clock: a worker that is preempted in between has not spun.

/// The factor from the short spin to the long one: some 250 us, in which a sleeper is awake and has answered.
pub(super) const LONG: u32 = 12;
/// The same as time, ns.
pub(super) const LONG_NS: u64 = 250_000;
/// Looks in favour that count. Four disappointments in a row use them up: 8, 4, 2, 1, none.
const TRUST_MAX: u32 = 8;
/// Without trust every so many-th wait is spun on, to see.
const TRY_EVERY: u32 = 32;

/// The experience of a worker with its waits.
pub(crate) struct SpinPolicy {
    trust: u32,
    doubted: u32,
    /// Time asleep since it last found work, ns.
    rested_ns: u64,
}

impl SpinPolicy {
    pub(crate) fn new() -> SpinPolicy {
        SpinPolicy { trust: TRUST_MAX, doubted: 0, rested_ns: 0 }
    }

    /// The worker has found work, or asks others for it.
    #[inline]
    pub(super) fn count_rest_anew(&mut self) {
        self.rested_ns = 0;
    }

    /// It has slept for so long.
    pub(super) fn rested(&mut self, parked_ns: u64) {
        self.rested_ns += parked_ns;
    }

    /// Time that it has slept since it last found work, ns.
    pub(super) fn rested_ns(&self) -> u64 {
        self.rested_ns
    }

    /// Decides to spin on, or not, once the short spin has found nothing.
    pub(super) fn spins_on(&mut self) -> bool {
        if self.trust > 0 {
            return true;
        }
        self.doubted += 1;
        self.doubted.is_multiple_of(TRY_EVERY)
    }

    /// A wait that outlasted the short spin ended soon, or did not.
    pub(super) fn learn(&mut self, soon: bool) {
        self.trust = if soon { TRUST_MAX.min(self.trust + 1) } else { self.trust / 2 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of waits that are spun on, of so many, of which `soon` says whether they end soon.
    fn spun_on(patience: &mut SpinPolicy, waits: u32, soon: impl Fn(u32) -> bool) -> u32 {
        let mut spun = 0;
        for wait in 0..waits {
            if patience.spins_on() {
                spun += 1;
                patience.learn(soon(wait));
            }
        }
        spun
    }

    #[test]
    fn who_waits_long_soon_stops_spinning_on() {
        let mut patience = SpinPolicy::new();
        assert!(spun_on(&mut patience, 10, |_| false) <= 4);
        assert_eq!(spun_on(&mut patience, 10 * TRY_EVERY, |_| false), 10, "but for a try now and then");
    }

    #[test]
    fn who_is_answered_soon_spins_on_though_some_answers_are_late() {
        assert_eq!(spun_on(&mut SpinPolicy::new(), 1000, |wait| !wait.is_multiple_of(4)), 1000);
    }

    #[test]
    fn answers_that_come_soon_again_are_noticed() {
        let mut patience = SpinPolicy::new();
        spun_on(&mut patience, 100, |_| false);
        let spun = spun_on(&mut patience, 1000, |_| true);
        assert!(spun >= 1000 - TRY_EVERY, "{spun}");
    }
}
