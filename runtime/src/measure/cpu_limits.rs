//! Watches the CPU limits of this process during a run: the vCPUs that it may use, and its CPU quota.
//!
//! A change is seen within a second and reported in one line. If the ranks are threads of this process, the run changes
//! the number of its active ranks, if its work can be moved. The number of workers stays. When a vCPU is taken away,
//! the kernel moves its workers to other vCPUs. When the vCPU is given back, this module binds its workers to it again,
//! because kernels before 6.2 do not restore the binding of a thread.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::cgroup::cpu_quota;
use super::topology::plan::compact;
use super::topology::{Thread, allowed_vcpus};
use crate::warn::warn;

const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Reads the limits twice per second, until dropped. A reading takes 0.1 ms.
pub(crate) struct CpuLimitsWatch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    over: Condvar,
}

#[derive(Default)]
struct State {
    over: bool,
    bound: Vec<(Thread, usize)>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread that is bound to a vCPU. After the drop of this guard, the thread is not bound again.
#[must_use]
pub(crate) struct PinGuard<'w> {
    shared: &'w Shared,
    thread: Thread,
}

impl CpuLimitsWatch {
    /// Starts the watch. Must be called on a thread that is not bound, because the new thread inherits its mask. Calls
    /// `follow` when the number of vCPUs or the quota has changed.
    pub(crate) fn start(follow: impl FnMut(Change) + Send + 'static) -> CpuLimitsWatch {
        let shared = Arc::<Shared>::default();
        let of_thread = shared.clone();
        let builder = thread::Builder::new().name("caribou limits".into());
        let thread = builder.spawn(move || of_thread.watch(CpuLimits::now(), follow));
        let thread = thread
            .inspect_err(|why| tracing::warn!(%why, "changes of the CPU quota and of vCPUs are not detected"))
            .ok();
        CpuLimitsWatch { shared, thread }
    }

    /// Binds the calling thread to a vCPU; none if the system does not allow that.
    pub(crate) fn bind(&self, vcpu: usize) -> Option<PinGuard<'_>> {
        let thread = Thread::this();
        if !thread.bind(vcpu) {
            return None;
        }
        self.shared.lock().bound.push((thread, vcpu));
        Some(PinGuard { shared: &self.shared, thread })
    }
}

impl Drop for CpuLimitsWatch {
    fn drop(&mut self) {
        self.shared.lock().over = true;
        self.shared.over.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for PinGuard<'_> {
    fn drop(&mut self) {
        self.shared.lock().bound.retain(|(thread, _)| *thread != self.thread);
    }
}

impl Shared {
    fn watch(&self, first: CpuLimits, mut follow: impl FnMut(Change)) {
        let (at_begin, mut allowed) = (first.vcpus(), first);
        let mut state = self.lock();
        while !state.over {
            (state, _) = self.over.wait_timeout(state, POLL_INTERVAL).unwrap_or_else(PoisonError::into_inner);
            let now = CpuLimits::now();
            for line in now.differs_from(&allowed) {
                warn(&line);
            }
            if now.vcpus != allowed.vcpus {
                bind_again(&state.bound, &now.vcpus);
            }
            if now != allowed {
                follow(Change { at_begin, now: now.vcpus() });
            }
            allowed = now;
        }
    }
}

/// The number of vCPUs that the process may use, at the begin of the watch and now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Change {
    at_begin: f64,
    now: f64,
}

impl Change {
    /// The number of ranks that suits the current vCPUs, at least one, of `ranks` ranks with `workers` workers each.
    /// All ranks, if each worker has as much of a vCPU as in the beginning.
    pub(crate) fn active_ranks(&self, ranks: u32, workers: u32) -> u32 {
        let used = self.at_begin.min(f64::from(ranks) * f64::from(workers));
        let part = (self.now / used).min(1.0);
        // A quota of 1.999 vCPUs counts as 2.
        ((f64::from(ranks) * part - 0.01).ceil() as u32).clamp(1, ranks)
    }
}

/// Binds the threads whose vCPU is available again.
fn bind_again(bound: &[(Thread, usize)], vcpus: &[usize]) {
    for &(thread, vcpu) in bound.iter().filter(|(_, vcpu)| vcpus.contains(vcpu)) {
        if !thread.bind(vcpu) {
            tracing::warn!(vcpu, "a worker cannot be pinned again");
        }
    }
}

/// The vCPUs and the quota that the system allows this process.
#[derive(Debug, PartialEq)]
struct CpuLimits {
    vcpus: Vec<usize>,
    quota: Option<f64>,
}

impl CpuLimits {
    fn now() -> CpuLimits {
        CpuLimits { vcpus: allowed_vcpus(), quota: cpu_quota() }
    }

    /// Number of vCPUs that the process may use.
    fn vcpus(&self) -> f64 {
        self.quota.unwrap_or(f64::INFINITY).min(self.vcpus.len().max(1) as f64)
    }

    /// The changes, one line each.
    fn differs_from(&self, before: &CpuLimits) -> Vec<String> {
        let mut lines = Vec::new();
        if self.vcpus != before.vcpus {
            let [now, before] = [self, before].map(|allowed| compact(&allowed.vcpus));
            lines.push(format!("this process may now use vCPUs {now} (before: {before})"));
        }
        if self.quota != before.quota {
            let told = |allowed: &CpuLimits| {
                allowed.quota.map_or("without limit".to_owned(), |vcpus| format!("{vcpus:.2} vCPUs"))
            };
            let (now, before) = (told(self), told(before));
            lines.push(format!("the CPU quota of this process is now {now} (before: {before})"));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_one_line_and_nothing_is_said_of_none() {
        let all = || CpuLimits { vcpus: vec![0, 1, 3], quota: None };
        assert!(all().differs_from(&all()).is_empty());
        let quota = CpuLimits { quota: Some(0.5), ..all() };
        let said = "the CPU quota of this process is now 0.50 vCPUs (before: without limit)";
        assert_eq!(quota.differs_from(&all()), [said]);
        let fewer = CpuLimits { vcpus: vec![0], ..all() };
        let said = "this process may now use vCPUs 0 (before: 0-1,3)";
        assert_eq!(fewer.differs_from(&all()), [said]);
    }

    #[test]
    fn ranks_follow_the_vcpus_that_they_use() {
        let of = |at_begin, now, ranks, workers| Change { at_begin, now }.active_ranks(ranks, workers);
        assert_eq!(
            [2.0, 1.999, 1.5, 1.005, 1.0, 0.5, 0.01].map(|now| of(2.0, now, 2, 1)),
            [2, 2, 2, 1, 1, 1, 1]
        );
        assert_eq!([8.0, 4.0, 2.0, 1.0].map(|now| of(8.0, now, 2, 1)), [2, 2, 2, 1], "two vCPUs of eight");
        assert_eq!([4.0, 3.0, 2.0, 1.0].map(|now| of(4.0, now, 2, 2)), [2, 2, 1, 1], "two workers a rank");
        assert_eq!(
            [2.0, 1.0, 4.0].map(|now| of(2.0, now, 4, 1)),
            [4, 2, 4],
            "two ranks a vCPU as in the beginning"
        );
    }

    #[test]
    fn a_worker_is_bound_again_when_its_vcpu_is_back_and_only_while_it_lives() {
        thread::spawn(|| {
            let vcpus = allowed_vcpus();
            let (Some(&vcpu), true) = (vcpus.last(), vcpus.len() > 1) else { return };
            let watch = CpuLimitsWatch { shared: Arc::default(), thread: None };
            let bound = watch.bind(vcpu).expect("it is allowed");
            Thread::this().bind(vcpus[0]);
            bind_again(&watch.shared.lock().bound, &vcpus[..1]);
            assert_eq!(Thread::this().pinned_to(), Some(vcpus[0]), "its own is not there");
            bind_again(&watch.shared.lock().bound, &vcpus);
            assert_eq!(Thread::this().pinned_to(), Some(vcpu));
            drop(bound);
            assert!(watch.shared.lock().bound.is_empty());
        })
        .join()
        .expect("the thread does not panic");
    }
}
