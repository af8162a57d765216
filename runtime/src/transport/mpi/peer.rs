//! One process' link to another: frames out and in, over a ring or in batches, and what travels beside them.
//!
//! Order is kept on every way at once: frames are read in the order they were written; a run of numbers is a message of
//! its own under one tag, sent when its frame is written and awaited when its frame is read, and MPI keeps the order of
//! messages with one tag. A frame whose runs are still coming holds up those behind it, which may be read meanwhile.

use std::collections::VecDeque;
use std::sync::Arc;

use super::batch::{Arrivals, Departures};
use super::frame::{Frame, Kind, Run};
use super::raw::{Communicator, MpiError, Receiving, Sending};
use crate::core::bulk::{Attachment, Block};

/// The tag of runs of numbers.
const RUN: u16 = 2;
/// Longer bodies travel beside their frame.
const BODY_BYTES_MAX: usize = 16 * 1024;
/// Bytes beside frames that are under way to, or from, one process.
const BESIDE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes that may wait for one receiver before the sender counts as congested.
const WAITING_BYTES_MAX: usize = 4 * 1024 * 1024;

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

/// A packet as it came.
pub(crate) struct Arrived {
    pub(crate) kind: Kind,
    pub(crate) body: Vec<u8>,
    pub(crate) blocks: VecDeque<Block>,
}

/// The link to one other process.
pub(crate) struct Peer {
    pub(crate) rank: u32,
    pub(crate) departures: Departures,
    pub(crate) arrivals: Arrivals,
    waiting: VecDeque<Kept>,
    waiting_bytes: usize,
    sendings: VecDeque<Sending>,
    sending_bytes: usize,
    arriving: VecDeque<Arriving>,
    arriving_bytes: usize,
    beside: Vec<u64>,
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
            sendings: VecDeque::new(),
            sending_bytes: 0,
            arriving: VecDeque::new(),
            arriving_bytes: 0,
            beside: Vec::new(),
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

    /// Sends a frame, now or when there is room. `body` may be taken.
    #[inline]
    pub(crate) fn send(
        &mut self,
        mut kind: Kind,
        body: &mut Vec<u8>,
        mut beside: Vec<Attachment>,
        now_ns: u64,
        communicator: &Communicator,
    ) -> Result<(), MpiError> {
        if body.len() > BODY_BYTES_MAX {
            kind = Kind::BodyBeside;
            beside.insert(0, Attachment { numbers: Arc::new(std::mem::take(body)), width: 1 });
        }
        if self.waiting.is_empty()
            && self.write(Frame { kind, body, beside: &beside }, now_ns, communicator)?
        {
            return Ok(());
        }
        let kept = Kept { kind, body: std::mem::take(body), beside };
        self.waiting_bytes += kept.bytes();
        self.waiting.push_back(kept);
        Ok(())
    }

    fn write(
        &mut self,
        frame: Frame<'_>,
        now_ns: u64,
        communicator: &Communicator,
    ) -> Result<bool, MpiError> {
        if !frame.beside.is_empty() && self.sending_bytes > BESIDE_BYTES_MAX {
            return Ok(false);
        }
        let written = self.departures.write(frame, now_ns);
        if written {
            for attachment in frame.beside {
                let sending = communicator.send(self.rank, RUN, attachment.numbers.clone())?;
                self.sending_bytes += sending.len();
                self.sendings.push_back(sending);
            }
        }
        Ok(written)
    }

    /// Lets the batch go, if there is one and room for it. True if nothing is left of it.
    #[inline]
    pub(crate) fn ship(&mut self, communicator: &Communicator) -> Result<bool, MpiError> {
        Ok(self.departures.is_empty()
            || self.departures.ship(self.rank, self.arrivals.grant(), communicator)?)
    }

    /// Sends what waited for room, as far as there is some. True if nothing waits any more.
    pub(crate) fn retry(&mut self, now_ns: u64, communicator: &Communicator) -> Result<bool, MpiError> {
        while let Some(kept) = self.waiting.pop_front() {
            let frame = Frame { kind: kept.kind, body: &kept.body, beside: &kept.beside };
            if !self.write(frame, now_ns, communicator)? {
                self.waiting.push_front(kept);
                return Ok(false);
            }
            self.waiting_bytes -= kept.bytes();
        }
        Ok(true)
    }

    /// Lets go of runs that have left. True if all have.
    pub(crate) fn settle(&mut self) -> Result<bool, MpiError> {
        while let Some(first) = self.sendings.front_mut() {
            if !first.test()? {
                return Ok(false);
            }
            self.sending_bytes -= first.len();
            self.sendings.pop_front();
        }
        Ok(true)
    }

    pub(crate) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(crate) fn is_congested(&self) -> bool {
        self.waiting_bytes > WAITING_BYTES_MAX
    }

    /// Whether a run is under way, in either direction: MPI has to be called for it to come on.
    pub(crate) fn transfers(&self) -> bool {
        !self.sendings.is_empty() || !self.arriving.is_empty()
    }

    /// Whether a frame is there to be read, or one that was read is whole.
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

    /// The next packet. A small one lies in `body`, whose contents are replaced: then there is `None` in its place.
    #[inline]
    pub(crate) fn next(
        &mut self,
        body: &mut Vec<u8>,
        communicator: &Communicator,
    ) -> Result<Option<(Kind, Option<Arrived>)>, MpiError> {
        while !self.gone
            && self.arriving_bytes < BESIDE_BYTES_MAX
            && let Some(header) = self.arrivals.read(&mut self.beside, body)
        {
            self.gone = header.kind == Kind::Bye;
            if self.beside.is_empty() && self.arriving.is_empty() {
                return Ok(Some((header.kind, None)));
            }
            self.await_runs(header.kind, std::mem::take(body), communicator)?;
        }
        let Some(first) = self.arriving.front_mut() else { return Ok(None) };
        if !first.is_whole()? {
            return Ok(None);
        }
        let Arriving { kind, body, runs, bytes, .. } = self.arriving.pop_front().expect("it was looked at");
        self.arriving_bytes -= bytes;
        let blocks = runs.into_iter().map(|run| run.take().1).collect();
        Ok(Some((kind, Some(Arrived { kind, body, blocks }))))
    }

    /// Prepares for the runs of the frame that was just read.
    fn await_runs(&mut self, kind: Kind, body: Vec<u8>, communicator: &Communicator) -> Result<(), MpiError> {
        let (mut runs, mut bytes) = (Vec::with_capacity(self.beside.len()), 0);
        for &word in &self.beside {
            let run = Run::unpack(word);
            bytes += run.bytes;
            runs.push(communicator.receive(self.rank, RUN, run.bytes, run.width)?);
        }
        self.arriving_bytes += bytes;
        self.arriving.push_back(Arriving { kind, body, runs, bytes, come: 0 });
        Ok(())
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
