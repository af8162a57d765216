//! Compares one array under several balancing periods: the time of each strategy with each period, and the shortest.

use std::io::{self, Write};

use lb_strategies::Period;
use presentation::Table;
use presentation::format::decimal;

use super::array_metrics::ArrayMetrics;
use super::compare::{Comparison, Outcome};

/// Writes one row per strategy and one column per period. The comparisons are in the order of the periods.
pub(super) fn write(
    periods: &[Period],
    comparisons: &[Comparison<ArrayMetrics>],
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "\nseconds by period")?;
    table(periods, comparisons, out, |outcome| decimal(outcome.makespan_s, 3))?;
    writeln!(out, "\nsaved % by period")?;
    let saved = |saved| decimal(saved, 1);
    table(periods, comparisons, out, |outcome| outcome.saved_percent.map_or_else(String::new, saved))?;
    let runs = || periods.iter().zip(comparisons);
    let in_windows = |period: &Period| !matches!(period, Period::Steps(_));
    shortest("at syncs", runs().filter(|(period, _)| !in_windows(period)), out)?;
    shortest("in windows", runs().filter(|(period, _)| in_windows(period)), out)
}

fn table(
    periods: &[Period],
    comparisons: &[Comparison<ArrayMetrics>],
    out: &mut dyn Write,
    cell: impl Fn(&Outcome<ArrayMetrics>) -> String,
) -> io::Result<()> {
    let heads = std::iter::once("strategy".to_owned()).chain(periods.iter().map(Period::to_string));
    let words = (0..=periods.len()).map(|column| column == 0);
    let mut table = Table::new(heads).text_columns(words);
    let strategies = comparisons.first().map_or(0, |comparison| comparison.outcomes.len());
    for row in 0..strategies {
        let outcomes = comparisons.iter().map(|comparison| &comparison.outcomes[row]);
        let name = outcomes.clone().next().map_or_else(String::new, |outcome| outcome.policy.clone());
        table.row(std::iter::once(name).chain(outcomes.map(&cell)));
    }
    write!(out, "{table}")
}

/// Writes the shortest complete run, if there is one.
fn shortest<'c>(
    which: &str,
    runs: impl Iterator<Item = (&'c Period, &'c Comparison<ArrayMetrics>)>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let runs = runs
        .flat_map(|(period, comparison)| comparison.outcomes.iter().map(move |outcome| (period, outcome)));
    let complete = runs.filter(|(_, outcome)| outcome.excess_percent.is_some());
    let first = complete.min_by(|(_, one), (_, other)| one.makespan_s.total_cmp(&other.makespan_s));
    let Some((period, outcome)) = first else { return Ok(()) };
    let seconds = decimal(outcome.makespan_s, 3);
    writeln!(out, "shortest {which}: {} with period {period}, {seconds} s", outcome.policy)
}
