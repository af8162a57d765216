//! The machine a run sees: its vCPUs, and which of them belongs to which worker.
//!
//! It measures nothing; how far two vCPUs are from each other a hypervisor does not tell.

use serde::Serialize;

/// What is printed beside every result.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The vCPUs this process may use, by number.
    pub vcpus: Vec<usize>,
    /// The processor's name, or "unknown".
    pub model: String,
    /// Whether the vCPUs share a cache: always "unknown" on a virtual machine.
    pub vcpu_distance: &'static str,
}

impl Machine {
    /// Asks the system.
    #[must_use]
    pub fn this() -> Self {
        let allowed = rustix::thread::sched_getaffinity(None).map_or_else(
            |_| (0..std::thread::available_parallelism().map_or(1, usize::from)).collect(),
            |set| (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect(),
        );
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let model = model.map_or_else(|| "unknown".to_owned(), |(_, name)| name.to_owned());
        Self { vcpus: allowed, model, vcpu_distance: "unknown" }
    }

    /// The vCPU of a rank's first worker, or `None` when there are more workers than vCPUs and none has its own.
    ///
    /// This mirrors how the runtime pins its workers: in order of rank and worker over the allowed vCPUs.
    #[must_use]
    pub fn vcpu_of(&self, rank: u32, ranks: u32, workers: u32) -> Option<usize> {
        let all_fit = u64::from(ranks) * u64::from(workers) <= self.vcpus.len() as u64;
        all_fit.then(|| self.vcpus.get((rank * workers) as usize).copied()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_take_the_allowed_vcpus_in_order() {
        let machine = Machine { vcpus: vec![2, 3, 6, 7], model: String::new(), vcpu_distance: "unknown" };
        assert_eq!(machine.vcpu_of(1, 2, 2), Some(6));
        assert_eq!(machine.vcpu_of(3, 4, 1), Some(7));
        assert_eq!(machine.vcpu_of(0, 5, 1), None);
    }

    #[test]
    fn this_machine_has_a_vcpu() {
        assert!(!Machine::this().vcpus.is_empty());
    }
}
