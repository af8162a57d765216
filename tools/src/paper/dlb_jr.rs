//! Repeats the paper on balancing and copies (Dobber, van der Mei and Koole, 2008): figures 2 to 9 and table 2. Job times
//! are drawn from a model, because the paper's are not public; `--hosts-trace` adds job times of measured hosts.
//!
//! `virtual_cluster::grid_cluster` lists what is calibrated. DLB and copies (JR) are the paper's: a division every 2.5 P
//! steps, and copies whose group begins with the same job. Policies of production are separate columns.

mod choice;
mod constants;
mod figure_2;
mod figure_3;
mod figure_4;
mod figure_5;
mod figure_6;
mod figure_7;
mod figure_8;
mod figure_9;
mod grids;
mod intervals;
mod policies;
mod runs;
mod sends;

use self::grids::Grids;
use self::runs::What;
use super::Context;
use super::page::{Grid, Live, Page};

/// Policies of Caribou, run at the lowest ratio: copies, the choice, and the best of all.
const COPIES: What = What::Policy("replicate,copies=4");
const DES: What = What::Policy("des,by=wall");
const CHOICE: What = What::Policy("dlb-jr,copies=4,by=wall");
const ADAPTIVE: What = What::Policy("adaptive,by=wall");

impl Context {
    /// Number of draws of the job times, from each of which a run on each number of nodes is made.
    fn draws(&self) -> usize {
        self.repetitions(200, 12) as usize
    }
}

/// The page.
pub(super) fn page(context: &Context) -> Page {
    let grids = Grids::run(context);
    let runs = figure_2::runs_of_set_two(context);
    let (constants, wider) = constants::section(context);
    let four = grids.times.speedups(0, 10, 4, What::Balanced);
    let [high, in_proportion] =
        [What::Balanced, What::BalancedInProportion].map(|what| grids.faster_at_high_ratios(what));
    let best = grids.times.best_copies(1, 10, 4);
    let sections = vec![
        figure_2::section(&runs),
        figure_3::section(&grids),
        figure_4::section(&grids, &wider),
        figure_5::section(&grids),
        figure_6::section(&grids),
        figure_7::section(&grids, &wider),
        figure_8::section(context, &runs),
        figure_9::section(context, &grids),
        policies::own_policies(&grids),
        intervals::section(context),
        sends::send_times(&grids),
        sends::messages(context, &grids),
        constants,
        policies::hosts(context),
    ];
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
            "the job times of the paper are not public. A model draws them {} times. Its constants were searched on one other draw, so that figure 2, \
             table 2 and figure 7 come out nearly. Over all draws, DLB is {} times as fast as equal shares on 4 nodes of set one, and {best} \
             copies are best on 4 nodes of set two. A few very slow nodes determine speedups, so single draws differ by more than the methods do \
             (in brackets: the middle 90 % of the draws). At higher ratios jobs are shorter but a division is not: DLB is then faster than \
             equal shares in {high} of {} settings. If a division is shortened as the jobs are, it is in {in_proportion}.",
            grids.draws,
            four.cell(2),
            2 * grids.settings().count()
        ),
        setting: setting(grids.draws),
        sections,
        live: vec![Live {
            command: "cargo run --release --bin jacobi -- --ranks 2 --neighbour 1 --compare equal,des,replicate,copies=2,dlb-jr,copies=2",
            shows: "Equal shares, balancing, copies and the choice on the vCPUs of this machine, one of them shared with another \
                    process. With two workers copies save what the slower worker would take longer.",
        }],
    }
}

fn setting(draws: usize) -> Grid {
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
    table.row([
        "runs",
        "1000 sets of nodes per number, on one set of job times",
        &format!(
            "{draws} draws of the job times, one set of nodes per number and draw, 2000 steps; {} draws where constants are varied",
            draws.min(constants::DRAWS)
        ),
    ]);
    table.row([
        "numbers",
        "means; speedups are ratios of mean times (equations 1 and 2)",
        "the same; in brackets the middle 90 % of the draws",
    ]);
    table.row([
        "sends",
        "measured, 750 ms in the mean; the slowest pair counts",
        "0.01 of the mean job time, the same on all links",
    ]);
    table.row(["message that a job is finished", "300 ms", "0.4 of a send"]);
    table.row(["division", "37.5 s; to copies 140 %, back 60 %", "the same"]);
    table.row(["higher ratios", "shorter jobs", "shorter jobs; sends, messages and divisions stay"]);
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
