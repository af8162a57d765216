//! Queries the machine on which the program runs (vCPUs, CPU quota, memory, limits on threads), and pins threads.

pub use crate::measure::cgroup::{available_memory, cpu_quota};
pub use crate::measure::topology::{allowed_vcpus as vcpus, pin_to};
pub use crate::threads::limits::check_room;
