//! Figure 2: the time of a step against Y for balancing and copies, and the threshold between both.

use lb_strategies::supersteps::Line;
use lb_strategies::virtual_time::SplitMix64;
use presentation::format::decimal;
use virtual_cluster::grid_cluster::{JOBS, JobTimeModel, SETS};

use super::choice::{PERIOD, Period, lines, periods};
use super::runs::Nodes;
use crate::paper::Context;
use crate::paper::page::{Claim, Grid, Panel, Section};
use crate::paper::picture::{chart, dots, line};
use crate::statistics::Spread;

/// The lines of the paper, times in ms: balanced, and with four copies on four nodes. Its threshold.
const PAPER: [(f64, f64, f64); 2] = [(1.2779, 7157.0, 0.9597), (2.0475, 1224.0, 0.9228)];
const PAPER_EQUAL_AT_MS: f64 = 7708.0;

/// Number of samples of the draws from which the spread of lines is taken.
const SAMPLES: usize = 200;

/// The periods of four nodes of a model at the lowest ratio, with balancing and four copies, by draw.
pub(super) fn runs(context: &Context, model: JobTimeModel, draws: usize) -> Vec<Vec<Period>> {
    let nodes = Nodes::drawn(model, context.repetitions(JOBS as u64, 600));
    context.each("dlb-jr, figures 2 and 8", draws, |draw| {
        periods(&nodes.scenario(&nodes.times(draw as u64), 4, 10, draw as u64), 4)
    })
}

/// The same on set two, as in the paper.
pub(super) fn runs_of_set_two(context: &Context) -> Vec<Vec<Period>> {
    runs(context, SETS[1], context.draws())
}

/// The Y at which both lines are equal, s.
pub(super) fn equal_at(lines: &[Line; 2]) -> f64 {
    (lines[0].intercept - lines[1].intercept) / (lines[1].slope - lines[0].slope)
}

/// The part of periods in which the method is the faster one that the threshold names, in percent.
pub(super) fn right(points: &[Period], threshold: f64) -> f64 {
    let agrees = |period: &&Period| (period.y < threshold) == (period.copied < period.balanced);
    100.0 * points.iter().filter(agrees).count() as f64 / points.len().max(1) as f64
}

/// The lines of samples of the runs: as many runs as there are, some of them several times. They show how far the lines
/// depend on the draws.
fn sampled_lines(runs: &[Vec<Period>]) -> Vec<[Line; 2]> {
    let mut random = SplitMix64::new(2);
    let mut sample = || {
        let chosen = (0..runs.len()).flat_map(|_| &runs[random.number() as usize % runs.len()]);
        lines(&chosen.copied().collect::<Vec<_>>())
    };
    (0..SAMPLES).filter_map(|_| sample()).collect()
}

/// The section, from the runs of set two.
pub(super) fn section(runs: &[Vec<Period>]) -> Section {
    let points = runs.concat();
    let both = lines(&points).expect("Y is not always the same");
    let [balanced, copied] = both;
    let (threshold, samples) = (equal_at(&both), sampled_lines(runs));
    let mut table = Grid::new(
        format!(
            "Mean time of {PERIOD} steps as a line over Y, in ms: of {} draws of the job times, one run each. In brackets the middle 90 % of \
             {SAMPLES} samples of these draws.",
            runs.len()
        ),
        "method | the paper: slope | constant | R² | here: slope | constant | R²",
    );
    for (place, name) in ["balanced (DLB)", "4 copies (4-JR)"].into_iter().enumerate() {
        let (slope, intercept, square) = PAPER[place];
        let Line { slope: own, intercept: begin, correlation } = both[place];
        let spread = |mean: f64, of: fn(&Line) -> f64| {
            Spread::around(mean, &samples.iter().map(|lines| of(&lines[place])).collect::<Vec<_>>())
        };
        table.row([
            name.to_owned(),
            format!("{slope:.2}"),
            format!("{intercept:.0}"),
            format!("{square:.2}"),
            spread(own, |line| line.slope).cell(2),
            spread(1e3 * begin, |line| 1e3 * line.intercept).cell(0),
            spread(correlation * correlation, |line| line.correlation * line.correlation).cell(2),
        ]);
    }
    let thresholds: Vec<f64> = samples.iter().map(|lines| 1e3 * equal_at(lines)).collect();
    let thresholds = Spread::around(1e3 * threshold, &thresholds);
    table.row([
        "equal at Y =".to_owned(),
        String::new(),
        format!("{PAPER_EQUAL_AT_MS:.0}"),
        String::new(),
        String::new(),
        thresholds.cell(0),
        String::new(),
    ]);
    // A picture of some hundred points.
    let shown: Vec<&Period> = points.iter().step_by(points.len().div_ceil(300)).collect();
    let far = shown.iter().map(|period| period.y).fold(0.0, f64::max);
    let cloud =
        |name: &str, of: fn(&Period) -> f64| dots(name, shown.iter().map(|period| (period.y, of(period))));
    let through = |name: &str, line_of: Line| line(name, [0.0, far].map(|y| (y, line_of.at(y))));
    let picture = chart(
        "4 nodes of set two, ratio 0.01",
        "Y (s)",
        "mean time of a step (s)",
        vec![
            cloud("balanced", |period| period.balanced),
            cloud("4 copies", |period| period.copied),
            through("line, balanced", balanced),
            through("line, 4 copies", copied),
        ],
    );
    let squares = [balanced, copied].map(|line| line.correlation * line.correlation);
    let clear: Vec<Period> =
        points.iter().copied().filter(|period| (period.copied / period.balanced - 1.0).abs() > 0.1).collect();
    let longer = |of: &dyn Fn(&Period) -> f64| {
        let least: f64 = points.iter().map(|period| period.balanced.min(period.copied)).sum();
        100.0 * (points.iter().map(of).sum::<f64>() / least - 1.0)
    };
    let (all_right, clear_right) = (right(&points, threshold), right(&clear, threshold));
    Section::new(
        "Figure 2: the time of a step against Y",
        "Y = P / sum(1 / E[JT_i]) is the time of a step if shares were in proportion to speed (equation 3). Each dot is the mean of 100 \
         steps on four nodes, for DLB and for four copies on the same nodes.",
    )
    .picture("figure-2", "mean times of steps against Y for balancing and four copies, with lines", [Panel::from(picture)])
    .table(table)
    .claim(
        Claim::new("The time of a step is linear in Y, for both methods.", "R² 0.96 and 0.92")
            .here(format!("R² {:.2} and {:.2}", squares[0], squares[1]))
            .holds("R² of DLB is at least 0.9", squares[0] >= 0.9)
            .holds("R² of copies is at least 0.9", squares[1] >= 0.9)
            .because("Nodes with very long jobs are far from both lines, and weigh most.")
            .fitted(),
    )
    .claim(
        Claim::new("Y and the times are correlated.", "0.97")
            .here(format!("{:.3} for DLB, {:.3} for copies", balanced.correlation, copied.correlation))
            .holds("at least 0.95 for DLB", balanced.correlation >= 0.95)
            .holds("at least 0.95 for copies", copied.correlation >= 0.95)
            .because("The paper does not say for which method. Copies depend on the fastest node of a group more than Y does.")
            .fitted(),
    )
    .claim(
        Claim::new("Copies have the steeper line and the smaller constant, so there is a threshold Y*.", "slopes 1.28 and 2.05, constants 7157 and 1224 ms")
            .here(format!("slopes {:.2} and {:.2}, constants {:.0} and {:.0} ms", balanced.slope, copied.slope, 1e3 * balanced.intercept, 1e3 * copied.intercept))
            .holds("the line of copies is steeper", copied.slope > balanced.slope)
            .holds("it begins lower", copied.intercept < balanced.intercept)
            .because("The lines depend on the job times that are drawn.")
            .fitted(),
    )
    .claim(
        Claim::new("The threshold.", "Y* = 7708 ms")
            .here(format!("{} ms", thresholds.cell(0)))
            .holds("within 25 % of the paper's", (1e3 * threshold / PAPER_EQUAL_AT_MS - 1.0).abs() < 0.25)
            .holds("the paper's is in the middle 90 % of samples", (thresholds.low..=thresholds.high).contains(&PAPER_EQUAL_AT_MS))
            .because(
                "The threshold is a ratio of small differences: it depends on the constants, which are divisions, sends and the deviation of \
                 job times from their prediction. Those of the drawn job times are not the paper's.",
            )
            .fitted(),
    )
    .claim(
        Claim::new("Below Y* copies are faster, above it DLB.", "\"consistently\"")
            .here(format!("true of {} % of the periods, of {} % of those in which the methods differ by more than 10 %", decimal(all_right, 0), decimal(clear_right, 0)))
            .holds("true of at least 80 % of the periods", all_right >= 80.0)
            .holds("true of at least 90 % where the methods differ by more than 10 %", clear_right >= 90.0)
            .because(format!(
                "From half to twice the threshold chance decides often: [figure 8](#figure-8-y-and-both-times-in-one-run) counts by the distance from it. Always \
                 taking the method that the rule names takes {} % longer than always the faster one; always DLB takes {} %, always copies {} %.",
                decimal(longer(&|period| if period.y < threshold { period.copied } else { period.balanced }), 1),
                decimal(longer(&|period| period.balanced), 1),
                decimal(longer(&|period| period.copied), 1)
            )),
    )
}
