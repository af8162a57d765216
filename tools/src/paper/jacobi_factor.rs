//! Repeats the paper on load factors (Al-Ameedi and Fanfakh, 2021): a dense Jacobi iteration on four kinds of nodes.
//!
//! The paper plots times and speedups, and states in numbers only the three greatest speedups. The delay of a message
//! is fitted to one of them (see `virtual_cluster::jacobi_cluster`).

mod beyond;
mod runs;

use lb_strategies::median;
use presentation::bars::Bars;
use virtual_cluster::jacobi_cluster::{NODES, SIZES, SPEEDUPS, serial_s};

use self::runs::{Program, Runs};
use super::Context;
use super::page::{Claim, Grid, Live, Page, Panel, Section};

/// The page.
pub(super) fn page(context: &Context) -> Page {
    let runs = Runs::all(context);
    let greatest = SIZES.map(|size| runs.greatest(Program::AllGather, size));
    let fastest_on = |program| {
        let [small, middle, large] = SIZES.map(|size| runs.greatest_at(program, size));
        format!("{small}, {middle} and {large}")
    };
    let saved = 100.0 * (1.0 - runs.idle_after() / runs.idle_before());
    Page {
        title: "Load factors (Al-Ameedi and Fanfakh, 2021)",
        citation: "N. Al-Ameedi and A. Fanfakh: Performance Improvement for Parallel Message Passing Applications. 2021. \
                   Policy `load-factor` for supersteps.",
        proposes: "after the first iteration of a synchronous program, each node's block of rows is multiplied by its load \
                   factor: the longest computing time of all nodes over its own."
            .into(),
        found: "on simulated nodes of 40 to 70 GFlop/s this removes idle time, and a Jacobi iteration is up to 9.54, 12.38 \
                and 15.40 times as fast as the serial program with 4000, 6000 and 8000 rows. Of three exchanges \
                `MPI_Allgatherv` is the best. The speedup decreases when the number of nodes increases, \"due to a decrease in \
                computation\"."
            .into(),
        here: format!(
            "balancing removes {saved:.0} % of the idle time that unequal nodes cause, and the order of the exchanges is the paper's. \
             With 4000, 6000 and 8000 rows send/recv is fastest on {} nodes, sendrecv on {}, allgatherv by doubling on {}. The greatest \
             speedups are {:.2}, {:.2} and {:.2}: they grow faster with the size than the paper's. [Other networks](#the-network-behind-the-three-speedups) are tried \
             below. One division is enough while nodes do not change; beside a neighbour that comes later it is not.",
            fastest_on(Program::Blocking),
            fastest_on(Program::Pairs),
            fastest_on(Program::AllGather),
            greatest[0],
            greatest[1],
            greatest[2]
        ),
        setting: setting(),
        sections: vec![figure_4(&runs), equation_1(&runs), figure_5(&runs), beyond::network(context), beyond::shares(), beyond::neighbour(context)],
        live: vec![Live {
            command: "cargo run --release --bin jacobi -- --ranks 2 --neighbour 1 --compare equal,load-factor,des --check",
            shows: "On two vCPUs, one of them shared with another process: the time of equal shares, of load factors, and of \
                    the default policy. At best a third of the time of equal shares is saved.",
        }],
    }
}

fn setting() -> Grid {
    let mut table = Grid::new("", "part | the paper | here").words(3);
    table.row([
        "nodes",
        "4 to 64, of four kinds: 40, 50, 60, 70 GFlop/s",
        "the same; node i is of kind i mod 4",
    ]);
    table.row(["cluster", "SimGrid/SMPI", "`virtual_cluster`, in virtual time"]);
    table.row([
        "network",
        "10 Gbit/s; the time of a message is not stated",
        "10 Gbit/s; 14.3 us per message, fitted",
    ]);
    table.row([
        "program",
        "Jacobi, 4000, 6000, 8000 rows, to a residual of 1e-4",
        "the same work per row, 1000 iterations",
    ]);
    table.row(["serial program", "on a node that is not stated", "on a node of 40 GFlop/s"]);
    table.row([
        "division",
        "once, after the first iteration",
        "the same (`load-factor,look=0,by=wall,tolerance=0,ahead=0`)",
    ]);
    table.row([
        "plots",
        "without numbers in the text",
        "compared by their description, and by the three speedups",
    ]);
    table
}

fn figure_4(runs: &Runs) -> Section {
    let panels = SIZES.map(|size| {
        let bars =
            Bars::new(format!("{size} rows, by nodes"), "time (s)", NODES.map(|nodes| format!("{nodes}")));
        let filled = Program::ALL.into_iter().fold(bars, |bars, program| {
            bars.series(program.name(), NODES.map(|nodes| runs.of(program, size, nodes).makespan_s()))
        });
        Panel::from(filled.level(serial_s(size)).decades())
    });
    let heads = "rows | nodes | serial s | not balanced, send/recv | send/recv | sendrecv | allgatherv | direct | ideal s";
    let mut table = Grid::new(
        "Seconds of 1000 iterations. `direct` is the exchange of production. Balanced, if not stated.",
        heads,
    );
    for size in SIZES {
        for nodes in NODES {
            let times =
                Program::ALL.map(|program| format!("{:.3}", runs.of(program, size, nodes).makespan_s()));
            let begin = [size.to_string(), nodes.to_string(), format!("{:.2}", serial_s(size))];
            let end = [format!("{:.3}", runs.ideal_s(size, nodes))];
            table.row(begin.into_iter().chain(times).chain(end));
        }
    }
    let everywhere = |test: fn(&Runs, u64, usize) -> bool| {
        let settings = SIZES.into_iter().flat_map(|size| NODES.map(|nodes| (size, nodes)));
        settings.filter(|&(size, nodes)| test(runs, size, nodes)).count()
    };
    let all = SIZES.len() * NODES.len();
    let faster = everywhere(|runs, size, nodes| {
        runs.s(Program::Blocking, size, nodes) < runs.s(Program::Unbalanced, size, nodes)
    });
    let best = everywhere(|runs, size, nodes| {
        let [send, pair, gather] =
            [Program::Blocking, Program::Pairs, Program::AllGather].map(|it| runs.s(it, size, nodes));
        gather < send && gather < pair
    });
    let order = everywhere(|runs, size, nodes| {
        runs.s(Program::Pairs, size, nodes) < runs.s(Program::Blocking, size, nodes)
    });
    let direct = everywhere(|runs, size, nodes| {
        runs.s(Program::Direct, size, nodes) < runs.s(Program::AllGather, size, nodes)
    });
    Section::new(
        "Figure 4: execution times",
        "Times of the serial program (grey line), of the program that is not balanced, and of the balanced one with three \
         exchanges. The last bars are the balanced program with the exchange that Caribou uses.",
    )
    .picture("figure-4", "execution times by number of nodes, for three sizes", panels)
    .table(table)
    .claim(
        Claim::new("Balancing reduces the execution time by reducing idle times.", "in all plots of figure 4")
            .here(format!("faster in {faster} of {all} settings"))
            .holds(format!("balanced send/recv is faster than unbalanced send/recv in all {all} settings"), faster == all),
    )
    .claim(
        Claim::new("`MPI_Allgatherv` is the best of the three exchanges.", "\"the best scenario\"")
            .here(format!("fastest in {best} of {all} settings"))
            .holds(format!("allgatherv is the fastest of the three in all {all} settings"), best == all),
    )
    .claim(
        Claim::new("The exchanges differ, and the coupled `MPI_Sendrecv` is faster than `MPI_Send` and `MPI_Recv`.", "plot only")
            .here(format!("faster in {order} of {all} settings"))
            .holds(format!("sendrecv is faster than send/recv in all {all} settings"), order == all),
    )
    .best(format!(
        "the exchange `direct` sends each part to all nodes at once. It is faster than allgatherv in {direct} of {all} settings."
    ))
}

/// Equation 1 and figures 1 and 2: idle time before and after, and the predicted time of an iteration.
fn equation_1(runs: &Runs) -> Section {
    let heads =
        "rows | nodes | idle before % | idle after % | eq. 1 before us | run us | eq. 1 after us | run us";
    let mut table = Grid::new(
        "Idle: the part of the run in which the average node waits for the slowest one, without the time of messages. An \
         iteration with allgatherv, by equation 1 and as simulated.",
        heads,
    );
    let mut worst: f64 = 0.0;
    for size in SIZES {
        for nodes in NODES {
            let [before, after] = [Program::UnbalancedGather, Program::AllGather].map(|program| {
                let run = runs.of(program, size, nodes);
                let (predicted, real) =
                    (runs.equation_1_s(run, size, nodes), median(run.step_seconds.clone()).unwrap_or(0.0));
                worst = worst.max((predicted / real - 1.0).abs());
                (runs::idle_percent(run), 1e6 * predicted, 1e6 * real)
            });
            table.row([
                size.to_string(),
                nodes.to_string(),
                format!("{:.1}", before.0),
                format!("{:.1}", after.0),
                format!("{:.1}", before.1),
                format!("{:.1}", before.2),
                format!("{:.1}", after.1),
                format!("{:.1}", after.2),
            ]);
        }
    }
    let (before, after) = (runs.idle_before(), runs.idle_after());
    Section::new(
        "Equation 1: idle time before and after",
        "The paper predicts the time of an iteration as the longest computing time plus the shortest communication time, \
         since a node without slack does not wait (figures 1 and 2). The simulation computes an iteration in the same way, with the \
         same times of messages. So the agreement holds by construction, and is no evidence.",
    )
    .table(table)
    .claim(
        Claim::new("T = max Tcp + min Tcm (equation 1).", "used to state the time of the unbalanced program")
            .here(format!("off by {:.1} % at most, by construction of the simulation", 100.0 * worst))
            .holds("the equation is within 1 % of each simulated run", worst < 0.01),
    )
    .claim(
        Claim::new("The balanced program has no slack (figures 1 and 2).", "\"eliminating the waiting time\"")
            .here(format!("mean idle time {before:.1} % before, {after:.1} % after"))
            .holds("at most a tenth of the idle time is left", after < 0.1 * before),
    )
}

fn figure_5(runs: &Runs) -> Section {
    let speedups = |program| {
        NODES.map(|nodes| SIZES.map(|size| runs.speedup(program, size, nodes)).iter().sum::<f64>() / 3.0)
    };
    let granularity =
        NODES.map(|nodes| SIZES.map(|size| runs.granularity(size, nodes)).iter().sum::<f64>() / 3.0);
    let labels = NODES.map(|nodes| format!("{nodes}"));
    let programs = [Program::Blocking, Program::Pairs, Program::AllGather, Program::Direct];
    let bars = programs
        .into_iter()
        .fold(Bars::new("mean of three sizes, by nodes", "speedup", labels.clone()), |bars, program| {
            bars.series(program.name(), speedups(program))
        });
    let ratio = Bars::new("allgatherv, by nodes", "computing / communication", labels)
        .series("granularity", granularity)
        .decades();
    let mut table = Grid::new(
        "Means of the three sizes.",
        "nodes | send/recv | sendrecv | allgatherv | direct | granularity",
    );
    for (place, nodes) in NODES.into_iter().enumerate() {
        let cells = programs.map(|program| format!("{:.2}", speedups(program)[place]));
        table.row([nodes.to_string()].into_iter().chain(cells).chain([format!("{:.2}", granularity[place])]));
    }
    let mut most = Grid::new(
        "The greatest speedup of each size, and the number of nodes that has it.",
        "rows | the paper | send/recv | sendrecv | allgatherv | direct | bound",
    );
    for (size, paper) in SIZES.into_iter().zip(SPEEDUPS) {
        let cells = programs.map(|program| {
            format!("{:.2} ({})", runs.greatest(program, size), runs.greatest_at(program, size))
        });
        let bound = serial_s(size) / runs.ideal_s(size, 64);
        most.row(
            [size.to_string(), format!("{paper:.2}")]
                .into_iter()
                .chain(cells)
                .chain([format!("{bound:.0} (64)")]),
        );
    }
    let greatest = SIZES.map(|size| runs.greatest(Program::AllGather, size));
    let far =
        greatest.iter().zip(SPEEDUPS).map(|(here, paper)| (here / paper - 1.0).abs()).fold(0.0, f64::max);
    let falls = |values: &[f64]| values.windows(2).all(|pair| pair[1] < pair[0]);
    let peak_of = |program| {
        let speedups = speedups(program);
        let best = (0..NODES.len()).max_by(|&one, &other| speedups[one].total_cmp(&speedups[other]));
        NODES[best.unwrap_or(0)]
    };
    let peak = peak_of(Program::AllGather);
    let gather_s = |nodes| runs.s(Program::AllGather, SIZES[0], nodes);
    let at_peak = NODES.iter().position(|&nodes| nodes == peak).map_or(0.0, |place| granularity[place]);
    let text = |values: [f64; 3]| values.map(|value| format!("{value:.2}")).join(", ");
    Section::new(
        "Figure 5: speedup and granularity",
        "Speedup over the serial program, and granularity: computing time over communication time. The paper draws means of \
         the three sizes.",
    )
    .picture("figure-5", "mean speedup and mean granularity by number of nodes", [Panel::from(bars), Panel::from(ratio)])
    .table(most)
    .table(table)
    .claim(
        Claim::new("The greatest speedup with 6000 rows.", "12.38")
            .here(format!("{:.2}", greatest[1]))
            .holds("within 2 % of the paper's", (greatest[1] / SPEEDUPS[1] - 1.0).abs() < 0.02)
            .fitted(),
    )
    .claim(
        Claim::new("The greatest speedups with 4000 and 8000 rows.", "9.54, 15.40")
            .here(format!("{:.2}, {:.2}", greatest[0], greatest[2]))
            .holds("both within 10 % of the paper's", far < 0.1)
            .because(
                "Computing grows with the square of the size. With \
                 `MPI_Allgatherv` by doubling, large systems gain too much from it. \
                 [The section on the network](#the-network-behind-the-three-speedups) varies only the way of the exchange.",
            ),
    )
    .claim(
        Claim::new("The speedup grows with the size of the problem.", "9.54, 12.38, 15.40")
            .here(text(greatest))
            .holds("each size has a greater speedup than the smaller one", greatest[0] < greatest[1] && greatest[1] < greatest[2]),
    )
    .claim(
        Claim::new("The speedup decreases as the number of nodes increases.", "plot only")
            .here(format!("means of sizes: send/recv greatest on {}, sendrecv on {}, allgatherv on {} nodes", peak_of(Program::Blocking), peak_of(Program::Pairs), peak))
            .holds("in the means, send/recv and sendrecv fall from some number of nodes to 64", speedups(Program::Blocking)[5] < speedups(Program::Blocking)[2] && speedups(Program::Pairs)[5] < speedups(Program::Pairs)[2])
            .holds("in the mean, allgatherv is slower on 64 nodes than on some smaller number", peak < 64)
            .because(format!(
                "By doubling, twice the nodes add one message; in the mean of the three sizes, they gain more than that. With 4000 \
                 rows allgatherv takes {:.3} s on 32 nodes and {:.3} s on 64, {:.3} s on 16 and {:.3} s on 24. With another way of the \
                 exchange it falls: see [the network](#the-network-behind-the-three-speedups). The text of the paper has no numbers \
                 for single numbers of nodes.",
                gather_s(32),
                gather_s(64),
                gather_s(16),
                gather_s(24)
            )),
    )
    .claim(
        Claim::new("The granularity falls with the number of nodes, and the speedup with it.", "plot only")
            .here(format!("from {:.1} to {:.2}", granularity[0], granularity[5]))
            .holds("each number of nodes has less granularity than the smaller one", falls(&granularity))
            .holds("the speedup of allgatherv falls from 4 nodes on", falls(&speedups(Program::AllGather)))
            .because(format!(
                "The mean speedup of allgatherv is greatest on {peak} nodes, with a granularity of {at_peak:.2}."
            )),
    )
    .best(format!(
        "with `direct`, the median gain over allgatherv is {:.0} %. The bound is the speed of all nodes together over that of the \
         serial node.",
        100.0 * (median(runs.gains_of_direct()).unwrap_or(1.0) - 1.0)
    ))
}
