//! A ring of words in shared memory: frames from one process to another of the same host.
//!
//! One process writes, one reads. A *frame* is a header word, a word for each run of numbers that travels beside it, and
//! its bytes, padded to whole words. MPI is not involved, so a short message costs what a cache line costs.
//!
//! | word | written by | meaning |
//! |---|---|---|
//! | head | the writer, after the frames it covers (release) | words written since the start |
//! | tail | the reader, after it has read them (release) | words read since the start |
//!
//! 1. The writer writes words in `tail + capacity` and below, never at or above; it learns of room by the tail (acquire).
//! 2. The reader reads words below the head (acquire), which are all of whole frames.
//! 3. Words are atomics that nobody needs any order of but through head and tail.
//!
//! A full ring is the back-pressure between processes of a host: the writer keeps what does not fit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::frame::{Frame, Header};
use super::raw::{Window, Words};

/// Words before the ring's own: a cache line each for head and tail.
const CONTROL_WORDS: usize = 16;
const TAIL_AT: usize = 8;

/// Words that a ring takes in its window.
pub(crate) const fn footprint(capacity: usize) -> usize {
    CONTROL_WORDS + capacity
}

/// A ring, as either end sees it.
pub(crate) struct Ring {
    control: Words,
    words: Words,
}

impl Ring {
    /// The ring in the part of process `part`, its reader's, from word `at` on; `capacity` is a power of two.
    pub(crate) fn new(window: &Arc<Window>, part: u32, at: usize, capacity: usize) -> Ring {
        assert!(capacity.is_power_of_two(), "places wrap by a mask");
        let own = at + CONTROL_WORDS;
        Ring { control: window.words(part, at..own), words: window.words(part, own..own + capacity) }
    }

    #[inline]
    fn head(&self) -> &AtomicU64 {
        &self.control[0]
    }

    #[inline]
    fn tail(&self) -> &AtomicU64 {
        &self.control[TAIL_AT]
    }
}

/// The writing end.
pub(crate) struct Writer {
    ring: Ring,
    /// Written, and of that made visible; the tail as last seen.
    written: u64,
    published: u64,
    tail: u64,
}

impl Writer {
    pub(crate) fn new(ring: Ring) -> Writer {
        Writer { ring, written: 0, published: 0, tail: 0 }
    }

    /// Writes a frame, which the reader sees once it is [published](Self::publish). False if there is no room.
    #[inline]
    pub(crate) fn write(&mut self, frame: Frame<'_>) -> bool {
        let words = &*self.ring.words;
        let needed = frame.words() as u64;
        let room = |tail: u64| words.len() as u64 - (self.written - tail) >= needed;
        if !room(self.tail) {
            self.tail = self.ring.tail().load(Ordering::Acquire);
            if !room(self.tail) {
                return false;
            }
        }
        let mask = words.len() - 1;
        let mut at = self.written as usize;
        frame.write(|word| {
            words[at & mask].store(word, Ordering::Relaxed);
            at += 1;
        });
        self.written += needed;
        true
    }

    /// Words that the reader cannot see yet.
    #[inline]
    pub(crate) fn unpublished(&self) -> u64 {
        self.written - self.published
    }

    /// Shows the reader everything written so far.
    #[inline]
    pub(crate) fn publish(&mut self) {
        self.ring.head().store(self.written, Ordering::Release);
        self.published = self.written;
    }
}

/// The reading end.
pub(crate) struct Reader {
    ring: Ring,
    /// Read, and of that told to the writer; the head as last seen.
    read: u64,
    told: u64,
    head: u64,
}

impl Reader {
    pub(crate) fn new(ring: Ring) -> Reader {
        Reader { ring, read: 0, told: 0, head: 0 }
    }

    /// Whether there is a frame.
    #[inline]
    pub(crate) fn ready(&self) -> bool {
        self.head != self.read || self.ring.head().load(Ordering::Relaxed) != self.read
    }

    /// Reads the next frame: its header, its words on what travels beside it, and its bytes, which replace those in `bytes`.
    #[inline]
    pub(crate) fn read(&mut self, beside: &mut Vec<u64>, bytes: &mut Vec<u8>) -> Option<Header> {
        let words = &*self.ring.words;
        if self.head == self.read {
            self.head = self.ring.head().load(Ordering::Acquire);
            if self.head == self.read {
                return None;
            }
        }
        let mask = words.len() - 1;
        let mut at = self.read as usize;
        let header = Header::read(beside, bytes, || {
            let word = words[at & mask].load(Ordering::Relaxed);
            at += 1;
            word
        });
        self.read += header.words() as u64;
        // Told now and then: the writer's look at the tail takes the line away from us.
        if self.read - self.told >= words.len() as u64 / 4 || self.read == self.head {
            self.ring.tail().store(self.read, Ordering::Release);
            self.told = self.read;
        }
        Some(header)
    }
}
