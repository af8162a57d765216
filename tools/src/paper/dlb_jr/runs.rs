//! Runs programs on the nodes of a grid: with policies of production, with the copies of the paper, and with the paper's
//! choice between balancing and copies.

use std::collections::BTreeMap;

use lb_strategies::SUPERSTEPS;
use lb_strategies::supersteps::Line;
use virtual_cluster::StepScenario;
use virtual_cluster::grid_cluster::{paper_copies_iterations_s, paper_copies_s, scenario};

use super::Context;

/// Steps between two choices of the paper (I_p), and over which the points of figure 2 are averaged.
pub(super) const PERIOD: usize = 100;

/// Time of a division, s, and the parts of it that a switch to copies and back takes.
const SWITCH_S: (f64, f64) = (1.4 * 37.5, 0.6 * 37.5);

/// Nodes from which a scenario draws its processors.
pub(super) struct Nodes {
    /// Their name in tables.
    pub(super) name: String,
    /// Job times of each node, s.
    pub(super) times: Vec<Vec<f64>>,
    /// Whether a time holds for a step, as those of measured hosts, instead of for a job.
    pub(super) by_step: bool,
    /// Steps of a run.
    pub(super) steps: u64,
}

/// What runs on some nodes. The paper's copies run by its formulas, all else by the simulation of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// A policy of production.
    Policy(&'static str),
    /// Balancing every 2.5 P steps, as in the paper.
    Balanced,
    /// This number of copies of each job, as in the paper.
    Copies(usize),
    /// The paper's choice between balancing and this number of copies.
    Choice(usize),
}

/// Some work on some nodes: place in a list of nodes, ratio of communication to computation in thousandths, processors.
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

/// Mean times of tasks, s.
#[derive(Default)]
pub(super) struct Means(BTreeMap<Task, f64>);

impl Means {
    /// Runs all tasks on `runs` sets of nodes each.
    pub(super) fn run(context: &Context, label: &str, nodes: &[Nodes], tasks: &[Task], runs: u64) -> Self {
        let seconds = context.each(label, tasks.len() * runs as usize, |index| {
            // The longest tasks are last in the list, and should begin first.
            let task = tasks[tasks.len() - 1 - index / runs as usize];
            let scenario = nodes[task.nodes].scenario(task.processors, task.ratio, index as u64 % runs);
            time_s(&scenario, task.what)
        });
        let means = seconds.chunks(runs as usize).map(|of| of.iter().sum::<f64>() / runs as f64);
        Self(tasks.iter().rev().copied().zip(means).collect())
    }

    /// Mean time of a task that was run, s.
    pub(super) fn s(&self, nodes: usize, ratio: u32, processors: usize, what: What) -> f64 {
        self.0[&Task { nodes, ratio, processors, what }]
    }

    /// The best number of copies, one included, and its time.
    pub(super) fn best_copies(&self, nodes: usize, ratio: u32, processors: usize) -> (usize, f64) {
        let of = |copies| (copies, self.s(nodes, ratio, processors, What::Copies(copies)));
        let all = copies(processors).map(of);
        all.min_by(|one, other| one.1.total_cmp(&other.1)).expect("one copy is possible")
    }

    /// The time of a task if a step waits for a send that takes `longest` times the mean, s. A step of a simulated run ends for
    /// all nodes at once, so the rest of it stays.
    pub(super) fn waiting_s(&self, nodes: &[Nodes], task: Task, longest: f64) -> f64 {
        let program = nodes[task.nodes].scenario(task.processors, task.ratio, 0).program;
        self.0[&task] + program.steps as f64 * program.link.delay_s * (longest - 1.0)
    }

    /// Time without balancing and copies over the time of `what`.
    pub(super) fn speedup(&self, nodes: usize, ratio: u32, processors: usize, what: What) -> f64 {
        self.s(nodes, ratio, processors, What::Copies(1)) / self.s(nodes, ratio, processors, what)
    }
}

/// The numbers of copies of the paper: powers of two up to all processors.
pub(super) fn copies(processors: usize) -> impl Iterator<Item = usize> {
    (0..).map(|power: u32| 1 << power).take_while(move |&copies| copies <= processors)
}

impl Nodes {
    /// A run on some of these nodes.
    pub(super) fn scenario(&self, processors: usize, ratio: u32, seed: u64) -> StepScenario {
        let mut scenario = scenario(&self.times, self.by_step, processors, f64::from(ratio) / 1000.0, seed);
        scenario.program.steps = self.steps;
        scenario
    }
}

fn time_s(scenario: &StepScenario, what: What) -> f64 {
    match what {
        What::Policy(spec) => steps_s(scenario, spec).iter().sum(),
        What::Balanced => balanced_s(scenario).iter().sum(),
        What::Copies(copies) => paper_copies_s(scenario, copies),
        What::Choice(copies) => choice(scenario, copies, 0).seconds,
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

/// A period of a run: Y (equation 3), and the mean time of a step with balancing and with copies, s.
#[derive(Clone, Copy, Debug)]
pub(super) struct Period {
    /// The statistic Y.
    pub(super) y: f64,
    /// Balanced.
    pub(super) balanced: f64,
    /// With copies.
    pub(super) copied: f64,
}

/// The periods of a run, with copies as in the paper.
pub(super) fn periods(scenario: &StepScenario, copies: usize) -> Vec<Period> {
    let (balanced, copied) = (balanced_s(scenario), paper_copies_iterations_s(scenario, copies));
    let series = scenario.times.series();
    let units = scenario.program.weights.units() as f64 / series.len() as f64;
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
    (0..balanced.len() / PERIOD)
        .map(|period| {
            let steps = period * PERIOD..(period + 1) * PERIOD;
            let times =
                |of: &Vec<f64>| steps.clone().map(|step| of[step % of.len()]).sum::<f64>() / PERIOD as f64;
            let speeds: f64 = series.iter().map(|of| 1.0 / (units * times(of))).sum();
            let y = series.len() as f64 / speeds;
            Period { y, balanced: mean(&balanced[steps.clone()]), copied: mean(&copied[steps]) }
        })
        .collect()
}

/// A run with the paper's choice. Times in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chosen {
    /// Time of the run.
    pub(super) seconds: f64,
    /// Time of the switches in it.
    pub(super) switching: f64,
    /// Time by which the chosen method was slower than the other one, over periods in which it was.
    pub(super) wrong: f64,
    /// The part of `wrong` in the first period.
    pub(super) wrong_first: f64,
}

/// A run with the paper's choice (section 3.3, steps 1 to 8). It begins with balancing. After each period both lines are
/// fitted to all periods so far, but the first `ignored` ones, and the method whose line is lower at the latest Y is chosen.
pub(super) fn choice(scenario: &StepScenario, copies: usize, ignored: usize) -> Chosen {
    let periods = periods(scenario, copies);
    let (mut run, mut copying) = (Chosen::default(), false);
    for (place, period) in periods.iter().enumerate() {
        let (chosen, other) =
            if copying { (period.copied, period.balanced) } else { (period.balanced, period.copied) };
        run.seconds += PERIOD as f64 * chosen;
        run.wrong += PERIOD as f64 * (chosen - other).max(0.0);
        if place == 0 {
            run.wrong_first = run.wrong;
        }
        let known = &periods[ignored.min(place)..=place];
        let line = |of: fn(&Period) -> f64| {
            let points: Vec<(f64, f64)> = known.iter().map(|period| (period.y, of(period))).collect();
            // A single point has no line: its own value is expected.
            Line::fit(&points).map_or(of(period), |line| line.at(period.y))
        };
        let better = line(|period| period.copied) < line(|period| period.balanced);
        if better != copying && place + 1 < periods.len() {
            run.switching += if better { SWITCH_S.0 } else { SWITCH_S.1 };
            copying = better;
        }
    }
    run.seconds += run.switching;
    run
}
