//! A comparison for people: a table, and a sentence that says what it means.

use std::fmt::Write;

use presentation::Table;
use presentation::words::{counted, decimal};

use crate::harness::summary::{RunSummary, Summary};

/// The table of all runs, one line each, with a heading; above it where they ran, and what disturbed them.
#[must_use]
pub fn table(summary: &Summary) -> String {
    let windows = summary.windows();
    let mut heads = vec!["lb".to_owned(), "total".to_owned()];
    // A run that nothing interrupts has one window, which the total already tells.
    heads.extend(windows.iter().map(|window| format!("{}-{}", window.from, window.to)));
    heads.extend(["imbalance", "moves", "settled after", "gain", "of possible"].map(str::to_owned));
    let mut rows = Table::new(heads);
    summary.runs.iter().for_each(|run| rows.row(cells(run)));
    let mut text = String::new();
    // A simulated run is nowhere.
    if !summary.placement.is_empty() {
        let _ = writeln!(text, "{}", summary.placement);
    }
    for window in windows.iter().filter(|window| window.disturbed) {
        let _ = writeln!(text, "iterations {}-{}: {}", window.from, window.to, window.label);
    }
    text + &rows.to_string() + &traces(summary.runs.iter().map(|run| (&run.lb[..], &run.trace[..])))
}

/// Where the traces of runs are: a line each, of a strategy and a directory, which may be empty.
pub(crate) fn traces<'r>(runs: impl Iterator<Item = (&'r str, &'r str)>) -> String {
    let line = |(lb, dir)| format!("Trace of `{lb}`: {dir} (`caribou trace summary {dir}`)\n");
    runs.filter(|(_, dir)| !dir.is_empty()).map(line).collect()
}

fn cells(run: &RunSummary) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let mut cells = vec![run.lb.clone(), format!("{:.2} s", run.total_s)];
    cells.extend(
        run.windows.iter().map(|window| or_dash(window.iteration_ms.map(|ms| format!("{ms:.2} ms")))),
    );
    cells.push(or_dash(run.imbalance.map(|imbalance| format!("{imbalance:.2}"))));
    cells.push(run.moves.to_string());
    cells.push(or_dash(run.settled_after.map(|syncs| counted(syncs, "sync"))));
    cells.push(or_dash(run.gain.map(|gain| format!("{} %", decimal(100.0 * gain, 1)))));
    cells.push(or_dash(run.gain_share.map(|share| format!("{:.0} %", 100.0 * share))));
    cells
}

/// What happened, in words.
#[must_use]
pub fn sentence(summary: &Summary) -> String {
    let [first, .., last] = &summary.runs[..] else {
        return alone(summary);
    };
    let mut text = match summary.windows().iter().find(|window| window.disturbed) {
        None => undisturbed(summary.machine.quota),
        Some(window) => {
            let whole = window.from == 0 && window.to == summary.settings.iterations;
            let when =
                if whole { String::new() } else { format!(" (iterations {} to {})", window.from, window.to) };
            format!("With the {}{when}", window.label)
        }
    };
    let gain = last.gain.unwrap_or(0.0);
    let change = if gain >= 0.0 { "less" } else { "more" };
    let _ = write!(
        text,
        ", `{}` took {:.2} s and `{}` {:.2} s: {} % {change}",
        first.lb,
        first.total_s,
        last.lb,
        last.total_s,
        decimal(100.0 * gain.abs(), 1)
    );
    if let (Some(possible), Some(share)) = (summary.possible_gain, last.gain_share) {
        let _ = write!(
            text,
            ", of at most {} % by the capacity measured meanwhile ({:.0} % of it)",
            decimal(100.0 * possible, 1),
            100.0 * share
        );
    }
    text.push('.');
    text
}

/// Where a run is that nothing is done to: who is under a quota has no machine of its own.
fn undisturbed(quota: Option<f64>) -> String {
    quota.map_or("On a quiet machine".to_owned(), |vcpus| format!("Under a quota of {vcpus:.2} vCPUs"))
}

fn alone(summary: &Summary) -> String {
    let Some(run) = summary.runs.first() else { return String::new() };
    let moves = counted(run.moves, "chunk");
    format!(
        "`{}` took {:.2} s, {:.2} ms an iteration, and moved {moves}.",
        run.lb, run.total_s, run.iteration_ms
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::summary::tests::sample;

    #[test]
    fn the_table_has_a_line_a_run_and_lines_up() {
        let text = table(&sample("none", &["1:10-20"]));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], ["1 host, 2 ranks", "iterations 10-20: neighbour on rank 1"]);
        assert_eq!(lines.len(), 5);
        assert!(lines[2..].iter().all(|line| line.len() == lines[2].len()), "{text}");
        assert!(lines[3].starts_with("none    0.24 s  6.00 ms  12.00 ms"), "{text}");
        assert!(lines[4].ends_with("1 sync  13.3 %         80 %"), "{text}");
    }

    #[test]
    fn runs_with_a_trace_say_where_it_is() {
        let mut summary = sample("none", &[]);
        let without = table(&summary);
        summary.runs[1].trace = "traces/run-2".to_owned();
        let said = "Trace of `refine`: traces/run-2 (`caribou trace summary traces/run-2`)\n";
        assert_eq!(table(&summary), without + said);
    }

    #[test]
    fn the_sentence_names_both_runs_and_the_bound() {
        assert_eq!(
            sentence(&sample("none", &["1:10-20"])),
            "With the neighbour on rank 1 (iterations 10 to 20), `none` took 0.24 s and `refine` 0.21 s: \
             13.3 % less, of at most 16.7 % by the capacity measured meanwhile (80 % of it)."
        );
    }

    #[test]
    fn a_quiet_comparison_promises_no_gain() {
        let text = sentence(&sample("none", &[]));
        assert!(text.starts_with("On a quiet machine") && !text.contains("at most"), "{text}");
    }

    #[test]
    fn a_machine_under_a_quota_is_not_quiet() {
        let mut summary = sample("none", &[]);
        summary.machine.quota = Some(0.5);
        assert!(sentence(&summary).starts_with("Under a quota of 0.50 vCPUs, `none` took"));
    }
}
