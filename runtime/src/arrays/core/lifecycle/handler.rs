//! The surroundings of one handler: its outbox of effects, and the record of its chunk.
//!
//! A handler is a function (state, message) -> (state, outbox). Nothing in the outbox has happened until the worker
//! flushes it after the handler returned, so user code never runs while a lock is held, cannot be re-entered, and can be
//! tested with no runtime at all (see [`probe`](crate::testing::probe)).

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::erased::ErasedSlot;
use crate::arrays::core::collectives::exit_value::ExitValue;
use crate::arrays::core::collectives::population::Membership;
use crate::arrays::core::collectives::reduction::{ReductionSpec, Values};
use crate::arrays::core::collectives::section::{SectionContribution, SectionCounts};
use crate::arrays::core::routing::message_list::{MessageNode, Outbox};
use crate::ids::{ArrayId, ChunkId, Rank, Sender, SyncId};
use crate::trace::{StepRecord, StepsSoFar, UserEvent};

/// One effect of a handler, carried out in order at the flush. What it sends to single chunks are [`MessageNode`]s instead.
pub(crate) enum Effect {
    SendAtQuiescence(Box<MessageNode>),
    /// To the chunk itself.
    SendAfter {
        delay: Duration,
        node: Box<MessageNode>,
    },
    Broadcast {
        array: ArrayId,
        message: Arc<[u8]>,
    },
    Multicast {
        array: ArrayId,
        keys: Arc<[u64]>,
        message: Arc<[u8]>,
    },
    /// To the next reduction of its array, or to the one of this number.
    Contribute {
        spec: ReductionSpec,
        values: Values,
        step: Option<u64>,
    },
    /// The chunk contributes to no reduction of its array before this one.
    AbstainUntil(u64),
    /// The chunk contributes to no reduction of its array any more.
    LeaveReductions,
    ContributeIn(Box<SectionContribution>),
    Insert {
        key: u64,
        slot: Box<dyn ErasedSlot>,
    },
    /// Of any array, without a parent.
    InsertRoot {
        chunk: ChunkId,
        slot: Box<dyn ErasedSlot>,
    },
    Spawn(Box<dyn ErasedSlot>),
    AtSync {
        /// Bytes that a migration would move, as the chunk said before the handler.
        bytes: u64,
    },
    Remove,
    /// The chunk has more kept messages that are ready, and handles them once what it has left is sent.
    HandleDeferred,
    Exit(Option<Box<ExitValue>>),
    /// The run is to end with this as its error.
    Fail(Box<str>),
}

/// The runtime's own record of a chunk; it travels with it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ChunkRecord {
    pub(crate) reductions: Membership,
    /// The first reduction that it has a part in.
    pub(crate) first_reduction: u64,
    pub(crate) syncs: Membership,
    /// A word for the many that are of no section.
    pub(crate) sections: Option<Box<SectionCounts>>,
    /// Load declared by the handlers of this phase, ns of ticks; replaces the measured load.
    pub(crate) charged: Option<u64>,
    pub(crate) sync: SyncState,
    /// The rank to which its program moves it at the next sync it comes to.
    pub(crate) wish: Option<Rank>,
    /// It has asked to be removed.
    pub(crate) removed: bool,
    /// Number of the last message it sent to a single chunk: the next number that is not 0 follows.
    pub(crate) last_number: u32,
}

impl ChunkRecord {
    /// Tells whether the chunk handles further messages now.
    #[inline]
    pub(crate) fn is_runnable(&self) -> bool {
        matches!(self.sync, SyncState::Running | SyncState::RunningThroughSync) && !self.removed
    }

    /// A child takes part in the reduction and the sync that its parent comes to next.
    pub(crate) fn join(&mut self, parent: &mut ChunkRecord) {
        self.reductions = parent.reductions.child();
        self.first_reduction = self.reductions.next;
        self.syncs = parent.syncs.child();
    }

    /// The sync that it passes: what it has yet to read counts as kept for that, should it come to the next before it ends.
    pub(crate) fn passing_sync(&self) -> Option<SyncId> {
        (self.sync == SyncState::RunningThroughSync).then(|| self.awaited_sync())
    }

    /// The sync that it has come to last: if it does not go on, it waits for this one to end.
    pub(crate) fn awaited_sync(&self) -> SyncId {
        SyncId(self.syncs.next.saturating_sub(1))
    }
}

/// The state of a chunk with respect to syncs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SyncState {
    /// Between `resume` and the next sync.
    #[default]
    Running,
    /// It called `at_sync`: its messages are kept until it resumes.
    Waiting,
    /// It called `at_sync_nowait`: it goes on, and may migrate between any two handlers, until it resumes.
    RunningThroughSync,
    /// It came to the next sync while passing one: it waits for the first to end, and then passes the second.
    WaitingForEarlier,
}

/// RankInfo that stay the same during a run.
pub(crate) struct RankInfo {
    pub(crate) rank: Rank,
    pub(crate) ranks: u32,
    pub(crate) period: u64,
    /// The factor by which the rank is to be taken for slower than it is.
    pub(crate) slowness: f64,
    pub(crate) services: Vec<Box<dyn Any + Send + Sync>>,
}

/// The way out of a handler that does not want to wait until it returns.
pub(crate) trait HandlerHost {
    /// Sends the messages at the front of the outbox; stops at the first effect that must wait for the handler's end.
    fn flush(&mut self, outbox: &mut Outbox);
    /// Sends what a handler has left, if that is only messages. True if it is.
    fn send_messages(&mut self, outbox: &mut Outbox) -> bool;
    /// Tells whether the chunk has to stop for what it has sent.
    fn is_blocked(&self) -> bool;
    /// The chunk has come to this sync and keeps a message of so many bytes until it has ended.
    fn defer(&mut self, sync: SyncId, bytes: u64);
    /// It handles one that it kept, or keeps some for another reason now; while it passes this sync, if any.
    fn read_deferred(&mut self, passed: Option<SyncId>, bytes: u64);
    /// One of several chunks has taken a message from where it lies for all: if it was the last, there may be room again.
    fn shared_message_read(&mut self);
    /// Time since the run began.
    fn now_ns(&self) -> u64;
    /// The chunk is about to handle a message of this kind: [`Handler::begin`] says when it hears so.
    fn set_kind(&mut self, kind: &'static str);
    /// The program tells something about the handler that is running.
    fn record_event(&mut self, event: UserEvent);
    /// Tells whether the run writes a trace.
    fn is_traced(&self) -> bool;
    /// Writes records of steps into it.
    fn record_steps(&mut self, steps: &[StepRecord]);
    /// Changes what the monitor tells of steps.
    fn update_steps(&mut self, update: &mut dyn FnMut(&mut StepsSoFar));
    /// The chunk declares load; the simulation lets that much time pass.
    fn charge(&mut self, ticks_ns: u64);
}

/// Everything a handler may touch besides its chunk and record.
pub(crate) struct Handler<'a> {
    pub(crate) outbox: &'a mut Outbox,
    pub(crate) info: &'a RankInfo,
    pub(crate) host: &'a mut dyn HandlerHost,
}

impl Handler<'_> {
    /// The name of the chunk.
    #[inline]
    pub(crate) fn chunk(&self) -> ChunkId {
        self.outbox.activity.chunk.get()
    }

    /// The handler of a message of this kind begins. The host hears of it where array or kind are others than it was told last,
    /// or the handler before has not ended.
    #[inline]
    pub(crate) fn begin(&mut self, kind: &'static str, phase: u64, from: &Sender) {
        let activity = &self.outbox.activity;
        let (told, array) = (activity.reported.get(), activity.chunk.get().array);
        let told = told.is_some_and(|(told_array, told)| told_array == array && std::ptr::eq(told, kind));
        if !told || activity.running.get() {
            self.host.set_kind(kind);
        }
        self.outbox.activity.begin(kind, phase, from);
    }
}
