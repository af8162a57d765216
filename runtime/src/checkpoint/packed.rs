//! Compresses the files of ranks as LZ4 frames. This takes less time than a disk of up to 1 GB/s needs to write the
//! bytes uncompressed. Blocks that cannot be compressed are stored as they are.

use std::io::{self, Read, Write};

use lz4_flex::frame::{BlockSize, FrameDecoder, FrameEncoder, FrameInfo};

/// Compresses the bytes that `write` writes, in pieces of any length. Returns their length before compression, bytes.
pub(super) fn pack(
    out: &mut dyn Write,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<u64> {
    let info = FrameInfo::new().block_size(BlockSize::Max256KB);
    let mut frame = Counted { out: FrameEncoder::with_frame_info(info, out), bytes: 0 };
    write(&mut frame)?;
    frame.out.finish().map_err(io::Error::from)?;
    Ok(frame.bytes)
}

/// Decompresses a frame whose content has `length` bytes. An error if the length differs or bytes follow it.
pub(super) fn unpack(packed: &[u8], length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length as usize).map_err(io::Error::other)?;
    let mut frame = FrameDecoder::new(packed).take(length.saturating_add(1));
    frame.read_to_end(&mut bytes)?;
    let rest = frame.get_ref().get_ref().len();
    if bytes.len() as u64 != length || rest > 0 {
        let found = bytes.len();
        return Err(io::Error::other(format!(
            "it holds {found} bytes, and {rest} follow: expected {length} bytes"
        )));
    }
    Ok(bytes)
}

struct Counted<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.out.write(bytes)?;
        self.bytes += length as u64;
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut packed = Vec::new();
        let pieces = |out: &mut dyn Write| bytes.chunks(1000).try_for_each(|piece| out.write_all(piece));
        assert_eq!(pack(&mut packed, pieces).expect("a vector takes all"), bytes.len() as u64);
        packed
    }

    #[test]
    fn what_is_unpacked_was_packed_and_what_repeats_takes_less() {
        let (ones, mut mixed) = (vec![1u8; 3_000_000], vec![0u8; 700_001]);
        let mut state = 1u64;
        for byte in &mut mixed {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (state >> 56) as u8;
        }
        for (bytes, most) in [(&ones, 20_000), (&mixed, 700_200), (&Vec::new(), 20)] {
            let packed = packed(bytes);
            assert!(packed.len() <= most, "{} of {}", packed.len(), bytes.len());
            assert!(unpack(&packed, bytes.len() as u64).expect("it is whole") == *bytes);
        }
    }

    #[test]
    fn a_frame_that_is_not_whole_is_an_error() {
        let bytes: Vec<u8> = (0..600_000u32).map(|number| (number % 251) as u8).collect();
        let (whole, length) = (packed(&bytes), bytes.len() as u64);
        let cuts: Vec<usize> = (0..whole.len() - 4).step_by(97).collect();
        assert!(cuts.into_iter().all(|end| unpack(&whole[..end], length).is_err()));
        let longer = [&whole[..], b"more"].concat();
        let cases = [(&longer[..], length), (&whole, length - 1), (&whole, length + 1), (&whole, u64::MAX)];
        assert!(cases.into_iter().all(|(packed, length)| unpack(packed, length).is_err()));
        assert!(unpack(b"no frame, but some bytes", 4).is_err() && unpack(b"", 1).is_err());
    }
}
