//! The runs of figures 3 to 7: two sets, 1 to 64 nodes, three ratios, and every method on each. Also the rows and charts that
//! these figures have in common.

use presentation::bars::Bars;
use virtual_cluster::grid_cluster::{JOBS, PROCESSORS, RATIOS as RATIO_PARTS, SETS};

use super::runs::{Nodes, Task, Times, What, copies};
use super::{ADAPTIVE, CHOICE, COPIES, DES};
use crate::paper::Context;
use crate::paper::page::{Grid, Panel};
use crate::statistics::Spread;

/// Ratios of communication to computation, in thousandths, and their names.
pub(super) const RATIOS: [u32; 3] = [10, 250, 500];
/// Those of them at which communication takes a large part.
pub(super) const HIGH_RATIOS: [u32; 2] = [RATIOS[1], RATIOS[2]];
pub(super) const RATIO_NAMES: [&str; 3] = ["0.01", "0.25", "0.50"];

/// Where a result depends on the job times that are drawn.
pub(super) const CONSTANTS: &str = "It depends on the job times, which are not public: see [the constants](#the-constants-of-the-drawn-job-times), \
                         varied one at a time.";

/// All runs of figures 3 to 7.
pub(super) struct Grids {
    /// The two sets.
    pub(super) nodes: Vec<Nodes>,
    /// The times of all runs.
    pub(super) times: Times,
    /// Number of draws of the job times.
    pub(super) draws: usize,
    quick: bool,
}

impl Grids {
    pub(super) fn run(context: &Context) -> Self {
        let steps = context.repetitions(JOBS as u64, 300);
        let draws = context.draws();
        let nodes: Vec<Nodes> = SETS.iter().map(|&set| Nodes::drawn(set, steps)).collect();
        let mut tasks = Vec::new();
        for processors in PROCESSORS {
            for set in (0..nodes.len()).filter(|&set| Self::has(set, processors, context.quick)) {
                for ratio in RATIOS {
                    let task = |what| Task { nodes: set, ratio, processors, what };
                    tasks.extend(copies(processors).map(|copies| task(What::Copies(copies))));
                    tasks.push(task(What::Balanced));
                    if ratio == RATIOS[0] {
                        tasks.extend([DES, COPIES, CHOICE, ADAPTIVE].map(task));
                    } else {
                        tasks.push(task(What::BalancedInProportion));
                    }
                }
            }
        }
        let times = Times::run(context, "dlb-jr, figures 3 to 7", &nodes, &tasks, draws);
        Self { nodes, times, draws, quick: context.quick }
    }

    /// Whether a set runs on this number of processors: set one has 40 nodes. Tests run fewer.
    fn has(set: usize, processors: usize, quick: bool) -> bool {
        let most = match (quick, set) {
            (true, _) => 16,
            (false, 0) => 32,
            (false, _) => 64,
        };
        processors <= most
    }

    /// The numbers of processors of a set.
    pub(super) fn processors(&self, set: usize) -> Vec<usize> {
        PROCESSORS.into_iter().filter(|&processors| Self::has(set, processors, self.quick)).collect()
    }

    /// Those of more than one processor.
    pub(super) fn parallel(&self, set: usize) -> Vec<usize> {
        self.processors(set).into_iter().filter(|&processors| processors > 1).collect()
    }

    /// The places of the sets.
    pub(super) fn sets(&self) -> std::ops::Range<usize> {
        0..self.nodes.len()
    }

    /// All pairs of a set and a number of nodes above one.
    pub(super) fn settings(&self) -> impl Iterator<Item = (usize, usize)> {
        self.sets().flat_map(|set| self.parallel(set).into_iter().map(move |processors| (set, processors)))
    }

    /// The number of settings at ratios of 0.25 and 0.50 in which a method is faster than equal shares.
    pub(super) fn faster_at_high_ratios(&self, what: What) -> usize {
        self.count_at_high_ratios(|set, ratio, processors| {
            self.times.speedup(set, ratio, processors, what) > 1.0
        })
    }

    /// The number of settings at these ratios for which `holds` is true of the set, the ratio and the number of nodes.
    pub(super) fn count_at_high_ratios(&self, holds: impl Fn(usize, u32, usize) -> bool) -> usize {
        let of = |(set, nodes): (usize, usize)| {
            HIGH_RATIOS.iter().filter(|ratio| holds(set, **ratio, nodes)).count()
        };
        self.settings().map(of).sum()
    }

    /// Mean times on all numbers of processors of a set, s.
    pub(super) fn means_s(&self, set: usize, ratio: u32, what: impl Fn(usize) -> What) -> Vec<f64> {
        let s = |processors| self.times.s(set, ratio, processors, what(processors));
        self.processors(set).into_iter().map(s).collect()
    }

    /// The number of copies with the least time.
    pub(super) fn best(&self, set: usize, ratio: u32, processors: usize) -> What {
        What::Copies(self.times.best_copies(set, ratio, processors))
    }

    /// Mean times on all numbers of processors in hours, if a step waits for a send that takes `longest(P)` times the mean. A
    /// step of a simulated run ends for all nodes at once, so the rest of it stays.
    pub(super) fn waiting_h(
        &self,
        set: usize,
        ratio: u32,
        what: impl Fn(usize) -> What,
        longest: fn(usize) -> f64,
    ) -> Vec<f64> {
        let send_s = RATIO_PARTS[0] * SETS[set].mean_s;
        let steps = self.nodes[set].steps as f64;
        let more_s = |processors: usize| {
            if processors > 1 { steps * send_s * (longest(processors) - 1.0) } else { 0.0 }
        };
        let of = self.processors(set).into_iter().zip(self.means_s(set, ratio, what));
        of.map(|(processors, seconds)| (seconds + more_s(processors)) / 3600.0).collect()
    }

    /// Adds a row for each set and number of nodes: their names, then `cells`.
    pub(super) fn rows(&self, table: &mut Grid, parallel: bool, cells: impl Fn(usize, usize) -> Vec<String>) {
        for set in self.sets() {
            for processors in if parallel { self.parallel(set) } else { self.processors(set) } {
                let begin = [self.nodes[set].name.clone(), processors.to_string()];
                table.row(begin.into_iter().chain(cells(set, processors)));
            }
        }
    }

    /// A chart of hours for each set, on a logarithmic axis. The middle 90 % of the draws are a line over each bar.
    pub(super) fn hour_charts(&self, caption: &str, series: &[Series<'_>]) -> Vec<Panel> {
        let chart = |set: usize| {
            let caption = format!("{caption}, {}, by nodes", self.nodes[set].name);
            bars(&caption, "time (h)", set, &self.processors(set), series).decades()
        };
        self.sets().map(|set| Panel::from(chart(set))).collect()
    }

    /// A chart of speedups over equal shares for each set.
    pub(super) fn speedup_charts(&self, caption: &str, series: &[Series<'_>]) -> Vec<Panel> {
        let chart = |set: usize| {
            let caption = format!("{caption}, {}, by nodes", self.nodes[set].name);
            bars(&caption, "speedup", set, &self.parallel(set), series)
        };
        self.sets().map(|set| Panel::from(chart(set))).collect()
    }
}

/// A series of bars: its name, and the value of a set on a number of nodes, if it has one.
pub(super) type Series<'s> = (String, Box<dyn Fn(usize, usize) -> Option<Spread> + 's>);

/// Bars by number of nodes of one set.
pub(super) fn bars(
    caption: &str,
    title: &str,
    set: usize,
    processors: &[usize],
    series: &[Series<'_>],
) -> Bars {
    let bars = Bars::new(caption, title, processors.iter().map(ToString::to_string));
    let none = Spread { mean: f64::NAN, low: f64::NAN, high: f64::NAN };
    series.iter().fold(bars, |bars, (name, value)| {
        let spreads: Vec<Spread> = processors.iter().map(|&of| value(set, of).unwrap_or(none)).collect();
        bars.series(name, spreads.iter().map(|it| it.mean)).ranges(spreads.into_iter().map(Spread::range))
    })
}

/// Whether each time is shorter than the one before.
pub(super) fn falls(times: &[f64]) -> bool {
    times.windows(2).all(|pair| pair[1] < pair[0])
}

/// Whether each time is longer than the one before.
pub(super) fn rises(times: &[f64]) -> bool {
    times.windows(2).all(|pair| pair[1] > pair[0])
}

/// The number of nodes with the least time.
pub(super) fn least_at(processors: &[usize], times: &[f64]) -> usize {
    let place = (0..times.len()).min_by(|&one, &other| times[one].total_cmp(&times[other]));
    place.map_or(0, |place| processors[place])
}
