//! Repeats the RUPER-LB paper (Gimenez-Alventosa, Molto and Segrelles, 2020): figures 6 to 9, on rebuilt speeds.
//!
//! The paper's numbers are read off its vector figures to 0.3 %. The speeds behind the runs are chosen so that equal
//! shares take about as long as in the paper (see `virtual_cluster::pool_scenarios::paper`).

mod beyond;
mod figure_6;
mod figure_7;
mod figure_8;
mod figure_9;
mod runs;

use presentation::bars::Bars;
use presentation::format::decimal;

use self::runs::{LEASES, RUPER, STATIC, Trial, range, spread, trials};
use super::Context;
use super::page::{Grid, Live, Page};

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
    // The same with the other scenario of figure 8.
    let jumps = self::trials(context, "ruper-lb, F8a", &["F8a"]);
    let mean = |of: [&[Trial]; 2], policy: usize| {
        let excesses: Vec<f64> = of.into_iter().flatten().map(|trial| trial.excess(policy)).collect();
        excesses.iter().sum::<f64>() / excesses.len() as f64
    };
    let (with_f8b, with_f8a) = ([&trials[..5], &trials[5..]], [&trials[..5], &jumps[..]]);
    let most_of_leases = mean(with_f8b, LEASES).max(mean(with_f8a, LEASES));
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
             `ruper` is {:.1} % above the ideal in the mean of the scenarios of figures 6, 7 and 8 (F8b), and {:.1} % with F8a instead \
             of F8b. Its quotas rest on counts of different ages, and it does not divide near the end. `leases` is at most {:.2} % \
             above it in either mean.",
            trials[5].gain(RUPER),
            mean(with_f8b, RUPER),
            mean(with_f8a, RUPER),
            most_of_leases
        ),
        setting: setting(),
        sections: vec![
            figure_6::section(&trials[..4]),
            figure_7::left(&trials[4], &trials[..4]),
            figure_7::right(&trials[4]),
            figure_8::section(context, &trials[5]),
            figure_9::section(&trials[5]),
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

/// A chart of the end of each rank in one figure: the paper without and with balancing, and here. The line is the ideal.
fn rank_bars(figure: &Figure, trial: &Trial) -> Bars {
    let ranks = (0..figure.without_s.len()).map(|rank| format!("rank {rank}"));
    Bars::new("seconds of each rank", "time (s)", ranks)
        .series("the paper, without", figure.without_s.iter().copied())
        .series("the paper, with", figure.with_s.iter().copied())
        .series("static", trial.runs[STATIC].rank_ends_s.iter().copied())
        .series("ruper", trial.runs[RUPER].rank_ends_s.iter().copied())
        .level(trial.ideal_s)
}
