//! How the parts of a step get from those who computed them to all.
//!
//! Whatever the way, whoever computes copies of a job hears at once that it is finished, from who finished it.

use std::sync::Arc;

use super::api::{Exchange, Supersteps};
use super::messages::{FinishedJob, ShareMessage};
use super::share::{Share, program};
use crate::arrays::api::ctx::Ctx;

impl<P: Supersteps> Share<P> {
    /// Notes what came of a job of this step, once, and tells those who are to hear of it from here.
    pub(super) fn note(&mut self, finished: Arc<FinishedJob<P::Part>>, ctx: &mut Ctx<'_, Self>) {
        let (job, by) = (finished.job, finished.by);
        if self.parts[job].is_some() {
            return;
        }
        let (me, workers) = (self.me, self.workers());
        let group = self.division.group(me);
        let next = (me + 1) % workers;
        let way = program(ctx).exchange();
        let hears = |other: usize| match way {
            Exchange::Direct => by == me,
            Exchange::Ring => other == next && next != by || by == me && group.contains(&other),
            Exchange::Gather => by == me && (other == 0 || group.contains(&other)),
        };
        for other in (0..workers).filter(|&other| other != me && hears(other)) {
            self.send(other, ShareMessage::Part(finished.clone()), ctx);
        }
        self.parts[job] = Some(finished);
        if way == Exchange::Gather
            && me == 0
            && let Some(all) = self.parts.iter().cloned().collect::<Option<Vec<_>>>()
        {
            for other in 1..workers {
                self.send(other, ShareMessage::Parts(all.clone()), ctx);
            }
        }
    }
}
