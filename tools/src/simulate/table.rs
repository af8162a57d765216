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
    let mut table = Rows::new::<M>(&[]);
    comparison.outcomes.iter().for_each(|outcome| table.row(comparison, outcome));
    write!(out, "{}", table.table)?;
    if let Some((baseline, most)) = comparison.saved_at_most() {
        let most = decimal(100.0 * most, 2);
        writeln!(
            out,
            "excess: over the ideal; saved: part of the time of `{baseline}`, at most {most} % (the ideal)"
        )?;
    }
    Ok(())
}

/// Writes the meaning of columns that the line under each table does not tell.
pub(super) fn write_legend<M: Metrics>(out: &mut dyn Write) -> io::Result<()> {
    M::LEGEND.map_or(Ok(()), |legend| writeln!(out, "{legend}"))
}

/// A table with a row per outcome: swept fields, policy, times, figures of this shape of program, faults.
pub(super) struct Rows {
    pub(super) table: Table,
}

impl Rows {
    /// A table without rows, for outcomes of a sweep over `fields`.
    pub(super) fn new<M: Metrics>(fields: &[&str]) -> Self {
        let saved: &[&str] = if M::BASELINE.is_some() { &["saved %"] } else { &[] };
        let heads = [fields, &[M::POLICY, "makespan s", "excess %"], saved, M::HEADS, &[""]].concat();
        let words = (1..=heads.len()).map(|column| column == fields.len() + 1 || column == heads.len());
        let words: Vec<bool> = words.collect();
        Self { table: Table::new(heads).text_columns(words) }
    }

    pub(super) fn row<M: Metrics>(&mut self, comparison: &Comparison<M>, outcome: &Outcome<M>) {
        let mut cells: Vec<String> = comparison.swept.iter().map(|(_, value)| value.clone()).collect();
        cells.extend([outcome.policy.clone(), seconds(outcome.makespan_s), excess(outcome.excess_percent)]);
        cells.extend(M::BASELINE.map(|_| percent(outcome.saved_percent)));
        cells.extend(outcome.metrics.cells());
        cells.push(outcome.metrics.complaint().unwrap_or_default());
        self.table.row(cells);
    }
}

/// The excess over the ideal; that of an incomplete run does not exist.
pub(super) fn excess(percent: Option<f64>) -> String {
    percent.map_or_else(|| NO_EXCESS.to_owned(), |excess| decimal(excess, 2))
}

/// A part in percent; empty if it does not exist.
pub(super) fn percent(part: Option<f64>) -> String {
    part.map_or_else(String::new, |part| decimal(part, 2))
}

/// The size of a scenario: workers, work, and ideal time.
pub(super) fn size<M>(comparison: &Comparison<M>) -> String {
    let Comparison { workers, iterations, ideal_s, .. } = comparison;
    let ranks = workers.len();
    let each = workers.first().copied().unwrap_or(0);
    let workers = match workers.iter().all(|&one| one == each) {
        true => format!("{ranks} x {each} workers"),
        false => format!("{ranks} ranks of {} workers", workers.iter().sum::<u32>()),
    };
    let chunks = comparison.chunks.map_or_else(String::new, |chunks| format!("{chunks} chunks, "));
    let (units, turns) = match comparison.units {
        Some(units) => (format!("{units} units, "), "steps"),
        None => (String::new(), "iterations"),
    };
    format!("{workers}, {chunks}{units}{iterations} {turns}, ideal {} s", seconds(*ideal_s))
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
