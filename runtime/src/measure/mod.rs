//! Measurements of this machine: CPU time, waiting, steal, throttling, speed, and which vCPUs there are.
//!
//! Costs on a 2-vCPU cloud VM. The thread CPU clock takes 410-460 ns, so it is read per batch of handlers. `schedstat`
//! takes 2 us, so it is read once per phase. `/proc/stat` takes 18 us and the files of control groups 3 to 20, so they
//! are read once per phase that is not short. The calibration loop takes 20 us, and runs only when a worker is idle.
//!
//! If a source does not exist (another system, a container), a line says so once, and the next best is used.

pub(crate) mod background;
pub(crate) mod cgroup;
mod coarse_counters;
pub(crate) mod counters;
pub(crate) mod cpu;
pub(crate) mod cpu_limits;
mod interval;
mod kept_files;
pub(crate) mod meter;
pub(crate) mod process_scan;
pub(crate) mod records;
pub(crate) mod speed;
pub(crate) mod topology;
