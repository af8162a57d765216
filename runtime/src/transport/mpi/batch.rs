//! Frames between processes of different hosts: gathered into batches, one MPI message each, under credit.
//!
//! A batch begins with a word that says how many bytes of batches its sender has taken from its receiver so far: the
//! *grant*. Frames follow, as in a ring. One MPI call costs as much as a hundred small frames, so a batch leaves when it
//! is full, when it is old, or when its rank has nothing else to do.
//!
//! **Credit.** A process has at most [`WINDOW_BYTES`] under way to another, batches that the other has not taken from its
//! queue included. What is over waits at the sender, which then is *congested* (see
//! [`Transport::congested`](crate::transport::Transport::congested)). So a process that is stopped for long costs its
//! partners a bounded amount of memory, and none of it lies inside MPI.

use std::collections::VecDeque;
use std::sync::Arc;

use super::frame::{Frame, Header};
use super::raw::{Communicator, MpiError, Receiving, Sending};
use crate::core::bulk::Block;

/// The tag of batches.
pub(crate) const BATCH: u16 = 1;

/// A batch is full, words.
const FULL_WORDS: usize = 2 * 1024;
/// No batch is longer, words: a full one and the longest frame.
const WORDS_MAX: usize = 8 * 1024;
/// Bytes under way to one process.
const WINDOW_BYTES: u64 = 512 * 1024;
/// A batch that lay here for so long leaves, ns.
const OLD_NS: u64 = 10_000;
/// Receives that wait for batches.
const RECEIVES: usize = 4;

/// Frames on their way to one process.
#[derive(Default)]
pub(crate) struct Departures {
    /// The batch being filled; empty or with its first word.
    words: Vec<u64>,
    since_ns: u64,
    /// Bytes sent, and what of them the other has taken.
    sent: u64,
    granted: u64,
    sendings: VecDeque<Sending>,
}

impl Departures {
    /// Adds a frame. False if there is no credit for it.
    pub(crate) fn write(&mut self, frame: Frame<'_>, now_ns: u64) -> bool {
        let bytes = (self.words.len() + frame.words()) as u64 * 8;
        let under_way = self.sent - self.granted;
        if self.is_full() || (under_way > 0 && under_way + bytes > WINDOW_BYTES) {
            return false;
        }
        if self.words.is_empty() {
            self.since_ns = now_ns;
            self.words.push(0);
        }
        frame.write(|word| self.words.push(word));
        true
    }

    pub(crate) fn is_full(&self) -> bool {
        self.words.len() >= FULL_WORDS
    }

    /// Whether the batch has lain here for long.
    pub(crate) fn is_old(&self, now_ns: u64) -> bool {
        now_ns >= self.since_ns + OLD_NS
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Sends the batch, or only the grant if there is none.
    pub(crate) fn send(&mut self, to: u32, taken: u64, communicator: &Communicator) -> Result<(), MpiError> {
        let mut words = std::mem::take(&mut self.words);
        if words.is_empty() {
            words.push(taken);
        } else {
            words[0] = taken;
            self.sent += words.len() as u64 * 8;
        }
        self.sendings.push_back(communicator.send(to, BATCH, Arc::new(words))?);
        Ok(())
    }

    /// The other has taken so many bytes.
    pub(crate) fn grant(&mut self, taken: u64) {
        self.granted = self.granted.max(taken);
    }

    /// Lets go of what has left. True if everything has.
    pub(crate) fn settle(&mut self) -> Result<bool, MpiError> {
        while let Some(first) = self.sendings.front_mut() {
            if !first.test()? {
                return Ok(false);
            }
            self.sendings.pop_front();
        }
        Ok(true)
    }
}

/// Batches of one process that have come and are not taken yet.
#[derive(Default)]
pub(crate) struct Arrivals {
    batches: VecDeque<Vec<u64>>,
    /// Words of the first batch that were read.
    read: usize,
    /// Bytes taken, and what of it the sender was told.
    taken: u64,
    told: u64,
}

impl Arrivals {
    pub(crate) fn ready(&self) -> bool {
        !self.batches.is_empty()
    }

    /// Reads the next frame, as [`Reader::read`](super::ring::Reader::read).
    pub(crate) fn read(&mut self, beside: &mut Vec<u64>, bytes: &mut Vec<u8>) -> Option<Header> {
        let batch = self.batches.front()?;
        let mut words = batch[self.read..].iter();
        let header = Header::read(beside, bytes, || *words.next().expect("a batch consists of whole frames"));
        self.read += header.words();
        if self.read == batch.len() {
            self.taken += batch.len() as u64 * 8;
            self.batches.pop_front();
            self.read = 1;
        }
        Some(header)
    }

    /// Takes in a batch; returns the grant in it.
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

    /// Whether the sender should hear how much was taken, because it may be waiting.
    pub(crate) fn owes_grant(&self) -> bool {
        self.taken - self.told >= WINDOW_BYTES / 4
    }

    /// What to tell the sender.
    pub(crate) fn tell(&mut self) -> u64 {
        self.told = self.taken;
        self.taken
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
