//! Relative speed of a vCPU: the computation loop of cloud-refine, figure 2.
//!
//! The loop is timed by the thread's CPU clock, so waiting for the vCPU does not look like a slow vCPU: that part is the
//! rank's *share*. Single bursts err in both directions (an interrupt, a stolen slice, a clock that is corrected), so the
//! median of several counts. Workers repeat a burst when they are idle, which follows a vCPU whose clock changes while the
//! run goes on.

use std::collections::VecDeque;
use std::hint::black_box;

use super::cpu::thread_cpu_ns;

/// Rounds of the loop in one burst: about 20 us.
const ROUNDS: u32 = 1000;
/// Bursts that the median is taken of.
const BURSTS: usize = 31;

/// What one worker knows of its vCPU's speed: its last bursts, in rounds a us of CPU time.
#[derive(Clone, Debug)]
pub(crate) struct Speed(VecDeque<f64>);

impl Speed {
    /// Some bursts; about 1 ms.
    pub(crate) fn measured() -> Speed {
        Speed((0..BURSTS).map(|_| burst()).collect())
    }

    /// Replaces the oldest burst; about 20 us.
    pub(crate) fn again(&mut self) {
        self.0.pop_front();
        self.0.push_back(burst());
    }

    pub(crate) fn rounds_per_us(&self) -> f64 {
        let mut bursts: Vec<f64> = self.0.iter().copied().collect();
        bursts.sort_by(f64::total_cmp);
        bursts[bursts.len() / 2]
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
