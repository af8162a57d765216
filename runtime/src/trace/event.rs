//! The events of a trace, such as handlers, sends and idle times of a worker.

use serde::{Deserialize, Serialize};

pub use lb_strategies::{ArrayId, ChunkId};

/// In place of a chunk: the runtime, which sends starts, resumes and results of reductions.
pub const RUNTIME: ChunkId = crate::ids::RUNTIME;

/// The number of a name in a trace's table of names: a message kind, or a name given to a mark, span or counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NameId(pub u32);

/// An event of one worker. Times are ns since the run began, by the clock of rank 0.
///
/// Events of one worker are in the order of `end_ns`. Events that take time do not overlap, with two exceptions. Marks,
/// spans and counters are within the handler that follows them. The sends of a handler are within the handler before
/// them. Points have `begin_ns == end_ns`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// Begin of the event.
    pub begin_ns: u64,
    /// End of the event.
    pub end_ns: u64,
    /// Kind and details.
    pub what: What,
}

/// The kind of an [`Event`], with its details.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    /// A handler ran, and its messages left. The event begins where the last slice of the worker ended. So it includes
    /// finding and passing the message.
    Handler {
        /// The chunk that ran.
        chunk: ChunkId,
        /// The kind of message; its name may also be `start`, `resume` or `reduced`.
        kind: NameId,
        /// The sender of the message.
        from: ChunkId,
        /// Counts the messages of `from` to single chunks from 1, and again from 1 after 2^32 - 1; 0 for all else. With
        /// `from` it names the message.
        number: u32,
        /// Wall time of the handler that was not CPU time: the handler waited for the vCPU, slept or did I/O, or the
        /// hypervisor stole the time. Determined per batch of handlers (0.2 ms), and charged to the longest handler of
        /// the batch.
        lost_ns: u64,
    },
    /// The chunk whose handler just ended had sent a message. No worker could take the message before `begin_ns`. If
    /// only the sending worker can take it, `begin_ns` is the end of the handler. Otherwise `begin_ns` was read before
    /// the flush. So by one clock no handler ends before its message begins. (It may begin before, since it includes
    /// finding the message.)
    Send {
        /// The sender.
        chunk: ChunkId,
        /// The receiver.
        to: ChunkId,
        /// The rank of the receiver.
        rank: u32,
        /// The number of the message, see [`What::Handler`].
        number: u32,
        /// Length of the encoded message, whether it was encoded or not.
        bytes: u64,
    },
    /// The worker had nothing to do.
    Idle,
    /// The runtime was at work.
    Runtime {
        /// The kind of work.
        part: Part,
        /// The sync; 0 if the work is not of a sync.
        sync: u64,
    },
    /// A chunk left this rank: from its removal from its cell until the transport had it.
    Depart {
        /// The chunk.
        chunk: ChunkId,
        /// The rank to which it moves.
        rank: u32,
        /// The size of its state, bytes.
        bytes: u64,
    },
    /// A chunk came to this rank: created, inserted or migrated. A point; by one clock not before the departure.
    Arrive {
        /// The chunk.
        chunk: ChunkId,
        /// The size of its state, bytes, if it came from another rank.
        bytes: u64,
    },
    /// A chunk contributed to a reduction. A point.
    Contribute {
        /// The chunk.
        chunk: ChunkId,
        /// The number of the reduction within its array or section.
        number: u64,
    },
    /// A chunk came to a sync with this load. A point, at the time of the measurement of the rank.
    Load {
        /// The chunk.
        chunk: ChunkId,
        /// The sync.
        sync: u64,
        /// CPU time since the last sync, or ticks if it declares its load, ns.
        load_ns: u64,
        /// The size of its state, bytes.
        bytes: u64,
    },
    /// The program marked this moment.
    Mark {
        /// The chunk that marked it.
        chunk: ChunkId,
        /// The name of the mark.
        name: NameId,
    },
    /// The program named a part of a handler.
    Span {
        /// The chunk of the handler.
        chunk: ChunkId,
        /// The name of the span.
        name: NameId,
    },
    /// The program counted something. A point.
    Counter {
        /// The chunk that counted.
        chunk: ChunkId,
        /// The name of the counter.
        name: NameId,
        /// The value of the counter.
        value: f64,
    },
    /// A range of iterations of a pool was executed.
    Range {
        /// The first iteration.
        first: u64,
        /// Number of iterations.
        count: u64,
        /// Wall time of the range that was not CPU time.
        lost_ns: u64,
    },
    /// The policy of a pool sent a message. A point.
    PoolSend {
        /// The receiving rank.
        rank: u32,
    },
    /// The trace was full, and later events of this rank are missing. A point, at the end.
    Dropped {
        /// Number of missing events.
        events: u64,
    },
}

impl What {
    /// The name in an event that has one: of the kind of message, mark, span or counter. Names have numbers of their
    /// own in each process, so a reader of several processes replaces them.
    pub fn name_mut(&mut self) -> Option<&mut NameId> {
        match self {
            What::Handler { kind: name, .. }
            | What::Mark { name, .. }
            | What::Span { name, .. }
            | What::Counter { name, .. } => Some(name),
            What::Send { .. }
            | What::Idle
            | What::Runtime { .. }
            | What::Depart { .. }
            | What::Arrive { .. }
            | What::Contribute { .. }
            | What::Load { .. }
            | What::Range { .. }
            | What::PoolSend { .. }
            | What::Dropped { .. } => None,
        }
    }
}

/// Work of the runtime besides running handlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Making chunks and measuring the vCPU's speed, before the first handler.
    Start,
    /// Measuring a rank and its chunks at a sync.
    Measure,
    /// The strategy on rank 0, or the policy of a pool on any rank.
    Decide,
    /// Moving chunks.
    Migrate,
    /// Receiving packets of other ranks, and deferring messages for which chunks were not ready.
    Keep,
    /// Writing the trace.
    Flush,
}

impl Part {
    /// All parts.
    pub const ALL: [Part; 6] =
        [Part::Start, Part::Measure, Part::Decide, Part::Migrate, Part::Keep, Part::Flush];

    /// The name in tables and exports.
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
    /// An event at one moment.
    #[must_use]
    pub fn point(at_ns: u64, what: What) -> Event {
        Event { begin_ns: at_ns, end_ns: at_ns, what }
    }

    /// Duration, ns.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.end_ns - self.begin_ns
    }

    /// CPU time of a handler or range, ns; for other events the duration.
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

/// Events that a program records itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum UserEvent {
    Mark { name: &'static str },
    Span { name: &'static str, begin_ns: u64 },
    Counter { name: &'static str, value: f64 },
}
