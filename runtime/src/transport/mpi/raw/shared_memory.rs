//! Maps memory that the processes of a host share, and hands it out as atomics so that its users need no `unsafe`.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A mapped file, unmapped on drop.
pub(crate) struct Mapping {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: the memory is accessed only as atomics.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `bytes` bytes of a file. The file must have them, and must never be truncated.
    pub(crate) fn new(file: &File, bytes: usize) -> io::Result<Mapping> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the kernel chooses an address where nothing is.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, protection, flags, file, 0)? };
        Ok(Mapping { start: start.cast(), bytes })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`; everything that points into the mapping keeps it alive. Unmapping it cannot fail.
        let _ = unsafe { munmap(self.start.cast(), self.bytes) };
    }
}

/// Length of the first line of a segment, which has the sleep state of its owner.
const LINE_BYTES: usize = 64;

/// Memory shared by the processes of a host: one segment per process.
pub(crate) struct SharedMemory {
    parts: Vec<Mapping>,
}

impl SharedMemory {
    /// The bytes of a segment with `words` words.
    pub(crate) fn segment_bytes(words: usize) -> usize {
        LINE_BYTES + words * 8
    }

    /// The memory of these segments, which are whole lines.
    pub(crate) fn new(parts: Vec<Mapping>) -> Arc<SharedMemory> {
        assert!(parts.iter().all(|part| part.bytes >= LINE_BYTES), "every part has a sleep state");
        Arc::new(SharedMemory { parts })
    }

    /// The sleep state of a process.
    #[inline]
    pub(crate) fn sleep_state(&self, process: u32) -> &AtomicU32 {
        // SAFETY: the first line of each segment. It is mapped as long as this lives, aligned to pages, and used in no other
        // way.
        unsafe { AtomicU32::from_ptr(self.parts[process as usize].start.cast()) }
    }

    /// A range of words of a process' segment.
    pub(crate) fn words(self: &Arc<SharedMemory>, process: u32, range: std::ops::Range<usize>) -> Words {
        let part = &self.parts[process as usize];
        assert!(
            range.start <= range.end && SharedMemory::segment_bytes(range.end) <= part.bytes,
            "they are in its part"
        );
        let start = part.start.wrapping_add(SharedMemory::segment_bytes(range.start));
        Words { start: start.cast(), count: range.len(), _window: self.clone() }
    }
}

/// Words of shared memory, as a slice.
pub(crate) struct Words {
    start: *const AtomicU64,
    count: usize,
    _window: Arc<SharedMemory>,
}

impl std::ops::Deref for Words {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: `SharedMemory::words` checked the bounds. The memory is mapped as long as the `SharedMemory` in
        // `_window`, is aligned, and is accessed only as atomics.
        unsafe { std::slice::from_raw_parts(self.start, self.count) }
    }
}
