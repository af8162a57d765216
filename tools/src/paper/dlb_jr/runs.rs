//! Runs programs on the nodes of a grid, many times with other job times: with policies of production, with the balancing
//! of the paper and with its copies.

use std::collections::BTreeMap;

use lb_strategies::SUPERSTEPS;
use virtual_cluster::StepScenario;
use virtual_cluster::grid_cluster::{JobTimeModel, RATIOS, paper_copies_s, scenario};

use super::Context;
use crate::statistics::{Spread, mean};

/// Nodes from which a run takes its processors.
pub(super) struct Nodes {
    /// Their name in tables.
    pub(super) name: String,
    /// Where their job times come from.
    pub(super) source: Source,
    /// Whether a time holds for a step, as those of measured hosts, instead of for a job.
    pub(super) by_step: bool,
    /// Steps of a run.
    pub(super) steps: u64,
}

/// The source of job times.
pub(super) enum Source {
    /// Drawn anew for each run.
    Drawn(JobTimeModel),
    /// The same in each run, by node, s.
    Measured(Vec<Vec<f64>>),
}

/// What runs on some nodes. The paper's copies run by its formulas, all else by the simulation of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// A policy of production.
    Policy(&'static str),
    /// Balancing every 2.5 P steps, as in the paper.
    Balanced,
    /// The same, but a division is as much shorter as jobs are.
    BalancedInProportion,
    /// This number of copies of each job, as in the paper.
    Copies(usize),
}

/// Some work on some nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Task {
    /// Place in the list of nodes.
    pub(super) nodes: usize,
    /// Thousandths of computation that communication takes.
    pub(super) ratio: u32,
    /// Number of processors.
    pub(super) processors: usize,
    /// What runs.
    pub(super) what: What,
}

/// The times of tasks. Draw i of all tasks on the same number of processors has the same nodes with the same job times.
#[derive(Default)]
pub(super) struct Times(BTreeMap<Task, Vec<f64>>);

impl Times {
    /// Runs all tasks on `draws` draws of the job times.
    pub(super) fn run(context: &Context, label: &str, nodes: &[Nodes], tasks: &[Task], draws: usize) -> Self {
        let mut sorted = tasks.to_vec();
        sorted.sort();
        let by_nodes: Vec<Vec<Task>> = (0..nodes.len())
            .map(|place| sorted.iter().copied().filter(|task| task.nodes == place).collect())
            .collect();
        // A draw takes as long as some runs, so all tasks share it.
        let seconds = context.each(label, nodes.len() * draws, |index| {
            let (place, draw) = (index / draws, (index % draws) as u64);
            let times = nodes[place].times(draw);
            let same_run =
                |one: &Task, other: &Task| (one.ratio, one.processors) == (other.ratio, other.processors);
            let mut seconds = Vec::new();
            for tasks in by_nodes[place].chunk_by(same_run) {
                let scenario = nodes[place].scenario(&times, tasks[0].processors, tasks[0].ratio, draw);
                seconds.extend(tasks.iter().map(|task| time_s(&scenario, task.ratio, task.what)));
            }
            seconds
        });
        let mut all: BTreeMap<Task, Vec<f64>> = BTreeMap::new();
        for (index, seconds) in seconds.into_iter().enumerate() {
            for (&task, seconds) in by_nodes[index / draws].iter().zip(seconds) {
                all.entry(task).or_default().push(seconds);
            }
        }
        Self(all)
    }

    /// The time of a task in each draw, s.
    pub(super) fn draws(&self, task: Task) -> &[f64] {
        &self.0[&task]
    }

    /// Mean time of a task over all draws, s.
    pub(super) fn s(&self, nodes: usize, ratio: u32, processors: usize, what: What) -> f64 {
        mean(self.draws(Task { nodes, ratio, processors, what }))
    }

    /// The same in hours, with the middle 90 % of the draws.
    pub(super) fn hours(&self, nodes: usize, ratio: u32, processors: usize, what: What) -> Spread {
        Spread::of(self.draws(Task { nodes, ratio, processors, what })).times(1.0 / 3600.0)
    }

    /// The number of copies with the least mean time, one included.
    pub(super) fn best_copies(&self, nodes: usize, ratio: u32, processors: usize) -> usize {
        let mean_s = |copies: usize| self.s(nodes, ratio, processors, What::Copies(copies));
        copies(processors).min_by(|&one, &other| mean_s(one).total_cmp(&mean_s(other))).unwrap_or(1)
    }

    /// Mean time without balancing and copies over the mean time of `what` (equations 1 and 2).
    pub(super) fn speedup(&self, nodes: usize, ratio: u32, processors: usize, what: What) -> f64 {
        self.s(nodes, ratio, processors, What::Copies(1)) / self.s(nodes, ratio, processors, what)
    }

    /// The same, with the middle 90 % of the speedups of single draws.
    pub(super) fn speedups(&self, nodes: usize, ratio: u32, processors: usize, what: What) -> Spread {
        let of = |what| self.draws(Task { nodes, ratio, processors, what });
        let each: Vec<f64> =
            of(What::Copies(1)).iter().zip(of(what)).map(|(equal, seconds)| equal / seconds).collect();
        Spread::around(self.speedup(nodes, ratio, processors, what), &each)
    }

    /// Percent of the draws in which `one` takes less time than `other`.
    pub(super) fn faster(&self, nodes: usize, ratio: u32, processors: usize, one: What, other: What) -> f64 {
        let [one, other] = [one, other].map(|what| self.draws(Task { nodes, ratio, processors, what }));
        let count = one.iter().zip(other).filter(|(one, other)| one < other).count();
        100.0 * count as f64 / one.len().max(1) as f64
    }
}

/// The numbers of copies of the paper: powers of two up to all processors.
pub(super) fn copies(processors: usize) -> impl Iterator<Item = usize> {
    (0..).map(|power: u32| 1 << power).take_while(move |&copies| copies <= processors)
}

/// The base of seeds of job times, so that these do not follow from the numbers that choose the nodes.
const SEEDS: u64 = 1_000_000;

impl Nodes {
    /// Nodes whose times are drawn by a model.
    pub(super) fn drawn(model: JobTimeModel, steps: u64) -> Self {
        Self { name: model.name.to_owned(), source: Source::Drawn(model), by_step: false, steps }
    }

    /// The job times of all nodes in a draw, s.
    pub(super) fn times(&self, draw: u64) -> Vec<Vec<f64>> {
        match &self.source {
            Source::Drawn(model) => model.draw(SEEDS + draw),
            Source::Measured(times) => times.clone(),
        }
    }

    /// The run of a draw on some of these nodes, with these job times.
    pub(super) fn scenario(
        &self,
        times: &[Vec<f64>],
        processors: usize,
        ratio: u32,
        draw: u64,
    ) -> StepScenario {
        let mut scenario = scenario(times, self.by_step, processors, f64::from(ratio) / 1000.0, draw);
        scenario.program.steps = self.steps;
        scenario
    }
}

fn time_s(scenario: &StepScenario, ratio: u32, what: What) -> f64 {
    match what {
        What::Policy(spec) => steps_s(scenario, spec).iter().sum(),
        What::Balanced => balanced_s(scenario).iter().sum(),
        What::BalancedInProportion => {
            let mut scenario = scenario.clone();
            scenario.program.division_s *= RATIOS[0] / (f64::from(ratio) / 1000.0);
            balanced_s(&scenario).iter().sum()
        }
        What::Copies(copies) => paper_copies_s(scenario, copies),
    }
}

fn steps_s(scenario: &StepScenario, spec: &str) -> Vec<f64> {
    let policy = SUPERSTEPS.parse(spec).expect("it is listed");
    scenario.run(&*policy).step_seconds
}

/// Time of each step with the paper's balancing, s.
pub(super) fn balanced_s(scenario: &StepScenario) -> Vec<f64> {
    let every = (2.5 * scenario.program.workers as f64).round() as u64;
    balanced_every_s(scenario, every)
}

/// The same with another number of steps between divisions.
pub(super) fn balanced_every_s(scenario: &StepScenario, every: u64) -> Vec<f64> {
    steps_s(scenario, &format!("des,every={every},by=wall,tolerance=0,ahead=0"))
}
