//! `dlb-jr` uses balancing (`des`) or copies (`replicate`), whichever is expected to be faster. The source is Dobber et
//! al., 2008 (see [`supersteps`](super)), section 3.3, steps 1 to 8.
//!
//! Y = P / sum(1 / E[JT_i]) (eq. 3) measures the capacity of the workers. JT_i is the time that worker i takes for one
//! of P equal jobs. For each of the two methods, the time of a step is close to a linear function of Y (eq. 12 and 13).
//! Every `period` steps both lines are fitted again. The method in force has measured times. The times of the other
//! method are computed from the same paces (seconds per unit of weight). The lines give the time of a step at the
//! latest Y.
//!
//! The paper leaves three things open. Here:
//! - A run begins with copies. Then each worker has the units of all jobs of its group, and a switch to `des` moves few
//!   units. A switch back moves many.
//! - A line is used only if it fits its points well, and only between them.
//! - Each step adds to the [`Regret`] the time that the other method would have saved. The policy switches when the
//!   regret exceeds chance and the cost of a switch. It switches even within a period, because a short run cannot make
//!   up for a period with the wrong method. At the end of a period, the lines correct the regret. A switch to copies
//!   costs 140 % of the mean time of a new division, a switch back 60 % (section 3.1).

use super::des::{Des, DesDivider, EVERY, WINDOW};
use super::line::Line;
use super::pace::By;
use super::policy::{Divider, Division, Problem, Step, SuperstepStrategy};
use super::redivide::{AHEAD, Overhead, TOLERANCE, duration, slowest};
use super::regret::Regret;
use super::replicate::{COPIES, replicated};
use crate::entry::Entry;
use crate::parameters::{Parameter, Parameters};
use crate::parse_error::ParseError;

pub(crate) const ENTRY: Entry<dyn SuperstepStrategy> = Entry {
    name: "dlb-jr",
    summary: "des or replicate, whichever is expected to be faster at the present speeds of workers",
    parameters: &[
        COPIES,
        Parameter {
            name: "period",
            default: "100",
            meaning: "steps after which the times that des and replicate would take are estimated anew",
        },
        EVERY,
        WINDOW,
        By::PARAMETER,
        TOLERANCE,
        AHEAD,
    ],
    build: |parameters| Ok(Box::new(DlbJr::read(parameters)?)),
};

/// Standard deviations of a step that a regret must exceed. With 5, short runs are faster, and 64 real hosts 6 %
/// slower.
const PATIENCE: f64 = 20.0;

struct DlbJr {
    des: Des,
    copies: u32,
    period: u64,
}

impl DlbJr {
    fn read(parameters: &Parameters) -> Result<Self, ParseError> {
        Ok(Self {
            des: Des::read(parameters)?,
            copies: parameters.whole("copies", 1..=1_000_000)? as u32,
            period: parameters.whole("period", 1..=1_000_000_000)?,
        })
    }
}

impl SuperstepStrategy for DlbJr {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn divider(&self, problem: &Problem) -> Box<dyn Divider> {
        if !problem.has_room_for_copies() {
            return self.des.divider(problem);
        }
        let balanced = self.des.follow(problem);
        let job = balanced.row.weight(0..balanced.row.units()) / problem.workers.max(1) as f64;
        Box::new(DlbJrDivider {
            copied: replicated(problem, &balanced.row, self.copies),
            overhead: Overhead::default(),
            early: Vec::new(),
            balanced,
            job,
            copies_in_force: true,
            period: self.period,
            tolerance: self.des.terms.tolerance,
            sums: Sums::of(problem.workers),
            balanced_points: Vec::new(),
            copied_points: Vec::new(),
            regret: Regret::default(),
            reason: None,
        })
    }
}

struct DlbJrDivider {
    balanced: DesDivider,
    copied: Division,
    copies_in_force: bool,
    overhead: Overhead,
    /// Steps before the first time to divide, each with its time and the pace of each worker.
    early: Vec<(f64, Vec<f64>)>,
    /// Weight of one of P equal jobs.
    job: f64,
    tolerance: f64,
    period: u64,
    sums: Sums,
    /// By period: Y, and the mean time of a step.
    balanced_points: Vec<(f64, f64)>,
    copied_points: Vec<(f64, f64)>,
    /// The regret that the other method is not in force.
    regret: Regret,
    reason: Option<String>,
}

/// Sums over the steps of a period.
#[derive(Default)]
struct Sums {
    steps: u64,
    paces: Vec<f64>,
    balanced_seconds: f64,
    copied_seconds: f64,
}

impl Sums {
    fn of(workers: usize) -> Self {
        Self { paces: vec![0.0; workers], ..Self::default() }
    }
}

impl Divider for DlbJrDivider {
    fn first(&mut self) -> Division {
        self.copied.clone()
    }

    fn after(&mut self, step: &Step) -> Option<Division> {
        let paces = self.balanced.add(step);
        let first = !self.balanced.looked;
        if first {
            self.early.push((step.seconds, paces));
        } else {
            self.sum_up(step.seconds, &paces);
        }
        let divided = self.balanced.divide();
        let price = divided.map_or(0.0, |moved| self.balanced.price.seconds(moved));
        self.sums.balanced_seconds += price;
        self.regret.correct(if self.copies_in_force { -price } else { price });
        if first && self.balanced.looked {
            // Before this, no speeds were known, so proportional shares were equal shares.
            for (seconds, paces) in std::mem::take(&mut self.early) {
                self.sum_up(seconds, &paces);
            }
        }
        if self.sums.steps >= self.period {
            self.fit();
        }
        if divided.is_some() && !self.copies_in_force {
            self.reason = self.balanced.reason();
        }
        let switches = self.switch();
        let division = if self.copies_in_force { &self.copied } else { &self.balanced.division };
        (switches || divided.is_some() && !self.copies_in_force).then(|| division.clone())
    }

    fn reason(&self) -> Option<String> {
        self.reason.clone()
    }
}

impl DlbJrDivider {
    /// Adds the time of a step, and its time with the other method, without the price of a switch (steps 2 and 3).
    fn sum_up(&mut self, seconds: f64, paces: &[f64]) {
        let computing = |division: &Division| slowest(&self.balanced.row, division, paces);
        let [balanced, copied] = [&self.balanced.division, &self.copied].map(computing);
        let (in_force, computed) =
            if self.copies_in_force { (&self.copied, copied) } else { (&self.balanced.division, balanced) };
        self.overhead.add(in_force, seconds, computed);
        let balanced = balanced + self.overhead.of(&self.balanced.division);
        let copied = copied + self.overhead.of(&self.copied);
        self.sums.steps += 1;
        self.sums.paces.iter_mut().zip(paces).for_each(|(sum, pace)| *sum += pace);
        self.sums.balanced_seconds += balanced;
        self.sums.copied_seconds += copied;
        let tolerance = self.tolerance * if self.copies_in_force { copied } else { balanced };
        self.regret.add(self.saved(balanced, copied), tolerance);
    }

    /// The saving of the method that is not in force, s.
    fn saved(&self, balanced: f64, copied: f64) -> f64 {
        if self.copies_in_force { copied - balanced } else { balanced - copied }
    }

    /// Fits both lines at the end of a period, and corrects the regret by the times that they give (steps 4 to 6).
    fn fit(&mut self) {
        let workers = self.sums.paces.len();
        let sums = std::mem::replace(&mut self.sums, Sums::of(workers));
        let steps = sums.steps as f64;
        let speeds: f64 = sums.paces.iter().map(|sum| steps / (sum * self.job)).sum();
        let y = workers as f64 / speeds;
        self.balanced_points.push((y, sums.balanced_seconds / steps));
        self.copied_points.push((y, sums.copied_seconds / steps));
        if let Some((balanced, copied)) = expected(&self.balanced_points).zip(expected(&self.copied_points)) {
            let expected = self.saved(balanced, copied) * steps;
            let correction = expected - self.saved(sums.balanced_seconds, sums.copied_seconds);
            // If lines and sums agree that a method is slower, there is no regret, however little slower it is.
            self.regret.correct(correction.min(expected.max(0.0)));
        }
    }

    /// Switches to the other method if that pays (step 7). Returns true if it has switched.
    fn switch(&mut self) -> bool {
        let part = if self.copies_in_force { 0.6 } else { 1.4 };
        let saved = self.regret.seconds;
        if !self.regret.exceeds(part * self.balanced.price.division_seconds(), PATIENCE) {
            return false;
        }
        self.regret.restart();
        // The next correction must be for steps of this method only.
        self.sums = Sums::of(self.sums.paces.len());
        self.copies_in_force = !self.copies_in_force;
        let other = if self.copies_in_force { "copies" } else { "shares in proportion" };
        self.reason = Some(format!("{other}: would have computed {} less recently", duration(saved)));
        true
    }
}

/// The expected time of a step at the last Y, s; none unless a line explains the times and has points on both sides.
fn expected(points: &[(f64, f64)]) -> Option<f64> {
    let (&(y, _), before) = points.split_last()?;
    let within = before.iter().any(|point| point.0 <= y) && before.iter().any(|point| point.0 >= y);
    Line::fit(points).filter(|line| within && line.correlation >= 0.9).map(|line| line.at(y))
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg32;

    use super::*;
    use crate::supersteps::policy::{Weights, Work};
    use crate::supersteps::row::{Row, moved as moved_units};

    /// The mean time of a step under a policy. `pace` draws the pace of each worker for each step.
    fn mean(spec: &str, workers: usize, steps: u64, pace: impl Fn(&mut Pcg32, usize, u64) -> f64) -> f64 {
        let policy = crate::SUPERSTEPS.parse(spec).expect("it is listed");
        let problem = Problem { workers, vcpus: None, weights: Weights::Equal(1000 * workers as u64) };
        let (mut divider, row, mut random) =
            (policy.divider(&problem), Row::new(&problem.weights), Pcg32::seed_from_u64(3));
        let (mut division, mut all, mut moved) = (divider.first(), 0.0, 0);
        for number in 0..steps {
            let paces: Vec<f64> = (0..workers).map(|worker| pace(&mut random, worker, number)).collect();
            let seconds = slowest(&row, &division, &paces);
            let work = |(weight, pace): (f64, &f64)| Work {
                weight,
                seconds: weight * pace,
                cpu_seconds: weight * pace,
                ..Work::default()
            };
            let works = row.weights(&division).zip(&paces).map(work).collect();
            let redivision_seconds = if moved > 0 { 5.0 } else { 0.0 };
            all += seconds + redivision_seconds;
            let step = Step { number, works, seconds, redivision_seconds, moved };
            let old = division.clone();
            division = divider.after(&step).unwrap_or(division);
            moved = moved_units(&old, &division);
        }
        all / steps as f64
    }

    #[test]
    fn it_copies_nothing_where_copies_would_take_vcpus_from_jobs() {
        let policy = crate::SUPERSTEPS.parse("dlb-jr,copies=4").expect("it is listed");
        let first = |vcpus| {
            let problem = Problem { workers: 4, vcpus, weights: Weights::Equal(4000) };
            policy.divider(&problem).first().copies
        };
        assert_eq!([Some(2), Some(4), None].map(first), [1, 4, 4]);
    }

    #[test]
    fn it_is_as_good_as_the_better_of_its_two() {
        // Unequal steady speeds favour shares. Equal speeds with a late worker now and then favour copies.
        let steady = |_: &mut Pcg32, worker: usize, _: u64| 1e-2 * (1 + worker) as f64;
        let bursts =
            |random: &mut Pcg32, _: usize, _: u64| if random.random::<f64>() < 0.1 { 1e-1 } else { 1e-2 };
        let turns = |random: &mut Pcg32, worker: usize, step: u64| match step / 1000 {
            0 => steady(random, worker, step),
            _ => bursts(random, worker, step),
        };
        for (name, pace) in [
            ("steady", Box::new(steady) as Box<dyn Fn(&mut Pcg32, usize, u64) -> f64>),
            ("bursts", Box::new(bursts)),
            ("turns", Box::new(turns)),
        ] {
            let [des, copies, choice] =
                ["des", "replicate,copies=4", "dlb-jr,copies=4"].map(|spec| mean(spec, 4, 2000, &pace));
            assert!(choice <= 1.03 * des.min(copies), "{name}: des {des}, copies {copies}, choice {choice}");
            match name {
                "steady" => assert!(des < 0.9 * copies),
                "bursts" => assert!(copies < 0.9 * des),
                _ => assert!(choice < 0.9 * des.min(copies)),
            }
        }
    }

    #[test]
    fn a_short_run_is_not_spent_in_the_worse_way() {
        let halfway = |_: &mut Pcg32, worker: usize, step: u64| match (worker, step) {
            (1, 30..70) => 2e-2,
            _ => 1e-2,
        };
        let [des, copies, choice] = ["des", "replicate", "dlb-jr"].map(|spec| mean(spec, 2, 100, halfway));
        assert!(des < 0.9 * copies && choice < 1.02 * des, "des {des}, copies {copies}, choice {choice}");
    }
}
