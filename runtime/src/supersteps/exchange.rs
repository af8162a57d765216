//! Allgather: distributes the parts of all jobs of a step to every worker.
//!
//! | [`Exchange`] | a worker sends |
//! |---|---|
//! | `Direct` | each part that it has finished, to all other workers |
//! | `Ring` | each part that it has finished or received, to the next worker, unless that worker has finished it |
//! | `Gather` | each part that it has finished, to the first worker, which sends all parts together to all workers |
//!
//! In each pattern, the worker that finishes a job also sends the part to the other workers of its group, so that they
//! drop their copies of the job.

use std::sync::Arc;

use super::api::{Exchange, Supersteps};
use super::messages::{FinishedJob, ShareMessage};
use super::share::{Share, program};
use crate::arrays::api::ctx::Ctx;

impl<P: Supersteps> Share<P> {
    /// Keeps the part of a job of this step if it is new, and sends it to the workers that need it from this worker.
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
