//! Builds a rank, threaded or simulated: runs the setup function, creates the shared state, places initial chunks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use lb_strategies::balancer::RankPlace;
use lb_strategies::window_policy::WindowPolicy;
use lb_strategies::{Moments, Strategy};

use super::cells::Cells;
use super::control_plane::ControlPlane;
use super::edges::{EdgeRecorders, may_record};
use super::ending::Ending;
use super::record::RankMeasurements;
use super::restart::{Restored, check_saved, restart};
use super::scheduler::Scheduler;
use super::seeds::SeedFlags;
use super::shared::{RankShared, lock_tag};
use super::watermarks::Watermarks;
use super::worker::Worker;
use crate::arrays::core::codec::ArrayCodec;
use crate::arrays::core::collectives::tree::Tree;
use crate::arrays::core::flow::FlowControl;
use crate::arrays::core::lifecycle::erased::{ErasedArray, ErasedSlot, RankSetup};
use crate::arrays::core::lifecycle::handler::RankInfo;
use crate::arrays::core::rank::RankCore;
use crate::checkpoint::{Schedule, Store};
use crate::config::{Config, wrong};
use crate::error::Error;
use crate::ids::{ArrayId, ChunkId, ROOT, Rank, SyncId, WorkerId};
use crate::measure::counters::{BackgroundSource, RankCounters};
use crate::measure::edges::EdgeRecording;
use crate::notice::Listener;
use crate::panics;
use crate::run::outcome::Outcome;
use crate::run::resize::{ASK_RANK_0, NOTHING_MOVES, ResizeRequests};
use crate::threads::clock::Clock;
use crate::threads::elided_mutex::Owner;
use crate::trace::Part;
use crate::trace::recording::{NameChunk, Recording};

/// The parts of a rank that differ between threads and simulation.
pub(crate) struct RankParts {
    pub(crate) scheduler: Scheduler,
    pub(crate) clock: Clock,
    pub(crate) outcome: Arc<Outcome>,
    pub(crate) strategy: Arc<dyn Strategy>,
    pub(crate) recording: Arc<Recording>,
    /// The places of all ranks, this one included.
    pub(crate) places: Arc<[RankPlace]>,
    /// Number of workers that share a vCPU.
    pub(crate) crowding: u32,
    /// Number of children per rank in the tree of ranks.
    pub(crate) arity: u32,
    /// The requests to shrink or expand the run, on the rank that takes them for its process.
    pub(crate) resizes: Option<Arc<ResizeRequests>>,
    /// True if the program is of a shape that is layered on arrays.
    pub(crate) is_layered: bool,
}

/// Builds a rank. The thread that will be its worker 0 calls this.
pub(crate) fn build_rank(
    config: &Config,
    rank: Rank,
    described: RankSetup,
    owner: &Owner,
    parts: RankParts,
) -> RankShared {
    let RankSetup { arrays, services, checkpoints } = described;
    let ranks = parts.places.len() as u32;
    let workers = parts.places[rank.index()].workers;
    let tag = lock_tag(workers, owner.tag());
    let background = match config.background {
        BackgroundSource::Auto if parts.strategy.terms().background_by_idle => BackgroundSource::Procstat,
        chosen => chosen,
    };
    let (strategy, reports) = (parts.strategy, config.lb_reports);
    let waiting = &parts.recording.waiting;
    let flow = FlowControl::new(rank, ranks, config.mail_limit, waiting);
    let (period, windows) = match moments(config, &arrays, &*strategy) {
        Moments::Syncs { period } => (period, None),
        Moments::Windows { fixed_ns } => {
            (0, Some(WindowPolicy::new(fixed_ns, strategy.terms().must_pay).crowded(parts.crowding)))
        }
    };
    let windows = windows.filter(|_| arrays.iter().any(|array| array.syncs()));
    let by_windows = windows.is_some();
    // Windows may be decided in groups of ranks, each with a tree of its own.
    let hierarchy = strategy.terms().hierarchy.filter(|_| by_windows);
    let hosts = parts.places.iter().map(|place| place.host);
    let group = hierarchy.map_or(1, |hierarchy| hierarchy.size(hosts).clamp(1, u64::from(ranks)) as u32);
    let tree = Tree { rank, ranks, arity: parts.arity, group };
    let is_balanced = strategy.terms().moves && arrays.iter().any(|array| array.syncs());
    let resizes = parts.resizes;
    match &resizes {
        Some(requests) if is_balanced => requests.taken_by(parts.scheduler.waker(WorkerId(0))),
        Some(requests) if !parts.is_layered => requests.refuse(NOTHING_MOVES),
        Some(requests) if rank != ROOT => requests.refuse(ASK_RANK_0),
        // A shape that is layered on arrays takes requests itself, by `Ctx::take_resize`.
        Some(requests) => requests.taken_by(|| ()),
        None => {}
    }
    let signal_ns = windows.as_ref().map_or(u64::MAX, WindowPolicy::signal_ns);
    let records_edges = arrays.iter().any(|array| array.syncs())
        && may_record(config.lb_edges, strategy.terms().edges, &parts.places);
    let recording = if records_edges { config.lb_edges } else { EdgeRecording::Off };
    let core = RankCore::new(tree, &parts.places, arrays.clone(), strategy.clone(), reports, flow)
        .predicting(config.prediction)
        .within_memory(config.lb_memory)
        .recording_edges(recording, records_edges);
    let core = match &windows {
        Some(policy) => core.by_windows(policy).by_groups(&strategy, &parts.places, config.prediction),
        None => core,
    };
    let core = match (&checkpoints, &config.checkpoint) {
        (Some(store), Some(settings)) if rank == ROOT => {
            core.checkpointing(Schedule::new(settings.every.as_nanos() as u64, store.first_number()))
        }
        _ => core,
    };
    let gauges = RankCounters::new(workers, background);
    let listen = |_: &Arc<Store>| Listener::of_rank(rank, config, parts.scheduler.waker(WorkerId(0)));
    let notices = checkpoints.as_ref().and_then(listen);
    let measures = config.measure && config.simulate.is_none();
    RankShared {
        info: RankInfo {
            rank,
            ranks,
            period,
            by_windows,
            takes_resizes: is_balanced && resizes.is_some(),
            signal_ns,
            slowness: config.slowness(rank),
            services,
        },
        codec: ArrayCodec::new(rank, arrays.clone()),
        wire: config.wire,
        arrays,
        clock: parts.clock,
        cells: Cells::new(tag, by_windows),
        control_plane: ControlPlane::new(tag, core),
        scheduler: parts.scheduler,
        watermarks: Watermarks::new(config.mail_limit, waiting.clone()),
        seeds: SeedFlags::default(),
        edges: EdgeRecorders::new(tag, workers, records_edges),
        measurements: RankMeasurements::new(gauges, parts.recording, measures),
        ending: Ending::new(parts.outcome, config.watchdog),
        checkpoints,
        notices,
        resizes,
        timers: (0..workers).map(|_| Mutex::default()).collect(),
    }
}

/// The moments at which chunks are balanced.
pub(super) fn moments(config: &Config, arrays: &[Arc<dyn ErasedArray>], strategy: &dyn Strategy) -> Moments {
    let keeps_to_syncs = arrays.iter().any(|array| array.at_syncs());
    let balanced = if keeps_to_syncs { config.balanced().at_syncs() } else { config.balanced() };
    balanced.moments(&strategy.terms())
}

/// A chunk that was created and has no cell yet.
pub(crate) type NewChunk = (ChunkId, Box<dyn ErasedSlot>);

/// The initial state of a rank.
#[derive(Default)]
pub(crate) struct Beginning {
    /// Chunks that have not started; in a restarted run only the chunks of groups.
    chunks: Vec<NewChunk>,
    restored: Option<Box<Restored>>,
}

/// Runs the user's setup function. Creates the chunks that start on `rank`, or reads the part of a checkpoint for it.
/// Runs user code, which may panic.
pub(crate) fn set_up(
    rank: Rank,
    ranks: u32,
    config: &Config,
    strategy: &dyn Strategy,
    describe: &dyn Fn(Rank, u32) -> Result<RankSetup, Error>,
) -> Result<(RankSetup, Beginning), Error> {
    // Names are formatted only after a panic: there may be millions of chunks.
    let (mut placing, mut making) = (None, None);
    let set_up = || {
        let mut described = describe(rank, ranks)?;
        if let Some(settings) = &config.checkpoint {
            let check = check_saved(config, &described.arrays, strategy);
            let store = check.and_then(|()| Store::new(settings, rank));
            described.checkpoints = Some(Arc::new(store.map_err(|why| wrong("CARIBOU_CHECKPOINT", why))?));
        }
        let restored = config.restart.as_ref().map(|dir| {
            let check = check_saved(config, &described.arrays, strategy);
            let restored =
                check.and_then(|()| restart(dir, rank, ranks, config, &described.arrays, strategy));
            restored.map(Box::new).map_err(|why| wrong("CARIBOU_RESTART", why))
        });
        let restored = restored.transpose()?;
        let mut chunks = Vec::new();
        let is_new = |array: &dyn ErasedArray| restored.is_none() || array.is_group();
        for (id, array) in (0..).map(ArrayId).zip(&*described.arrays).filter(|(_, array)| is_new(&***array)) {
            placing = Some(id);
            for key in array.keys_on(rank, ranks) {
                making = Some((id, array.clone(), key));
                chunks.push((ChunkId { array: id, key }, array.create(key)));
            }
            making = None;
        }
        Ok((described, Beginning { chunks, restored }))
    };
    catch_unwind(AssertUnwindSafe(set_up)).unwrap_or_else(|panic| {
        let doing = match (making, placing) {
            (Some((id, array, key)), _) => format!("while it created {}", chunk_name(&array, id, key)),
            (None, Some(id)) => format!("while it placed the chunks of array {id}"),
            (None, None) => "in its setup".into(),
        };
        Err(panics::panic_error(rank, &*panic, |panic| Error::SetupPanicked { rank, doing, panic }))
    })
}

impl Worker<'_> {
    /// Starts the rank: puts its chunks into cells, and sends up the arrays that were set up.
    pub(crate) fn begin(&mut self, beginning: Beginning) {
        let Beginning { chunks, restored } = beginning;
        if let Some(Restored { mut image, moved }) = restored.map(|restored| *restored) {
            let timers = std::mem::take(&mut image.timers);
            self.with_core(|core, _, out| core.restore(image, moved, out));
            self.restore_timers(timers);
        }
        let shared = self.shared;
        let (workers, count) = (shared.measurements.workers(), chunks.len());
        if let Some(recorder) = self.instruments.recorder() {
            for &(chunk, _) in &chunks {
                let index = || shared.arrays[chunk.array.index()].index_text(chunk.key);
                recorder.arrived(chunk, 0, false, index);
            }
        }
        let settle = |(position, (chunk, slot))| {
            let cell = shared.cells.reserve();
            shared.cells.settle_new(cell, chunk, slot);
            shared.cells.get(cell).set_home(WorkerId((position * workers / count) as u32));
            shared.control_plane.lock().rank.created(chunk, cell);
            cell
        };
        // All chunks are in their cells before any is ready: the first message of the first chunk may be to the last
        // chunk.
        let cells: Vec<_> = chunks.into_iter().enumerate().map(settle).collect();
        cells
            .into_iter()
            .for_each(|cell| self.local_delivery.enqueue_ready(cell, self.shared.cells.get(cell)));
        if self.id == WorkerId(0) {
            self.with_core(|core, _, out| core.hello(out));
            shared.measurements.begin(shared.clock.now_ns());
        }
        self.instruments.skip(Part::Start, SyncId(0));
    }
}

/// Returns the function that formats the names of the chunks of these arrays for users.
pub(crate) fn name_chunk(arrays: &Arc<[Arc<dyn ErasedArray>]>) -> NameChunk {
    let arrays = arrays.clone();
    Box::new(move |chunk| {
        let array = arrays.get(chunk.array.index())?;
        Some(chunk_name(array, chunk.array, chunk.key))
    })
}

fn chunk_name(array: &Arc<dyn ErasedArray>, id: ArrayId, key: u64) -> String {
    // The index is user code and may panic.
    let index = catch_unwind(AssertUnwindSafe(|| array.index_text(key)));
    format!("{}[{}] of array {id}", array.name(), index.unwrap_or_else(|_| key.to_string()))
}
