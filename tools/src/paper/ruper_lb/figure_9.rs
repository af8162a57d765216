//! Figure 9: mean speeds of the threads of four ranks.

use super::runs::{LEASES, RUPER, Trial, mean_speeds, range};
use crate::paper::page::{Claim, Grid, Panel, Section};
use crate::paper::picture::{chart, line};

/// Figure 9: slowest and fastest mean speed of a thread (iterations per second), first and last end (seconds).
const SPEEDS: [f64; 2] = [1168.0, 1795.0];
const ENDS_S: [f64; 2] = [2180.0, 2288.0];

/// The section.
pub(super) fn section(trial: &Trial) -> Section {
    let run = &trial.runs[RUPER];
    let mut table = Grid::new(
        "All threads: mean speed in iterations/s, and end in seconds.",
        "policy | slowest | fastest | first end | last end",
    );
    let mut row = |name: &str, speeds: [f64; 2], ends: [f64; 2]| {
        table.row(
            [name.to_owned()].into_iter().chain(speeds.into_iter().chain(ends).map(|it| format!("{it:.0}"))),
        );
    };
    row("the paper, with", SPEEDS, ENDS_S);
    for (name, policy) in [("`ruper`", RUPER), ("`leases`", LEASES)] {
        let run = &trial.runs[policy];
        row(name, range(&run.thread_speeds.concat()), range(&run.thread_ends_s.concat()));
    }
    let curves = mean_speeds("F8b", 100.0, range(&run.thread_ends_s.concat())[0]);
    let panels = curves.iter().enumerate().map(|(rank, threads)| {
        let lines = threads
            .iter()
            .enumerate()
            .map(|(thread, curve)| line(format!("thread {thread}"), curve.iter().copied()));
        Panel::from(chart(format!("rank {rank}"), "time (s)", "mean speed (iterations/s)", lines.collect()))
    });
    let in_rank = |speeds: &Vec<f64>| range(speeds)[1] / range(speeds)[0];
    let least = run.thread_speeds.iter().map(in_rank).fold(f64::INFINITY, f64::min);
    let all = range(&run.thread_speeds.concat());
    Section::new(
        "Figure 9: mean speeds of the threads",
        "The mean speed of each thread from the beginning on. A thread begins at 1030 iterations/s where it shares a core, else at \
         2250, as the plot of the paper shows (1020, and 2240 to 2250).",
    )
    .picture("figure-9", "mean speed of each thread of four ranks over time", panels)
    .table(table)
    .claim(
        Claim::new(
            "At the end the mean speeds differ between threads of the same process.",
            "1168 to 1795 iterations/s over all ranks (off the plot)",
        )
        .here(format!("{:.0} to {:.0}; in each rank the fastest is at least {:.0} % faster than the slowest", all[0], all[1], 100.0 * (least - 1.0)))
        .holds("at least 10 % between the threads of each rank", least > 1.1),
    )
}
