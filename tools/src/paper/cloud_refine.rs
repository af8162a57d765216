//! Repeats the paper on refinement balancing in the cloud (Gupta, Sarood, Kale and Milojicic, 2013), on a model of its
//! VMs and programs.
//!
//! Two constants of the model are fitted to the two times in the paper's text (see `virtual_cluster::cloud_cluster`).

mod beyond;
mod parameters;
mod programs;
mod readings;
mod runs;
mod timeline;

use lb_strategies::Period;
use virtual_cluster::cloud_cluster::{
    BARRIER_S, CELL_S, CHUNK_S, Cloud, MOLECULES_S, Program, SLOW_CLOCK, Syncs,
};

use self::programs::{Case, Programs};
use self::runs::{ALWAYS, Run};
use super::Context;
use super::page::{Grid, Live, Page};

/// The paper's strategy.
const PAPER: &str = "refine-paper";
/// The default strategy of Caribou, and its period.
const DEFAULT: (&str, Period) = ("refine", Period::Auto);

/// The page.
pub(super) fn page(context: &Context) -> Page {
    let programs = Programs::all(context);
    let most = programs.greatest_saved(Case::Interference);
    let beside = Cloud { interferes: ALWAYS, ..Cloud::new(Program::Stencil2d, 16) };
    let literal = Run::of(&beside, readings::LITERAL).moves;
    let [least_part, mean_part] = programs.parts_of_best_gain();
    Page {
        title: "Refinement in the cloud (Gupta, Sarood, Kale and Milojicic, 2013)",
        citation: "A. Gupta, O. Sarood, L. V. Kale and D. Milojicic: Improving HPC Application Performance in Cloud through \
                   Dynamic Load Balancing. 2013. Strategy `refine-paper` for arrays of chunks.",
        proposes: "the load of a vCPU is the CPU time of its chunks plus the time that others take from it (equation 2), in ticks \
                   of its speed (equation 1). Every 20 iterations, overloaded vCPUs give their largest chunks to underloaded \
                   ones until all are near the average (equation 3, Algorithm 1)."
            .into(),
        found: "on a private cloud of 64 VMs, with slow nodes and an interfering VM, three programs take up to 45 % less time. \
                The best period is 20 iterations, the best chunk 256 x 256 cells."
            .into(),
        here: format!(
            "the two times in the text determine the model (here {:.2} s and {:.2} s); the savings follow: {:.1} % on 16 and {:.1} % on 32 VMs \
             with slow nodes (the paper: 20.5 and 18.8 %), and up to {most:.1} % beside a neighbour. The text of Algorithm 1 \
             with equal times moves {literal} chunks beside a neighbour on 16 VMs; the authors' published program shows how they read it. The \
             default of Caribou needs no period, and reaches {mean_part:.1} % of the best achievable gain on average, {least_part:.1} % at least.",
            programs.none_s(0, Case::Slow, 16),
            programs.none_s(0, Case::Slow, 32),
            programs.paper_saved(0, Case::Slow, 16),
            programs.paper_saved(0, Case::Slow, 32),
        ),
        setting: setting(),
        sections: vec![
            readings::section(context),
            timeline::slow_processor(context),
            timeline::figure_3(context),
            timeline::figure_4(context),
            parameters::figure_5a(context),
            parameters::figure_5b(context),
            parameters::figure_5c(context),
            programs.figure_6(),
            programs.figure_7(),
            beyond::neighbour_models(context),
            beyond::future_work(context),
        ],
        live: vec![
            Live {
                command: "cargo run --release --bin stencil2d -- --ranks 2 --neighbour 1 --compare none,refine-paper,refine --check",
                shows: "Two vCPUs, one of them shared with another process: the time of each iteration without balancing, under the \
                        paper's strategy and under the default. At best a third of the time is saved.",
            },
            Live {
                command: "cargo run --release --bin stencil2d -- --ranks 2 --neighbour 1 --compare none,refine --period 5",
                shows: "The same with a sync every five iterations; repeat it with other periods for figure 5b.",
            },
        ],
    }
}

fn setting() -> Grid {
    let mut table = Grid::new("", "part | the paper | here").words(3);
    let mut row =
        |part: &str, paper: &str, here: String| table.row([part.to_owned(), paper.to_owned(), here]);
    row(
        "VMs",
        "one vCPU each, four to a node, KVM, pinned; fast nodes 3.00 GHz, one slow node 2.13 GHz",
        format!("the same; a slow VM has {SLOW_CLOCK:.2} of the speed of a fast one"),
    );
    row(
        "neighbour",
        "a VM pinned to the core of one VM runs NPB-FT, class A, in a loop",
        "always wants to run, and gets half of the vCPU".into(),
    );
    row(
        "network",
        "1 Gbit/s Ethernet, virtio",
        format!(
            "a barrier of {:.1} ms ends each iteration (fitted); chunks move at 1 Gbit/s",
            1e3 * BARRIER_S
        ),
    );
    row(
        "Stencil2D, Wave2D",
        "8K x 8K and 12K x 12K cells, 256 x 256 to a chunk, 500 iterations",
        format!("the same; {:.1} ns for a cell (fitted)", 1e9 * CELL_S),
    );
    row(
        "Mol3D",
        "ApoA1, 92,000 atoms, 200 iterations",
        format!("6804 chunks of unequal cost, {MOLECULES_S} s for an iteration on one fast VM (assumed)"),
    );
    let Syncs { decision_s, move_s, error } = Syncs::default();
    row(
        "balancing",
        "every 20 iterations, every 50 on 64 VMs; costs are not stated",
        format!(
            "the same; {:.0} ms for a sync, {:.0} ms for a move, loads measured with an error of {:.0} % (assumed)",
            1e3 * decision_s,
            1e3 * move_s,
            100.0 * error
        ),
    );
    row("scheduling", "Charm++", format!("{:.0} us for a chunk in an iteration (assumed)", 1e6 * CHUNK_S));
    row("plots", "without numbers in the text", "compared by the numbers and the words of the text".into());
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::page::Verdict;

    #[test]
    fn figure_3_is_reproduced() {
        let section = timeline::figure_3(&Context::default());
        assert_eq!(section.claims.len(), 4);
        for claim in section.claims {
            assert_eq!(claim.verdict(), Verdict::Reproduced, "{}: {}", claim.text, claim.here);
        }
    }

    #[test]
    fn the_authors_reading_balances_16_vms_and_the_literal_one_does_not_and_the_default_nears_the_bound() {
        let cloud = Cloud { interferes: ALWAYS, ..Cloud::new(Program::Stencil2d, 16) };
        let [none, literal, authors] =
            ["none", readings::LITERAL, PAPER].map(|strategy| Run::of(&cloud, strategy));
        assert_eq!(literal.moves, 0);
        assert!(authors.saved(&none) > 35.0, "{}", authors.saved(&none));
        let default = Run::of_default(&cloud);
        let best_gain = runs::saved(cloud.bound_s(), none.seconds);
        assert!(default.saved(&none) > 0.95 * best_gain, "{} of {best_gain}", default.saved(&none));
    }
}
