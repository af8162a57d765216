//! The worker's part of checkpoints: copies the chunks of a stopped rank, writes the copy, completes the checkpoint.
//!
//! The worker copies its rank in memory while all ranks stop. A thread then writes the copy, while the rank goes on.

use std::sync::{Arc, PoisonError};

use super::worker::Worker;
use crate::arrays::core::checkpoint::{CoreImage, RankImage, RankWritten};
use crate::arrays::core::collectives::broadcast::duplicate;
use crate::arrays::core::lifecycle::erased::ErasedArray;
use crate::arrays::core::lifecycle::signature::ArraySignature;
use crate::arrays::core::lifecycle::transfer::{ChunkBody, ChunkTransfer, Transit};
use crate::arrays::core::routing::envelope::{Delivery, Envelope};
use crate::arrays::core::routing::in_flight::Epoch;
use crate::arrays::core::routing::message_list::MessageNode;
use crate::checkpoint::background::{Background, IoOutcome, Started};
use crate::checkpoint::{Content, Manifest};
use crate::ids::{CellId, ChunkId};
use crate::wire::{self, WireError};

impl Worker<'_> {
    /// Copies this stopped rank, and starts to encode and write the copy.
    pub(super) fn save(
        &mut self,
        number: u64,
        chunks: &[(ChunkId, CellId)],
        next_broadcasts: &[u64],
        mut rest: CoreImage,
    ) {
        self.instruments.interrupt();
        let copy = self.copy(chunks, next_broadcasts, &mut rest);
        self.with_core(|core, now_ns, out| core.saved(rest, now_ns, out));
        let (rank, store) = (self.shared.info.rank, self.shared.checkpoints.clone());
        let write = move || match (copy, store) {
            (Ok(image), Some(store)) => store.write_rank(number, rank, |out| wire::encode_to(&image, out)),
            (Err(why), _) => Err(why.to_string()),
            (_, None) => unreachable!("only rank 0 of a run with a directory begins a checkpoint"),
        };
        self.start_io(write, IoOutcome::Written);
    }

    /// Runs `io` on a thread, and passes its outcome to the core.
    fn start_io<T: 'static>(
        &mut self,
        io: impl FnOnce() -> Result<T, String> + Send + 'static,
        outcome: fn(Result<T, String>) -> IoOutcome,
    ) {
        let wake = self.shared.scheduler.waker(self.id);
        match Background::start(self.shared.clock.is_virtual(), io, outcome, wake) {
            Started::Runs(background) => {
                self.pending_io = Some(background);
                self.update_poll_schedule();
            }
            Started::Ended(outcome) => self.io_ended(outcome),
        }
    }

    fn io_ended(&mut self, outcome: IoOutcome) {
        self.with_core(|core, now_ns, out| match outcome {
            IoOutcome::Written(written) => core.rank_written(written, now_ns, out),
            IoOutcome::Committed(committed) => core.committed(committed, now_ns, out),
        });
    }

    /// Returns the image of this rank, with its chunks encoded. Encodes messages in place and changes nothing else.
    fn copy(
        &mut self,
        chunks: &[(ChunkId, CellId)],
        next_broadcasts: &[u64],
        rest: &mut CoreImage,
    ) -> Result<RankImage, WireError> {
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
        let now_ns = self.shared.clock.now_ns();
        for timers in &self.shared.timers {
            let mut timers = timers.lock().unwrap_or_else(PoisonError::into_inner);
            for (due_ns, node) in timers.iter_mut() {
                let delivery = copy_message(&mut node.message, &*arrays[node.to.array.index()])?;
                let envelope = Envelope { to: node.to, delivery, epoch: Epoch::default() };
                image.timers.push((due_ns.saturating_sub(now_ns), envelope));
            }
        }
        image.rest.root = rest.root.take();
        Ok(image)
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

    /// The run restarts: sets the timers of these messages.
    pub(super) fn restore_timers(&mut self, timers: Vec<(u64, Envelope)>) {
        let now_ns = self.shared.clock.now_ns();
        for (left_ns, Envelope { to, delivery, .. }) in timers {
            self.with_core(|core, _, _| core.delay_message());
            self.timers.set(now_ns.saturating_add(left_ns), MessageNode::new(to, delivery));
        }
        self.update_poll_schedule();
    }

    /// True if a write has ended and its outcome was not passed to the core yet.
    pub(super) fn has_written(&self) -> bool {
        self.pending_io.as_ref().is_some_and(Background::has_ended)
    }

    /// The run has ended: waits until the write is complete, so that the next run does not take it for its own.
    pub(super) fn finish_writing(&mut self) {
        self.pending_io.take().into_iter().for_each(Background::join);
    }

    /// Passes the outcome of a write that has ended to the core. True if there was one.
    pub(super) fn take_written(&mut self) -> bool {
        let outcome = self.pending_io.as_ref().and_then(Background::outcome);
        let Some(outcome) = outcome else { return false };
        self.pending_io = None;
        self.update_poll_schedule();
        self.io_ended(outcome);
        true
    }

    /// Rank 0: all ranks have written their copies, or have failed to. Starts to complete the checkpoint.
    pub(super) fn commit(&mut self, number: u64, arrays: Vec<ArraySignature>, written: Vec<RankWritten>) {
        let store = self.shared.checkpoints.clone().expect("a run with a directory makes checkpoints");
        let elapsed_ns = self.shared.clock.now_ns();
        let manifest = Manifest { content: Content::Arrays(arrays), elapsed_ns, ..Manifest::default() };
        let commit = move || store.complete(number, manifest, written);
        self.start_io(commit, IoOutcome::Committed);
    }
}

/// A copy of a message that can be written. The message itself is encoded in place.
fn copy_message(delivery: &mut Delivery, array: &dyn ErasedArray) -> Result<Delivery, WireError> {
    delivery.encode_in_place(array)?;
    Ok(duplicate_any(delivery).for_other_rank())
}

/// As [`duplicate`], also for a chunk to insert.
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
