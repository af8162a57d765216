//! Figure 3: times of DLB by ratio of communication to computation.

use super::grids::{CONSTANTS, Grids, HIGH_RATIOS, RATIO_NAMES, RATIOS, Series, falls, least_at, rises};
use super::runs::What;
use super::sends::exponential;
use crate::paper::page::{Claim, Grid, Section};
use virtual_cluster::grid_cluster::DIVISION_S;

/// Why times do not rise on many nodes.
pub(super) const RISE: &str = "If all sends take equally long, communication takes the same time on all numbers of nodes. In the paper a step waits for the \
                    slowest of all measured sends. [Other send times](#send-times-that-differ-between-nodes) make many nodes slower only if they are \
                    exponential, not if they are uniform or Rayleigh.";

/// Why times of DLB with short jobs fall on many nodes.
const DIVISIONS: &str = "Divisions take much of the time (second table), and are rarer on more nodes. In the paper rescheduling takes longer on more nodes, \
                         as sends do (section 4.1); here a division always takes 37.5 s.";

/// The figure.
pub(super) fn section(grids: &Grids) -> Section {
    let speedup = |set, ratio, processors, what| grids.times.speedup(set, ratio, processors, what);
    let heads = "set | nodes | 0.01 | speedup | 0.25 | speedup | 0.50 | speedup";
    let mut table = Grid::new(
        format!(
            "Hours of 2000 steps by DLB, and the speedup over equal shares: means of {} draws, in brackets the middle 90 % of the draws.",
            grids.draws
        ),
        heads,
    );
    grids.rows(&mut table, false, |set, processors| {
        let cells = RATIOS.map(|ratio| {
            let hours = grids.times.hours(set, ratio, processors, What::Balanced);
            [hours.cell(2), grids.times.speedups(set, ratio, processors, What::Balanced).cell(2)]
        });
        cells.concat()
    });
    let heads = "set | nodes | division at 0.25, % of the time | speedup | if in proportion | division at 0.50, % | speedup | if in proportion";
    let mut divisions = Grid::new(
        "The part of the time that divisions take at higher ratios, and the speedup if a division is as much shorter as jobs are \
         (1.5 s and 0.75 s instead of 37.5 s).",
        heads,
    );
    let division_part = |set: usize, ratio: u32, processors: usize| {
        let steps = grids.nodes[set].steps as f64;
        let divisions = (steps / (2.5 * processors as f64).round()).floor();
        100.0 * divisions * DIVISION_S / grids.times.s(set, ratio, processors, What::Balanced)
    };
    grids.rows(&mut divisions, true, |set, processors| {
        let cells = HIGH_RATIOS.map(|ratio| {
            [
                format!("{:.0}", division_part(set, ratio, processors)),
                format!("{:.2}", speedup(set, ratio, processors, What::Balanced)),
                format!("{:.2}", speedup(set, ratio, processors, What::BalancedInProportion)),
            ]
        });
        cells.concat()
    });
    let series = RATIOS.iter().zip(RATIO_NAMES).map(|(&ratio, name)| -> Series<'_> {
        (
            format!("ratio {name}"),
            Box::new(move |set, of| Some(grids.times.hours(set, ratio, of, What::Balanced))),
        )
    });
    let panels = grids.hour_charts("DLB", &series.collect::<Vec<_>>());
    let balanced = |set, ratio| grids.means_s(set, ratio, |_| What::Balanced);
    let low = grids.sets().all(|set| falls(&balanced(set, 10)));
    let pairs = grids.settings().count();
    let low_ratio = grids.settings().filter(|&(set, of)| speedup(set, 10, of, What::Balanced) > 1.0).count();
    let [high, in_proportion] =
        [What::Balanced, What::BalancedInProportion].map(|what| grids.faster_at_high_ratios(what));
    let two = division_part(1, 500, 2);
    let least = |set: usize, ratio, longest: fn(usize) -> f64| {
        least_at(&grids.processors(set), &grids.waiting_h(set, ratio, |_| What::Balanced, longest))
    };
    let [quarter, quarter_waiting] = [least(0, 250, |_| 1.0), least(0, 250, exponential)];
    let half = least(1, 500, |_| 1.0);
    let waiting = grids.waiting_h(1, 500, |_| What::Balanced, exponential);
    let hours = balanced(1, 10).into_iter().map(|s| s / 3600.0).collect::<Vec<_>>();
    Section::new(
        "Figure 3: times of DLB by ratio of communication to computation",
        "The ratio is for two nodes with equal shares. At higher ratios jobs are shorter, as in the paper, and sends and divisions take as long \
         as at 0.01. Logarithmic axis, as in the paper; a thin line over a bar is the middle 90 % of the draws.",
    )
    .picture("figure-3", "times of DLB on 1 to 64 nodes for three ratios and two sets", panels)
    .table(table)
    .table(divisions)
    .claim(
        Claim::new("At a ratio of 0.01, more nodes take less time.", "plot only")
            .here(format!("set two from {:.0} to {:.2} h", hours[0], hours[hours.len() - 1]))
            .holds("the times fall with each number of nodes in both sets", low)
            .because(CONSTANTS)
            .fitted(),
    )
    .claim(
        Claim::new("DLB is faster than equal shares in every setting.", "\"consistently\", also at 0.50")
            .here(format!(
                "in {low_ratio} of {pairs} settings with more than one node at 0.01, in {high} of {} at 0.25 and 0.50",
                2 * pairs
            ))
            .holds("a speedup above 1 in all settings at 0.01", low_ratio == pairs)
            .holds("also at 0.25 and 0.50", high == 2 * pairs)
            .because(format!(
                "With jobs of 2.6 and 1.3 s a division of 37.5 s takes as long as 14 and 29 of them: on two nodes of set two at 0.50, divisions are \
                 {two:.0} % of the time (table above). If a division is shortened as the jobs are, DLB is faster in {in_proportion} of {} settings \
                 at these ratios. So the divisions of the paper's runs were cheaper or rarer there than 37.5 s every 2.5 P steps.",
                2 * pairs
            )),
    )
    .claim(
        Claim::new("At 0.25 the times of set one fall until 16 nodes, and rise beyond.", "plot only")
            .here(format!("least on {quarter} nodes if all sends are equal, on {quarter_waiting} if they are exponential"))
            .holds("if sends are exponential, they fall to some number of nodes below 32 and rise beyond", quarter_waiting < 32)
            .holds("this number is 16", quarter_waiting == 16)
            .because(DIVISIONS),
    )
    .claim(
        Claim::new(
            "At 0.50 more nodes take more time.",
            "plot only: \"the increase in running times when more processors are used\"",
        )
        .here(format!(
            "set two, least on {half} nodes if all sends are equal, on {} if they are exponential",
            least_at(&grids.processors(1), &waiting)
        ))
        .holds("if sends are exponential, each number of nodes takes longer than one node", waiting[1..].iter().all(|time| *time > waiting[0]))
        .holds("and each number of nodes than the number before", rises(&waiting))
        .holds("also if sends are equal", rises(&balanced(1, 500)))
        .because(format!("{RISE} Divisions make two nodes slow (second table), and are rarer on more nodes.")),
    )
}
