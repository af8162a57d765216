//! A worker's share of the units: the chunk that computes it, step by step.
//!
//! Each worker has one *job*: the units that the current [`Division`] gives it. A *group* is the workers that compute copies
//! of the same jobs, and so hold the units of all of them; without copies it is one worker.
//!
//! # A step
//!
//! | | begins when | the share | sends |
//! |---|---|---|---|
//! | 1 | it has its units | begins the step | [`Edge`](ShareMessage::Edge) to neighbouring groups |
//! | 2 | it has the edges | computes the jobs of its group, its own first | |
//! | 3 | it has finished a job | keeps its parts | [`Part`](ShareMessage::Part), [`JobUnits`](ShareMessage::JobUnits) |
//! | 4 | it has all parts, the units of its group, and the plan | combines the parts | [`Stats`](ShareMessage::Stats) |
//! | 5 | the plan has a new division | keeps the units that stay | [`Units`](ShareMessage::Units) |
//!
//! # Rules
//!
//! 1. *Plan.* The first share sends the [`Plan`](ShareMessage::Plan) of a step when it has begun the step and all shares
//!    have ended the step before the previous one. So no share is more than two steps behind, not even one that finishes
//!    nothing because its jobs have copies.
//! 2. *Copies.* Without copies a job is computed in one go. With copies it is cut into slices. Between two slices the share
//!    handles messages, and drops a job that another worker has finished: at most one slice late.
//! 3. *Parts* get to all workers by the pattern of [`exchange`](super::exchange). The units of a finished job are sent to
//!    its group if a step changes them.
//! 4. *Combining.* Every share combines the same parts, and sends its statistics to the first share.
//! 5. *Redistribution.* Each share knows the old and the new place of all units ([`redistribution`](super::redistribution)).
//!    It begins the next step when it has all units of its own.
//! 6. *Order of messages.* A message names its step. A message of a later step is deferred. A message of an earlier step, or
//!    a second one of the same content, is dropped: two workers that finish the same job send the same.
//! 7. *Policy.* Steps are reported to the policy in order, when the statistics of all shares are there. A new division takes
//!    effect at the end of the next step of which the first share has not sent the plan.

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
    /// The index of this share and of its worker.
    pub(super) me: usize,
    pub(super) step: u64,
    pub(super) division: Division,
    shared: P::Shared,
    /// The units of all jobs of the group, from number `first` on.
    pub(super) units: Vec<P::Unit>,
    pub(super) first: u64,
    /// Units for the next step that have come, each run with the number of its first unit.
    pub(super) arrived: Vec<(u64, Vec<P::Unit>)>,
    /// Number of units for the next step that have not come.
    pub(super) missing: u64,
    /// For each job of the group the edges before and after it that are of the group, as of the begin of the step.
    pub(super) inner: Vec<[Option<P::Edge>; 2]>,
    /// The edges before and after the group.
    pub(super) outer: [Option<P::Edge>; 2],
    /// Whether the group needs an edge before it, and one after it.
    pub(super) awaited: [bool; 2],
    /// The parts of every job of the step; none where they have not come.
    pub(super) parts: Vec<Option<Arc<FinishedJob<P::Part>>>>,
    /// For each job of the group, whether `units` has its units as the step leaves them.
    updated: Vec<bool>,
    /// The plan for the end of this step, once it has come.
    next: Option<StepPlan>,
    /// Weight of the longest slice in this step.
    longest: Option<f64>,
    /// The job that is being computed.
    current: Option<CurrentJob<P::Edge, P::Part>>,
    /// True from the begin of the step to its end.
    begun: bool,
    pub(super) measuring: StepMeter,
    /// Only on the first share.
    #[serde(skip)]
    pub(super) root: Option<Box<Root<P>>>,
}

/// A job that is being computed.
#[derive(Serialize, Deserialize)]
struct CurrentJob<E, T> {
    job: usize,
    /// Number of its units that are computed.
    done: u64,
    /// The edge of the last of them, as it was before it was computed.
    last_edge: Option<E>,
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
            updated: Vec::new(),
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

    /// The indices in `self.units` of units that the share has.
    pub(super) fn at(&self, units: &Range<u64>) -> Range<usize> {
        (units.start - self.first) as usize..(units.end - self.first) as usize
    }

    pub(super) fn send(&self, to: usize, message: ShareMessage<P>, ctx: &mut Ctx<'_, Self>) {
        ctx.send(to as u32, message);
    }

    /// Begins a step. All units of the share have come.
    pub(super) fn begin(&mut self, ctx: &mut Ctx<'_, Self>) {
        let program = program(ctx);
        (self.begun, self.current) = (true, None);
        let group = self.division.group(self.me);
        self.updated = vec![false; group.len()];
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

    /// On the first share: sends the plan for the end of this step when it can.
    fn send_plan(&mut self, ctx: &mut Ctx<'_, Self>) {
        let Some(root) = self.root.as_mut().filter(|_| self.begun && self.next.is_none()) else { return };
        let Some(next) = root.next(self.step) else { return };
        for other in 1..self.division.units.len() {
            self.send(other, ShareMessage::Plan { step: self.step, next: next.clone() }, ctx);
        }
        self.next = Some(next);
    }

    /// Begins the next job of the group, if there is one and the share has the edges; else ends the step if it is over.
    fn compute(&mut self, ctx: &mut Ctx<'_, Self>) {
        let group = self.division.group(self.me);
        let has_edges =
            self.awaited.iter().zip(&self.outer).all(|(&awaited, edge)| !awaited || edge.is_some());
        if self.begun && has_edges && self.current.is_none() {
            let circle = (self.me..group.end).chain(group.start..self.me);
            let next = circle.into_iter().find(|&job| self.parts[job].is_none());
            if let Some(job) = next {
                self.current = Some(CurrentJob { job, done: 0, last_edge: None, parts: Vec::new() });
                self.measuring.take_job();
                return match job == self.me {
                    true => self.slice(ctx),
                    // Another worker may have finished it.
                    false => self.send(self.me, ShareMessage::Yield { step: self.step, job }, ctx),
                };
            }
        }
        self.end(ctx);
    }

    /// Computes a slice of the current job; all of it if no other worker computes a copy.
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
                // The slice before may have changed that unit.
                before = self.current.as_mut().and_then(|current| current.last_edge.take());
            }
            let whole = &mut self.units;
            if to < units.end {
                after = program.edge(&whole[at.end]);
            }
            let last_edge = (to < units.end).then(|| program.edge(&whole[at.end - 1])).flatten();
            // Others wait for the messages that this share has sent, and a job may take long.
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
            let current = self.current.as_mut().expect("it is in hand");
            (current.done, current.last_edge) = (to - units.start, last_edge);
            current.parts.push((slice, part));
        }
        if to < units.end {
            return self.send(self.me, ShareMessage::Yield { step: self.step, job }, ctx);
        }
        let current = self.current.take().expect("it is in hand");
        let finished = FinishedJob { step: self.step, job, by: self.me, parts: current.parts };
        self.note(Arc::new(finished), ctx);
        if program.changes() {
            let units = &self.units[self.at(&units)];
            for other in group.clone().filter(|&other| other != self.me) {
                let message = ShareMessage::JobUnits { step: self.step, job, units: units.to_vec() };
                self.send(other, message, ctx);
            }
        }
        self.updated[job - group.start] = true;
        self.compute(ctx);
    }

    fn is_current(&self, step: u64, job: usize) -> bool {
        step == self.step && self.current.as_ref().is_some_and(|current| current.job == job)
    }

    /// Other workers have finished some jobs: keeps their parts, and drops the current job if it is one of them.
    fn handle_finished(&mut self, jobs: Vec<Arc<FinishedJob<P::Part>>>, ctx: &mut Ctx<'_, Self>) {
        // A part of an earlier step comes from a slower copy.
        let step = self.step;
        for finished in jobs.into_iter().filter(|finished| finished.step == step) {
            if self.current.take_if(|current| current.job == finished.job).is_some() {
                self.measuring.drop_job();
            }
            self.note(finished, ctx);
        }
        self.compute(ctx);
    }

    /// Ends the step if nothing is missing.
    fn end(&mut self, ctx: &mut Ctx<'_, Self>) {
        let program = program(ctx);
        let changed = !program.changes() || self.updated.iter().all(|&updated| updated);
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

    /// The run is over: if units are collected, one share of each group sends its units to the first share.
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

    /// On the first share: ends the run once all statistics and units have come.
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

    fn ready(&self, message: &ShareMessage<P>) -> bool {
        match message {
            ShareMessage::Plan { step, .. }
            | ShareMessage::Edge { step, .. }
            | ShareMessage::Units { step, .. }
            | ShareMessage::Yield { step, .. }
            | ShareMessage::Continue { step, .. } => *step <= self.step,
            ShareMessage::Part(finished) => finished.step <= self.step,
            ShareMessage::Parts(all) => all.iter().all(|finished| finished.step <= self.step),
            // These units replace others, which must have come.
            ShareMessage::JobUnits { step, .. } => *step < self.step || *step == self.step && self.begun,
            ShareMessage::Stats { .. } | ShareMessage::FinalUnits { .. } => true,
        }
    }

    fn receive(&mut self, message: ShareMessage<P>, ctx: &mut Ctx<'_, Self>) {
        match message {
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
                if !self.updated[job - group.start] {
                    let at = self.at(&self.job(job));
                    self.units.splice(at, units);
                    self.updated[job - group.start] = true;
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
            // Of an earlier step or of a job that was dropped, since another worker was faster.
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
