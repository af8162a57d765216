//! Figures 2 and 8: the time of a step against Y for balancing and copies, and the threshold between both.

use lb_strategies::supersteps::Line;
use presentation::format::decimal;
use virtual_cluster::grid_cluster::{JOBS, SETS};

use super::runs::{Nodes, PERIOD, Period, periods};
use crate::paper::Context;
use crate::paper::page::{Claim, Grid, Panel, Section};
use crate::paper::picture::{chart, dots, line};

/// The lines of the paper, times in ms: balanced, and with four copies on four nodes. Its threshold.
const PAPER: [(f64, f64, f64); 2] = [(1.2779, 7157.0, 0.9597), (2.0475, 1224.0, 0.9228)];
const PAPER_EQUAL_AT_MS: f64 = 7708.0;

/// Four nodes of set two at the lowest ratio; runs of the paper's experiment.
fn runs(context: &Context) -> Vec<Vec<Period>> {
    let steps = context.repetitions(JOBS as u64, 600);
    let nodes = Nodes { name: String::new(), times: SETS[1].draw(1), by_step: false, steps };
    let runs = context.repetitions(100, 30) as usize;
    context.each("dlb-jr, figure 2", runs, |run| periods(&nodes.scenario(4, 10, run as u64), 4))
}

/// The lines of balancing and copies.
pub(super) fn lines(points: &[Period]) -> [Line; 2] {
    let fit = |of: fn(&Period) -> f64| {
        let points: Vec<(f64, f64)> =
            points.iter().map(|period| (1e3 * period.y, 1e3 * of(period))).collect();
        Line::fit(&points).expect("Y is not always the same")
    };
    [fit(|period| period.balanced), fit(|period| period.copied)]
}

pub(super) fn equal_at(lines: &[Line; 2]) -> f64 {
    (lines[0].intercept - lines[1].intercept) / (lines[1].slope - lines[0].slope)
}

/// The part of periods in which the method is the faster one that the threshold names, in percent.
fn right(points: &[Period], threshold_ms: f64) -> f64 {
    let agrees = |period: &&Period| (1e3 * period.y < threshold_ms) == (period.copied < period.balanced);
    100.0 * points.iter().filter(agrees).count() as f64 / points.len().max(1) as f64
}

/// Figure 2: the regressions.
pub(super) fn section(context: &Context) -> Section {
    let points = runs(context).concat();
    let lines = lines(&points);
    let [balanced, copied] = lines;
    let threshold = equal_at(&lines);
    let mut table = Grid::new(
        format!("Mean time of {PERIOD} steps as a line over Y, in ms."),
        "method | the paper | R² | here | R² | correlation",
    );
    for (place, name) in ["balanced (DLB)", "4 copies (4-JR)"].into_iter().enumerate() {
        let (slope, intercept, square) = PAPER[place];
        let Line { slope: own, intercept: begin, correlation } = lines[place];
        table.row([
            name.to_owned(),
            format!("{slope} Y + {intercept:.0}"),
            format!("{square:.2}"),
            format!("{own:.4} Y + {begin:.0}"),
            format!("{:.2}", correlation * correlation),
            format!("{correlation:.3}"),
        ]);
    }
    table.row([
        "equal at Y =".to_owned(),
        format!("{PAPER_EQUAL_AT_MS:.0}"),
        String::new(),
        format!("{threshold:.0}"),
        String::new(),
        String::new(),
    ]);
    // A picture of some hundred points.
    let shown: Vec<&Period> = points.iter().step_by(points.len().div_ceil(300)).collect();
    let far = shown.iter().map(|period| period.y).fold(0.0, f64::max);
    let cloud =
        |name: &str, of: fn(&Period) -> f64| dots(name, shown.iter().map(|period| (period.y, of(period))));
    let through = |name: &str, line_of: Line| line(name, [0.0, far].map(|y| (y, 1e-3 * line_of.at(1e3 * y))));
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
    let side = |period: &Period| 1e3 * period.y / threshold;
    let far_off: Vec<Period> =
        points.iter().copied().filter(|period| side(period) < 0.5 || side(period) > 2.0).collect();
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
            .holds("R² of copies is at least 0.9", squares[1] >= 0.9),
    )
    .claim(
        Claim::new("Copies have the steeper line and the smaller constant, so there is a threshold Y*.", "slopes 1.28 and 2.05, constants 7157 and 1224 ms")
            .here(format!("slopes {:.2} and {:.2}, constants {:.0} and {:.0} ms", balanced.slope, copied.slope, balanced.intercept, copied.intercept))
            .holds("the line of copies is steeper", copied.slope > balanced.slope)
            .holds("it begins lower", copied.intercept < balanced.intercept)
            .fitted(),
    )
    .claim(
        Claim::new("The threshold.", "Y* = 7708 ms")
            .here(format!("{threshold:.0} ms"))
            .holds("within 25 % of the paper's", (threshold / PAPER_EQUAL_AT_MS - 1.0).abs() < 0.25)
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
            "Near the threshold chance decides: of the periods with Y below half or above twice the threshold, the rule is right in {} %. Always \
             taking the method that the rule names takes {} % longer than always the faster one; always DLB takes {} %, always copies {} %.",
            decimal(right(&far_off, threshold), 0),
            decimal(longer(&|period| if 1e3 * period.y < threshold { period.copied } else { period.balanced }), 1),
            decimal(longer(&|period| period.balanced), 1),
            decimal(longer(&|period| period.copied), 1)
        )),
    )
}

/// Figure 8: one run over its periods.
pub(super) fn figure_8(context: &Context) -> Section {
    let runs = runs(context);
    let threshold = equal_at(&lines(&runs.concat()));
    // The run of the paper crosses the threshold. Here, the run whose periods are most evenly on both sides of it.
    let below = |run: &[Period]| run.iter().filter(|period| 1e3 * period.y < threshold).count();
    let even = |run: &Vec<Period>| (2 * below(run)).abs_diff(run.len());
    let run = runs.iter().min_by_key(|run| even(run)).expect("there are runs");
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
            line("threshold Y*", [(0.0, 1e-3 * threshold), ((run.len() * PERIOD) as f64, 1e-3 * threshold)]),
        ],
    );
    let mut table = Grid::new(
        format!("Means of {PERIOD} iterations, seconds. Y* is {:.2} s.", 1e-3 * threshold),
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
            name(1e3 * period.y < threshold).to_owned(),
        ]);
    }
    let (on_both, agree) = (below(run), right(run, threshold));
    let differs = run.iter().map(|period| (period.copied / period.balanced - 1.0).abs()).sum::<f64>()
        / run.len() as f64;
    let all = right(&runs.concat(), threshold);
    Section::new(
        "Figure 8: Y and both times in one run",
        "The paper shows a run in which Y rises above Y* = 7708 ms: copies are faster until iteration 900, then DLB. The levels of the drawn \
         nodes do not drift, so most runs stay on one side. This is the run that is most evenly on both sides.",
    )
    .picture("figure-8", "Y and the times of steps with balancing and with copies in one run", [Panel::from(picture)])
    .table(table)
    .claim(
        Claim::new("In a run, the side of the threshold tells the faster method.", "until iteration 900 copies, after 1400 DLB")
            .here(format!("{} % of this run's {} periods ({on_both} below Y*), {} % of all runs", decimal(agree, 0), run.len(), decimal(all, 0)))
            .holds("in at least 80 % of the periods of all runs", all >= 80.0)
            .holds("in at least 80 % of the periods of this run", agree >= 80.0)
            .because(format!(
                "In a run that crosses Y*, both methods take about as long: their times differ by {:.0} % in the mean of the periods, and chance \
                 decides. The paper says so of its iterations 900 to 1400, where \"both implementations can be used\".",
                100.0 * differs
            )),
    )
}
