//! Gathers the frames to a process into batches, and limits the bytes in flight by credit.
//!
//! A batch is a sequence of frames with their headers. A batch goes through a ring to a process of the same host, and
//! as an MPI message to other processes. The first word of such a message is the *grant*: the number of bytes of
//! batches that its sender has taken from its receiver so far. Batches are used because one MPI call costs as much as a
//! hundred small frames, and because several frames share a cache line. A batch leaves when it is full, when its rank
//! polls, and when its rank is idle. At a poll, a batch for MPI leaves only if it is old or polls are rare.
//!
//! **Credit.** At most [`WINDOW_BYTES`] are in flight from a process to a process of another host, including batches
//! queued at the receiver. In a ring its size is the limit. Further frames wait at the sender, which is then
//! *congested* (see [`Transport::congested`](crate::transport::Transport::congested)). So a process that is stopped for
//! long costs its partners a bounded amount of memory, none of which is inside MPI.

use std::collections::VecDeque;
use std::sync::Arc;

use super::frame::{self, Frame, Kind, Lane, Malformed};
use super::raw::Words;
use super::raw::{Channel, Communicator, MpiError, Receiving, Sendings};
use crate::transport::ring::{Reader, WORD, Writer};
use crate::wire::bulk::{Attachment, Block};

/// The channel of batches.
pub(crate) const BATCH: Channel = Channel::new(1);

/// Bytes of a full batch. For a ring 32 lines, so that the reader can begin early. For MPI a message that takes much
/// longer than the call.
const RING_BYTES: usize = 7 * WORD * 32;
const MPI_BYTES: usize = 16 * 1024;
/// Maximum bytes of a batch: almost full, plus the longest frame.
const BYTES_MAX: usize = 64 * 1024;
/// Maximum bytes in flight to a process of another host.
const WINDOW_BYTES: u64 = 512 * 1024;
/// Age at which a batch for MPI leaves, ns. If polls are at least this far apart, all batches leave at each poll.
pub(super) const OLD_NS: u64 = 10_000;
/// Number of posted receives for batches.
const RECEIVES: usize = 4;

/// The link by which batches leave.
enum Out {
    Ring(Writer<Words>),
    Mpi(Credit),
}

#[derive(Default)]
struct Credit {
    /// Bytes sent, and bytes that the receiver has granted.
    sent: u64,
    granted: u64,
    sendings: Sendings,
}

/// The frames that are queued for one process.
pub(crate) struct OutboundFrames {
    batch: Vec<u8>,
    /// Bytes up to the end of the last complete frame, including the word of the grant. An incomplete frame may follow.
    whole: usize,
    /// Number of bytes from which the batch is full.
    full_bytes: usize,
    since_ns: u64,
    out: Out,
}

impl OutboundFrames {
    pub(crate) fn by_ring(writer: Writer<Words>) -> OutboundFrames {
        OutboundFrames::new(RING_BYTES, Out::Ring(writer))
    }

    pub(crate) fn by_mpi() -> OutboundFrames {
        OutboundFrames::new(MPI_BYTES, Out::Mpi(Credit::default()))
    }

    fn new(full_bytes: usize, out: Out) -> OutboundFrames {
        OutboundFrames { batch: Vec::new(), whole: 0, full_bytes, since_ns: 0, out }
    }

    /// Tells whether the age of a batch matters. A batch for a ring leaves at the next poll anyway.
    #[inline]
    pub(crate) fn ages(&self) -> bool {
        matches!(self.out, Out::Mpi(_))
    }

    /// Begins a frame, and returns the buffer to which its body is appended. None if the batch is full.
    #[inline(always)]
    pub(crate) fn begin(&mut self, now_ns: u64) -> Option<&mut Vec<u8>> {
        self.take_back();
        if self.is_full() {
            return None;
        }
        if self.ages() && self.batch.is_empty() {
            self.since_ns = now_ns;
            // Space for the grant.
            self.batch.extend_from_slice(&[0; WORD]);
            self.whole = WORD;
        }
        frame::begin(&mut self.batch);
        Some(&mut self.batch)
    }

    /// The position of the body that was begun.
    #[inline]
    fn body(&self) -> usize {
        debug_assert!(self.batch.len() >= self.whole + WORD, "a frame was begun");
        self.whole + WORD
    }

    /// The length of the body that was begun.
    #[inline]
    pub(crate) fn body_bytes(&self) -> usize {
        self.batch.len() - self.body()
    }

    /// Ends the frame that was begun.
    #[inline]
    pub(crate) fn end(&mut self, lane: Lane, kind: Kind, beside: &[Attachment]) {
        let start = self.body();
        frame::end(&mut self.batch, start, lane, kind, beside);
        self.whole = self.batch.len();
    }

    /// Removes an incomplete frame, on purpose or because its encoding panicked. Returns its body.
    #[inline]
    pub(crate) fn take_back(&mut self) -> Vec<u8> {
        if self.batch.len() == self.whole { Vec::new() } else { self.cut_off() }
    }

    #[cold]
    fn cut_off(&mut self) -> Vec<u8> {
        let body = self.batch.split_off(self.body());
        if self.ages() && self.whole == WORD {
            self.whole = 0;
        }
        self.batch.truncate(self.whole);
        body
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.batch.len() >= self.full_bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    pub(crate) fn is_old(&self, now_ns: u64) -> bool {
        now_ns >= self.since_ns + OLD_NS
    }

    /// Sends the batch, if there is one, with the grant `taken`. False if there is no room or credit for it.
    #[inline]
    pub(crate) fn ship(
        &mut self,
        to: u32,
        taken: impl FnOnce() -> u64,
        communicator: &Communicator,
    ) -> Result<bool, MpiError> {
        self.take_back();
        if self.batch.is_empty() {
            return Ok(true);
        }
        match &mut self.out {
            Out::Ring(ring) => {
                let left = ring.write(&self.batch);
                if left {
                    self.batch.clear();
                    self.whole = 0;
                }
                Ok(left)
            }
            Out::Mpi(credit) => {
                let bytes = self.batch.len() as u64;
                let under_way = credit.sent - credit.granted;
                if under_way > 0 && under_way + bytes > WINDOW_BYTES {
                    return Ok(false);
                }
                credit.sent += bytes;
                let mut batch = std::mem::take(&mut self.batch);
                self.whole = 0;
                batch[..WORD].copy_from_slice(&taken().to_ne_bytes());
                credit.sendings.push(communicator.send(to, BATCH, Arc::new(batch))?);
                Ok(true)
            }
        }
    }

    /// Sends a grant of `taken` bytes without a frame.
    pub(crate) fn send_grant(
        &mut self,
        to: u32,
        taken: u64,
        communicator: &Communicator,
    ) -> Result<(), MpiError> {
        if let Out::Mpi(credit) = &mut self.out {
            credit.sendings.push(communicator.send(to, BATCH, Arc::new(taken.to_ne_bytes().to_vec()))?);
        }
        Ok(())
    }

    /// Applies a grant: the receiver has taken `taken` bytes so far.
    pub(crate) fn grant(&mut self, taken: u64) {
        if let Out::Mpi(credit) = &mut self.out {
            credit.granted = taken.clamp(credit.granted, credit.sent);
        }
    }

    /// Publishes the number of blocks that have left, if the link is a ring. Only there may the receiver stop calling
    /// MPI, once it has this number.
    pub(crate) fn publish_sent(&self, blocks: u64) {
        if let Out::Ring(ring) = &self.out {
            ring.publish_sent(blocks);
        }
    }

    /// Tells whether the receiver has received `blocks` blocks. True for MPI, where the answer does not matter.
    pub(crate) fn has_received(&self, blocks: u64) -> bool {
        match &self.out {
            Out::Ring(ring) => ring.received() >= blocks,
            Out::Mpi(_) => true,
        }
    }

    /// Releases the memory of complete sends. True if all are complete.
    pub(crate) fn reap(&mut self) -> Result<bool, MpiError> {
        match &mut self.out {
            Out::Ring(_) => Ok(true),
            Out::Mpi(credit) => credit.sendings.reap(),
        }
    }
}

/// Received frames of one process that were not read yet.
pub(crate) struct InboundFrames {
    /// The current batch, and the position in it.
    batch: Vec<u8>,
    read: usize,
    /// Start of the frame that was read last.
    last: usize,
    source: Source,
}

/// The next frame on the fast path.
pub(crate) enum PlainFrame<'b> {
    None,
    /// The body of a plain frame.
    Body(&'b [u8]),
    /// Another kind of frame, or a malformed one.
    Other,
}

/// The link by which batches arrive.
enum Source {
    Ring(Reader<Words>),
    Mpi(Queue),
}

/// Batches that came as MPI messages.
#[derive(Default)]
struct Queue {
    batches: VecDeque<Vec<u8>>,
    /// Bytes taken, and bytes granted to the sender.
    taken: u64,
    granted: u64,
}

impl InboundFrames {
    pub(crate) fn by_ring(reader: Reader<Words>) -> InboundFrames {
        InboundFrames { batch: Vec::new(), read: 0, last: 0, source: Source::Ring(reader) }
    }

    pub(crate) fn by_mpi() -> InboundFrames {
        InboundFrames { batch: Vec::new(), read: 0, last: 0, source: Source::Mpi(Queue::default()) }
    }

    #[inline]
    pub(crate) fn ready(&self) -> bool {
        self.read < self.batch.len()
            || match &self.source {
                Source::Ring(ring) => ring.ready(),
                Source::Mpi(queue) => !queue.batches.is_empty(),
            }
    }

    /// The next frame. Malformed bytes are returned again by every call, because the end of their frame is not known.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Frame<'_>>, Malformed> {
        if self.read == self.batch.len() && !self.open() {
            return Ok(None);
        }
        self.last = self.read;
        let (frame, next) = frame::read(&self.batch, self.read).ok_or(Malformed)?;
        self.read = next;
        Ok(Some(frame))
    }

    /// The next frame, if it is a plain one.
    #[inline]
    pub(crate) fn next_plain(&mut self) -> PlainFrame<'_> {
        if self.read == self.batch.len() && !self.open() {
            return PlainFrame::None;
        }
        let Some((body, next)) = frame::read_plain(&self.batch, self.read) else { return PlainFrame::Other };
        self.read = next;
        PlainFrame::Body(body)
    }

    /// The frame that was read last.
    #[inline]
    pub(crate) fn last(&self) -> Option<Frame<'_>> {
        frame::read(&self.batch, self.last).map(|(frame, _)| frame)
    }

    /// Moves on to the next batch.
    #[inline]
    fn open(&mut self) -> bool {
        match &mut self.source {
            Source::Ring(ring) => {
                self.batch.clear();
                self.read = 0;
                let come = ring.read(&mut self.batch);
                if come && self.batch.is_empty() {
                    // No process sends an empty batch, so it is read as a malformed frame.
                    self.batch.extend_from_slice(&[0xff; WORD]);
                }
                come
            }
            Source::Mpi(queue) => {
                // A batch counts as taken after it was read to its end.
                queue.taken += self.batch.len() as u64;
                self.batch = queue.batches.pop_front().unwrap_or_default();
                self.read = WORD.min(self.batch.len());
                !self.batch.is_empty()
            }
        }
    }

    /// Publishes the number of blocks that have been received.
    pub(crate) fn publish_received(&self, blocks: u64) {
        if let Source::Ring(ring) = &self.source {
            ring.publish_received(blocks);
        }
    }

    /// Tells whether `blocks` blocks have left the sender. True for MPI, where the answer does not matter.
    pub(crate) fn has_sent(&self, blocks: u64) -> bool {
        match &self.source {
            Source::Ring(ring) => ring.sent() >= blocks,
            Source::Mpi(_) => true,
        }
    }

    /// Tells whether the sender may be waiting for a grant.
    #[inline]
    pub(crate) fn grant_is_due(&self) -> bool {
        matches!(&self.source, Source::Mpi(queue) if queue.taken - queue.granted >= WINDOW_BYTES / 4)
    }

    /// The grant to send in a separate message, if the sender may be waiting for it.
    #[inline]
    pub(crate) fn take_due_grant(&mut self) -> Option<u64> {
        self.grant_is_due().then(|| self.grant())
    }

    /// The grant to send with a batch.
    #[inline]
    pub(crate) fn grant(&mut self) -> u64 {
        match &mut self.source {
            Source::Ring(_) => 0,
            Source::Mpi(queue) => queue.tell(),
        }
    }

    /// Adds a batch to the queue; returns the grant in the batch.
    fn receive_batch(&mut self, batch: Vec<u8>) -> u64 {
        let Source::Mpi(queue) = &mut self.source else {
            unreachable!("processes of one host send no batches by MPI")
        };
        let grant = batch.first_chunk().map_or(0, |word| u64::from_ne_bytes(*word));
        if batch.len() > WORD {
            // The buffer has the size of the longest batch. A window of short batches must not take that memory for
            // each.
            let short = batch.len() < batch.capacity() / 4;
            queue.batches.push_back(if short { batch[..].to_vec() } else { batch });
        }
        grant
    }
}

impl Queue {
    fn tell(&mut self) -> u64 {
        self.granted = self.taken;
        self.taken
    }
}

/// Posted receives for batches from any process, in the order in which MPI fills them.
pub(crate) struct PostedReceives {
    receives: VecDeque<Receiving>,
}

impl PostedReceives {
    pub(crate) fn start(communicator: &Communicator) -> Result<PostedReceives, MpiError> {
        let receives = (0..RECEIVES).map(|_| communicator.receive_any(BATCH, BYTES_MAX));
        Ok(PostedReceives { receives: receives.collect::<Result<_, _>>()? })
    }

    /// Tells whether a batch has arrived.
    #[inline]
    pub(crate) fn ready(&mut self) -> Result<bool, MpiError> {
        self.receives.front_mut().map_or(Ok(false), Receiving::test)
    }

    /// Adds the next received batch to the frames of its sender; returns the sender, and the grant in the batch.
    pub(crate) fn take<'a>(
        &mut self,
        communicator: &Communicator,
        arrivals: impl FnOnce(u32) -> &'a mut InboundFrames,
    ) -> Result<Option<(u32, u64)>, MpiError> {
        if !self.ready()? {
            return Ok(None);
        }
        let first = self.receives.pop_front().expect("one was ready");
        self.receives.push_back(communicator.receive_any(BATCH, BYTES_MAX)?);
        let (from, Block::One(batch)) = first.take() else { unreachable!("batches are bytes") };
        Ok(Some((from, arrivals(from).receive_batch(batch))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A batch with a grant of 0 that ends with `tail`.
    fn batch(bodies: &[&[u8]], tail: &[u8]) -> Vec<u8> {
        let mut batch = vec![0; WORD];
        for body in bodies {
            frame::begin(&mut batch);
            let start = batch.len();
            batch.extend_from_slice(body);
            frame::end(&mut batch, start, Lane::Express, Kind::Packet, &[]);
        }
        batch.extend_from_slice(tail);
        batch
    }

    #[test]
    fn the_frames_before_malformed_bytes_are_read_and_nothing_behind_them() {
        for tail in [&[7; WORD][..], &[0; WORD - 1], &[0xff; 3 * WORD]] {
            let mut arrivals = InboundFrames::by_mpi();
            arrivals.receive_batch(batch(&[b"one", b"two"], tail));
            arrivals.receive_batch(batch(&[b"three"], &[]));
            for body in [b"one", b"two"] {
                assert_eq!(arrivals.next().map(|frame| frame.map(|frame| frame.body)), Ok(Some(&body[..])));
            }
            for _ in 0..2 {
                assert!(arrivals.ready(), "the error can be read");
                assert_eq!(arrivals.next(), Err(Malformed));
                assert_eq!(arrivals.last(), None);
            }
        }
    }

    #[test]
    fn a_queued_batch_takes_memory_in_proportion_to_its_length() {
        let mut arrivals = InboundFrames::by_mpi();
        for length in [10, BYTES_MAX / 2] {
            let mut come = Vec::with_capacity(BYTES_MAX);
            come.extend(batch(&[&vec![1; length]], &[]));
            arrivals.receive_batch(come);
        }
        let Source::Mpi(queue) = &arrivals.source else { unreachable!("it is by MPI") };
        assert!(queue.batches.iter().all(|batch| batch.capacity() <= 4 * batch.len()));
        assert_eq!(arrivals.next().map(|frame| frame.map(|frame| frame.body.len())), Ok(Some(10)));
    }

    #[test]
    fn a_frame_that_was_begun_and_not_ended_leaves_nothing() {
        let mut departures = OutboundFrames::by_mpi();
        let frame = |departures: &mut OutboundFrames, body: &[u8]| {
            departures.begin(7).expect("there is room").extend_from_slice(body);
            assert_eq!(departures.body_bytes(), body.len());
        };
        frame(&mut departures, b"begun");
        assert_eq!(departures.take_back(), b"begun");
        assert!(departures.is_empty() && departures.take_back().is_empty());
        frame(&mut departures, b"one");
        departures.end(Lane::Express, Kind::Packet, &[]);
        frame(&mut departures, b"begun");
        frame(&mut departures, b"two");
        departures.end(Lane::Express, Kind::Packet, &[]);
        frame(&mut departures, b"begun");
        departures.take_back();
        assert_eq!(departures.batch, batch(&[b"one", b"two"], &[]));
    }

    #[test]
    fn a_grant_of_more_than_was_sent_grants_what_was_sent() {
        let mut departures = OutboundFrames::by_mpi();
        departures.grant(u64::MAX);
        let Out::Mpi(credit) = departures.out else { unreachable!("it is by MPI") };
        assert_eq!((credit.sent, credit.granted), (0, 0));
    }
}
