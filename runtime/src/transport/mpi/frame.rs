//! What rings and batches carry: a packet's bytes, and how much travels beside them, as words.
//!
//! ```text
//! header   kind (2 bits) | runs beside it (8) | bytes of the body (24)
//! beside   one word a run: its bytes (48 bits) | bytes of one number (8 bits)
//! body     the encoded packet, padded with zeroes to whole words
//! ```
//! Words are little-endian: processes of one job are of one kind of machine, as MPI itself expects of `MPI_BYTE`. How the
//! header is stored is up to rings and batches.

use crate::core::bulk::Attachment;

use Kind::{BodyBeside, Bye, Packet};

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A packet, its bytes in the body.
    Packet = 0,
    /// A packet whose bytes travel beside the frame too, as its first run.
    BodyBeside = 1,
    /// The sender sends no more in this run.
    Bye = 2,
}

/// A frame to be written.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'f> {
    pub(crate) kind: Kind,
    pub(crate) body: &'f [u8],
    pub(crate) beside: &'f [Attachment],
}

/// What is to be known of a frame to read it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Header {
    bytes: u32,
    runs: u8,
    pub(crate) kind: Kind,
}

/// A run of numbers beside a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Run {
    pub(crate) bytes: usize,
    pub(crate) width: u8,
}

impl Run {
    pub(crate) fn unpack(word: u64) -> Run {
        Run { bytes: (word & ((1 << 48) - 1)) as usize, width: (word >> 48) as u8 }
    }

    fn pack(attachment: &Attachment) -> u64 {
        attachment.numbers.bytes().len() as u64 | u64::from(attachment.width) << 48
    }
}

impl Frame<'_> {
    pub(crate) fn header(&self) -> Header {
        Header { bytes: self.body.len() as u32, runs: self.beside.len() as u8, kind: self.kind }
    }

    /// Hands out its words, in order.
    #[inline]
    pub(crate) fn write(&self, mut put: impl FnMut(u64)) {
        self.beside.iter().for_each(|attachment| put(Run::pack(attachment)));
        let (words, rest) = self.body.as_chunks::<8>();
        words.iter().for_each(|word| put(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            put(u64::from_le_bytes(last));
        }
    }
}

impl Header {
    /// The header in the low 34 bits of a word.
    #[inline]
    pub(crate) fn pack(self) -> u64 {
        u64::from(self.bytes) | u64::from(self.runs) << 24 | (self.kind as u64) << 32
    }

    #[inline]
    pub(crate) fn unpack(word: u64) -> Header {
        let kind = [Packet, BodyBeside, Bye, Bye][(word >> 32) as usize & 3];
        Header { bytes: word as u32 & ((1 << 24) - 1), runs: (word >> 24) as u8, kind }
    }

    /// Takes a frame's words, in order. What was in `beside` and `bytes` is replaced.
    #[inline]
    pub(crate) fn read(self, beside: &mut Vec<u64>, bytes: &mut Vec<u8>, mut take: impl FnMut() -> u64) {
        beside.clear();
        beside.extend((0..self.runs).map(|_| take()));
        bytes.clear();
        let padded = (self.bytes as usize).div_ceil(8);
        bytes.reserve(padded * 8);
        for _ in 0..padded {
            bytes.extend_from_slice(&take().to_le_bytes());
        }
        bytes.truncate(self.bytes as usize);
    }

    /// Words that the frame takes besides this one.
    #[inline]
    pub(crate) fn words(self) -> usize {
        self.runs as usize + (self.bytes as usize).div_ceil(8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Arc;

    proptest! {
        #[test]
        fn a_frame_comes_out_as_it_went_in(body: Vec<u8>, runs in prop::collection::vec(1usize..100, 0..4), kind in 0..3usize) {
            let attachment = |&count: &usize| Attachment { numbers: Arc::new(vec![7u32; count]), width: 4 };
            let attachments: Vec<Attachment> = runs.iter().map(attachment).collect();
            let kind = [Packet, BodyBeside, Bye][kind];
            let frame = Frame { kind, body: &body, beside: &attachments };
            let mut words = Vec::new();
            frame.write(|word| words.push(word));
            prop_assert_eq!(words.len(), frame.header().words());
            let (mut beside, mut bytes) = (vec![9], vec![9]);
            let mut stream = words.iter();
            let header = Header::unpack(frame.header().pack());
            header.read(&mut beside, &mut bytes, || *stream.next().expect("it takes no more"));
            prop_assert_eq!(header.words(), words.len());
            prop_assert_eq!(header.kind, kind);
            prop_assert_eq!(bytes, body);
            let expected: Vec<Run> = runs.iter().map(|count| Run { bytes: count * 4, width: 4 }).collect();
            prop_assert_eq!(beside.iter().map(|&word| Run::unpack(word)).collect::<Vec<_>>(), expected);
        }
    }
}
