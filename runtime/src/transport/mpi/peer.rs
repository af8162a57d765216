//! One process' link to another: frames out and in, over a ring or in batches, and what travels beside them.
//!
//! Frames are read in the order they were written. Those with blocks beside them take one of two *lanes* (see
//! [`blocks`](super::blocks)), and stay in order with those of their lane only: what takes long comes by the second, so that
//! messages need not wait for the chunks before them.
//!
//! **Progress.** MPI works on a message only while it is called, on both sides: Open MPI's receiver may have all of a block
//! and still owe the sender the word that frees it. So a block is *under way* until its receiver has it and its sender has
//! let go of it, and each knows that of the other; as long as one is, both go on calling MPI. Processes of one host tell
//! each other beside their rings; between hosts they never stop calling MPI, since batches come by it.

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

/// Longer bodies travel beside their frame.
const BODY_BYTES_MAX: usize = 16 * 1024;
/// Bytes beside frames of one lane that are under way to, or from, one process.
const ATTACHED_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes of freight under way to one process from which on no more is loaded: as much as one side can copy while the
/// other does not run, on vCPUs that others use too. Its receiver has no part in it before it awaits it.
const FREIGHT_BYTES: usize = 32 * 1024 * 1024;
/// Bytes that may wait for one receiver before the sender counts as congested: more than a window of chunks that send to it,
/// as long as that is by default, so that it is they who stop.
const QUEUED_BYTES_MAX: usize = 24 * 1024 * 1024;

/// What was taken of what has come.
pub(crate) struct Taken {
    pub(crate) lane: Lane,
    /// One at least.
    pub(crate) packets: u32,
    /// Who took them wants more.
    pub(crate) more: bool,
}

/// A frame that found no room, with all that it needs.
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
    /// A block may be under way, in either direction.
    transfers: bool,
    /// It has said bye: what comes behind that belongs to the next run.
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

    /// A run begins.
    pub(crate) fn begin(&mut self) {
        self.closed = false;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Sends a packet, now or when there is room. It is written where it leaves from.
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

    /// Sends a packet that others may overtake, where there is room for it.
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

    /// Sends the packet that was encoded where it leaves from.
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

    /// The same of one with blocks beside it, or which is to be one.
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

    /// Says that nothing more comes in this run.
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

    /// Lets the batch go, if there is one and room for it. True if nothing is left of it.
    #[inline]
    pub(crate) fn ship(&mut self, communicator: &Communicator) -> Result<bool, MpiError> {
        self.departures.ship(self.rank, || self.arrivals.grant(), communicator)
    }

    /// Tells the other how much was taken from it, if it may be waiting for that. True if something was sent.
    #[inline]
    pub(crate) fn send_due_grant(&mut self, communicator: &Communicator) -> Result<bool, MpiError> {
        let Some(taken) = self.arrivals.take_due_grant() else { return Ok(false) };
        self.departures.send_grant(self.rank, taken, communicator)?;
        Ok(true)
    }

    /// Sends what waited for room, as far as there is some. True if nothing waits any more.
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

    /// Lets go of blocks that have left, and compares with the other what is under way.
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

    /// Numbers of blocks that have left, and been received, since the start, in both lanes.
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

    /// Tells whether a block is under way, in either direction: MPI has to be called for it to come on, here and there.
    #[inline]
    pub(crate) fn has_transfers(&self) -> bool {
        self.transfers
    }

    /// Tells whether a frame is there to be read, or one that was read is whole.
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

    /// Takes everything that has come and forgets it: the run is over.
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

    /// Tells whether frames may be read: the run goes on, and not too much is under way. Of freight there is never more
    /// than its sender loads.
    #[inline]
    fn may_read(&self) -> bool {
        !self.closed && self.express.arriving_bytes() < ATTACHED_BYTES_MAX
    }

    /// The frame that was just read has blocks, or has to wait for those before it.
    fn await_blocks(&mut self, communicator: &Communicator) -> Result<(), Failure> {
        let Some(frame) = self.arrivals.last() else { return Ok(()) };
        self.transfers = true;
        let blocks = match frame.lane {
            Lane::Express => &mut self.express,
            Lane::Freight => &mut self.freight,
        };
        blocks.arrive(self.rank, frame, communicator)
    }

    /// Gives what has come next: plain frames in a row, at most `most` and as long as the receiver wants more, or else one packet
    /// of any kind, messages before freight. That comes `in_one_go` where nobody waits for messages meanwhile. A row ends where the
    /// sender may wait for its grant.
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

    /// Gives the first packet of freight, if it is whole; true if the receiver wants more.
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

    /// The same of one packet of any kind.
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

    /// The next packet, with what came beside it. A bye is none.
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

/// Gives a packet that its receiver does not read where it lies; true if it wants more.
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

/// The next frame that has come from that rank.
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
