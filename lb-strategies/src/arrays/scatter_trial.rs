//! Whether a scattered placement has helped: the pace of the chunks after it against the pace before.
//!
//! Scattering is the one plan whose cost cannot be known beforehand: it parts chunks that exchange messages. So it is a trial.
//! If chunks handle fewer messages per second in the windows after it, it has failed: the chunks go home, and are not
//! scattered again.

/// Weight of the newest window in the pace.
const WEIGHT: f64 = 0.2;
/// Number of windows after which the pace is compared.
const WINDOWS: u32 = 4;

/// The state of the trial.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum State {
    /// Chunks have not been scattered, or it has helped.
    #[default]
    Open,
    /// Chunks were scattered `windows` windows ago. `before` is the pace before it; since then they made `steps` steps in
    /// `ns` ns.
    Tried {
        windows: u32,
        before: f64,
        steps: f64,
        ns: f64,
    },
    /// It has not helped, and chunks have not been sent home yet.
    Failed,
    Over,
}

/// The trial of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ScatterTrial {
    /// Steps per ns, in the mean of the last windows.
    pace: f64,
    state: State,
}

impl ScatterTrial {
    /// A window of `ns` ns is over, in which chunks made `steps` steps in the mean.
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

    /// Chunks are scattered now.
    pub(super) fn begin(&mut self) {
        self.state = State::Tried { windows: 0, before: self.pace, steps: 0.0, ns: 0.0 };
    }

    /// Tells whether chunks may be scattered.
    pub(super) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// True once, if scattering has failed.
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

    /// A trial in which chunks make ten steps in each window before they are scattered, and `steps` in each window after.
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
