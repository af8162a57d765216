//! The control plane of a rank as its workers reach it: one at a time.
//!
//! Only worker 0 calls the transport. What other workers have to send they leave here, in order, while they have the control_plane
//! locked; worker 0 looks at a flag to see that something waits, and sends it before anything of its own.

use std::collections::VecDeque;
use std::ops::DerefMut;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::arrays::core::packet::Packet;
use crate::arrays::core::rank::RankCore;
use crate::ids::Rank;
use crate::threads::elided_mutex::{ElidedMutex, Tag};

/// The core of a rank, and what waits beside it for worker 0.
pub(crate) struct ControlPlane {
    core: ElidedMutex<Core>,
    /// Set while `Core::outbound` may hold something for worker 0.
    outbound_waits: AtomicBool,
}

/// The state that is locked together.
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

    /// The same for as long as `act` takes.
    #[inline(always)]
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut Core) -> R) -> R {
        self.core.with(act)
    }

    /// Leaves a packet for worker 0, which is to be woken.
    #[inline]
    pub(crate) fn leave(&self, core: &mut Core, to: Rank, packet: Packet) {
        core.outbound.push((to, packet));
        self.outbound_waits.store(true, Ordering::Release);
    }

    /// Tells whether worker 0 should look: something may have been left.
    #[inline]
    pub(crate) fn outbound_waits(&self) -> bool {
        self.outbound_waits.load(Ordering::Acquire)
    }

    /// Worker 0 takes what was left, and adds it to what it is about to send.
    #[inline]
    pub(crate) fn take_outbound(&self, core: &mut Core, leaving: &mut VecDeque<(Rank, Packet)>) {
        if core.has_outbound() {
            self.outbound_waits.store(false, Ordering::Relaxed);
            leaving.extend(core.outbound.drain(..));
        }
    }
}

impl Core {
    /// Tells whether something waits for worker 0.
    #[inline]
    pub(crate) fn has_outbound(&self) -> bool {
        !self.outbound.is_empty()
    }
}
