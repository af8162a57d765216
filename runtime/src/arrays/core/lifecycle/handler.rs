//! The context of one handler: its outbox of effects, the record of its chunk, and the calls to its worker.
//!
//! A handler is a function (state, message) -> (state, outbox). The worker applies the outbox after the handler has
//! returned. So user code never runs while a lock is held, is never re-entered, and can be tested without a runtime
//! (see [`probe`](crate::testing::probe)).

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

/// One effect of a handler. The flush applies effects in order. Messages to single chunks are [`MessageNode`]s instead.
pub(crate) enum Effect {
    SendAtQuiescence(Box<MessageNode>),
    /// A message to the chunk itself, sent after the delay.
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
    /// A contribution to the next reduction of the chunk's array, or to the reduction of this number.
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
        /// The chunk's `state_bytes` before the handler ran.
        bytes: u64,
    },
    Remove,
    /// The chunk has more deferred messages that are ready, and handles them after the outbox is sent.
    HandleDeferred,
    /// A checkpoint is to be made.
    Checkpoint,
    /// Makes ranks 0 to N - 1 the active ranks; the field is N.
    Resize(u32),
    Exit(Option<Box<ExitValue>>),
    /// Ends the run with an error, for the reason that the chunk gives.
    Fail(Box<str>),
    /// Ends the run with this error.
    End(Box<Error>),
}

/// The runtime's own record of a chunk; it migrates with the chunk.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ChunkRecord {
    pub(crate) reductions: Membership,
    /// The first reduction in which the chunk takes part.
    pub(crate) first_reduction: u64,
    pub(crate) syncs: Membership,
    /// Boxed, so that the many chunks without a section take one word only.
    pub(crate) sections: Option<Box<SectionCounts>>,
    /// Load that the handlers of this phase declared, ns of ticks. Replaces the measured load.
    pub(crate) charged: Option<u64>,
    pub(crate) sync: SyncState,
    /// The rank to which the program moves the chunk at the next sync that it comes to.
    pub(crate) wish: Option<Rank>,
    /// True if the chunk has removed itself.
    pub(crate) removed: bool,
    /// Number of the last message from this chunk to a single chunk. Numbers wrap around and leave out 0.
    pub(crate) last_number: u32,
}

impl ChunkRecord {
    /// True if the chunk handles further messages now.
    #[inline]
    pub(crate) fn is_runnable(&self) -> bool {
        matches!(self.sync, SyncState::Running | SyncState::RunningThroughSync) && !self.removed
    }

    /// Makes the chunk take part in the reduction and the sync that its parent comes to next.
    pub(crate) fn join(&mut self, parent: &mut ChunkRecord) {
        self.reductions = parent.reductions.child();
        self.first_reduction = self.reductions.next;
        self.syncs = parent.syncs.child();
    }

    /// The sync that the chunk passes without waiting. If the chunk comes to the next sync before this one ends, its
    /// unread messages count as deferred for this one.
    pub(crate) fn passing_sync(&self) -> Option<SyncId> {
        (self.sync == SyncState::RunningThroughSync).then(|| self.awaited_sync())
    }

    /// The last sync that the chunk has come to. A chunk that is not running waits for the end of this sync.
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
    /// The chunk came to the next sync before the end of one that it passes. It waits for that end, then passes the
    /// next one.
    WaitingForEarlier,
}

/// Facts about a rank that stay the same during a run.
pub(crate) struct RankInfo {
    pub(crate) rank: Rank,
    pub(crate) ranks: u32,
    pub(crate) period: u64,
    /// True if chunks are balanced in windows, so that they resume at once at a sync.
    pub(crate) by_windows: bool,
    /// True if the rank takes requests to shrink or expand the run.
    pub(crate) takes_resizes: bool,
    /// Interval of the rank's signals to rank 0, ns; `u64::MAX` without windows.
    pub(crate) signal_ns: u64,
    /// The factor by which the rank pretends to be slower than it is.
    pub(crate) slowness: f64,
    pub(crate) services: Vec<Box<dyn Any + Send + Sync>>,
}

/// The worker that runs a handler: the calls that the chunk can cause before the handler returns.
pub(crate) trait HandlerHost {
    /// Sends the messages at the front of the outbox; stops at the first effect that must wait for the handler's end.
    fn flush(&mut self, outbox: &mut Outbox);
    /// Sends the outbox of a handler if it has only messages. True if so.
    fn send_messages(&mut self, outbox: &mut Outbox) -> bool;
    /// True if flow control blocks the chunk because of the messages that it has sent.
    fn is_blocked(&self) -> bool;
    /// The chunk has come to this sync and defers a message of `bytes` bytes until the sync has ended.
    fn defer(&mut self, sync: SyncId, bytes: u64);
    /// The chunk handles a message of `bytes` bytes that it deferred for a sync, or now defers it for another reason.
    /// `passed` is the sync that the chunk passes at that time, if any.
    fn read_deferred(&mut self, passed: Option<SyncId>, bytes: u64);
    /// The chunk has read a message that it shared with others, so the rank may now be below its low watermark.
    fn shared_message_read(&mut self);
    /// Time since the run began.
    fn now_ns(&self) -> u64;
    /// The chunk is about to handle a message of this kind. [`Handler::begin`] decides when to call this.
    fn set_kind(&mut self, kind: &'static str);
    /// The program reports an event of the handler that is running.
    fn record_event(&mut self, event: UserEvent);
    /// True if the run writes a trace.
    fn is_traced(&self) -> bool;
    /// Writes records of steps into the trace.
    fn record_steps(&mut self, steps: &[StepRecord]);
    /// Changes what the monitor shows about steps.
    fn update_steps(&mut self, update: &mut dyn FnMut(&mut StepsSoFar));
    /// Takes the number of active ranks that was last requested from outside.
    fn take_resize(&mut self) -> Option<u32>;
    /// `active` ranks are active now: prints `line`.
    fn resize_ended(&mut self, active: u32, line: &str);
    /// The chunk declares load; the simulation lets that much time pass.
    fn charge(&mut self, ticks_ns: u64);
}

/// Everything that a handler may use besides its chunk and the record.
pub(crate) struct Handler<'a> {
    pub(crate) outbox: &'a mut Outbox,
    pub(crate) info: &'a RankInfo,
    pub(crate) host: &'a mut dyn HandlerHost,
}

impl Handler<'_> {
    #[inline]
    pub(crate) fn chunk(&self) -> ChunkId {
        self.outbox.activity.chunk.get()
    }

    /// A handler for a message of this kind begins. Calls the host if the array or the kind has changed since its last
    /// call, or if the previous handler has not ended.
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
