//! The present work of a worker, and what of it was told. Slots say which handler runs; instruments record and publish it, and
//! an error names it.

use std::cell::Cell;

use crate::ids::{ArrayId, ChunkId, RUNTIME, Sender};

/// One thing that a worker does: a handler, a hook of a chunk, or something of its own. Its outbox and its instruments
/// share it, so that a message costs some stores and no call.
pub(crate) struct Activity {
    pub(crate) chunk: Cell<ChunkId>,
    pub(crate) kind: Cell<&'static str>,
    pub(crate) phase: Cell<u64>,
    /// The sender of the message.
    pub(crate) from: Cell<Sender>,
    /// A handler is running that has not been recorded.
    pub(crate) running: Cell<bool>,
    /// The array and the kind of message that the host was told last; none where they are to be told anew.
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
    /// The chunk is asked about a message, or for one: no handler of it yet, but a panic would be told as of this kind.
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

    /// No handler is running that is to be recorded.
    #[inline]
    pub(crate) fn end(&self) {
        self.running.set(false);
    }
}
