//! The worker's part of syncs and of balancing windows (measurements while chunks run): the arrival of a chunk, the
//! measurement of the rank, and the stall report. The call of the strategy is in [`deciding`](super::deciding).

use lb_strategies::balancer::EdgeReports;

use super::facts::ReportedFacts;
use super::mailbox::PushedBy;
use super::worker::Worker;
use crate::arrays::core::command::Commands;
use crate::arrays::core::lifecycle::erased::ErasedSlot;
use crate::arrays::core::lifecycle::handler::RankInfo;
use crate::arrays::core::rank::RankCore;
use crate::arrays::core::routing::envelope::{Delivery, Payload};
use crate::arrays::core::routing::message_list::MessageNode;
use crate::arrays::core::sync::sync_arrivals::{MeasuredChunk, SyncArrival, UnmeasuredReport};
use crate::ids::{ArrayId, CellId, ChunkId, SyncId};
use crate::measure::counters::SampleTrigger;
use crate::measure::records::Sample;
use crate::text::counted;
use crate::trace::Part;
use crate::warn::warn;

/// A run without a sync that is at least this long gets a warning, ns.
const UNBALANCED_NS: u64 = 1_000_000_000;
/// Maximum number of lines of one rank in a stall report.
const LINES_MAX: usize = 8;

impl Worker<'_> {
    /// A chunk comes to a sync: passes the arrival to the core, and resumes the chunk unless it waits for the decision.
    pub(super) fn at_sync(&mut self, chunk: ChunkId, slot: &mut dyn ErasedSlot, cell: CellId, bytes: u64) {
        let array = &self.shared.arrays[chunk.array.index()];
        assert!(array.syncs(), "a chunk of an array without sync cannot call at_sync");
        if self.shared.info.by_windows {
            return self.pass_sync(chunk, slot, cell);
        }
        self.instruments.lap(false);
        let declared = slot.declared_load();
        let migratable = slot.migratable();
        let record = slot.record();
        let report = record.syncs.report();
        let declared = record.charged.take().or(declared);
        let wish = record.wish.take();
        let paused = !record.is_runnable();
        let arrival = SyncArrival { chunk, cell, report, declared, bytes, migratable, wish, paused };
        let mut waits = true;
        // The chunk may not have read yet the messages that it deferred at the last sync.
        let kept_bytes = slot.deferred_bytes();
        self.with_core(|core, _, out| {
            waits = core.at_sync(arrival, out);
            core.defer(SyncId(report.sequence), kept_bytes);
        });
        if !waits {
            self.resume(chunk, cell);
        }
    }

    /// A chunk comes to a sync of a run that balances in windows: resumes the chunk at once.
    #[cold]
    fn pass_sync(&mut self, chunk: ChunkId, slot: &mut dyn ErasedSlot, cell: CellId) {
        let record = slot.record();
        record.syncs.report();
        if let Some(rank) = record.wish.take() {
            self.shared.cells.get(cell).facts.wish(rank);
        }
        self.resume(chunk, cell);
    }

    /// Warns once, at the end of a long run, if the strategy could move nothing because the program came to no sync.
    pub(super) fn warn_without_syncs(&self) {
        let RankInfo { ranks, period, .. } = self.shared.info;
        let is_long = self.shared.clock.now_ns() >= UNBALANCED_NS && !self.shared.clock.is_virtual();
        let takes_part = self.shared.arrays.iter().any(|array| array.syncs());
        if is_long && ranks > 1 && period > 0 && takes_part {
            warn(
                "no chunk was moved: with this strategy or CARIBOU_LB_PERIOD chunks move only at syncs, and the \
                 program had none (`sync_due`, `at_sync`)",
            );
        }
    }

    /// Lets the chunk that runs resume after its handler.
    fn resume(&mut self, chunk: ChunkId, cell: CellId) {
        let resume = Delivery::by_runtime(Payload::Resume);
        let refused = self.local_delivery.push(cell, MessageNode::new(chunk, resume), PushedBy::Core);
        assert!(refused.is_none(), "a chunk that runs is in its cell");
    }

    pub(super) fn sample(&mut self, reports: UnmeasuredReport) {
        let sample = self.sample_rank();
        let (shared, counts) = (self.shared, self.measured_load_counts());
        let take_load =
            |arrival: &SyncArrival| if counts { shared.cells.get(arrival.cell).take_load() } else { 0 };
        let loads: Vec<u64> = reports.arrivals.iter().map(take_load).collect();
        let (sync, edges) = (reports.sync, self.take_edges());
        if let Some(recorder) = self.instruments.recorder() {
            for (arrival, &cpu_ns) in reports.arrivals.iter().zip(&loads) {
                let load_ns = arrival.declared.unwrap_or(cpu_ns);
                recorder.loaded(arrival.chunk, sync, load_ns, arrival.bytes);
            }
        }
        self.report(sync, |core, now_ns, out| {
            core.sampled(reports, sample, &loads, edges, now_ns, out);
        });
    }

    /// Measures the rank and its chunks in a window.
    pub(super) fn sample_window(&mut self, number: u64, decides: bool, chunks: &[(ChunkId, CellId)]) {
        let sample = self.sample_rank();
        let (shared, counts) = (self.shared, self.measured_load_counts());
        let measure = |&(chunk, id): &(ChunkId, CellId)| {
            let cell = shared.cells.get(id);
            let measured_ns = if counts { cell.take_load() } else { 0 };
            let ReportedFacts { bytes, declared_ns, migratable, unasked, wish } = cell.facts.take(decides);
            let (load_ns, declared) = (declared_ns.unwrap_or(measured_ns), declared_ns.is_some());
            let handled = cell.take_handled();
            let moves = !shared.arrays[chunk.array.index()].at_syncs();
            let (migratable, wish) = (migratable && moves, wish.filter(|_| moves));
            let unasked = unasked && moves;
            MeasuredChunk { chunk, load_ns, declared, bytes, migratable, unasked, wish, handled }
        };
        let measured: Vec<MeasuredChunk> = chunks.iter().map(measure).collect();
        let (window, edges) = (SyncId(number), self.take_edges());
        if let Some(recorder) = self.instruments.recorder() {
            for chunk in &measured {
                recorder.loaded(chunk.chunk, window, chunk.load_ns, chunk.bytes);
            }
        }
        self.report(window, |core, now_ns, out| {
            core.window_sampled(number, sample, measured, edges, now_ns, out);
        });
    }

    /// Takes the messages that chunks of this rank have sent since the last report, as far as they are recorded.
    fn take_edges(&self) -> EdgeReports {
        let arrays = &self.shared.arrays;
        let is_balanced = |chunk: ChunkId| arrays.get(chunk.array.index()).is_some_and(|array| array.syncs());
        self.shared.edges.take(is_balanced)
    }

    /// Reports the measurements to a sync or in a window, and records them.
    fn report(&mut self, sync: SyncId, report: impl FnOnce(&mut RankCore, u64, &mut Commands)) {
        // On rank 0 a decision may follow, which gets a separate slice.
        self.instruments.skip(Part::Measure, sync);
        self.with_core(report);
        self.instruments.observe(SampleTrigger::AtSync(sync));
        self.instruments.skip(Part::Measure, sync);
    }

    fn sample_rank(&mut self) -> Sample {
        self.instruments.interrupt();
        self.instruments.close_batch();
        let shared = self.shared;
        shared.measurements.rounds().ask(shared.clock.now_ns());
        self.instruments.calibrate();
        shared.measurements.sample(shared.clock.now_ns())
    }

    /// True if the measured load of chunks counts. Without measurement only declared load counts, although a profile
    /// also charges chunks. A simulation charges only load that counts.
    fn measured_load_counts(&self) -> bool {
        self.shared.measurements.measures() || self.shared.clock.is_virtual()
    }

    /// The lines of a stall report: what every idle chunk of this rank waits for, or has not yet done.
    pub(super) fn explain(&mut self, reductions: &[(ArrayId, u64)]) -> Vec<String> {
        let shared = self.shared;
        let open = shared.control_plane.lock().rank.open_sync();
        let (mut missing, mut waiting, mut expecting) = (Vec::new(), Vec::new(), Vec::new());
        for cell in shared.cells.iter() {
            let looked = cell.mailbox.inspect(|chunk, slot| {
                // `waits_for` is user code and may panic.
                self.instruments.turn_to_hook(chunk, "waits_for", slot.record().syncs.next);
                (chunk, slot.deferred(), slot.waits_for(), slot.record().clone())
            });
            let Some((chunk, kept, waits_for, record)) = looked else { continue };
            let syncs = self.shared.arrays[chunk.array.index()].syncs();
            match open.filter(|&sync| syncs && record.syncs.next <= sync.0) {
                Some(sync) => missing.push(format!("{} has not come to sync {sync}", self.describe(chunk))),
                None if !record.is_runnable() => {
                    waiting.push(format!("{} waits at a sync", self.describe(chunk)));
                }
                None => {}
            }
            let of_array = reductions.iter().find(|(array, _)| *array == chunk.array);
            if let Some((_, reduction)) =
                of_array.filter(|(_, reduction)| record.reductions.next <= *reduction)
            {
                missing
                    .push(format!("{} has not contributed to reduction {reduction}", self.describe(chunk)));
            }
            if let Some(what) = waits_for.filter(|_| record.is_runnable()) {
                expecting.push(format!("{} waits for {what}", self.describe(chunk)));
            }
            if kept > 0 && record.is_runnable() {
                let kept = counted(kept, "message", "messages");
                waiting.push(format!("{} has {kept} for which it is not ready", self.describe(chunk)));
            }
        }
        missing.append(&mut waiting);
        missing.append(&mut expecting);
        let more = missing.len().saturating_sub(LINES_MAX);
        missing.truncate(LINES_MAX);
        if more > 0 {
            missing.push(format!("and {more} more lines of rank {}", self.shared.info.rank));
        }
        missing
    }
}
