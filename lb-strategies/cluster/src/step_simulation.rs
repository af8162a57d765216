//! Simulates programs in supersteps on a cluster in virtual time, divided by the policies of production.
//!
//! # What is modelled
//! - Each worker has a share. In a step it computes the job of its share, or with copies it races for the jobs of its
//!   group ([`Race`]). An [`Exchange`] sends the parts to all workers. A worker with all parts begins the next step.
//! - The policy gets a step when all workers have ended it. Its division takes effect `lag` steps later, two in
//!   production. There the first worker sends in each step the plan of the next one, when all have ended the step `lag`
//!   before. No worker continues without it. Without lag, as in the papers, all wait for all at the end of each step.
//! - Units that change workers go over the receiver's link, all units of a worker together. A division may take a fixed
//!   time in addition, as in the programs of both papers. A worker begins when it has all its units.
//!
//! # What is not modelled
//! Messages take no CPU time. Boundary data comes with the parts. All workers are equally far apart, even on one rank.

use lb_strategies::supersteps::row::{held, moved};
use lb_strategies::supersteps::{
    Divider, Division, Problem, Race, Row, Step, SuperstepStrategy, Weights, Work,
};

use crate::exchange::{Exchange, Part, Wire};
use crate::job_times::Computing;

/// A program in supersteps.
///
/// ```
/// use lb_strategies::{Rank, SUPERSTEPS, supersteps::Weights};
/// use virtual_cluster::{OnVcpus, RunSteps, StepProgram, Traces, Worker};
/// let program = StepProgram { steps: 100, ..StepProgram::new(Weights::Equal(300), 2) };
/// // The second worker is half as fast: with shares of 200 and 100 units each step takes 2 s.
/// let vcpus = Traces::constant(|worker| if worker.rank.0 == 0 { 100.0 } else { 50.0 });
/// let workers = (0..2).map(|rank| Worker { rank: Rank(rank), number: 0 }).collect();
/// let mut computing = OnVcpus::new(Box::new(vcpus), workers);
/// let run = RunSteps::new(&program, &*SUPERSTEPS.parse("des")?, &mut computing).run();
/// assert_eq!((run.divisions.len(), run.step_seconds[99]), (1, 2.0));
/// # Ok::<(), lb_strategies::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct StepProgram {
    /// The units and their weights.
    pub weights: Weights,
    /// Number of steps of the run.
    pub steps: u64,
    /// Number of workers, at least one.
    pub workers: usize,
    /// Bytes of a unit that all workers get in each step.
    pub part_bytes: f64,
    /// Bytes of a unit that move with it to another worker.
    pub unit_bytes: f64,
    /// How the parts of a step reach all workers.
    pub exchange: Exchange,
    /// The link of each worker.
    pub link: Wire,
    /// Time of the message that a job is finished, s.
    pub notify_s: f64,
    /// Fixed time of a division, s. Towards copies, a division takes 140 % of it, back 60 % (Dobber
    /// et al., 2008, section 3.1).
    pub division_s: f64,
    /// Number of steps until a division of the policy takes effect.
    pub lag: u64,
}

impl StepProgram {
    /// A program of one step, whose units have no bytes, on links without delay.
    pub fn new(weights: Weights, workers: usize) -> Self {
        Self {
            weights,
            steps: 1,
            workers,
            part_bytes: 0.0,
            unit_bytes: 0.0,
            exchange: Exchange::default(),
            link: Wire { delay_s: 0.0, bytes_per_s: f64::INFINITY },
            notify_s: 0.0,
            division_s: 0.0,
            lag: 2,
        }
    }
}

/// The record of a run. Times are in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepsRun {
    /// Length of each step: from the end of the step before for the last worker to its own, including moves before it.
    pub step_seconds: Vec<f64>,
    /// The divisions that took effect after the first.
    pub divisions: Vec<NewDivision>,
    /// By worker, time in which it computed.
    pub computing_s: Vec<f64>,
    /// Number of attempts at jobs that ended because another worker was faster.
    pub dropped: u64,
}

/// A division that took effect.
#[derive(Clone, Debug, PartialEq)]
pub struct NewDivision {
    /// The first step with this division.
    pub step: u64,
    /// The new division.
    pub division: Division,
    /// Number of units that are new to their worker.
    pub moved: u64,
    /// Time of the division, s.
    pub seconds: f64,
    /// The reason that the policy gives.
    pub reason: Option<String>,
}

impl StepsRun {
    /// Time of the run, s; infinite if a worker never ended a step.
    pub fn makespan_s(&self) -> f64 {
        self.step_seconds.iter().sum()
    }

    /// Number of units that changed workers, in all divisions together.
    pub fn moved(&self) -> u64 {
        self.divisions.iter().map(|division| division.moved).sum()
    }
}

/// A program before its run on a cluster.
pub struct RunSteps<'r> {
    program: &'r StepProgram,
    computing: &'r mut dyn Computing,
    row: Row,
    divider: Box<dyn Divider>,
    division: Division,
    /// When each worker begins its next step.
    begins: Vec<f64>,
    /// When the last worker ended each step.
    ended: Vec<f64>,
    /// Divisions of the policy, by the step from which on they hold.
    answers: Vec<(u64, Division, Option<String>)>,
    run: StepsRun,
}

/// The work of all workers in a step.
struct Done {
    parts: Vec<Part>,
    works: Vec<Work>,
    /// By worker: when it had the messages that all jobs of its group were finished.
    finished: Vec<f64>,
}

impl<'r> RunSteps<'r> {
    /// Runs `program` under a policy, with these computing times.
    pub fn new(
        program: &'r StepProgram,
        policy: &dyn SuperstepStrategy,
        computing: &'r mut dyn Computing,
    ) -> Self {
        let problem = Problem { workers: program.workers, vcpus: None, weights: program.weights.clone() };
        let mut divider = policy.divider(&problem);
        let run = StepsRun { computing_s: vec![0.0; program.workers], ..StepsRun::default() };
        Self {
            row: Row::new(&program.weights),
            division: divider.first(),
            divider,
            begins: vec![0.0; program.workers],
            ended: Vec::new(),
            answers: Vec::new(),
            program,
            computing,
            run,
        }
    }

    /// Runs the program.
    pub fn run(mut self) -> StepsRun {
        let mut ended = 0.0;
        for number in 0..self.program.steps {
            let (moved, moving_s) = self.divide(number);
            let begin = self.begins[0];
            self.computing.begin(number);
            let done = self.compute();
            let arrivals =
                self.program.exchange.arrival_times(&done.parts, self.program.link, self.program.workers);
            let mut ends: Vec<f64> =
                arrivals.iter().zip(&done.finished).map(|(have, through)| have.max(*through)).collect();
            self.wait(number, &mut ends);
            let last = ends.iter().copied().fold(0.0, f64::max);
            self.run.step_seconds.push(last - ended);
            if last.is_infinite() {
                break;
            }
            let waited = |(work, (end, begin)): (Work, (&f64, &f64))| Work {
                waiting_seconds: (end - begin - work.seconds).max(0.0),
                ..work
            };
            let works = done.works.into_iter().zip(ends.iter().zip(&self.begins)).map(waited).collect();
            let seconds = ends[0] - begin;
            (ended, self.begins) = (last, ends);
            self.ended.push(last);
            self.tell(&Step { number, works, seconds, redivision_seconds: moving_s, moved });
        }
        self.run
    }

    /// Delays the ends of a step until the plan of the next step has come.
    fn wait(&self, step: u64, ends: &mut [f64]) {
        let StepProgram { lag, link: wire, .. } = self.program;
        if *lag == 0 {
            return ends.fill(ends.iter().copied().fold(0.0, f64::max));
        }
        let before = step.checked_sub(*lag).map_or(0.0, |before| self.ended[before as usize] + wire.delay_s);
        let said = self.begins[0].max(before);
        for (worker, end) in ends.iter_mut().enumerate() {
            *end = end.max(if worker == 0 { said } else { said + wire.delay_s });
        }
    }

    /// Makes the policy's division take effect if it is due. Returns the number of moved units, and the time it takes.
    fn divide(&mut self, step: u64) -> (u64, f64) {
        let due = self.answers.iter().rposition(|(due, ..)| *due <= step);
        let Some((_, new, reason)) = due.and_then(|due| self.answers.drain(..=due).next_back()) else {
            return (0, 0.0);
        };
        if new == self.division {
            return (0, 0.0);
        }
        let (moved, old) = (moved(&self.division, &new), std::mem::replace(&mut self.division, new));
        let (new, StepProgram { link: wire, unit_bytes, division_s, .. }) = (&self.division, self.program);
        let fixed_s = division_s
            * match (old.copies > 1, new.copies > 1) {
                (false, true) => 1.4,
                (true, false) => 0.6,
                _ => 1.0,
            };
        let before = self.begins.iter().copied().fold(0.0, f64::max);
        let ready: Vec<f64> = (0..self.begins.len())
            .map(|worker| {
                let (had, has) = (held(&old, worker), held(new, worker));
                let kept = had.end.min(has.end).saturating_sub(had.start.max(has.start));
                let gets = (has.end - has.start - kept) as f64;
                if gets == 0.0 && fixed_s == 0.0 {
                    return self.begins[worker];
                }
                before + fixed_s + wire.delay_s + gets * unit_bytes / wire.bytes_per_s
            })
            .collect();
        let seconds = ready.iter().copied().fold(0.0, f64::max) - before;
        self.begins = ready;
        let division = new.clone();
        self.run.divisions.push(NewDivision { step, division, moved, seconds, reason });
        (moved, seconds)
    }

    /// Computes all jobs of a step.
    fn compute(&mut self) -> Done {
        let workers = self.program.workers;
        let weights: Vec<f64> = self.row.weights(&self.division).collect();
        let mut done =
            Done { parts: Vec::new(), works: vec![Work::default(); workers], finished: vec![0.0; workers] };
        for first in (0..workers).step_by(self.division.copies.max(1) as usize) {
            let group = self.division.group(first);
            let mut cpu = Vec::new();
            let race = Race::run(&self.begins[group.clone()], self.program.notify_s, |worker, job, since| {
                let computed = self.computing.compute(first + worker, weights[first + job], since);
                cpu.push(((worker, job), computed.cpu_s));
                computed.end_s
            });
            for attempt in &race.attempts {
                let (spent_s, whole_s) = (attempt.until - attempt.since, attempt.end - attempt.since);
                let part = if whole_s > 0.0 { (spent_s / whole_s).min(1.0) } else { 1.0 };
                let key = (attempt.worker, attempt.job);
                let cpu_s = cpu.iter().find(|(of, _)| *of == key).map_or(0.0, |(_, cpu_s)| *cpu_s);
                let work = &mut done.works[first + attempt.worker];
                work.seconds += spent_s;
                work.cpu_seconds += part * cpu_s;
                work.weight += part * weights[first + attempt.job];
                self.run.computing_s[first + attempt.worker] += spent_s;
                self.run.dropped += u64::from(attempt.until < attempt.end && spent_s > 0.0);
            }
            for (job, &(by, at_s)) in race.finished.iter().enumerate() {
                let units = self.division.units[first + job];
                done.parts.push(Part { by: first + by, at_s, bytes: units as f64 * self.program.part_bytes });
            }
            for worker in group.clone() {
                let knows = (0..group.len()).map(|job| race.knows(worker - first, job));
                done.finished[worker] = knows.fold(0.0, f64::max);
            }
        }
        done
    }

    fn tell(&mut self, step: &Step) {
        if let Some(division) = self.divider.after(step) {
            self.answers.push((step.number + 1 + self.program.lag, division, self.divider.reason()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lb_strategies::SUPERSTEPS;

    use super::*;
    use crate::JobTimes;

    fn run(program: &StepProgram, policy: &str, series: &[Vec<f64>]) -> StepsRun {
        let policy = SUPERSTEPS.parse(policy).expect("it is listed");
        RunSteps::new(program, &*policy, &mut JobTimes::new(Arc::new(series.to_vec()))).run()
    }

    fn program(units: u64, workers: usize, steps: u64) -> StepProgram {
        StepProgram { steps, ..StepProgram::new(Weights::Equal(units), workers) }
    }

    #[test]
    fn a_step_takes_as_long_as_the_slowest_and_what_the_parts_take() {
        let wire = Wire { delay_s: 0.5, bytes_per_s: 10.0 };
        let program = StepProgram { link: wire, part_bytes: 1.0, ..program(20, 2, 3) };
        let run = run(&program, "equal", &[vec![0.1], vec![0.3]]);
        // The second worker computes from 0, 3 and 7 s on, because the first's part of the second step comes at 7 s.
        // Its own part reaches the first worker 1.5 s after it is computed.
        let rounded: Vec<f64> =
            run.step_seconds.iter().map(|seconds| (seconds * 1e6).round() / 1e6).collect();
        assert_eq!(rounded, [4.5, 3.0, 4.0]);
    }

    #[test]
    fn a_division_takes_effect_after_its_lag_and_units_take_their_time() {
        let wire = Wire { delay_s: 0.0, bytes_per_s: 10.0 };
        let program = StepProgram { link: wire, unit_bytes: 1.0, lag: 1, ..program(300, 2, 10) };
        let run = run(&program, "load-factor,look=0", &[vec![0.1], vec![0.2]]);
        let [division] = &run.divisions[..] else { panic!("{:?}", run.divisions) };
        assert_eq!((division.step, division.moved, &division.division.units[..]), (2, 50, &[200, 100][..]));
        let rounded: Vec<f64> = run.step_seconds.iter().map(|seconds| seconds.round()).collect();
        assert_eq!(rounded[..4], [30.0, 30.0, 25.0, 20.0], "50 bytes in 5 s");
    }

    #[test]
    fn copies_save_a_late_worker_and_notification_takes_time() {
        let late = vec![1.0, 1.0, 100.0, 1.0];
        let program = StepProgram { notify_s: 0.25, ..program(2, 2, 4) };
        let alone = run(&program, "equal", &[vec![1.0], late.clone()]);
        let copied = run(&program, "replicate,copies=2", &[vec![1.0], late]);
        assert_eq!(alone.step_seconds, [1.0, 1.0, 100.0, 1.0]);
        assert!(copied.makespan_s() < 7.0 && copied.dropped > 0, "{copied:?}");
    }

    #[test]
    fn a_worker_that_is_never_through_ends_the_run() {
        let run = run(&program(2, 2, 4), "equal", &[vec![1.0], vec![f64::INFINITY]]);
        assert_eq!((run.step_seconds.len(), run.makespan_s().is_infinite()), (1, true));
    }
}
