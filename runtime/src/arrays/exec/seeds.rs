//! Lock-free flags about the seeds of a rank. They save a worker the lock of the core while no seed can be started,
//! requested or shared.
//!
//! A worker reads the flags only when it finds no ready entry, and after a handler with effects. The flags are updated
//! each time the core is unlocked. A run without seeds never sets one.

use std::sync::atomic::{AtomicU8, Ordering};

use super::cells::Cell;
use super::worker::Worker;
use crate::arrays::core::lifecycle::erased::ErasedSlot;
use crate::arrays::core::lifecycle::handler::ChunkRecord;
use crate::arrays::core::lifecycle::seeds::UnstartedChunk;
use crate::arrays::core::lifecycle::transfer::ChunkBody;
use crate::arrays::core::rank::RankCore;
use crate::ids::{ArrayId, CellId};

/// Seeds wait to be started.
const WAIT: u8 = 1;
/// The rank has lifelines to which it has sent no request.
const MAY_ASK: u8 = 2;
/// Another rank has requested seeds, and there are seeds for it.
const TO_SHARE: u8 = 4;

/// The flags for the core's seeds.
#[derive(Default)]
pub(crate) struct SeedFlags(AtomicU8);

impl SeedFlags {
    fn is(&self, what: u8) -> bool {
        self.0.load(Ordering::Acquire) & what != 0
    }

    /// True if a worker without a ready entry would find a seed.
    pub(super) fn wait(&self) -> bool {
        self.is(WAIT)
    }

    /// Updates the flags after a change of the core, with the core locked. True if seeds wait and none did before.
    #[inline]
    pub(super) fn follow(&self, core: &RankCore) -> bool {
        let bit = |now, bit| if now { bit } else { 0 };
        let seeds = &core.lifecycle.seeds;
        let now = bit(seeds.waiting() > 0, WAIT)
            | bit(seeds.may_request(), MAY_ASK)
            | bit(seeds.has_to_share(), TO_SHARE);
        let before = self.0.load(Ordering::Relaxed);
        if now != before {
            self.0.store(now, Ordering::Release);
        }
        now & !before & WAIT != 0
    }
}

impl<'r> Worker<'r> {
    /// True if the worker has a ready entry of its own, or a seed to start.
    pub(super) fn has_chunks_to_run(&self) -> bool {
        !self.local_delivery.ready.is_empty() || self.shared.seeds.wait()
    }

    /// Adds the seed of a chunk that a handler spawned. The chunk joins at its parent's next reduction and sync.
    pub(super) fn spawn(&mut self, array: ArrayId, parent: &mut ChunkRecord, mut child: Box<dyn ErasedSlot>) {
        child.record().join(parent);
        let seed = UnstartedChunk { array, body: ChunkBody::Live(child) };
        self.with_core(|core, _, _| core.spawn(seed));
    }

    /// Starts a seed and returns its ready entry, if the worker finds no other entry. Requests seeds if there is none.
    #[inline]
    pub(super) fn find_seed(&mut self) -> Option<(CellId, &'r Cell)> {
        if self.shared.seeds.is(WAIT | MAY_ASK) { self.start_seed() } else { None }
    }

    #[cold]
    fn start_seed(&mut self) -> Option<(CellId, &'r Cell)> {
        self.with_core(|core, _, out| core.start_seed(out));
        self.share_among_workers();
        // The time until here belongs to the runtime.
        self.instruments.start_slice();
        self.local_delivery.find()
    }

    /// Wakes a parked worker if seeds wait: it could start one.
    pub(super) fn share_among_workers(&self) {
        if self.shared.seeds.wait() {
            self.shared.scheduler.wake_another(self.id);
        }
    }

    /// Sends seeds to the ranks that have requested some. Called after all effects of a handler are applied, so that
    /// these ranks get a share of everything that the handler has spawned.
    #[inline]
    pub(super) fn share_seeds(&mut self) {
        if self.shared.seeds.is(TO_SHARE) {
            self.with_core(|core, _, out| core.share_seeds(out));
        }
    }
}
