//! Decides on rank 0 when the next checkpoint is due.

use crate::error::Error;
use crate::notice::notice_line;

/// The time and number of the next checkpoint, and the state of the one in progress.
#[derive(Debug)]
pub(crate) struct Schedule {
    every_ns: u64,
    next_ns: u64,
    /// The number of the next checkpoint.
    pub(crate) number: u64,
    /// True until the current checkpoint is committed.
    in_progress: bool,
    /// The program has requested another checkpoint during the current one.
    asked_again: bool,
    /// The notice to end, and the rank whose process got it.
    pub(crate) notice: Option<String>,
}

impl Schedule {
    pub(crate) fn new(every_ns: u64, number: u64) -> Schedule {
        Schedule { every_ns, next_ns: every_ns, number, in_progress: false, asked_again: false, notice: None }
    }

    /// The time at which a checkpoint is due, ns since the run began; none during a checkpoint.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        (!self.in_progress && self.next_ns < u64::MAX).then_some(self.next_ns)
    }

    /// Tells whether a checkpoint is due.
    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        !self.in_progress && now_ns >= self.next_ns
    }

    pub(crate) fn begin(&mut self) {
        self.in_progress = true;
    }

    /// Handles a request for a checkpoint: one is due now, or when the current one is complete.
    pub(crate) fn ask(&mut self) {
        if self.next_ns < u64::MAX {
            (self.next_ns, self.asked_again) = (0, self.in_progress);
        }
    }

    /// Handles a notice to end: a last checkpoint is due now, unless one is in progress, which is then the last.
    pub(crate) fn give_notice(&mut self, by: String) {
        self.next_ns = 0;
        self.notice.get_or_insert(by);
    }

    /// Handles a notice to end from another process. Returns a line for the user at the first notice.
    pub(crate) fn pass_on_notice(&mut self, by: String) -> Option<String> {
        let line = self.notice.is_none().then(|| notice_line(&by));
        self.give_notice(by);
        line
    }

    /// Ends all checkpoints, because the program cannot be saved.
    pub(crate) fn give_up(&mut self) {
        (self.in_progress, self.next_ns) = (false, u64::MAX);
    }

    /// Ends the current checkpoint, which has this name or was not made. Returns a line for the user, if there is one.
    ///
    /// # Errors
    /// If a notice was given, so that this checkpoint was the last and the run ends.
    pub(crate) fn committed(
        &mut self,
        checkpoint: Result<String, String>,
        now_ns: u64,
    ) -> Result<Option<String>, Error> {
        self.end(now_ns);
        match (self.notice.clone(), checkpoint) {
            (Some(by), Ok(checkpoint)) => Err(Error::Interrupted { by, checkpoint }),
            (Some(by), Err(why)) => Err(Error::InterruptedUnsaved { by, why }),
            (None, Ok(_)) => Ok(None),
            (None, Err(why)) => {
                Ok(Some(format!("{why}; the run continues, and tries again after the interval")))
            }
        }
    }

    fn end(&mut self, now_ns: u64) {
        self.in_progress = false;
        self.number += 1;
        let is_due = std::mem::take(&mut self.asked_again);
        self.next_ns = if is_due { 0 } else { now_ns.saturating_add(self.every_ns) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_due_after_each_interval_and_at_a_notice() {
        let mut schedule = Schedule::new(1_000_000_000, 7);
        assert!(!schedule.is_due(999_999_999) && schedule.is_due(1_000_000_000));
        schedule.begin();
        assert!(!schedule.is_due(u64::MAX));
        schedule.end(1_060_000_000);
        assert!(!schedule.is_due(2_059_999_999) && schedule.is_due(2_060_000_000));
        assert_eq!(schedule.number, 8);
        schedule.ask();
        assert!(schedule.is_due(1_060_000_001));
        schedule.begin();
        schedule.ask();
        schedule.end(1_070_000_000);
        assert!(schedule.is_due(1_070_000_001), "it was asked for while the other was made");
        schedule.begin();
        schedule.end(1_080_000_000);
        assert!(!schedule.is_due(2_079_999_999) && schedule.is_due(2_080_000_000));
        let line = schedule.pass_on_notice("SIGTERM".into()).expect("it is the first");
        assert!(line.starts_with("SIGTERM: "), "{line}");
        assert_eq!(schedule.pass_on_notice("SIGUSR1".into()), None);
        schedule.give_notice("SIGUSR1".into());
        assert!(schedule.is_due(1_080_000_001));
        assert_eq!(schedule.notice.as_deref(), Some("SIGTERM"));
    }
}
