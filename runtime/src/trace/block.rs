//! The file format of a trace, one file per rank: a magic line, then blocks, then an index of the blocks.
//!
//! ```text
//! caribou-trace 2\n                        16 bytes: what this is, and the version of the format
//! block ...                                header (44 bytes) and its bytes, compressed with LZ4 where that helps
//! index block                              the headers of all blocks with their places
//! place of the index, "caribou-index 1\n"  24 bytes
//! ```
//!
//! Each header and the bytes of each block have a checksum (CRC-32). A file that was cut off has no index. Its blocks
//! are found one after the other, up to the first one that is incomplete. All numbers are little-endian.
//!
//! Events of version 1 have less exact times. A send is a point at the end of its handler, though the message left
//! earlier. An arrival of a chunk is at the end of the slice before it. Messages and chunks may therefore seem to
//! arrive before they left.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The first bytes of a file.
pub const MAGIC: &[u8; 16] = b"caribou-trace 2\n";
/// The first bytes of a file of version 1, which can be read as well.
pub const MAGIC_1: &[u8; 16] = b"caribou-trace 1\n";
/// The last bytes of a file that was closed.
pub const INDEX_MAGIC: &[u8; 16] = b"caribou-index 1\n";
/// Place of the index, and [`INDEX_MAGIC`].
pub const TRAILER: usize = 24;
/// The first bytes of a block.
const BLOCK_MAGIC: [u8; 4] = *b"cblk";
/// Bytes of a header.
pub const HEADER: usize = 44;
/// Maximum bytes of a block before compression. A reader needs this memory.
pub const RAW_MAX: usize = 4 << 20;
/// Maximum number of blocks that an index can list; files with more blocks have no index.
pub const INDEXED_MAX: usize = RAW_MAX / (HEADER + 8);
/// Maximum number of events of a block, which take more memory when decoded.
pub const EVENTS_MAX: usize = 1 << 18;

/// The first bytes of a file of any version.
const MAGIC_ANY: &[u8] = b"caribou-trace ";

/// Tells whether a file begins like a trace. A trace can be recorded only once, so no result should overwrite it.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// let path = std::env::temp_dir().join(format!("is-a-trace-{}", std::process::id()));
/// std::fs::write(&path, "caribou-trace 2\n and so on")?;
/// assert!(caribou::trace::block::is_trace(&path));
/// # std::fs::remove_file(path)
/// # }
/// ```
pub fn is_trace(path: &Path) -> bool {
    // Opening a pipe for reading would wait for a writer.
    let mut begin = [0; MAGIC_ANY.len()];
    path.is_file()
        && File::open(path).and_then(|mut file| file.read_exact(&mut begin)).is_ok()
        && begin == MAGIC_ANY
}

/// The contents of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The [`RunRecord`](super::RunRecord); the first block.
    Run,
    /// [`Names`](super::records::Names) used by later blocks.
    Names,
    /// Events of one worker.
    Events,
    /// [`SyncReport`](crate::report::SyncReport)s.
    Syncs,
    /// [`Sample`](super::Sample)s.
    Samples,
    /// The [`Profile`](super::Profile) of one worker; a later block replaces an earlier one.
    Profile,
    /// The [`End`](super::End); the last block except the index.
    End,
    /// The headers of all other blocks, each after its position.
    Index,
    /// [`Look`](super::Look)s.
    Looks,
    /// [`StepRecord`](super::StepRecord)s.
    Steps,
}

impl Kind {
    const ALL: [Kind; 10] = [
        Kind::Run,
        Kind::Names,
        Kind::Events,
        Kind::Syncs,
        Kind::Samples,
        Kind::Profile,
        Kind::End,
        Kind::Index,
        Kind::Looks,
        Kind::Steps,
    ];

    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Run => "run record",
            Kind::Names => "names",
            Kind::Events => "events",
            Kind::Syncs => "sync records",
            Kind::Samples => "samples",
            Kind::Profile => "profile",
            Kind::End => "end record",
            Kind::Index => "index",
            Kind::Looks => "looks at processes",
            Kind::Steps => "step records",
        }
    }
}

/// The header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The kind of content.
    pub kind: Kind,
    /// True if the bytes in the file are compressed.
    pub compressed: bool,
    /// The worker of the content; 0 if the content is not of one worker.
    pub worker: u16,
    /// Bytes after decompression.
    pub raw: u32,
    /// Bytes in the file.
    pub stored: u32,
    /// Number of events or records.
    pub items: u32,
    /// Begin of the first event, ns.
    pub first_ns: u64,
    /// End of the last event, ns.
    pub last_ns: u64,
    /// Checksum of the bytes in the file.
    pub checksum: u32,
}

impl Header {
    /// The header as bytes of a file.
    #[must_use]
    pub fn to_bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        let kind = Kind::ALL.iter().position(|&kind| kind == self.kind).expect("all kinds are in the list");
        bytes[..4].copy_from_slice(&BLOCK_MAGIC);
        bytes[4] = kind as u8;
        bytes[5] = u8::from(self.compressed);
        bytes[6..8].copy_from_slice(&self.worker.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.raw.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.stored.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.items.to_le_bytes());
        bytes[20..28].copy_from_slice(&self.first_ns.to_le_bytes());
        bytes[28..36].copy_from_slice(&self.last_ns.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.checksum.to_le_bytes());
        let own = crc32fast::hash(&bytes[..40]);
        bytes[40..].copy_from_slice(&own.to_le_bytes());
        bytes
    }

    /// Decodes a header read from a file.
    ///
    /// # Errors
    /// One line if the bytes are no header, or the header has sizes above the limits of a block.
    pub fn from_bytes(bytes: &[u8; HEADER]) -> Result<Header, &'static str> {
        let four = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let eight = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        if bytes[..4] != BLOCK_MAGIC {
            return Err("no block begins here");
        }
        if four(40) != crc32fast::hash(&bytes[..40]) {
            return Err("the checksum of the block's header does not match");
        }
        let kind = *Kind::ALL.get(usize::from(bytes[4])).ok_or("a block of unknown kind")?;
        let compressed = match bytes[5] {
            0 => false,
            1 => true,
            _ => return Err("a block compressed in an unknown way"),
        };
        let header = Header {
            kind,
            compressed,
            worker: u16::from_le_bytes([bytes[6], bytes[7]]),
            raw: four(8),
            stored: four(12),
            items: four(16),
            first_ns: eight(20),
            last_ns: eight(28),
            checksum: four(36),
        };
        if header.raw as usize > RAW_MAX || header.stored as usize > RAW_MAX {
            return Err("a block of more than 4 MiB");
        }
        if header.items > header.raw {
            return Err("a block that lists more items than it has bytes");
        }
        if header.kind == Kind::Events && header.items as usize > EVENTS_MAX {
            return Err("a block of more than 2^18 events");
        }
        if header.last_ns < header.first_ns || header.last_ns > super::TIME_MAX_NS {
            return Err("a block that ends before it begins, or after more than 104 days");
        }
        Ok(header)
    }
}

/// A block ready to be written.
pub struct Block {
    /// The header.
    pub header: Header,
    /// The bytes that follow it in the file.
    pub bytes: Vec<u8>,
}

impl Block {
    /// A block of these bytes, compressed if that makes it smaller. `raw` is at most [`RAW_MAX`] long.
    #[must_use]
    pub fn new(kind: Kind, worker: u32, items: usize, times_ns: (u64, u64), raw: &[u8]) -> Block {
        assert!(raw.len() <= RAW_MAX, "a block holds at most 4 MiB");
        assert!(kind != Kind::Events || items <= EVENTS_MAX, "a block holds at most 2^18 events");
        let packed = lz4_flex::block::compress(raw);
        let compressed = packed.len() < raw.len();
        let bytes = if compressed { packed } else { raw.to_vec() };
        let header = Header {
            kind,
            compressed,
            worker: worker as u16,
            raw: raw.len() as u32,
            stored: bytes.len() as u32,
            items: items as u32,
            first_ns: times_ns.0,
            last_ns: times_ns.1,
            checksum: crc32fast::hash(&bytes),
        };
        Block { header, bytes }
    }
}

/// Fills `raw` with the uncompressed bytes of a block.
///
/// # Errors
/// One line if the bytes do not match the header.
pub fn unpack(header: &Header, stored: &[u8], raw: &mut Vec<u8>) -> Result<(), &'static str> {
    if crc32fast::hash(stored) != header.checksum {
        return Err("the checksum of the block's bytes does not match");
    }
    raw.clear();
    if !header.compressed {
        raw.extend_from_slice(stored);
    } else {
        raw.resize(header.raw as usize, 0);
        let length = lz4_flex::block::decompress_into(stored, raw);
        if length.ok() != Some(raw.len()) {
            return Err("the block cannot be decompressed");
        }
    }
    if raw.len() == header.raw as usize {
        Ok(())
    } else {
        Err("the block does not have the length of its header")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block() -> Block {
        Block::new(Kind::Events, 3, 100, (5, 900), &[7; 4000])
    }

    #[test]
    fn a_block_is_read_as_it_was_written() {
        let Block { header, bytes } = block();
        assert_eq!(Header::from_bytes(&header.to_bytes()), Ok(header));
        let mut raw = Vec::new();
        assert_eq!(unpack(&header, &bytes, &mut raw), Ok(()));
        assert_eq!((raw, header.compressed), (vec![7; 4000], true));
    }

    #[test]
    fn every_flipped_bit_of_a_block_is_found() {
        let Block { header, bytes } = block();
        let whole = header.to_bytes();
        for bit in 0..HEADER * 8 {
            let mut damaged = whole;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::from_bytes(&damaged).is_err(), "bit {bit} of the header");
        }
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(unpack(&header, &damaged, &mut Vec::new()).is_err(), "bit {bit} of the bytes");
        }
    }
}
