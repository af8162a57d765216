//! Defines a graph of tasks: which points have a task at a timestep, and which outputs each task reads.
//!
//! The definitions come from Task Bench's core library. In two patterns (periodic stencils, and spreads) its lists of
//! inputs have another order. Here they are always in the order of points.

use std::ops::Range;

use presentation::count_parser;
use serde::{Deserialize, Serialize};

use super::kernel::Kernel;
use super::uniform::uniform;

/// Which points of a timestep read which of the timestep before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[value(rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub(crate) enum Pattern {
    /// No point reads anything.
    Trivial,
    /// Each point reads itself.
    NoComm,
    /// Each point reads itself and its two neighbours.
    #[value(name = "stencil_1d")]
    #[serde(rename = "stencil_1d")]
    Stencil1d,
    /// Each point reads itself and its two neighbours in a ring.
    #[value(name = "stencil_1d_periodic")]
    #[serde(rename = "stencil_1d_periodic")]
    Stencil1dPeriodic,
    /// A wavefront, which grows and then shrinks: a sweep.
    Dom,
    /// A binary tree that fans out.
    Tree,
    /// The butterfly of a Fourier transform.
    Fft,
    /// Each point reads its --radix nearest.
    Nearest,
    /// Each point reads --radix points, spread over all.
    Spread,
    /// Each point reads some of the nearest, at random.
    RandomNearest,
    /// Each point reads all.
    AllToAll,
}

/// One graph: its shape and its tasks.
#[derive(Clone, Debug, PartialEq, clap::Args, Serialize, Deserialize)]
pub(crate) struct Graph {
    /// Its number among graphs that run together.
    #[arg(skip)]
    pub(crate) number: u32,
    /// Timesteps
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = count_parser(1..=u32::MAX))]
    pub(crate) steps: u32,
    /// Points
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = count_parser(1..=u32::MAX))]
    pub(crate) width: u32,
    /// Pattern of dependences
    #[arg(long = "type", value_name = "PATTERN", default_value = "trivial")]
    pub(crate) pattern: Pattern,
    /// Inputs of a task, in nearest, spread and random_nearest
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = count_parser(0..=u32::MAX))]
    pub(crate) radix: u32,
    /// Timesteps after which inputs repeat, in spread and random_nearest [default: 3 there]
    #[arg(long, value_name = "STEPS", value_parser = count_parser(0..=u32::MAX))]
    period: Option<u32>,
    /// Probability that one of the nearest is read, in random_nearest
    #[arg(long, value_name = "PART", default_value_t = 0.25)]
    pub(crate) fraction: f64,
    /// Bytes of an output
    #[arg(long = "output", value_name = "BYTES", default_value_t = 16, value_parser = count_parser(16..=1_u64 << 30))]
    pub(crate) output_bytes: u64,
    /// Work.
    #[command(flatten)]
    pub(crate) kernel: Kernel,
}

impl Graph {
    /// Refuses a graph in which a point would read another one twice, or in which work is impossible.
    ///
    /// # Errors
    /// A sentence that names the option.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Self { width, radix, pattern, .. } = *self;
        let repeats = matches!(pattern, Pattern::Spread | Pattern::RandomNearest);
        if repeats != (self.period() > 0) {
            let expected = if repeats { "one from 1" } else { "none for this type" };
            return Err(format!("-period {}: expected {expected}", self.period()));
        }
        if !(0.0..=1.0).contains(&self.fraction) {
            return Err(format!("-fraction {}: expected a number from 0 to 1", self.fraction));
        }
        let least = match pattern {
            Pattern::Stencil1dPeriodic => 3,
            Pattern::Fft => 2,
            Pattern::Spread => radix,
            _ => 1,
        };
        if width < least {
            return Err(format!("-width {width}: expected {least} or more for this type"));
        }
        if pattern == Pattern::Spread && radix > 0 && self.period() > width.div_ceil(radix) {
            let most = width.div_ceil(radix);
            return Err(format!(
                "-period {}: expected {most} at most for this number of points",
                self.period()
            ));
        }
        self.kernel.check()
    }

    /// Timesteps after which inputs repeat; 0 where they never change.
    #[must_use]
    pub(crate) fn period(&self) -> u32 {
        let default = if matches!(self.pattern, Pattern::Spread | Pattern::RandomNearest) { 3 } else { 0 };
        self.period.unwrap_or(default)
    }

    /// The points that have a task at a timestep; none after the last timestep.
    #[must_use]
    pub(crate) fn active(&self, step: u32) -> Range<u32> {
        let (steps, width) = (self.steps, self.width);
        match self.pattern {
            _ if step >= steps => 0..0,
            Pattern::Dom => {
                let offset = (u64::from(step) + u64::from(width)).saturating_sub(steps.into()) as u32;
                offset..offset + width.min(step + 1).min(steps - step)
            }
            Pattern::Tree => 0..width.min(1_u32.checked_shl(step).unwrap_or(u32::MAX)),
            _ => 0..width,
        }
    }

    /// Number of lists of inputs. Timesteps use the lists in turn.
    #[must_use]
    pub(crate) fn sets(&self) -> u32 {
        match self.pattern {
            Pattern::Fft => self.width.next_power_of_two().trailing_zeros(),
            _ => self.period().min(self.steps).max(1),
        }
    }

    /// Maximum bytes of the lists of a point: inputs and readers for each list of inputs, and three lists for a
    /// timestep.
    #[must_use]
    pub(crate) fn links_bytes(&self) -> u64 {
        let inputs = match self.pattern {
            Pattern::AllToAll => self.width,
            Pattern::Nearest | Pattern::Spread | Pattern::RandomNearest => self.radix,
            _ => 3,
        };
        let lists = 2 * u64::from(self.sets()) + 3;
        lists.saturating_mul(size_of::<u32>() as u64 * u64::from(inputs.max(1)))
    }

    /// The number of the list that a timestep uses.
    #[must_use]
    pub(crate) fn set(&self, step: u32) -> u32 {
        match (self.sets(), self.pattern) {
            // Most graphs. This runs for each task, and a division takes long.
            (1, _) => 0,
            (sets, Pattern::Fft) => (step + sets - 1) % sets,
            (sets, _) => step % sets,
        }
    }

    /// The points that a point reads, in rising order, active or not.
    #[must_use]
    pub(crate) fn dependencies(&self, set: u32, point: u32) -> Vec<u32> {
        let i = i64::from(point);
        match self.pattern {
            Pattern::Dom => self.within(i - 1, i),
            Pattern::Tree => vec![point / 2],
            Pattern::Nearest => self.window(i, false),
            Pattern::Spread => self.spread(|k| i + k * i64::from(self.width) / i64::from(self.radix), set, 1),
            Pattern::RandomNearest => kept(self.window(i, false), |j| self.connects(set, j, point)),
            _ => self.symmetric(set, i),
        }
    }

    /// The points that read a point's output, in rising order, active or not.
    #[must_use]
    pub(crate) fn dependents(&self, set: u32, point: u32) -> Vec<u32> {
        let i = i64::from(point);
        match self.pattern {
            Pattern::Dom => self.within(i, i + 1),
            Pattern::Tree => self.within(2 * i, 2 * i + 1),
            Pattern::Nearest => self.window(i, true),
            Pattern::Spread => {
                self.spread(|k| i - k * i64::from(self.width) / i64::from(self.radix), set, -1)
            }
            Pattern::RandomNearest => kept(self.window(i, true), |j| self.connects(set, point, j)),
            _ => self.symmetric(set, i),
        }
    }

    /// Patterns in which each point is read by the points that it reads.
    fn symmetric(&self, set: u32, i: i64) -> Vec<u32> {
        let (last, width) = (i64::from(self.width) - 1, i64::from(self.width));
        match self.pattern {
            Pattern::NoComm => self.within(i, i),
            Pattern::Stencil1d => self.within(i - 1, i + 1),
            Pattern::Stencil1dPeriodic => self.points([i - 1, i, i + 1].map(|j| j.rem_euclid(width))),
            Pattern::Fft => self
                .points([i - (1 << set), i, i + (1 << set)].into_iter().filter(|j| (0..=last).contains(j))),
            Pattern::AllToAll => self.within(0, last),
            _ => Vec::new(),
        }
    }

    /// The `radix` points around a point. If their number is even, one more lies below, or above if `above`.
    fn window(&self, i: i64, above: bool) -> Vec<u32> {
        let radix = i64::from(self.radix);
        let (more, less) = (radix / 2, (radix - 1) / 2);
        let (below, beyond) = if above { (less, more) } else { (more, less) };
        if radix == 0 { Vec::new() } else { self.within(i - below, i + beyond) }
    }

    fn spread(&self, at: impl Fn(i64) -> i64, set: u32, sign: i64) -> Vec<u32> {
        let shift = |k: i64| if k > 0 { sign * i64::from(set) } else { 0 };
        let point = |k: i64| (at(k) + shift(k)).rem_euclid(i64::from(self.width));
        self.points((0..i64::from(self.radix)).map(point))
    }

    /// Draws whether `to` reads the near point `from`. Every point reads itself.
    fn connects(&self, set: u32, from: u32, to: u32) -> bool {
        from == to || uniform([self.number, self.radix, set, from, to]) < self.fraction
    }

    fn within(&self, from: i64, to: i64) -> Vec<u32> {
        self.points(from.max(0)..=to.min(i64::from(self.width) - 1))
    }

    fn points(&self, points: impl IntoIterator<Item = i64>) -> Vec<u32> {
        let mut points: Vec<u32> = points.into_iter().map(|point| point as u32).collect();
        points.sort_unstable();
        points
    }

    /// Tasks in all.
    #[must_use]
    pub(crate) fn tasks(&self) -> u64 {
        (0..self.steps).map(|step| self.active(step).len() as u64).sum()
    }

    /// Inputs of all tasks.
    #[must_use]
    pub(crate) fn inputs(&self) -> u64 {
        let lists: Vec<Vec<Vec<u32>>> = (0..self.sets())
            .map(|set| (0..self.width).map(|i| self.dependencies(set, i)).collect())
            .collect();
        let of_step = |step: u32| {
            let (before, list) = (self.active(step - 1), &lists[self.set(step) as usize]);
            let read = |point: u32| list[point as usize].iter().filter(|&from| before.contains(from)).count();
            self.active(step).map(read).sum::<usize>() as u64
        };
        (1..self.steps).map(of_step).sum()
    }
}

fn kept(mut points: Vec<u32>, keep: impl Fn(u32) -> bool) -> Vec<u32> {
    points.retain(|&point| keep(point));
    points
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use clap::{Parser, ValueEnum};

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        graph: Graph,
    }

    /// The graph of options as in `--steps 9 --type fft`.
    pub(crate) fn graph(options: &str) -> Graph {
        Line::parse_from(format!("task_bench {options}").split_whitespace()).graph
    }

    const NAMES: [&str; 11] = [
        "trivial",
        "no_comm",
        "stencil_1d",
        "stencil_1d_periodic",
        "dom",
        "tree",
        "fft",
        "nearest",
        "spread",
        "random_nearest",
        "all_to_all",
    ];

    #[test]
    fn patterns_have_the_names_of_task_bench_also_in_json() {
        for (pattern, name) in Pattern::value_variants().iter().zip(NAMES) {
            assert_eq!(pattern.to_possible_value().unwrap().get_name(), name);
            assert_eq!(serde_json::to_value(pattern).unwrap(), name);
        }
    }

    #[test]
    fn tasks_and_inputs_are_as_many_as_in_task_bench() {
        let small = [0, 88, 220, 264, 136, 86, 198, 220, 264, 125, 352];
        let large = [0, 1584, 4554, 4752, 2619, 1550, 4018, 7326, 7920, 2805, 25344];
        for (at, name) in NAMES.into_iter().enumerate() {
            let tasks = |all, dom, tree| match name {
                "dom" => dom,
                "tree" => tree,
                _ => all,
            };
            let period = if name == "spread" { "--period 2" } else { "" };
            let graph_of = |rest| graph(&format!("--type {name} {rest}"));
            let four = graph_of(format!("--steps 23 --width 4 {period}"));
            assert_eq!((four.tasks(), four.inputs()), (tasks(92, 80, 87), small[at]), "{name}");
            let sixteen = graph_of("--steps 100 --width 16 --radix 5".to_owned());
            assert_eq!((sixteen.tasks(), sixteen.inputs()), (tasks(1600, 1360, 1551), large[at]), "{name}");
        }
    }

    #[test]
    fn nearest_by_chance_are_those_of_task_bench() {
        let graph = graph("--type random_nearest --width 8 --radix 5");
        let lists = |set| (0..8).map(|point| graph.dependencies(set, point)).collect::<Vec<_>>();
        let first: [&[u32]; 8] = [&[0], &[1], &[2, 4], &[3, 4, 5], &[3, 4], &[5, 6, 7], &[4, 6, 7], &[7]];
        let second: [&[u32]; 8] = [&[0], &[1, 3], &[2], &[1, 3], &[4], &[5], &[4, 6], &[6, 7]];
        assert_eq!(lists(0), first);
        assert_eq!(lists(1), second);
    }

    #[test]
    fn dependencies_and_dependents_are_inverse() {
        let mut graphs = 0;
        for (name, width) in NAMES.into_iter().flat_map(|name| (1..20).map(move |width| (name, width))) {
            for (radix, period) in (0..7).flat_map(|radix| (0..4).map(move |period| (radix, period))) {
                let graph =
                    graph(&format!("--type {name} --width {width} --radix {radix} --period {period}"));
                if graph.check().is_err() {
                    continue;
                }
                graphs += 1;
                for set in 0..graph.sets() {
                    let mut reads: Vec<(u32, u32)> = Vec::new();
                    for point in 0..width {
                        let from = graph.dependencies(set, point);
                        assert!(from.is_sorted_by(|a, b| a < b) && from.iter().all(|&from| from < width));
                        reads.extend(from.into_iter().map(|from| (from, point)));
                    }
                    reads.sort_unstable();
                    let read: Vec<(u32, u32)> = (0..width)
                        .flat_map(|from| graph.dependents(set, from).into_iter().map(move |to| (from, to)))
                        .collect();
                    assert_eq!(reads, read, "{graph:?}, set {set}");
                }
            }
        }
        assert!(graphs > 1000, "{graphs}");
    }

    #[test]
    fn a_wavefront_grows_and_shrinks_and_a_tree_only_grows() {
        let dom = graph("--type dom --steps 6 --width 3");
        assert_eq!(
            (0..7).map(|step| dom.active(step)).collect::<Vec<_>>(),
            [0..1, 0..2, 0..3, 0..3, 1..3, 2..3, 0..0]
        );
        let tree = graph("--type tree --steps 100 --width 5");
        assert_eq!([0, 1, 2, 3, 99].map(|step| tree.active(step)), [0..1, 0..2, 0..4, 0..5, 0..5]);
    }

    #[test]
    fn what_task_bench_asserts_is_refused_with_the_option() {
        for (options, named) in [
            ("--type spread", "-period 3: expected 2 at most"),
            ("--type spread --period 0", "-period 0"),
            ("--type nearest --period 2", "-period 2: expected none"),
            ("--type stencil_1d_periodic --width 2", "-width 2: expected 3"),
            ("--type fft --width 1", "-width 1: expected 2"),
            ("--type spread --width 2 --period 1", "-width 2: expected 3"),
            ("--type random_nearest --fraction 1.5", "-fraction 1.5"),
        ] {
            let error = graph(options).check().unwrap_err();
            assert!(error.starts_with(named), "{options}: {error}");
        }
    }
}
