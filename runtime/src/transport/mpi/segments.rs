//! Creates the shared-memory segments of the processes of a host.
//!
//! Each process creates one *segment*, and all processes map all segments. A segment is an unnamed file, which other
//! processes open through `/proc`. Where that is not allowed, as between some containers, the segment is a file in
//! `/dev/shm`. The pages of a segment are allocated at its creation. They are therefore near their process, and a file
//! system that is too small is an error at once instead of a signal later. Only the limit of a memory control group
//! still kills the process. An MPI window guarantees neither: if `/dev/shm` is too small, Open MPI's window hangs the
//! job and MPICH's kills it.
//!
//! If one process of a host cannot create or map the memory, no process uses it, and all get the reason.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use rustix::io::retry_on_intr;
use serde::{Deserialize, Serialize};

use super::raw::{Communicator, Mapping, MpiError};
use crate::threads::clock::monotonic_ns;
use crate::wire;

/// The file system of a segment.
#[derive(Clone, Copy)]
enum SegmentFs {
    /// In no directory; limited by the memory of the host.
    Memfd,
    /// In `/dev/shm`; limited by the size of that file system.
    Shm,
}

/// The segment of this process, until all others have opened it.
struct Segment {
    file: File,
    place: SegmentFs,
    offer: SegmentHandle,
}

/// The description of a process' segment, sent to the other processes.
#[derive(Serialize, Deserialize)]
struct SegmentHandle {
    path: String,
    /// The identity of the file, which is checked when it is opened.
    device: u64,
    inode: u64,
}

/// Creates and maps segments of `bytes` zeroed bytes, by process, or returns why there are none. Collective.
pub(crate) fn share(host: &Communicator, bytes: usize) -> Result<Result<Vec<Mapping>, String>, MpiError> {
    let mut whys = Vec::new();
    for place in [SegmentFs::Memfd, SegmentFs::Shm] {
        match share_in(place, host, bytes)? {
            Ok(parts) => return Ok(Ok(parts)),
            Err(why) => whys.push(why),
        }
    }
    Ok(Err(whys.join("; ")))
}

fn share_in(
    place: SegmentFs,
    host: &Communicator,
    bytes: usize,
) -> Result<Result<Vec<Mapping>, String>, MpiError> {
    let mine = Segment::new(place, bytes);
    let offer = mine.as_ref().map(|part| &part.offer).map_err(ToString::to_string);
    let offers = host.allgather(&wire::encode(&offer).unwrap_or_default())?;
    let parts: Result<Vec<Mapping>, String> = offers.iter().map(|offer| accept(offer, bytes)).collect();
    let why = parts.as_ref().err().cloned().unwrap_or_default();
    // The file of this process is removed after all processes have opened it.
    let whys = host.allgather(why.as_bytes())?;
    drop(mine);
    let failed = whys.iter().find(|why| !why.is_empty());
    Ok(failed.map_or(parts, |why| Err(String::from_utf8_lossy(why).into_owned())))
}

/// Maps a segment of this or another process.
fn accept(offer: &[u8], bytes: usize) -> Result<Mapping, String> {
    let offer: Result<SegmentHandle, String> = wire::decode(offer).map_err(|why| why.to_string())?;
    let offer = offer?;
    let open = || {
        let file = File::options().read(true).write(true).open(&offer.path)?;
        let found = file.metadata()?;
        if (found.dev(), found.ino(), found.len()) != (offer.device, offer.inode, bytes as u64) {
            return Err(io::Error::other("its path names another file"));
        }
        Mapping::new(&file, bytes)
    };
    open().map_err(|why| format!("{}: {why}", offer.path))
}

impl Segment {
    fn new(place: SegmentFs, bytes: usize) -> io::Result<Segment> {
        let (file, path) = match place {
            SegmentFs::Memfd => {
                let file = File::from(memfd_create("caribou", MemfdFlags::CLOEXEC)?);
                let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
                (file, path)
            }
            SegmentFs::Shm => {
                let path = format!("/dev/shm/caribou-{}-{}", std::process::id(), monotonic_ns());
                let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
                (file, path)
            }
        };
        let found = file.metadata()?;
        let part =
            Segment { file, place, offer: SegmentHandle { path, device: found.dev(), inode: found.ino() } };
        let take = || fallocate(&part.file, FallocateFlags::empty(), 0, bytes as u64);
        retry_on_intr(take).map_err(|why| {
            io::Error::other(format!("{} KiB for {}: {why}", bytes.div_ceil(1024), part.offer.path))
        })?;
        Ok(part)
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        if matches!(self.place, SegmentFs::Shm) {
            // The file may have been removed already.
            let _ = std::fs::remove_file(&self.offer.path);
        }
    }
}
