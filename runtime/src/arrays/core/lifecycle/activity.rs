//! Stores the current activity of a worker: [`Slot`](crate::arrays::api::slot::Slot) sets the handler that runs, and
//! instruments and errors read it.

use std::cell::Cell;

use crate::ids::{ArrayId, ChunkId, RUNTIME, Sender};

/// The current activity of a worker: a handler, a hook of a chunk, or work of the worker itself. The worker's outbox
/// and instruments share one `Activity`, so that recording a message costs a few stores and no call.
pub(crate) struct Activity {
    pub(crate) chunk: Cell<ChunkId>,
    pub(crate) kind: Cell<&'static str>,
    pub(crate) phase: Cell<u64>,
    /// The sender of the message.
    pub(crate) from: Cell<Sender>,
    /// True if a handler is running that has not been recorded.
    pub(crate) running: Cell<bool>,
    /// The array and the kind of message of the last `set_kind`; None after other work.
    pub(crate) reported: Cell<Option<(ArrayId, &'static str)>>,
}

impl Default for Activity {
    fn default() -> Activity {
        Activity {
            chunk: Cell::new(RUNTIME),
            kind: Cell::new("nothing"),
            phase: Cell::new(0),
            from: Cell::new(Sender::RUNTIME),
            running: Cell::new(false),
            reported: Cell::new(None),
        }
    }
}

impl Activity {
    /// The worker calls `Chunk::ready` or `Chunk::reduced` for a message of this kind. No handler runs, but an error
    /// would name the kind.
    #[inline]
    pub(crate) fn set(&self, kind: &'static str, phase: u64) {
        self.kind.set(kind);
        self.phase.set(phase);
    }

    #[inline]
    pub(crate) fn begin(&self, kind: &'static str, phase: u64, from: &Sender) {
        self.set(kind, phase);
        self.from.set(*from);
        self.running.set(true);
    }

    /// The handler is over, or need not be recorded.
    #[inline]
    pub(crate) fn end(&self) {
        self.running.set(false);
    }
}
