//! The context of one handler: its outbox of effects, and the record of its chunk.
//!
//! A handler is a function (state, message) -> (state, outbox). Nothing in the outbox has happened until the worker
//! flushes it after the handler returned. So user code never runs while a lock is held, cannot be re-entered, and can be
//! tested without a runtime (see [`probe`](crate::testing::probe)).

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
use crate::error::Error;
use crate::ids::{ArrayId, ChunkId, Rank, Sender, SyncId};
use crate::trace::{StepRecord, StepsSoFar, UserEvent};

/// One effect of a handler. Effects are applied in order at the flush. Messages to single chunks are [`MessageNode`]s
/// instead.
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
    /// Inserts a chunk of any array, without a parent.
    InsertRoot {
        chunk: ChunkId,
        slot: Box<dyn ErasedSlot>,
    },
    Spawn(Box<dyn ErasedSlot>),
    AtSync {
        /// Bytes that a migration would move, as the chunk stated before the handler ran.
        bytes: u64,
    },
    Remove,
    /// The chunk has more deferred messages that are ready. It handles them once the outbox is sent.
    HandleDeferred,
    /// A checkpoint is to be made.
    Checkpoint,
    /// Makes ranks 0 to N - 1 the active ones, for this N.
    Resize(u32),
    Exit(Option<Box<ExitValue>>),
    /// The run is to end, for the reason that the chunk gives.
    Fail(Box<str>),
    /// The run is to end with this error.
    End(Box<Error>),
}

/// The runtime's own record of a chunk; it migrates with the chunk.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ChunkRecord {
    pub(crate) reductions: Membership,
    /// The first reduction in which the chunk takes part.
    pub(crate) first_reduction: u64,
    pub(crate) syncs: Membership,
    /// Boxed, so that the many chunks of no section pay one word only.
    pub(crate) sections: Option<Box<SectionCounts>>,
    /// Load declared by the handlers of this phase, ns of ticks; replaces the measured load.
    pub(crate) charged: Option<u64>,
    pub(crate) sync: SyncState,
    /// The rank to which the program moves the chunk at the next sync that it comes to.
    pub(crate) wish: Option<Rank>,
    /// The chunk has asked to be removed.
    pub(crate) removed: bool,
    /// Number of the last message from this chunk to a single chunk. The next number that is not 0 follows.
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

    /// The sync that the chunk passes. If the chunk comes to the next sync before this one ends, its unread messages
    /// count as deferred for this one.
    pub(crate) fn passing_sync(&self) -> Option<SyncId> {
        (self.sync == SyncState::RunningThroughSync).then(|| self.awaited_sync())
    }

    /// The sync that the chunk has come to last. If the chunk is not running, it waits for the end of this sync.
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
    /// The chunk called `at_sync`: its messages are deferred until it resumes.
    Waiting,
    /// The chunk called `at_sync_nowait`: it runs on, and may migrate between any two handlers, until it resumes.
    RunningThroughSync,
    /// The chunk came to the next sync while passing one: it waits for the first to end, and then passes the second.
    WaitingForEarlier,
}

/// Facts about a rank that stay the same during a run.
pub(crate) struct RankInfo {
    pub(crate) rank: Rank,
    pub(crate) ranks: u32,
    pub(crate) period: u64,
    /// Chunks are balanced in windows: at a sync they resume at once.
    pub(crate) by_windows: bool,
    /// True if the rank takes requests to shrink or expand the run.
    pub(crate) takes_resizes: bool,
    /// Interval of the rank's signals to rank 0, ns; `u64::MAX` without windows.
    pub(crate) signal_ns: u64,
    /// The factor by which the rank is to appear slower than it is.
    pub(crate) slowness: f64,
    pub(crate) services: Vec<Box<dyn Any + Send + Sync>>,
}

/// The worker that runs a handler: the calls that the handler can make before it returns.
pub(crate) trait HandlerHost {
    /// Sends the messages at the front of the outbox; stops at the first effect that must wait for the handler's end.
    fn flush(&mut self, outbox: &mut Outbox);
    /// Sends the outbox of a handler if it has only messages. True if so.
    fn send_messages(&mut self, outbox: &mut Outbox) -> bool;
    /// Tells whether flow control blocks the chunk for the messages that it has sent.
    fn is_blocked(&self) -> bool;
    /// The chunk has come to this sync and defers a message of `bytes` bytes until the sync has ended.
    fn defer(&mut self, sync: SyncId, bytes: u64);
    /// The chunk handles a message of `bytes` bytes that it deferred for a sync, or defers it for another reason now.
    /// `passed` is the sync that the chunk passes meanwhile, if any.
    fn read_deferred(&mut self, passed: Option<SyncId>, bytes: u64);
    /// The chunk has read a message that it shared with other chunks. If it was the last reader, the rank may be below
    /// its low watermark.
    fn shared_message_read(&mut self);
    /// Time since the run began.
    fn now_ns(&self) -> u64;
    /// The chunk is about to handle a message of this kind. [`Handler::begin`] decides when the host is told.
    fn set_kind(&mut self, kind: &'static str);
    /// The program reports an event of the handler that is running.
    fn record_event(&mut self, event: UserEvent);
    /// Tells whether the run writes a trace.
    fn is_traced(&self) -> bool;
    /// Writes records of steps into the trace.
    fn record_steps(&mut self, steps: &[StepRecord]);
    /// Changes what the monitor shows about steps.
    fn update_steps(&mut self, update: &mut dyn FnMut(&mut StepsSoFar));
    /// Takes the number of active ranks that was last requested from outside.
    fn take_resize(&mut self) -> Option<u32>;
    /// `active` ranks have work now: tells the user by `line`.
    fn resized(&mut self, active: u32, line: &str);
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

    /// The handler of a message of this kind begins. The host is told if the array or the kind has changed since it was last
    /// told, or if the previous handler has not ended.
    #[inline]
    pub(crate) fn begin(&mut self, kind: &'static str, phase: u64, from: &Sender) {
        let activity = &self.outbox.activity;
        let (last, array) = (activity.reported.get(), activity.chunk.get().array);
        let known = last.is_some_and(|(last_array, last)| last_array == array && std::ptr::eq(last, kind));
        if !known || activity.running.get() {
            self.host.set_kind(kind);
        }
        self.outbox.activity.begin(kind, phase, from);
    }
}
