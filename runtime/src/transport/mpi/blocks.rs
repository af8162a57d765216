//! Sends and receives the blocks of numbers that travel beside the frames of one lane of a link.
//!
//! Each block is a separate MPI message with the tag of its lane, sent when its frame is written and awaited when its
//! frame is read. MPI keeps the order of messages with one tag. A frame whose blocks have not arrived delays later
//! frames of its lane. Later frames may be read meanwhile.
//!
//! MPI may copy a block within the call that awaits it. Blocks of freight are therefore cut into pieces, which are
//! awaited one by one, with a poll of messages in between. Blocks of messages are awaited all at once.

use std::collections::VecDeque;

use super::failure::Failure;
use super::frame::{Announced, Frame, Kind, Lane, Malformed};
use super::raw::{Channel, Communicator, MpiError, Receiving, Sendings};
use crate::wire::bulk::{Attachment, Block};

/// Length of a piece of freight, bytes: about 30 us of copying, compared with 1 us for one more message.
const FREIGHT_PIECE_BYTES: usize = 128 * 1024;

/// A frame that was read and whose blocks have not all arrived.
struct PendingFrame {
    kind: Kind,
    body: Vec<u8>,
    blocks: Vec<Announced>,
    bytes: usize,
    /// The blocks whose receives were started, the first of all blocks.
    awaited: Vec<Receiving>,
    /// Number of blocks that have arrived.
    come: usize,
}

/// The blocks of one lane, in both directions.
pub(super) struct Blocks {
    lane: Lane,
    sendings: Sendings,
    arriving: VecDeque<PendingFrame>,
    arriving_bytes: usize,
    /// Number of blocks received since the start.
    received: u64,
}

/// A complete frame: its body, and its blocks in order.
pub(super) type CompleteFrame = (Vec<u8>, VecDeque<Block>);

impl Blocks {
    pub(super) fn new(lane: Lane) -> Blocks {
        Blocks {
            lane,
            sendings: Sendings::default(),
            arriving: VecDeque::new(),
            arriving_bytes: 0,
            received: 0,
        }
    }

    /// Starts to send the blocks of a frame.
    pub(super) fn send(
        &mut self,
        to: u32,
        beside: &[Attachment],
        communicator: &Communicator,
    ) -> Result<(), MpiError> {
        for attachment in beside {
            self.sendings.push(communicator.send(to, channel(self.lane), attachment.numbers.clone())?);
        }
        Ok(())
    }

    /// Bytes that have not left.
    #[inline]
    pub(super) fn unsent_bytes(&self) -> usize {
        self.sendings.bytes()
    }

    /// Bytes of the blocks whose frames were read and not taken.
    #[inline]
    pub(super) fn arriving_bytes(&self) -> usize {
        self.arriving_bytes
    }

    /// Tells whether no frame waits for its blocks, or for an earlier frame that does.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.arriving.is_empty()
    }

    /// Releases the memory of blocks that have left. True if all have left.
    pub(super) fn reap(&mut self) -> Result<bool, MpiError> {
        self.sendings.reap()
    }

    /// Number of blocks that have left, and number received, since the start.
    pub(super) fn so_far(&self) -> (u64, u64) {
        (self.sendings.sent(), self.received)
    }

    /// Adds a frame that has blocks or must wait for earlier frames.
    pub(super) fn arrive(
        &mut self,
        from: u32,
        frame: Frame<'_>,
        communicator: &Communicator,
    ) -> Result<(), Failure> {
        let blocks = frame.attachments().map_err(|Malformed| Failure::Malformed { from })?;
        let (kind, body) = (frame.kind, frame.body.to_vec());
        let bytes = blocks.iter().map(|block| block.bytes).sum();
        self.arriving_bytes += bytes;
        let mut arriving = PendingFrame { kind, body, blocks, bytes, awaited: Vec::new(), come: 0 };
        if self.lane == Lane::Express {
            arriving.await_all(self.lane, from, communicator)?;
        }
        self.arriving.push_back(arriving);
        Ok(())
    }

    /// Tells whether there is a first frame that is complete. Awaits one piece per call, or all pieces if `in_one_go`.
    pub(super) fn is_first_whole(
        &mut self,
        from: u32,
        communicator: &Communicator,
        in_one_go: bool,
    ) -> Result<bool, MpiError> {
        let Some(first) = self.arriving.front_mut() else { return Ok(false) };
        first.is_whole(self.lane, from, communicator, in_one_go)
    }

    /// Takes the first frame, if it is complete.
    pub(super) fn take(
        &mut self,
        from: u32,
        communicator: &Communicator,
        in_one_go: bool,
    ) -> Result<Option<CompleteFrame>, MpiError> {
        if !self.is_first_whole(from, communicator, in_one_go)? {
            return Ok(None);
        }
        let PendingFrame { kind, mut body, awaited, bytes, .. } =
            self.arriving.pop_front().expect("it was looked at");
        self.arriving_bytes -= bytes;
        self.received += awaited.len() as u64;
        let mut blocks: VecDeque<Block> = awaited.into_iter().map(|received| received.take().1).collect();
        if kind == Kind::BodyBeside
            && let Some(Block::One(bytes)) = blocks.pop_front()
        {
            body = bytes;
        }
        Ok(Some((body, blocks)))
    }
}

impl PendingFrame {
    /// Starts the receives of all blocks.
    fn await_all(&mut self, lane: Lane, from: u32, communicator: &Communicator) -> Result<(), MpiError> {
        for block in &self.blocks {
            self.awaited.push(communicator.receive(from, channel(lane), block.bytes, block.alignment)?);
        }
        Ok(())
    }

    /// Tells whether all blocks have arrived. Awaits the next piece once the previous piece has arrived; with
    /// `in_one_go`, all pieces in turn.
    fn is_whole(
        &mut self,
        lane: Lane,
        from: u32,
        communicator: &Communicator,
        in_one_go: bool,
    ) -> Result<bool, MpiError> {
        while let Some(block) = self.blocks.get(self.come) {
            if self.awaited.len() == self.come {
                self.awaited.push(Receiving::of(block.bytes, block.alignment));
            }
            let receiving = &mut self.awaited[self.come];
            if !receiving.test()? {
                return Ok(false);
            }
            if !communicator.receive_next(from, channel(lane), receiving)? {
                self.come += 1;
            } else if !in_one_go {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The channel of the blocks of a lane.
fn channel(lane: Lane) -> Channel {
    match lane {
        Lane::Express => Channel::new(2),
        Lane::Freight => Channel::cut_at(3, FREIGHT_PIECE_BYTES),
    }
}
