//! Figure 8: Y and both times over one run, and what decides whether the threshold names the faster method.

use presentation::format::decimal;
use virtual_cluster::grid_cluster::{JobTimeModel, SETS};

use super::choice::{PERIOD, Period, lines};
use super::figure_2::{self, equal_at, right};
use crate::paper::Context;
use crate::paper::page::{Claim, Grid, Panel, Section};
use crate::paper::picture::{chart, line};
use crate::statistics::{Spread, mean};

/// Ends of classes of periods by Y over the threshold.
const CLASSES: [(f64, f64); 5] = [(0.0, 0.5), (0.5, 0.8), (0.8, 1.25), (1.25, 2.0), (2.0, f64::INFINITY)];

/// Periods of the runs by their distance from the threshold: how often it names the faster method, and why not always.
fn by_distance(points: &[Period], threshold: f64) -> Grid {
    let [balanced, copied] = lines(points).expect("Y is not always the same");
    let mut table = Grid::new(
        "All periods by their distance from the threshold. Difference: copies over DLB, ms. Deviation: of this difference from that of the \
         lines, standard deviation.",
        "Y / Y* | periods % | the threshold is right % | difference of the lines ms | deviation ms | longer than the faster method %",
    );
    for (from, to) in CLASSES {
        let of: Vec<Period> =
            points.iter().copied().filter(|it| (from..to).contains(&(it.y / threshold))).collect();
        let predicted = |it: &Period| copied.at(it.y) - balanced.at(it.y);
        let predictions: Vec<f64> = of.iter().map(predicted).collect();
        let squares: Vec<f64> =
            of.iter().map(|it| (it.copied - it.balanced - predicted(it)).powi(2)).collect();
        let sum = |time: &dyn Fn(&Period) -> f64| of.iter().map(time).sum::<f64>();
        let named = sum(&|it| if it.y < threshold { it.copied } else { it.balanced });
        let least = sum(&|it| it.copied.min(it.balanced));
        let class = if to.is_finite() { format!("{from} to {to}") } else { format!("above {from}") };
        table.row([
            class,
            decimal(100.0 * of.len() as f64 / points.len().max(1) as f64, 0),
            decimal(right(&of, threshold), 0),
            decimal(1e3 * mean(&predictions), 0),
            decimal(1e3 * mean(&squares).sqrt(), 0),
            decimal(100.0 * (named / least.max(1e-9) - 1.0), 1),
        ]);
    }
    table
}

/// Whether Y is on one side of the threshold in the mean of the first third of a run, and on the other in the last third.
fn crosses(run: &[Period], threshold: f64) -> bool {
    let third = run.len() / 3;
    let side = |of: &[Period]| mean(&of.iter().map(|period| period.y).collect::<Vec<_>>()) / threshold;
    let (first, last) = (side(&run[..third]), side(&run[run.len() - third..]));
    (first < 0.8 && last > 1.25) || (first > 1.25 && last < 0.8)
}

/// Runs whose Y crosses the threshold: how many there are, and how often it names the faster method in them, percent.
fn drifting(runs: &[Vec<Period>]) -> (usize, f64) {
    let threshold = lines(&runs.concat()).map_or(0.0, |lines| equal_at(&lines));
    let crossing: Vec<Period> =
        runs.iter().filter(|run| crosses(run, threshold)).flatten().copied().collect();
    let count = runs.iter().filter(|run| crosses(run, threshold)).count();
    (count, right(&crossing, threshold))
}

/// The section, from the runs of set two.
pub(super) fn section(context: &Context, runs: &[Vec<Period>]) -> Section {
    let points = runs.concat();
    let threshold = lines(&points).map_or(0.0, |lines| equal_at(&lines));
    // The run of the paper crosses the threshold. Here, the run whose periods are most evenly on both sides of it.
    let below = |run: &[Period]| run.iter().filter(|period| period.y < threshold).count();
    let even = |run: &&Vec<Period>| (2 * below(run)).abs_diff(run.len());
    let run = runs.iter().min_by_key(even).expect("there are runs");
    let over = |of: fn(&Period) -> f64| {
        run.iter().enumerate().map(move |(place, period)| (((place + 1) * PERIOD) as f64, of(period)))
    };
    let picture = chart(
        "one run, 4 nodes of set two",
        "iteration",
        "time (s)",
        vec![
            line("Y", over(|period| period.y)),
            line("step, balanced", over(|period| period.balanced)),
            line("step, 4 copies", over(|period| period.copied)),
            line("threshold Y*", [(0.0, threshold), ((run.len() * PERIOD) as f64, threshold)]),
        ],
    );
    let mut table = Grid::new(
        format!("Means of {PERIOD} iterations of this run, seconds. Y* is {threshold:.2} s."),
        "iterations | Y | balanced | 4 copies | faster | by the threshold",
    );
    let name = |copies: bool| if copies { "copies" } else { "balanced" };
    for (place, period) in run.iter().enumerate() {
        table.row([
            format!("{} - {}", place * PERIOD + 1, (place + 1) * PERIOD),
            format!("{:.2}", period.y),
            format!("{:.2}", period.balanced),
            format!("{:.2}", period.copied),
            name(period.copied < period.balanced).to_owned(),
            name(period.y < threshold).to_owned(),
        ]);
    }
    let each: Vec<f64> = runs.iter().map(|run| right(run, threshold)).collect();
    let (on_both, agree, all) = (below(run), right(run, threshold), Spread::of(&each));
    let far: Vec<Period> =
        points.iter().copied().filter(|it| !(0.5..2.0).contains(&(it.y / threshold))).collect();
    let far_right = right(&far, threshold);
    let around = points.iter().filter(|it| (0.8..1.25).contains(&(it.y / threshold)));
    let [balanced, copied] = around.fold([0.0; 2], |[one, other], it| [one + it.balanced, other + it.copied]);
    let near = copied / balanced;
    // Levels that change over the run, as in the run of the paper, in place of the slow changes of the model.
    let slow = (0.8, 1000.0);
    let drifts = figure_2::runs(context, JobTimeModel { slow, ..SETS[1] }, runs.len());
    let ((crossing, _), (moving, moving_right)) = (drifting(runs), drifting(&drifts));
    Section::new(
        "Figure 8: Y and both times in one run",
        "The paper shows a run in which Y rises above Y* = 7708 ms: copies are faster until iteration 900, and DLB after iteration 1400. The levels of the drawn \
         nodes do not drift, so most runs stay on one side. This is the run that is most evenly on both sides.",
    )
    .picture("figure-8", "Y and the times of steps with balancing and with copies in one run", [Panel::from(picture)])
    .table(by_distance(&points, threshold))
    .table(table)
    .claim(
        Claim::new("In a run, the side of the threshold tells the faster method.", "until iteration 900 copies, after 1400 DLB")
            .here(format!(
                "in % of the periods of a run: {}; {} % of this run's {} periods, {on_both} of them below Y*",
                all.cell(0),
                decimal(agree, 0),
                run.len()
            ))
            .holds("in at least 80 % of the periods of all runs", all.mean >= 80.0)
            .holds("in at least 80 % of the periods of this run", agree >= 80.0)
            .because(format!(
                "From half to twice Y* the times deviate from the lines by about as much as the lines differ (first table), so chance decides often. \
                 The paper says so of its iterations 900 to 1400. With Y below half or above twice Y* the threshold is right in {} % of the periods. \
                 In {crossing} of {} runs the mean of Y goes from below 0.8 Y* in the first third to above 1.25 Y* in the last, or back. If slow \
                 changes are as large as {} over {} jobs, it does in {moving} runs, and the threshold is right in {} % of their periods.",
                decimal(far_right, 0),
                runs.len(),
                slow.0,
                slow.1,
                decimal(moving_right, 0)
            )),
    )
    .claim(
        Claim::new("Near the threshold both methods take about as long.", "iterations 900 to 1400: \"do not differ significantly\"")
            .here(format!("with Y from 0.8 to 1.25 Y*, copies take {near:.2} of the time of DLB"))
            .holds("within 10 % of each other in the mean", (near - 1.0).abs() < 0.1)
            .because("The relation between Y and the times is not linear there."),
    )
}
