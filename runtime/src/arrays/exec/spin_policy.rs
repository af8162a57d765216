//! Decides how long an idle worker spins before it sleeps, from how soon its recent waits ended.
//!
//! A worker that sleeps gives up its vCPU. Beside a busy process, getting the vCPU back may take a time slice of
//! milliseconds; a worker that spins keeps the vCPU. Every wait begins with a *short spin*. A wait often takes just
//! longer, since another worker must be woken first. So the worker goes on with a *long spin* while it has *trust*: a
//! counter of recent waits that a long spin would have bridged. Otherwise the worker sleeps, and tries a long spin now
//! and then.
//!
//! | a wait that outlasts the short spin | trust in the long spin |
//! |---|---|
//! | ends within the long spin, or within as much sleep after it | one more, up to [`TRUST_MAX`] |
//! | does not | halved |
//!
//! A spin is measured in turns, not in time, because a worker that is preempted has not spun.

/// Ratio of the long to the short spin. The long one takes about 250 us, in which a sleeping worker wakes and replies.
pub(super) const LONG: u32 = 12;
/// Duration of the long spin, ns.
pub(super) const LONG_NS: u64 = 250_000;
/// Maximum trust. Four failures in a row reduce it to 0: 8, 4, 2, 1, 0.
const TRUST_MAX: u32 = 8;
/// Without trust, one wait in this number gets a long spin, as a trial.
const TRY_EVERY: u32 = 32;

/// The spin policy of one worker.
pub(crate) struct SpinPolicy {
    trust: u32,
    doubted: u32,
    /// Time asleep since the worker last found work, ns.
    rested_ns: u64,
}

impl SpinPolicy {
    pub(crate) fn new() -> SpinPolicy {
        SpinPolicy { trust: TRUST_MAX, doubted: 0, rested_ns: 0 }
    }

    /// Resets the time asleep: the worker has found work, or has searched for quiescence.
    #[inline]
    pub(super) fn count_rest_anew(&mut self) {
        self.rested_ns = 0;
    }

    /// Adds a sleep of `parked_ns`.
    pub(super) fn rested(&mut self, parked_ns: u64) {
        self.rested_ns += parked_ns;
    }

    /// Time asleep since the worker last found work, ns.
    pub(super) fn rested_ns(&self) -> u64 {
        self.rested_ns
    }

    /// True if the worker is to begin the long spin, after the short spin has found nothing.
    pub(super) fn spins_on(&mut self) -> bool {
        if self.trust > 0 {
            return true;
        }
        self.doubted += 1;
        self.doubted.is_multiple_of(TRY_EVERY)
    }

    /// Updates the trust after a wait that outlasted the short spin. `soon` is true if the wait then ended soon.
    pub(super) fn learn(&mut self, soon: bool) {
        self.trust = if soon { TRUST_MAX.min(self.trust + 1) } else { self.trust / 2 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of `waits` that get a long spin; `soon` is true if a wait ends soon.
    fn spun_on(policy: &mut SpinPolicy, waits: u32, soon: impl Fn(u32) -> bool) -> u32 {
        let mut spun = 0;
        for wait in 0..waits {
            if policy.spins_on() {
                spun += 1;
                policy.learn(soon(wait));
            }
        }
        spun
    }

    #[test]
    fn a_worker_with_long_waits_stops_spinning_on() {
        let mut policy = SpinPolicy::new();
        assert!(spun_on(&mut policy, 10, |_| false) <= 4);
        assert_eq!(spun_on(&mut policy, 10 * TRY_EVERY, |_| false), 10, "but for a try now and then");
    }

    #[test]
    fn a_worker_with_short_waits_spins_on_though_some_are_long() {
        assert_eq!(spun_on(&mut SpinPolicy::new(), 1000, |wait| !wait.is_multiple_of(4)), 1000);
    }

    #[test]
    fn waits_that_become_short_again_are_noticed() {
        let mut policy = SpinPolicy::new();
        spun_on(&mut policy, 100, |_| false);
        let spun = spun_on(&mut policy, 1000, |_| true);
        assert!(spun >= 1000 - TRY_EVERY, "{spun}");
    }
}
