//! Sums the CPU time of each chunk's handlers. Uses some bytes per chunk.

use std::collections::BTreeMap;

use caribou::trace::{ChunkId, Event, What};

use super::events::{Observer, WorkerRef};

/// CPU time in ns of each chunk that had a handler.
#[derive(Default)]
pub(crate) struct ChunkTimes(pub(crate) BTreeMap<ChunkId, f64>);

impl Observer<'_> for ChunkTimes {
    fn see(&mut self, _: WorkerRef<'_>, event: &Event) {
        if let What::Handler { chunk, .. } = event.what {
            *self.0.entry(chunk).or_default() += event.cpu_ns() as f64;
        }
    }
}
