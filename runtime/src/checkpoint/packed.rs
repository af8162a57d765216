//! LZ4 frames: what the files of ranks are compressed with. It takes less time than a disk needs for what it saves, and passes on
//! what cannot be compressed.

use std::io::{self, Read, Write};

use lz4_flex::frame::{BlockSize, FrameDecoder, FrameEncoder, FrameInfo};

/// Compresses what `write` writes, in pieces of any length.
pub(super) fn pack(
    out: &mut dyn Write,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let info = FrameInfo::new().block_size(BlockSize::Max256KB);
    let mut frame = FrameEncoder::with_frame_info(info, out);
    write(&mut frame)?;
    frame.finish().map_err(io::Error::from)?;
    Ok(())
}

/// What was compressed: at most some 255 times as many bytes, whoever wrote them.
pub(super) fn unpack(packed: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    FrameDecoder::new(packed).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unpacked_was_packed_and_what_repeats_takes_less() {
        let (ones, mut mixed) = (vec![1u8; 3_000_000], vec![0u8; 700_001]);
        let mut state = 1u64;
        for byte in &mut mixed {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (state >> 56) as u8;
        }
        for (bytes, most) in [(&ones, 20_000), (&mixed, 700_200), (&Vec::new(), 20)] {
            let mut packed = Vec::new();
            let pieces = |out: &mut dyn Write| bytes.chunks(1000).try_for_each(|piece| out.write_all(piece));
            pack(&mut packed, pieces).expect("a vector takes all");
            assert!(packed.len() <= most, "{} of {}", packed.len(), bytes.len());
            assert!(unpack(&packed).expect("it is whole") == *bytes);
        }
    }

    #[test]
    fn bytes_that_are_no_frame_are_an_error() {
        let mut packed = Vec::new();
        pack(&mut packed, |out| out.write_all(&[7; 100_000])).expect("a vector takes all");
        packed[20] ^= 0x40;
        assert!(unpack(&packed).is_err() || unpack(&packed).is_ok_and(|bytes| bytes != [7; 100_000]));
        assert!(unpack(b"no frame, but some bytes").is_err());
    }
}
