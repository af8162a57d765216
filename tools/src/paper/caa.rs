//! Repeats the paper on the combined adaptive algorithm, CAA (Filipovic, Krstajic and Popovic, 2021), on a model of its
//! cluster. DD is the policy `static`, MS is `master-worker`.
//!
//! The constants of the model are fitted to the least and greatest values in the paper (see
//! `virtual_cluster::crossbar_cluster`). So the page also varies them one at a time.

mod beyond;
mod runs;

use presentation::bars::Bars;
use presentation::format::decimal;
use virtual_cluster::crossbar_cluster::{CORES, CrossbarModel, TASKS};

use self::runs::{Column, columns};
use super::Context;
use super::page::{Claim, Grid, Live, Page, Section};

/// The page.
pub(super) fn page(context: &Context) -> Page {
    let columns =
        columns(context, "caa, figures 3 to 5", &[CrossbarModel::PAPER], context.repetitions(40, 6));
    let columns = &columns[0];
    let [first, .., last] = &columns[..] else { unreachable!("there are four numbers of cores") };
    let [constants, reasons] = beyond::variations(context);
    let ahead = columns.iter().filter(|column| column.leases < column.adaptive).count();
    Page {
        title: "The combined adaptive algorithm, CAA (Filipović, Krstajić and Popović, 2021)",
        citation: "L. Filipović, B. Krstajić and T. Popović: Combined adaptive load balancing algorithm for parallel \
                   applications. 2021. Policy `caa` for pools.",
        proposes: "a pool of whole tasks begins with equal shares (DD, domain decomposition). When the first worker has \
                   finished, all stop after their task, and one place decides by simple conditions whether the rest is \
                   divided again (DD) or handed out by a master (MS)."
            .into(),
        found: "on 16 to 128 cores CAA takes 1.7 to 8.2 % less time than DD alone, and 15.5 to 21.9 % less than MS alone, most \
                on 128 cores. It continues with DD on 16 cores, and with MS on 32 and more."
            .into(),
        here: format!(
            "the same order on all numbers of cores, with gaps of {:.1} to {:.1} % and {:.1} to {:.1} %. The paper does not give its \
             tasks, cores and network, so six constants are fitted to these four numbers. Varied one at a time, they show which \
             statements depend on them: CAA wins only where cores are disturbed. `leases` is faster than CAA on {ahead} of \
             {} numbers of cores.",
            percent(first.below_shares()),
            percent(last.below_shares()),
            percent(first.below_master()),
            percent(last.below_master()),
            columns.len()
        ),
        setting: setting(),
        sections: vec![
            figure_3(columns),
            figure_4(columns),
            figure_5(columns),
            constants,
            reasons,
            beyond::policies(context),
        ],
        live: vec![Live {
            command: "cargo run --release --bin crossbar -- --load 0.5 --buffer 64 --tasks 100 --requests 1000000 \\\n    \
                      --neighbour 0:20-60 --compare static,master-worker,batch=1,caa,task=1,leases --check",
            shows: "The paper's application, a simulator of a crossbar switch, under the same policies on the cores of this \
                    machine, with a neighbour that comes and goes.",
        }],
    }
}

fn percent(part: f64) -> f64 {
    100.0 * part
}

fn setting() -> Grid {
    let mut table = Grid::new("", "part | the paper | here").words(3);
    table.row([
        "application",
        "crossbar switch simulator, 16 ports, 10^6 requests, 3072 tasks",
        &format!("{TASKS} tasks of 0.55 to 1.45 s (fitted: their standard deviation is 26 %)"),
    ]);
    table.row([
        "cluster",
        "nodes of two octa-core Xeon 2.6 GHz; 16, 32, 64, 128 cores",
        "16 cores per node; one of half of the nodes' cores loses up to 16.5 % of its speed (fitted)",
    ]);
    table.row([
        "network",
        "not stated",
        "54 ms per message within a node, 120 ms between nodes, 11 ms of the master per message (fitted)",
    ]);
    table.row([
        "runs",
        "ten or more, in different states of the cluster",
        "40 seeds, the same for each policy",
    ]);
    table.row([
        "decision",
        "U1 10 %, U2 32 cores, U3 25 %, U4 25 %; K = 0, 1, 1, 0.5",
        "the same (`caa,task=1`)",
    ]);
    table.row([
        "numbers",
        "seconds only as a plot; ranges of the gaps in the text",
        "gaps are compared, not seconds",
    ]);
    table
}

fn names() -> [String; 4] {
    CORES.map(|cores| format!("{cores} cores"))
}

fn figure_3(columns: &[Column]) -> Section {
    let times = |value: fn(&Column) -> f64| columns.iter().map(value).collect::<Vec<_>>();
    let [shares, master, adaptive] = [times(|it| it.shares), times(|it| it.master), times(|it| it.adaptive)];
    let bars = Bars::new("mean time of a run", "time (s)", names())
        .series("DD (static)", shares.clone())
        .series("MS (master-worker)", master.clone())
        .series("CAA", adaptive.clone())
        .series("leases", times(|it| it.leases))
        .series("ideal", times(|it| it.ideal));
    let mut table = Grid::new(
        "Mean seconds of a run; a task takes 1 s in the mean.",
        "cores | DD | MS | CAA | `leases` | ideal",
    );
    for column in columns {
        let cells = [column.shares, column.master, column.adaptive, column.leases, column.ideal];
        table.row([column.cores.to_string()].into_iter().chain(cells.map(|s| format!("{s:.1}"))));
    }
    let falls = |times: &[f64]| times.windows(2).all(|pair| pair[1] < pair[0]);
    let ahead = columns.iter().filter(|it| it.adaptive < it.shares && it.adaptive < it.master).count();
    let behind = columns.iter().filter(|it| it.master > it.shares && it.master > it.adaptive).count();
    let count = columns.len();
    let gaps: Vec<f64> =
        columns.iter().map(|column| percent(1.0 - column.leases / column.adaptive)).collect();
    let text = gaps.iter().map(|gap| decimal(*gap, 1)).collect::<Vec<_>>().join(", ");
    Section::new("Figure 3: execution times", "Mean times of DD, MS and CAA. The plot of the paper has no numbers in its text.")
        .picture("figure-3", "mean times of DD, MS, CAA, leases and the ideal on 16 to 128 cores", [bars.into()])
        .table(table)
        .claim(
            Claim::new("CAA completes faster than DD and MS in all conditions.", "plot only")
                .here(format!("fastest of the three on {ahead} of {count} numbers of cores"))
                .holds("CAA is the fastest of the three on each number of cores", ahead == count),
        )
        .claim(
            Claim::new("The execution time is longest with MS; DD is faster.", "plot only")
                .here(format!("MS slowest on {behind} of {count}"))
                .holds("MS is the slowest on each number of cores", behind == count),
        )
        .claim(
            Claim::new("More cores take less time.", "plot only")
                .here(format!("CAA from {:.0} to {:.1} s", adaptive[0], adaptive[count - 1]))
                .holds("the times of DD, MS and CAA fall from 16 to 128 cores", falls(&shares) && falls(&master) && falls(&adaptive)),
        )
        .best(format!(
            "`leases` takes {text} % less time than CAA on 16, 32, 64 and 128 cores. The ideal is all cores computing to the end."
        ))
}

fn figure_4(columns: &[Column]) -> Section {
    let [shares, master]: [Vec<f64>; 2] = [
        columns.iter().map(|it| percent(it.below_shares())).collect(),
        columns.iter().map(|it| percent(it.below_master())).collect(),
    ];
    let bars = Bars::new("time that CAA saves", "saved (%)", names())
        .series("compared with DD", shares.clone())
        .series("compared with MS", master.clone());
    let mut table = Grid::new("", "cores | below DD % | below MS %");
    table.row(["the paper, least", "1.7", "15.5"]);
    table.row(["the paper, on 128", "8.2", "21.9"]);
    for (place, column) in columns.iter().enumerate() {
        table.row([
            column.cores.to_string(),
            format!("{:.1}", shares[place]),
            format!("{:.1}", master[place]),
        ]);
    }
    let range = |gaps: &[f64]| {
        let least = gaps.iter().copied().fold(f64::INFINITY, f64::min);
        (least, gaps.iter().copied().fold(0.0, f64::max))
    };
    let most_at =
        |gaps: &[f64]| (0..gaps.len()).max_by(|&one, &other| gaps[one].total_cmp(&gaps[other])).unwrap_or(0);
    let near = |(least, most): (f64, f64), (low, high): (f64, f64)| {
        (least - low).abs() < 1.5 && (most - high).abs() < 1.5
    };
    let (of_shares, of_master) = (range(&shares), range(&master));
    let grows = shares.windows(2).all(|pair| pair[1] > pair[0]);
    Section::new("Figure 4: savings", "The part of the time of DD and of MS that CAA saves.")
        .picture("figure-4", "savings of CAA compared with DD and with MS on 16 to 128 cores", [bars.into()])
        .table(table)
        .claim(
            Claim::new("CAA takes less time than DD, by these parts.", "1.7 to 8.2 %")
                .here(format!("{:.1} to {:.1} %", of_shares.0, of_shares.1))
                .holds("both ends within 1.5 points", near(of_shares, (1.7, 8.2)))
                .fitted(),
        )
        .claim(
            Claim::new("The largest gap to DD is on 128 cores.", "8.2 %")
                .here(format!("on {} cores", columns[most_at(&shares)].cores))
                .fitted()
                .holds("largest on 128 cores", most_at(&shares) == columns.len() - 1)
                .holds("the gap grows with each number of cores (not fitted between the ends)", grows),
        )
        .claim(
            Claim::new("CAA takes less time than MS, by these parts.", "15.5 to 21.9 %")
                .here(format!("{:.1} to {:.1} %", of_master.0, of_master.1))
                .holds("both ends within 1.5 points", near(of_master, (15.5, 21.9)))
                .fitted(),
        )
        .claim(
            Claim::new("The largest gap to MS is on 128 cores.", "21.9 %")
                .here(format!("on {} cores", columns[most_at(&master)].cores))
                .fitted()
                .holds("largest on 128 cores", most_at(&master) == columns.len() - 1),
        )
}

fn figure_5(columns: &[Column]) -> Section {
    let parts = |value: fn(&Column) -> f64| columns.iter().map(|it| percent(value(it))).collect::<Vec<_>>();
    let [shares, master] = [parts(|it| it.chose_shares), parts(|it| it.chose_master)];
    let bars = Bars::new("choice in phase 3", "part of the runs (%)", names())
        .series("DD", shares.clone())
        .series("MS", master.clone());
    let mut table = Grid::new("Percent of the runs.", "cores | DD | MS");
    for (place, column) in columns.iter().enumerate() {
        table.row([
            column.cores.to_string(),
            format!("{:.0}", shares[place]),
            format!("{:.0}", master[place]),
        ]);
    }
    Section::new("Figure 5: the algorithm chosen in phase 3", "What CAA continues with, over all runs.")
        .picture("figure-5", "part of the runs that continue with DD and with MS", [bars.into()])
        .table(table)
        .claim(
            Claim::new("DD is chosen in most cases on 16 cores.", "plot only: \"in most cases\"")
                .here(format!("{:.0} % of the runs", shares[0]))
                .holds("DD in more than half of the runs on 16 cores", shares[0] > 50.0),
        )
        .claim(
            Claim::new("MS is chosen on 32 or more cores.", "plot only")
                .here(master[1..].iter().map(|part| format!("{part:.0} %")).collect::<Vec<_>>().join(", "))
                .fitted()
                .holds(
                    "MS in more than half of the runs on 32, 64 and 128 cores",
                    master[1..].iter().all(|&part| part > 50.0),
                ),
        )
}
