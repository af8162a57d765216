//! Allgather: every worker gets the parts of all jobs of a step.
//!
//! | [`Exchange`] | a worker sends a part |
//! |---|---|
//! | `Direct` | that it finished, to all other workers |
//! | `Ring` | that it finished or received, to the next worker, unless that one finished it |
//! | `Gather` | that it finished, to the first worker, which sends all parts to all workers once it has them |
//!
//! In each pattern the worker that finishes a job also sends the part directly to the other workers of its group. They
//! then drop their copies of the job.

use std::sync::Arc;

use super::api::{Exchange, Supersteps};
use super::messages::{FinishedJob, ShareMessage};
use super::share::{Share, program};
use crate::arrays::api::ctx::Ctx;

impl<P: Supersteps> Share<P> {
    /// Keeps the part of a job of this step if it is new, and sends it to the workers that get it from this one.
    pub(super) fn note(&mut self, finished: Arc<FinishedJob<P::Part>>, ctx: &mut Ctx<'_, Self>) {
        let (job, by) = (finished.job, finished.by);
        if self.jobs.is_finished(job) {
            return;
        }
        let (me, workers, group) = (self.me, self.workers(), self.group());
        let next = (me + 1) % workers;
        let exchange = program(ctx).exchange();
        let is_sent = |other: usize| match exchange {
            Exchange::Direct => by == me,
            Exchange::Ring => other == next && next != by || by == me && group.contains(&other),
            Exchange::Gather => by == me && (other == 0 || group.contains(&other)),
        };
        for other in (0..workers).filter(|&other| other != me && is_sent(other)) {
            self.send(other, ShareMessage::Part(finished.clone()), ctx);
        }
        self.jobs.keep(finished);
        if exchange == Exchange::Gather
            && me == 0
            && let Some(all) = self.jobs.all_parts()
        {
            for other in 1..workers {
                self.send(other, ShareMessage::Parts(all.clone()), ctx);
            }
        }
    }
}
