//! Beyond the paper: send times that differ between nodes, and the time of the message that a job is finished.

use std::f64::consts::PI;

use presentation::format::decimal;
use virtual_cluster::grid_cluster::paper_copies_s;

use super::grids::{Grids, HIGH_RATIOS, least_at};
use super::runs::{What, copies};
use crate::paper::Context;
use crate::paper::page::{Grid, Section};

/// How much longer the longest of so many sends takes than the mean send.
type Longest = fn(usize) -> f64;

/// Ways in which sends differ.
const SENDS: [(&str, Longest); 4] = [
    ("equal", |_| 1.0),
    ("uniform from 0 to twice the mean", uniform),
    ("Rayleigh", rayleigh),
    ("exponential", exponential),
];

/// The longest of `count` exponentially distributed times with mean 1, in the mean.
pub(super) fn exponential(count: usize) -> f64 {
    (1..=count).map(|place| 1.0 / place as f64).sum()
}

fn uniform(count: usize) -> f64 {
    2.0 * count as f64 / (count as f64 + 1.0)
}

/// The integral of the probability that the longest of `count` is longer than x.
fn rayleigh(count: usize) -> f64 {
    let longer = |x: f64| 1.0 - (1.0 - (-PI * x * x / 4.0).exp()).powi(count as i32);
    (0..1000).map(|place| 0.01 * longer(0.01 * (f64::from(place) + 0.5))).sum()
}

/// What changes if a step waits for the slowest of as many sends as there are nodes.
pub(super) fn send_times(grids: &Grids) -> Section {
    let columns = |set: usize, longest: Longest| {
        let balanced = HIGH_RATIOS.map(|ratio| grids.waiting_h(set, ratio, |_| What::Balanced, longest));
        let copied =
            HIGH_RATIOS.map(|ratio| grids.waiting_h(set, ratio, |of| grids.best(set, ratio, of), longest));
        [balanced, copied].concat()
    };
    let heads = "sends | set | DLB, 0.25 | DLB, 0.50 | copies, 0.25 | copies, 0.50";
    let mut least = Grid::new("The number of nodes with the least time.", heads).words(2);
    for (name, longest) in SENDS {
        for set in 0..grids.nodes.len() {
            let cells = columns(set, longest)
                .into_iter()
                .map(|times| least_at(&grids.processors(set), &times).to_string());
            least.row([name.to_owned(), grids.nodes[set].name.clone()].into_iter().chain(cells));
        }
    }
    let heads = "set | nodes | DLB, 0.25 | DLB, 0.50 | copies, 0.25 | copies, 0.50";
    let mut table = Grid::new("Hours with exponential sends.", heads);
    for set in 0..grids.nodes.len() {
        let columns = columns(set, exponential);
        for (place, processors) in grids.processors(set).into_iter().enumerate() {
            let cells = columns.iter().map(|column| format!("{:.3}", column[place]));
            table.row([grids.nodes[set].name.clone(), processors.to_string()].into_iter().chain(cells));
        }
    }
    Section::new(
        "Send times that differ between nodes",
        "The paper found that a step waits for the slowest of all sends. These are the same runs if the sends of the nodes differ, with the \
         same mean, and a step waits for the longest of P.",
    )
    .table(least)
    .table(table)
}

/// Times of the message that a job is finished, as parts of a send.
const MESSAGES: [f64; 4] = [0.2, 0.4, 0.8, 1.6];

/// At which time of this message copies stop to pay.
pub(super) fn messages(context: &Context, grids: &Grids) -> Section {
    let rows: Vec<(usize, usize, u32)> = (0..grids.nodes.len())
        .flat_map(|set| [4, 16].map(|processors| (set, processors)))
        .flat_map(|(set, processors)| HIGH_RATIOS.map(|ratio| (set, processors, ratio)))
        .collect();
    let numbers: Vec<usize> = copies(16).collect();
    // By draw, then row, time of the message and number of copies.
    let seconds = context.each("dlb-jr, messages", grids.draws, |draw| {
        let times: Vec<_> = grids.nodes.iter().map(|nodes| nodes.times(draw as u64)).collect();
        let mut seconds = Vec::new();
        for &(set, processors, ratio) in &rows {
            let mut scenario = grids.nodes[set].scenario(&times[set], processors, ratio, draw as u64);
            for part in MESSAGES {
                scenario.program.notify_s = part * scenario.program.link.delay_s;
                let time = |&copies: &usize| {
                    if copies <= processors { paper_copies_s(&scenario, copies) } else { f64::INFINITY }
                };
                seconds.extend(numbers.iter().map(time));
            }
        }
        seconds
    });
    let total = |place: usize| seconds.iter().map(|of| of[place]).sum::<f64>();
    let saved = |row: usize, message: usize| {
        let first = (row * MESSAGES.len() + message) * numbers.len();
        let best = (0..numbers.len()).map(|copies| total(first + copies)).fold(f64::INFINITY, f64::min);
        100.0 * (1.0 - best / total(first))
    };
    let mut table = Grid::new(
        "Percent of the time of equal shares that the best number of copies saves; 0 if no number pays.",
        "set | nodes | ratio | message of 0.2 of a send | 0.4, as measured | 0.8 | 1.6",
    );
    for (row, &(set, processors, ratio)) in rows.iter().enumerate() {
        let begin = [
            grids.nodes[set].name.clone(),
            processors.to_string(),
            format!("{:.2}", f64::from(ratio) / 1000.0),
        ];
        let cells = (0..MESSAGES.len()).map(|message| decimal(saved(row, message), 1));
        table.row(begin.into_iter().chain(cells));
    }
    Section::new(
        "The message that a job is finished",
        "Only the time of this message is varied. The paper measured 300 ms in the mean, 0.4 of a send, but each node of a group waits for \
         its own link, and the slowest counts.",
    )
    .table(table)
}
