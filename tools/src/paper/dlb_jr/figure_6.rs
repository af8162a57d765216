//! Figure 6: times of equal shares, DLB and copies.

use super::grids::{CONSTANTS, Grids, Series, falls};
use super::runs::What;
use crate::paper::page::{Claim, Grid, Section};
use crate::paper::text;

const EQUAL: What = What::Copies(1);

/// The figure.
pub(super) fn section(grids: &Grids) -> Section {
    let mut table = Grid::new(
        "Hours at a ratio of 0.01: means, in brackets the middle 90 % of the draws.",
        "set | nodes | ELB | DLB | best copies",
    );
    let methods = |set, processors| [EQUAL, What::Balanced, grids.best(set, 10, processors)];
    grids.rows(&mut table, false, |set, processors| {
        methods(set, processors).map(|what| grids.times.hours(set, 10, processors, what).cell(2)).into()
    });
    let names = ["ELB", "DLB", "best copies"];
    let series: Vec<Series<'_>> = (0..names.len())
        .map(|place| -> Series<'_> {
            let hours = move |set, of| Some(grids.times.hours(set, 10, of, methods(set, of)[place]));
            (names[place].to_owned(), Box::new(hours))
        })
        .collect();
    let panels = grids.hour_charts("ratio 0.01", &series);
    let means = |set: usize, place: usize| grids.means_s(set, 10, |of| methods(set, of)[place]);
    let lower = grids.settings().filter(|&(set, processors)| {
        let [equal, balanced, copied] =
            methods(set, processors).map(|what| grids.times.s(set, 10, processors, what));
        balanced < equal && copied < equal
    });
    let (lower, all) = (lower.count(), grids.settings().count());
    let fall = |place: usize| grids.sets().all(|set| falls(&means(set, place)));
    let two = [1, 2].map(|place| means(1, place)[0] / means(1, place)[1]);
    let at = grids.processors(0).len() - 1;
    let gain = |set: usize, place: usize| means(set, place)[0] / means(set, place)[at];
    Section::new("Figure 6: times of ELB, DLB and copies", "The best number of copies. Logarithmic axis.")
        .picture("figure-6", "times of equal shares, balancing and copies for two sets", panels)
        .table(table)
        .claim(
            Claim::new("DLB and copies take less time than equal shares.", "\"consistently\"")
                .here(format!("both on {lower} of {all} numbers of nodes of both sets"))
                .holds("both are faster on each number of nodes above one", lower == all)
                .because(CONSTANTS),
        )
        .claim(
            Claim::new("More nodes take less time for all three methods.", "plot only")
                .here(format!(
                    "set two, equal shares: {} h",
                    text(means(1, 0).into_iter().map(|s| s / 3600.0), 1)
                ))
                .holds("the times of DLB and of copies fall with each number of nodes", fall(1) && fall(2))
                .holds("those of equal shares, too", fall(0))
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
                gain(0, 1),
                gain(1, 1),
                gain(0, 0),
                gain(1, 0)
            ))
            .holds("DLB gains more in set two", gain(1, 1) > gain(0, 1))
            .holds("equal shares gain less in set two", gain(1, 0) < gain(0, 0))
            .because(CONSTANTS),
        )
}
