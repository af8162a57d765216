//! A worker's share of the units, as a chunk that computes the share step by step.
//!
//! Each worker has one *job*: the units that the current [`Division`] gives it. A *group* is the workers that compute
//! copies of the same jobs and so hold the units of all these jobs. Without copies a group is one worker.
//!
//! # States
//!
//! | state | input | next state | output |
//! |---|---|---|---|
//! | Redistributing | the last of its units | Ready | |
//! | Ready | none; a single share: its own `Continue` | Waiting | begins the step: `Edge` to neighbouring groups |
//! | Waiting | the edges of its group, which has an unfinished job | Computing | |
//! | Computing | the job is computed | Waiting | `Part`, and `JobUnits` if steps change units |
//! | Computing | the parts of the job from another worker | Waiting | drops the job |
//! | Waiting | all parts, the units of its group, and the plan | Ready | combines the parts: `Stats` |
//! | Waiting | the same, and the plan has a new division | Redistributing | also `Units` that move |
//! | Waiting | the same, and `combine` ends the run | Over | also `FinalUnits` if units are collected |
//!
//! Inputs and outputs are [messages](ShareMessage) between shares. The transitions are in [`step`](super::step),
//! [`compute`](super::compute) and [`redistribution`](super::redistribution). Parts, edges and the plan of a step may
//! arrive before the state that needs them. The share keeps them until then.
//!
//! # Rules
//!
//! 1. *Plan.* The first share sends the [`Plan`](ShareMessage::Plan) of a step when it has begun the step and all
//!    shares have ended the step before the previous one. So no share is more than two steps behind, not even a share
//!    whose jobs are all finished by copies on other workers.
//! 2. *Copies.* Without copies a job is computed at once. With copies it is cut into slices. Between two slices the
//!    share handles messages, and drops a job that another worker has finished, at most one slice late.
//! 3. *Parts* are sent to all workers by the pattern of [`exchange`](super::exchange). If steps change units, the units
//!    of a finished job are sent to its group.
//! 4. *Combining.* Every share combines the same parts, and sends its statistics to the first share.
//! 5. *Redistribution.* Each share computes the moves from the old and the new division
//!    ([`redistribution`](super::redistribution)). It begins the next step when it has all its units.
//! 6. *Order of messages.* A message has the number of its step. A message of a later step is deferred. A message of an
//!    earlier step is dropped. A second message with the same content is dropped too, because two workers that finish
//!    the same job send the same.
//! 7. *Policy.* Steps are reported to the policy in order, when the statistics of all shares have arrived. A new
//!    division takes effect at the end of the next step whose plan was not sent yet.

use std::ops::Range;
use std::sync::Arc;

use lb_strategies::supersteps::Division;
use lb_strategies::supersteps::row::held;
use serde::{Deserialize, Serialize};

use super::api::Supersteps;
use super::checkpoint::{Beginning, Saver};
use super::compute::CurrentJob;
use super::edges::Boundary;
use super::jobs::Jobs;
use super::measure::StepMeter;
use super::messages::{ShareMessage, StepPlan};
use super::program::Program;
use super::root::Root;
use super::units::{Incoming, Units};
use crate::arrays::api::chunk::Chunk;
use crate::arrays::api::ctx::Ctx;

/// A share of the units, on one worker.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Share<P: Supersteps> {
    /// The index of this share, and of its worker.
    pub(super) me: usize,
    pub(super) division: Division,
    pub(super) shared: P::Shared,
    pub(super) step: u64,
    pub(super) state: State<P>,
    /// The units of all jobs of the group.
    pub(super) units: Units<P::Unit>,
    pub(super) boundary: Boundary<P::Edge>,
    pub(super) jobs: Jobs<P::Part>,
    /// The plan for the end of this step, after it has arrived.
    pub(super) plan: Option<StepPlan>,
    pub(super) meter: StepMeter,
    /// Only on the first share.
    #[serde(skip)]
    pub(super) root: Option<Box<Root<P>>>,
    /// Set if checkpoints are made.
    #[serde(skip)]
    pub(super) saver: Option<Saver>,
}

/// The state of a share, see the table at the head of this file.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) enum State<P: Supersteps> {
    Redistributing(Incoming<P::Unit>),
    Ready,
    Waiting,
    Computing(CurrentJob<P>),
    Over,
}

impl<P: Supersteps> Share<P> {
    pub(super) fn new(
        me: usize,
        Beginning { step, shared, units }: Beginning<P>,
        division: Division,
        root: Option<Box<Root<P>>>,
        saver: Option<Saver>,
    ) -> Self {
        Share {
            me,
            shared,
            step,
            state: State::Ready,
            units,
            boundary: Boundary::new(),
            jobs: Jobs::new(division.units.len()),
            plan: None,
            meter: StepMeter::default(),
            division,
            root,
            saver,
        }
    }

    pub(super) fn workers(&self) -> usize {
        self.division.units.len()
    }

    /// The workers of this share's group, which are also the numbers of their jobs.
    pub(super) fn group(&self) -> Range<usize> {
        self.division.group(self.me)
    }

    /// The units of all jobs of this share's group.
    pub(super) fn held(&self) -> Range<u64> {
        held(&self.division, self.me)
    }

    /// The units of a job.
    pub(super) fn units_of(&self, job: usize) -> Range<u64> {
        self.division.ranges().nth(job).expect("there is a job for each worker")
    }

    pub(super) fn send(&self, to: usize, message: ShareMessage<P>, ctx: &mut Ctx<'_, Self>) {
        ctx.send(to as u32, message);
    }

    /// Tells whether the share has begun its step.
    pub(super) fn is_in_step(&self) -> bool {
        matches!(self.state, State::Waiting | State::Computing(_))
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
            // These units replace older ones, which must have arrived.
            ShareMessage::JobUnits { step, .. } => {
                *step < self.step || *step == self.step && self.is_in_step()
            }
            ShareMessage::Stats { .. }
            | ShareMessage::FinalUnits(_)
            | ShareMessage::Written { .. }
            | ShareMessage::Notice(_)
            | ShareMessage::Ask => true,
        }
    }

    fn receive(&mut self, message: ShareMessage<P>, ctx: &mut Ctx<'_, Self>) {
        match message {
            ShareMessage::Plan { next, .. } => {
                self.plan = Some(next);
                self.advance(ctx);
            }
            ShareMessage::Edge { step, after, edge } if step == self.step => {
                self.boundary.keep(after, edge);
                self.advance(ctx);
            }
            ShareMessage::Part(finished) => self.handle_finished(vec![finished], ctx),
            ShareMessage::Parts(all) => self.handle_finished(all, ctx),
            ShareMessage::JobUnits { step, job, units } if step == self.step => {
                if self.jobs.update(job) {
                    self.units.replace(&self.units_of(job), units);
                }
                self.advance(ctx);
            }
            ShareMessage::Units { units, .. } => {
                let State::Redistributing(incoming) = &mut self.state else {
                    unreachable!("a share redistributes until all its units have come");
                };
                incoming.add(units);
                self.settle(ctx);
            }
            ShareMessage::Continue { step, .. }
                if step == self.step && matches!(self.state, State::Ready) =>
            {
                self.begin(ctx);
            }
            ShareMessage::Yield { step, job } if self.is_current(step, job) => {
                self.send(self.me, ShareMessage::Continue { step, job }, ctx);
            }
            ShareMessage::Continue { step, job } if self.is_current(step, job) => self.slice(ctx),
            // A message of an earlier step, or of a job that was dropped because another worker was faster.
            ShareMessage::Edge { .. }
            | ShareMessage::JobUnits { .. }
            | ShareMessage::Yield { .. }
            | ShareMessage::Continue { .. } => {}
            ShareMessage::Stats { step, worker, worked } => {
                let root = self.root.as_mut().expect("the first share hears what all did");
                root.add_stats(step, worker, worked, ctx);
                self.conclude(ctx);
                self.send_plan(ctx);
                self.advance(ctx);
            }
            ShareMessage::FinalUnits(units) => {
                self.root.as_mut().expect("the first share collects").collect(units);
                self.conclude(ctx);
            }
            ShareMessage::Written { worker, written } => self.written(worker, written, ctx),
            ShareMessage::Notice(by) => self.noticed(by),
            ShareMessage::Ask => self.asked(),
        }
    }

    fn waits_for(&self) -> Option<String> {
        let (edges, jobs) = (self.boundary.missing(), self.jobs.unfinished());
        let what = match &self.state {
            State::Over => return None,
            State::Redistributing(incoming) => format!("{} of its units", incoming.missing),
            _ if edges > 0 => format!("the edges of {edges} neighbours"),
            _ if jobs > 0 => format!("{jobs} of {} jobs", self.workers()),
            _ if self.plan.is_none() => "the decision of the first share on the next step".to_owned(),
            _ => "the units of jobs that other workers finished".to_owned(),
        };
        Some(format!("{what}, in step {}", self.step))
    }
}

/// The program of this process.
pub(super) fn program<'c, P: Supersteps>(ctx: &Ctx<'c, Share<P>>) -> &'c Program<P> {
    ctx.service::<Arc<Program<P>>>()
}
