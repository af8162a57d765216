//! Progress of a run: a bar on a terminal, plain lines in a log, at each quarter and after a while of silence; nothing from a
//! process that does not speak.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::harness::program::Total;

/// Shows the progress of one run on the error stream; dropping it takes the bar away.
#[derive(Debug)]
pub struct Progress {
    label: String,
    total: Total,
    speaks: bool,
    bar: Option<ProgressBar>,
    /// The quarters already announced, where there is no bar.
    quarters: u32,
    /// The moments at which the run began and something was last said.
    begun: Instant,
    said: Instant,
}

/// Whoever reads a log wonders after so long.
const SILENCE: Duration = Duration::from_secs(10);

#[expect(clippy::disallowed_methods, reason = "who waits for a line does so in real time")]
fn now() -> Instant {
    Instant::now()
}

impl Progress {
    /// Progress at zero; of a process that does not speak, nothing of it is shown.
    #[must_use]
    pub fn new(label: &str, total: Total, speaks: bool) -> Self {
        let bar = (speaks && stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(total.count).with_message(label.to_owned()).with_prefix(total.unit);
            let style = ProgressStyle::with_template("{msg:>16} {wide_bar} {pos}/{len} {prefix}, {eta} left");
            bar.with_style(style.expect("the template is well formed"))
        });
        Self { label: label.to_owned(), total, speaks, bar, quarters: 0, begun: now(), said: now() }
    }

    /// So many are complete.
    pub fn show(&mut self, completed: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(completed);
            return;
        }
        let quarters = (u128::from(completed) * 4 / u128::from(self.total.count.max(1))) as u32;
        if !self.speaks {
            return;
        }
        let done = format!("{}: {completed} of {} {}", self.label, self.total.count, self.total.unit);
        if quarters > self.quarters {
            self.quarters = quarters;
            self.note(&done);
        } else if self.said.elapsed() >= SILENCE {
            self.note(&format!("{done} after {} s", self.begun.elapsed().as_secs()));
        } else {
            return;
        }
        self.said = now();
    }

    /// Prints a line without disturbing the bar.
    pub fn note(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            // A closed error stream is no reason to stop computing.
            None => drop(writeln!(stderr(), "{line}")),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
