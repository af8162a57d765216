//! The link from one process to another: frames in both directions, and the blocks beside them.
//!
//! Frames are read in the order of their writing. A frame with blocks beside it is in one of two *lanes* (see
//! [`blocks`](super::blocks)), and stays in order only within its lane. Chunks, which take long, use the lane for
//! freight, so that messages need not wait for earlier chunks.
//!
//! **Progress.** MPI works on a message only while it is called, on both sides. For example, the receiver may have all
//! of a block while Open MPI has not yet sent the notice that releases the block at the sender. A block is therefore
//! *in flight* until its receiver has it, its sender has released it, and each side has learned of both. While a block
//! is in flight, both sides go on calling MPI. Processes of one host publish their progress in the first lines of their
//! rings. Processes of different hosts never stop calling MPI, because batches arrive by it.

use std::collections::VecDeque;
use std::sync::Arc;

use super::batch::{InboundFrames, OutboundFrames, PlainFrame};
use super::blocks::{Blocks, CompleteFrame};
use super::failure::Failure;
use super::frame::{Frame, Kind, Lane, Malformed};
use super::raw::{Communicator, MpiError};
use crate::ids::Rank;
use crate::transport::PacketHandler;
use crate::wire::bulk::{Attachment, Block};
use crate::wire::codec::{Codec, Encoded};

/// Maximum bytes of a body in a frame; longer bodies travel beside their frame.
const BODY_BYTES_MAX: usize = 16 * 1024;
/// Maximum bytes beside frames of one lane in flight to one process, or from it.
const ATTACHED_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Freight is sent only while fewer bytes of freight are in flight to the process. On shared vCPUs, one side can copy
/// about this much while the other side does not run. The receiver allocates memory for a block of freight only when it
/// awaits the block.
const FREIGHT_BYTES: usize = 32 * 1024 * 1024;
/// The sender is congested if more than this number of bytes wait for one receiver. The number exceeds a default
/// flow-control window of the sending chunks, so that flow control stops the chunks first.
const QUEUED_BYTES_MAX: usize = 24 * 1024 * 1024;

/// The outcome of taking packets.
pub(crate) struct Taken {
    pub(crate) lane: Lane,
    /// At least one.
    pub(crate) packets: u32,
    /// The receiver takes more.
    pub(crate) more: bool,
}

/// A frame that waits for room, with its blocks.
struct QueuedFrame {
    lane: Lane,
    kind: Kind,
    body: Vec<u8>,
    beside: Vec<Attachment>,
}

/// The link to one other process.
pub(crate) struct Peer {
    rank: u32,
    pub(crate) departures: OutboundFrames,
    pub(crate) arrivals: InboundFrames,
    waiting: VecDeque<QueuedFrame>,
    waiting_bytes: usize,
    express: Blocks,
    freight: Blocks,
    /// A block may be in flight, in either direction.
    transfers: bool,
    /// The other process has sent bye: later frames belong to the next run.
    closed: bool,
}

impl Peer {
    pub(crate) fn new(rank: u32, departures: OutboundFrames, arrivals: InboundFrames) -> Peer {
        Peer {
            rank,
            departures,
            arrivals,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            express: Blocks::new(Lane::Express),
            freight: Blocks::new(Lane::Freight),
            transfers: false,
            closed: false,
        }
    }

    #[inline]
    fn blocks(&mut self, lane: Lane) -> &mut Blocks {
        match lane {
            Lane::Express => &mut self.express,
            Lane::Freight => &mut self.freight,
        }
    }

    /// Begins a run.
    pub(crate) fn begin(&mut self) {
        self.closed = false;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Sends a packet, now or when there is room, and encodes it directly in the batch if possible.
    #[inline]
    pub(crate) fn send(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Encoded,
        now_ns: u64,
        communicator: &Communicator,
    ) -> Result<(), Failure> {
        if self.waiting.is_empty()
            && self.express.unsent_bytes() <= ATTACHED_BYTES_MAX
            && let Some(batch) = self.departures.begin(now_ns)
        {
            let encoded = write(batch);
            return self.send_encoded(Lane::Express, encoded, now_ns, communicator);
        }
        let mut body = Vec::new();
        let beside = write(&mut body).map_err(Failure::wire)?;
        self.send_frame(Lane::Express, Kind::Packet, body, beside.unwrap_or_default(), now_ns, communicator)
    }

    /// Tells whether there is room for freight.
    pub(crate) fn takes_freight(&self) -> bool {
        self.waiting.is_empty() && self.freight.unsent_bytes() < FREIGHT_BYTES && !self.departures.is_full()
    }

    /// Sends a packet that messages may overtake. There must be room for it.
    pub(crate) fn send_freight(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Encoded,
        now_ns: u64,
        communicator: &Communicator,
    ) -> Result<(), Failure> {
        debug_assert!(self.takes_freight());
        let batch = self.departures.begin(now_ns).expect("a batch that is not full takes a frame");
        let encoded = write(batch);
        self.send_encoded(Lane::Freight, encoded, now_ns, communicator)
    }

    /// Sends the packet that was encoded in the batch.
    #[inline(always)]
    fn send_encoded(
        &mut self,
        lane: Lane,
        encoded: Encoded,
        now_ns: u64,
        communicator: &Communicator,
    ) -> Result<(), Failure> {
        match encoded {
            Ok(None) if self.departures.body_bytes() <= BODY_BYTES_MAX => {
                self.departures.end(lane, Kind::Packet, &[]);
                Ok(())
            }
            Ok(beside) => self.send_long(lane, beside.unwrap_or_default(), now_ns, communicator),
            Err(why) => {
                self.departures.take_back();
                Err(Failure::wire(why))
            }
        }
    }

    /// As [`send_encoded`](Self::send_encoded), for a packet with blocks beside it or with a body that becomes a block.
    #[inline(never)]
    fn send_long(
        &mut self,
        lane: Lane,
        beside: Vec<Attachment>,
        now_ns: u64,
        communicator: &Communicator,
    ) -> Result<(), Failure> {
        if self.departures.body_bytes() > BODY_BYTES_MAX {
            let body = self.departures.take_back();
            return self.send_frame(lane, Kind::Packet, body, beside, now_ns, communicator);
        }
        self.departures.end(lane, Kind::Packet, &beside);
        Ok(self.send_blocks(lane, &beside, communicator)?)
    }

    /// Notifies the other process that this run sends nothing more to it.
    pub(crate) fn say_bye(&mut self, now_ns: u64, communicator: &Communicator) -> Result<(), Failure> {
        self.send_frame(Lane::Express, Kind::Bye, Vec::new(), Vec::new(), now_ns, communicator)
    }

    fn send_frame(
        &mut self,
        lane: Lane,
        mut kind: Kind,
        mut body: Vec<u8>,
        mut beside: Vec<Attachment>,
        now_ns: u64,
        communicator: &Communicator,
    ) -> Result<(), Failure> {
        if body.len() > BODY_BYTES_MAX {
            kind = Kind::BodyBeside;
            beside.insert(0, Attachment { numbers: Arc::new(std::mem::take(&mut body)), alignment: 1 });
        }
        let kept = QueuedFrame { lane, kind, body, beside };
        if !self.waiting.is_empty() || !self.write(&kept, now_ns, communicator)? {
            self.waiting_bytes += kept.bytes();
            self.waiting.push_back(kept);
        }
        Ok(())
    }

    fn write(
        &mut self,
        kept: &QueuedFrame,
        now_ns: u64,
        communicator: &Communicator,
    ) -> Result<bool, MpiError> {
        if !kept.beside.is_empty() && self.blocks(kept.lane).unsent_bytes() > ATTACHED_BYTES_MAX {
            return Ok(false);
        }
        let Some(batch) = self.departures.begin(now_ns) else { return Ok(false) };
        batch.extend_from_slice(&kept.body);
        self.departures.end(kept.lane, kept.kind, &kept.beside);
        self.send_blocks(kept.lane, &kept.beside, communicator)?;
        Ok(true)
    }

    fn send_blocks(
        &mut self,
        lane: Lane,
        beside: &[Attachment],
        communicator: &Communicator,
    ) -> Result<(), MpiError> {
        if beside.is_empty() {
            return Ok(());
        }
        self.transfers = true;
        let rank = self.rank;
        self.blocks(lane).send(rank, beside, communicator)
    }

    /// Sends the batch, if there is one and there is room for it. True if nothing of it is left.
    #[inline]
    pub(crate) fn ship(&mut self, communicator: &Communicator) -> Result<bool, MpiError> {
        self.departures.ship(self.rank, || self.arrivals.grant(), communicator)
    }

    /// Sends a grant, if the other process may be waiting for it. True if something was sent.
    #[inline]
    pub(crate) fn send_due_grant(&mut self, communicator: &Communicator) -> Result<bool, MpiError> {
        let Some(taken) = self.arrivals.take_due_grant() else { return Ok(false) };
        self.departures.send_grant(self.rank, taken, communicator)?;
        Ok(true)
    }

    /// Sends queued frames while there is room. True if none is left.
    pub(crate) fn retry(&mut self, now_ns: u64, communicator: &Communicator) -> Result<bool, MpiError> {
        while let Some(kept) = self.waiting.pop_front() {
            if !self.write(&kept, now_ns, communicator)? {
                self.waiting.push_front(kept);
                return Ok(false);
            }
            self.waiting_bytes -= kept.bytes();
        }
        Ok(true)
    }

    /// Releases the memory of blocks that have left, and compares the progress of both sides.
    pub(crate) fn reap(&mut self) -> Result<(), MpiError> {
        if !self.transfers {
            return Ok(());
        }
        let all_left = self.express.reap()? & self.freight.reap()?;
        let (left, received) = self.so_far();
        self.departures.publish_sent(left);
        self.arrivals.publish_received(received);
        let known = self.departures.has_received(left) && self.arrivals.has_sent(received);
        let none_arrives = self.express.is_empty() && self.freight.is_empty();
        self.transfers = !(all_left && none_arrives && known);
        Ok(())
    }

    /// Number of blocks that have left, and number received, since the start, in both lanes together.
    fn so_far(&self) -> (u64, u64) {
        let ((left, received), (freight_left, freight_received)) =
            (self.express.so_far(), self.freight.so_far());
        (left + freight_left, received + freight_received)
    }

    pub(crate) fn has_queued(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(crate) fn is_congested(&self) -> bool {
        self.waiting_bytes > QUEUED_BYTES_MAX
    }

    /// Tells whether a block is in flight, in either direction. Both processes must then call MPI.
    #[inline]
    pub(crate) fn has_transfers(&self) -> bool {
        self.transfers
    }

    /// Tells whether a frame can be read, or a frame that was read is complete.
    #[inline]
    pub(crate) fn ready(&mut self, communicator: &Communicator) -> Result<bool, MpiError> {
        if !self.freight.is_empty() && self.freight.is_first_whole(self.rank, communicator, false)? {
            return Ok(true);
        }
        if !self.express.is_empty() {
            return self.express.is_first_whole(self.rank, communicator, false);
        }
        Ok(!self.closed && self.arrivals.ready())
    }

    /// Takes and drops everything that has arrived, because the run is over.
    pub(crate) fn discard(&mut self, communicator: &Communicator) -> Result<(), Failure> {
        while self.may_read()
            && let Some(frame) = read(&mut self.arrivals, self.rank)?
        {
            self.closed = frame.kind == Kind::Bye;
            if !frame.blocks.is_empty() {
                self.await_blocks(communicator)?;
            }
        }
        while self.express.take(self.rank, communicator, true)?.is_some() {}
        while self.freight.take(self.rank, communicator, true)?.is_some() {}
        Ok(())
    }

    /// Tells whether frames may be read: the run goes on, and the bytes in flight are within the limit. The sender
    /// limits the bytes of freight.
    #[inline]
    fn may_read(&self) -> bool {
        !self.closed && self.express.arriving_bytes() < ATTACHED_BYTES_MAX
    }

    /// Awaits the blocks of the frame that was just read, or of earlier frames in its lane.
    fn await_blocks(&mut self, communicator: &Communicator) -> Result<(), Failure> {
        let Some(frame) = self.arrivals.last() else { return Ok(()) };
        self.transfers = true;
        let blocks = match frame.lane {
            Lane::Express => &mut self.express,
            Lane::Freight => &mut self.freight,
        };
        blocks.arrive(self.rank, frame, communicator)
    }

    /// Passes the next packets to the receiver: at most `most` plain frames, or else one packet of any kind, messages
    /// before freight. Ends earlier if the receiver takes no more, or if the sender may wait for a grant. With
    /// `in_one_go`, because no messages are expected, all pieces of freight are awaited.
    #[inline]
    pub(crate) fn take<C: Codec>(
        &mut self,
        in_one_go: bool,
        most: u32,
        codec: &C,
        communicator: &Communicator,
        receiver: &mut dyn PacketHandler<C::Packet>,
    ) -> Result<Option<Taken>, Failure> {
        if self.closed || !self.express.is_empty() {
            return self.take_other(in_one_go, codec, communicator, receiver);
        }
        let (mut packets, mut more, from) = (0, true, Rank(self.rank));
        while more && packets < most && !self.arrivals.grant_is_due() {
            match self.arrivals.next_plain() {
                PlainFrame::Body(body) => {
                    more = match receiver.read(from, body) {
                        Some(read) => read.map_err(Failure::Wire)?,
                        None => give(from, codec, body, VecDeque::new(), receiver)?,
                    };
                    packets += 1;
                }
                PlainFrame::None if packets == 0 && self.freight.is_empty() => return Ok(None),
                PlainFrame::None | PlainFrame::Other => break,
            }
        }
        if packets > 0 {
            return Ok(Some(Taken { lane: Lane::Express, packets, more }));
        }
        self.take_other(in_one_go, codec, communicator, receiver)
    }

    /// Passes the first packet of freight to the receiver, if it is complete. True if the receiver takes more.
    pub(crate) fn take_freight<C: Codec>(
        &mut self,
        in_one_go: bool,
        codec: &C,
        communicator: &Communicator,
        receiver: &mut dyn PacketHandler<C::Packet>,
    ) -> Result<Option<bool>, Failure> {
        let Some((body, blocks)) = self.freight.take(self.rank, communicator, in_one_go)? else {
            return Ok(None);
        };
        give(Rank(self.rank), codec, &body, blocks, receiver).map(Some)
    }

    /// Passes one packet of any kind to the receiver.
    #[inline(never)]
    fn take_other<C: Codec>(
        &mut self,
        in_one_go: bool,
        codec: &C,
        communicator: &Communicator,
        receiver: &mut dyn PacketHandler<C::Packet>,
    ) -> Result<Option<Taken>, Failure> {
        let Some((lane, (body, blocks))) = self.next(in_one_go, communicator)? else { return Ok(None) };
        let more = give(Rank(self.rank), codec, &body, blocks, receiver)?;
        Ok(Some(Taken { lane, packets: 1, more }))
    }

    /// The next packet, with its blocks. A bye ends the packets of the run.
    fn next(
        &mut self,
        in_one_go: bool,
        communicator: &Communicator,
    ) -> Result<Option<(Lane, CompleteFrame)>, Failure> {
        while self.may_read()
            && let Some(frame) = read(&mut self.arrivals, self.rank)?
        {
            self.closed = frame.kind == Kind::Bye;
            if self.closed {
                break;
            }
            let lane = frame.lane;
            let holds_up = match lane {
                Lane::Express => &self.express,
                Lane::Freight => &self.freight,
            };
            if frame.blocks.is_empty() && holds_up.is_empty() {
                return Ok(Some((lane, (frame.body.to_vec(), VecDeque::new()))));
            }
            self.await_blocks(communicator)?;
        }
        if self.express.is_empty() && self.freight.is_empty() {
            return Ok(None);
        }
        if let Some(whole) = self.express.take(self.rank, communicator, true)? {
            return Ok(Some((Lane::Express, whole)));
        }
        let whole = self.freight.take(self.rank, communicator, in_one_go)?;
        Ok(whole.map(|whole| (Lane::Freight, whole)))
    }
}

/// Decodes a packet for a receiver that does not read it in place. True if the receiver takes more.
#[inline(never)]
fn give<C: Codec>(
    from: Rank,
    codec: &C,
    body: &[u8],
    blocks: VecDeque<Block>,
    receiver: &mut dyn PacketHandler<C::Packet>,
) -> Result<bool, Failure> {
    let packet = codec.decode(body, blocks).map_err(Failure::wire)?;
    Ok(receiver.take(from, packet))
}

/// The next frame from that rank.
#[inline]
fn read(arrivals: &mut InboundFrames, from: u32) -> Result<Option<Frame<'_>>, Failure> {
    arrivals.next().map_err(|Malformed| Failure::Malformed { from })
}

impl QueuedFrame {
    fn bytes(&self) -> usize {
        let beside: usize = self.beside.iter().map(|attachment| attachment.numbers.bytes().len()).sum();
        size_of::<QueuedFrame>() + self.body.len() + beside
    }
}
