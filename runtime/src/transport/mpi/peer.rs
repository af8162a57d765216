//! One process' link to another: frames out and in, over a ring or in batches, and what travels beside them.
//!
//! Order is kept on every way at once: frames are read in the order they were written; a run of numbers is a message of
//! its own under one tag, sent when its frame is written and awaited when its frame is read, and MPI keeps the order of
//! messages with one tag. A frame whose runs are still coming holds up those behind it, which may be read meanwhile.
//!
//! **Progress.** MPI works on a message only while it is called, on both sides: Open MPI's receiver may have all of a run
//! and still owe the sender the word that frees it. So a run is *under way* until its receiver has it and its sender has
//! let go of it, and each knows that of the other; as long as one is, both go on calling MPI. Processes of one host tell
//! each other beside their rings; between hosts they never stop calling MPI, since batches come by it.

use std::collections::VecDeque;
use std::sync::Arc;

use super::batch::{Arrivals, Departures};
use super::frame::{Kind, Run};
use super::raw::{Communicator, MpiError, Receiving, Sendings};
use crate::error::Error;
use crate::wire::bulk::{Attachment, Block};
use crate::wire::codec::Codec;

/// The tag of runs of numbers.
const RUN: u16 = 2;
/// Longer bodies travel beside their frame.
const BODY_BYTES_MAX: usize = 16 * 1024;
/// Bytes beside frames that are under way to, or from, one process.
const BESIDE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes that may wait for one receiver before the sender counts as congested.
const WAITING_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The failures of a link.
pub(crate) enum Failure {
    /// A packet that does not survive encoding.
    Wire(Error),
    Mpi(MpiError),
}

impl From<MpiError> for Failure {
    fn from(why: MpiError) -> Failure {
        Failure::Mpi(why)
    }
}

/// A frame that found no room, with all that it needs.
struct Kept {
    kind: Kind,
    body: Vec<u8>,
    beside: Vec<Attachment>,
}

/// A frame that was read, and the runs that still come.
struct Arriving {
    kind: Kind,
    body: Vec<u8>,
    runs: Vec<Receiving>,
    bytes: usize,
    /// Runs known to have come.
    come: usize,
}

/// The link to one other process.
pub(crate) struct Peer {
    pub(crate) rank: u32,
    pub(crate) departures: Departures,
    pub(crate) arrivals: Arrivals,
    waiting: VecDeque<Kept>,
    waiting_bytes: usize,
    sendings: Sendings,
    arriving: VecDeque<Arriving>,
    arriving_bytes: usize,
    /// Runs received since the start.
    received: u64,
    /// A run may be under way, in either direction.
    transfers: bool,
    /// It has said bye: what comes behind that belongs to the next run.
    gone: bool,
}

impl Peer {
    pub(crate) fn new(rank: u32, departures: Departures, arrivals: Arrivals) -> Peer {
        Peer {
            rank,
            departures,
            arrivals,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            sendings: Sendings::default(),
            arriving: VecDeque::new(),
            arriving_bytes: 0,
            received: 0,
            transfers: false,
            gone: false,
        }
    }

    /// A run begins.
    pub(crate) fn begin(&mut self) {
        self.gone = false;
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone
    }

    /// Sends a packet, now or when there is room.
    #[inline]
    pub(crate) fn send<C: Codec>(
        &mut self,
        packet: C::Packet,
        codec: &C,
        now_ns: u64,
        communicator: &Communicator,
    ) -> Result<(), Failure> {
        if self.waiting.is_empty()
            && self.sendings.bytes() <= BESIDE_BYTES_MAX
            && let Some((batch, start)) = self.departures.begin(now_ns)
        {
            // Most packets are encoded where they leave from.
            let beside = codec.encode(packet, batch);
            let long = batch.len() - start > BODY_BYTES_MAX;
            let Ok(beside) = beside else {
                self.departures.take_back();
                return beside.map(|_| ()).map_err(Failure::Wire);
            };
            if long {
                let body = self.departures.take_back();
                return self.send_frame(Kind::Packet, body, beside, now_ns, communicator);
            }
            self.departures.end(Kind::Packet, &beside);
            return Ok(self.send_runs(&beside, communicator)?);
        }
        let mut body = Vec::new();
        let beside = codec.encode(packet, &mut body).map_err(Failure::Wire)?;
        self.send_frame(Kind::Packet, body, beside, now_ns, communicator)
    }

    /// Says that nothing more comes in this run.
    pub(crate) fn say_bye(&mut self, now_ns: u64, communicator: &Communicator) -> Result<(), Failure> {
        self.send_frame(Kind::Bye, Vec::new(), Vec::new(), now_ns, communicator)
    }

    fn send_frame(
        &mut self,
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
        let kept = Kept { kind, body, beside };
        if !self.waiting.is_empty() || !self.write(&kept, now_ns, communicator)? {
            self.waiting_bytes += kept.bytes();
            self.waiting.push_back(kept);
        }
        Ok(())
    }

    fn write(&mut self, kept: &Kept, now_ns: u64, communicator: &Communicator) -> Result<bool, MpiError> {
        if !kept.beside.is_empty() && self.sendings.bytes() > BESIDE_BYTES_MAX {
            return Ok(false);
        }
        let Some((batch, _)) = self.departures.begin(now_ns) else { return Ok(false) };
        batch.extend_from_slice(&kept.body);
        self.departures.end(kept.kind, &kept.beside);
        self.send_runs(&kept.beside, communicator)?;
        Ok(true)
    }

    fn send_runs(&mut self, beside: &[Attachment], communicator: &Communicator) -> Result<(), MpiError> {
        for attachment in beside {
            self.sendings.push(communicator.send(self.rank, RUN, attachment.numbers.clone())?);
            self.transfers = true;
        }
        Ok(())
    }

    /// Lets the batch go, if there is one and room for it. True if nothing is left of it.
    #[inline]
    pub(crate) fn ship(&mut self, communicator: &Communicator) -> Result<bool, MpiError> {
        self.departures.ship(self.rank, || self.arrivals.grant(), communicator)
    }

    /// Tells the other how much was taken from it, if it may be waiting for that. True if something was sent.
    #[inline]
    pub(crate) fn pay_grant(&mut self, communicator: &Communicator) -> Result<bool, MpiError> {
        let Some(taken) = self.arrivals.owed_grant() else { return Ok(false) };
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

    /// Lets go of runs that have left, and compares with the other what is under way.
    pub(crate) fn settle(&mut self) -> Result<(), MpiError> {
        if !self.transfers {
            return Ok(());
        }
        let all_left = self.sendings.settle()?;
        self.departures.say_left(self.sendings.left());
        self.arrivals.say_received(self.received);
        let known =
            self.departures.has_received(self.sendings.left()) && self.arrivals.has_let_go_of(self.received);
        self.transfers = !(all_left && self.arriving.is_empty() && known);
        Ok(())
    }

    pub(crate) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(crate) fn is_congested(&self) -> bool {
        self.waiting_bytes > WAITING_BYTES_MAX
    }

    /// Tells whether a run is under way, in either direction: MPI has to be called for it to come on, here and there.
    #[inline]
    pub(crate) fn transfers(&self) -> bool {
        self.transfers
    }

    /// Tells whether a frame is there to be read, or one that was read is whole.
    #[inline]
    pub(crate) fn ready(&mut self) -> Result<bool, MpiError> {
        if let Some(first) = self.arriving.front_mut() {
            return first.is_whole();
        }
        if self.gone {
            return Ok(false);
        }
        Ok(self.arrivals.ready())
    }

    /// Takes everything that has come and forgets it: the run is over.
    pub(crate) fn discard(&mut self, communicator: &Communicator) -> Result<(), MpiError> {
        while !self.gone
            && self.arriving_bytes < BESIDE_BYTES_MAX
            && let Some(frame) = self.arrivals.next()
        {
            self.gone = frame.kind == Kind::Bye;
            self.await_runs(communicator)?;
        }
        while let Some(first) = self.arriving.front_mut()
            && first.is_whole()?
        {
            self.arriving_bytes -= first.bytes;
            self.received += first.runs.len() as u64;
            self.arriving.pop_front();
        }
        Ok(())
    }

    /// Prepares for the runs of the frame that was just read, if it has some or has to wait for those before it.
    fn await_runs(&mut self, communicator: &Communicator) -> Result<(), MpiError> {
        let Some(frame) = self.arrivals.last() else { return Ok(()) };
        if frame.runs.is_empty() && self.arriving.is_empty() {
            return Ok(());
        }
        let runs: Vec<Run> = frame.runs.iter().map(|&word| Run::unpack(word)).collect();
        let (kind, body) = (frame.kind, frame.body.to_vec());
        let bytes = runs.iter().map(|run| run.bytes).sum();
        let receive = |run: &Run| communicator.receive(self.rank, RUN, run.bytes, run.alignment);
        let runs = runs.iter().map(receive).collect::<Result<_, _>>()?;
        self.arriving_bytes += bytes;
        self.transfers = true;
        self.arriving.push_back(Arriving { kind, body, runs, bytes, come: 0 });
        Ok(())
    }

    /// The next packet, or none. A bye is none.
    #[inline]
    pub(crate) fn next<C: Codec>(
        &mut self,
        codec: &C,
        communicator: &Communicator,
    ) -> Result<Option<C::Packet>, Failure> {
        while !self.gone
            && self.arriving_bytes < BESIDE_BYTES_MAX
            && let Some(frame) = self.arrivals.next()
        {
            self.gone = frame.kind == Kind::Bye;
            if self.gone {
                break;
            }
            if frame.runs.is_empty() && self.arriving.is_empty() {
                return codec.decode(frame.body, VecDeque::new()).map(Some).map_err(Failure::Wire);
            }
            self.await_runs(communicator)?;
        }
        let Some(first) = self.arriving.front_mut() else { return Ok(None) };
        if !first.is_whole()? {
            return Ok(None);
        }
        let Arriving { kind, mut body, runs, bytes, .. } =
            self.arriving.pop_front().expect("it was looked at");
        self.arriving_bytes -= bytes;
        self.received += runs.len() as u64;
        let mut blocks: VecDeque<Block> = runs.into_iter().map(|run| run.take().1).collect();
        if kind == Kind::BodyBeside
            && let Some(Block::One(bytes)) = blocks.pop_front()
        {
            body = bytes;
        }
        codec.decode(&body, blocks).map(Some).map_err(Failure::Wire)
    }
}

impl Kept {
    fn bytes(&self) -> usize {
        let beside: usize = self.beside.iter().map(|attachment| attachment.numbers.bytes().len()).sum();
        size_of::<Kept>() + self.body.len() + beside
    }
}

impl Arriving {
    fn is_whole(&mut self) -> Result<bool, MpiError> {
        while let Some(run) = self.runs.get_mut(self.come) {
            if !run.test()? {
                return Ok(false);
            }
            self.come += 1;
        }
        Ok(true)
    }
}
