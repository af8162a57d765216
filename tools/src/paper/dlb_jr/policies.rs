//! Beyond the paper: policies of production on the paper's nodes, and on measured hosts.

use presentation::format::decimal;
use virtual_cluster::grid_cluster::{HOSTS, JOBS, job_times};

use super::grids::Grids;
use super::runs::{Nodes, Source, Task, Times, What, copies};
use super::{ADAPTIVE, CHOICE, COPIES, DES};
use crate::paper::Context;
use crate::paper::page::{Grid, Section};
use crate::statistics::{Spread, mean};

/// Samples of a measured host, one each 300 s: a day.
const SAMPLES: u64 = 288;
const SAMPLE_NS: u64 = 300_000_000_000;
/// The least part of a vCPU that counts as left on a measured host.
const FLOORS: [f64; 3] = [0.05, 0.1, 0.2];

/// What is above tables of policies.
const CAPTION: &str =
    "Speedup over equal shares at a ratio of 0.01: means, in brackets the middle 90 % of the draws.";

/// Columns of tables of policies, after the number of nodes.
const POLICY_HEADS: &str =
    "DLB | best copies | `des` | `replicate`, 4 | `dlb-jr` | `adaptive` | `dlb-jr` above the better %";

fn policy_cells(times: &Times, nodes: usize, processors: usize) -> Vec<String> {
    let speedups = |what| times.speedups(nodes, 10, processors, what);
    let best = times.best_copies(nodes, 10, processors);
    let all = [What::Balanced, What::Copies(best), DES, COPIES, CHOICE, ADAPTIVE].map(speedups);
    let off = 100.0 * (all[2].mean.max(all[3].mean) / all[4].mean - 1.0);
    all.into_iter().map(|speedup| speedup.cell(2)).chain([decimal(off, 1)]).collect()
}

/// The policies of Caribou on the same job times.
pub(super) fn own_policies(grids: &Grids) -> Section {
    let mut table = Grid::new(CAPTION, &format!("set | nodes | {POLICY_HEADS}"));
    grids.rows(&mut table, true, |set, processors| policy_cells(&grids.times, set, processors));
    let (mut ahead, mut worst, rows) = (0, f64::NEG_INFINITY, grids.settings().count());
    for (set, processors) in grids.settings() {
        let speedup = |what| grids.times.speedup(set, 10, processors, what);
        let paper = speedup(What::Balanced).max(speedup(grids.best(set, 10, processors)));
        let own = [DES, COPIES, CHOICE, ADAPTIVE].map(speedup).into_iter().fold(0.0, f64::max);
        ahead += usize::from(own > paper);
        worst = f64::max(worst, 100.0 * (speedup(DES).max(speedup(COPIES)) / speedup(CHOICE) - 1.0));
    }
    // The best achievable speedup of each draw: all nodes always computing.
    let bounds: Vec<f64> = (0..grids.draws as u64)
        .map(|draw| {
            let nodes = &grids.nodes[1];
            let scenario = nodes.scenario(&nodes.times(draw), 16, 10, draw);
            grids.times.draws(Task { nodes: 1, ratio: 10, processors: 16, what: What::Copies(1) })
                [draw as usize]
                / scenario.ideal_s()
        })
        .collect();
    let bound = Spread::of(&bounds).cell(1);
    Section::new(
        "Beyond the paper: the policies of Caribou",
        "In the paper all nodes of a group begin with the same job, so R copies take R jobs of the fastest node of each group. In Caribou each node \
         begins with its own job and helps with others only when it is done. Copies then cost nothing among equal nodes.",
    )
    .table(table)
    .best(format!(
        "on {ahead} of {rows} numbers of nodes the best policy of Caribou is faster than the best method of the paper. `dlb-jr` is at most {} % slower \
         than the better of `des` and four copies. The best achievable speedup on 16 nodes of set two, all nodes always computing, is {bound}.",
        decimal(worst.max(0.0), 1)
    ))
}

/// Nodes with the job times of measured hosts, or of the model fitted to them.
fn host_nodes(context: &Context) -> Vec<Nodes> {
    let steps = context.repetitions(JOBS as u64, 400);
    let mut nodes = vec![Nodes { by_step: true, ..Nodes::drawn(HOSTS, steps) }];
    let samples =
        |host: &virtual_cluster::Series| (0..SAMPLES).map(|sample| host.at(sample * SAMPLE_NS).0).collect();
    let left: Vec<Vec<f64>> = context.hosts.iter().map(samples).collect();
    for floor in FLOORS.into_iter().filter(|_| !left.is_empty()) {
        nodes.push(Nodes {
            name: format!("{} measured, floor {floor}", left.len()),
            source: Source::Measured(job_times(&left, floor)),
            by_step: true,
            steps,
        });
    }
    nodes
}

/// Mean job time, and deviations of its logarithm between and within nodes, of the first samples of a draw.
fn statistics(nodes: &Nodes) -> [f64; 3] {
    let times = nodes.times(0);
    let of_node = |times: &Vec<f64>| {
        let logs: Vec<f64> = times.iter().take(SAMPLES as usize).map(|time| time.ln()).collect();
        let level = mean(&logs);
        (level, logs.iter().map(|log| (log - level).powi(2)).sum::<f64>() / logs.len() as f64)
    };
    let (levels, within): (Vec<f64>, Vec<f64>) = times.iter().map(of_node).unzip();
    let level = mean(&levels);
    let between = mean(&levels.iter().map(|one| (one - level).powi(2)).collect::<Vec<_>>());
    [mean(&times.iter().map(|times| mean(times)).collect::<Vec<_>>()), between.sqrt(), mean(&within).sqrt()]
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
    let times = Times::run(context, "dlb-jr, hosts", &nodes, &tasks, context.draws());
    let mut sizes = Grid::new(
        "Job times of the nodes.",
        "nodes | mean s | deviation of the logarithm between nodes | within nodes",
    );
    let mut table = Grid::new(CAPTION, &format!("job times | nodes | {POLICY_HEADS}"));
    for (place, of) in nodes.iter().enumerate() {
        let [mean, between, within] = statistics(of);
        sizes.row([of.name.clone(), format!("{mean:.1}"), format!("{between:.2}"), format!("{within:.2}")]);
        for &processors in processors {
            let begin = [of.name.clone(), processors.to_string()];
            table.row(begin.into_iter().chain(policy_cells(&times, place, processors)));
        }
    }
    let gain = |processors: usize| times.speedup(0, 10, processors, What::Balanced);
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
