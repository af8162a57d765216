//! Formats a comparison for people: a table, and a sentence that sums it up.

use std::fmt::Write;

use lb_strategies::virtual_time::OnOff;
use presentation::Table;
use presentation::format::decimal;

use super::disturbance::NeighbourSpec;
use super::lost_vcpu;
use super::shape::Facts;
use super::summary::{Run, Summary};

/// The table of all runs, one line per run. Lines above it name the placement and the disturbances. Lines below it
/// explain the columns and add notes.
#[must_use]
pub fn table<F: Facts>(summary: &Summary<F>) -> String {
    let (windows, step) = (&summary.windows, F::STEP);
    let mut heads = vec!["lb".to_owned(), "total".to_owned()];
    // A column for each window, with its mean time per step.
    heads.extend(windows.iter().map(|window| format!("{}-{}", window.from, window.to)));
    heads.extend(F::HEADINGS.iter().copied().chain(["saved"]).map(str::to_owned));
    heads.extend(F::UNBALANCED.map(|_| "at most".to_owned()));
    let mut rows = Table::new(heads);
    summary.runs.iter().for_each(|run| rows.row(cells(summary, run)));
    let mut text = String::new();
    // A simulated run has no placement.
    if !summary.placement.is_empty() {
        let _ = writeln!(text, "{}", summary.placement);
    }
    for window in windows.iter().filter(|window| window.disturbed) {
        let _ = writeln!(text, "{step}s {}-{}: {}", window.from, window.to, window.label);
    }
    let ended = windows.last().map_or(0, |window| window.to);
    for spec in summary.settings.disturbances.neighbours.iter().filter(|spec| spec.from >= ended) {
        let (rank, from) = (spec.rank, spec.from);
        let _ = writeln!(text, "The neighbour on rank {rank} did not start: no run reached {step} {from}.");
    }
    quiet_neighbours(summary).for_each(|note| text += &note);
    if !windows.is_empty() {
        let columns: Vec<String> =
            windows.iter().map(|window| format!("{}-{}", window.from, window.to)).collect();
        let head = if columns.len() == 1 { "Column" } else { "Columns" };
        let columns = columns.join(", ");
        let _ = writeln!(text, "{head} {columns}: mean time per {step} in that part of the run.");
    }
    text += &rows.to_string();
    let _ = writeln!(text, "{}", words(summary));
    for note in summary.runs.iter().flat_map(|run| run.facts.notes()) {
        let _ = writeln!(text, "{note}");
    }
    for run in summary.runs.iter().filter(|run| !is_divided(summary, run)) {
        let _ = writeln!(text, "`{}`: the run was too short to time its parts.", run.facts.lb());
    }
    if let Some(note) = lost_vcpu::note(&summary.runs, &summary.settings.disturbances) {
        let _ = writeln!(text, "{note}");
    }
    text + &summary.runs.iter().map(|run| run.trace.line(run.facts.lb())).collect::<String>()
}

/// A line for each random neighbour that was quiet all along, because no run outlasted its first quiet stretch.
fn quiet_neighbours<F: Facts>(summary: &Summary<F>) -> impl Iterator<Item = String> {
    let longest_s = summary.runs.iter().map(|run| run.total_s).fold(0.0, f64::max);
    let quiet = move |spec: &NeighbourSpec| {
        let quiet_s = OnOff::new(spec.seed?).at(0).1 as f64 / 1e9;
        let rank = spec.rank;
        (longest_s < quiet_s).then(|| {
            format!(
                "The neighbour on rank {rank} did not start: every run was shorter than the {quiet_s:.1} s for which \
                 it is quiet at first.\n"
            )
        })
    };
    summary.settings.disturbances.neighbours.iter().filter_map(quiet)
}

/// The meaning of the columns.
fn words<F: Facts>(summary: &Summary<F>) -> String {
    let mut text = format!("{}.", F::WORDS);
    let [first, _, ..] = &summary.runs[..] else { return text };
    let _ = write!(text, "\nsaved: part of the time of `{}`", first.facts.lb());
    if F::UNBALANCED.is_some() {
        text += "; at most: the part saved if all work had always been divided by the capacity measured in that run";
    }
    text + "."
}

fn cells<F: Facts>(summary: &Summary<F>, run: &Run<F>) -> Vec<String> {
    let whole = is_divided(summary, run);
    let mean =
        |(from, to)| or_dash(run.times.mean_ms(from, to).filter(|_| whole).map(|ms| format!("{ms:.2} ms")));
    let mut cells = vec![run.facts.lb().to_owned(), seconds(run.total_s)];
    cells.extend(summary.windows.iter().map(|window| mean((window.from, window.to))));
    cells.extend(run.facts.cells());
    cells.push(or_dash(run.gain.map(percent)));
    cells.extend(F::UNBALANCED.map(|_| or_dash(run.possible_gain.map(percent))));
    cells
}

/// Returns whether the parts of the run have times of their own. If the progress of a short run is reported only once
/// or twice, steps of several parts are complete at the same time.
fn is_divided<F: Facts>(summary: &Summary<F>, run: &Run<F>) -> bool {
    summary.windows.iter().all(|window| run.times.mean_ms(window.from, window.to) != Some(0.0))
}

/// A cell that may be empty.
pub(super) fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

/// Seconds, to the millisecond.
pub(super) fn seconds(seconds: f64) -> String {
    format!("{seconds:.3} s")
}

/// A part of 1, in percent.
pub(super) fn percent(part: f64) -> String {
    format!("{} %", decimal(100.0 * part, 1))
}

/// The result in words: of two runs how the second compares with the first, of more runs which one was the best.
#[must_use]
pub fn sentence<F: Facts>(summary: &Summary<F>) -> String {
    let [first, others @ ..] = &summary.runs[..] else { return String::new() };
    let Some(last) = others.last() else { return alone(first) };
    let mut text = match summary.windows.iter().find(|window| window.disturbed) {
        None => undisturbed(summary.machine.quota),
        Some(window) => {
            let whole = summary.windows.len() == 1;
            let when = if whole {
                String::new()
            } else {
                format!(" ({}s {} to {})", F::STEP, window.from, window.to)
            };
            // "Rank 1" has no article, "the neighbour" has one.
            let the = if window.label.starts_with("rank") { "" } else { "the " };
            format!("With {the}{}{when}", window.label)
        }
    };
    if others.len() > 1 {
        return text + &best(&summary.runs);
    }
    let _ = write!(
        text,
        ", `{}` took {:.2} s and `{}` {:.2} s: {}.",
        first.facts.lb(),
        first.total_s,
        last.facts.lb(),
        last.total_s,
        gained(last)
    );
    text
}

/// How much less or more time a run took than the first run, and how much less was possible.
fn gained<F: Facts>(run: &Run<F>) -> String {
    let gain = run.gain.unwrap_or(0.0);
    let change = if gain >= 0.0 { "less" } else { "more" };
    let text = format!("{} % {change}", decimal(100.0 * gain.abs(), 1));
    let Some(most) = run.worth_gaining().map(|most| decimal(100.0 * most, 1)) else { return text };
    match run.gain_share {
        None => format!("{text}; the capacity measured in that run allowed at most {most} % less"),
        Some(share) => format!(
            "{text}; the capacity measured in that run allowed at most {most} % less ({:.0} % of it reached)",
            100.0 * share
        ),
    }
}

/// The end of a sentence about more than two runs.
fn best<F: Facts>(runs: &[Run<F>]) -> String {
    let mut ordered: Vec<&Run<F>> = runs.iter().collect();
    ordered.sort_by(|one, other| one.total_s.total_cmp(&other.total_s));
    let best = ordered[0];
    let mut text =
        format!(", the best of {} is `{}` with {:.2} s", runs.len(), best.facts.lb(), best.total_s);
    if best.gain.is_some() {
        let _ = write!(text, ": compared with `{}` {}", runs[0].facts.lb(), gained(best));
    }
    let longer = |run: &Run<F>| decimal(100.0 * (run.total_s / best.total_s - 1.0), 1);
    let _ = write!(
        text,
        ". The others took {} to {} % longer.",
        longer(ordered[1]),
        longer(ordered[ordered.len() - 1])
    );
    text
}

/// The beginning of a sentence on runs that we do not disturb; disturbances by others are unknown here.
fn undisturbed(quota: Option<f64>) -> String {
    quota.map_or("Without an artificial neighbour".to_owned(), |vcpus| {
        format!("Under a quota of {vcpus:.2} vCPUs")
    })
}

fn alone<F: Facts>(run: &Run<F>) -> String {
    format!("`{}` took {:.2} s, {}.", run.facts.lb(), run.total_s, run.facts.words())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::sample;

    #[test]
    fn the_table_has_a_line_a_run_and_lines_up() {
        let text = table(&sample("none", &["1:10-20"]));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], ["1 host, 2 ranks", "iterations 10-20: neighbour on rank 1"]);
        assert_eq!(lines[2], "Columns 0-10, 10-20, 20-30: mean time per iteration in that part of the run.");
        assert_eq!(lines.len(), 8);
        assert!(lines[3..6].iter().all(|line| line.len() == lines[3].len()), "{text}");
        assert!(lines[3].ends_with("settled after   saved  at most"), "{text}");
        assert!(lines[4].starts_with("none    0.240 s  6.00 ms  12.00 ms"), "{text}");
        assert!(lines[5].ends_with("1 sync  13.3 %   16.7 %"), "{text}");
        assert!(lines[6].starts_with("imbalance: ") && lines[6].contains("; settled after: "), "{text}");
        assert!(lines[7].starts_with("saved: part of the time of `none`; at most: "), "{text}");
    }

    #[test]
    fn a_run_that_reports_its_progress_once_has_no_times_of_parts() {
        let mut summary = sample("none", &["1:10-20"]);
        summary.runs[1].times = crate::times::Times::new((0, vec![51_000_000; 30]), u64::MAX);
        let text = table(&summary);
        assert!(text.lines().any(|line| line.starts_with("none    0.240 s  6.00 ms ")), "{text}");
        assert!(
            text.lines().any(|line| line.starts_with("refine  0.208 s        -         -        - ")),
            "{text}"
        );
        assert!(text.contains("`refine`: the run was too short to time its parts.\n"), "{text}");
    }

    #[test]
    fn a_random_neighbour_is_one_window_and_a_run_that_it_left_alone_is_told() {
        let mut summary = sample("none", &["1:random:7"]);
        let text = table(&summary);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "iterations 0-30: neighbour on rank 1 at random, seed 7", "{text}");
        let note = "The neighbour on rank 1 did not start: every run was shorter than the 1.3 s for which it is quiet \
            at first.";
        assert_eq!(lines[2], note, "{text}");
        assert!(
            sentence(&summary).starts_with("With the neighbour on rank 1 at random, seed 7, `none` took ")
        );
        assert_eq!(summary.runs[1].facts.settled_after, None);
        let json = serde_json::to_value(&summary).unwrap();
        assert_eq!(json["settings"]["disturbances"]["neighbours"][0]["seed"], 7);
        summary.runs[0].total_s = 2.0;
        assert!(!table(&summary).contains(note));
    }

    #[test]
    fn a_loss_says_what_could_have_been_saved() {
        let mut summary = sample("none", &["1:10-20"]);
        let run = &mut summary.runs[1];
        (run.gain, run.gain_share) = (Some(-0.01), None);
        let said = ": 1.0 % more; the capacity measured in that run allowed at most 16.7 % less.";
        assert!(sentence(&summary).ends_with(said), "{}", sentence(&summary));
        assert!(table(&summary).contains("-1.0 %   16.7 %\n"), "{}", table(&summary));
    }

    #[test]
    fn runs_with_a_trace_say_where_it_is() {
        let mut summary = sample("none", &[]);
        let without = table(&summary);
        summary.runs[1].trace.dir = "traces/run-2".to_owned();
        let said = "Trace of `refine`: traces/run-2 (`caribou trace summary traces/run-2`)\n";
        assert_eq!(table(&summary), without + said);
    }

    #[test]
    fn the_sentence_names_both_runs_and_the_bound() {
        assert_eq!(
            sentence(&sample("none", &["1:10-20"])),
            "With the neighbour on rank 1 (iterations 10 to 20), `none` took 0.24 s and `refine` 0.21 s: \
             13.3 % less; the capacity measured in that run allowed at most 16.7 % less (80 % of it reached)."
        );
    }

    #[test]
    fn ranks_have_no_article() {
        let mut summary = sample("none", &["1:10-20"]);
        summary
            .windows
            .iter_mut()
            .for_each(|window| window.label = "rank 1 under a quota of 50 %".to_owned());
        let text = sentence(&summary);
        assert!(text.starts_with("With rank 1 under a quota of 50 % (iterations"), "{text}");
    }

    #[test]
    fn of_more_than_two_runs_the_best_is_named() {
        let mut summary = sample("none", &["1:10-20"]);
        let worse = Run { total_s: 0.26, ..summary.runs[1].clone() };
        summary.runs.push(worse.clone());
        assert_eq!(
            sentence(&summary),
            "With the neighbour on rank 1 (iterations 10 to 20), the best of 3 is `refine` with 0.21 s: compared with \
             `none` 13.3 % less; the capacity measured in that run allowed at most 16.7 % less (80 % of it reached). \
             The others took 15.4 to 25.0 % longer."
        );
        summary.runs[1] = worse;
        let text = sentence(&summary);
        assert!(
            text.ends_with("the best of 3 is `none` with 0.24 s. The others took 8.3 to 8.3 % longer."),
            "{text}"
        );
    }

    #[test]
    fn a_quiet_comparison_promises_no_gain() {
        let text = sentence(&sample("none", &[]));
        assert!(text.starts_with("Without an artificial neighbour") && !text.contains("at most"), "{text}");
    }

    #[test]
    fn a_machine_under_a_quota_is_not_quiet() {
        let mut summary = sample("none", &[]);
        summary.machine.quota = Some(0.5);
        assert!(sentence(&summary).starts_with("Under a quota of 0.50 vCPUs, `none` took"));
    }
}
