//! Figure 9: the choice, and which of its parts cost it time.

use presentation::format::decimal;
use virtual_cluster::grid_cluster::SETS;

use super::CHOICE;
use super::choice::{Chosen, PERIOD, Period, Rule, choice, errors, lines, periods};
use super::grids::{Grids, Series, bars};
use super::runs::{Nodes, Task, What};
use crate::paper::Context;
use crate::paper::page::{Claim, Grid, Section};
use crate::statistics::{Spread, mean};

/// The set of the figure.
const SET: usize = 1;

/// The numbers of copies of the choice.
fn copies(processors: usize) -> usize {
    processors.min(4)
}

/// All runs on one number of nodes.
struct Column {
    processors: usize,
    /// The periods of each draw.
    draws: Vec<Vec<Period>>,
}

impl Column {
    /// The runs of all draws under a rule.
    fn chosen(&self, rule: Rule) -> Vec<Chosen> {
        self.draws.iter().map(|periods| choice(periods, rule)).collect()
    }

    /// The speedup over equal shares under a rule.
    fn speedups(&self, grids: &Grids, rule: Rule) -> Spread {
        let equal = grids.times.draws(Task {
            nodes: SET,
            ratio: 10,
            processors: self.processors,
            what: What::Copies(1),
        });
        let seconds: Vec<f64> = self.chosen(rule).iter().map(|run| run.seconds).collect();
        let each: Vec<f64> = equal.iter().zip(&seconds).map(|(equal, seconds)| equal / seconds).collect();
        Spread::around(mean(equal) / mean(&seconds), &each)
    }

    /// Percent by which the better of both methods is faster than the rule, by mean times.
    fn behind(&self, rule: Rule) -> f64 {
        let total = |of: fn(&Period) -> f64| {
            let run = |periods: &Vec<Period>| PERIOD as f64 * periods.iter().map(of).sum::<f64>();
            mean(&self.draws.iter().map(run).collect::<Vec<_>>())
        };
        let better = total(|period| period.balanced).min(total(|period| period.copied));
        let seconds: Vec<f64> = self.chosen(rule).iter().map(|run| run.seconds).collect();
        100.0 * (mean(&seconds) / better - 1.0)
    }

    /// The same if the faster method of each draw is compared, which no rule knows before.
    fn behind_each(&self, rule: Rule) -> f64 {
        let total = |periods: &Vec<Period>, of: fn(&Period) -> f64| {
            PERIOD as f64 * periods.iter().map(of).sum::<f64>()
        };
        let better = |periods: &Vec<Period>| {
            total(periods, |period| period.balanced).min(total(periods, |period| period.copied))
        };
        let seconds: Vec<f64> = self.chosen(rule).iter().map(|run| run.seconds).collect();
        100.0 * (mean(&seconds) / mean(&self.draws.iter().map(better).collect::<Vec<_>>()) - 1.0)
    }

    /// A part of the time of the paper's choice, percent.
    fn part(&self, of: fn(&Chosen) -> f64) -> f64 {
        let runs = self.chosen(Rule::Lines);
        100.0 * runs.iter().map(of).sum::<f64>() / runs.iter().map(|run| run.seconds).sum::<f64>()
    }

    /// The rules that are compared: the paper's first.
    fn rules(&self) -> [Rule; 5] {
        // Until the first division DLB is as slow as equal shares.
        let undivided = (5 * self.processors).div_ceil(2 * PERIOD);
        let known = lines(&self.draws.concat()).map_or(Rule::Lines, Rule::Known);
        [Rule::Lines, Rule::LinesWithout(undivided), known, Rule::Latest, Rule::Mean]
    }
}

/// The section.
pub(super) fn section(context: &Context, grids: &Grids) -> Section {
    let processors = grids.parallel(SET);
    let nodes = Nodes::drawn(SETS[SET], grids.nodes[SET].steps);
    let drawn = context.each("dlb-jr, figure 9", grids.draws, |draw| {
        let times = nodes.times(draw as u64);
        let of = |&processors: &usize| {
            periods(&nodes.scenario(&times, processors, 10, draw as u64), copies(processors))
        };
        processors.iter().map(of).collect::<Vec<_>>()
    });
    let column = |(place, &processors): (usize, &usize)| Column {
        processors,
        draws: drawn.iter().map(|columns| columns[place].clone()).collect(),
    };
    let columns: Vec<Column> = processors.iter().enumerate().map(column).collect();
    let at = |of: usize| columns.iter().find(|column| column.processors == of).expect("it was run");
    let methods = |of: usize| [What::Balanced, What::Copies(copies(of)), CHOICE];
    let mut table = Grid::new(
        "Speedup over equal shares, set two, ratio 0.01: means, in brackets the middle 90 % of the draws. Behind: percent of time more than the better \
         method by the means.",
        "nodes | DLB | 4 copies | DLB/JR | behind the better % | Caribou's `dlb-jr`",
    );
    let heads = "nodes | the paper's lines | without undivided periods | lines known before the run | the latest period | the mean of all periods";
    let mut rules = Grid::new(
        "Percent of time more than the better method by the means, if the choice is made in other ways from the same periods.",
        heads,
    );
    let mut losses = Grid::new(
        "Percent of the time of the paper's choice.",
        "nodes | with the slower method | in the first period | in switches | more than the better method of each draw",
    );
    let (mut ahead, mut worst) = (0, [f64::NEG_INFINITY; 5]);
    for column in &columns {
        let of = column.processors;
        let [balanced, copied, own] = methods(of).map(|what| grids.times.speedups(SET, 10, of, what));
        let speedups = column.speedups(grids, Rule::Lines);
        ahead += usize::from(own.mean > speedups.mean);
        let behind = column.rules().map(|rule| column.behind(rule));
        worst.iter_mut().zip(behind).for_each(|(worst, behind)| *worst = worst.max(behind));
        table.row([
            of.to_string(),
            balanced.cell(2),
            copied.cell(2),
            speedups.cell(2),
            decimal(behind[0], 1),
            own.cell(2),
        ]);
        rules.row(std::iter::once(of.to_string()).chain(behind.map(|it| decimal(it, 1))));
        let parts = [
            column.part(|run| run.wrong),
            column.part(|run| run.wrong_first),
            column.part(|run| run.switching),
        ];
        let cells = parts.into_iter().chain([column.behind_each(Rule::Lines)]);
        losses.row(std::iter::once(of.to_string()).chain(cells.map(|it| decimal(it, 1))));
    }
    let series: Vec<Series<'_>> = vec![
        ("DLB".into(), Box::new(|set, of| Some(grids.times.speedups(set, 10, of, methods(of)[0])))),
        ("4 copies".into(), Box::new(|set, of| Some(grids.times.speedups(set, 10, of, methods(of)[1])))),
        ("DLB/JR".into(), Box::new(|_, of| Some(at(of).speedups(grids, Rule::Lines)))),
        ("Caribou's dlb-jr".into(), Box::new(|set, of| Some(grids.times.speedups(set, 10, of, CHOICE)))),
    ];
    let chart = bars("set two, ratio 0.01, by nodes", "speedup", SET, &processors, &series);
    let means =
        |of: fn(&Chosen) -> f64| mean(&columns.iter().map(|column| column.part(of)).collect::<Vec<_>>());
    let not_slower = columns.iter().filter(|column| column.behind(Rule::Lines) <= 0.0).count();
    let clear = columns.iter().filter(|column| {
        let [balanced, copied, _] =
            methods(column.processors).map(|what| grids.times.s(SET, 10, column.processors, what));
        (balanced / copied - 1.0).abs() > 0.2
    });
    let clear: Vec<f64> = clear.map(|column| column.behind(Rule::Lines)).collect();
    let clear_most = clear.iter().copied().fold(0.0, f64::max);
    let off: Vec<[f64; 2]> = columns.iter().flat_map(|column| &column.draws).map(|run| errors(run)).collect();
    let [by_lines, by_latest] =
        [0, 1].map(|place| 100.0 * mean(&off.iter().map(|errors| errors[place]).collect::<Vec<_>>()));
    let latest = worst[3];
    let explained = format!(
        "DLB divides first after 2.5 P steps, and is as slow as equal shares until then. These slow periods bend the lines (second table): without \
         them in the lines, the choice is at most {} % slower, and with lines that are known before the run {} %. In the mean {} % of the time of \
         the choice are lost with the slower method, and {} % in switches.",
        decimal(worst[1].max(0.0), 1),
        decimal(worst[2].max(0.0), 1),
        decimal(means(|run| run.wrong), 1),
        decimal(means(|run| run.switching), 1)
    );
    Section::new(
        "Figure 9: the choice",
        "The paper's method by its steps 1 to 8: it begins with DLB, fits both lines after every 100 steps, and pays for each switch. With 4 \
         copies, or 2 on two nodes.",
    )
    .picture("figure-9", "speedups of balancing, copies and the choice on 2 to 64 nodes", [chart.into()])
    .table(table)
    .table(rules)
    .table(losses)
    .claim(
        Claim::new(
            "The choice is at least as fast as both methods in all situations.",
            "\"at least as good as both\"",
        )
        .here(format!(
            "on {not_slower} of {} numbers of nodes; at most {} % slower than the better one",
            columns.len(),
            decimal(worst[0].max(0.0), 1)
        ))
        .holds("at most 5 % slower than the better method on each number of nodes", worst[0] < 5.0)
        .holds("nowhere slower", worst[0] <= 0.0)
        .because(&explained),
    )
    .claim(
        Claim::new("Where one method is clearly faster, the choice is exactly as fast.", "\"exactly equals the highest possible performance\"")
            .here(format!(
                "where the methods differ by more than 20 %, on {} of {} numbers of nodes, at most {} % slower",
                clear.len(),
                columns.len(),
                decimal(clear_most, 1)
            ))
            .holds("at most 1 % slower on these numbers of nodes", !clear.is_empty() && clear_most < 1.0)
            .because(explained),
    )
    .claim(
        Claim::new("The gain of switches exceeds their cost.", "\"completely compensated\"")
            .here(format!(
                "switches take {} % of the time; DLB alone takes {} % more than the choice on 4 nodes",
                decimal(means(|run| run.switching), 1),
                decimal(100.0 * (at(4).speedups(grids, Rule::Lines).mean / grids.times.speedup(SET, 10, 4, What::Balanced) - 1.0), 1)
            ))
            .holds(
                "on each number of nodes the choice is faster than DLB, with which it begins",
                columns.iter().all(|it| it.speedups(grids, Rule::Lines).mean > grids.times.speedup(SET, 10, it.processors, What::Balanced)),
            )
            .holds(
                "on 2 and 4 nodes it is",
                [2, 4].into_iter().all(|of| at(of).speedups(grids, Rule::Lines).mean > grids.times.speedup(SET, 10, of, What::Balanced)),
            )
            .because(
                "On many nodes the lines name copies although DLB is faster, because its first periods are undivided (second table).",
            ),
    )
    .claim(
        Claim::new(
            "An estimate by the lines and the latest Y is far more accurate than the time of the last 100 iterations.",
            "section 3.3, without numbers",
        )
        .here(format!("off by {by_lines:.1} % and by {by_latest:.1} % of the next time, in the mean of all periods, undivided ones included"))
        .holds("the lines are off by less", by_lines < by_latest)
        .holds("by less than half", by_lines < 0.5 * by_latest)
        .because(format!(
            "The Y of the last 100 iterations is as old as their time, and Y changes little from period to period beside what the times change by \
             chance. A choice by the latest times is at most {} % slower than the better method (second table).",
            decimal(latest.max(0.0), 1)
        )),
    )
    .best(format!(
        "`dlb-jr` is faster than the paper's choice on {ahead} of {} numbers of nodes. It uses a line only where it fits its points well, \
         and waits until a gain exceeds chance and the cost of the switch.",
        columns.len()
    ))
}
