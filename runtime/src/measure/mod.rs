//! Measures this machine: CPU time, waiting, steal, throttling, the speed of vCPUs, and which vCPUs there are.
//!
//! A *phase* is the time between two syncs, or a balancing window (the time between two measurements without syncs).
//!
//! | source | cost on a VM with 2 vCPUs | read once per |
//! |---|---|---|
//! | CPU clock of a thread | 410-460 ns | batch of handlers |
//! | `schedstat` | 2 us | phase |
//! | `/proc/stat`, files of control groups | 18 us, 3-20 us | phase of 10 ms or more, or with 1 ms of unknown use |
//! | calibration loop | 20 us per burst, 3 bursts | phase, at most every 20 ms |
//!
//! If a source does not exist (another system, a container), a warning is printed once, and the next best is used.

pub(crate) mod background;
pub(crate) mod cgroup;
mod coarse_counters;
pub(crate) mod counters;
pub(crate) mod cpu;
pub(crate) mod cpu_limits;
pub(crate) mod edges;
mod interval;
mod kept_files;
pub(crate) mod meter;
pub(crate) mod process_scan;
pub(crate) mod records;
pub(crate) mod speed;
pub(crate) mod topology;
