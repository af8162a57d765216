//! A ring of cache lines in shared memory: batches of frames from one process to another of the same host.
//!
//! One process writes, one reads, and MPI is not involved. Each line says for itself that it is there, so a short message
//! is one cache line on its way from one vCPU to another, and nothing else.
//!
//! ```text
//! line    control word | 7 words of a batch
//! control lap (32 bits, the highest always set) | in a batch's first line: how many words it has (32 bits)
//! batch   words, padded to whole lines
//! ```
//!
//! 1. The writer writes the words of a line, then its control word (release), with the number of its lap around the ring.
//! 2. A line is there when its control word shows the lap that the reader is in (acquire). What stands there from the lap
//!    before is no line, whatever its words are. The reader takes a batch when its last line is there: lines are written in
//!    order, and for one that a stopped or killed process never writes nobody waits here.
//! 3. The writer stays less than a ring ahead of the *tail*, the lines that the reader says it has read (release, acquire).
//! 4. All words are atomics that nobody needs any order of but through control words and tail.
//! 5. Beside the tail each end says how far it is with the runs of numbers that MPI carries (a transport says what they are).
//!
//! A full ring is the back-pressure between processes of a host: the writer keeps what does not fit.
//!
//! Loom tries every interleaving of both ends, on lines that are shorter.

use std::ops::Deref;

use crate::threads::sync::{AtomicU64, Ordering};

/// Bytes of a word.
pub(crate) const WORD: usize = 8;

#[cfg(not(loom))]
pub(crate) const LINE_WORDS: usize = 8;
#[cfg(loom)]
pub(crate) const LINE_WORDS: usize = 3;
/// Words of a batch in each line.
const PAYLOAD_WORDS: usize = LINE_WORDS - 1;
/// The place of the lap in a control word.
const LAP_SHIFT: u32 = 32;
/// This bit of a lap is set, so that it is never what fresh memory shows; the others count.
const LAP_SET: u64 = 1 << (63 - LAP_SHIFT);

/// The words of a ring's first line: its tail, the number of runs that its reader has received, and the number that
/// have left its writer.
const TAIL: usize = 0;
const RECEIVED: usize = 1;
const LEFT: usize = 2;

/// Words that a ring of so many lines takes in its window: a line more, for what its ends tell each other.
#[cfg(feature = "mpi")]
pub(crate) const fn footprint(lines: usize) -> usize {
    (lines + 1) * LINE_WORDS
}

/// A ring in words `W`, as either end sees it.
pub(crate) struct Ring<W> {
    said: W,
    words: W,
    /// Its lines are two to the power of this.
    lines_log2: u32,
}

impl<W: Deref<Target = [AtomicU64]>> Ring<W> {
    /// The ring in these words, which are 0 at first: a line for what its ends tell each other, and a power of two of lines.
    pub(crate) fn new(said: W, words: W) -> Ring<W> {
        let lines = words.len() / LINE_WORDS;
        assert!(lines.is_power_of_two(), "places wrap by a mask");
        Ring { said, words, lines_log2: lines.trailing_zeros() }
    }

    /// The line with this number since the start.
    #[inline]
    fn line(&self, number: u64) -> &[AtomicU64; LINE_WORDS] {
        let at = number as usize & ((1 << self.lines_log2) - 1);
        self.words.as_chunks().0.get(at).expect("places are masked")
    }

    /// The lap in which that line is written, as its control word shows it.
    #[inline]
    fn lap(&self, number: u64) -> u64 {
        (number >> self.lines_log2) & (LAP_SET - 1) | LAP_SET
    }

    fn lines(&self) -> u64 {
        1 << self.lines_log2
    }

    /// Says a number of runs, if it is not what was said last.
    fn publish(&self, place: usize, runs: u64) {
        let word = &self.said[place];
        if word.load(Ordering::Relaxed) != runs {
            word.store(runs, Ordering::Relaxed);
        }
    }
}

/// The writing end.
pub(crate) struct Writer<W> {
    ring: Ring<W>,
    written: u64,
    /// As last seen.
    tail: u64,
}

impl<W: Deref<Target = [AtomicU64]>> Writer<W> {
    pub(crate) fn new(ring: Ring<W>) -> Writer<W> {
        Writer { ring, written: 0, tail: 0 }
    }

    /// Writes a batch of whole words, for the reader to see at once. False if there is no room.
    #[inline]
    pub(crate) fn write(&mut self, batch: &[u8]) -> bool {
        let (words, _) = batch.as_chunks::<WORD>();
        let lines = words.len().div_ceil(PAYLOAD_WORDS) as u64;
        if self.written + lines - self.tail > self.ring.lines() {
            self.tail = self.ring.said[TAIL].load(Ordering::Acquire);
            if self.written + lines - self.tail > self.ring.lines() {
                return false;
            }
        }
        let mut count = words.len() as u64;
        for (number, load) in (self.written..).zip(words.chunks(PAYLOAD_WORDS)) {
            let line = self.ring.line(number);
            for (place, word) in line[1..].iter().zip(load) {
                place.store(u64::from_ne_bytes(*word), Ordering::Relaxed);
            }
            line[0].store(count | self.ring.lap(number) << LAP_SHIFT, Ordering::Release);
            count = 0;
        }
        self.written += lines;
        true
    }

    /// So many runs have left: MPI has let go of them.
    pub(crate) fn publish_sent(&self, runs: u64) {
        self.ring.publish(LEFT, runs);
    }

    /// Number of runs that the other has received.
    pub(crate) fn received(&self) -> u64 {
        self.ring.said[RECEIVED].load(Ordering::Relaxed)
    }
}

/// The reading end.
pub(crate) struct Reader<W> {
    ring: Ring<W>,
    /// Lines read, and what of that the writer was told.
    read: u64,
    published: u64,
}

impl<W: Deref<Target = [AtomicU64]>> Reader<W> {
    pub(crate) fn new(ring: Ring<W>) -> Reader<W> {
        Reader { ring, read: 0, published: 0 }
    }

    /// Tells whether a whole batch is there.
    #[inline]
    pub(crate) fn ready(&self) -> bool {
        self.batch_words().is_some()
    }

    /// Number of words in the next batch, once its last line is there. None otherwise: the writer may be stopped, or
    /// dead.
    #[inline]
    fn batch_words(&self) -> Option<usize> {
        let words = self.control(self.read)? as u32 as usize;
        let last = self.read + (words.div_ceil(PAYLOAD_WORDS) as u64).saturating_sub(1);
        if last != self.read {
            self.control(last)?;
        }
        Some(words)
    }

    /// The control word of a line that is there.
    #[inline]
    fn control(&self, number: u64) -> Option<u64> {
        let control = self.ring.line(number)[0].load(Ordering::Acquire);
        (control >> LAP_SHIFT == self.ring.lap(number)).then_some(control)
    }

    /// So many runs have been received.
    pub(crate) fn publish_received(&self, runs: u64) {
        self.ring.publish(RECEIVED, runs);
    }

    /// Number of runs that have left the other.
    pub(crate) fn sent(&self) -> u64 {
        self.ring.said[LEFT].load(Ordering::Relaxed)
    }

    /// Appends the next batch. False if there is none.
    #[inline]
    pub(crate) fn read(&mut self, batch: &mut Vec<u8>) -> bool {
        let Some(words) = self.batch_words() else { return false };
        let ring = &self.ring;
        let length = batch.len() + words * WORD;
        loop {
            let line = ring.line(self.read);
            // All of them: words behind the batch's last are cheaper to copy than to tell apart.
            let load: [_; PAYLOAD_WORDS] =
                std::array::from_fn(|word| line[1 + word].load(Ordering::Relaxed).to_ne_bytes());
            batch.extend_from_slice(load.as_flattened());
            self.read += 1;
            if batch.len() >= length {
                break;
            }
        }
        batch.truncate(length);
        // Told now and then: the writer's look at the tail takes the line away from us.
        if self.read - self.published >= ring.lines() / 4 {
            ring.said[TAIL].store(self.read, Ordering::Release);
            self.published = self.read;
        }
        true
    }
}

/// Memory of this process.
#[cfg(test)]
type Memory = std::sync::Arc<[AtomicU64]>;

/// Both ends of a ring of so many lines.
#[cfg(test)]
fn ends_of(lines: usize) -> (Writer<Memory>, Reader<Memory>) {
    let words = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect::<Memory>();
    let (said, words) = (words(LINE_WORDS), words(lines * LINE_WORDS));
    let ring = || Ring::new(said.clone(), words.clone());
    (Writer::new(ring()), Reader::new(ring()))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Both ends of a ring of 8 lines.
    fn ends() -> (Writer<Memory>, Reader<Memory>) {
        ends_of(8)
    }

    fn read(reader: &mut Reader<Memory>) -> Option<Vec<u8>> {
        let mut batch = Vec::new();
        let ready = reader.ready();
        assert_eq!(reader.read(&mut batch), ready, "what is ready is read");
        ready.then_some(batch)
    }

    #[test]
    fn a_batch_that_is_half_written_is_not_there_yet() {
        let (mut writer, mut reader) = ends();
        let batch = [7u8; 3 * PAYLOAD_WORDS * WORD];
        for number in [0, 3, 6] {
            assert!(writer.write(&batch));
            // As if its writer had been stopped before the last line.
            let last = &writer.ring.line(number + 2)[0];
            let control = last.swap(0, Ordering::Relaxed);
            assert_eq!(read(&mut reader), None);
            last.store(control, Ordering::Release);
            assert_eq!(read(&mut reader).as_deref(), Some(&batch[..]));
        }
    }

    #[test]
    fn a_ring_is_full_until_its_reader_has_read() {
        let (mut writer, mut reader) = ends();
        let batch = |number: u8| [number; 4 * WORD];
        for lap in 0..3 {
            for line in 0..8 {
                assert!(writer.write(&batch(8 * lap + line)));
            }
            assert!(!writer.write(&batch(0)));
            for line in 0..8 {
                assert_eq!(read(&mut reader).as_deref(), Some(&batch(8 * lap + line)[..]));
            }
            assert_eq!(read(&mut reader), None);
        }
    }

    #[test]
    fn each_end_hears_how_far_the_other_is_with_runs() {
        let (writer, reader) = ends();
        writer.publish_sent(3);
        reader.publish_received(2);
        assert_eq!((reader.sent(), writer.received()), (3, 2));
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::thread;

    /// Batches of one line and of two, more than the ring has lines: each comes whole, once and in order.
    #[test]
    fn loom_batches_come_whole_and_in_order_around_a_ring_that_is_full() {
        const BATCHES: u8 = 3;
        let batch = |number: u8| vec![number + 1; (PAYLOAD_WORDS + usize::from(number % 2)) * WORD];
        loom::model(move || {
            let (mut writer, mut reader) = ends_of(2);
            let other = thread::spawn(move || {
                for number in 0..BATCHES {
                    while !writer.write(&batch(number)) {
                        thread::yield_now();
                    }
                    writer.publish_sent(number.into());
                }
                assert!(writer.received() < BATCHES.into());
            });
            for number in 0..BATCHES {
                let mut read = Vec::new();
                while !reader.read(&mut read) {
                    thread::yield_now();
                }
                assert_eq!(read, batch(number));
                reader.publish_received(number.into());
            }
            assert!(!reader.ready() && reader.sent() < BATCHES.into());
            other.join().expect("the writer does not panic");
        });
    }
}
