//! Comparisons for people: a heading a scenario, a line a policy, aligned.

use std::io::{self, Write};

use super::compare::Comparison;
use super::outcome::Outcome;

const HEADS: [&str; 9] =
    ["policy", "makespan s", "excess %", "spread s", "of ranks s", "idle s", "messages", "overshoot %", ""];

/// In place of the excess of a run that did not do everything.
pub(super) const NO_EXCESS: &str = "n/a";

/// Writes the table of one scenario; `about` says what it is.
pub(super) fn write(comparison: &Comparison, about: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}: {about}{}", comparison.scenario, size(comparison))?;
    let mut rows = vec![HEADS.map(str::to_owned).to_vec()];
    rows.extend(comparison.outcomes.iter().map(cells));
    write_aligned(&rows, out)
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

/// Without a minus before a zero.
fn percent(value: f64) -> String {
    format!("{:.2}", (100.0 * value).round() / 100.0 + 0.0)
}

fn cells(outcome: &Outcome) -> Vec<String> {
    vec![
        outcome.policy.clone(),
        seconds(outcome.makespan_s),
        outcome.excess_percent.map_or_else(|| NO_EXCESS.to_owned(), percent),
        format!("{:.1}", outcome.worker_spread_s),
        format!("{:.1}", outcome.rank_spread_s),
        format!("{:.0}", outcome.idle_worker_s),
        outcome.messages.to_string(),
        format!("{:.2}", outcome.overshoot_percent),
        outcome.complaint().unwrap_or_default(),
    ]
}

/// Pads the columns: the first and words to the left, numbers to the right.
pub(super) fn write_aligned(rows: &[Vec<String>], out: &mut dyn Write) -> io::Result<()> {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let mut line = format!("{:<width$}", row[0], width = widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            line += &format!("  {cell:>width$}");
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}
