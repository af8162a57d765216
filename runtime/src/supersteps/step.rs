//! The begin and the end of a share's step, and the change between its states.

use super::api::{Parts, Supersteps, Then};
use super::edges::Boundary;
use super::messages::{ShareMessage, StepPlan};
use super::share::{Share, State, program};
use super::units::Units;
use crate::arrays::api::ctx::Ctx;

impl<P: Supersteps> Share<P> {
    /// To Ready, and at once to Waiting unless there is a single share.
    pub(super) fn get_ready(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.state = State::Ready;
        if self.workers() > 1 {
            return self.begin(ctx);
        }
        // Otherwise a single share would run all steps within this handler.
        self.send(self.me, ShareMessage::Continue { step: self.step, job: self.me }, ctx);
    }

    /// Ready to Waiting: begins a step.
    pub(super) fn begin(&mut self, ctx: &mut Ctx<'_, Self>) {
        let program = program(ctx);
        self.state = State::Waiting;
        self.jobs.begin(self.group(), program.changes());
        self.meter.begin(ctx.elapsed_ns(), program.stopwatch);
        if let Some(root) = &mut self.root {
            root.begin(self.step, self.division.copies, ctx.elapsed_ns(), ctx.writes());
        }
        self.send_plan(ctx);
        match self.send_boundaries(program, ctx) {
            Ok(()) => self.advance(ctx),
            Err(why) => ctx.fail(why),
        }
    }

    /// On the first share: sends the plan for the end of this step, if it can be made.
    pub(super) fn send_plan(&mut self, ctx: &mut Ctx<'_, Self>) {
        let due = self.is_in_step() && self.plan.is_none();
        let Some(root) = self.root.as_mut().filter(|_| due) else { return };
        if let Some(ranks) = ctx.take_resize()
            && let Err(fault) = root.resize(ranks as usize)
        {
            return ctx.fail(fault);
        }
        let Some(plan) = root.next(self.step, ctx.elapsed_ns()) else { return };
        for other in 1..self.workers() {
            self.send(other, ShareMessage::Plan { step: self.step, next: plan.clone() }, ctx);
        }
        self.plan = Some(plan);
    }

    /// Leaves Waiting if possible, for the next job of the group or at the end of the step.
    pub(super) fn advance(&mut self, ctx: &mut Ctx<'_, Self>) {
        if !matches!(self.state, State::Waiting) {
            return;
        }
        if let Some(job) = self.next_job() {
            self.begin_job(job, ctx);
        } else if let Some(plan) = self.plan.take_if(|_| self.jobs.are_over()) {
            self.end(plan, ctx);
        }
    }

    /// Waiting to Ready, Redistributing or Over: ends the step.
    fn end(&mut self, plan: StepPlan, ctx: &mut Ctx<'_, Self>) {
        let then = self.combine(ctx);
        self.step += 1;
        self.boundary = Boundary::new();
        if then == Then::End {
            return self.finish(ctx);
        }
        if let Some(save) = plan.save {
            self.save(save, ctx);
            if save.is_last {
                // The share computes nothing more. The first share ends the run when all have written.
                self.state = State::Over;
                return;
            }
        }
        self.follow_checkpoints(ctx);
        if matches!(self.state, State::Over) {
            return;
        }
        self.jobs.longest_slice = plan.slice;
        match plan.division.filter(|division| *division != self.division) {
            Some(division) => {
                self.state = State::Redistributing(self.divide(division, ctx));
                self.settle(ctx);
            }
            None => self.get_ready(ctx),
        }
    }

    /// Combines the parts, and sends the statistics of the step to the first share.
    fn combine(&mut self, ctx: &mut Ctx<'_, Self>) -> Then {
        let (program, parts) = (program(ctx), self.jobs.take_parts());
        let all = Box::new(parts.iter().flat_map(|finished| finished.parts.iter()));
        let then = program.combine(self.step, &mut self.shared, Parts { parts: all });
        let units = self.division.units[self.me];
        let worked = self.meter.end(ctx.elapsed_ns(), units, then, program.stopwatch);
        match &mut self.root {
            Some(root) => {
                root.ended(self.step, ctx.elapsed_ns());
                root.add_stats(self.step, self.me, worked, ctx);
            }
            None => self.send(0, ShareMessage::Stats { step: self.step, worker: self.me, worked }, ctx),
        }
        then
    }

    /// Ends the run on this share. If units are collected, one share of each group sends its units to the first share.
    fn finish(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.state = State::Over;
        let collects = program(ctx).collects();
        let units = Units { first: self.units.first, data: std::mem::take(&mut self.units.data) };
        let sends = collects && self.group().start == self.me;
        match &mut self.root {
            Some(root) => root.finish(self.step, collects, units, ctx),
            None if sends => self.send(0, ShareMessage::FinalUnits(units), ctx),
            None => {}
        }
        self.conclude(ctx);
    }

    /// On the first share: ends the run when all statistics and units have arrived.
    pub(super) fn conclude(&mut self, ctx: &mut Ctx<'_, Self>) {
        let Some(root) = &mut self.root else { return };
        if let Some((units, figures)) = root.conclusion() {
            let shared = std::mem::replace(&mut self.shared, program(ctx).begin());
            ctx.exit_with(&(shared, units, figures));
        }
    }
}
