//! What goes beyond the figures of the paper: the network behind its speedups, the fixed point of load factors, and a
//! neighbour that comes after the division.

use std::sync::Arc;

use lb_strategies::SUPERSTEPS;
use presentation::bars::Bars;
use virtual_cluster::jacobi_cluster::{NODES, SIZES, SPEEDUPS, STEPS, scenario, serial_s};
use virtual_cluster::{Exchange, StepScenario, Times};

use super::runs::{PAPER, Program, iteration_s, run};
use crate::paper::Context;
use crate::paper::page::{Claim, Grid, Section};
use crate::paper::text;

/// Ways in which an MPI library may do `MPI_Allgatherv`.
const WAYS: [(&str, Exchange); 4] = [
    ("by doubling, as on this page", Exchange::Doubling),
    ("a ring", Exchange::Ring),
    ("each node to all others", Exchange::Direct),
    ("over the first node", Exchange::Gather),
];

/// Places of ways that claims name.
const DOUBLING: usize = 0;
const RING: usize = 1;

/// Delays tried, in ascending order, s: 40 per power of ten, from 0.1 to 300 us.
fn delays_s() -> impl Iterator<Item = f64> {
    (0..140).map(|place| 1e-7 * 10f64.powf(f64::from(place) / 40.0))
}

/// The greatest speedup of each size, and its number of nodes, by equation 1 with shares by speed.
fn greatest(exchange: Exchange, delay_s: f64) -> [(f64, usize); 3] {
    SIZES.map(|size| {
        let speedups = NODES.map(|nodes| {
            (serial_s(size) / STEPS as f64 / iteration_s(size, nodes, exchange, delay_s), nodes)
        });
        speedups.into_iter().max_by(|one, other| one.0.total_cmp(&other.0)).unwrap_or_default()
    })
}

/// The largest difference to the paper's speedups, as a part of them.
fn off(greatest: &[(f64, usize); 3]) -> f64 {
    greatest.iter().zip(SPEEDUPS).map(|((here, _), paper)| (here / paper - 1.0).abs()).fold(0.0, f64::max)
}

/// Which kind of exchange gives the three speedups of the paper, each with the delay that suits it best.
pub(super) fn network(context: &Context) -> Section {
    let fits = context.each("jacobi-factor, networks", WAYS.len(), |way| {
        let tried = delays_s().map(|delay_s| (delay_s, greatest(WAYS[way].1, delay_s)));
        tried.min_by(|one, other| off(&one.1).total_cmp(&off(&other.1))).expect("some delay is tried")
    });
    let mut table = Grid::new(
        "Greatest speedup and its number of nodes, with the delay that comes closest to all three numbers of the paper.",
        "`MPI_Allgatherv` | delay us | 4000 rows | 6000 rows | 8000 rows | largest difference",
    );
    let paper = SPEEDUPS.map(|speedup| format!("{speedup:.2}"));
    table.row(["the paper".to_owned(), String::new()].into_iter().chain(paper).chain([String::new()]));
    for ((name, _), (delay_s, greatest)) in WAYS.iter().zip(&fits) {
        let cells = greatest.map(|(speedup, nodes)| format!("{speedup:.2} ({nodes})"));
        let begin = [(*name).to_owned(), format!("{:.1}", 1e6 * delay_s)];
        table.row(begin.into_iter().chain(cells).chain([format!("{:.0} %", 100.0 * off(greatest))]));
    }
    let ring = Ring::new(fits[RING].0);
    let [off_doubling, off_ring] = [DOUBLING, RING].map(|way| 100.0 * off(&fits[way].1));
    let speedups = fits[RING].1.map(|(speedup, _)| speedup);
    let iterations_us = SIZES.map(|size| 1e6 * serial_s(size) / STEPS as f64);
    let of_paper: Vec<f64> =
        iterations_us.iter().zip(SPEEDUPS).map(|(serial, speedup)| serial / speedup).collect();
    let of_ring: Vec<f64> =
        iterations_us.iter().zip(speedups).map(|(serial, speedup)| serial / speedup).collect();
    let (all, falling, falling_early) = (SIZES.len(), ring.falling(), ring.falling_from_the_first());
    let (faster, as_fast, settings) = ring.against_sendrecv();
    let checks = [
        Claim::new(
            "The three greatest speedups are those of a ring; its delay is fitted.",
            "9.54, 12.38, 15.40",
        )
        .here(format!(
            "{}; off by {off_ring:.0} % at most, by doubling {off_doubling:.0} %",
            text(speedups, 2)
        ))
        .holds("less than half as far off as doubling", off_ring < 0.5 * off_doubling)
        .holds("all three within 10 %", off_ring < 10.0),
        Claim::new("With a ring, the speedup decreases as the number of nodes increases.", "plot only")
            .here(format!(
                "greatest on {} nodes",
                fits[RING].1.map(|(_, nodes)| nodes.to_string()).join(", ")
            ))
            .holds("each size falls with each number of nodes beyond the best one, to 64", falling == all)
            .holds("each size falls from 4 nodes on", falling_early == all),
        Claim::new("A ring is the best of the three exchanges.", "\"the best scenario\"")
            .here(format!("faster than sendrecv in {faster} of {settings} settings, as fast in {as_fast}"))
            .holds(format!("faster than sendrecv in all {settings} settings"), faster == settings),
    ];
    Section::new(
        "The network behind the three speedups",
        format!(
            "The paper does not say how its `MPI_Allgatherv` sends, and libraries differ. Only this way and the delay of a message are varied \
             here. Both tables are computed by equation 1, with shares in proportion to speed; they are not simulated.\n\n\
             The paper states no time of an iteration. The serial times of this model, on an assumed node of 40 GFlop/s, over the paper's \
             speedups give {} us. The best iterations of the ring take {} us. The former grow by the same time per 1000 rows, as sends do; \
             computing grows with the square.\n\n\
             Up to the best number of nodes, computing shrinks by more than the messages of the ring add. A ring takes the P - 1 rounds \
             that sendrecv takes. So it explains the size of the speedups, and not the order of the exchanges.",
            text(of_paper, 0),
            text(of_ring, 0)
        ),
    )
    .table(table)
    .table(checked(&checks))
}

/// A table of checks that are not statements of the paper, so that they do not count among them.
fn checked(checks: &[Claim]) -> Grid {
    let mut table = Grid::new(
        "What a ring would explain. These are checks of this page, not statements of the paper, and are not counted.",
        "check | the paper | here | result | holds | does not hold",
    )
    .words(6);
    for check in checks {
        let list = |wanted: bool| {
            let of = check.conditions.iter().filter(|(_, holds)| *holds == wanted);
            of.map(|(text, _)| text.as_str()).collect::<Vec<_>>().join("; ")
        };
        table.row([
            check.text.clone(),
            check.paper.clone(),
            check.here.clone(),
            check.verdict().word().to_owned(),
            list(true),
            list(false),
        ]);
    }
    table
}

/// The speedups of an allgatherv in a ring by equation 1, by size and number of nodes.
struct Ring {
    delay_s: f64,
    speedups: [[f64; NODES.len()]; SIZES.len()],
}

impl Ring {
    fn new(delay_s: f64) -> Self {
        let speedup =
            |size, nodes| serial_s(size) / STEPS as f64 / iteration_s(size, nodes, Exchange::Ring, delay_s);
        Self { delay_s, speedups: SIZES.map(|size| NODES.map(|nodes| speedup(size, nodes))) }
    }

    /// The number of sizes whose speedup falls with each number of nodes beyond the best one, and falls at all.
    fn falling(&self) -> usize {
        let falls = |of: &&[f64; NODES.len()]| {
            let best = (0..NODES.len()).max_by(|&one, &other| of[one].total_cmp(&of[other])).unwrap_or(0);
            best + 1 < NODES.len() && of[best..].windows(2).all(|pair| pair[1] < pair[0])
        };
        self.speedups.iter().filter(falls).count()
    }

    /// The number of sizes whose speedup falls from the fewest nodes on.
    fn falling_from_the_first(&self) -> usize {
        self.speedups.iter().filter(|of| of.windows(2).all(|pair| pair[1] < pair[0])).count()
    }

    /// The numbers of settings in which the ring is faster than `MPI_Sendrecv` and as fast, and of all settings.
    fn against_sendrecv(&self) -> (usize, usize, usize) {
        let settings = SIZES.into_iter().flat_map(|size| NODES.map(|nodes| (size, nodes)));
        let more: Vec<f64> = settings
            .map(|(size, nodes)| {
                let of = |exchange| iteration_s(size, nodes, exchange, self.delay_s);
                of(Program::Pairs.exchange()) / of(Exchange::Ring) - 1.0
            })
            .collect();
        let count = |test: fn(&&f64) -> bool| more.iter().filter(test).count();
        (count(|more| **more > 1e-9), count(|more| more.abs() <= 1e-9), more.len())
    }
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
    let again = format!("{PAPER},every=50");
    let policies = ["equal", PAPER, &again, "des", "adaptive"];
    let names = ["equal", "load-factor once", "load-factor every 50", "des", "adaptive"];
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
    let bars = names
        .iter()
        .zip(times.chunks(2))
        .fold(bars, |bars, (name, of)| bars.series(*name, of.iter().map(|(s, _)| *s)));
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
