//! The machine a process sees: its vCPUs, and whether they are enough.
//!
//! It measures nothing; how far two vCPUs are from each other a hypervisor does not tell. Which worker sits on which of
//! them is the runtime's to decide, and told in its report.

use serde::Serialize;

/// The facts beside every result.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The vCPUs this process may use, by number.
    pub vcpus: Vec<usize>,
    /// vCPUs' worth of CPU time that control groups allow it; none where there is no quota.
    pub quota: Option<f64>,
    /// The processor's name, or "unknown".
    pub model: String,
    /// Tells if the vCPUs share a cache: always "unknown" on a virtual machine.
    pub vcpu_distance: &'static str,
}

impl Machine {
    /// Asks the system.
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

    /// Tells if there is a vCPU for each worker.
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
