//! Figure 7: speedups of DLB and of copies.

use super::grids::{CONSTANTS, Grids, Series};
use super::runs::What;
use crate::paper::page::{Claim, Grid, Section};

/// The figure.
pub(super) fn section(grids: &Grids, wider: &str) -> Section {
    let balanced = |set, processors| grids.times.speedup(set, 10, processors, What::Balanced);
    let best = |set, processors| grids.best(set, 10, processors);
    let copied = |set, processors| grids.times.speedup(set, 10, processors, best(set, processors));
    let mut table = Grid::new(
        "Speedup over equal shares at a ratio of 0.01: means, in brackets the middle 90 % of the draws.",
        "set | nodes | DLB | best copies | faster | DLB faster in % of draws",
    );
    grids.rows(&mut table, true, |set, processors| {
        let [dlb, copies] = [What::Balanced, best(set, processors)]
            .map(|what| grids.times.speedups(set, 10, processors, what).cell(2));
        let faster = if balanced(set, processors) >= copied(set, processors) { "DLB" } else { "copies" };
        let part = grids.times.faster(set, 10, processors, What::Balanced, best(set, processors));
        vec![dlb, copies, faster.to_owned(), format!("{part:.0}")]
    });
    let series: [Series<'_>; 2] = [
        ("DLB".to_owned(), Box::new(|set, of| Some(grids.times.speedups(set, 10, of, What::Balanced)))),
        (
            "best copies".to_owned(),
            Box::new(|set, of| Some(grids.times.speedups(set, 10, of, best(set, of)))),
        ),
    ];
    let panels = grids.speedup_charts("ratio 0.01", &series);
    let first_from = |least: usize| {
        let mut processors = grids.parallel(0).into_iter().filter(|&of| of >= least);
        processors.all(|of| balanced(0, of) >= copied(0, of))
    };
    let in_one = grids.parallel(0).into_iter().filter(|&of| balanced(0, of) >= copied(0, of)).count();
    let many: Vec<usize> = grids.parallel(1).into_iter().filter(|&processors| processors >= 8).collect();
    let wins = many.iter().filter(|&&processors| balanced(1, processors) > copied(1, processors)).count();
    let peak = |set| {
        let all = grids.parallel(set).into_iter();
        all.max_by(|&one, &other| balanced(set, one).total_cmp(&balanced(set, other))).unwrap_or(0)
    };
    let (most_one, most_two) = (balanced(0, peak(0)), balanced(1, peak(1)));
    let above_copies = |what: What| {
        grids.count_at_high_ratios(|set, ratio, processors| {
            grids.times.s(set, ratio, processors, what)
                < grids.times.s(set, ratio, processors, grids.best(set, ratio, processors))
        })
    };
    let (high, in_proportion) = (above_copies(What::Balanced), above_copies(What::BalancedInProportion));
    let settings = 2 * grids.settings().count();
    let four = balanced(0, 4);
    let last = |set: usize| *grids.parallel(set).last().unwrap_or(&2);
    let near = |set: usize| [16, 32].map(|of| balanced(set, of.min(last(set))));
    Section::new("Figure 7: speedups of DLB and copies", "Over equal shares on the same nodes.")
        .picture("figure-7", "speedups of balancing and of copies for two sets", panels)
        .table(table)
        .claim(
            Claim::new("On four nodes of set one DLB is 1.8 times as fast as equal shares.", "1.8")
                .here(grids.times.speedups(0, 10, 4, What::Balanced).cell(2))
                .holds("within 0.2", (four - 1.8).abs() < 0.2)
                .fitted()
                .because(CONSTANTS),
        )
        .claim(
            Claim::new("In set one DLB is as fast as copies or faster.", "\"consistently\"")
                .here(format!("on {in_one} of {} numbers of nodes", grids.parallel(0).len()))
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
                .here(format!(
                    "copies {:.2} and {:.2}, DLB {:.2} and {:.2}",
                    copied(1, 2),
                    copied(1, 4),
                    balanced(1, 2),
                    balanced(1, 4)
                ))
                .holds("faster on 2 nodes", copied(1, 2) > balanced(1, 2))
                .holds("faster on 4 nodes", copied(1, 4) > balanced(1, 4))
                .because(wider)
                .fitted(),
        )
        .claim(
            Claim::new("In set two DLB is faster from 8 nodes on.", "plot only")
                .here(format!("on {wins} of {} numbers of nodes from 8 on", many.len()))
                .holds("on each number of nodes from 8 on", wins == many.len())
                .holds(
                    "on the largest number of nodes",
                    many.last().is_some_and(|&most| balanced(1, most) > copied(1, most)),
                )
                .because(CONSTANTS)
                .fitted(),
        )
        .claim(
            Claim::new("The speedup of DLB is greatest on 16 nodes in set one, on 32 in set two.", "16, 32")
                .here(format!("greatest on {} and {} nodes", peak(0), peak(1)))
                .holds("on 16 nodes in set one", peak(0) == 16)
                .holds("on 32 nodes in set two", peak(1) == 32)
                .because(format!(
                    "The speedups on 16 and 32 nodes are {:.2} and {:.2} in set one, {:.2} and {:.2} in set two. Sends are the same on all numbers of \
                     nodes here, and in the paper they grow (section 4.1).",
                    near(0)[0],
                    near(0)[1],
                    near(1)[0],
                    near(1)[1]
                ))
                .fitted(),
        )
        .claim(
            Claim::new("Speedups are higher in set two.", "\"significantly higher\"")
                .here(format!("DLB up to {most_one:.2} and {most_two:.2}"))
                .holds("the greatest of DLB is higher in set two", most_two > most_one)
                .holds("by at least half", most_two > 1.5 * most_one)
                .because(wider)
                .fitted(),
        )
        .claim(
            Claim::new("At ratios of 0.25 and 0.50 DLB is faster than copies in all situations.", "both sets")
                .here(format!("in {high} of {settings} settings"))
                .holds("in all settings", high == settings)
                .holds("in at least half of them", 2 * high >= settings)
                .because(format!(
                    "A division takes as long as many of the shorter jobs, as in [figure 3](#figure-3-times-of-dlb-by-ratio-of-communication-to-computation). \
                     If a division is as much shorter as jobs are, DLB is faster in {in_proportion} of {settings} settings."
                )),
        )
}
