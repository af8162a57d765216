//! Writes comparisons as aligned tables: a heading per scenario, a row per policy.

use std::io::{self, Write};

use presentation::Table;
use presentation::format::decimal;

use super::compare::{Comparison, Metrics, Outcome};

/// Replaces the excess of an incomplete run.
pub(super) const NO_EXCESS: &str = "n/a";

/// Writes the table of one scenario. `about` describes the scenario.
pub(super) fn write<M: Metrics>(
    comparison: &Comparison<M>,
    about: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "{}: {about}{}", comparison.scenario, size(comparison))?;
    let heads = [&[M::POLICY, "makespan s", "excess %"], M::HEADS, &[""]].concat();
    let words: Vec<bool> = (1..=heads.len()).map(|column| column == 1 || column == heads.len()).collect();
    let mut table = Table::new(heads).text_columns(words);
    comparison.outcomes.iter().for_each(|outcome| table.row(cells(outcome)));
    write!(out, "{table}")?;
    if let Some((baseline, most)) = comparison.saved_at_most() {
        let most = decimal(100.0 * most, 2);
        writeln!(
            out,
            "excess: over the ideal; saved: part of the time of `{baseline}`, at most {most} % (the ideal)"
        )?;
    }
    Ok(())
}

/// The cells of a row: policy, time, excess over the ideal, figures of this shape of program, faults.
fn cells<M: Metrics>(outcome: &Outcome<M>) -> Vec<String> {
    let excess = outcome.excess_percent;
    let mut cells = vec![
        outcome.policy.clone(),
        seconds(outcome.makespan_s),
        excess.map_or_else(|| NO_EXCESS.to_owned(), |excess| decimal(excess, 2)),
    ];
    cells.extend(outcome.metrics.cells());
    cells.push(outcome.metrics.complaint().unwrap_or_default());
    cells
}

/// The size of a scenario: workers, work, and ideal time.
pub(super) fn size<M>(comparison: &Comparison<M>) -> String {
    let Comparison { workers, iterations, ideal_s, .. } = comparison;
    let ranks = workers.len();
    let each = workers.first().copied().unwrap_or(0);
    let chunks = comparison.chunks.map_or_else(String::new, |chunks| format!("{chunks} chunks, "));
    let (units, turns) = match comparison.units {
        Some(units) => (format!("{units} units, "), "steps"),
        None => (String::new(), "iterations"),
    };
    format!("{ranks} x {each} workers, {chunks}{units}{iterations} {turns}, ideal {} s", seconds(*ideal_s))
}

/// Seconds to a tenth; below 1 s to a tenth of a millisecond.
fn seconds(value: f64) -> String {
    if value > 0.0 && value < 1.0 { format!("{value:.4}") } else { format!("{value:.1}") }
}
