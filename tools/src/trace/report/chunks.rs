//! Collects figures of each chunk. Memory grows with the number of chunks, not of events.

use std::collections::BTreeMap;

use caribou::trace::{ChunkId, Event, RUNTIME, What};

use super::tables::TimelinePosition;
use crate::trace::analysis::events::WorkerName;

/// Largest number of arrivals that are stored.
const ARRIVALS_MAX: usize = 1_000_000;

/// Figures of one chunk, times in ns.
#[derive(Clone, Debug, Default)]
pub(super) struct Chunk {
    pub(super) cpu_ns: u64,
    pub(super) lost_ns: u64,
    pub(super) executions: u64,
    pub(super) longest_ns: u64,
    /// Position of the longest execution in the timeline.
    pub(super) longest: Option<TimelinePosition>,
    /// Time of each arrival and the rank, in no order.
    pub(super) places: Vec<(u64, u32)>,
    /// Load at the last sync.
    pub(super) load_ns: Option<u64>,
    /// Size of its state at the last sync, in bytes.
    pub(super) state_bytes: u64,
    pub(super) moves: u64,
    /// Last rank.
    pub(super) rank: u32,
    seen_ns: u64,
    load_sync: u64,
}

/// All chunks of a run.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    known: BTreeMap<ChunkId, Chunk>,
    arrivals: usize,
}

impl Chunks {
    pub(super) fn add(&mut self, worker: WorkerName, event: &Event) {
        let rank = worker.rank;
        match event.what {
            What::Handler { chunk, lost_ns, .. } => {
                let known = self.seen(chunk, rank, event.end_ns);
                let cpu_ns = event.cpu_ns();
                known.cpu_ns += cpu_ns;
                known.lost_ns += lost_ns;
                known.executions += 1;
                if cpu_ns >= known.longest_ns {
                    known.longest_ns = cpu_ns;
                    known.longest = Some(TimelinePosition::on(worker, event.begin_ns, event.end_ns));
                }
            }
            What::Arrive { chunk, bytes } => {
                let keep = self.arrivals < ARRIVALS_MAX;
                self.arrivals += 1;
                let known = self.seen(chunk, rank, event.end_ns);
                known.state_bytes = known.state_bytes.max(bytes);
                if keep {
                    known.places.push((event.end_ns, rank));
                }
            }
            What::Depart { chunk, bytes, .. } => {
                let known = self.known.entry(chunk).or_default();
                known.moves += 1;
                known.state_bytes = known.state_bytes.max(bytes);
            }
            What::Load { chunk, sync, load_ns, bytes } => {
                let known = self.seen(chunk, rank, event.end_ns);
                if known.load_ns.is_none() || sync >= known.load_sync {
                    (known.load_ns, known.load_sync, known.state_bytes) = (Some(load_ns), sync, bytes);
                }
            }
            _ => {}
        }
    }

    fn seen(&mut self, chunk: ChunkId, rank: u32, at_ns: u64) -> &mut Chunk {
        let known = self.known.entry(chunk).or_default();
        if at_ns >= known.seen_ns {
            (known.rank, known.seen_ns) = (rank, at_ns);
        }
        known
    }

    /// CPU time in ns of chunks that had a handler.
    pub(super) fn cpu_ns(&self) -> BTreeMap<ChunkId, f64> {
        let ran = self.known.iter().filter(|(_, chunk)| chunk.executions > 0);
        ran.map(|(&id, chunk)| (id, chunk.cpu_ns as f64)).collect()
    }

    /// All chunks, ordered by array and key.
    pub(super) fn all(&self) -> impl Iterator<Item = (ChunkId, &Chunk)> {
        self.known.iter().filter(|(id, _)| **id != RUNTIME).map(|(&id, chunk)| (id, chunk))
    }

    /// Returns whether some arrivals were not stored.
    pub(super) fn forgot_arrivals(&self) -> bool {
        self.arrivals > ARRIVALS_MAX
    }

    /// All chunks, the heaviest first.
    pub(super) fn sorted(&self) -> Vec<(ChunkId, &Chunk)> {
        let mut chunks: Vec<_> = self.all().collect();
        chunks.sort_by_key(|(id, chunk)| (std::cmp::Reverse(chunk.cpu_ns), *id));
        chunks
    }
}
