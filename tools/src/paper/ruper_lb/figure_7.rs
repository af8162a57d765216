//! Figure 7: four times the iterations, by rank and by thread.

use presentation::format::decimal;

use super::runs::{LEASES, RUPER, Run, Trial, range, spread};
use super::{FIGURES, Figure, INTERVAL_S, rank_bars, rank_rows};
use crate::paper::page::{Claim, Grid, Section};

/// Figure 7, right: the end of each thread of each rank with balancing, in seconds.
const THREADS_S: [[f64; 8]; 2] = [
    [14016.0, 13982.0, 13978.0, 14048.0, 13934.0, 13904.0, 13971.0, 14042.0],
    [14038.0, 14108.0, 14025.0, 14077.0, 14132.0, 13999.0, 13971.0, 13975.0],
];

/// The left part: the ranks.
pub(super) fn left(trial: &Trial, shorter: &[Trial]) -> Section {
    let figure = &FIGURES[4];
    let mut table =
        Grid::new("Seconds of each rank.", "run | policy | rank 0 | rank 1 | spread s | gain %").words(2);
    rank_rows(&mut table, figure, trial);
    let relative =
        |trial: &Trial| 100.0 * spread(&trial.runs[RUPER].rank_ends_s) / trial.runs[RUPER].makespan_s;
    let short = shorter.iter().map(relative).sum::<f64>() / shorter.len() as f64;
    let paper = |figure: &Figure| 100.0 * spread(figure.with_s) / range(figure.with_s)[1];
    let paper_short = FIGURES[..4].iter().map(paper).sum::<f64>() / 4.0;
    let spread_s = spread(&trial.runs[RUPER].rank_ends_s);
    let bars = rank_bars(figure, trial);
    Section::new(
        "Figure 7, left: four times the iterations",
        "The same Δt_pc with a longer run. The grey line is the ideal.",
    )
    .picture("figure-7-left", "time of both ranks without and with balancing", [bars.into()])
    .table(table)
    .claim(
        Claim::new("The delay between ranks is below Δt_pc.", "149 s (off the plot)")
            .here(format!("{spread_s:.0} s"))
            .holds("the spread of ranks is below 300 s", spread_s < INTERVAL_S),
    )
    .claim(
        Claim::new(
            "With the same Δt_pc and more iterations, the relative difference between ranks is smaller.",
            format!("{paper_short:.1} % in figure 6, {:.1} % in figure 7 (off the plots)", paper(figure)),
        )
        .here(format!("{short:.1} %, {:.2} %", relative(trial)))
        .holds("the relative spread is smaller than the mean of figure 6", relative(trial) < short),
    )
    .claim(
        Claim::new(
            "The balanced run takes less time.",
            format!("{:.1} % less (off the plot)", figure.gain()),
        )
        .here(format!("{:.1} % less", trial.gain(RUPER)))
        .holds("within 3 points of the paper", (trial.gain(RUPER) - figure.gain()).abs() < 3.0),
    )
    .best(format!(
        "`leases` is {} % above the ideal, `ruper` {} %.",
        decimal(trial.excess(LEASES), 2),
        decimal(trial.excess(RUPER), 2)
    ))
}

/// The right part: the threads.
pub(super) fn right(trial: &Trial) -> Section {
    let mut table =
        Grid::new("End of each thread in seconds.", "policy | rank | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7").words(2);
    let papers = THREADS_S.map(|ends| ends.to_vec());
    let rows = [
        ("the paper, with", &papers[..]),
        ("`ruper`", &trial.runs[RUPER].thread_ends_s),
        ("`leases`", &trial.runs[LEASES].thread_ends_s),
    ];
    for (name, ranks) in rows {
        for (rank, ends) in ranks.iter().enumerate() {
            let cells = ends.iter().map(|end| format!("{end:.0}"));
            table.row([name.to_owned(), rank.to_string()].into_iter().chain(cells));
        }
    }
    let all = |run: &Run| spread(&run.thread_ends_s.concat());
    let (ruper, leases) = (all(&trial.runs[RUPER]), all(&trial.runs[LEASES]));
    Section::new(
        "Figure 7, right: the threads of the balanced run",
        "When each thread ends. The paper's are read off the plot.",
    )
    .table(table)
    .claim(
        Claim::new(
            "The delay between the fastest and the slowest thread is below Δt_pc.",
            "228 s (off the plot)",
        )
        .here(format!("{ruper:.0} s"))
        .holds("the spread of all threads is below 300 s", ruper < INTERVAL_S),
    )
    .best(format!("under `leases` the threads end within {} s.", decimal(leases, 1)))
}
