//! The frames in rings and batches: a packet's bytes, and how much travels beside them.
//!
//! ```text
//! header   lane (1 bit) | kind (2 bits) | runs beside it (8) | bytes of the body (24); a word
//! body     the encoded packet, padded with zeroes to whole words
//! runs     one word a run: its bytes (48 bits) | bytes of one number (8 bits)
//! ```
//! Words are as this machine writes them: processes of one job are of one kind of machine, as MPI itself expects of
//! `MPI_BYTE`.

use Kind::{BodyBeside, Bye, Packet};

use crate::transport::ring::WORD;
use crate::wire::bulk::Attachment;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A packet, its bytes in the body.
    Packet = 0,
    /// A packet whose bytes travel beside the frame too, as its first run.
    BodyBeside = 1,
    /// The sender sends no more in this run.
    Bye = 2,
}

/// The way that a frame's runs take. Frames are in order with those of their lane only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Lane {
    Express = 0,
    Freight = 1,
}

/// A frame as it lies in a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Frame<'b> {
    pub(crate) lane: Lane,
    pub(crate) kind: Kind,
    pub(crate) body: &'b [u8],
    pub(crate) runs: &'b [[u8; WORD]],
}

/// A run of numbers beside a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Run {
    pub(crate) bytes: usize,
    pub(crate) alignment: u8,
}

impl Run {
    pub(crate) fn unpack(word: [u8; WORD]) -> Run {
        let word = u64::from_ne_bytes(word);
        Run { bytes: (word & ((1 << 48) - 1)) as usize, alignment: (word >> 48) as u8 }
    }

    fn pack(attachment: &Attachment) -> [u8; WORD] {
        (attachment.numbers.bytes().len() as u64 | u64::from(attachment.alignment) << 48).to_ne_bytes()
    }
}

/// Begins a frame at the end of a batch, for its body to be appended; returns where.
#[inline]
pub(crate) fn begin(batch: &mut Vec<u8>) -> usize {
    batch.extend_from_slice(&[0; WORD]);
    batch.len()
}

/// Ends the frame whose body begins at `start` and is all that follows.
#[inline]
pub(crate) fn end(batch: &mut Vec<u8>, start: usize, lane: Lane, kind: Kind, beside: &[Attachment]) {
    let bytes = batch.len() - start;
    let header = bytes as u64 | (beside.len() as u64) << 24 | (kind as u64) << 32 | (lane as u64) << 34;
    batch[start - WORD..start].copy_from_slice(&header.to_ne_bytes());
    batch.resize(batch.len().next_multiple_of(WORD), 0);
    beside.iter().for_each(|attachment| batch.extend_from_slice(&Run::pack(attachment)));
}

/// The frame at this place of a batch, and where the next one begins.
#[inline]
pub(crate) fn read(batch: &[u8], at: usize) -> (Frame<'_>, usize) {
    let (header, rest) = batch[at..].split_first_chunk().expect("a batch consists of whole frames");
    let header = u64::from_ne_bytes(*header);
    let (bytes, runs) = ((header & 0xff_ffff) as usize, (header >> 24 & 0xff) as usize);
    let padded = bytes.next_multiple_of(WORD);
    let kind = [Packet, BodyBeside, Bye, Bye][(header >> 32 & 3) as usize];
    let lane = [Lane::Express, Lane::Freight][(header >> 34 & 1) as usize];
    let runs = &rest[padded..][..runs * WORD];
    let next = at + WORD + padded + runs.len();
    (Frame { lane, kind, body: &rest[..bytes], runs: runs.as_chunks().0 }, next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Arc;

    proptest! {
        #[test]
        fn frames_come_out_as_they_went_in(
            frames in prop::collection::vec((any::<Vec<u8>>(), prop::collection::vec(1usize..100, 0..4), 0..6usize), 1..5),
        ) {
            let kind = |of: usize| [Packet, BodyBeside, Bye][of % 3];
            let lane = |of: usize| [Lane::Express, Lane::Freight][of / 3];
            let mut batch = Vec::new();
            for (body, runs, of) in &frames {
                let attachment = |&count: &usize| Attachment { numbers: Arc::new(vec![7u32; count]), alignment: 4 };
                let attachments: Vec<Attachment> = runs.iter().map(attachment).collect();
                let start = begin(&mut batch);
                batch.extend_from_slice(body);
                end(&mut batch, start, lane(*of), kind(*of), &attachments);
            }
            let mut at = 0;
            for (body, runs, of) in &frames {
                let (frame, next) = read(&batch, at);
                prop_assert_eq!((frame.lane, frame.kind), (lane(*of), kind(*of)));
                prop_assert_eq!(frame.body, body);
                let expected: Vec<Run> = runs.iter().map(|count| Run { bytes: count * 4, alignment: 4 }).collect();
                prop_assert_eq!(frame.runs.iter().map(|&word| Run::unpack(word)).collect::<Vec<_>>(), expected);
                at = next;
            }
            prop_assert_eq!(at, batch.len());
        }
    }
}
