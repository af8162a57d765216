//! Frames on their way, gathered into batches.
//!
//! A batch is a row of frames, each with its header before it. To a process of the same host it goes through a ring, to
//! others as an MPI message, whose first word says how many bytes of batches its sender has taken from its receiver so
//! far: the *grant*. A batch leaves when it is full, when its rank looks for messages (ring) or it is old (MPI), and when
//! its rank has nothing else to do: one MPI call costs as much as a hundred small frames, and several frames share a cache
//! line.
//!
//! **Credit.** A process has at most [`WINDOW_BYTES`] under way to a process of another host, batches that the other has
//! not taken from its queue included; in a ring there is the room that there is. What is over waits at the sender, which
//! then is *congested* (see [`Transport::congested`](crate::transport::Transport::congested)). So a process that is
//! stopped for long costs its partners a bounded amount of memory, and none of it lies inside MPI.

use std::collections::VecDeque;
use std::sync::Arc;

use super::frame::{Frame, Header};
use super::raw::{Communicator, MpiError, Receiving, Sending};
use super::ring::{Reader, Writer};
use crate::core::bulk::Block;

/// The tag of batches.
pub(crate) const BATCH: u16 = 1;

/// A batch is full, words: for a ring 32 lines, so that the reader can begin; for MPI 16 KiB.
const RING_WORDS: usize = 7 * 32;
const MPI_WORDS: usize = 2 * 1024;
/// No batch is longer, words: a full one and the longest frame.
pub(crate) const WORDS_MAX: usize = 8 * 1024;
/// Bytes under way to a process of another host.
const WINDOW_BYTES: u64 = 512 * 1024;
/// A batch for MPI that lay here for so long leaves, ns.
const OLD_NS: u64 = 10_000;
/// Receives that wait for batches.
const RECEIVES: usize = 4;

/// How batches leave.
enum Out {
    Ring(Writer),
    Mpi(Credit),
}

#[derive(Default)]
struct Credit {
    /// Bytes sent, and what of them the other has taken.
    sent: u64,
    granted: u64,
    sendings: VecDeque<Sending>,
}

/// Frames on their way to one process.
pub(crate) struct Departures {
    words: Vec<u64>,
    since_ns: u64,
    out: Out,
}

impl Departures {
    pub(crate) fn by_ring(writer: Writer) -> Departures {
        Departures { words: Vec::new(), since_ns: 0, out: Out::Ring(writer) }
    }

    pub(crate) fn by_mpi() -> Departures {
        Departures { words: Vec::new(), since_ns: 0, out: Out::Mpi(Credit::default()) }
    }

    /// Whether age matters: a batch in a ring leaves at the next look anyway.
    pub(crate) fn ages(&self) -> bool {
        matches!(self.out, Out::Mpi(_))
    }

    /// Adds a frame. False if the batch is full, and has to leave first.
    #[inline]
    pub(crate) fn write(&mut self, frame: Frame<'_>, now_ns: u64) -> bool {
        if self.is_full() {
            return false;
        }
        if self.words.is_empty() {
            self.since_ns = now_ns;
            if self.ages() {
                // The place of the grant.
                self.words.push(0);
            }
        }
        self.words.push(frame.header().pack());
        frame.write(|word| self.words.push(word));
        true
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.words.len() >= if self.ages() { MPI_WORDS } else { RING_WORDS }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    pub(crate) fn is_old(&self, now_ns: u64) -> bool {
        !self.ages() || now_ns >= self.since_ns + OLD_NS
    }

    /// Lets the batch go. False if there is no room, or no credit, for it. `taken` goes with it.
    #[inline]
    pub(crate) fn ship(
        &mut self,
        to: u32,
        taken: u64,
        communicator: &Communicator,
    ) -> Result<bool, MpiError> {
        match &mut self.out {
            Out::Ring(ring) => {
                let left = ring.write(&self.words);
                if left {
                    self.words.clear();
                }
                Ok(left)
            }
            Out::Mpi(credit) => {
                let bytes = self.words.len() as u64 * 8;
                let under_way = credit.sent - credit.granted;
                if under_way > 0 && under_way + bytes > WINDOW_BYTES {
                    return Ok(false);
                }
                credit.sent += bytes;
                let mut words = std::mem::take(&mut self.words);
                words[0] = taken;
                credit.sendings.push_back(communicator.send(to, BATCH, Arc::new(words))?);
                Ok(true)
            }
        }
    }

    /// Tells the other how much was taken from it, with no frame.
    pub(crate) fn send_grant(
        &mut self,
        to: u32,
        taken: u64,
        communicator: &Communicator,
    ) -> Result<(), MpiError> {
        if let Out::Mpi(credit) = &mut self.out {
            credit.sendings.push_back(communicator.send(to, BATCH, Arc::new(vec![taken]))?);
        }
        Ok(())
    }

    /// The other has taken so many bytes.
    pub(crate) fn grant(&mut self, taken: u64) {
        if let Out::Mpi(credit) = &mut self.out {
            credit.granted = credit.granted.max(taken);
        }
    }

    /// Lets go of what has left. True if everything has.
    pub(crate) fn settle(&mut self) -> Result<bool, MpiError> {
        let Out::Mpi(credit) = &mut self.out else { return Ok(true) };
        while let Some(first) = credit.sendings.front_mut() {
            if !first.test()? {
                return Ok(false);
            }
            credit.sendings.pop_front();
        }
        Ok(true)
    }
}

/// Frames of one process that have come and are not read yet.
pub(crate) enum Arrivals {
    Ring(Reader),
    Mpi(Queue),
}

/// Batches that came as MPI messages.
#[derive(Default)]
pub(crate) struct Queue {
    batches: VecDeque<Vec<u64>>,
    /// Words of the first batch that were read.
    read: usize,
    /// Bytes taken, and what of it the sender was told.
    taken: u64,
    told: u64,
}

impl Arrivals {
    #[inline]
    pub(crate) fn ready(&self) -> bool {
        match self {
            Arrivals::Ring(ring) => ring.ready(),
            Arrivals::Mpi(queue) => !queue.batches.is_empty(),
        }
    }

    /// Reads the next frame: its header, its words on what travels beside it, and its bytes, which replace those in `bytes`.
    #[inline]
    pub(crate) fn read(&mut self, beside: &mut Vec<u64>, bytes: &mut Vec<u8>) -> Option<Header> {
        match self {
            Arrivals::Ring(ring) => ring.begin().then(|| {
                let header = Header::unpack(ring.word());
                header.read(beside, bytes, || ring.word());
                header
            }),
            Arrivals::Mpi(queue) => queue.read(beside, bytes),
        }
    }

    /// What to tell the sender, if it may be waiting for it.
    #[inline]
    pub(crate) fn owed_grant(&mut self) -> Option<u64> {
        let Arrivals::Mpi(queue) = self else { return None };
        (queue.taken - queue.told >= WINDOW_BYTES / 4).then(|| queue.tell())
    }

    /// What a batch tells its receiver.
    pub(crate) fn grant(&mut self) -> u64 {
        match self {
            Arrivals::Ring(_) => 0,
            Arrivals::Mpi(queue) => queue.tell(),
        }
    }

    /// Takes in a batch; returns the grant in it.
    fn come(&mut self, batch: Vec<u64>) -> u64 {
        match self {
            Arrivals::Ring(_) => unreachable!("processes of one host send no batches by MPI"),
            Arrivals::Mpi(queue) => queue.come(batch),
        }
    }
}

impl Queue {
    fn read(&mut self, beside: &mut Vec<u64>, bytes: &mut Vec<u8>) -> Option<Header> {
        let batch = self.batches.front()?;
        let mut words = batch[self.read..].iter();
        let mut take = || *words.next().expect("a batch consists of whole frames");
        let header = Header::unpack(take());
        header.read(beside, bytes, take);
        self.read += 1 + header.words();
        if self.read == batch.len() {
            self.taken += batch.len() as u64 * 8;
            self.batches.pop_front();
            self.read = 1;
        }
        Some(header)
    }

    fn tell(&mut self) -> u64 {
        self.told = self.taken;
        self.taken
    }

    fn come(&mut self, batch: Vec<u64>) -> u64 {
        let grant = batch.first().copied().unwrap_or(0);
        if batch.len() > 1 {
            if self.batches.is_empty() {
                self.read = 1;
            }
            self.batches.push_back(batch);
        }
        grant
    }
}

/// The receives that wait for batches of anybody, in the order in which MPI fills them.
pub(crate) struct Waiting {
    receives: VecDeque<Receiving>,
}

impl Waiting {
    pub(crate) fn start(communicator: &Communicator) -> Result<Waiting, MpiError> {
        let receives = (0..RECEIVES).map(|_| communicator.receive_any(BATCH, WORDS_MAX * 8));
        Ok(Waiting { receives: receives.collect::<Result<_, _>>()? })
    }

    /// Whether a batch has come.
    #[inline]
    pub(crate) fn ready(&mut self) -> Result<bool, MpiError> {
        self.receives.front_mut().map_or(Ok(false), Receiving::test)
    }

    /// The next batch that has come is added to its sender's; returns who that is, and the grant in it.
    pub(crate) fn take<'a>(
        &mut self,
        communicator: &Communicator,
        arrivals: impl FnOnce(u32) -> &'a mut Arrivals,
    ) -> Result<Option<(u32, u64)>, MpiError> {
        if !self.ready()? {
            return Ok(None);
        }
        let first = self.receives.pop_front().expect("one was ready");
        self.receives.push_back(communicator.receive_any(BATCH, WORDS_MAX * 8)?);
        let (from, Block::Eight(batch)) = first.take() else { unreachable!("batches are words") };
        Ok(Some((from, arrivals(from).come(batch))))
    }
}
