//! A worker's share: the chunk that computes it.
//!
//! A step of a share:
//!
//! 1. It *begins* when the share has its units. It says what its neighbours see of them (`Edge`); the first share also
//!    says how the units are divided after this step, if anew (`Next`).
//! 2. It *computes* the jobs of its group, its own first, when it has the edges. Without copies that is one job in one
//!    go. With copies jobs are cut into slices, between which it hears of what others have finished, and drops that: so
//!    a slice late at most.
//! 3. What it finishes it tells all (`Part`, on the way that `exchange` has), and its group the units as they are now
//!    (`Outcome`), where a step changes them.
//! 4. It is *over* when the parts of all jobs, the outcomes of the group's jobs and the word of the first share have
//!    come. Every share then combines the same parts, and tells the first what it did (`Stats`).
//! 5. If the units are divided anew (`moving`), each share knows who had which units and who gets which: it sends what others get
//!    (`Units`), keeps what it keeps, and begins the next step when it has all of its own.
//!
//! Rules:
//!
//! - A message names its step. What is of a later step waits; what is of an earlier one, or comes a second time, is
//!   dropped: two workers that finished the same job said the same.
//! - A step is over only with the first share's word, which it says when it has begun the step and all have ended the
//!   one before the last. So nobody is left behind by more than two steps, also who finishes nothing because its jobs
//!   have copies.
//! - The policy hears of steps in order, when all have told what they did; what it answers takes effect at the end of
//!   the next step of which the first share has not yet said what follows.

use std::ops::Range;
use std::sync::Arc;

use lb_strategies::supersteps::Division;
use lb_strategies::supersteps::row::held;
use serde::{Deserialize, Serialize};

use super::api::{Job, Parts, Supersteps, Then};
use super::measure::{StepMeter, slice_end};
use super::messages::{FinishedJob, ShareMessage, StepPlan};
use super::program::Program;
use super::root::Root;
use crate::arrays::api::chunk::Chunk;
use crate::arrays::api::ctx::Ctx;

/// A share of the units, on one worker.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Share<P: Supersteps> {
    pub(super) me: usize,
    pub(super) step: u64,
    pub(super) division: Division,
    shared: P::Shared,
    /// The units of all jobs of the group, from number `first` on.
    pub(super) units: Vec<P::Unit>,
    pub(super) first: u64,
    /// Units for the next step that have come, and how many have not.
    pub(super) arrived: Vec<(u64, Vec<P::Unit>)>,
    pub(super) missing: u64,
    /// What each job of the group sees before and after it of the others, as of the begin of the step.
    pub(super) inner: Vec<[Option<P::Edge>; 2]>,
    /// What the group sees before and after it, and whether it is to see anything there.
    pub(super) outer: [Option<P::Edge>; 2],
    pub(super) awaited: [bool; 2],
    /// Of each job of all; none where it is not finished.
    pub(super) parts: Vec<Option<Arc<FinishedJob<P::Part>>>>,
    /// Jobs of the group whose units are as they are after the step.
    outcomes: Vec<bool>,
    /// The word of the first share.
    next: Option<StepPlan>,
    /// Weight of the longest slice in this step.
    longest: Option<f64>,
    /// The job in hand.
    current: Option<CurrentJob<P::Edge, P::Part>>,
    begun: bool,
    pub(super) measuring: StepMeter,
    /// The first share's own.
    #[serde(skip)]
    pub(super) root: Option<Box<Root<P>>>,
}

/// A job in hand.
#[derive(Serialize, Deserialize)]
struct CurrentJob<E, T> {
    job: usize,
    /// Its units that are computed, and what the last of them showed before.
    done: u64,
    shown: Option<E>,
    parts: Vec<(Range<u64>, T)>,
}

impl<P: Supersteps> Share<P> {
    pub(super) fn new(
        me: usize,
        program: &Program<P>,
        division: Division,
        root: Option<Box<Root<P>>>,
    ) -> Self {
        let range = held(&division, me);
        Share {
            me,
            step: 0,
            shared: program.begin(),
            units: program.units(range.clone()),
            first: range.start,
            arrived: Vec::new(),
            missing: 0,
            inner: Vec::new(),
            outer: [None, None],
            awaited: [false; 2],
            parts: division.units.iter().map(|_| None).collect(),
            outcomes: Vec::new(),
            next: None,
            longest: None,
            current: None,
            begun: false,
            measuring: StepMeter::default(),
            division,
            root,
        }
    }

    pub(super) fn workers(&self) -> usize {
        self.division.units.len()
    }

    /// The units of a job.
    pub(super) fn job(&self, job: usize) -> Range<u64> {
        self.division.ranges().nth(job).expect("there is a job for each worker")
    }

    /// Where some units that it has are in `units`.
    pub(super) fn at(&self, units: &Range<u64>) -> Range<usize> {
        (units.start - self.first) as usize..(units.end - self.first) as usize
    }

    pub(super) fn send(&self, to: usize, said: ShareMessage<P>, ctx: &mut Ctx<'_, Self>) {
        ctx.send(to as u32, said);
    }

    /// Begins a step: all units are here.
    pub(super) fn begin(&mut self, ctx: &mut Ctx<'_, Self>) {
        let program = program(ctx);
        (self.begun, self.current) = (true, None);
        let group = self.division.group(self.me);
        self.outcomes = vec![false; group.len()];
        self.measuring.begin(ctx.elapsed_ns(), program.stopwatch);
        if let Some(root) = &mut self.root {
            root.begin(self.step, self.division.copies, ctx.elapsed_ns(), ctx.writes());
        }
        self.send_plan(ctx);
        match self.send_boundaries(program, group, ctx) {
            Ok(()) => self.compute(ctx),
            Err(why) => ctx.fail(why),
        }
    }

    /// The first share says what is next after this step, when it can.
    fn send_plan(&mut self, ctx: &mut Ctx<'_, Self>) {
        let Some(root) = self.root.as_mut().filter(|_| self.begun && self.next.is_none()) else { return };
        let Some(next) = root.next(self.step) else { return };
        for other in 1..self.division.units.len() {
            self.send(other, ShareMessage::Plan { step: self.step, next: next.clone() }, ctx);
        }
        self.next = Some(next);
    }

    /// Computes what is to be computed, or its next slice; and ends the step if it is over.
    fn compute(&mut self, ctx: &mut Ctx<'_, Self>) {
        let group = self.division.group(self.me);
        let sees = self.awaited.iter().zip(&self.outer).all(|(&awaited, edge)| !awaited || edge.is_some());
        if self.begun && sees && self.current.is_none() {
            let circle = (self.me..group.end).chain(group.start..self.me);
            let next = circle.into_iter().find(|&job| self.parts[job].is_none());
            if let Some(job) = next {
                self.current = Some(CurrentJob { job, done: 0, shown: None, parts: Vec::new() });
                self.measuring.take_job();
                return match job == self.me {
                    true => self.slice(ctx),
                    // Perhaps somebody has finished it.
                    false => self.send(self.me, ShareMessage::Yield { step: self.step, job }, ctx),
                };
            }
        }
        self.end(ctx);
    }

    /// Computes a slice of the job in hand; all of it where nobody else can finish it.
    fn slice(&mut self, ctx: &mut Ctx<'_, Self>) {
        let program = program(ctx);
        let Some(CurrentJob { job, done, .. }) = self.current else { return self.compute(ctx) };
        let (units, group) = (self.job(job), self.division.group(self.me));
        let from = units.start + done;
        let to = match group.len() {
            1 => units.end,
            _ if from == units.end => from,
            _ => slice_end(&program.row, &units, from, self.longest),
        };
        let slice = from..to;
        let at = self.at(&slice);
        if !slice.is_empty() {
            let [mut before, mut after] = self.inner[job - group.start].clone();
            let all = held(&self.division, self.me);
            if units.start == all.start {
                before.clone_from(&self.outer[0]);
            }
            if units.end == all.end {
                after.clone_from(&self.outer[1]);
            }
            if slice.start > units.start {
                // The slice before may have changed it.
                before = self.current.as_mut().and_then(|hand| hand.shown.take());
            }
            let whole = &mut self.units;
            if to < units.end {
                after = program.edge(&whole[at.end]);
            }
            let shown = (to < units.end).then(|| program.edge(&whole[at.end - 1])).flatten();
            // Others wait for it, and a job may take long.
            ctx.flush();
            let timer = program.stopwatch.start(self.me, self.step, ctx.elapsed_ns());
            let part = program.compute(Job {
                step: self.step,
                units: slice.clone(),
                data: &mut whole[at],
                shared: &self.shared,
                before: before.as_ref(),
                after: after.as_ref(),
            });
            let weight = program.row.weight(slice.clone());
            self.measuring.add(timer.stop(ctx.elapsed_ns()), weight);
            let hand = self.current.as_mut().expect("it is in hand");
            (hand.done, hand.shown) = (to - units.start, shown);
            hand.parts.push((slice, part));
        }
        if to < units.end {
            return self.send(self.me, ShareMessage::Yield { step: self.step, job }, ctx);
        }
        let hand = self.current.take().expect("it is in hand");
        let finished = FinishedJob { step: self.step, job, by: self.me, parts: hand.parts };
        self.note(Arc::new(finished), ctx);
        if program.changes() {
            let units = &self.units[self.at(&units)];
            for other in group.clone().filter(|&other| other != self.me) {
                let said = ShareMessage::JobUnits { step: self.step, job, units: units.to_vec() };
                self.send(other, said, ctx);
            }
        }
        self.outcomes[job - group.start] = true;
        self.compute(ctx);
    }

    fn is_current(&self, step: u64, job: usize) -> bool {
        step == self.step && self.current.as_ref().is_some_and(|hand| hand.job == job)
    }

    /// Hears what came of some jobs, and drops one that it has in hand.
    fn handle_finished(&mut self, jobs: Vec<Arc<FinishedJob<P::Part>>>, ctx: &mut Ctx<'_, Self>) {
        // Of a step that is over: somebody else was faster.
        let step = self.step;
        for finished in jobs.into_iter().filter(|finished| finished.step == step) {
            if self.current.take_if(|hand| hand.job == finished.job).is_some() {
                self.measuring.drop_job();
            }
            self.note(finished, ctx);
        }
        self.compute(ctx);
    }

    /// Ends the step if nothing is missing.
    fn end(&mut self, ctx: &mut Ctx<'_, Self>) {
        let program = program(ctx);
        let changed = !program.changes() || self.outcomes.iter().all(|&outcome| outcome);
        if !self.begun || self.current.is_some() || !changed || self.parts.iter().any(Option::is_none) {
            return;
        }
        let Some(next) = self.next.take() else { return };
        let parts: Vec<_> = self.parts.iter_mut().map(|part| part.take().expect("all are there")).collect();
        let all = Box::new(parts.iter().flat_map(|finished| finished.parts.iter()));
        let then = program.combine(self.step, &mut self.shared, Parts { parts: all });
        let units = self.division.units[self.me];
        let worked = self.measuring.end(ctx.elapsed_ns(), units, then, program.stopwatch);
        match &mut self.root {
            Some(root) => {
                root.ended(self.step, ctx.elapsed_ns());
                root.add_stats(self.step, self.me, worked, ctx);
            }
            None => self.send(0, ShareMessage::Stats { step: self.step, worker: self.me, worked }, ctx),
        }
        (self.step, self.begun, self.outer) = (self.step + 1, false, [None, None]);
        if then == Then::End {
            return self.finish(ctx);
        }
        self.longest = next.slice;
        if let Some(division) = next.division.filter(|division| *division != self.division) {
            self.divide(division, ctx);
        }
        self.settle(ctx);
    }

    /// The run is over: one of each group says what its units are, if anybody wants to know.
    fn finish(&mut self, ctx: &mut Ctx<'_, Self>) {
        let collects = program(ctx).collects();
        let (first, units) = (self.first, std::mem::take(&mut self.units));
        match &mut self.root {
            Some(root) => root.finish(self.step, collects, units, ctx),
            None if collects && self.division.group(self.me).start == self.me => {
                self.send(0, ShareMessage::FinalUnits { first, units }, ctx);
            }
            None => {}
        }
        self.conclude(ctx);
    }

    /// Ends the run when the first share has heard all.
    fn conclude(&mut self, ctx: &mut Ctx<'_, Self>) {
        let Some(root) = &mut self.root else { return };
        if let Some((units, figures)) = root.conclusion() {
            let shared = std::mem::replace(&mut self.shared, program(ctx).begin());
            ctx.exit_with(&(shared, units, figures));
        }
    }
}

impl<P: Supersteps> Chunk for Share<P> {
    type Index = u32;
    type Message = ShareMessage<P>;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.begin(ctx);
    }

    fn ready(&self, said: &ShareMessage<P>) -> bool {
        match said {
            ShareMessage::Plan { step, .. }
            | ShareMessage::Edge { step, .. }
            | ShareMessage::Units { step, .. }
            | ShareMessage::Yield { step, .. }
            | ShareMessage::Continue { step, .. } => *step <= self.step,
            ShareMessage::Part(finished) => finished.step <= self.step,
            ShareMessage::Parts(all) => all.iter().all(|finished| finished.step <= self.step),
            // They take the place of units that must be here.
            ShareMessage::JobUnits { step, .. } => *step < self.step || *step == self.step && self.begun,
            ShareMessage::Stats { .. } | ShareMessage::FinalUnits { .. } => true,
        }
    }

    fn receive(&mut self, said: ShareMessage<P>, ctx: &mut Ctx<'_, Self>) {
        match said {
            ShareMessage::Plan { next, .. } => {
                self.next = Some(next);
                self.end(ctx);
            }
            ShareMessage::Edge { step, after, edge } if step == self.step => {
                self.outer[usize::from(after)] = Some(edge);
                self.compute(ctx);
            }
            ShareMessage::Part(finished) => self.handle_finished(vec![finished], ctx),
            ShareMessage::Parts(all) => self.handle_finished(all, ctx),
            ShareMessage::JobUnits { step, job, units } if step == self.step => {
                let group = self.division.group(self.me);
                if !self.outcomes[job - group.start] {
                    let at = self.at(&self.job(job));
                    self.units.splice(at, units);
                    self.outcomes[job - group.start] = true;
                }
                self.end(ctx);
            }
            ShareMessage::Units { first, units, .. } => {
                self.missing -= units.len() as u64;
                self.arrived.push((first, units));
                self.settle(ctx);
            }
            ShareMessage::Continue { step, .. } if step == self.step && !self.begun => self.begin(ctx),
            ShareMessage::Yield { step, job } if self.is_current(step, job) => {
                self.send(self.me, ShareMessage::Continue { step, job }, ctx);
            }
            ShareMessage::Continue { step, job } if self.is_current(step, job) => self.slice(ctx),
            // Of a step that is over: somebody else was faster.
            ShareMessage::Edge { .. }
            | ShareMessage::JobUnits { .. }
            | ShareMessage::Yield { .. }
            | ShareMessage::Continue { .. } => {}
            ShareMessage::Stats { step, worker, worked } => {
                let root = self.root.as_mut().expect("the first share hears what all did");
                root.add_stats(step, worker, worked, ctx);
                self.conclude(ctx);
                self.send_plan(ctx);
                self.end(ctx);
            }
            ShareMessage::FinalUnits { first, units } => {
                let root = self.root.as_mut().expect("the first share collects");
                root.collect(first, units);
                self.conclude(ctx);
            }
        }
    }

    fn waits_for(&self) -> Option<String> {
        let jobs = self.parts.iter().filter(|part| part.is_none()).count();
        let edges = self
            .awaited
            .iter()
            .zip(&self.outer)
            .filter(|(awaited, edge)| **awaited && edge.is_none())
            .count();
        let what = match (self.missing, edges, jobs) {
            (0, 0, 0) if self.next.is_none() => "the word of the first share on what follows".to_owned(),
            (0, 0, 0) => "the units of jobs that others finished".to_owned(),
            (0, 0, _) => format!("{jobs} of {} jobs", self.parts.len()),
            (0, ..) => format!("what {edges} of its neighbours show"),
            (units, ..) => format!("{units} of its units"),
        };
        Some(format!("{what}, in step {}", self.step))
    }
}

/// The program of this process.
pub(super) fn program<'c, P: Supersteps>(ctx: &Ctx<'c, Share<P>>) -> &'c Program<P> {
    ctx.service::<Arc<Program<P>>>()
}
