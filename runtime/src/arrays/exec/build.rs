//! Puts a rank together, with threads or simulated, and lets its chunks move in.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use lb_strategies::Strategy;

use super::cells::Cells;
use super::ready::Queues;
use super::shared::{Core, RankShared, sharing};
use super::worker::Worker;
use crate::arrays::core::codec::ArrayCodec;
use crate::arrays::core::envelope::{Delivery, Payload};
use crate::arrays::core::erased::{Described, ErasedArray, ErasedSlot};
use crate::arrays::core::estimate::RankPlace;
use crate::arrays::core::handler::Facts;
use crate::arrays::core::rank::RankCore;
use crate::config::Config;
use crate::ids::{ChunkId, Rank, Sender};
use crate::measure::sample::{BackgroundSource, Gauges};
use crate::run::outcome::Outcome;
use crate::threads::clock::Clock;
use crate::threads::crew::Crew;
use crate::threads::guarded::{Badge, Guarded};
use crate::trace::Part;
use crate::trace::recording::{NameChunk, Recording};

/// What differs between a rank of threads and a simulated one.
pub(crate) struct RankParts {
    pub(crate) queues: Queues,
    pub(crate) crew: Arc<Crew>,
    pub(crate) clock: Clock,
    pub(crate) outcome: Arc<Outcome>,
    pub(crate) spins: u32,
    pub(crate) strategy: Arc<dyn Strategy>,
    pub(crate) recording: Arc<Recording>,
    /// All ranks, this one among them.
    pub(crate) places: Arc<[RankPlace]>,
}

/// Puts a rank together. Called by the thread that will be its worker 0.
pub(crate) fn build_rank(
    config: &Config,
    rank: Rank,
    described: Described,
    badge: &Badge,
    parts: RankParts,
) -> RankShared {
    let Described { arrays, services, checksum } = described;
    let ranks = parts.places.len() as u32;
    let workers = parts.places[rank.index()].workers;
    let tag = sharing(workers, badge.tag());
    let background = match config.background {
        BackgroundSource::Auto if parts.strategy.preparation().background_by_idle => {
            BackgroundSource::Procstat
        }
        chosen => chosen,
    };
    let core = RankCore::new(rank, &parts.places, arrays.clone(), parts.strategy, checksum);
    RankShared {
        facts: Facts { rank, ranks, period: config.period, slowness: config.slowness(rank), services },
        codec: ArrayCodec::new(rank, arrays.clone()),
        arrays,
        cells: Cells::new(tag),
        core: Guarded::new(tag, Core { rank: core, outbound: Vec::new() }),
        outbound_waits: AtomicBool::new(false),
        queues: parts.queues,
        crew: parts.crew,
        gauges: Gauges::new(workers, background),
        clock: parts.clock,
        outcome: parts.outcome,
        wire: config.wire,
        measure: config.measure && config.simulate.is_none(),
        recording: parts.recording,
        patience: config.watchdog,
        spins: parts.spins,
        congested: AtomicBool::new(false),
        untold: AtomicBool::new(false),
        checksum,
        figures: Mutex::default(),
    }
}

/// A chunk that was made and has no cell yet.
pub(crate) type NewChunk = (ChunkId, Box<dyn ErasedSlot>);

/// Makes the chunks that start on `rank`.
pub(crate) fn create_chunks(arrays: &[Arc<dyn ErasedArray>], rank: Rank, ranks: u32) -> Vec<NewChunk> {
    let on_rank = |(number, array): (u32, &Arc<dyn ErasedArray>)| {
        let make = |key| (ChunkId { array: number, key }, array.create(key));
        array.keys_on(rank, ranks).into_iter().map(make).collect::<Vec<_>>()
    };
    (0..).zip(arrays).flat_map(on_rank).collect()
}

impl Worker<'_> {
    /// The rank's first act: its chunks move in, ready to start, and rank 0 hears what was set up.
    pub(crate) fn begin(&mut self, chunks: Vec<NewChunk>) {
        let shared = self.shared;
        let (workers, count) = (shared.gauges.workers.len(), chunks.len());
        if let Some(recorder) = &mut self.recorder {
            for &(chunk, _) in &chunks {
                let index = || shared.arrays[chunk.array as usize].index_text(chunk.key);
                recorder.arrived(chunk, 0, false, index);
            }
        }
        let settle = |(position, (chunk, slot))| {
            let start = Delivery { from: Sender::RUNTIME, payload: Payload::Start };
            let cell = shared.cells.reserve();
            shared.cells.settle(cell, chunk, slot, [start].into());
            let worker = (position * workers / count) as u32;
            shared.cells.get(cell).last_worker.store(worker, Ordering::Relaxed);
            shared.core.lock().rank.created(chunk, cell);
            cell
        };
        // Nobody starts before everybody is here: the first message of the first chunk may be to the last.
        let cells: Vec<_> = chunks.into_iter().enumerate().map(settle).collect();
        cells.into_iter().for_each(|cell| self.put(cell));
        if self.id == 0 {
            self.with_core(|core, _, out| core.hello(shared.checksum, out));
        }
        if self.id == 0 && shared.measure {
            shared.gauges.begin(shared.clock.now_ns());
            if shared.recording.writes() {
                shared.gauges.begin_to_look(shared.clock.now_ns());
            }
        }
        self.skip(Part::Start, 0);
    }
}

/// How people call the chunks of these arrays.
pub(crate) fn name_chunk(arrays: &Arc<[Arc<dyn ErasedArray>]>) -> NameChunk {
    let arrays = arrays.clone();
    Box::new(move |chunk| {
        let array = arrays.get(chunk.array as usize)?;
        // The user's, which may panic.
        let index = catch_unwind(AssertUnwindSafe(|| array.index_text(chunk.key)));
        let index = index.unwrap_or_else(|_| chunk.key.to_string());
        Some(format!("{}[{index}] of array {}", array.name(), chunk.array))
    })
}
