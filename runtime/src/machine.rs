//! The machine that a program finds itself on: vCPUs, quotas, memory, limits of threads.

pub use crate::measure::cgroup::{available_memory, cpu_quota};
pub use crate::measure::topology::{allowed_vcpus as vcpus, pin_to};
pub use crate::threads::limits::check_room;
