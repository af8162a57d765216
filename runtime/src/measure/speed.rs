//! Relative speed of a vCPU: the computation loop of cloud-refine, figure 2.
//!
//! The loop is timed by the thread's CPU clock, so waiting for the vCPU does not look like a slow vCPU: that part is the
//! rank's *share*. The best of several short bursts is taken, so that a cache miss, an interrupt or a stolen slice does
//! not count. Workers repeat a burst when they are idle, which follows a vCPU whose clock changes while the run goes on.

use std::hint::black_box;

use super::cpu::thread_cpu_ns;

/// Rounds of the loop in one burst: about 20 us.
const ROUNDS: u32 = 1000;
/// How much of an older, better burst is still believed when a new one is slower.
const MEMORY: f64 = 0.9;

/// What one worker knows of its vCPU's speed, in rounds a us of CPU time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Speed(f64);

impl Speed {
    /// The best of some bursts; about 1 ms.
    pub(crate) fn measured() -> Speed {
        Speed((0..32).map(|_| burst()).fold(0.0, f64::max))
    }

    /// Adds one burst; about 20 us.
    pub(crate) fn again(&mut self) {
        let now = burst();
        self.0 = if now >= self.0 { now } else { MEMORY * self.0 + (1.0 - MEMORY) * now };
    }

    pub(crate) fn rounds_per_us(self) -> f64 {
        self.0
    }
}

/// One burst of the loop; rounds a us of CPU time.
fn burst() -> f64 {
    let start_ns = thread_cpu_ns();
    let mut result = black_box(1i32);
    for _ in 0..ROUNDS {
        let b = 0.1 + 0.1 * f64::from(black_box(result));
        result = (1.0 + (b * 1.57).cos()).sqrt() as i32;
    }
    black_box(result);
    let used_ns = thread_cpu_ns().saturating_sub(start_ns).max(1);
    f64::from(ROUNDS) * 1e3 / used_ns as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vcpu_has_a_speed_and_repeating_the_measurement_agrees() {
        let mut speed = Speed::measured();
        let first = speed.rounds_per_us();
        assert!(first > 0.1, "{first} rounds a us");
        (0..20).for_each(|_| speed.again());
        let ratio = speed.rounds_per_us() / first;
        assert!((0.3..3.0).contains(&ratio), "the speed changed by {ratio}");
    }
}
