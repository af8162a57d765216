//! What goes beyond the figures of the paper: the network behind its speedups, the fixed point of load factors, and a
//! neighbour that comes after the division.

use std::sync::Arc;

use lb_strategies::SUPERSTEPS;
use presentation::bars::Bars;
use virtual_cluster::jacobi_cluster::{NODES, SIZES, SPEEDUPS, STEPS, scenario, serial_s};
use virtual_cluster::{Exchange, StepScenario, Times, Wire};

use super::runs::{PAPER, run};
use crate::paper::Context;
use crate::paper::page::{Claim, Grid, Section};

/// The networks tried: what is said of them, delay of a message in us, and part of 10 Gbit/s.
const NETWORKS: [(&str, f64, f64); 4] = [
    ("14.3 us, as on this page", 14.3, 1.0),
    ("the same delay, a fifth of the bandwidth", 14.3, 0.2),
    ("half the delay, a fifth of the bandwidth", 7.0, 0.2),
    ("hardly any delay, a fifth of the bandwidth", 1.0, 0.2),
];

/// Which network gives the three speedups of the paper.
pub(super) fn network(context: &Context) -> Section {
    let speedup = |index: usize| {
        let (network, rest) =
            (NETWORKS[index / (SIZES.len() * NODES.len())], index % (SIZES.len() * NODES.len()));
        let (size, nodes) = (SIZES[rest / NODES.len()], NODES[rest % NODES.len()]);
        let mut scenario = scenario(size, nodes, Exchange::Doubling);
        let Wire { bytes_per_s, .. } = scenario.program.link;
        scenario.program.link = Wire { delay_s: 1e-6 * network.1, bytes_per_s: network.2 * bytes_per_s };
        serial_s(size) / scenario.run(&*SUPERSTEPS.parse(PAPER).expect("it is listed")).makespan_s()
    };
    let speedups =
        context.each("jacobi-factor, networks", NETWORKS.len() * SIZES.len() * NODES.len(), speedup);
    let mut table = Grid::new(
        "Greatest speedup with allgatherv on any number of nodes.",
        "network | 4000 rows | 6000 rows | 8000 rows | largest difference",
    );
    table.row(
        ["the paper".to_owned()]
            .into_iter()
            .chain(SPEEDUPS.map(|it| format!("{it:.2}")))
            .chain([String::new()]),
    );
    for ((name, ..), of_network) in NETWORKS.iter().zip(speedups.chunks(SIZES.len() * NODES.len())) {
        let greatest: Vec<f64> =
            of_network.chunks(NODES.len()).map(|of| of.iter().copied().fold(0.0, f64::max)).collect();
        let off = greatest
            .iter()
            .zip(SPEEDUPS)
            .map(|(here, paper)| 100.0 * (here / paper - 1.0).abs())
            .fold(0.0, f64::max);
        let cells = greatest.iter().map(|it| format!("{it:.2}"));
        table.row([(*name).to_owned()].into_iter().chain(cells).chain([format!("{off:.0} %")]));
    }
    Section::new(
        "The network behind the three speedups",
        "Only the network is varied. A lower rate for the parts of a step changes how speedups grow with the size.",
    )
    .table(table)
}

/// The fixed point of the load factors.
pub(super) fn shares() -> Section {
    let nodes = 16;
    let mut table = Grid::new(
        "Rows of each kind of node, 16 nodes.",
        "rows | 40 GFlop/s | 50 | 60 | 70 | furthest from the speeds, rows | divisions",
    );
    let mut furthest: f64 = 0.0;
    let mut divisions = 0;
    for size in SIZES {
        let run = run(size, nodes, PAPER, Exchange::Doubling);
        let units = &run.divisions[0].division.units;
        let share = |node: usize| size as f64 * [4.0, 5.0, 6.0, 7.0][node % 4] / (22.0 * nodes as f64 / 4.0);
        let off = (0..nodes).map(|node| (units[node] as f64 - share(node)).abs()).fold(0.0, f64::max);
        furthest = furthest.max(off);
        divisions = divisions.max(run.divisions.len());
        let kinds = (0..4).map(|kind| units[kind].to_string());
        table.row(
            [size.to_string()]
                .into_iter()
                .chain(kinds)
                .chain([format!("{off:.2}"), run.divisions.len().to_string()]),
        );
    }
    let again = |every: &str| run(8000, nodes, &format!("{PAPER}{every}"), Exchange::Doubling).makespan_s();
    let (once, often) = (again(""), again(",every=10"));
    Section::new(
        "Equations 3 to 7: the shares after one division",
        "The new block is LF times the old block, and the excess over the number of rows is taken off in proportion to LF, until \
         less than one row per node is left. Caribou rounds by largest remainder instead of repeating.",
    )
    .table(table)
    .claim(
        Claim::new("One division after the first iteration balances the nodes.", "computed once")
            .here(format!("shares within {furthest:.2} rows of the speeds; dividing every 10 steps changes the time by {:.2} %", 100.0 * (often / once - 1.0)))
            .holds("each share is within one row of its part by speed", furthest < 1.0)
            .holds("there is one division", divisions == 1)
            .holds("repeated divisions change less than 0.5 %", (often / once - 1.0).abs() < 0.005),
    )
}

/// A run in which another process takes half of the first node from half of the run on.
fn with_neighbour(size: u64, nodes: usize) -> StepScenario {
    let scenario = scenario(size, nodes, Exchange::Direct);
    let slowed = |(node, series): (usize, &Vec<f64>)| {
        let at = |step: u64| if node == 0 && step >= STEPS / 2 { 2.0 * series[0] } else { series[0] };
        (0..STEPS).map(at).collect()
    };
    let series: Vec<Vec<f64>> = scenario.times.series().iter().enumerate().map(slowed).collect();
    StepScenario { times: Times::Steps(Arc::new(series)), ..scenario }
}

/// What one division misses, and the best policy of Caribou.
pub(super) fn neighbour(context: &Context) -> Section {
    let policies = ["equal", PAPER, "load-factor,every=50", "des", "adaptive"];
    let (size, nodes) = (8000, 8);
    let times = context.each("jacobi-factor, neighbour", 2 * policies.len(), |index| {
        let policy = SUPERSTEPS.parse(policies[index / 2]).expect("it is listed");
        let quiet = scenario(size, nodes, Exchange::Direct);
        let scenario = if index % 2 == 0 { quiet } else { with_neighbour(size, nodes) };
        (scenario.run(&*policy).makespan_s(), scenario.ideal_s())
    });
    let mut table = Grid::new(
        "Seconds, 8000 rows on 8 nodes, exchange `direct`.",
        "policy | quiet | above the ideal % | neighbour from half time | above the ideal %",
    );
    for (policy, of) in policies.iter().zip(times.chunks(2)) {
        let cells =
            of.iter().flat_map(|(s, ideal)| [format!("{s:.3}"), format!("{:.1}", 100.0 * (s / ideal - 1.0))]);
        table.row([format!("`{policy}`")].into_iter().chain(cells));
    }
    table.row([
        "ideal".to_owned(),
        format!("{:.3}", times[0].1),
        String::new(),
        format!("{:.3}", times[1].1),
        String::new(),
    ]);
    let bars = Bars::new("8000 rows, 8 nodes", "time (s)", ["quiet", "with neighbour"]);
    let bars = policies.iter().zip(times.chunks(2)).fold(bars, |bars, (policy, of)| {
        bars.series(policy.split(",look").next().unwrap_or(policy), of.iter().map(|(s, _)| *s))
    });
    let best = (1..policies.len())
        .min_by(|&one, &other| times[2 * one + 1].0.total_cmp(&times[2 * other + 1].0))
        .unwrap_or(1);
    let gain = 100.0 * (1.0 - times[2 * best + 1].0 / times[3].0);
    Section::new(
        "Beyond the paper: a neighbour after the division",
        "Another process takes half of one node from half of the run on. The paper divides once, so the share of that node stays \
         as it was. Caribou's policies measure again.",
    )
    .picture("neighbour", "times of five policies with and without a neighbour", [bars.into()])
    .table(table)
    .best(format!("`{}` takes {gain:.1} % less time than the paper's single division beside this neighbour.", policies[best]))
}
