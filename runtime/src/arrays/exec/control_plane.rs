//! The control plane of a rank in the executor: the core behind its lock, and the outbound packets for worker 0.
//!
//! Only worker 0 calls the transport. The other workers queue their outbound packets here, in order, while they hold
//! the lock. Worker 0 polls a flag that is set while packets are queued, and sends these packets before its own.

use std::collections::VecDeque;
use std::ops::DerefMut;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::arrays::core::packet::Packet;
use crate::arrays::core::rank::RankCore;
use crate::ids::Rank;
use crate::threads::elided_mutex::{ElidedMutex, Tag};

/// The core of a rank and the outbound queue of its workers.
pub(crate) struct ControlPlane {
    core: ElidedMutex<Core>,
    /// Set while `Core::outbound` may hold packets.
    outbound_waits: AtomicBool,
}

/// The state under the lock.
pub(crate) struct Core {
    pub(crate) rank: RankCore,
    outbound: Vec<(Rank, Packet)>,
}

impl ControlPlane {
    pub(crate) fn new(tag: Tag, rank: RankCore) -> ControlPlane {
        let core = Core { rank, outbound: Vec::new() };
        ControlPlane { core: ElidedMutex::new(tag, core), outbound_waits: AtomicBool::new(false) }
    }

    #[inline]
    pub(crate) fn lock(&self) -> impl DerefMut<Target = Core> + '_ {
        self.core.lock()
    }

    /// Holds the lock while `act` runs.
    #[inline(always)]
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut Core) -> R) -> R {
        self.core.with(act)
    }

    /// Queues a packet for worker 0. The caller wakes worker 0.
    #[inline]
    pub(crate) fn leave(&self, core: &mut Core, to: Rank, packet: Packet) {
        core.outbound.push((to, packet));
        self.outbound_waits.store(true, Ordering::Release);
    }

    /// True if packets may be queued for worker 0. Needs no lock.
    #[inline]
    pub(crate) fn outbound_waits(&self) -> bool {
        self.outbound_waits.load(Ordering::Acquire)
    }

    /// Appends the queued packets to `leaving`, the packets that worker 0 is about to send.
    #[inline]
    pub(crate) fn take_outbound(&self, core: &mut Core, leaving: &mut VecDeque<(Rank, Packet)>) {
        if core.has_outbound() {
            self.outbound_waits.store(false, Ordering::Relaxed);
            leaving.extend(core.outbound.drain(..));
        }
    }
}

impl Core {
    /// True if packets are queued for worker 0.
    #[inline]
    pub(crate) fn has_outbound(&self) -> bool {
        !self.outbound.is_empty()
    }
}
