//! The state that the workers of a rank share: one part for each thing that there is to know.

use std::sync::Arc;

use super::cells::Cells;
use super::control_plane::ControlPlane;
use super::ending::Ending;
use super::record::RankMeasurements;
use super::scheduler::Scheduler;
use super::seeds::SeedFlags;
use super::watermarks::Watermarks;
use crate::arrays::core::codec::ArrayCodec;
use crate::arrays::core::lifecycle::erased::ErasedArray;
use crate::arrays::core::lifecycle::handler::RankInfo;
use crate::arrays::core::packet::Packet;
use crate::arrays::core::routing::envelope::Envelope;
use crate::error::Error;
use crate::ids::WorkerId;
use crate::panics::panic_message;
use crate::threads::clock::Clock;
use crate::threads::elided_mutex::Tag;

/// One rank.
pub(crate) struct RankShared {
    pub(crate) info: RankInfo,
    pub(crate) arrays: Arc<[Arc<dyn ErasedArray>]>,
    pub(crate) codec: ArrayCodec,
    /// Every packet is encoded and decoded even inside the process.
    pub(crate) wire: bool,
    pub(crate) clock: Clock,
    pub(crate) cells: Cells,
    pub(crate) control_plane: ControlPlane,
    pub(crate) scheduler: Scheduler,
    pub(crate) watermarks: Watermarks,
    pub(crate) seeds: SeedFlags,
    pub(crate) measurements: RankMeasurements,
    pub(crate) ending: Ending,
}

impl RankShared {
    /// Ends the run where nothing but that may be relied on any more: without the core, without a log.
    pub(crate) fn give_up(&self, error: Error) {
        self.ending.fail_unannounced(error);
        self.scheduler.stop();
    }

    /// A worker's thread dies of a panic that nothing else has caught.
    pub(crate) fn worker_died(&self, worker: WorkerId, panic: &(dyn std::any::Any + Send)) {
        let what = format!("worker {worker} of rank {}", self.info.rank);
        self.give_up(Error::System { what, why: format!("its thread panicked: {}", panic_message(panic)) });
    }

    /// The bytes of a message between chunks that needs nothing beside them, in a run that goes through the wire format.
    pub(crate) fn message_bytes(&self, packet: &Packet) -> Result<Option<Vec<u8>>, Error> {
        let Packet::Message(Envelope { to, delivery, epoch }) = packet else { return Ok(None) };
        if !self.wire || !delivery.payload.is_value() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        let beside = self.codec.encode_message(*to, delivery, *epoch, &mut bytes)?;
        Ok(beside.is_none().then_some(bytes))
    }

    /// The run is over here, well or not.
    pub(crate) fn stop(&self, result: Result<(), Error>) {
        self.ending.finish(result, self.clock.now_ns());
        self.scheduler.stop();
    }
}

/// The tag for what a rank's workers share.
pub(crate) fn lock_tag(workers: u32, own: Tag) -> Tag {
    if workers == 1 { own } else { Tag::SHARED }
}
