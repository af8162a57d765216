//! The state that the workers of a rank share, one field per component.

use std::sync::{Arc, Mutex};

use super::cells::Cells;
use super::control_plane::ControlPlane;
use super::edges::EdgeRecorders;
use super::ending::Ending;
use super::record::RankMeasurements;
use super::scheduler::Scheduler;
use super::seeds::SeedFlags;
use super::timers::Timers;
use super::watermarks::Watermarks;
use crate::arrays::core::codec::ArrayCodec;
use crate::arrays::core::lifecycle::erased::ErasedArray;
use crate::arrays::core::lifecycle::handler::RankInfo;
use crate::arrays::core::packet::Packet;
use crate::arrays::core::routing::envelope::Envelope;
use crate::checkpoint::Store;
use crate::error::Error;
use crate::ids::WorkerId;
use crate::notice::Listener;
use crate::panics::panic_message;
use crate::run::resize::ResizeRequests;
use crate::threads::clock::Clock;
use crate::threads::elided_mutex::Tag;

pub(crate) struct RankShared {
    pub(crate) info: RankInfo,
    pub(crate) arrays: Arc<[Arc<dyn ErasedArray>]>,
    pub(crate) codec: ArrayCodec,
    /// True if every packet is encoded and decoded even inside the process.
    pub(crate) wire: bool,
    pub(crate) clock: Clock,
    pub(crate) cells: Cells,
    pub(crate) control_plane: ControlPlane,
    pub(crate) scheduler: Scheduler,
    pub(crate) watermarks: Watermarks,
    pub(crate) seeds: SeedFlags,
    pub(crate) measurements: RankMeasurements,
    pub(crate) edges: EdgeRecorders,
    pub(crate) ending: Ending,
    /// Where checkpoints are written, if the run makes any.
    pub(crate) checkpoints: Option<Arc<Store>>,
    /// Receives signals for all ranks of the process, if the run makes checkpoints.
    pub(crate) notices: Option<Listener>,
    /// The requests to shrink or expand the run, on the rank that takes them for its process.
    pub(crate) resizes: Option<Arc<ResizeRequests>>,
    /// The timers, by worker.
    pub(crate) timers: Box<[Mutex<Timers>]>,
}

impl RankShared {
    /// Fails the run without the core or a log, when only the ending and the scheduler can still be relied on.
    pub(crate) fn give_up(&self, error: Error) {
        self.ending.fail_unannounced(error);
        self.scheduler.stop();
    }

    /// Fails the run after a panic that killed the thread of a worker.
    pub(crate) fn worker_died(&self, worker: WorkerId, panic: &(dyn std::any::Any + Send)) {
        let what = format!("worker {worker} of rank {}", self.info.rank);
        self.give_up(Error::System { what, why: format!("its thread panicked: {}", panic_message(panic)) });
    }

    /// The bytes of a message between chunks, in a run with the wire format. None if the message has bulk data beside
    /// them.
    pub(crate) fn message_bytes(&self, packet: &Packet) -> Result<Option<Vec<u8>>, Error> {
        let Packet::Message(Envelope { to, delivery, epoch }) = packet else { return Ok(None) };
        if !self.wire || !delivery.payload.is_value() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        let beside = self.codec.encode_message(*to, delivery, *epoch, &mut bytes)?;
        Ok(beside.is_none().then_some(bytes))
    }

    /// Ends the run on this rank, with success or an error.
    pub(crate) fn stop(&self, result: Result<(), Error>) {
        self.ending.finish(result, self.clock.now_ns());
        self.scheduler.stop();
    }
}

/// The lock tag for the shared state of a rank: the tag of its only worker, or [`Tag::SHARED`] for several.
pub(crate) fn lock_tag(workers: u32, own: Tag) -> Tag {
    if workers == 1 { own } else { Tag::SHARED }
}
