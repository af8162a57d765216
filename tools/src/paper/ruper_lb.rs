//! Repeats the RUPER-LB paper (Gimenez-Alventosa, Molto and Segrelles, 2020): figures 6 to 9, on rebuilt speeds.
//!
//! The paper's numbers are read off its vector figures to 0.3 %. The speeds behind the runs are chosen so that equal
//! shares take about as long as in the paper (see `virtual_cluster::pool_scenarios::paper`).

mod beyond;
mod runs;

use presentation::bars::Bars;
use presentation::format::decimal;
use virtual_cluster::Scenario;
use virtual_cluster::pool_scenarios::paper::figure_8_cores_of;

use self::runs::{
    LEASES, POLICIES, RUPER, Run, STATIC, Trial, mean_speeds, range, spread, trials, trials_of,
};
use super::page::{Claim, Grid, Live, Page, Panel, Section};
use super::picture::{chart, line};
use super::{Context, text};

/// Time between checkpoints in the paper, s. Its claims compare delays with it.
const INTERVAL_S: f64 = 300.0;

/// A figure with the time of each rank, as read off the plot.
struct Figure {
    title: &'static str,
    scenario: &'static str,
    /// Seconds of each rank without balancing.
    without_s: &'static [f64],
    /// Seconds of each rank with balancing.
    with_s: &'static [f64],
}

const FIGURES: [Figure; 6] = [
    figure("run 1", "F6-1", &[2935.0, 3883.0], &[3752.0, 3700.0]),
    figure("run 2", "F6-2", &[2892.0, 4904.0], &[3723.0, 3650.0]),
    figure("run 3", "F6-3", &[2858.0, 4553.0], &[3706.0, 3657.0]),
    figure("run 4", "F6-4", &[2888.0, 4976.0], &[3646.0, 3740.0]),
    figure("figure 7", "F7", &[11468.0, 18744.0], &[14162.0, 14311.0]),
    figure("figure 8", "F8b", &[2412.0, 2398.0, 2439.0, 2392.0], &[2272.0, 2288.0, 2286.0, 2267.0]),
];

const fn figure(
    title: &'static str,
    scenario: &'static str,
    without_s: &'static [f64],
    with_s: &'static [f64],
) -> Figure {
    Figure { title, scenario, without_s, with_s }
}

/// Figure 7, right: the end of each thread of each rank with balancing, in seconds.
const THREADS_S: [[f64; 8]; 2] = [
    [14016.0, 13982.0, 13978.0, 14048.0, 13934.0, 13904.0, 13971.0, 14042.0],
    [14038.0, 14108.0, 14025.0, 14077.0, 14132.0, 13999.0, 13971.0, 13975.0],
];

/// Figure 9: slowest and fastest mean speed of a thread (iterations per second), first and last end (seconds).
const SPEEDS: [f64; 2] = [1168.0, 1795.0];
const ENDS_S: [f64; 2] = [2180.0, 2288.0];

impl Figure {
    /// Time saved in the paper, percent.
    fn gain(&self) -> f64 {
        100.0 * (1.0 - range(self.with_s)[1] / range(self.without_s)[1])
    }
}

impl Trial {
    /// Time that a policy saves, percent.
    fn gain(&self, policy: usize) -> f64 {
        100.0 * (1.0 - self.runs[policy].makespan_s / self.runs[STATIC].makespan_s)
    }
}

/// The page.
pub(super) fn page(context: &Context) -> Page {
    let trials = trials(context, "ruper-lb, figures 6 to 9", &FIGURES.map(|figure| figure.scenario));
    let gains: Vec<f64> = trials[..5].iter().map(|trial| trial.gain(RUPER)).collect();
    let [least, most] = range(&gains);
    let excess = |policy: usize| {
        let excesses: Vec<f64> = trials.iter().map(|trial| trial.excess(policy)).collect();
        excesses.iter().sum::<f64>() / excesses.len() as f64
    };
    Page {
        title: "RUPER-LB (Giménez-Alventosa, Moltó and Segrelles, 2020)",
        citation: "V. Giménez-Alventosa, G. Moltó and J. D. Segrelles: RUPER-LB: Load balancing embarrassingly parallel \
                   applications in unpredictable cloud environments. 2020. Policy `ruper` for pools.",
        proposes: "threads report their speed now and then, and at most every Δt_pc each process divides the remaining \
                   iterations among its threads in proportion to speed; rank 0 does the same among the processes, on \
                   predicted counts. Near the end nothing is divided any more."
            .into(),
        found: "beside neighbours on one of two VMs, the delay between ranks falls below Δt_pc = 300 s, and runs take 3 to 25 % \
                less time. On one host with no neighbours, where ranks look balanced, it still gains 6 to 7 %."
            .into(),
        here: format!(
            "all delays are below Δt_pc and the gains are {least:.1} to {most:.1} % beside neighbours and {:.1} % on one host. \
             `ruper` is {:.1} % above the ideal in the mean, because its quotas rest on counts of different ages and it does not \
             divide near the end. `leases` is {:.2} % above it.",
            trials[5].gain(RUPER),
            excess(RUPER),
            excess(LEASES)
        ),
        setting: setting(),
        sections: vec![
            figure_6(&trials[..4]),
            figure_7_left(&trials[4], &trials[..4]),
            figure_7_right(&trials[4]),
            figure_8(context, &trials[5]),
            figure_9(&trials[5]),
            beyond::overhead(context),
            beyond::waiting(&trials),
            beyond::intervals(context),
            beyond::scenarios(context),
            beyond::sweeps(context),
        ],
        live: vec![Live {
            command: "cargo run --release --bin montecarlo -- --histories 20000000 --compare static,ruper,interval=2,leases \\\n    \
                      --neighbour 0:20-60",
            shows: "Photons through matter, the kind of program of the paper, on the vCPUs of this machine with a neighbour that \
                    comes and goes. The interval is 2 s, because the run takes less than a minute.",
        }],
    }
}

fn setting() -> Grid {
    let mut table = Grid::new("", "part | the paper | here").words(3);
    table.row([
        "application",
        "PenRed, radiation transport; iterations are histories",
        "equal iterations without content",
    ]);
    table.row(["ranks", "figures 6, 7: 2 of 8 threads; figures 8, 9: 4 of 8", "the same"]);
    table.row(["iterations", "not stated; from figures 6, 7 and 9: 1e8, 4e8, 1.04e8", "1e8, 4e8, 1.04e8"]);
    table.row([
        "hosts",
        "two nodes of 2 x 16 cores with two hardware threads each",
        "speeds of 2163 to 2250 iterations/s, 0.47 of it on a shared core",
    ]);
    table.row([
        "neighbours",
        "`yes` and `sleep` by time of day on four VMs beside rank 1",
        "a duty cycle per run, chosen so that equal shares take about as long as in the paper",
    ]);
    table.row([
        "run pairs",
        "with and without balancing at different hours",
        "the same speeds with and without",
    ]);
    table.row(["start and output", "included: 115 to 180 s in figure 7", "none"]);
    table.row([
        "settings",
        "Δt_pc = 300 s; others not stated",
        "`ruper,counts=fungible`: Δt_pc = 300 s, t_min = 150 s",
    ]);
    table.row(["network", "not stated", "10 ms there and back"]);
    table
}

/// Rows with the end of each rank: the paper without and with, then each policy.
fn rank_rows(table: &mut Grid, figure: &Figure, trial: &Trial) {
    let mut row = |name: String, ends: &[f64], gain: Option<f64>| {
        let mut cells = vec![figure.title.to_owned(), name];
        cells.extend(ends.iter().map(|end| format!("{end:.0}")));
        cells.push(format!("{:.0}", spread(ends)));
        cells.push(gain.map_or_else(String::new, |gain| decimal(gain, 1)));
        table.row(cells);
    };
    row("the paper, without".into(), figure.without_s, None);
    row("the paper, with".into(), figure.with_s, Some(figure.gain()));
    row("`static`".into(), &trial.runs[STATIC].rank_ends_s, None);
    row("`ruper`".into(), &trial.runs[RUPER].rank_ends_s, Some(trial.gain(RUPER)));
    row("`leases`".into(), &trial.runs[LEASES].rank_ends_s, Some(trial.gain(LEASES)));
    let ideal = vec![trial.ideal_s; trial.runs[STATIC].rank_ends_s.len()];
    row("ideal".into(), &ideal, Some(100.0 * (1.0 - trial.ideal_s / trial.runs[STATIC].makespan_s)));
}

/// What the paper's runs would have gained at the hour of the balanced run, percent, and a table of it. The speed of rank 0 is
/// known from the run without balancing, because nothing disturbs it. The speed of rank 1 is what the balanced run leaves.
fn same_hour() -> (Grid, [f64; 4]) {
    let mut table = Grid::new(
        "The paper's pairs of runs, from its numbers alone: how long rank 1 would have taken for its half of the iterations at the hour of the \
         balanced run.",
        "run | rank 1 alone, s, at the hour without balance | at the hour of the balanced run | gain at that hour % | gain between both hours %",
    );
    let gains = [0, 1, 2, 3].map(|run| {
        let figure: &Figure = &FIGURES[run];
        let balanced_s = range(figure.with_s)[1];
        // Parts of the pool per second.
        let quiet = 0.5 / figure.without_s[0];
        let alone_s = 0.5 / (1.0 / balanced_s - quiet);
        let gain = 100.0 * (1.0 - balanced_s / alone_s);
        table.row([
            figure.title.to_owned(),
            format!("{:.0}", figure.without_s[1]),
            format!("{alone_s:.0}"),
            decimal(gain, 1),
            decimal(figure.gain(), 1),
        ]);
        gain
    });
    (table, gains)
}

fn figure_6(trials: &[Trial]) -> Section {
    let mut table =
        Grid::new("Seconds of each rank.", "run | policy | rank 0 | rank 1 | spread s | gain %").words(2);
    for (figure, trial) in FIGURES.iter().zip(trials) {
        rank_rows(&mut table, figure, trial);
    }
    let bars = |caption: &str, ends: &dyn Fn(usize) -> [f64; 2]| {
        let chart = Bars::new(caption, "time (s)", (1..=4).map(|run| format!("run {run}")));
        [0, 1].into_iter().fold(chart, |chart, rank| {
            chart.series(format!("rank {rank}"), (0..4).map(|run| ends(run)[rank]))
        })
    };
    let of = |policy: usize| {
        move |run: usize| [trials[run].runs[policy].rank_ends_s[0], trials[run].runs[policy].rank_ends_s[1]]
    };
    let paper = |ends: fn(&Figure) -> &'static [f64]| {
        move |run: usize| [ends(&FIGURES[run])[0], ends(&FIGURES[run])[1]]
    };
    let panels: [Panel; 4] = [
        bars("the paper, without balance", &paper(|figure| figure.without_s)).into(),
        bars("the paper, with balance", &paper(|figure| figure.with_s)).into(),
        bars("here, static", &of(STATIC)).into(),
        bars("here, ruper", &of(RUPER)).into(),
    ];
    let spreads: Vec<f64> = trials.iter().map(|trial| spread(&trial.runs[RUPER].rank_ends_s)).collect();
    let gains: Vec<f64> = trials.iter().map(|trial| trial.gain(RUPER)).collect();
    let papers: Vec<f64> = FIGURES[..4].iter().map(Figure::gain).collect();
    let near = gains.iter().zip(&papers).filter(|(here, paper)| (*here - *paper).abs() < 5.0).count();
    let (hours, same_hour) = same_hour();
    let off = FIGURES
        .iter()
        .zip(trials)
        .map(|(figure, trial)| (trial.runs[STATIC].makespan_s / range(figure.without_s)[1] - 1.0).abs());
    let off = 100.0 * off.fold(0.0, f64::max);
    Section::new(
        "Figure 6: four runs on two VMs",
        "Rank 0 is alone on its host, rank 1 has neighbours. Numbers of the paper are read off its plot. Its runs with and without \
         balancing are from different hours, so only sizes and orders can be compared.",
    )
    .picture("figure-6", "time of both ranks in four runs without and with balancing, in the paper and here", panels)
    .table(table)
    .table(hours)
    .claim(
        Claim::new("Without balancing, rank 1 takes longer, up to 4976 s.", "3883, 4904, 4553, 4976 s (off the plot)")
            .here(text(trials.iter().map(|trial| trial.runs[STATIC].makespan_s), 0))
            .holds("each run is within 5 % of the paper's", off < 5.0)
            .fitted(),
    )
    .claim(
        Claim::new("With balancing, the delay between ranks is below Δt_pc.", "52, 73, 49, 94 s (off the plot) < 300 s")
            .here(format!("{} s", text(spreads.iter().copied(), 0)))
            .holds("the spread of ranks is below 300 s in all runs", spreads.iter().all(|&spread| spread < INTERVAL_S)),
    )
    .claim(
        Claim::new("Balanced runs take less time.", format!("{} % less (off the plot)", text(papers.iter().copied(), 1)))
            .here(format!("{} % less", text(gains.iter().copied(), 1)))
            .holds("less time in all runs", gains.iter().all(|&gain| gain > 0.0))
            .holds("each gain is within 5 points of the paper's", near == gains.len())
            .because(format!(
                "Run 1 of the paper gains 3.4 %, because the neighbours were busier when its balanced run ran. From the speeds that its own two times \
                 give (table above), it would have gained {} % at that hour.",
                decimal(same_hour[0], 0)
            )),
    )
    .best(format!(
        "`leases` saves {} %, at most {} % are possible.",
        text(trials.iter().map(|trial| trial.gain(LEASES)), 1),
        text(trials.iter().map(|trial| 100.0 * (1.0 - trial.ideal_s / trial.runs[STATIC].makespan_s)), 1)
    ))
}

fn figure_7_left(trial: &Trial, shorter: &[Trial]) -> Section {
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
    let bars = Bars::new("seconds of each rank", "time (s)", ["rank 0", "rank 1"])
        .series("the paper, without", figure.without_s.iter().copied())
        .series("the paper, with", figure.with_s.iter().copied())
        .series("static", trial.runs[STATIC].rank_ends_s.iter().copied())
        .series("ruper", trial.runs[RUPER].rank_ends_s.iter().copied())
        .level(trial.ideal_s);
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

fn figure_7_right(trial: &Trial) -> Section {
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

/// The time for which a thread stays on a core, in the mean: the scenario's, and a quarter of it.
const HOLDS_S: [f64; 2] = [200.0, 50.0];

/// Figure 8 under other moves of the threads: by time on a core, mean gain of `ruper`, of `leases`, and mean differences of
/// ranks and of threads under equal shares, in percent.
fn placements(context: &Context) -> (Grid, [[f64; 4]; 2]) {
    let seeds = context.repetitions(8, 8);
    let scenarios: Vec<Scenario> = HOLDS_S
        .into_iter()
        .flat_map(|hold| (1..=seeds).map(move |seed| figure_8_cores_of(hold, seed)))
        .collect();
    let trials = trials_of(context, "ruper-lb, figure 8", &scenarios, &POLICIES);
    let heads = "time on a core s | `ruper` gains % | `leases` gains % | ranks differ % | threads differ %";
    let mut table = Grid::new(
        format!("Means of {seeds} random sequences of moves between cores; differences under equal shares."),
        heads,
    );
    let mut trials = trials.chunks(seeds as usize);
    let means = HOLDS_S.map(|hold| {
        let trials = trials.next().unwrap_or_default();
        let mean = |of: &dyn Fn(&Trial) -> f64| trials.iter().map(of).sum::<f64>() / trials.len() as f64;
        let equal = |trial: &Trial, ends: &[f64]| 100.0 * spread(ends) / trial.runs[STATIC].makespan_s;
        let means = [
            mean(&|trial| trial.gain(RUPER)),
            mean(&|trial| trial.gain(LEASES)),
            mean(&|trial| equal(trial, &trial.runs[STATIC].rank_ends_s)),
            mean(&|trial| equal(trial, &trial.runs[STATIC].thread_ends_s.concat())),
        ];
        table.row([format!("{hold:.0}")].into_iter().chain(means.map(|it| decimal(it, 1))));
        means
    });
    (table, means)
}

fn figure_8(context: &Context, trial: &Trial) -> Section {
    let figure = &FIGURES[5];
    let heads = "run | policy | rank 0 | rank 1 | rank 2 | rank 3 | spread s | gain %";
    let mut table = Grid::new("Seconds of each rank.", heads).words(2);
    rank_rows(&mut table, figure, trial);
    let bars = Bars::new("seconds of each rank", "time (s)", (0..4).map(|rank| format!("rank {rank}")))
        .series("the paper, without", figure.without_s.iter().copied())
        .series("the paper, with", figure.with_s.iter().copied())
        .series("static", trial.runs[STATIC].rank_ends_s.iter().copied())
        .series("ruper", trial.runs[RUPER].rank_ends_s.iter().copied())
        .level(trial.ideal_s);
    let (moves, [[gain, leases, ranks, threads], sooner]) = placements(context);
    Section::new(
        "Figure 8: four ranks on one host without neighbours",
        "32 threads on 32 cores with two hardware threads each. Here the scheduler moves threads between hardware threads, and two \
         threads on one core are slower (scenario `F8b`).",
    )
    .picture("figure-8", "time of four ranks without and with balancing", [bars.into()])
    .table(table)
    .table(moves)
    .claim(
        Claim::new("Balancing makes the run 6 to 7 % faster.", format!("6-7 %, {:.1} % off the plot", figure.gain()))
            .fitted()
            .here(format!("{:.1} %; {gain:.1} % in the mean of other moves", trial.gain(RUPER)))
            .holds("the mean is between 5 and 8 %", (5.0..8.0).contains(&gain))
            .because("It depends on how long a thread stays on a core, which the paper does not state (second table)."),
    )
    .claim(
        Claim::new(
            "Ranks look balanced without balancing, because the slowest thread of each rank takes about the same time.",
            "2392 to 2439 s: 1.9 % (off the plot)",
        )
        .here(format!("ranks differ by {ranks:.1} %, threads by {threads:.1} %"))
        .holds("threads differ more than twice as much as ranks", threads > 2.0 * ranks)
        .holds("ranks differ by less than 3 %", ranks < 3.0)
        .because(format!(
            "How far the slowest threads of ranks are apart depends on how often threads change cores, which the paper does not state. With {:.0} s on \
             a core instead of {:.0} s, ranks differ by {:.1} % and threads by {:.1} %.",
            HOLDS_S[1], HOLDS_S[0], sooner[2], sooner[3]
        )),
    )
    .best(format!("`leases` saves {:.1} %; {leases:.1} % in the mean of other moves.", trial.gain(LEASES)))
}

fn figure_9(trial: &Trial) -> Section {
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
