//! Section 2.2.1: how often to divide.

use presentation::format::decimal;
use virtual_cluster::grid_cluster::{JOBS, SETS};

use super::runs::{Nodes, balanced_every_s};
use crate::paper::Context;
use crate::paper::page::{Claim, Grid, Section};
use crate::statistics::Spread;

/// Numbers of steps between divisions, as multiples of P.
const EVERY: [f64; 6] = [0.25, 1.0, 2.5, 5.0, 10.0, 40.0];

/// The place of the paper's 2.5 P.
const OF_PAPER: usize = 2;

/// Numbers of nodes that are tried.
const PROCESSORS: [usize; 5] = [2, 4, 8, 16, 32];

/// How often to divide (section 2.2.1).
pub(super) fn section(context: &Context) -> Section {
    let steps = context.repetitions(JOBS as u64, 400);
    let (sets, draws) = (SETS.map(|set| Nodes::drawn(set, steps)), context.draws());
    // By draw, then number of nodes and interval.
    let seconds = context.each("dlb-jr, intervals", sets.len() * draws, |index| {
        let (nodes, draw) = (&sets[index / draws], (index % draws) as u64);
        let times = nodes.times(draw);
        let mut seconds = Vec::new();
        for processors in PROCESSORS {
            let scenario = nodes.scenario(&times, processors, 10, draw);
            let every = EVERY.map(|every| (every * processors as f64).round().max(1.0) as u64);
            seconds.extend(every.map(|every| balanced_every_s(&scenario, every).iter().sum::<f64>()));
        }
        seconds
    });
    let mut table = Grid::new(
        "Time of DLB compared with a division every 2.5 P steps, percent more: by the means of the draws, in brackets the middle 90 % of single \
         draws.",
        "set | nodes | P/4 | P | 2.5 P | 5 P | 10 P | 40 P",
    );
    let (mut away, mut sums) = (0.0_f64, [0.0; EVERY.len()]);
    // By row, the multiple of P with the least time, and its number of steps.
    let mut bests: Vec<(usize, f64)> = Vec::new();
    for (of, nodes) in seconds.chunks(draws).zip(&sets) {
        for (row, processors) in PROCESSORS.into_iter().enumerate() {
            let times = |place: usize| of.iter().map(move |draw| draw[row * EVERY.len() + place]);
            let more = |time: f64, paper: f64| 100.0 * (time / paper - 1.0);
            let spreads: [Spread; EVERY.len()] = std::array::from_fn(|place| {
                let each: Vec<f64> =
                    times(place).zip(times(OF_PAPER)).map(|(time, paper)| more(time, paper)).collect();
                Spread::around(more(times(place).sum(), times(OF_PAPER).sum()), &each)
            });
            let least =
                (0..EVERY.len()).min_by(|&one, &other| spreads[one].mean.total_cmp(&spreads[other].mean));
            let least = least.unwrap_or(OF_PAPER);
            bests.push((least, (EVERY[least] * processors as f64).round().max(1.0)));
            away = spreads.iter().map(|spread| -spread.mean).fold(away, f64::max);
            sums.iter_mut().zip(spreads).for_each(|(sum, spread)| *sum += spread.mean);
            let begin = [nodes.name.clone(), processors.to_string()];
            let cell = |(place, spread): (usize, Spread)| {
                if place == OF_PAPER { decimal(0.0, 1) } else { spread.cell(1) }
            };
            table.row(begin.into_iter().chain(spreads.into_iter().enumerate().map(cell)));
        }
    }
    let best = (0..EVERY.len()).min_by(|&one, &other| sums[one].total_cmp(&sums[other])).unwrap_or(0);
    let steps: Vec<String> = bests.iter().map(|(_, steps)| steps.to_string()).collect();
    Section::new("Section 2.2.1: how often to divide", "The paper chose N = 2.5 P from earlier measurements.")
        .table(table)
        .claim(
            Claim::new("A suitable number of steps between divisions is 2.5 P.", "2.5 P")
                .here(format!(
                    "least time in the mean of all rows with {} P; in a row other multiples save at most {} %",
                    EVERY[best],
                    decimal(away, 1)
                ))
                .holds("2.5 P takes the least time in the mean of all rows", best == OF_PAPER)
                .holds("in no row another multiple saves more than 5 %", away < 5.0)
                .holds("2.5 P takes the least time in each row", bests.iter().all(|(least, _)| *least == OF_PAPER))
                .because(format!(
                    "By row, the best intervals have {} steps: they grow less than P does. On 2 nodes 2.5 P is 5 steps, and a division of 37.5 s \
                     every 5 steps costs 7.5 s per step.",
                    steps.join(", ")
                )),
        )
}
