//! Repeats the paper on balancing and copies (Dobber, van der Mei and Koole, 2008): figures 2 to 9 and table 2. Job times
//! are drawn from a model, because the paper's are not public; `--hosts-trace` adds job times of measured hosts.
//!
//! `virtual_cluster::grid_cluster` lists what is calibrated. DLB and copies (JR) are the paper's: a division every 2.5 P
//! steps, and copies whose group begins with the same job. Policies of production are separate columns.

mod beyond;
mod figure_2;
mod figures;
mod runs;

use virtual_cluster::grid_cluster::{JOBS, PROCESSORS, SETS};

use self::runs::{Means, Nodes, Task, What, copies};
use super::Context;
use super::page::{Grid, Live, Page};

/// Ratios of communication to computation, in thousandths.
const RATIOS: [u32; 3] = [10, 250, 500];

/// Policies of Caribou, run at the lowest ratio: copies, the choice, and the best of all.
const COPIES: What = What::Policy("replicate,copies=4");
const DES: What = What::Policy("des,by=wall");
const CHOICE: What = What::Policy("dlb-jr,copies=4,by=wall");
const ADAPTIVE: What = What::Policy("adaptive,by=wall");

/// All runs of figures 3 to 7 and 9.
struct Grids {
    nodes: Vec<Nodes>,
    means: Means,
    quick: bool,
}

impl Grids {
    fn run(context: &Context) -> Self {
        let steps = context.repetitions(JOBS as u64, 300);
        let drawn = |set: &virtual_cluster::grid_cluster::JobTimeModel| Nodes {
            name: set.name.to_owned(),
            times: set.draw(1),
            by_step: false,
            steps,
        };
        let nodes: Vec<Nodes> = SETS.iter().map(drawn).collect();
        let mut tasks = Vec::new();
        for processors in PROCESSORS {
            for set in (0..nodes.len()).filter(|&set| Self::has(set, processors, context.quick)) {
                for ratio in RATIOS {
                    let task = |what| Task { nodes: set, ratio, processors, what };
                    tasks.extend(copies(processors).map(|copies| task(What::Copies(copies))));
                    tasks.push(task(What::Balanced));
                    if ratio == RATIOS[0] {
                        tasks.extend(
                            [DES, COPIES, CHOICE, ADAPTIVE, What::Choice(processors.min(4))].map(task),
                        );
                    }
                }
            }
        }
        let runs = context.repetitions(20, 10);
        let means = Means::run(context, "dlb-jr, figures 3 to 9", &nodes, &tasks, runs);
        Self { nodes, means, quick: context.quick }
    }

    /// Whether a set runs on this number of processors: set one has 40 nodes. Tests run fewer.
    fn has(set: usize, processors: usize, quick: bool) -> bool {
        processors
            <= if quick {
                16
            } else if set == 0 {
                32
            } else {
                64
            }
    }

    /// The numbers of processors of a set.
    fn processors(&self, set: usize) -> Vec<usize> {
        PROCESSORS.into_iter().filter(|&processors| Self::has(set, processors, self.quick)).collect()
    }
}

/// The page.
pub(super) fn page(context: &Context) -> Page {
    let grids = Grids::run(context);
    let (one, two) = (grids.means.speedup(0, 10, 4, What::Balanced), grids.means.best_copies(1, 10, 4));
    let (constants, wider) = beyond::constants(context);
    let mut sections = vec![figure_2::section(context)];
    sections.extend([
        figures::figure_3(&grids),
        figures::figure_4(&grids, &wider),
        figures::figure_5(&grids),
        figures::figure_6(&grids),
        figures::figure_7(&grids, &wider),
        figure_2::figure_8(context),
        figures::figure_9(context, &grids),
        beyond::own_policies(&grids),
        beyond::intervals(context),
        beyond::send_times(&grids),
        beyond::messages(context, &grids),
        constants,
        beyond::hosts(context),
    ]);
    Page {
        title: "Balancing, copies, and the choice between both (Dobber, van der Mei and Koole, 2008)",
        citation: "M. Dobber, R. van der Mei and G. Koole: Dynamic Load Balancing and Job Replication in a Global-Scale Grid \
                   Environment: a Comparison. 2008. Policies `des`, `replicate` and `dlb-jr` for supersteps.",
        proposes: "in programs whose steps wait for the slowest of P nodes, either shares follow predicted speeds every 2.5 P steps (DLB), \
                   or R nodes compute each job and the first result counts (R-JR). Both times are linear in a statistic Y, so a \
                   program can choose between them while it runs (DLB/JR)."
            .into(),
        found: "DLB is faster than equal shares (ELB) in all settings. Four copies are mostly the best number, and pay only where \
                communication takes little time. Copies win on 2 and 4 nodes of a global grid, DLB on more. The choice is never \
                worse than the better of both."
            .into(),
        here: format!(
            "the job times of the paper are not public. A model draws them whose constants are searched so that figure 2, table 2 and figure 7 come \
             out nearly: DLB is {one:.1} times as fast as equal shares on 4 nodes of set one, and {} copies are best on 4 nodes of set two. What \
             was not searched for comes out, too: DLB gains in all settings and beats copies at higher ratios, and 2.5 P steps are the best \
             interval. The published choice loses on many nodes. Caribou's copies cost less, and its policies are faster than both methods.",
            two.0
        ),
        setting: setting(),
        sections,
        live: vec![Live {
            command: "cargo run --release --bin jacobi -- --ranks 2 --neighbour 1 --compare equal,des,replicate,copies=2,dlb-jr,copies=2",
            shows: "Equal shares, balancing, copies and the choice on the vCPUs of this machine, one of them shared with another \
                    process. With two workers copies save what the slower worker would take longer.",
        }],
    }
}

fn setting() -> Grid {
    let mut table = Grid::new("", "part | the paper | here").words(3);
    table.row([
        "job times",
        "130 runs of 2000 jobs on PlanetLab, means 72.5 s and 65 s; not public",
        "drawn: levels of nodes, slow and fast changes, bursts; the same means (fitted)",
    ]);
    table.row([
        "sets",
        "one: 40 in the USA; two: 90 all over the world",
        "40 nodes that differ by 0.76, 90 by 1.18 (deviation of the logarithm, fitted)",
    ]);
    table.row(["runs", "1000 sets of nodes per number", "20 sets of nodes per number, 2000 steps"]);
    table.row([
        "sends",
        "measured, 750 ms in the mean; the slowest pair counts",
        "the ratio times the mean job time, the same on all links",
    ]);
    table.row(["message that a job is finished", "300 ms", "0.4 of a send"]);
    table.row(["division", "37.5 s; to copies 140 %, back 60 %", "the same"]);
    table.row([
        "higher ratios",
        "shorter jobs",
        "longer sends, so that a division stays as long as a few jobs",
    ]);
    table.row([
        "DLB",
        "every 2.5 P steps by predicted speeds",
        "the same, `des,every=2.5P,by=wall,tolerance=0,ahead=0`",
    ]);
    table.row([
        "plots",
        "without numbers in the text, but for some speedups",
        "compared by their description",
    ]);
    table
}
