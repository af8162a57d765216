//! Makes a rank compute more slowly: stretches the CPU time of its kernel, as on a slower vCPU. The setting
//! [`Config::slowed`](caribou::Config::slowed) makes the runtime measure the rank as equally slow.

use crate::disturbance::neighbour::{burn, thread_cpu_ns};

/// Runs `kernel`, then spins until `slowness` times its CPU time has passed. A `slowness` of 1 costs nothing.
pub fn stretched<T>(slowness: f64, kernel: impl FnOnce() -> T) -> T {
    if slowness <= 1.0 {
        return kernel();
    }
    let start_ns = thread_cpu_ns();
    let result = kernel();
    burn(((thread_cpu_ns() - start_ns) as f64 * (slowness - 1.0)) as u64);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretched_kernel_takes_at_least_its_factor_in_cpu_time() {
        let start_ns = thread_cpu_ns();
        assert_eq!(stretched(3.0, || burn(2_000_000)), ());
        let used_ns = thread_cpu_ns() - start_ns;
        assert!(used_ns >= 6_000_000, "{used_ns} ns");
        assert_eq!(stretched(1.0, || 7), 7);
    }
}
