//! Comparisons for people: a heading a scenario, a line a policy, aligned.

use std::io::{self, Write};

use presentation::Table;
use presentation::words::decimal;

use super::compare::Comparison;
use super::outcome::Outcome;

const HEADS: [&str; 9] =
    ["policy", "makespan s", "excess %", "spread s", "of ranks s", "idle s", "messages", "overshoot %", ""];

/// The policy, and after the figures what is wrong.
const WORDS: [bool; 9] = [true, false, false, false, false, false, false, false, true];

/// In place of the excess of a run that did not do everything.
pub(super) const NO_EXCESS: &str = "n/a";

/// Writes the table of one scenario; `about` says what it is.
pub(super) fn write(comparison: &Comparison, about: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}: {about}{}", comparison.scenario, size(comparison))?;
    let mut table = Table::new(HEADS).words(WORDS);
    comparison.outcomes.iter().for_each(|outcome| table.row(cells(outcome)));
    write!(out, "{table}")
}

fn size(comparison: &Comparison) -> String {
    let Comparison { workers, iterations, ideal_s, .. } = comparison;
    let ranks = workers.len();
    let each = workers.first().copied().unwrap_or(0);
    format!("{ranks} x {each} workers, {iterations} iterations, ideal {} s", seconds(*ideal_s))
}

/// To a tenth, or to a tenth of a millisecond where that would hide all of it.
fn seconds(value: f64) -> String {
    if value > 0.0 && value < 1.0 { format!("{value:.4}") } else { format!("{value:.1}") }
}

fn cells(outcome: &Outcome) -> Vec<String> {
    vec![
        outcome.policy.clone(),
        seconds(outcome.makespan_s),
        outcome.excess_percent.map_or_else(|| NO_EXCESS.to_owned(), |excess| decimal(excess, 2)),
        format!("{:.1}", outcome.worker_spread_s),
        format!("{:.1}", outcome.rank_spread_s),
        format!("{:.0}", outcome.idle_worker_s),
        outcome.messages.to_string(),
        format!("{:.2}", outcome.overshoot_percent),
        outcome.complaint().unwrap_or_default(),
    ]
}
