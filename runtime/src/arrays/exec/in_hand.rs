//! The present work of a worker, for the error that names it and for the record.

use crate::ids::{ChunkId, RUNTIME, Sender};
use crate::trace::NameId;
use crate::trace::recorder::Recorder;

/// One thing that a worker does: a handler, a hook of a chunk, or something of its own.
#[derive(Clone, Copy)]
pub(crate) struct InHand {
    pub(crate) chunk: ChunkId,
    pub(crate) kind: &'static str,
    /// Its number, where a record is kept.
    pub(super) name: NameId,
    pub(crate) phase: u64,
    /// The sender of the message.
    pub(super) from: Sender,
    /// A handler is running that has not been recorded.
    pub(super) running: bool,
}

impl InHand {
    /// No chunk, but this.
    pub(crate) fn nothing(but: &'static str) -> InHand {
        InHand::hook(RUNTIME, but, 0)
    }

    /// A hook of a chunk, which is no handler.
    pub(crate) fn hook(chunk: ChunkId, kind: &'static str, phase: u64) -> InHand {
        InHand { chunk, kind, name: NameId(0), phase, from: Sender::RUNTIME, running: false }
    }

    /// A handler of the chunk begins.
    #[inline]
    pub(super) fn turns_to(&mut self, kind: &'static str, phase: u64, from: &Sender) {
        self.kind = kind;
        self.phase = phase;
        self.from = *from;
        self.running = true;
    }

    /// Records what it has been until now.
    #[inline]
    pub(super) fn record(&mut self, recorder: &mut Recorder, now_ns: u64) {
        if std::mem::take(&mut self.running) {
            recorder.handled(self.chunk, self.name, self.from, now_ns);
        } else {
            recorder.kept(now_ns);
        }
    }
}
