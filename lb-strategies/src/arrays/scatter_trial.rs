//! Decides whether a scattered placement has helped, by the messages per second that chunks handle before and after
//! scattering.
//!
//! Scattering separates chunks that exchange messages, and its cost cannot be known beforehand. So scattering is a
//! trial. If the rate is lower in the four balancing windows after it, the trial has failed: chunks go home and are not
//! scattered again.

/// Weight of the newest window in the pace.
const WEIGHT: f64 = 0.2;
/// Number of windows after which the pace is compared.
const WINDOWS: u32 = 4;

/// The state of the trial.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum State {
    /// Chunks have not been scattered, or scattering has helped.
    #[default]
    Open,
    /// Chunks were scattered `windows` windows ago, and have made `steps` steps in `ns` ns since. Their pace was
    /// `before` until then.
    Tried {
        windows: u32,
        before: f64,
        steps: f64,
        ns: f64,
    },
    /// Scattering has not helped, and chunks have not been sent home yet.
    Failed,
    Over,
}

/// The trial of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ScatterTrial {
    /// Steps per ns, averaged over the last windows.
    pace: f64,
    state: State,
}

impl ScatterTrial {
    /// Notes that a window of `ns` ns has ended, in which the mean chunk made `steps` steps (handled messages).
    pub(super) fn follow(&mut self, steps: f64, ns: f64) {
        let pace = steps / ns.max(1.0);
        self.pace += if self.pace == 0.0 { pace } else { WEIGHT * (pace - self.pace) };
        let State::Tried { windows, before, steps: so_far, ns: for_ns } = self.state else { return };
        let (windows, steps, ns) = (windows + 1, so_far + steps, for_ns + ns);
        self.state = match windows {
            ..WINDOWS => State::Tried { windows, before, steps, ns },
            _ if steps < before * ns => State::Failed,
            _ => State::Open,
        };
    }

    /// Starts a trial: chunks are scattered now.
    pub(super) fn begin(&mut self) {
        self.state = State::Tried { windows: 0, before: self.pace, steps: 0.0, ns: 0.0 };
    }

    /// True if chunks may be scattered.
    pub(super) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Returns true once after scattering has failed.
    pub(super) fn take_failure(&mut self) -> bool {
        let failed = self.state == State::Failed;
        if failed {
            self.state = State::Over;
        }
        failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trial in which chunks make ten steps in each window before they are scattered, and `steps` in each window
    /// after it.
    fn after(steps: f64) -> ScatterTrial {
        let mut trial = ScatterTrial::default();
        (0..10).for_each(|_| trial.follow(10.0, 100.0));
        trial.begin();
        (0..WINDOWS - 1).for_each(|_| trial.follow(steps, 100.0));
        assert!(!trial.is_open() && !trial.take_failure(), "it is too early to tell");
        trial.follow(steps, 100.0);
        trial
    }

    #[test]
    fn scattering_that_slows_chunks_down_has_failed_once_and_for_all() {
        let mut slower = after(9.0);
        assert!(!slower.is_open() && slower.take_failure() && !slower.take_failure());
        (0..100).for_each(|_| slower.follow(20.0, 100.0));
        assert!(!slower.is_open() && !slower.take_failure());
    }

    #[test]
    fn scattering_that_helps_may_be_done_again() {
        let mut faster = after(12.0);
        assert!(faster.is_open() && !faster.take_failure());
    }
}
