//! Which vCPUs this process may use, and which one each worker sits on.

/// vCPUs in this process's affinity mask, ascending; at least one.
pub fn allowed_vcpus() -> Vec<usize> {
    let vcpus = system::allowed();
    if vcpus.is_empty() {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        return (0..count).collect();
    }
    vcpus
}

/// Binds the calling thread to one vCPU. False where the system does not allow it.
pub fn pin_to(vcpu: usize) -> bool {
    system::pin(vcpu)
}

/// The vCPU of worker `worker` of rank `rank`: in order over the allowed ones while they last, none otherwise.
///
/// Ranks that outnumber the vCPUs are better placed by the operating system.
pub(crate) fn seat(rank: u32, worker: u32, ranks: u32, workers: u32, vcpus: &[usize]) -> Option<usize> {
    let seats = ranks as usize * workers as usize;
    (seats <= vcpus.len()).then(|| vcpus[(rank * workers + worker) as usize])
}

#[cfg(target_os = "linux")]
mod system {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    pub(super) fn allowed() -> Vec<usize> {
        let Ok(mask) = sched_getaffinity(None) else { return Vec::new() };
        (0..CpuSet::MAX_CPU).filter(|&vcpu| mask.is_set(vcpu)).collect()
    }

    pub(super) fn pin(vcpu: usize) -> bool {
        let mut mask = CpuSet::new();
        mask.set(vcpu);
        sched_setaffinity(None, &mask).is_ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn allowed() -> Vec<usize> {
        Vec::new()
    }

    pub(super) fn pin(_vcpu: usize) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_sit_side_by_side_while_vcpus_last() {
        assert_eq!(seat(1, 0, 2, 2, &[0, 2, 4, 6]), Some(4));
        assert_eq!(seat(1, 1, 2, 2, &[0, 2, 4, 6]), Some(6));
        assert_eq!(seat(0, 0, 2, 2, &[0, 2]), None);
    }

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
}
