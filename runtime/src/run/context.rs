//! What a rank of arrays or of a pool gets for a run, such as its configuration, placement, clock and transport.

use std::any::Any;
use std::sync::Arc;

use super::outcome::Outcome;
use super::recording::Session;
use crate::config::Config;
use crate::error::Error;
use crate::ids::{Rank, WorkerId};
use crate::measure::cpu_limits::{CpuLimitsWatch, PinGuard};
use crate::measure::topology::plan::{Plan, RankPlacement};
use crate::panics::panic_message;
use crate::threads::clock::Clock;
use crate::threads::team::Team;
use crate::transport::handle::TransportHandle;

/// What a rank gets for a run.
pub(crate) struct RankContext<'s, P> {
    pub(crate) config: &'s Config,
    pub(crate) rank: Rank,
    pub(crate) plan: &'s Plan,
    pub(crate) watch: &'s CpuLimitsWatch,
    pub(crate) team: Arc<Team>,
    pub(crate) clock: Clock,
    pub(crate) outcome: Arc<Outcome>,
    /// The record of the run.
    pub(crate) run_recording: &'s Session,
    /// None for the only rank of a run.
    pub(crate) transport: Option<TransportHandle<'s, P>>,
}

impl RankPlacement {
    /// The vCPU of a worker, if it is pinned.
    fn of(&self, worker: WorkerId) -> Option<usize> {
        self.vcpus.as_ref().map(|vcpus| vcpus[worker.index()])
    }

    /// Pins the calling thread to the vCPU of a worker, if the worker is pinned.
    pub(crate) fn pin_worker<'w>(
        &self,
        rank: Rank,
        worker: WorkerId,
        watch: &'w CpuLimitsWatch,
    ) -> Option<PinGuard<'w>> {
        let vcpu = self.of(worker)?;
        let bound = watch.bind(vcpu);
        if bound.is_none() {
            tracing::warn!(rank = rank.0, worker = worker.0, vcpu, "the worker cannot be pinned to its vCPU");
        }
        bound
    }
}

/// The error of a panic in code of a rank that no handler of panics covers, such as a drop.
pub(crate) fn panicked(rank: Rank, panic: &(dyn Any + Send)) -> Error {
    let why = format!("it panicked outside of a handler: {}", panic_message(panic));
    Error::System { what: format!("rank {rank}"), why }
}

pub(crate) fn thread_refused(rank: Rank, why: &std::io::Error) -> Error {
    Error::System { what: format!("a thread for rank {rank}"), why: why.to_string() }
}
