//! The format of frames in rings and batches: the bytes of a packet, and the lengths of the blocks beside it.
//!
//! ```text
//! header   kind (2 bits) | lane (1) | blocks beside it (8) | bytes of the body (24); a word, its other bits 0
//! body     the encoded packet, padded with zeroes to whole words
//! blocks   one word per block: its bytes (48 bits) | bytes of one number (8 bits)
//! ```
//! Words have the byte order of this machine, because the processes of a job run on one kind of machine. MPI requires
//! the same for `MPI_BYTE`.
//!
//! Malformed bytes are detected: a process that writes out of bounds ends the run, but does not crash its receiver.

use Kind::{BodyBeside, Bye, Packet};
use Lane::{Express, Freight};

use crate::transport::ring::WORD;
use crate::wire::bulk::Attachment;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A packet with its bytes in the body.
    Packet = 0,
    /// A packet with its bytes in the first block beside the frame.
    BodyBeside = 1,
    /// Nothing more is sent in this run.
    Bye = 2,
}

/// The lane of a frame and its blocks. Frames are in order only within their lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Lane {
    Express = 0,
    Freight = 1,
}

/// The kinds and lanes, by the bits of a header above the two lengths.
const KINDS: [(Kind, Lane); 6] = [
    (Packet, Express),
    (Packet, Freight),
    (BodyBeside, Express),
    (BodyBeside, Freight),
    (Bye, Express),
    (Bye, Freight),
];

/// Maximum bytes of a body, and the mask of this length in a header. If the other bits are 0, the frame is a packet of
/// the express lane without blocks.
const HEADER_BYTES: usize = (1 << 24) - 1;

/// Bytes that are not a whole valid frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Malformed;

/// A frame, borrowed from its batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Frame<'b> {
    pub(crate) lane: Lane,
    pub(crate) kind: Kind,
    pub(crate) body: &'b [u8],
    pub(crate) blocks: &'b [[u8; WORD]],
}

/// The size and alignment of a block beside a frame, both in bytes, as in the frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Announced {
    pub(crate) bytes: usize,
    pub(crate) alignment: u8,
}

impl Announced {
    fn unpack(word: [u8; WORD]) -> Result<Announced, Malformed> {
        let word = u64::from_ne_bytes(word);
        let (bytes, alignment) = ((word & ((1 << 48) - 1)) as usize, word >> 48);
        match alignment {
            1 | 2 | 4 | 8 => Ok(Announced { bytes, alignment: alignment as u8 }),
            _ => Err(Malformed),
        }
    }

    fn pack(attachment: &Attachment) -> [u8; WORD] {
        (attachment.numbers.bytes().len() as u64 | u64::from(attachment.alignment) << 48).to_ne_bytes()
    }
}

impl Frame<'_> {
    /// The blocks beside the frame, in order.
    pub(crate) fn attachments(&self) -> Result<Vec<Announced>, Malformed> {
        self.blocks.iter().map(|&word| Announced::unpack(word)).collect()
    }
}

/// Begins a frame at the end of a batch; the caller appends the body.
#[inline]
pub(crate) fn begin(batch: &mut Vec<u8>) {
    batch.extend_from_slice(&[0; WORD]);
}

/// Ends the frame whose body begins at `start` and ends with the batch.
#[inline]
pub(crate) fn end(batch: &mut Vec<u8>, start: usize, lane: Lane, kind: Kind, beside: &[Attachment]) {
    let bytes = batch.len() - start;
    let header = bytes as u64 | (beside.len() as u64) << 24 | (lane as u64) << 32 | (kind as u64) << 33;
    batch[start - WORD..start].copy_from_slice(&header.to_ne_bytes());
    // Appends a word of zeroes and truncates: a copy of fixed length needs no loop.
    let padded = batch.len().next_multiple_of(WORD);
    batch.extend_from_slice(&[0; WORD]);
    batch.truncate(padded);
    beside.iter().for_each(|attachment| batch.extend_from_slice(&Announced::pack(attachment)));
}

/// The frame at position `at` of a batch, and the position of the next frame.
#[inline]
pub(crate) fn read(batch: &[u8], at: usize) -> Option<(Frame<'_>, usize)> {
    let (header, rest) = batch.get(at..)?.split_first_chunk()?;
    let header = u64::from_ne_bytes(*header);
    let (kind, lane) = *KINDS.get((header >> 32) as usize)?;
    let (bytes, blocks) = (header as usize & HEADER_BYTES, (header >> 24 & 0xff) as usize);
    let padded = bytes.next_multiple_of(WORD);
    let blocks = rest.get(padded..padded + blocks * WORD)?;
    let next = at + WORD + padded + blocks.len();
    Some((Frame { lane, kind, body: &rest[..bytes], blocks: blocks.as_chunks().0 }, next))
}

/// The body of the frame at position `at` of a batch, and the position of the next frame. None unless the frame is
/// *plain*: a packet of the express lane without blocks. Nearly all frames are plain.
#[inline]
pub(crate) fn read_plain(batch: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let (header, rest) = batch.get(at..)?.split_first_chunk()?;
    let bytes = u64::from_ne_bytes(*header) as usize;
    if bytes > HEADER_BYTES {
        return None;
    }
    let padded = bytes.next_multiple_of(WORD);
    Some((rest.get(..padded)?.get(..bytes)?, at + WORD + padded))
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
            let lane = |of: usize| [Express, Freight][of / 3];
            let mut batch = Vec::new();
            for (body, blocks, of) in &frames {
                let attachment = |&count: &usize| Attachment { numbers: Arc::new(vec![7u32; count]), alignment: 4 };
                let attachments: Vec<Attachment> = blocks.iter().map(attachment).collect();
                begin(&mut batch);
                let start = batch.len();
                batch.extend_from_slice(body);
                end(&mut batch, start, lane(*of), kind(*of), &attachments);
            }
            let mut at = 0;
            for (body, blocks, of) in &frames {
                let (frame, next) = read(&batch, at).expect("it was written");
                prop_assert_eq!((frame.lane, frame.kind), (lane(*of), kind(*of)));
                prop_assert_eq!(frame.body, body);
                let expected: Vec<Announced> = blocks.iter().map(|count| Announced { bytes: count * 4, alignment: 4 }).collect();
                prop_assert_eq!(frame.attachments(), Ok(expected));
                let plain = blocks.is_empty() && (lane(*of), kind(*of)) == (Express, Packet);
                prop_assert_eq!(read_plain(&batch, at), plain.then_some((&body[..], next)));
                at = next;
            }
            prop_assert_eq!(at, batch.len());
        }

        #[test]
        fn a_frame_read_from_any_bytes_lies_within_them(words in prop::collection::vec(hostile_word(), 0..12), cut in 0..WORD) {
            let bytes = &words.as_flattened()[..(words.len() * WORD).saturating_sub(cut)];
            let mut at = 0;
            while let Some((frame, next)) = read(bytes, at) {
                let plain = frame.blocks.is_empty() && (frame.lane, frame.kind) == (Express, Packet);
                prop_assert_eq!(read_plain(bytes, at), plain.then_some((frame.body, next)));
                prop_assert!(next > at && next <= bytes.len());
                prop_assert!(WORD + frame.body.len() + frame.blocks.len() * WORD <= next - at);
                prop_assert!(frame.attachments().is_err() || frame.blocks.len() < 256);
                at = next;
            }
            prop_assert_eq!(read_plain(bytes, at), None);
        }
    }

    /// Words that are nearly headers, or block words.
    fn hostile_word() -> impl Strategy<Value = [u8; WORD]> {
        let header = (0u64..40, 0u64..4, 0u64..9);
        prop_oneof![
            header.prop_map(|(bytes, blocks, kind)| (bytes | blocks << 24 | kind << 32).to_ne_bytes()),
            any::<[u8; WORD]>(),
        ]
    }

    #[test]
    fn malformed_bytes_are_recognised() {
        let header = |bytes: u64, blocks: u64, above: u64| bytes | blocks << 24 | above << 32;
        let batch = |words: &[u64]| -> Vec<u8> { words.iter().flat_map(|word| word.to_ne_bytes()).collect() };
        let whole = batch(&[header(8, 1, 0), 0, 4 | 4 << 48]);
        assert!(read(&whole, 0).is_some_and(|(frame, next)| next == 24 && frame.attachments().is_ok()));
        for (malformed, words) in [
            ("nothing", &[][..]),
            ("a body beyond the end", &[header(9, 0, 0), 0]),
            ("blocks beyond the end", &[header(8, 2, 0), 0, 0]),
            ("the longest of both", &[header(0xff_ffff, 0xff, 0), 0]),
            ("no kind", &[header(0, 0, 6)]),
            ("no header", &[header(0, 0, 8)]),
            ("noise", &[u64::MAX, u64::MAX]),
        ] {
            assert_eq!(read(&batch(words), 0), None, "{malformed}");
        }
        assert_eq!(read(&whole[..23], 0), None, "a part");
        assert_eq!(read(&whole, 25), None, "behind the end");
        for alignment in [0, 3, 16, 0x104] {
            let frame = batch(&[header(0, 1, 0), 8 | alignment << 48]);
            let (frame, _) = read(&frame, 0).expect("its lengths are right");
            assert_eq!(frame.attachments(), Err(Malformed), "numbers of {alignment} bytes");
        }
    }
}
