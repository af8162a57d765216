//! The current activity of a worker. Slots say which handler runs; instruments record and publish it, and an error names it.

use std::cell::Cell;

use crate::ids::{ArrayId, ChunkId, RUNTIME, Sender};

/// The current activity of a worker: a handler, a hook of a chunk, or work of the worker itself. The worker's outbox and its
/// instruments share it, so that a message costs a few stores and no call.
pub(crate) struct Activity {
    pub(crate) chunk: Cell<ChunkId>,
    pub(crate) kind: Cell<&'static str>,
    pub(crate) phase: Cell<u64>,
    /// The sender of the message.
    pub(crate) from: Cell<Sender>,
    /// A handler is running and has not been recorded.
    pub(crate) running: Cell<bool>,
    /// The array and the kind of message that the host was last told; none if the host must be told again.
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
    /// The chunk is asked whether it is ready for a message, or for which messages. No handler runs, but an error would name
    /// this kind.
    #[inline]
    pub(crate) fn set(&self, kind: &'static str, phase: u64) {
        self.kind.set(kind);
        self.phase.set(phase);
    }

    /// A handler of the chunk begins.
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
