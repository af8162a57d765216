//! The scheduler of a rank: the run queues and the sleep states that its workers share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::cells::{Cell, Cells};
use super::ready::{ReadyQueue, SharedQueues};
use crate::ids::{CellId, WorkerId};
use crate::threads::team::Team;

/// The run queues of a rank and the sleep states of its workers.
pub(crate) struct Scheduler {
    queues: SharedQueues,
    team: Arc<Team>,
    /// Number of turns that an idle worker spins before it parks.
    spins: u32,
    /// True if the queue of packets to a slow rank is so long that no chunk of this rank should run.
    congested: AtomicBool,
}

impl Scheduler {
    pub(crate) fn new(queues: SharedQueues, team: Arc<Team>, spins: u32) -> Scheduler {
        Scheduler { queues, team, spins, congested: AtomicBool::new(false) }
    }

    #[inline]
    pub(crate) fn lone(&self) -> bool {
        self.queues.inboxes.is_empty()
    }

    /// The next entry for worker `me`, with its own queue `ready`.
    #[inline]
    pub(crate) fn find<'r>(
        &self,
        me: WorkerId,
        ready: &mut ReadyQueue<'r>,
        cells: &'r Cells,
    ) -> Option<(CellId, &'r Cell)> {
        ready.find(me, &self.queues, cells)
    }

    /// Enqueues the entry of the chunk in this cell at its home worker, and wakes a worker to run the chunk. `ready` is
    /// the own queue of worker `me`, the caller.
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

    /// Lets other workers steal the newest entry of worker `me`, with queue `ready`. Called before work that may take
    /// long.
    #[inline]
    pub(crate) fn share_newest(&self, me: WorkerId, ready: &mut ReadyQueue<'_>) {
        if ready.share_newest() {
            self.team.wake_one(me.0);
        }
    }

    /// Removes the entries that `consumes` accepts. An entry may stay if it is the newest of another worker, or if a
    /// worker takes it at the same time. `ready` is the own queue of the caller.
    pub(crate) fn withdraw(&self, ready: &mut ReadyQueue<'_>, mut consumes: impl FnMut(CellId) -> bool) {
        ready.withdraw(&mut consumes);
        if self.queues.withdraw(consumes) > 0 {
            self.team.wake_all();
        }
    }

    /// True if there is an entry that a worker could take from others.
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

    /// Sets whether the transport of worker 0 is congested. Wakes all workers when congestion ends: chunks may run.
    #[inline]
    pub(crate) fn set_congested(&self, now: bool) {
        if now != self.is_congested() {
            self.congested.store(now, Ordering::Relaxed);
            if !now {
                self.team.wake_all();
            }
        }
    }

    /// Binds the sleep state of a worker to the calling thread.
    pub(crate) fn occupy(&self, worker: WorkerId) {
        self.team.sleepers[worker.index()].bind_to_thread();
    }

    /// Parks worker `me`, the calling thread, until it is woken or `timeout` has passed. Does not park if `work` finds
    /// any.
    pub(crate) fn park(&self, me: WorkerId, timeout: Option<Duration>, work: impl FnOnce() -> bool) {
        self.team.park(me.0, timeout, work);
    }

    pub(crate) fn others_are_parked(&self) -> bool {
        self.team.others_are_parked()
    }

    /// Wakes a worker other than `me`, for work that any worker could do.
    pub(crate) fn wake_another(&self, me: WorkerId) {
        if !self.lone() {
            self.team.wake_one(me.0);
        }
    }

    /// Wakes worker 0, which has packets to send.
    pub(crate) fn wake_driver(&self) {
        self.team.sleepers[0].wake();
    }

    /// A function that wakes worker `of` from a thread that may outlive the run.
    pub(crate) fn waker(&self, of: WorkerId) -> impl Fn() + Send + Sync + 'static {
        let team = self.team.clone();
        move || {
            team.sleepers[of.index()].wake();
        }
    }

    #[inline]
    pub(crate) fn stopped(&self) -> bool {
        self.team.stopped()
    }

    /// Stops the rank: every worker leaves at its next check.
    pub(crate) fn stop(&self) {
        self.team.stop();
    }
}
