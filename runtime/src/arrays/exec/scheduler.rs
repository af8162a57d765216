//! The queues and sleepers that the workers of a rank share: to find work, and to sleep where there is none.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::cells::{Cell, Cells};
use super::ready::{ReadyQueue, SharedQueues};
use crate::ids::{CellId, WorkerId};
use crate::threads::team::Team;

/// The queues of a rank and the sleeping places of its workers.
pub(crate) struct Scheduler {
    queues: SharedQueues,
    team: Arc<Team>,
    /// Turns an idle worker spins before it parks.
    spins: u32,
    /// So much waits for a slow rank that no chunk of this one should run.
    congested: AtomicBool,
}

impl Scheduler {
    pub(crate) fn new(queues: SharedQueues, team: Arc<Team>, spins: u32) -> Scheduler {
        Scheduler { queues, team, spins, congested: AtomicBool::new(false) }
    }

    /// Tells whether the rank is one thread.
    #[inline]
    pub(crate) fn lone(&self) -> bool {
        self.queues.inboxes.is_empty()
    }

    /// The next entry for worker `me`, whose own queue is `ready`.
    #[inline]
    pub(crate) fn find<'r>(
        &self,
        me: WorkerId,
        ready: &mut ReadyQueue<'r>,
        cells: &'r Cells,
    ) -> Option<(CellId, &'r Cell)> {
        ready.find(me, &self.queues, cells)
    }

    /// Puts the entry of the chunk in this cell on the queue of the worker where it is at home; `ready` is that of worker
    /// `me`, the caller.
    #[inline]
    pub(crate) fn put<'r>(&self, entry: CellId, cell: &'r Cell, me: WorkerId, ready: &mut ReadyQueue<'r>) {
        let home = cell.home();
        if home == me {
            let busy = !ready.is_empty();
            ready.push(entry, cell);
            if busy {
                self.team.wake_one(me.0);
            }
        } else {
            self.queues.inboxes[home.index()].push(entry);
            if !self.team.sleepers[home.index()].wake() {
                self.team.wake_one(me.0);
            }
        }
    }

    /// Worker `me`, whose own queue is `ready`, is about to do what may take long: others may have its newest entry.
    #[inline]
    pub(crate) fn share_newest(&self, me: WorkerId, ready: &mut ReadyQueue<'_>) {
        if ready.share_newest() {
            self.team.wake_one(me.0);
        }
    }

    /// Tells whether there is a entry that a worker could take from others.
    pub(crate) fn has_entries(&self) -> bool {
        self.queues.any()
    }

    pub(crate) fn spins(&self) -> u32 {
        self.spins
    }

    #[inline]
    pub(crate) fn is_congested(&self) -> bool {
        self.congested.load(Ordering::Relaxed)
    }

    /// Worker 0 has asked the transport. Chunks may run again where it says so for the first time.
    #[inline]
    pub(crate) fn set_congested(&self, now: bool) {
        if now != self.is_congested() {
            self.congested.store(now, Ordering::Relaxed);
            if !now {
                self.team.wake_all();
            }
        }
    }

    /// A worker's thread takes its sleeping place.
    pub(crate) fn occupy(&self, worker: WorkerId) {
        self.team.sleepers[worker.index()].bind_to_thread();
    }

    /// Parks worker `me`, the calling thread, until woken or until `timeout` has passed; not at all if `work` finds some.
    pub(crate) fn park(&self, me: WorkerId, timeout: Option<Duration>, work: impl FnOnce() -> bool) {
        self.team.park(me.0, timeout, work);
    }

    pub(crate) fn others_are_parked(&self) -> bool {
        self.team.others_are_parked()
    }

    /// Worker `me` has left work that any other could do.
    pub(crate) fn wake_another(&self, me: WorkerId) {
        if !self.lone() {
            self.team.wake_one(me.0);
        }
    }

    /// Wakes worker 0, which has something to send.
    pub(crate) fn wake_driver(&self) {
        self.team.sleepers[0].wake();
    }

    /// What wakes worker `of` from a thread that may outlive the run.
    pub(crate) fn waker(&self, of: WorkerId) -> impl FnOnce() + Send + 'static {
        let team = self.team.clone();
        move || {
            team.sleepers[of.index()].wake();
        }
    }

    #[inline]
    pub(crate) fn stopped(&self) -> bool {
        self.team.stopped()
    }

    /// Every worker leaves at its next look.
    pub(crate) fn stop(&self) {
        self.team.stop();
    }
}
