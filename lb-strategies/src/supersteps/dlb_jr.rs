//! `dlb-jr`: balancing or copies, whichever is expected to take less. Source: dlb-jr.txt, section 3.3, steps 1 to 8.
//!
//! Y = P / sum(1 / E[JT_i]) (eq. 3) tells what the workers can give, where JT_i is the time that worker i takes for one
//! of P equal jobs. The time of a step is close to a straight line in Y, for `des` and for `replicate` (eq. 12 and 13).
//! Every `period` steps both lines are fitted again, to what was measured of the one in force and to what follows from
//! the same paces for the other, and the one goes on that is lower at the latest Y.
//!
//! What the paper leaves open: a run begins with copies, which have all units that they need, so that leaving them moves
//! few and coming back moves many. The first choice comes after 4 steps of a hundred, the next after twice as long, and
//! so on up to a period, since a tenth of a run in the wrong way is more than any later choice can make up for. A line
//! is used where it explains what it was fitted to and is not asked beyond that; else the times of the last period
//! count. And the other way takes over when it would have saved more, since it last did not, than a switch costs: 140 %
//! of the mean time of a division towards copies and 60 % of it back (section 3.1).

use super::des::{Des, EVERY, Following, WINDOW};
use super::line::Line;
use super::pace::By;
use super::policy::{Divider, Division, Problem, Step, SuperstepStrategy};
use super::redivide::{AHEAD, Overhead, TOLERANCE, slowest};
use super::replicate::{COPIES, replicated};
use crate::entry::Entry;
use crate::parameters::{Parameter, Parameters};
use crate::parse_error::ParseError;

pub(crate) const ENTRY: Entry<dyn SuperstepStrategy> = Entry {
    name: "dlb-jr",
    summary: "des or replicate, whichever is expected to take less at what the workers now give",
    parameters: &[
        COPIES,
        Parameter { name: "period", default: "100", meaning: "steps from one choice to the next" },
        EVERY,
        WINDOW,
        By::PARAMETER,
        TOLERANCE,
        AHEAD,
    ],
    build: |parameters| Ok(Box::new(DlbJr::read(parameters)?)),
};

/// Steps that a division takes as long as, while none was seen.
const UNSEEN_STEPS: f64 = 10.0;

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
        Box::new(Choosing {
            copied: replicated(problem, &balanced.row, self.copies),
            before: balanced.division.clone(),
            overhead: Overhead::default(),
            early: Vec::new(),
            balanced,
            job,
            copies_in_force: true,
            period: self.period,
            due: self.period.div_ceil(25),
            steps: 0,
            sums: Sums { paces: vec![0.0; problem.workers], ..Sums::default() },
            balanced_points: Vec::new(),
            copied_points: Vec::new(),
            regret: 0.0,
            reason: None,
        })
    }
}

struct Choosing {
    balanced: Following,
    copied: Division,
    overhead: Overhead,
    /// Shares in proportion as of the last step, whether in force or not.
    before: Division,
    /// Steps before the first time to divide: their time, and the pace of each worker.
    early: Vec<(f64, Vec<f64>)>,
    /// Weight of one of P equal jobs.
    job: f64,
    copies_in_force: bool,
    period: u64,
    /// Steps until the next choice in all, and how many of them are over.
    due: u64,
    steps: u64,
    sums: Sums,
    /// Y and the mean time of a step, of each period.
    balanced_points: Vec<(f64, f64)>,
    copied_points: Vec<(f64, f64)>,
    /// What the other way would have saved, s, since it last did not.
    regret: f64,
    reason: Option<String>,
}

/// Sums over the steps of a period.
#[derive(Default)]
struct Sums {
    paces: Vec<f64>,
    balanced_seconds: f64,
    copied_seconds: f64,
}

impl Divider for Choosing {
    fn first(&mut self) -> Division {
        self.copied.clone()
    }

    fn after(&mut self, step: &Step) -> Option<Division> {
        let paces = self.balanced.add(step);
        let looked = self.balanced.looked;
        let divided = self.balanced.divide();
        if looked {
            let balanced = std::mem::replace(&mut self.before, self.balanced.division.clone());
            let in_force = if self.copies_in_force { self.copied.clone() } else { balanced.clone() };
            let price = divided.map_or(0.0, |moved| self.balanced.price.seconds(moved));
            self.sums.balanced_seconds += price;
            self.sum_up(step.seconds, &paces, &balanced, &in_force);
        } else {
            self.early.push((step.seconds, paces));
        }
        if !looked && self.balanced.looked {
            // Until now shares in proportion were equal ones, which tell nothing.
            let equal = std::mem::replace(&mut self.before, self.balanced.division.clone());
            let balanced = self.before.clone();
            let in_force = if self.copies_in_force { self.copied.clone() } else { equal };
            for (seconds, paces) in std::mem::take(&mut self.early) {
                self.sum_up(seconds, &paces, &balanced, &in_force);
            }
        }
        self.steps += 1;
        if divided.is_some() && !self.copies_in_force {
            self.reason = self.balanced.reason();
        }
        let switches = self.steps >= self.due && self.balanced.looked && self.choose();
        let division = if self.copies_in_force { &self.copied } else { &self.balanced.division };
        (switches || divided.is_some() && !self.copies_in_force).then(|| division.clone())
    }

    fn reason(&self) -> Option<String> {
        self.reason.clone()
    }
}

impl Choosing {
    /// Steps 2 and 3: what a step took, and what it would have taken the other way; without the price of a switch.
    fn sum_up(&mut self, seconds: f64, paces: &[f64], balanced: &Division, in_force: &Division) {
        let computing = |division: &Division| slowest(&self.balanced.row, division, paces);
        self.overhead.add(in_force, seconds, computing(in_force));
        self.sums.balanced_seconds += computing(balanced) + self.overhead.of(balanced);
        self.sums.copied_seconds += computing(&self.copied) + self.overhead.of(&self.copied);
        self.sums.paces.iter_mut().zip(paces).for_each(|(sum, pace)| *sum += pace);
    }

    /// Steps 4 to 7, at the end of a period. Says whether the other way is in force now.
    fn choose(&mut self) -> bool {
        let steps = std::mem::take(&mut self.steps) as f64;
        self.due = (2 * self.due).min(self.period);
        let workers = self.sums.paces.len() as f64;
        let speeds: f64 = self.sums.paces.iter().map(|sum| steps / (sum * self.job)).sum();
        let y = workers / speeds;
        self.balanced_points.push((y, self.sums.balanced_seconds / steps));
        self.copied_points.push((y, self.sums.copied_seconds / steps));
        self.sums = Sums { paces: vec![0.0; self.sums.paces.len()], ..Sums::default() };
        let (balanced, copied) = (expected(&self.balanced_points), expected(&self.copied_points));
        let (gain, part) = match self.copies_in_force {
            true => (copied - balanced, 0.6),
            false => (balanced - copied, 1.4),
        };
        self.regret = (self.regret + gain * steps).max(0.0);
        let in_force = if self.copies_in_force { copied } else { balanced };
        let price = self.balanced.price.division_seconds();
        let price = if price > 0.0 { price } else { UNSEEN_STEPS * in_force };
        if self.regret <= part * price {
            return false;
        }
        self.regret = 0.0;
        self.copies_in_force = !self.copies_in_force;
        let other = if self.copies_in_force { "copies" } else { "balancing" };
        self.reason = Some(format!(
            "{other}: at Y = {y:.3e} s a step is expected to take {balanced:.3e} s balanced, {copied:.3e} s with copies"
        ));
        true
    }
}

/// The expected time of a step at the last Y.
fn expected(points: &[(f64, f64)]) -> f64 {
    let (&(y, last), before) = points.split_last().expect("a period has ended");
    let within = before.iter().any(|point| point.0 <= y) && before.iter().any(|point| point.0 >= y);
    let line = Line::fit(points).filter(|line| within && line.correlation >= 0.9);
    line.map_or(last, |line| line.at(y))
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg32;

    use super::*;
    use crate::supersteps::policy::{Weights, Work};
    use crate::supersteps::row::{Row, moved as moved_units};

    /// The mean time of a step under a policy, of workers whose paces `pace` draws for each step.
    fn mean(spec: &str, workers: usize, pace: impl Fn(&mut Pcg32, usize, u64) -> f64) -> f64 {
        let policy = crate::SUPERSTEPS.parse(spec).expect("it is listed");
        let problem = Problem { workers, vcpus: None, weights: Weights::Equal(1000 * workers as u64) };
        let (mut divider, row, mut random) =
            (policy.divider(&problem), Row::new(&problem.weights), Pcg32::seed_from_u64(3));
        let (mut division, mut all, mut moved) = (divider.first(), 0.0, 0);
        for number in 0..2000 {
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
        all / 2000.0
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
        // Unequal but steady: shares. Equal, and somebody late now and then: copies.
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
                ["des", "replicate,copies=4", "dlb-jr,copies=4"].map(|spec| mean(spec, 4, &pace));
            assert!(choice <= 1.03 * des.min(copies), "{name}: des {des}, copies {copies}, choice {choice}");
            match name {
                "steady" => assert!(des < 0.9 * copies),
                "bursts" => assert!(copies < 0.9 * des),
                _ => assert!(choice < 0.9 * des.min(copies)),
            }
        }
    }
}
