//! Figures 3 to 7 and 9, and table 2: times and speedups by number of nodes, copies, and ratio of communication.

use presentation::bars::Bars;
use presentation::format::decimal;

use super::runs::{Chosen, PERIOD, Task, What, choice, copies};
use super::{CHOICE, Grids, RATIOS};
use crate::paper::page::{Claim, Grid, Panel, Section};
use crate::paper::{Context, text};

/// Table 2 of the paper: the best number of copies on 2, 4, ... nodes of each set.
const TABLE_2: [&[usize]; 2] = [&[2, 4, 4, 4, 4], &[2, 4, 8, 4, 4, 4]];

/// Names of the ratios.
const RATIO_NAMES: [&str; 3] = ["0.01", "0.25", "0.50"];

fn labels(processors: &[usize]) -> Vec<String> {
    processors.iter().map(ToString::to_string).collect()
}

fn hours(seconds: f64) -> f64 {
    seconds / 3600.0
}

fn falls(times: &[f64]) -> bool {
    times.windows(2).all(|pair| pair[1] < pair[0])
}

impl Grids {
    /// Times on all numbers of processors of a set, s.
    fn times(&self, set: usize, ratio: u32, what: What) -> Vec<f64> {
        self.processors(set)
            .into_iter()
            .map(|processors| self.means.s(set, ratio, processors, what))
            .collect()
    }

    /// The same in hours if a step waits for a send that takes `longest(P)` times the mean.
    pub(super) fn waiting_h(
        &self,
        set: usize,
        ratio: u32,
        what: impl Fn(usize) -> What,
        longest: fn(usize) -> f64,
    ) -> Vec<f64> {
        let seconds = |processors| {
            let task = Task { nodes: set, ratio, processors, what: what(processors) };
            self.means.waiting_s(&self.nodes, task, longest(processors))
        };
        self.processors(set).into_iter().map(|processors| hours(seconds(processors))).collect()
    }

    /// The best number of copies as a task.
    pub(super) fn best(&self, set: usize, ratio: u32, processors: usize) -> What {
        What::Copies(self.means.best_copies(set, ratio, processors).0)
    }

    /// Times of the best number of copies, s.
    fn copied(&self, set: usize, ratio: u32) -> Vec<f64> {
        self.processors(set)
            .into_iter()
            .map(|processors| self.means.best_copies(set, ratio, processors).1)
            .collect()
    }

    /// The numbers of processors on which a test holds, of those with more than one.
    fn parallel(&self, set: usize) -> Vec<usize> {
        self.processors(set).into_iter().filter(|&processors| processors > 1).collect()
    }

    fn sets(&self) -> std::ops::Range<usize> {
        0..self.nodes.len()
    }
}

/// Figure 3: times of DLB by ratio.
pub(super) fn figure_3(grids: &Grids) -> Section {
    let mut table = Grid::new(
        "Hours of 2000 steps, DLB. In brackets: times as fast as equal shares.",
        "set | nodes | 0.01 | 0.25 | 0.50",
    )
    .words(1);
    for set in grids.sets() {
        for processors in grids.processors(set) {
            let cell = |ratio| {
                let speedup = grids.means.speedup(set, ratio, processors, What::Balanced);
                format!("{:.2} ({speedup:.2})", hours(grids.means.s(set, ratio, processors, What::Balanced)))
            };
            table.row(
                [grids.nodes[set].name.clone(), processors.to_string()].into_iter().chain(RATIOS.map(cell)),
            );
        }
    }
    let panels = grids.sets().map(|set| {
        let bars = Bars::new(
            format!("DLB, {}, by nodes", grids.nodes[set].name),
            "time (h)",
            labels(&grids.processors(set)),
        )
        .decades();
        Panel::from(RATIOS.iter().zip(RATIO_NAMES).fold(bars, |bars, (&ratio, name)| {
            bars.series(
                format!("ratio {name}"),
                grids.times(set, ratio, What::Balanced).into_iter().map(hours),
            )
        }))
    });
    let low = grids.sets().all(|set| falls(&grids.times(set, 10, What::Balanced)));
    let settings: Vec<f64> = grids
        .sets()
        .flat_map(|set| RATIOS.map(|ratio| (set, ratio)))
        .flat_map(|(set, ratio)| {
            grids.parallel(set).into_iter().map(move |processors| (set, ratio, processors))
        })
        .map(|(set, ratio, processors)| grids.means.speedup(set, ratio, processors, What::Balanced))
        .collect();
    let faster = settings.iter().filter(|&&speedup| speedup > 1.0).count();
    let quarter = grids.times(0, 250, What::Balanced);
    let half = grids.times(1, 500, What::Balanced);
    let [quarter_waiting, half_waiting] =
        [(0, 250), (1, 500)].map(|(set, ratio)| grids.waiting_h(set, ratio, |_| What::Balanced, exponential));
    Section::new(
        "Figure 3: times of DLB by ratio of communication to computation",
        "The ratio is for two nodes with equal shares. Logarithmic axis, as in the paper.",
    )
    .picture("figure-3", "times of DLB on 1 to 64 nodes for three ratios and two sets", panels)
    .table(table)
    .claim(
        Claim::new("At a ratio of 0.01, more nodes take less time.", "plot only")
            .here(format!(
                "set two from {:.0} to {:.2} h",
                hours(grids.times(1, 10, What::Balanced)[0]),
                hours(*grids.times(1, 10, What::Balanced).last().unwrap_or(&0.0))
            ))
            .holds("the times fall with each number of nodes in both sets", low)
            .because(CONSTANTS),
    )
    .claim(
        Claim::new("DLB is faster than equal shares in every setting.", "\"consistently\", also at 0.50")
            .fitted()
            .here(format!("in {faster} of {} settings with more than one node", settings.len()))
            .holds("a speedup above 1 in all settings", faster == settings.len())
            .because(CONSTANTS),
    )
    .claim(
        Claim::new("At 0.25 the times of set one fall until 16 nodes, and rise beyond.", "plot only")
            .here(format!(
                "least on {} nodes if all sends are equal, on {} if they differ",
                least_at(&grids.processors(0), &quarter),
                least_at(&grids.processors(0), &quarter_waiting)
            ))
            .holds(
                "if sends differ, they fall to some number of nodes below 32 and rise beyond",
                least_at(&grids.processors(0), &quarter_waiting) < 32,
            )
            .holds("this number is 16", least_at(&grids.processors(0), &quarter_waiting) == 16)
            .because(RISE),
    )
    .claim(
        Claim::new(
            "At 0.50 more nodes take more time.",
            "plot only: \"the increase in running times when more processors are used\"",
        )
        .here(format!(
            "set two, least on {} nodes if all sends are equal, on {} if they differ",
            least_at(&grids.processors(1), &half),
            least_at(&grids.processors(1), &half_waiting)
        ))
        .holds(
            "longer on the most nodes than on 4 or fewer if sends differ",
            least_at(&grids.processors(1), &half_waiting) <= 4,
        )
        .holds("also if they are equal", least_at(&grids.processors(1), &half) <= 4)
        .because(RISE),
    )
}

/// Why times do not rise on many nodes.
const RISE: &str = "If all sends take equally long, communication takes the same time on all numbers of nodes. In the paper a step waits for the \
                    slowest of all measured sends. With [send times that differ](#send-times-that-differ-between-nodes) times do rise.";

/// The longest of `count` exponentially distributed times with mean 1, in the mean.
pub(super) fn exponential(count: usize) -> f64 {
    (1..=count).map(|place| 1.0 / place as f64).sum()
}

/// The number of nodes with the least time.
pub(super) fn least_at(processors: &[usize], times: &[f64]) -> usize {
    let place = (0..times.len()).min_by(|&one, &other| times[one].total_cmp(&times[other]));
    place.map_or(0, |place| processors[place])
}

/// Figure 4 and table 2: speedups of copies.
pub(super) fn figure_4(grids: &Grids, wider: &str) -> Section {
    let speedup = |set, processors, copies| grids.means.speedup(set, 10, processors, What::Copies(copies));
    let mut table = Grid::new(
        "Speedup over equal shares by number of copies R; the best number, and the paper's (table 2).",
        "set | nodes | R = 2 | 4 | 8 | 16 | 32 | 64 | best R | the paper",
    );
    let (mut matches, mut rows) = (0, 0);
    for set in grids.sets() {
        for (place, processors) in grids.parallel(set).into_iter().enumerate() {
            let cells = [2, 4, 8, 16, 32, 64].map(|copies| {
                if copies <= processors {
                    format!("{:.2}", speedup(set, processors, copies))
                } else {
                    String::new()
                }
            });
            let best = grids.means.best_copies(set, 10, processors).0;
            let paper = TABLE_2[set].get(place).copied();
            matches += usize::from(Some(best) == paper);
            rows += 1;
            let end = [best.to_string(), paper.map_or_else(String::new, |paper| paper.to_string())];
            table.row(
                [grids.nodes[set].name.clone(), processors.to_string()].into_iter().chain(cells).chain(end),
            );
        }
    }
    let panels = grids.sets().map(|set| {
        let processors = grids.parallel(set);
        let bars =
            Bars::new(format!("copies, {}, by nodes", grids.nodes[set].name), "speedup", labels(&processors));
        Panel::from(copies(processors[processors.len() - 1]).skip(1).fold(bars, |bars, copies| {
            let values =
                processors.iter().map(|&of| if copies <= of { speedup(set, of, copies) } else { f64::NAN });
            bars.series(format!("R = {copies}"), values)
        }))
    });
    let best = |set: usize| {
        grids
            .parallel(set)
            .into_iter()
            .map(|processors| {
                grids.means.speedup(
                    set,
                    10,
                    processors,
                    What::Copies(grids.means.best_copies(set, 10, processors).0),
                )
            })
            .collect::<Vec<_>>()
    };
    let most = |set| best(set).into_iter().fold(0.0, f64::max);
    let (one, two) = (most(0), most(1));
    let many: Vec<usize> = grids.parallel(0).into_iter().filter(|&processors| processors >= 8).collect();
    let more_lose = many.iter().all(|&processors| {
        copies(processors)
            .filter(|&copies| copies > 4)
            .all(|copies| speedup(0, processors, copies) < speedup(0, processors, 4))
    });
    let of_four = |set: usize| {
        let last = *grids.parallel(set).last().unwrap_or(&4);
        [4, last].map(|processors| speedup(set, processors, 4))
    };
    Section::new(
        "Figure 4 and table 2: speedups of copies",
        "Copies as in the paper: all nodes of a group begin with the same job. Ratio 0.01.",
    )
    .picture("figure-4", "speedups by number of nodes and of copies for two sets", panels)
    .table(table)
    .claim(
        Claim::new(
            "Four is the best number of copies for most numbers of nodes (table 2).",
            "R* = 4 in 8 of 11 cells, else 2 (2 nodes) and 8",
        )
        .here(format!("the paper's number in {matches} of {rows} cells"))
        .holds("the paper's number in at least half of the cells", 2 * matches >= rows)
        .holds("the paper's number in all cells", matches == rows)
        .because(CONSTANTS)
        .fitted(),
    )
    .claim(
        Claim::new("More than four copies are slower than four in set one.", "plot only")
            .here(if more_lose {
                "true of all numbers of nodes from 8 on"
            } else {
                "not true of all numbers of nodes"
            })
            .holds("8 and more copies are slower than 4 on 8 and more nodes", more_lose)
            .because(CONSTANTS),
    )
    .claim(
        Claim::new("For a given number of copies, the speedup grows with the number of nodes.", "plot only")
            .here(format!(
                "4 copies on 4 and on the most nodes: set one {:.2} and {:.2}, set two {:.2} and {:.2}",
                of_four(0)[0],
                of_four(0)[1],
                of_four(1)[0],
                of_four(1)[1]
            ))
            .holds("4 copies gain more on the most nodes than on 4 in set one", of_four(0)[1] > of_four(0)[0])
            .holds("also in set two", of_four(1)[1] > of_four(1)[0])
            .because(CONSTANTS),
    )
    .claim(
        Claim::new(
            "Speedups of set one are below 2, those of set two reach 6 and more.",
            "below 2.0, over 6.0",
        )
        .here(format!("up to {one:.2} and {two:.2}"))
        .holds("below 2 in set one", one < 2.0)
        .holds("above 6 in set two", two > 6.0)
        .because(wider)
        .fitted(),
    )
}

/// Figure 5: times of the best number of copies by ratio.
pub(super) fn figure_5(grids: &Grids) -> Section {
    let mut table = Grid::new(
        "Hours with the best number of copies, and that number.",
        "set | nodes | 0.01 | R* | 0.25 | R* | 0.50 | R*",
    );
    for set in grids.sets() {
        for processors in grids.processors(set) {
            let cells = RATIOS.into_iter().flat_map(|ratio| {
                let (copies, seconds) = grids.means.best_copies(set, ratio, processors);
                [format!("{:.2}", hours(seconds)), copies.to_string()]
            });
            table.row([grids.nodes[set].name.clone(), processors.to_string()].into_iter().chain(cells));
        }
    }
    let panels = grids.sets().map(|set| {
        let bars = Bars::new(
            format!("best copies, {}, by nodes", grids.nodes[set].name),
            "time (h)",
            labels(&grids.processors(set)),
        )
        .decades();
        Panel::from(RATIOS.iter().zip(RATIO_NAMES).fold(bars, |bars, (&ratio, name)| {
            bars.series(format!("ratio {name}"), grids.copied(set, ratio).into_iter().map(hours))
        }))
    });
    let pays = |set: usize, ratio: u32| {
        let parallel = grids.parallel(set);
        let pays = parallel
            .iter()
            .filter(|&&processors| grids.means.best_copies(set, ratio, processors).0 > 1)
            .count();
        (pays, parallel.len())
    };
    let ([half_one, half_two], [quarter_one, quarter_two]) =
        ([0, 1].map(|set| pays(set, 500)), [0, 1].map(|set| pays(set, 250)));
    let saved = |set: usize, ratio: u32| {
        let parallel = grids.parallel(set).into_iter();
        parallel
            .map(|processors| {
                100.0
                    * (1.0
                        - grids.means.best_copies(set, ratio, processors).1
                            / grids.means.s(set, ratio, processors, What::Copies(1)))
            })
            .fold(0.0, f64::max)
    };
    let times = grids.copied(1, 500);
    let waiting = grids.waiting_h(1, 500, |processors| grids.best(1, 500, processors), exponential);
    Section::new(
        "Figure 5: times of copies by ratio",
        "A step with R copies takes R jobs of a group, and a message after each.",
    )
    .picture("figure-5", "times with the best number of copies for three ratios and two sets", panels)
    .table(table)
    .claim(
        Claim::new("At 0.50 copies never pay.", "both sets")
            .here(format!(
                "pay in {} of {} and {} of {} numbers of nodes; save {} and {} % at most",
                half_one.0,
                half_one.1,
                half_two.0,
                half_two.1,
                decimal(saved(0, 500), 0),
                decimal(saved(1, 500), 0)
            ))
            .holds("never in set one", half_one.0 == 0)
            .holds("never in set two", half_two.0 == 0)
            .because(MESSAGES),
    )
    .claim(
        Claim::new("At 0.25 copies do not pay in set one.", "plot only")
            .here(format!(
                "pay in {} of {}; save {} % at most",
                quarter_one.0,
                quarter_one.1,
                decimal(saved(0, 250), 0)
            ))
            .holds("never", quarter_one.0 == 0)
            .because(MESSAGES)
            .fitted(),
    )
    .claim(
        Claim::new("At 0.25 copies pay in many cases in set two.", "30 % less time")
            .here(format!(
                "pay in {} of {}; save {} % at most",
                quarter_two.0,
                quarter_two.1,
                decimal(saved(1, 250), 0)
            ))
            .holds("in at least half of the numbers of nodes", 2 * quarter_two.0 >= quarter_two.1)
            .because(CONSTANTS),
    )
    .claim(
        Claim::new(
            "At 0.50 the times rise with the number of nodes.",
            "plot only: \"a consistent increase\"",
        )
        .here(format!(
            "set two, least on {} nodes if all sends are equal, on {} if they differ",
            least_at(&grids.processors(1), &times),
            least_at(&grids.processors(1), &waiting)
        ))
        .holds(
            "longer on the most nodes than on 4 or fewer if sends differ",
            least_at(&grids.processors(1), &waiting) <= 4,
        )
        .holds("also if they are equal", least_at(&grids.processors(1), &times) <= 4)
        .because(RISE),
    )
}

/// Why copies pay at higher ratios than in the paper.
const MESSAGES: &str = "A few slow nodes determine a step with equal shares. Copies pay while the message that ends a job is short: \
                        [its time](#the-message-that-a-job-is-finished) decides. In the paper it is that of the slowest pair of a group.";

/// Where a result depends on the job times that are drawn.
const CONSTANTS: &str = "It depends on the job times, which are not public: see [the constants](#the-constants-of-the-drawn-job-times), \
                         varied one at a time.";

/// Figure 6: times of the three methods.
pub(super) fn figure_6(grids: &Grids) -> Section {
    let mut table = Grid::new("Hours at a ratio of 0.01.", "set | nodes | ELB | DLB | best copies");
    for set in grids.sets() {
        for processors in grids.processors(set) {
            let cells = [
                grids.means.s(set, 10, processors, What::Copies(1)),
                grids.means.s(set, 10, processors, What::Balanced),
                grids.means.best_copies(set, 10, processors).1,
            ];
            table.row(
                [grids.nodes[set].name.clone(), processors.to_string()]
                    .into_iter()
                    .chain(cells.map(|s| format!("{:.2}", hours(s)))),
            );
        }
    }
    let panels = grids.sets().map(|set| {
        let bars = Bars::new(
            format!("{}, ratio 0.01, by nodes", grids.nodes[set].name),
            "time (h)",
            labels(&grids.processors(set)),
        )
        .decades();
        let bars = bars.series("ELB", grids.times(set, 10, What::Copies(1)).into_iter().map(hours));
        let bars = bars.series("DLB", grids.times(set, 10, What::Balanced).into_iter().map(hours));
        Panel::from(bars.series("best copies", grids.copied(set, 10).into_iter().map(hours)))
    });
    let equal = |set| grids.times(set, 10, What::Copies(1));
    let balanced = |set| grids.times(set, 10, What::Balanced);
    let lower = grids.sets().all(|set| {
        grids.parallel(set).into_iter().all(|processors| {
            let equal = grids.means.s(set, 10, processors, What::Copies(1));
            grids.means.s(set, 10, processors, What::Balanced) < equal
                && grids.means.best_copies(set, 10, processors).1 < equal
        })
    });
    let all_fall =
        grids.sets().all(|set| falls(&equal(set)) && falls(&balanced(set)) && falls(&grids.copied(set, 10)));
    let two = [balanced(1)[0] / balanced(1)[1], grids.copied(1, 10)[0] / grids.copied(1, 10)[1]];
    let at = grids.processors(0).len() - 1;
    let gain = |times: Vec<f64>| times[0] / times[at];
    Section::new("Figure 6: times of ELB, DLB and copies", "The best number of copies. Logarithmic axis.")
        .picture("figure-6", "times of equal shares, balancing and copies for two sets", panels)
        .table(table)
        .claim(
            Claim::new("DLB and copies take less time than equal shares.", "\"consistently\"")
                .here(if lower {
                    "on all numbers of nodes of both sets"
                } else {
                    "not on all numbers of nodes"
                })
                .holds("both are faster on each number of nodes above one", lower)
                .because(CONSTANTS),
        )
        .claim(
            Claim::new("More nodes take less time for all three methods.", "plot only")
                .here(format!("set two, equal shares: {} h", text(equal(1).into_iter().map(hours), 1)))
                .holds("all times fall with each number of nodes", all_fall)
                .because(CONSTANTS)
                .fitted(),
        )
        .claim(
            Claim::new(
                "On two nodes of set two, DLB and copies are more than twice as fast as one node.",
                "superlinear",
            )
            .here(format!("{} times as fast", text(two, 2)))
            .holds("more than twice as fast with DLB", two[0] > 2.0)
            .holds("more than twice as fast with copies", two[1] > 2.0)
            .fitted()
            .because(CONSTANTS),
        )
        .claim(
            Claim::new(
                "In set two DLB gains more by nodes than in set one, and equal shares gain less.",
                "plot only",
            )
            .here(format!(
                "from 1 to {} nodes: DLB {:.1} and {:.1}, equal shares {:.1} and {:.1} times as fast",
                grids.processors(0)[at],
                gain(balanced(0)),
                gain(balanced(1)),
                gain(equal(0)),
                gain(equal(1))
            ))
            .holds("DLB gains more in set two", gain(balanced(1)) > gain(balanced(0)))
            .holds("equal shares gain less in set two", gain(equal(1)) < gain(equal(0)))
            .because(CONSTANTS),
        )
}

/// Figure 7: speedups of DLB and of copies.
pub(super) fn figure_7(grids: &Grids, wider: &str) -> Section {
    let balanced = |set, processors| grids.means.speedup(set, 10, processors, What::Balanced);
    let copied = |set, processors| {
        grids.means.speedup(set, 10, processors, What::Copies(grids.means.best_copies(set, 10, processors).0))
    };
    let mut table = Grid::new(
        "Speedup over equal shares at a ratio of 0.01.",
        "set | nodes | DLB | best copies | faster",
    );
    for set in grids.sets() {
        for processors in grids.parallel(set) {
            let (one, other) = (balanced(set, processors), copied(set, processors));
            let faster = if one >= other { "DLB" } else { "copies" };
            table.row([
                grids.nodes[set].name.clone(),
                processors.to_string(),
                format!("{one:.2}"),
                format!("{other:.2}"),
                faster.to_owned(),
            ]);
        }
    }
    let panels = grids.sets().map(|set| {
        let processors = grids.parallel(set);
        let bars = Bars::new(
            format!("{}, ratio 0.01, by nodes", grids.nodes[set].name),
            "speedup",
            labels(&processors),
        );
        let bars = bars.series("DLB", processors.iter().map(|&of| balanced(set, of)));
        Panel::from(bars.series("best copies", processors.iter().map(|&of| copied(set, of))))
    });
    let first_from = |least: usize| {
        let mut processors = grids.parallel(0).into_iter().filter(|&of| of >= least);
        processors.all(|of| balanced(0, of) >= copied(0, of))
    };
    let first = first_from(2);
    let many: Vec<usize> = grids.parallel(1).into_iter().filter(|&processors| processors >= 8).collect();
    let wins = many.iter().filter(|&&processors| balanced(1, processors) > copied(1, processors)).count();
    let peak = |set| {
        grids
            .parallel(set)
            .into_iter()
            .max_by(|&one, &other| balanced(set, one).total_cmp(&balanced(set, other)))
            .unwrap_or(0)
    };
    let (most_one, most_two) = (balanced(0, peak(0)), balanced(1, peak(1)));
    let settings = || {
        grids.sets().flat_map(|set| [250, 500].map(|ratio| (set, ratio))).flat_map(|(set, ratio)| {
            grids.parallel(set).into_iter().map(move |processors| (set, ratio, processors))
        })
    };
    let high = settings()
        .filter(|&(set, ratio, processors)| {
            grids.means.s(set, ratio, processors, What::Balanced)
                < grids.means.best_copies(set, ratio, processors).1
        })
        .count();
    let four = balanced(0, 4);
    let [at_16, at_32] = [16, 32]
        .map(|processors| grids.parallel(0).into_iter().filter(|&of| of <= processors).max().unwrap_or(2));
    Section::new("Figure 7: speedups of DLB and copies", "Over equal shares on the same nodes.")
        .picture("figure-7", "speedups of balancing and of copies for two sets", panels)
        .table(table)
        .claim(
            Claim::new("On four nodes of set one DLB is 1.8 times as fast as equal shares.", "1.8")
                .here(format!("{four:.2}"))
                .holds("within 0.2", (four - 1.8).abs() < 0.2)
                .fitted().because(CONSTANTS),
        )
        .claim(
            Claim::new("In set one DLB is as fast as copies or faster.", "\"consistently\"")
                .here(if first { "on all numbers of nodes" } else { "not on all numbers of nodes" })
                .holds("on each number of nodes from 4 on", first_from(4))
                .holds("on 2 nodes", first_from(2))
                .because(
                    "On 2 nodes a division every 2.5 P = 5 steps costs 7.5 s per step. [Section 2.2.1](#section-221-how-often-to-divide) has \
                     other intervals.",
                )
            .fitted(),
        )
        .claim(
            Claim::new("In set two copies are faster on 2 and 4 nodes.", "plot only")
                .here(format!("{:.2} and {:.2} against {:.2} and {:.2}", copied(1, 2), copied(1, 4), balanced(1, 2), balanced(1, 4)))
                .holds("faster on 2 nodes", copied(1, 2) > balanced(1, 2))
                .holds("faster on 4 nodes", copied(1, 4) > balanced(1, 4))
                .because(wider)
                .fitted(),
        )
        .claim(
            Claim::new("In set two DLB is faster from 8 nodes on.", "plot only")
                .here(format!("on {wins} of {} numbers of nodes from 8 on", many.len()))
                .holds("on each number of nodes from 8 on", wins == many.len())
                .holds("on the largest number of nodes", many.last().is_some_and(|&most| balanced(1, most) > copied(1, most)))
                .because(CONSTANTS)
            .fitted(),
        )
        .claim(
            Claim::new("The speedup of DLB is greatest on 16 nodes in set one, on 32 in set two.", "16, 32")
                .here(format!("greatest on {} and {} nodes", peak(0), peak(1)))
                .holds("on 16 nodes in set one", peak(0) == 16)
                .holds("on 32 nodes in set two", peak(1) == 32)
                .because(format!(
                    "The speedups on 16 and 32 nodes are close: {:.2} and {:.2} in set one, {:.2} and {:.2} in set two. \
                     [Other constants](#the-constants-of-the-drawn-job-times) move them.",
                    balanced(0, at_16), balanced(0, at_32), balanced(1, at_16), balanced(1, at_32)
                ))
            .fitted(),
        )
        .claim(
            Claim::new("Speedups are higher in set two.", "over 6")
                .here(format!("DLB up to {most_one:.2} and {most_two:.2}"))
                .holds("the greatest of DLB is higher in set two", most_two > most_one)
                .holds("it is above 6", most_two > 6.0)
                .because(wider)
                .fitted(),
        )
        .claim(
            Claim::new("At ratios of 0.25 and 0.50 DLB is faster than copies in all situations.", "both sets")
                .here(format!("in {high} of {} settings", settings().count()))
                .holds("in all settings", high == settings().count())
                .because(CONSTANTS),
        )
}

/// Figure 9: the choice.
pub(super) fn figure_9(context: &Context, grids: &Grids) -> Section {
    let set = 1;
    let copies = |processors: usize| processors.min(4);
    let processors = grids.parallel(set);
    let runs = context.repetitions(20, 4) as usize;
    let chosen = context.each("dlb-jr, figure 9", processors.len() * runs, |index| {
        let processors = processors[index / runs];
        let scenario = grids.nodes[set].scenario(processors, 10, (index % runs) as u64);
        let undivided = (5 * processors).div_ceil(2 * PERIOD);
        [0, undivided].map(|ignored| choice(&scenario, copies(processors), ignored))
    });
    let losses = |place: usize, of: fn(&Chosen) -> f64| {
        let runs = &chosen[place * runs..(place + 1) * runs];
        100.0 * runs.iter().map(|run| of(&run[0])).sum::<f64>()
            / runs.iter().map(|run| run[0].seconds).sum::<f64>()
    };
    // The speedup of a choice whose lines leave out the periods before the first division.
    let later = |place: usize| {
        let runs = &chosen[place * runs..(place + 1) * runs];
        let seconds = runs.iter().map(|run| run[1].seconds).sum::<f64>() / runs.len() as f64;
        grids.means.s(set, 10, processors[place], What::Copies(1)) / seconds
    };
    let columns = |processors: usize| {
        [What::Balanced, What::Copies(copies(processors)), What::Choice(copies(processors)), CHOICE]
            .map(|what| grids.means.speedup(set, 10, processors, what))
    };
    let heads = "nodes | DLB | 4 copies | DLB/JR | behind the better % | lost by switches % | lost with the slower method % | in the first period % | \
                 lines without undivided periods | Caribou's `dlb-jr`";
    let mut table = Grid::new("Speedup over equal shares, set two, ratio 0.01.", heads);
    let (mut worst, mut worst_later, mut ahead) = (f64::NEG_INFINITY, f64::NEG_INFINITY, 0);
    for (place, &of) in processors.iter().enumerate() {
        let [balanced, copied, choice, own] = columns(of);
        let off = 100.0 * (balanced.max(copied) / choice - 1.0);
        worst = f64::max(worst, off);
        worst_later = f64::max(worst_later, 100.0 * (balanced.max(copied) / later(place) - 1.0));
        ahead += usize::from(own > choice);
        table.row([
            of.to_string(),
            format!("{balanced:.2}"),
            format!("{copied:.2}"),
            format!("{choice:.2}"),
            decimal(off, 1),
            decimal(losses(place, |run| run.switching), 1),
            decimal(losses(place, |run| run.wrong), 1),
            decimal(losses(place, |run| run.wrong_first), 1),
            format!("{:.2}", later(place)),
            format!("{own:.2}"),
        ]);
    }
    let names = ["DLB", "4 copies", "DLB/JR", "Caribou's dlb-jr"];
    let bars = Bars::new("set two, ratio 0.01, by nodes", "speedup", labels(&processors));
    let bars = names.iter().enumerate().fold(bars, |bars, (place, name)| {
        bars.series(*name, processors.iter().map(|&of| columns(of)[place]))
    });
    let mean = |of: fn(&Chosen) -> f64| {
        (0..processors.len()).map(|place| losses(place, of)).sum::<f64>() / processors.len() as f64
    };
    Section::new(
        "Figure 9: the choice",
        "The paper's method by its steps 1 to 8: it begins with DLB, fits both lines after every 100 steps, and pays for each switch. With 4 \
         copies, or 2 on two nodes.",
    )
    .picture("figure-9", "speedups of balancing, copies and the choice on 2 to 64 nodes", [bars.into()])
    .table(table)
    .claim(
        Claim::new(
            "The choice is at least as fast as both methods in all situations.",
            "\"at least as good as both\"",
        )
        .here(format!("at most {} % slower than the better one", decimal(worst.max(0.0), 1)))
        .holds("at most 5 % slower than the better method on each number of nodes", worst < 5.0)
        .holds("nowhere slower", worst <= 0.0)
        .because(format!(
            "DLB divides first after 2.5 P steps, and is as slow as equal shares until then: {} % of the time of the choice are lost in the first \
             period, {} % with the slower method in all periods, {} % in switches, in the mean. These slow periods also bend the lines. \
             Without them in the lines, the choice is at most {} % slower than the better method.",
            decimal(mean(|run| run.wrong_first), 1),
            decimal(mean(|run| run.wrong), 1),
            decimal(mean(|run| run.switching), 1),
            decimal(worst_later.max(0.0), 1)
        )),
    )
    .best(format!(
        "`dlb-jr` is faster than the paper's choice on {ahead} of {} numbers of nodes. It uses a line only where it fits its points well, \
         and waits until a gain exceeds chance and the cost of the switch.",
        processors.len()
    ))
}
