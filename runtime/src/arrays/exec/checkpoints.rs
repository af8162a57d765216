//! Checkpoints as a worker makes them: copies the chunks of a stopped rank, writes the copy, completes the checkpoint.
//!
//! A rank is copied in memory while all ranks stop, and written by a thread of its own while they go on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use super::worker::Worker;
use crate::arrays::core::checkpoint::{CoreImage, RankImage, RankWritten};
use crate::arrays::core::collectives::broadcast::duplicate;
use crate::arrays::core::lifecycle::erased::ErasedArray;
use crate::arrays::core::lifecycle::signature::ArraySignature;
use crate::arrays::core::lifecycle::transfer::{ChunkBody, ChunkTransfer, Transit};
use crate::arrays::core::routing::envelope::{Delivery, Envelope};
use crate::arrays::core::routing::message_list::MessageNode;
use crate::checkpoint::{Manifest, Written};
use crate::ids::{CellId, ChunkId, Rank};
use crate::panics::panic_message;
use crate::warn::warn;
use crate::wire::{self, WireError};

/// A copy that a thread writes.
pub(super) struct PendingWrite {
    /// How that ended.
    written: Arc<OnceLock<Result<Written, String>>>,
    thread: JoinHandle<()>,
}

impl Worker<'_> {
    /// Copies this stopped rank, and starts to write the copy.
    pub(super) fn save(
        &mut self,
        number: u64,
        chunks: &[(ChunkId, CellId)],
        next_broadcasts: &[u64],
        mut rest: CoreImage,
    ) {
        self.instruments.interrupt();
        let bytes = self.copy(chunks, next_broadcasts, &mut rest);
        self.with_core(|core, now_ns, out| core.saved(rest, now_ns, out));
        let (rank, store) = (self.shared.info.rank, self.shared.checkpoints.clone());
        let write = move || match (bytes, store) {
            (Ok(bytes), Some(store)) => store.write_rank(number, rank, &bytes),
            (Err(why), _) => Err(why.to_string()),
            (_, None) => unreachable!("only rank 0 of a run with a directory begins a checkpoint"),
        };
        if self.shared.clock.is_virtual() {
            let written = write();
            return self.with_core(|core, now_ns, out| core.rank_written(written, now_ns, out));
        }
        let (wake, written) = (self.shared.scheduler.waker(self.id), Arc::new(OnceLock::new()));
        let body = {
            let written = written.clone();
            move || {
                let outcome = catch_unwind(AssertUnwindSafe(write));
                let outcome = outcome.unwrap_or_else(|panic| Err(panic_message(&*panic)));
                let _ = written.set(outcome);
                wake();
            }
        };
        match thread::Builder::new().name("caribou saves".into()).spawn(body) {
            Ok(thread) => {
                self.pending_write = Some(PendingWrite { written, thread });
                self.update_poll_schedule();
            }
            Err(why) => {
                let written = Err(format!("no thread to write with: {why}"));
                self.with_core(|core, now_ns, out| core.rank_written(written, now_ns, out));
            }
        }
    }

    /// The encoded image of this rank. Nothing is changed but the form of messages.
    fn copy(
        &mut self,
        chunks: &[(ChunkId, CellId)],
        next_broadcasts: &[u64],
        rest: &mut CoreImage,
    ) -> Result<Vec<u8>, WireError> {
        let arrays = &self.shared.arrays;
        let mut image = RankImage::default();
        for &(chunk, cell) in chunks {
            image.chunks.push(self.copy_chunk(chunk, cell, next_broadcasts[chunk.array.index()])?);
        }
        for (chunk, messages) in &mut rest.pending {
            let array = &*arrays[chunk.array.index()];
            let copies = messages.iter_mut().map(|delivery| copy_message(delivery, array));
            image.rest.pending.push((*chunk, copies.collect::<Result<_, _>>()?));
        }
        for (by, transfer) in &mut rest.insertions {
            let array = &*arrays[transfer.chunk.array.index()];
            let ChunkBody::Live(slot) = &transfer.body else { unreachable!("it was decoded when it came") };
            let mut bytes = Vec::new();
            slot.encode_into(&mut bytes)?;
            let messages = transfer.messages.iter_mut().map(|delivery| copy_message(delivery, array));
            let copy = ChunkTransfer {
                body: ChunkBody::Encoded(bytes),
                messages: messages.collect::<Result<_, _>>()?,
                bytes: transfer.bytes,
                origin: transfer.origin,
                next_broadcast: transfer.next_broadcast,
                ..ChunkTransfer::without_body(transfer.chunk)
            };
            image.rest.insertions.push((*by, Box::new(copy)));
        }
        for Envelope { to, delivery, epoch } in &mut rest.at_quiescence {
            let delivery = copy_message(delivery, &*arrays[to.array.index()])?;
            image.rest.at_quiescence.push(Envelope { to: *to, delivery, epoch: *epoch });
        }
        image.rest.root = rest.root.take();
        wire::encode(&image)
    }

    fn copy_chunk(
        &mut self,
        chunk: ChunkId,
        cell: CellId,
        next_broadcast: u64,
    ) -> Result<ChunkTransfer, WireError> {
        let mailbox = &self.shared.cells.get(cell).mailbox;
        let array = &*self.shared.arrays[chunk.array.index()];
        let (slot, mail) = mailbox.take();
        let mut mail: Vec<Delivery> = mail.into_messages().collect();
        let messages: Result<Vec<Delivery>, WireError> =
            mail.iter_mut().map(|delivery| copy_message(delivery, array)).collect();
        let (mut body, bytes) = (Vec::new(), slot.state_bytes());
        let encoded = slot.encode_into(&mut body);
        let mail = mail.into_iter().map(|delivery| MessageNode::new(chunk, delivery)).collect();
        mailbox.put_back(chunk, slot, mail);
        encoded?;
        Ok(ChunkTransfer {
            body: ChunkBody::Encoded(body),
            messages: messages?,
            bytes,
            transit: Some(Transit::after(next_broadcast)),
            ..ChunkTransfer::without_body(chunk)
        })
    }

    /// Tells whether a copy was written that the core has not been told of.
    pub(super) fn has_written(&self) -> bool {
        self.pending_write.as_ref().is_some_and(|pending| pending.written.get().is_some())
    }

    /// The run has ended: waits for a copy that is being written, so that it is not taken for one of the next run.
    pub(super) fn finish_writing(&mut self) {
        if let Some(PendingWrite { thread, .. }) = self.pending_write.take() {
            // It catches its panics.
            let _ = thread.join();
        }
    }

    /// Tells the core of a copy that was written meanwhile. True if one was.
    pub(super) fn take_written(&mut self) -> bool {
        let Some(written) = self.pending_write.as_ref().and_then(|pending| pending.written.get().cloned())
        else {
            return false;
        };
        self.pending_write = None;
        self.update_poll_schedule();
        self.with_core(|core, now_ns, out| core.rank_written(written, now_ns, out));
        true
    }

    /// Rank 0: all ranks have written their copies, or have failed to.
    pub(super) fn commit(&mut self, number: u64, arrays: Vec<ArraySignature>, written: Vec<RankWritten>) {
        let store = self.shared.checkpoints.as_ref().expect("a run with a directory makes checkpoints");
        let elapsed_ns = self.shared.clock.now_ns();
        let committed = files(written).and_then(|files| {
            let manifest = Manifest { arrays, files, elapsed_ns };
            store.commit(number, &manifest)
        });
        match committed {
            Ok(()) => tracing::info!(number, "checkpoint"),
            Err(why) => {
                store.abandon(number);
                warn(&format!("checkpoint {number} was not made, and the run goes on: {why}"));
            }
        }
        self.with_core(|core, now_ns, _| core.committed(now_ns));
    }
}

/// The files of all ranks in order, or the first reason why one was not written.
fn files(mut written: Vec<RankWritten>) -> Result<Vec<Written>, String> {
    written.sort_by_key(|&(rank, _)| rank);
    let file = |(rank, written): (Rank, Result<Written, String>)| {
        written.map_err(|why| format!("rank {rank}: {why}"))
    };
    written.into_iter().map(file).collect()
}

/// A copy of a message that can be written; the message itself is encoded in place.
fn copy_message(delivery: &mut Delivery, array: &dyn ErasedArray) -> Result<Delivery, WireError> {
    delivery.encode_in_place(array)?;
    Ok(duplicate_any(delivery).for_other_rank())
}

/// As [`duplicate`], also of a chunk to insert.
fn duplicate_any(delivery: &Delivery) -> Delivery {
    use crate::arrays::core::routing::envelope::Payload;
    match &delivery.payload {
        Payload::EncodedInsertion { key, chunk } => Delivery {
            from: delivery.from,
            bytes: delivery.bytes,
            payload: Payload::EncodedInsertion { key: *key, chunk: Arc::clone(chunk) },
        },
        _ => duplicate(delivery),
    }
}
