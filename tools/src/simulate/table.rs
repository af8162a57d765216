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

/// Seconds with at least four significant digits from 1 s on; below 1 s to a tenth of a millisecond.
pub(super) fn seconds(value: f64) -> String {
    let decimals = match value {
        value if value > 0.0 && value < 1.0 => 4,
        value if value < 10.0 => 3,
        value if value < 100.0 => 2,
        _ => 1,
    };
    decimal(value, decimals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_differ_by_a_percent_differ_in_the_table() {
        let texts = [0.9, 1.0712, 1.0683, 38.25, 512.44, 20_000.0].map(seconds);
        assert_eq!(texts, ["0.9000", "1.071", "1.068", "38.25", "512.4", "20000.0"]);
    }
}
