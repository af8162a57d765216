//! Requests to shrink or expand a run while it runs. The monitor and the watch of CPU limits request a number of active
//! ranks, and the run takes the request at its next opportunity.
//!
//! Active ranks have the lowest numbers. The other ranks keep no work that can be moved, and only forward packets.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::warn::warn;

/// Why a run of arrays is not resized.
pub(crate) const NOTHING_MOVES: &str =
    "no chunk of this run can move, because of CARIBOU_LB or of the setup of its arrays";
/// Why a pool is not resized.
pub(crate) const POLICY_ASSIGNS: &str =
    "the policy of the pool cannot leave a rank without work, expected CARIBOU_LB=leases or auto";
/// Why the process takes no requests.
pub(crate) const ASK_RANK_0: &str = "only the process of rank 0 takes requests";

/// What happens to requests.
enum Taker {
    /// A thread of the run takes them, after this function has woken the thread.
    Thread(Box<dyn Fn() + Send + Sync>),
    /// Requests are refused, for this reason.
    Refusal(&'static str),
}

/// Requests for a number of active ranks, in one process of a run.
pub(crate) struct ResizeRequests {
    /// Number of all ranks of the run.
    ranks: u32,
    /// Number of active ranks; up to date only in the process of rank 0.
    active: AtomicU32,
    /// The last requested number, until the run takes it; 0 for none.
    requested: AtomicU32,
    /// Not set before the run has begun: requests wait until then.
    taker: OnceLock<Taker>,
}

impl ResizeRequests {
    pub(crate) fn new(ranks: u32) -> ResizeRequests {
        ResizeRequests {
            ranks,
            active: AtomicU32::new(ranks),
            requested: AtomicU32::new(0),
            taker: OnceLock::new(),
        }
    }

    /// Lets a thread of the run, which `wake` wakes, take requests from now on.
    pub(crate) fn taken_by(&self, wake: impl Fn() + Send + Sync + 'static) {
        self.taker.get_or_init(|| Taker::Thread(Box::new(wake)));
    }

    /// Refuses requests from now on.
    pub(crate) fn refuse(&self, why: &'static str) {
        self.taker.get_or_init(|| Taker::Refusal(why));
        if self.take().is_some() {
            warn(&format!("the number of active ranks stays as it is: {why}"));
        }
    }

    /// Requests this number of active ranks. Replaces a request that the run has not taken.
    ///
    /// # Errors
    /// The allowed numbers, if this number is not allowed, or the reason why the run takes no requests.
    pub(crate) fn ask(&self, ranks: u32) -> Result<(), String> {
        if !(1..=self.ranks).contains(&ranks) {
            return Err(format!("{ranks} active ranks, expected a number from 1 to {}", self.ranks));
        }
        self.requested.store(ranks, Ordering::SeqCst);
        match self.taker.get() {
            Some(Taker::Refusal(why)) => {
                self.take();
                Err((*why).into())
            }
            Some(Taker::Thread(wake)) => {
                wake();
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// True if a number was requested and not taken.
    pub(crate) fn is_asked(&self) -> bool {
        self.requested.load(Ordering::Acquire) > 0
    }

    /// Takes the last requested number.
    pub(crate) fn take(&self) -> Option<u32> {
        match self.requested.load(Ordering::Relaxed) {
            0 => None,
            _ => Some(self.requested.swap(0, Ordering::AcqRel)).filter(|&ranks| ranks > 0),
        }
    }

    /// Sets the number of active ranks.
    pub(crate) fn set_active(&self, active: u32) {
        self.active.store(active, Ordering::Relaxed);
    }

    /// Number of active ranks, in the process of rank 0.
    pub(crate) fn active(&self) -> u32 {
        self.active.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn the_last_request_is_taken_once_and_others_are_refused() {
        let requests = ResizeRequests::new(4);
        assert!(requests.ask(3).is_ok(), "it waits until the run begins");
        assert_eq!(requests.take(), Some(3));
        let woken = Arc::new(AtomicU32::new(0));
        let wakes = woken.clone();
        requests.taken_by(move || {
            wakes.fetch_add(1, Ordering::Relaxed);
        });
        for wrong in [0, 5] {
            let why = format!("{wrong} active ranks, expected a number from 1 to 4");
            assert_eq!((requests.ask(wrong), requests.take()), (Err(why), None));
        }
        assert!([1, 4, 2].into_iter().all(|ranks| requests.ask(ranks).is_ok()));
        assert_eq!((requests.take(), requests.take()), (Some(2), None));
        assert_eq!(woken.load(Ordering::Relaxed), 3);
        let refusing = ResizeRequests::new(4);
        refusing.refuse(ASK_RANK_0);
        assert_eq!((refusing.ask(2), refusing.take()), (Err(ASK_RANK_0.into()), None));
    }
}
