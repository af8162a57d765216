//! Finds the vCPUs that this process may use, and binds threads to them.
//!
//! This module calls the operating system to read, set and restore affinity masks. [`layout`] reads the position of
//! each vCPU in the machine. [`plan`](mod@plan) then chooses the vCPU of each worker, by a pure function.

use std::marker::PhantomData;

use layout::layout;
use plan::RankResources;

use super::cgroup::quota;

pub(crate) mod layout;
pub(crate) mod plan;

/// The vCPUs in the calling thread's affinity mask, ascending; at least one.
///
/// A thread inherits the mask of the thread that started it. So before any thread is pinned, this is the mask of the
/// process.
pub fn allowed_vcpus() -> Vec<usize> {
    let vcpus = system::allowed();
    if vcpus.is_empty() {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        return (0..count).collect();
    }
    vcpus
}

/// Binds the calling thread to one vCPU. False if the system does not allow that.
pub fn pin_to(vcpu: usize) -> bool {
    Thread::this().bind(vcpu)
}

/// A thread of this process, which other threads can bind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Thread(system::Id);

impl Thread {
    /// The calling thread.
    pub(crate) fn this() -> Thread {
        Thread(system::this())
    }

    /// The only vCPU in the thread's affinity mask; none if there are more.
    pub(crate) fn pinned_to(&self) -> Option<usize> {
        system::only_vcpu(self.0)
    }

    /// Binds the thread to one vCPU. False if the system does not allow that.
    pub(crate) fn bind(&self, vcpu: usize) -> bool {
        system::pin(self.0, vcpu)
    }
}

/// The vCPUs of a rank of this process, with its host, quota and requested workers.
pub(crate) fn rank_resources(workers: Option<u32>) -> RankResources {
    RankResources { host: host_name(), vcpus: layout(&allowed_vcpus()), quota: quota(), workers }
}

/// The name of this host.
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The calling thread's affinity mask, restored on drop.
///
/// For a thread of the program that becomes a worker during a run. Cannot be sent: a mask belongs to a thread.
pub(crate) struct SavedMask {
    mask: Option<system::Mask>,
    of_this_thread: PhantomData<*const ()>,
}

#[cfg_attr(
    all(not(test), not(feature = "mpi")),
    expect(dead_code, reason = "the ranks of one process are threads of their own, which end with the run")
)]
impl SavedMask {
    /// Saves the mask; if it cannot be read, dropping does nothing.
    pub(crate) fn of_this_thread() -> SavedMask {
        SavedMask { mask: system::mask(), of_this_thread: PhantomData }
    }
}

impl Drop for SavedMask {
    fn drop(&mut self) {
        if let Some(mask) = &self.mask
            && !system::set_mask(mask)
        {
            tracing::warn!("a thread's affinity mask cannot be put back");
        }
    }
}

#[cfg(target_os = "linux")]
mod system {
    use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_setaffinity};

    pub(super) type Mask = CpuSet;
    pub(super) type Id = Pid;

    pub(super) fn this() -> Id {
        gettid()
    }

    pub(super) fn only_vcpu(thread: Id) -> Option<usize> {
        let mask = sched_getaffinity(Some(thread)).ok().filter(|mask| mask.count() == 1)?;
        (0..CpuSet::MAX_CPU).find(|&vcpu| mask.is_set(vcpu))
    }

    pub(super) fn mask() -> Option<Mask> {
        sched_getaffinity(None).ok()
    }

    pub(super) fn set_mask(mask: &Mask) -> bool {
        sched_setaffinity(None, mask).is_ok()
    }

    pub(super) fn pin(thread: Id, vcpu: usize) -> bool {
        let mut mask = CpuSet::new();
        mask.set(vcpu);
        sched_setaffinity(Some(thread), &mask).is_ok()
    }

    pub(super) fn allowed() -> Vec<usize> {
        let Some(mask) = mask() else { return Vec::new() };
        (0..CpuSet::MAX_CPU).filter(|&vcpu| mask.is_set(vcpu)).collect()
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) enum Mask {}
    pub(super) type Id = ();

    pub(super) fn this() -> Id {}

    pub(super) fn only_vcpu((): Id) -> Option<usize> {
        None
    }

    pub(super) fn mask() -> Option<Mask> {
        None
    }

    pub(super) fn set_mask(mask: &Mask) -> bool {
        match *mask {}
    }

    pub(super) fn allowed() -> Vec<usize> {
        Vec::new()
    }

    pub(super) fn pin((): Id, _vcpu: usize) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_can_be_bound_to_an_allowed_vcpu() {
        std::thread::spawn(|| {
            let vcpu = allowed_vcpus()[0];
            if pin_to(vcpu) {
                assert_eq!(allowed_vcpus(), [vcpu]);
            }
        })
        .join()
        .expect("the thread does not panic");
    }

    #[test]
    fn a_saved_mask_comes_back_also_when_the_thread_was_bound_twice() {
        std::thread::spawn(|| {
            let before = allowed_vcpus();
            let saved = SavedMask::of_this_thread();
            for &vcpu in before.iter().rev() {
                pin_to(vcpu);
            }
            drop(saved);
            assert_eq!(allowed_vcpus(), before);
        })
        .join()
        .expect("the thread does not panic");
    }
}
