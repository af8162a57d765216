//! Finds the blocks of a trace file and reads single blocks. Lengths are bounded and checksums are compared.
//!
//! The index is used only if it lists all bytes between the magic line and itself, each once and in order. Then it
//! equals the result of a search, and a small file cannot list the same block a million times.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use caribou::trace::block::{
    HEADER, Header, INDEX_MAGIC, INDEXED_MAX, Kind, MAGIC, MAGIC_1, TRAILER, unpack,
};

/// Offset and header of each block.
pub(super) type Blocks = Vec<(u64, Header)>;
/// An offset in a file, and the fault there.
pub(super) type Fault = (u64, String);

/// Checks the first bytes of a file. The error describes why it is not a readable trace.
pub(super) fn check_magic(magic: &[u8]) -> Result<(), String> {
    if magic == MAGIC || magic == MAGIC_1 {
        return Ok(());
    }
    let expected = "a Caribou trace begins with `caribou-trace 2`";
    let version = magic.strip_prefix(b"caribou-trace ").unwrap_or_default();
    let version = version.iter().take_while(|byte| byte.is_ascii_digit());
    let version: String = version.map(|&byte| char::from(byte)).collect();
    if magic.is_empty() {
        Err(format!("it is empty: {expected}"))
    } else if MAGIC.starts_with(magic) {
        Err(format!("it ends too early: {expected}"))
    } else if matches!(version.as_str(), "" | "1" | "2") {
        Err(format!("it is something else: {expected}"))
    } else {
        Err(format!("it has version {version} of the format, expected 1 or 2"))
    }
}

/// All blocks of a file except the index, and the reason if blocks may be missing.
pub(super) fn find(file: &mut File, length: u64) -> (Blocks, Option<Fault>) {
    let damaged_at = match indexed(file, length) {
        Ok(Some(blocks)) => return (blocks, None),
        Ok(None) => None,
        Err(at) => Some(at),
    };
    let (blocks, broken) = scanned(file, length);
    let fault = match (damaged_at, broken) {
        (_, Some((at, why))) => (at, format!("{why}: the file is read up to here")),
        (Some(at), None) => (at, "the index is damaged: the blocks were searched for".into()),
        (None, None) if blocks.len() > INDEXED_MAX && is_closed(&blocks) => return (blocks, None),
        (None, None) => (length, "the file was not closed: the run was cut off".into()),
    };
    (blocks, Some(fault))
}

fn is_closed(blocks: &Blocks) -> bool {
    blocks.last().is_some_and(|(_, header)| header.kind == Kind::End)
}

/// Headers that differ from the index of the file; none without an index.
pub(super) fn differing_headers(file: &mut File, length: u64) -> Vec<Fault> {
    let Ok(Some(blocks)) = indexed(file, length) else { return Vec::new() };
    let faults = blocks.iter().filter_map(|&(at, header)| match header_at(file, at, length) {
        Ok(found) if found == header => None,
        Ok(_) => Some((at, "the header of a block differs from the index".into())),
        Err(why) => Some((at, format!("{why}; the index still lists the block"))),
    });
    faults.collect()
}

/// Reads a block and decompresses it into `raw`.
pub(super) fn read_block(
    file: &mut File,
    at: u64,
    header: &Header,
    stored: &mut Vec<u8>,
    raw: &mut Vec<u8>,
) -> Result<(), String> {
    stored.resize(header.stored as usize, 0);
    let bytes = file.seek(SeekFrom::Start(at + HEADER as u64)).and_then(|_| file.read_exact(stored));
    bytes.map_err(|error| format!("cannot be read: {error}"))?;
    unpack(header, stored, raw).map_err(str::to_owned)
}

/// The blocks in the index at the end of a file; none without an index. The error is the offset of a damaged index.
fn indexed(file: &mut File, length: u64) -> Result<Option<Blocks>, u64> {
    let Some(trailer_at) = length.checked_sub(TRAILER as u64) else { return Ok(None) };
    let mut trailer = [0; TRAILER];
    let there = file.seek(SeekFrom::Start(trailer_at)).and_then(|_| file.read_exact(&mut trailer));
    if there.is_err() || trailer[8..] != INDEX_MAGIC[..] {
        return Ok(None);
    }
    let at = u64::from_le_bytes(trailer[..8].try_into().expect("eight bytes"));
    read_index(file, at, trailer_at).map(Some).ok_or(at.min(length))
}

fn read_index(file: &mut File, at: u64, end: u64) -> Option<Blocks> {
    let header = header_at(file, at, end).ok()?;
    if header.kind != Kind::Index || after(at, &header)? != end {
        return None;
    }
    let (mut stored, mut raw) = (Vec::new(), Vec::new());
    read_block(file, at, &header, &mut stored, &mut raw).ok()?;
    let mut expected = MAGIC.len() as u64;
    let mut blocks = Blocks::new();
    for entry in raw.chunks(8 + HEADER) {
        let place = u64::from_le_bytes(entry.get(..8)?.try_into().ok()?);
        let block = Header::from_bytes(entry.get(8..)?.try_into().ok()?).ok()?;
        if place != expected || block.kind == Kind::Index {
            return None;
        }
        expected = after(place, &block)?;
        blocks.push((place, block));
    }
    (expected == at && blocks.len() == header.items as usize).then_some(blocks)
}

/// The offset of the block after this one.
fn after(at: u64, header: &Header) -> Option<u64> {
    at.checked_add(HEADER as u64)?.checked_add(u64::from(header.stored))
}

/// Finds blocks one after the other. If this ends before the end of the file, returns the offset and the reason.
fn scanned(file: &mut File, length: u64) -> (Blocks, Option<Fault>) {
    let mut blocks = Vec::new();
    let mut at = MAGIC.len() as u64;
    while at < length {
        match header_at(file, at, length) {
            Ok(header) if header.kind == Kind::Index => return (blocks, None),
            Ok(header) => {
                blocks.push((at, header));
                at += HEADER as u64 + u64::from(header.stored);
            }
            Err(why) => return (blocks, Some((at, why))),
        }
    }
    (blocks, None)
}

fn header_at(file: &mut File, at: u64, end: u64) -> Result<Header, String> {
    let mut bytes = [0; HEADER];
    if at.checked_add(HEADER as u64).is_none_or(|rest| rest > end) {
        return Err("the file ends within the header of a block".into());
    }
    let read = file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut bytes));
    read.map_err(|error| format!("cannot be read: {error}"))?;
    let header = Header::from_bytes(&bytes)?;
    if after(at, &header).is_none_or(|rest| rest > end) {
        return Err("the file ends within a block".into());
    }
    Ok(header)
}
