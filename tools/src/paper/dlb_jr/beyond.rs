//! What goes beyond the figures: policies of production, other intervals between divisions, send times that differ, and job
//! times of measured hosts.

use std::f64::consts::PI;

use lb_strategies::SUPERSTEPS;
use presentation::format::decimal;
use virtual_cluster::grid_cluster::{HOSTS, JOBS, JobTimeModel, SETS, job_times, paper_copies_s};

use super::figures::{exponential, least_at};
use super::runs::{Means, Nodes, Task, What, balanced_every_s, copies, periods};
use super::{ADAPTIVE, CHOICE, COPIES, DES, Grids, figure_2};
use crate::paper::Context;
use crate::paper::page::{Claim, Grid, Section};

/// Samples of a measured host, one each 300 s: a day.
const SAMPLES: u64 = 288;
const SAMPLE_NS: u64 = 300_000_000_000;
/// The least part of a vCPU that counts as left on a measured host.
const FLOORS: [f64; 3] = [0.05, 0.1, 0.2];

/// Columns of tables of policies, after the number of nodes.
const POLICY_HEADS: &str =
    "DLB | best copies | `des` | `replicate`, 4 | `dlb-jr` | `adaptive` | `dlb-jr` above the better %";

fn policy_cells(means: &Means, nodes: usize, processors: usize) -> Vec<String> {
    let speedup = |what| means.speedup(nodes, 10, processors, what);
    let best = means.best_copies(nodes, 10, processors).0;
    let speedups = [What::Balanced, What::Copies(best), DES, COPIES, CHOICE, ADAPTIVE].map(speedup);
    let off = 100.0 * (speedups[2].max(speedups[3]) / speedups[4] - 1.0);
    speedups.iter().map(|speedup| format!("{speedup:.2}")).chain([decimal(off, 1)]).collect()
}

/// The policies of Caribou on the same job times.
pub(super) fn own_policies(grids: &Grids) -> Section {
    let mut table =
        Grid::new("Speedup over equal shares at a ratio of 0.01.", &format!("set | nodes | {POLICY_HEADS}"));
    let (mut ahead, mut rows, mut worst) = (0, 0, f64::NEG_INFINITY);
    for set in 0..grids.nodes.len() {
        for processors in grids.processors(set).into_iter().filter(|&processors| processors > 1) {
            let speedup = |what| grids.means.speedup(set, 10, processors, what);
            let paper = speedup(What::Balanced)
                .max(speedup(What::Copies(grids.means.best_copies(set, 10, processors).0)));
            let own = [DES, COPIES, CHOICE, ADAPTIVE].map(speedup).into_iter().fold(0.0, f64::max);
            ahead += usize::from(own > paper);
            rows += 1;
            worst = f64::max(worst, 100.0 * (speedup(DES).max(speedup(COPIES)) / speedup(CHOICE) - 1.0));
            let begin = [grids.nodes[set].name.clone(), processors.to_string()];
            table.row(begin.into_iter().chain(policy_cells(&grids.means, set, processors)));
        }
    }
    let scenario = grids.nodes[1].scenario(16, 10, 0);
    let equal = scenario.run(&*SUPERSTEPS.parse("equal").expect("it is listed")).makespan_s();
    let bound = equal / scenario.ideal_s();
    Section::new(
        "Beyond the paper: the policies of Caribou",
        "In the paper all nodes of a group begin with the same job, so R copies take R jobs of the fastest node of each group. In Caribou each node \
         begins with its own job and helps with others only when it is done. Copies then cost nothing among equal nodes.",
    )
    .table(table)
    .best(format!(
        "on {ahead} of {rows} numbers of nodes the best policy of Caribou is faster than the best method of the paper. `dlb-jr` is at most {} % slower \
         than the better of `des` and four copies. The bound on one set of 16 nodes of set two, all nodes always computing, is a speedup of {bound:.1}.",
        decimal(worst.max(0.0), 1)
    ))
}

/// Numbers of steps between divisions, as multiples of P.
const EVERY: [f64; 6] = [0.25, 1.0, 2.5, 5.0, 10.0, 40.0];

/// The place of the paper's 2.5 P.
const OF_PAPER: usize = 2;

/// How often to divide (section 2.2.1).
pub(super) fn intervals(context: &Context) -> Section {
    let steps = context.repetitions(JOBS as u64, 400);
    let sets = SETS.map(|set| Nodes { name: set.name.to_owned(), times: set.draw(1), by_step: false, steps });
    let (processors, runs) = ([2, 4, 16], context.repetitions(10, 2) as usize);
    let per_row = EVERY.len() * runs;
    let seconds = context.each("dlb-jr, intervals", sets.len() * processors.len() * per_row, |index| {
        let (row, rest) = (index / per_row, index % per_row);
        let processors = processors[row % 3];
        let every = (EVERY[rest / runs] * processors as f64).round().max(1.0) as u64;
        balanced_every_s(&sets[row / 3].scenario(processors, 10, (rest % runs) as u64), every)
            .iter()
            .sum::<f64>()
    });
    let mut table = Grid::new(
        "Time of DLB compared with a division every 2.5 P steps, percent more.",
        "set | nodes | P/4 | P | 2.5 P | 5 P | 10 P | 40 P",
    );
    let (mut away, mut sums) = (0.0_f64, [0.0; EVERY.len()]);
    for (row, of) in seconds.chunks(per_row).enumerate() {
        let times: Vec<f64> = of.chunks(runs).map(|runs| runs.iter().sum::<f64>()).collect();
        let more = |time: &f64| 100.0 * (time / times[OF_PAPER] - 1.0);
        away = away.max(-times.iter().map(more).fold(0.0, f64::min));
        sums.iter_mut().zip(&times).for_each(|(sum, time)| *sum += more(time));
        let begin = [sets[row / 3].name.clone(), processors[row % 3].to_string()];
        table.row(begin.into_iter().chain(times.iter().map(|time| decimal(more(time), 1))));
    }
    let best = (0..EVERY.len()).min_by(|&one, &other| sums[one].total_cmp(&sums[other])).unwrap_or(0);
    Section::new("Section 2.2.1: how often to divide", "The paper chose N = 2.5 P from earlier measurements.")
        .table(table)
        .claim(
            Claim::new("A suitable number of steps between divisions is 2.5 P.", "2.5 P")
                .here(format!("least time in the mean with {} P; elsewhere other multiples save at most {} %", EVERY[best], decimal(away, 1)))
                .holds("2.5 P takes the least time in the mean of all rows", best == OF_PAPER)
                .holds("in no row another multiple saves more than 5 %", away < 5.0)
                .because("On 2 nodes 2.5 P is 5 steps, and a division of 37.5 s every 5 steps costs 7.5 s per step."),
        )
}

/// How much longer the longest of so many sends takes than the mean send.
type Longest = fn(usize) -> f64;

/// Ways in which sends differ.
const SENDS: [(&str, Longest); 4] = [
    ("equal", |_| 1.0),
    ("uniform from 0 to twice the mean", uniform),
    ("Rayleigh", rayleigh),
    ("exponential", exponential),
];

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
        let balanced = [250, 500].map(|ratio| grids.waiting_h(set, ratio, |_| What::Balanced, longest));
        let copied =
            [250, 500].map(|ratio| grids.waiting_h(set, ratio, |of| grids.best(set, ratio, of), longest));
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
            let cells = columns.iter().map(|column| format!("{:.2}", column[place]));
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
    let runs = context.repetitions(10, 2);
    let rows: Vec<(usize, usize, u32)> = (0..grids.nodes.len())
        .flat_map(|set| [4, 16].map(|processors| (set, processors)))
        .flat_map(|(set, processors)| [250, 500].map(|ratio| (set, processors, ratio)))
        .collect();
    let saved = context.each("dlb-jr, messages", rows.len() * MESSAGES.len(), |index| {
        let (set, processors, ratio) = rows[index / MESSAGES.len()];
        let part = MESSAGES[index % MESSAGES.len()];
        let mut seconds = vec![0.0; copies(processors).count()];
        for run in 0..runs {
            let mut scenario = grids.nodes[set].scenario(processors, ratio, run);
            scenario.program.notify_s = part * scenario.program.link.delay_s;
            let times = copies(processors).map(|copies| paper_copies_s(&scenario, copies));
            seconds.iter_mut().zip(times).for_each(|(sum, time)| *sum += time);
        }
        100.0 * (1.0 - seconds.iter().copied().fold(f64::INFINITY, f64::min) / seconds[0])
    });
    let mut table = Grid::new(
        "Percent of the time of equal shares that the best number of copies saves; 0 if no number pays.",
        "set | nodes | ratio | message of 0.2 of a send | 0.4, as measured | 0.8 | 1.6",
    );
    for (&(set, processors, ratio), of) in rows.iter().zip(saved.chunks(MESSAGES.len())) {
        let begin = [
            grids.nodes[set].name.clone(),
            processors.to_string(),
            format!("{:.2}", f64::from(ratio) / 1000.0),
        ];
        table.row(begin.into_iter().chain(of.iter().map(|it| decimal(*it, 1))));
    }
    Section::new(
        "The message that a job is finished",
        "Only the time of this message is varied. The paper measured 300 ms in the mean, 0.4 of a send, but each node of a group waits for \
         its own link, and the slowest counts.",
    )
    .table(table)
}

/// The constants of set two, one at a time, and in words what nodes that differ more change.
pub(super) fn constants(context: &Context) -> (Section, String) {
    let two = SETS[1];
    let models = [
        ("as fitted", two),
        ("nodes differ by 0.8", JobTimeModel { between: 0.8, ..two }),
        ("nodes differ by 1.5", JobTimeModel { between: 1.5, ..two }),
        ("no slow changes", JobTimeModel { slow: (0.0, 1.0), ..two }),
        ("slow changes over 200 jobs", JobTimeModel { slow: (two.slow.0, 200.0), ..two }),
        ("fast changes half as large", JobTimeModel { within: two.within / 2.0, ..two }),
        ("fast changes without memory", JobTimeModel { memory: 0.0, ..two }),
        ("no bursts", JobTimeModel { burst: (0.0, 1.0, 1.0), ..two }),
        ("other nodes (seed 2)", two),
    ];
    let steps = context.repetitions(JOBS as u64, 400);
    let nodes: Vec<Nodes> = models
        .iter()
        .enumerate()
        .map(|(place, (name, model))| {
            let seed = if place + 1 == models.len() { 2 } else { 1 };
            Nodes { name: (*name).to_owned(), times: model.draw(seed), by_step: false, steps }
        })
        .collect();
    let wanted: &[usize] = if context.quick { &[4] } else { &[4, 16, 64] };
    let mut tasks = Vec::new();
    for &processors in wanted {
        for place in 0..nodes.len() {
            let task = |what| Task { nodes: place, ratio: 10, processors, what };
            tasks.extend(copies(processors).map(|copies| task(What::Copies(copies))));
            tasks.push(task(What::Balanced));
        }
    }
    let means = Means::run(context, "dlb-jr, constants", &nodes, &tasks, context.repetitions(10, 1));
    let runs = context.repetitions(20, 3) as usize;
    let periods = context.each("dlb-jr, constants, figure 2", nodes.len() * runs, |index| {
        periods(&nodes[index / runs].scenario(4, 10, (index % runs) as u64), 4)
    });
    let mut table = Grid::new(
        "Lines of figure 2 in ms. Speedups over equal shares by DLB, by 4 copies, and the best number of copies with its speedup.",
        "job times | DLB | 4 copies | Y* | 4 nodes | 16 nodes | 64 nodes",
    )
    .words(3);
    for (place, of) in nodes.iter().enumerate() {
        let lines = figure_2::lines(&periods[place * runs..(place + 1) * runs].concat());
        let [balanced, copied] = lines.map(|line| format!("{:.2} Y {:+.0}", line.slope, line.intercept));
        let speedups = |processors: &usize| {
            let (best, seconds) = means.best_copies(place, 10, *processors);
            let [balanced, four] =
                [What::Balanced, What::Copies(4)].map(|what| means.speedup(place, 10, *processors, what));
            let best_speedup = means.s(place, 10, *processors, What::Copies(1)) / seconds;
            format!("{balanced:.1}, {four:.1}, R = {best}: {best_speedup:.1}")
        };
        let threshold = figure_2::equal_at(&lines);
        let threshold = if threshold > 0.0 { format!("{threshold:.0}") } else { "none".to_owned() };
        table.row(
            [of.name.clone(), balanced, copied, threshold].into_iter().chain(wanted.iter().map(speedups)),
        );
    }
    let section = Section::new(
        "The constants of the drawn job times",
        "The job times of the paper are not public. These are those of set two, with one constant changed at a time. The paper has the lines \
         1.28 Y + 7157 and 2.05 Y + 1224, a threshold of 7708 ms, copies that win on 4 nodes, and DLB on more. Other nodes drawn with the same \
         constants (last row) change speedups as much as any constant does, because a few very slow nodes determine equal shares.",
    );
    let most = *wanted.last().unwrap_or(&4).min(&16);
    let (wide, speedup) = (2, |processors, what| means.speedup(2, 10, processors, what));
    let words = format!(
        "With nodes that differ by {} instead of {}, copies are {:.1} times as fast as equal shares on 4 nodes (DLB {:.1}), and {:.1} times on {most} \
         nodes: see [the constants](#the-constants-of-the-drawn-job-times). The line of copies is then less steep than in figure 2.",
        models[wide].1.between,
        two.between,
        speedup(4, What::Copies(4)),
        speedup(4, What::Balanced),
        speedup(most, What::Copies(means.best_copies(wide, 10, most).0))
    );
    (section.table(table), words)
}

/// Nodes with the job times of measured hosts, or of the model fitted to them.
fn host_nodes(context: &Context) -> Vec<Nodes> {
    let steps = context.repetitions(JOBS as u64, 400);
    let mut nodes = vec![Nodes { name: HOSTS.name.to_owned(), times: HOSTS.draw(1), by_step: true, steps }];
    let samples =
        |host: &virtual_cluster::Series| (0..SAMPLES).map(|sample| host.at(sample * SAMPLE_NS).0).collect();
    let left: Vec<Vec<f64>> = context.hosts.iter().map(samples).collect();
    for floor in FLOORS.into_iter().filter(|_| !left.is_empty()) {
        nodes.push(Nodes {
            name: format!("{} measured, floor {floor}", left.len()),
            times: job_times(&left, floor),
            by_step: true,
            steps,
        });
    }
    nodes
}

/// Mean job time, and deviations of its logarithm between and within nodes, of the first samples.
fn statistics(nodes: &Nodes) -> [f64; 3] {
    let all = |of: &[f64]| of.iter().sum::<f64>() / of.len().max(1) as f64;
    let of_node = |times: &Vec<f64>| {
        let logs: Vec<f64> = times.iter().take(SAMPLES as usize).map(|time| time.ln()).collect();
        let level = all(&logs);
        (level, logs.iter().map(|log| (log - level).powi(2)).sum::<f64>() / logs.len() as f64)
    };
    let (levels, within): (Vec<f64>, Vec<f64>) = nodes.times.iter().map(of_node).unzip();
    let (mean, level) = (all(&nodes.times.iter().map(|times| all(times)).collect::<Vec<_>>()), all(&levels));
    let between = all(&levels.iter().map(|one| (one - level).powi(2)).collect::<Vec<_>>());
    [mean, between.sqrt(), all(&within).sqrt()]
}

/// Job times from the CPU use of hosts.
pub(super) fn hosts(context: &Context) -> Section {
    let nodes = host_nodes(context);
    let processors: &[usize] = if context.quick { &[2, 8] } else { &[2, 4, 8, 16, 32] };
    let mut tasks = Vec::new();
    for (place, _) in nodes.iter().enumerate() {
        for &processors in processors {
            let task = |what| Task { nodes: place, ratio: 10, processors, what };
            tasks.extend(copies(processors).map(|copies| task(What::Copies(copies))));
            tasks.extend([What::Balanced, DES, COPIES, CHOICE, ADAPTIVE].map(task));
        }
    }
    tasks.sort_by_key(|task| task.processors);
    let means = Means::run(context, "dlb-jr, hosts", &nodes, &tasks, context.repetitions(10, 1));
    let mut sizes = Grid::new(
        "Job times of the nodes.",
        "nodes | mean s | deviation of the logarithm between nodes | within nodes",
    );
    let mut table = Grid::new(
        "Speedup over equal shares at a ratio of 0.01.",
        &format!("job times | nodes | {POLICY_HEADS}"),
    );
    for (place, of) in nodes.iter().enumerate() {
        let [mean, between, within] = statistics(of);
        sizes.row([of.name.clone(), format!("{mean:.1}"), format!("{between:.2}"), format!("{within:.2}")]);
        for &processors in processors {
            let begin = [of.name.clone(), processors.to_string()];
            table.row(begin.into_iter().chain(policy_cells(&means, place, processors)));
        }
    }
    let gain = |processors: usize| means.speedup(0, 10, processors, What::Balanced);
    let few = processors[0];
    Section::new(
        "Beyond the paper: hosts measured in 2011",
        format!(
            "CPU use of hosts of the same test bed, five years later (Park and Pai, 2006; Beloglazov and Buyya, 2012). A job of 10 s takes 10 s over the \
             part of the vCPU that is left. The first rows are a model fitted to 1052 hosts of 3 March 2011; `--hosts-trace` adds the hosts of a trace. \
             They are far less busy than the paper's nodes: jobs take 12.7 s instead of 65 s. DLB is then {:.2} times as fast as equal shares on {few} \
             nodes, since each division takes as long as three jobs, and the order of methods is not the paper's.",
            gain(few)
        ),
    )
    .table(sizes)
    .table(table)
}
