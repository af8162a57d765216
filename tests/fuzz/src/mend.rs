//! Makes checksums and lengths right, so that what lies behind them is reached.

const MAGIC: &[u8; 16] = b"caribou-trace 2\n";
const HEADER: usize = 44;
const INDEX: u8 = 7;

/// The same bytes as a file whose headers match what follows them.
pub(crate) fn mended(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let magic = bytes.len().min(MAGIC.len());
    bytes[..magic].copy_from_slice(&MAGIC[..magic]);
    let mut at = MAGIC.len();
    while at + HEADER <= bytes.len() {
        let end = block(&mut bytes[at..]);
        at += end;
    }
    bytes
}

/// Mends the block that these bytes begin with, and says how long it is.
fn block(bytes: &mut [u8]) -> usize {
    bytes[..4].copy_from_slice(b"cblk");
    let four = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let (raw, rest) = (four(8), bytes.len() - HEADER);
    let stored = (four(12) as usize).min(rest).min(4 << 20);
    let (kind, compressed) = (bytes[4] % 9, bytes[5] % 2);
    (bytes[4], bytes[5]) = (kind, compressed);
    let raw = if compressed == 0 { stored as u32 } else { raw % (1 << 18) };
    bytes[8..12].copy_from_slice(&raw.to_le_bytes());
    bytes[12..16].copy_from_slice(&(stored as u32).to_le_bytes());
    if kind == INDEX && compressed == 0 {
        bytes[HEADER..HEADER + stored].chunks_exact_mut(8 + HEADER).for_each(|entry| seal(&mut entry[8..]));
    }
    let checksum = crc32fast::hash(&bytes[HEADER..HEADER + stored]);
    bytes[36..40].copy_from_slice(&checksum.to_le_bytes());
    seal(bytes);
    HEADER + stored
}

/// The checksum of a header.
fn seal(header: &mut [u8]) {
    let own = crc32fast::hash(&header[..40]);
    header[40..HEADER].copy_from_slice(&own.to_le_bytes());
}
