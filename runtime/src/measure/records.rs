//! The measurements of a rank and its vCPUs, as reports and traces have them.

use serde::{Deserialize, Serialize};

/// Measurements of a rank since its last sample, summed over its workers. Times are ns.
///
/// Samples are taken at syncs, at most every 20 ms, and twice per second if syncs are rare.
///
/// ```
/// let sample = caribou::trace::Sample { cpu_ns: 600, wait_ns: 300, steal_ns: 100, ..Default::default() };
/// assert_eq!(sample.share(), 0.6);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sample {
    /// The time of the sample, ns since the run began.
    pub at_ns: u64,
    /// The sync of the sample, if it was taken at one.
    pub sync: Option<u64>,
    /// Wall time, times the number of workers.
    pub wall_ns: u64,
    /// CPU time of the workers.
    pub cpu_ns: u64,
    /// CPU time of chunks, or of iterations.
    pub chunk_ns: u64,
    /// Time in which the workers had no work.
    pub idle_ns: u64,
    /// Time in which the workers were runnable but did not run.
    pub wait_ns: u64,
    /// Time that the hypervisor took from the workers' vCPUs.
    pub steal_ns: u64,
    /// Time for which a CPU quota stopped threads of the whole control group. What exceeds `wait_ns` was not taken
    /// from the workers.
    pub throttled_ns: u64,
    /// Background load O_p (Gupta et al., 2013, eq. 2).
    pub background_ns: u64,
    /// Speed of the vCPUs, in turns of the calibration loop per us.
    pub speed: f64,
    /// Chunks on the rank.
    pub chunks: u64,
    /// Number of deliveries handled: messages, starts, resumes, results.
    pub deliveries: u64,
}

/// The processes that ran on a rank's vCPUs during a time in which its workers lost much. If no process was seen, the
/// hypervisor, another container or processes that ended had the vCPU.
///
/// ```
/// let taker = caribou::trace::Taker { pid: 123, command: "stress".into(), cpu_ns: 9_000_000 };
/// let look = caribou::trace::Look { over_ns: 10_000_000, takers: vec![taker], ..Default::default() };
/// assert_eq!(look.takers[0].command, "stress");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Look {
    /// The end of that time, ns since the run began.
    pub at_ns: u64,
    /// The length of that time, ns.
    pub over_ns: u64,
    /// The processes, by decreasing CPU time.
    pub takers: Vec<Taker>,
}

/// A process other than the rank's. [`Look`] has an example.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Taker {
    /// The number of the process.
    pub pid: u32,
    /// The name of the process.
    pub command: String,
    /// Its approximate CPU time on the rank's vCPUs, ns.
    pub cpu_ns: u64,
}

impl Sample {
    /// The sum of this sample and the next one.
    #[must_use]
    pub(crate) fn plus(self, later: &Sample) -> Sample {
        Sample {
            at_ns: later.at_ns,
            sync: later.sync.or(self.sync),
            wall_ns: self.wall_ns + later.wall_ns,
            cpu_ns: self.cpu_ns + later.cpu_ns,
            chunk_ns: self.chunk_ns + later.chunk_ns,
            idle_ns: self.idle_ns + later.idle_ns,
            wait_ns: self.wait_ns + later.wait_ns,
            steal_ns: self.steal_ns + later.steal_ns,
            throttled_ns: self.throttled_ns + later.throttled_ns,
            background_ns: self.background_ns + later.background_ns,
            speed: later.speed,
            chunks: later.chunks,
            deliveries: self.deliveries + later.deliveries,
        }
    }

    /// CPU time got over CPU time wanted: the part of the vCPU that others left. 1 if nothing was wanted.
    #[must_use]
    pub fn share(&self) -> f64 {
        let wanted_ns = self.cpu_ns as f64 + self.wait_ns as f64 + self.steal_ns as f64;
        if wanted_ns > 0.0 { self.cpu_ns as f64 / wanted_ns } else { 1.0 }
    }
}
