//! Shows the progress of a run on standard error: one line that is rewritten on a terminal, or plain lines in a log, at
//! each quarter and after 10 s without a line. In a job only one process shows it.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use crate::program::Total;

/// Shows the progress of one run on the error stream. Dropping it erases the line on a terminal.
#[derive(Debug)]
pub struct Progress {
    label: String,
    total: Total,
    speaks: bool,
    on_terminal: bool,
    /// The quarters already announced in a log.
    quarters: u32,
    /// When the run began and when something was last printed.
    begun: Instant,
    said: Instant,
}

/// A log is silent for at most this time, so that its reader sees that the run goes on.
const SILENCE: Duration = Duration::from_secs(10);

/// Shortest time between two updates of a terminal's line.
const GLANCE: Duration = Duration::from_millis(100);

/// Erases the line of a terminal.
const ERASE: &str = "\r\x1b[K";

#[expect(clippy::disallowed_methods, reason = "who waits for a line does so in real time")]
fn now() -> Instant {
    Instant::now()
}

impl Progress {
    /// Progress at zero. Nothing is shown unless `speaks`.
    #[must_use]
    pub fn new(label: &str, total: Total, speaks: bool) -> Self {
        let on_terminal = speaks && stderr().is_terminal();
        Self { label: label.to_owned(), total, speaks, on_terminal, quarters: 0, begun: now(), said: now() }
    }

    /// Shows that `completed` units of work are complete.
    pub fn show(&mut self, completed: u64) {
        if !self.speaks {
            return;
        }
        let silent = self.said.elapsed();
        if self.on_terminal {
            if silent < GLANCE {
                return;
            }
            // A line wider than the terminal is cut, because only one line can be erased.
            let line = self.line(completed, self.begun.elapsed());
            say(&format!("{ERASE}\x1b[?7l{line}\x1b[?7h"));
        } else {
            let quarters = (u128::from(completed) * 4 / u128::from(self.total.count.max(1))) as u32;
            if quarters > self.quarters {
                self.quarters = quarters;
                self.note(&self.done(completed));
            } else if silent >= SILENCE {
                self.note(&format!("{} after {} s", self.done(completed), self.begun.elapsed().as_secs()));
            } else {
                return;
            }
        }
        self.said = now();
    }

    /// Prints a line that stays.
    pub fn note(&self, line: &str) {
        let erase = if self.on_terminal { ERASE } else { "" };
        say(&format!("{erase}{line}\n"));
    }

    fn done(&self, completed: u64) -> String {
        format!("{}: {completed} of {} {}", self.label, self.total.count, self.total.unit)
    }

    /// The work done after `after`, and the seconds left at the same speed.
    fn line(&self, completed: u64, after: Duration) -> String {
        if completed == 0 {
            return self.done(completed);
        }
        let left = self.total.count.saturating_sub(completed) as f64 / completed as f64;
        format!("{}, {:.0} s left", self.done(completed), after.as_secs_f64() * left)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.on_terminal {
            say(ERASE);
        }
    }
}

/// Writes to the error stream. A closed one is no reason to stop computing.
fn say(text: &str) {
    let mut stream = stderr().lock();
    drop(stream.write_all(text.as_bytes()).and_then(|()| stream.flush()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seconds_left_follow_from_those_gone() {
        let progress = Progress::new("refine", Total { count: 200, unit: "iterations" }, false);
        let line = progress.line(50, Duration::from_secs(4));
        assert_eq!(line, "refine: 50 of 200 iterations, 12 s left");
        assert_eq!(progress.line(0, Duration::from_secs(4)), "refine: 0 of 200 iterations");
        assert_eq!(progress.line(200, Duration::from_secs(16)), "refine: 200 of 200 iterations, 0 s left");
    }
}
