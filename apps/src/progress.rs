//! How far a run is: a bar on a terminal, four plain lines in a log; nothing from a process that does not speak.

use std::io::{IsTerminal, Write, stderr};

use indicatif::{ProgressBar, ProgressStyle};

use crate::experiment::Total;

/// Shows the progress of one run on the error stream; dropping it takes the bar away.
#[derive(Debug)]
pub(crate) struct Progress {
    label: String,
    total: Total,
    speaks: bool,
    bar: Option<ProgressBar>,
    /// The quarters already announced, where there is no bar.
    quarters: u32,
}

impl Progress {
    /// Progress at zero; of a process that does not speak, nothing of it is shown.
    #[must_use]
    pub(crate) fn new(label: &str, total: Total, speaks: bool) -> Self {
        let bar = (speaks && stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(total.count).with_message(label.to_owned()).with_prefix(total.unit);
            let style = ProgressStyle::with_template("{msg:>16} {wide_bar} {pos}/{len} {prefix}, {eta} left");
            bar.with_style(style.expect("the template is well formed"))
        });
        Self { label: label.to_owned(), total, speaks, bar, quarters: 0 }
    }

    /// So many are complete.
    pub(crate) fn show(&mut self, completed: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(completed);
            return;
        }
        let quarters = (u128::from(completed) * 4 / u128::from(self.total.count.max(1))) as u32;
        if self.speaks && quarters > self.quarters {
            self.quarters = quarters;
            self.note(&format!("{}: {completed} of {} {}", self.label, self.total.count, self.total.unit));
        }
    }

    /// Prints a line without disturbing the bar.
    pub(crate) fn note(&self, line: &str) {
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
