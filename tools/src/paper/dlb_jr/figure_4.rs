//! Figure 4 and table 2: speedups of copies.

use super::grids::{CONSTANTS, Grids, Series};
use super::runs::{Task, What, copies};
use crate::paper::page::{Claim, Grid, Section};

/// Table 2 of the paper: the best number of copies on 2, 4, ... nodes of each set.
const TABLE_2: [&[usize]; 2] = [&[2, 4, 4, 4, 4], &[2, 4, 8, 4, 4, 4]];

/// Numbers of copies in the columns.
const COLUMNS: [usize; 6] = [2, 4, 8, 16, 32, 64];

/// Percent of the draws in which this number of copies takes the least time of all.
fn best_in(grids: &Grids, set: usize, processors: usize, wanted: usize) -> f64 {
    let task = |copies| Task { nodes: set, ratio: 10, processors, what: What::Copies(copies) };
    let of = |copies| grids.times.draws(task(copies));
    let least = |draw: usize| copies(processors).all(|other| of(wanted)[draw] <= of(other)[draw]);
    100.0 * (0..grids.draws).filter(|&draw| least(draw)).count() as f64 / grids.draws as f64
}

/// The figure and the table.
pub(super) fn section(grids: &Grids, wider: &str) -> Section {
    let speedup = |set, processors, copies| grids.times.speedup(set, 10, processors, What::Copies(copies));
    let best = |set, processors| grids.times.best_copies(set, 10, processors);
    let paper = |set: usize, processors: usize| TABLE_2[set][processors.ilog2() as usize - 1];
    let mut table = Grid::new(
        "Speedup over equal shares by number of copies R: means, in brackets the middle 90 % of the draws. The best number by the means, and \
         the paper's (table 2), which is the best one in this part of the draws.",
        "set | nodes | R = 2 | 4 | 8 | 16 | 32 | 64 | best R | the paper | best in % of draws",
    );
    grids.rows(&mut table, true, |set, processors| {
        let cell = |copies: usize| {
            let speedups = || grids.times.speedups(set, 10, processors, What::Copies(copies)).cell(2);
            if copies <= processors { speedups() } else { String::new() }
        };
        let end = [
            best(set, processors).to_string(),
            paper(set, processors).to_string(),
            format!("{:.0}", best_in(grids, set, processors, paper(set, processors))),
        ];
        COLUMNS.map(cell).into_iter().chain(end).collect()
    });
    let series = COLUMNS.map(|copies| -> Series<'_> {
        let value =
            move |set, of| (copies <= of).then(|| grids.times.speedups(set, 10, of, What::Copies(copies)));
        (format!("R = {copies}"), Box::new(value))
    });
    let panels = grids.speedup_charts("copies", &series);
    let matches =
        grids.settings().filter(|&(set, processors)| best(set, processors) == paper(set, processors)).count();
    let rows = grids.settings().count();
    let most = |set| {
        let of =
            grids.parallel(set).into_iter().map(|processors| speedup(set, processors, best(set, processors)));
        of.fold(0.0, f64::max)
    };
    let (one, two) = (most(0), most(1));
    let parallel = grids.parallel(0);
    let pay =
        |copies: usize| parallel.iter().filter(|&&of| of >= copies && speedup(0, of, copies) > 1.0).count();
    let (two_pay, four_pay) = (pay(2), pay(4));
    let many: Vec<usize> = grids.parallel(0).into_iter().filter(|&processors| processors >= 8).collect();
    let more_lose = many.iter().filter(|&&processors| {
        let more = copies(processors).filter(|&copies| copies > 4);
        more.map(|copies| speedup(0, processors, copies)).all(|more| more < speedup(0, processors, 4))
    });
    let more_lose = more_lose.count();
    let of_four = |set: usize| {
        let last = *grids.parallel(set).last().unwrap_or(&4);
        [4, last].map(|processors| speedup(set, processors, 4))
    };
    let ([four_one, last_one], [four_two, last_two]) = (of_four(0), of_four(1));
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
        Claim::new("Two and four copies are faster than none.", "set one: \"the speedup increases when 2-JR or 4-JR has been applied\"")
            .here(format!("2 copies on {two_pay} of {}, 4 copies on {four_pay} of {} numbers of nodes of set one", parallel.len(), parallel.len() - 1))
            .holds("2 copies are faster than equal shares on each number of nodes", two_pay == parallel.len())
            .holds("4 copies are, on each number of nodes from 4 on", four_pay + 1 == parallel.len())
            .because(CONSTANTS),
    )
    .claim(
        Claim::new("More than four copies are slower than four in set one.", "plot only")
            .here(format!("on {more_lose} of {} numbers of nodes from 8 on", many.len()))
            .holds("8 and more copies are slower than 4 on each number of nodes from 8 on", more_lose == many.len())
            .holds("on at least half of them", 2 * more_lose >= many.len())
            .because(CONSTANTS)
            .fitted(),
    )
    .claim(
        Claim::new("For a given number of copies, the speedup grows with the number of nodes.", "plot only")
            .here(format!(
                "4 copies on 4 and on the most nodes: set one {four_one:.2} and {last_one:.2}, set two {four_two:.2} and {last_two:.2}"
            ))
            .holds("4 copies gain more on the most nodes than on 4 in set one", last_one > four_one)
            .holds("also in set two", last_two > four_two)
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
