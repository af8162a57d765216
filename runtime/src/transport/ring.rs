//! A ring of cache lines in shared memory, which moves batches of frames from one process to another of the same host.
//!
//! One process writes and one reads, without calling MPI. Each line carries its own ready flag, so a short message
//! moves a single cache line from one vCPU to another.
//!
//! ```text
//! line    control word | 7 words of a batch
//! control lap (32 bits, the highest always set) | in the first line of a batch: its number of words (32 bits)
//! batch   words, padded to whole lines
//! ```
//!
//! 1. The writer writes the words of a line, and then its control word (release), with the number of its lap.
//! 2. A line is ready when its control word has the current lap of the reader (acquire). A control word with the
//!    previous lap means that the line is not ready, whatever its other words are. The reader takes a batch when the
//!    last line of the batch is ready, because lines are written in order. So the reader never waits for a writer that
//!    was stopped or killed.
//! 3. The writer stays less than a ring ahead of the *tail*, the number of lines that the reader reports as read
//!    (release, acquire).
//! 4. All words are atomics. Only the orderings of control words and tail matter.
//! 5. Beside the tail, each end reports how many of the blocks that MPI carries it has sent or received. This file
//!    calls such blocks *runs*.
//!
//! A full ring is the back-pressure between processes of a host: the writer queues frames that do not fit. Loom tests
//! every interleaving of both ends, with shorter lines.

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
/// The position of the lap in a control word, bits.
const LAP_SHIFT: u32 = 32;
/// The bit of a lap that is always set, so that no lap equals the zeroes of new memory. The other bits count laps.
const LAP_SET: u64 = 1 << (63 - LAP_SHIFT);

/// The words of a ring's first line: the tail, the number of runs that the reader has received, and the number of runs
/// that have left the writer.
const TAIL: usize = 0;
const RECEIVED: usize = 1;
const LEFT: usize = 2;

/// Words of shared memory for a ring of `lines` lines. One more line holds the reports of both ends.
#[cfg(feature = "mpi")]
pub(crate) const fn footprint(lines: usize) -> usize {
    (lines + 1) * LINE_WORDS
}

/// A ring in words `W`, as both ends use it.
pub(crate) struct Ring<W> {
    said: W,
    words: W,
    /// Base-2 logarithm of the number of lines.
    lines_log2: u32,
}

impl<W: Deref<Target = [AtomicU64]>> Ring<W> {
    /// The ring in these words, which must be 0 at first. `said` is the line for the progress reports of both ends. The
    /// number of lines in `words` must be a power of two.
    pub(crate) fn new(said: W, words: W) -> Ring<W> {
        let lines = words.len() / LINE_WORDS;
        assert!(lines.is_power_of_two(), "places wrap by a mask");
        Ring { said, words, lines_log2: lines.trailing_zeros() }
    }

    /// Line number `number`, counted since the start.
    #[inline]
    fn line(&self, number: u64) -> &[AtomicU64; LINE_WORDS] {
        let at = number as usize & ((1 << self.lines_log2) - 1);
        self.words.as_chunks().0.get(at).expect("places are masked")
    }

    /// The lap in which line number `number` is written, as in its control word.
    #[inline]
    fn lap(&self, number: u64) -> u64 {
        (number >> self.lines_log2) & (LAP_SET - 1) | LAP_SET
    }

    fn lines(&self) -> u64 {
        1 << self.lines_log2
    }

    /// Stores a number of runs, if it differs.
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
    /// The tail as last read.
    tail: u64,
}

impl<W: Deref<Target = [AtomicU64]>> Writer<W> {
    pub(crate) fn new(ring: Ring<W>) -> Writer<W> {
        Writer { ring, written: 0, tail: 0 }
    }

    /// Writes a batch of whole words; the reader sees it at once. False if there is no room.
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

    /// Publishes the number of runs that have left, whose memory MPI has released.
    pub(crate) fn publish_sent(&self, runs: u64) {
        self.ring.publish(LEFT, runs);
    }

    /// Number of runs that the reader has received.
    pub(crate) fn received(&self) -> u64 {
        self.ring.said[RECEIVED].load(Ordering::Relaxed)
    }
}

/// The reading end.
pub(crate) struct Reader<W> {
    ring: Ring<W>,
    /// Number of lines read, and the last published tail.
    read: u64,
    published: u64,
}

impl<W: Deref<Target = [AtomicU64]>> Reader<W> {
    pub(crate) fn new(ring: Ring<W>) -> Reader<W> {
        Reader { ring, read: 0, published: 0 }
    }

    /// Tells whether a complete batch is ready.
    #[inline]
    pub(crate) fn ready(&self) -> bool {
        self.batch_words().is_some()
    }

    /// Number of words in the next batch, if its last line is ready. Else none: the writer may be stopped or dead.
    #[inline]
    fn batch_words(&self) -> Option<usize> {
        let words = self.control(self.read)? as u32 as usize;
        let last = self.read + (words.div_ceil(PAYLOAD_WORDS) as u64).saturating_sub(1);
        if last != self.read {
            self.control(last)?;
        }
        Some(words)
    }

    /// The control word of a line, if it is ready.
    #[inline]
    fn control(&self, number: u64) -> Option<u64> {
        let control = self.ring.line(number)[0].load(Ordering::Acquire);
        (control >> LAP_SHIFT == self.ring.lap(number)).then_some(control)
    }

    /// Publishes the number of runs that have been received.
    pub(crate) fn publish_received(&self, runs: u64) {
        self.ring.publish(RECEIVED, runs);
    }

    /// Number of runs that have left the writer.
    pub(crate) fn sent(&self) -> u64 {
        self.ring.said[LEFT].load(Ordering::Relaxed)
    }

    /// Appends the next batch to `batch`. False if there is none.
    #[inline]
    pub(crate) fn read(&mut self, batch: &mut Vec<u8>) -> bool {
        let Some(words) = self.batch_words() else { return false };
        let ring = &self.ring;
        let length = batch.len() + words * WORD;
        loop {
            let line = ring.line(self.read);
            // Copies all words of the line: testing for the end of the batch would take longer.
            let load: [_; PAYLOAD_WORDS] =
                std::array::from_fn(|word| line[1 + word].load(Ordering::Relaxed).to_ne_bytes());
            batch.extend_from_slice(load.as_flattened());
            self.read += 1;
            if batch.len() >= length {
                break;
            }
        }
        batch.truncate(length);
        // Rarely, because the writer's read of the tail takes the cache line away from the reader.
        if self.read - self.published >= ring.lines() / 4 {
            ring.said[TAIL].store(self.read, Ordering::Release);
            self.published = self.read;
        }
        true
    }
}

/// Memory of this process, for tests.
#[cfg(test)]
type Memory = std::sync::Arc<[AtomicU64]>;

/// Both ends of a ring of `lines` lines.
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
        assert_eq!(reader.read(&mut batch), ready, "a ready batch is read");
        ready.then_some(batch)
    }

    #[test]
    fn a_batch_that_is_half_written_is_not_ready() {
        let (mut writer, mut reader) = ends();
        let batch = [7u8; 3 * PAYLOAD_WORDS * WORD];
        for number in [0, 3, 6] {
            assert!(writer.write(&batch));
            // As if the writer had been stopped before the last line.
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
    fn each_end_reads_the_run_count_of_the_other() {
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

    /// The batches have one line or two, and exceed the ring in total. Each arrives whole, once and in order.
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
