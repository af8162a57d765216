//! Events of a trace: one [`Event`] for each thing that happened.

use serde::{Deserialize, Serialize};

pub use lb_strategies::{ArrayId, ChunkId};

/// In place of a chunk: the runtime itself, as sender of starts, resumes and results of reductions.
pub const RUNTIME: ChunkId = crate::ids::RUNTIME;

/// The number of a name in a trace's table of names: a message kind, or a name given to a mark, span or counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NameId(pub u32);

/// Something that happened on one worker. Times are ns since the run began, by the clock of rank 0.
///
/// Events of one worker come in the order of `end_ns`. Events that take time do not overlap, with two exceptions. Marks,
/// spans and counters lie inside the handler that follows them. The sends of a handler lie inside the handler before
/// them. Points have `begin_ns == end_ns`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// The time at which it began.
    pub begin_ns: u64,
    /// The time at which it ended.
    pub end_ns: u64,
    /// Its kind and its details.
    pub what: What,
}

/// The kind of an [`Event`], with its details.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    /// A handler ran, and its messages left. It begins where the last slice of the worker ended: its cost includes
    /// finding the message and handing it over.
    Handler {
        /// The chunk that ran.
        chunk: ChunkId,
        /// The kind of message; its name may also be `start`, `resume` or `reduced`.
        kind: NameId,
        /// The sender of the message.
        from: ChunkId,
        /// Counts the messages of `from` to single chunks from 1 (after 2^32 - 1 comes 1); 0 for anything else. With `from`
        /// it names the message.
        number: u32,
        /// Wall time in it that was not CPU time: it waited for the vCPU, was stolen from, slept or did I/O. Found a batch of
        /// handlers (0.2 ms) at a time, and charged to the longest of the batch.
        lost_ns: u64,
    },
    /// The chunk whose handler just ended had sent a message. No worker could see it before `begin_ns`. If only the
    /// sending worker can handle it, `begin_ns` is the end of the handler. Otherwise `begin_ns` was read before the
    /// flush. So by one clock no handler ends before its message begins. Its slice may begin before, since it includes
    /// the search for messages.
    Send {
        /// The sender.
        chunk: ChunkId,
        /// The receiver.
        to: ChunkId,
        /// The rank that the receiver was on.
        rank: u32,
        /// See [`What::Handler`].
        number: u32,
        /// Its length when encoded, whether it was or not.
        bytes: u64,
    },
    /// The worker had nothing to do.
    Idle,
    /// The runtime itself was at work.
    Runtime {
        /// At what.
        part: Part,
        /// The sync; 0 where there is none.
        sync: u64,
    },
    /// A chunk left this rank for another: from when it was taken out of its cell until it was handed to the transport.
    Depart {
        /// The chunk.
        chunk: ChunkId,
        /// The rank that it goes to.
        rank: u32,
        /// The size of its state.
        bytes: u64,
    },
    /// A chunk came to this rank: it was made here, inserted, or has migrated. A point; by one clock not before it departed.
    Arrive {
        /// The chunk.
        chunk: ChunkId,
        /// The size of its state, if it came from another rank.
        bytes: u64,
    },
    /// A chunk contributed to a reduction. A point.
    Contribute {
        /// The chunk.
        chunk: ChunkId,
        /// The number of the reduction within its array or section.
        number: u64,
    },
    /// A chunk came to a sync with this load. A point, at the time at which the rank was measured.
    Load {
        /// The chunk.
        chunk: ChunkId,
        /// The sync.
        sync: u64,
        /// CPU time since the last sync, or ticks if it declares its load, ns.
        load_ns: u64,
        /// The size of its state.
        bytes: u64,
    },
    /// The program marked this moment.
    Mark {
        /// The chunk that did.
        chunk: ChunkId,
        /// The name it gave.
        name: NameId,
    },
    /// The program named this stretch of a handler.
    Span {
        /// The chunk that did.
        chunk: ChunkId,
        /// The name it gave.
        name: NameId,
    },
    /// The program counted something. A point.
    Counter {
        /// The chunk that did.
        chunk: ChunkId,
        /// The name of the counter.
        name: NameId,
        /// Its value.
        value: f64,
    },
    /// A range of iterations of a pool was executed.
    Range {
        /// The first of them.
        first: u64,
        /// Number of iterations.
        count: u64,
        /// Wall time in it that was not CPU time.
        lost_ns: u64,
    },
    /// The policy of a pool sent a message. A point.
    PoolSend {
        /// To this rank.
        rank: u32,
    },
    /// The trace was full: later events of this rank are not in it. A point, at the end.
    Dropped {
        /// Number of events.
        events: u64,
    },
}

/// Work of the runtime besides running handlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Making chunks and measuring the vCPU's speed, before the first handler.
    Start,
    /// Measuring a rank and its chunks at a sync.
    Measure,
    /// The strategy, on rank 0; or the policy of a pool, on any.
    Decide,
    /// Moving chunks.
    Migrate,
    /// Receiving packets of other ranks, and deferring messages that chunks were not ready for.
    Keep,
    /// Writing the trace.
    Flush,
}

impl Part {
    /// All parts.
    pub const ALL: [Part; 6] =
        [Part::Start, Part::Measure, Part::Decide, Part::Migrate, Part::Keep, Part::Flush];

    /// Its name in tables and exports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Part::Start => "start",
            Part::Measure => "measure",
            Part::Decide => "decide",
            Part::Migrate => "migrate",
            Part::Keep => "keep",
            Part::Flush => "trace_flush",
        }
    }
}

impl Event {
    /// Something at one moment.
    #[must_use]
    pub fn point(at_ns: u64, what: What) -> Event {
        Event { begin_ns: at_ns, end_ns: at_ns, what }
    }

    /// Its duration, ns.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.end_ns - self.begin_ns
    }

    /// CPU time of a handler or range, ns; of anything else its duration.
    #[must_use]
    pub fn cpu_ns(&self) -> u64 {
        match self.what {
            What::Handler { lost_ns, .. } | What::Range { lost_ns, .. } => {
                self.duration_ns().saturating_sub(lost_ns)
            }
            _ => self.duration_ns(),
        }
    }
}

/// Events that a program may tell about itself, for the trace.
#[derive(Clone, Copy, Debug)]
pub(crate) enum UserEvent {
    Mark { name: &'static str },
    Span { name: &'static str, begin_ns: u64 },
    Counter { name: &'static str, value: f64 },
}
