//! Describes the machine of a process (vCPUs, CPU quota, processor) and checks that its workers fit the vCPUs.
//!
//! Nothing is measured: a hypervisor hides how far two vCPUs are apart. The runtime chooses the vCPU of each worker and
//! names it in its report.

use serde::Serialize;

/// The facts about the machine in every summary.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The vCPUs this process may use, by number.
    pub vcpus: Vec<usize>,
    /// The CPU quota by control groups, in vCPUs; `None` without a quota.
    pub quota: Option<f64>,
    /// The processor's name, or "unknown".
    pub model: String,
    /// Whether the vCPUs share a cache: always "unknown", because a hypervisor hides it.
    pub vcpu_distance: &'static str,
}

impl Machine {
    /// Reads the facts from the system.
    #[must_use]
    pub fn detect() -> Self {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let model = model.map_or_else(|| "unknown".to_owned(), |(_, name)| name.to_owned());
        Self {
            vcpus: caribou::machine::vcpus(),
            quota: caribou::machine::cpu_quota(),
            model,
            vcpu_distance: "unknown",
        }
    }

    /// True if there is a vCPU for each worker.
    #[must_use]
    pub fn has_room_for(&self, ranks: u32, workers: u32) -> bool {
        u64::from(ranks) * u64::from(workers) <= self.vcpus.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_vcpu() {
        assert!(!Machine::detect().vcpus.is_empty());
    }
}
