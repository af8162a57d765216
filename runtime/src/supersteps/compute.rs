//! Computes the jobs of a group (the workers that compute copies of the same jobs), at once or slice by slice.
//!
//! | the job has | the share |
//! |---|---|
//! | no copies | computes it at once |
//! | copies | computes a slice, handles the messages that have arrived, computes the next slice |
//!
//! To handle messages, a share sends itself a [`Yield`](ShareMessage::Yield), and when that arrives a
//! [`Continue`](ShareMessage::Continue). If another worker has sent the parts of the job, the share drops it.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::api::{Job, Supersteps};
use super::measure::slice_end;
use super::messages::{FinishedJob, ShareMessage};
use super::share::{Share, State, program};
use crate::arrays::api::ctx::Ctx;

/// A job that is being computed.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct CurrentJob<P: Supersteps> {
    pub(super) job: usize,
    units: Range<u64>,
    /// The first unit that was not computed.
    next: u64,
    /// The edge of the last computed unit, from before it was computed.
    last_edge: Option<P::Edge>,
    parts: Vec<(Range<u64>, P::Part)>,
}

impl<P: Supersteps> Share<P> {
    /// The next job to compute: first this share's, then those of its group in a circle. None until all edges are here.
    pub(super) fn next_job(&self) -> Option<usize> {
        let group = self.group();
        let mut circle = (self.me..group.end).chain(group.start..self.me);
        circle.find(|&job| !self.jobs.is_finished(job)).filter(|_| self.boundary.missing() == 0)
    }

    /// Waiting to Computing: begins a job.
    pub(super) fn begin_job(&mut self, job: usize, ctx: &mut Ctx<'_, Self>) {
        let units = self.units_of(job);
        let current = CurrentJob { job, next: units.start, units, last_edge: None, parts: Vec::new() };
        self.state = State::Computing(current);
        self.meter.take_job();
        if job == self.me {
            return self.slice(ctx);
        }
        // Yields first, because another worker may have finished the job.
        self.send(self.me, ShareMessage::Yield { step: self.step, job }, ctx);
    }

    /// Computing: computes the next slice of the current job. After the last slice, Waiting again.
    pub(super) fn slice(&mut self, ctx: &mut Ctx<'_, Self>) {
        let State::Computing(mut current) = std::mem::replace(&mut self.state, State::Waiting) else {
            unreachable!("there is a job to compute");
        };
        let job = current.job;
        if !current.units.is_empty() {
            self.compute(&mut current, ctx);
        }
        if current.next < current.units.end {
            self.state = State::Computing(current);
            return self.send(self.me, ShareMessage::Yield { step: self.step, job }, ctx);
        }
        let finished = FinishedJob { step: self.step, job, by: self.me, parts: current.parts };
        self.note(Arc::new(finished), ctx);
        if self.jobs.update(job) {
            self.send_units(job, &current.units, ctx);
        }
        self.advance(ctx);
    }

    /// Computes the next slice, which is the whole job if no other worker computes copies.
    fn compute(&mut self, current: &mut CurrentJob<P>, ctx: &mut Ctx<'_, Self>) {
        let program = program(ctx);
        let (group, units, from) = (self.group(), &current.units, current.next);
        let to = match group.len() {
            1 => units.end,
            _ => slice_end(&program.row, units, from, self.jobs.longest_slice),
        };
        let (begins, ends) = (from == units.start, to == units.end);
        // This slice changes its last unit, and the next slice needs the edge of that unit from before.
        let edge = |number| program.edge(self.units.get(number)?);
        let [last_edge, next_edge] = if ends { [None, None] } else { [edge(to - 1), edge(to)] };
        let previous_edge = std::mem::replace(&mut current.last_edge, last_edge);
        let [before, after] = self.boundary.around(current.job - group.start, units, &self.held());
        // Sends messages that others wait for, because a job may take long.
        ctx.flush();
        let timer = program.stopwatch.start(self.me, self.step, ctx.elapsed_ns());
        let part = program.compute(Job {
            step: self.step,
            units: from..to,
            data: self.units.slice_mut(&(from..to)),
            shared: &self.shared,
            before: if begins { before } else { previous_edge.as_ref() },
            after: if ends { after } else { next_edge.as_ref() },
        });
        let weight = program.row.weight(from..to);
        self.meter.add(timer.stop(ctx.elapsed_ns()), weight);
        current.next = to;
        current.parts.push((from..to, part));
    }

    /// Sends the units of a job that this share has finished to the other workers of its group.
    fn send_units(&self, job: usize, numbers: &Range<u64>, ctx: &mut Ctx<'_, Self>) {
        for other in self.group().filter(|&other| other != self.me) {
            let units = self.units.slice(numbers).to_vec();
            self.send(other, ShareMessage::JobUnits { step: self.step, job, units }, ctx);
        }
    }

    /// Keeps the parts of jobs that other workers have finished, and drops the current job if it is one of these.
    pub(super) fn handle_finished(&mut self, jobs: Vec<Arc<FinishedJob<P::Part>>>, ctx: &mut Ctx<'_, Self>) {
        // A part of an earlier step comes from a slower copy.
        let step = self.step;
        for finished in jobs.into_iter().filter(|finished| finished.step == step) {
            if self.is_current(step, finished.job) {
                self.state = State::Waiting;
                self.meter.drop_job();
            }
            self.note(finished, ctx);
        }
        self.advance(ctx);
    }

    /// Tells whether this share computes this job in this step.
    pub(super) fn is_current(&self, step: u64, job: usize) -> bool {
        let State::Computing(current) = &self.state else { return false };
        step == self.step && current.job == job
    }
}
