//! The paper's choice between balancing and copies (section 3.3, steps 1 to 8), and other ways to choose on the same runs.

use lb_strategies::supersteps::Line;
use virtual_cluster::StepScenario;
use virtual_cluster::grid_cluster::{DIVISION_S, paper_copies_iterations_s};

use super::runs::balanced_s;
use crate::statistics::mean;

/// Steps between two choices of the paper (I_p), and over which the points of figure 2 are averaged.
pub(super) const PERIOD: usize = 100;

/// Time of a switch to copies and back, s: 140 % and 60 % of a division.
const SWITCH_S: (f64, f64) = (1.4 * DIVISION_S, 0.6 * DIVISION_S);

/// A period of a run: Y (equation 3), and the mean time of a step with balancing and with copies, s.
#[derive(Clone, Copy, Debug)]
pub(super) struct Period {
    /// The statistic Y.
    pub(super) y: f64,
    /// Balanced.
    pub(super) balanced: f64,
    /// With copies.
    pub(super) copied: f64,
}

/// The periods of a run, with copies as in the paper.
pub(super) fn periods(scenario: &StepScenario, copies: usize) -> Vec<Period> {
    let (balanced, copied) = (balanced_s(scenario), paper_copies_iterations_s(scenario, copies));
    let series = scenario.times.series();
    let units = scenario.program.weights.units() as f64 / series.len() as f64;
    (0..balanced.len() / PERIOD)
        .map(|period| {
            let steps = period * PERIOD..(period + 1) * PERIOD;
            let times =
                |of: &Vec<f64>| steps.clone().map(|step| of[step % of.len()]).sum::<f64>() / PERIOD as f64;
            let speeds: f64 = series.iter().map(|of| 1.0 / (units * times(of))).sum();
            let y = series.len() as f64 / speeds;
            Period { y, balanced: mean(&balanced[steps.clone()]), copied: mean(&copied[steps]) }
        })
        .collect()
}

/// The lines of balancing and copies over Y, all in seconds; none if Y is always the same.
pub(super) fn lines(periods: &[Period]) -> Option<[Line; 2]> {
    let fit = |of: fn(&Period) -> f64| {
        Line::fit(&periods.iter().map(|period| (period.y, of(period))).collect::<Vec<_>>())
    };
    Some([fit(|period| period.balanced)?, fit(|period| period.copied)?])
}

/// A rule that chooses copies, or not, for the next period from the periods so far.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rule {
    /// The paper's: the lower of two lines through all periods so far, at the latest Y. With one period, its own times.
    Lines,
    /// The same without this number of first periods in the lines.
    LinesWithout(usize),
    /// The lower of two lines that are known before the run.
    Known([Line; 2]),
    /// The method that took less time in the latest period.
    Latest,
    /// The method that took less time in all periods so far.
    Mean,
}

impl Rule {
    fn copies(self, known: &[Period]) -> bool {
        let Some(latest) = known.last() else { return false };
        let below = |[balanced, copied]: [Line; 2]| copied.at(latest.y) < balanced.at(latest.y);
        let less = latest.copied < latest.balanced;
        match self {
            Self::Lines => lines(known).map_or(less, below),
            Self::LinesWithout(first) => lines(&known[first.min(known.len() - 1)..]).map_or(less, below),
            Self::Known(lines) => below(lines),
            Self::Latest => less,
            Self::Mean => known.iter().map(|period| period.copied - period.balanced).sum::<f64>() < 0.0,
        }
    }
}

/// How far the time of the next period is from two estimates, as a part of it, mean of both methods and all periods that have
/// lines: the lines through all periods so far at the latest Y, and the time of the latest period.
pub(super) fn errors(periods: &[Period]) -> [f64; 2] {
    let (mut by_lines, mut by_latest) = (Vec::new(), Vec::new());
    for place in 2..periods.len() {
        let Some(known) = lines(&periods[..place]) else { continue };
        let (latest, next) = (periods[place - 1], periods[place]);
        let times: [fn(&Period) -> f64; 2] = [|period| period.balanced, |period| period.copied];
        for (line, time) in known.iter().zip(times) {
            by_lines.push((line.at(latest.y) / time(&next) - 1.0).abs());
            by_latest.push((time(&latest) / time(&next) - 1.0).abs());
        }
    }
    [mean(&by_lines), mean(&by_latest)]
}

/// A run with a choice. Times in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chosen {
    /// Time of the run.
    pub(super) seconds: f64,
    /// Time of the switches in it.
    pub(super) switching: f64,
    /// Time by which the chosen method was slower than the other one, over periods in which it was.
    pub(super) wrong: f64,
    /// The part of `wrong` in the first period.
    pub(super) wrong_first: f64,
}

/// A run that begins with balancing, and after each period continues with the method that the rule names.
pub(super) fn choice(periods: &[Period], rule: Rule) -> Chosen {
    let (mut run, mut copying) = (Chosen::default(), false);
    for (place, period) in periods.iter().enumerate() {
        let (chosen, other) =
            if copying { (period.copied, period.balanced) } else { (period.balanced, period.copied) };
        run.seconds += PERIOD as f64 * chosen;
        run.wrong += PERIOD as f64 * (chosen - other).max(0.0);
        if place == 0 {
            run.wrong_first = run.wrong;
        }
        let better = rule.copies(&periods[..=place]);
        if better != copying && place + 1 < periods.len() {
            run.switching += if better { SWITCH_S.0 } else { SWITCH_S.1 };
            copying = better;
        }
    }
    run.seconds += run.switching;
    run
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the sums are of whole numbers, or nothing is added")]
mod tests {
    use super::*;

    /// Periods in which balancing takes 10 s, and copies as long as given.
    fn run(copied: &[f64]) -> Vec<Period> {
        let period = |(place, &copied): (usize, &f64)| Period { y: place as f64, balanced: 10.0, copied };
        copied.iter().enumerate().map(period).collect()
    }

    #[test]
    fn a_choice_begins_with_balancing_and_pays_for_its_switches() {
        let chosen = choice(&run(&[6.0, 6.0, 30.0, 6.0]), Rule::Latest);
        // Balanced, copies, copies although slower, balanced although slower.
        assert_eq!(chosen.seconds, 100.0 * (10.0 + 6.0 + 30.0 + 10.0) + SWITCH_S.0 + SWITCH_S.1);
        assert_eq!((chosen.wrong_first, chosen.wrong), (400.0, 400.0 + 2000.0 + 400.0));
    }

    #[test]
    fn a_time_that_does_not_change_is_estimated_without_error() {
        let errors = errors(&run(&[5.0; 4]));
        assert!(errors.iter().all(|error| error.abs() < 1e-12), "{errors:?}");
        let [by_lines, by_latest] = super::errors(&run(&[4.0, 5.0, 6.0]));
        // Copies take 6 s. The line ends at 5 s for the latest Y, as the latest time does.
        assert!((by_lines - 1.0 / 12.0).abs() < 1e-12 && (by_latest - 1.0 / 12.0).abs() < 1e-12);
    }

    #[test]
    fn lines_follow_a_trend_sooner_than_the_mean_of_all_periods() {
        // Each rule begins with balancing, and takes copies for 10.5 s. The mean keeps them, for 12 s.
        let wrong = |rule: Rule| choice(&run(&[4.0, 6.0, 8.0, 10.5, 12.0]), rule).wrong;
        assert_eq!((wrong(Rule::Lines), wrong(Rule::Mean)), (600.0 + 50.0, 600.0 + 50.0 + 200.0));
    }

    #[test]
    fn after_the_last_period_nothing_is_switched() {
        let periods = run(&[4.0, 6.0]);
        let known = Rule::Known(lines(&periods).expect("Y differs"));
        assert_eq!(choice(&periods[..1], known).switching, 0.0);
        assert_eq!(choice(&periods, known).switching, SWITCH_S.0);
    }
}
