//! Runs on rank 0: collects the reports to a sync or in a balancing window, lets the balancer decide, and keeps the
//! record.
//!
//! The [`Balancer`] visits every chunk of the run several times, so it runs outside the core. It leaves the core with
//! the reports, in a [`DecisionRequest`], and comes back with the decision.

use std::sync::Arc;

use lb_strategies::balancer::{
    Balancer, ChunkReport, Decision, EdgeReports, HISTORY, PhaseReport, RankPlace, RankReport, RankSample,
    UndecidedWindows,
};
use lb_strategies::grouped::Offer;
use lb_strategies::window_policy::{Look, Signal, WindowPolicy};
use lb_strategies::{ChunkLoad, LinkCosts, Prediction, Strategy};
use litemap::LiteMap;

use super::group::{GroupedCoordinator, GroupedStep};
use super::migration::{Move, Occasion};
use super::migration_bytes::{MigrationBytes, SizeScales};
use super::report_aggregation::AggregatedReports;
use super::sync_arrivals::{MeasuredChunk, MeasuredRank};
use super::sync_log::SyncLog;
use crate::arrays::core::collectives::population::Tally;
use crate::arrays::core::lifecycle::erased::ErasedArray;
use crate::ids::{ArrayId, ChunkId, Rank, SyncId};
use crate::measure::edges::EdgeRecording;
use crate::measure::records::Sample;
use crate::text::{counted, resize_line};
use crate::trace::SyncReport;

/// A sync that is not complete: the reports so far.
pub(super) struct PendingSync {
    tallies: Vec<Tally>,
    pub(super) chunks: Vec<ChunkReport>,
    edges: EdgeReports,
    pub(super) samples: Vec<Option<Sample>>,
    /// By rank, the number of chunks that have not run since the last window.
    unasked: Vec<u32>,
    waited: u64,
    first_ns: u64,
    last_ns: u64,
}

impl PendingSync {
    pub(super) fn new(arrays: usize, ranks: usize, now_ns: u64) -> PendingSync {
        PendingSync {
            tallies: vec![Tally::default(); arrays],
            chunks: Vec::new(),
            edges: EdgeReports::default(),
            samples: vec![None; ranks],
            unasked: vec![0; ranks],
            waited: 0,
            first_ns: now_ns,
            last_ns: 0,
        }
    }

    pub(super) fn add(&mut self, reports: AggregatedReports, scales: &SizeScales) {
        self.first_ns = self.first_ns.min(reports.first_ns);
        self.last_ns = self.last_ns.max(reports.last_ns);
        self.waited += reports.waited;
        self.edges.add(reports.edges);
        for (array, tally) in &reports.tallies {
            self.tallies[array.index()].merge(tally);
        }
        for MeasuredRank { rank, sample, chunks } in reports.ranks {
            self.unasked[rank.index()] += chunks.iter().filter(|chunk| chunk.unasked).count() as u32;
            let report = |chunk: MeasuredChunk| {
                let MeasuredChunk {
                    chunk: id,
                    load_ns: ticks,
                    declared,
                    bytes,
                    migratable,
                    wish,
                    handled,
                    ..
                } = chunk;
                let bytes = scales.bytes(id.array, bytes);
                ChunkReport {
                    load: ChunkLoad { id, rank, ticks, bytes, migratable },
                    declared,
                    wish,
                    handled,
                }
            };
            self.chunks.extend(chunks.into_iter().map(report));
            let sum = &mut self.samples[rank.index()];
            *sum = Some(sum.map_or(sample, |before| before.plus(&sample)));
        }
    }

    /// Number of messages that chunks handled.
    fn deliveries(&self) -> u64 {
        self.samples.iter().flatten().map(|sample| sample.deliveries).sum()
    }
}

/// The part of the record of a *phase* (the time between two syncs or windows) that does not come from the balancer.
struct PhaseRecord {
    occasion: Occasion,
    /// Number of ranks that are active from now on.
    active: u32,
    /// The report to the balancer, if reports are kept.
    reported: Option<Arc<PhaseReport>>,
    /// Number of messages that chunks handled in the phase.
    deliveries: u64,
    /// Number of chunks that waited for the decision at the end of the phase.
    waited: u64,
    /// Times of the first and the last report to the sync, ns.
    first_ns: u64,
    last_ns: u64,
}

/// A decision with a migration in progress.
struct OngoingMigration {
    report: SyncReport,
    decided_ns: u64,
    /// The time that the migration was expected to take, ns.
    expected_ns: u64,
}

/// A change of the number of active ranks. Exists until chunks have moved accordingly.
#[derive(Clone, Copy, Debug)]
struct Resize {
    /// The number before the change.
    before: u32,
    /// True once the balancer has a request for a decision on the change.
    is_in_decision: bool,
    /// Number of further decisions that may move chunks off the inactive ranks.
    decisions: u32,
    /// Number of chunks on the inactive ranks that had not run since the last window, at the last decision.
    unasked: u32,
    /// Chunks and bytes that have moved since the change, and the time that the moves took, ns.
    moved: u64,
    moved_bytes: u64,
    migrate_ns: u64,
}

impl Resize {
    fn from(before: u32) -> Resize {
        let decisions = DECISIONS_MAX - 1;
        Resize {
            before,
            is_in_decision: false,
            decisions,
            unasked: 0,
            moved: 0,
            moved_bytes: 0,
            migrate_ns: 0,
        }
    }

    /// A decision on the change was carried out.
    fn count(&mut self, report: &SyncReport) {
        self.is_in_decision = false;
        self.decisions = self.decisions.saturating_sub(1);
        self.moved += report.moved;
        self.moved_bytes += report.moved_bytes;
        self.migrate_ns += report.migrate_ns;
    }
}

/// The most decisions that empty inactive ranks in windows, and the time from one to the next, ns. One is not enough: a
/// chunk that has not run since it came to its rank does not move, since its hook `migratable` was not called.
const DECISIONS_MAX: u32 = 250;
const DECISIONS_APART_NS: u64 = 40_000_000;

/// A complete sync to be decided: the report, and the balancer that decides.
pub(crate) struct DecisionRequest {
    pub(crate) report: PhaseReport,
    pub(crate) balancer: Balancer,
}

impl DecisionRequest {
    pub(crate) fn sync(&self) -> SyncId {
        SyncId(self.balancer.phase())
    }
}

impl std::fmt::Debug for DecisionRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DecisionRequest").field("report", &self.report).finish_non_exhaustive()
    }
}

/// The coordinator of a run. Exists on rank 0 only.
pub(crate) struct Coordinator {
    /// None while the balancer decides.
    balancer: Option<Balancer>,
    places: Vec<RankPlace>,
    /// Number of active ranks: the ranks with the lowest numbers. The other ranks get no chunks.
    active: u32,
    /// The change of `active`, until chunks have moved accordingly.
    resize: Option<Resize>,
    /// True if the record includes the reports to the balancer.
    keeps_reports: bool,
    /// In which phases messages between chunks are recorded.
    edge_recording: EdgeRecording,
    /// Number of members per array; None for arrays that do not sync.
    populations: Vec<Option<u64>>,
    /// The leader of each array, the array itself if it has none; empty if no array has one. A leader's chunks and its
    /// followers' move together.
    leaders: Vec<ArrayId>,
    next: SyncId,
    gathering: LiteMap<SyncId, PendingSync>,
    /// Number of messages handled per phase, for the phases in the history of the balancer.
    deliveries: Vec<u64>,
    /// The phase that ends with the sync that is being decided.
    deciding: Option<PhaseRecord>,
    ongoing: Option<OngoingMigration>,
    /// The policy that opens windows. None if chunks are balanced at syncs.
    windows: Option<WindowPolicy>,
    /// True if the chunks of a rank may not exceed a number of bytes.
    has_memory_limit: bool,
    /// True if a warning has told of a rank above its limit of memory.
    has_warned_of_memory: bool,
    /// None unless windows are decided on two levels.
    grouped: Option<GroupedCoordinator>,
    /// When the first and the last rank reported in the window of groups, ns.
    group_times: [u64; 2],
    /// The purpose of the open window.
    open_window: Look,
    undecided: UndecidedWindows,
    /// Number of messages handled in windows that are added to the next window.
    collected_deliveries: u64,
    scales: SizeScales,
    log: SyncLog,
}

impl Coordinator {
    /// The coordinator of a run with these arrays. The chunks of an array that names a leader stay with the leader's
    /// chunks.
    pub(crate) fn of_arrays(
        strategy: Arc<dyn Strategy>,
        arrays: &[Arc<dyn ErasedArray>],
        places: &[RankPlace],
        keeps_reports: bool,
    ) -> Coordinator {
        let leaders = leaders_of(arrays);
        let syncing = arrays.iter().map(|array| array.syncs().then(|| array.population())).collect();
        Coordinator::new(strategy, syncing, leaders, places, keeps_reports)
    }

    pub(crate) fn new(
        strategy: Arc<dyn Strategy>,
        populations: Vec<Option<u64>>,
        leaders: Vec<ArrayId>,
        places: &[RankPlace],
        keeps_reports: bool,
    ) -> Coordinator {
        Coordinator {
            balancer: Some(Balancer::new(strategy)),
            places: places.into(),
            active: places.len() as u32,
            resize: None,
            keeps_reports,
            edge_recording: EdgeRecording::Off,
            populations,
            leaders,
            next: SyncId(0),
            gathering: LiteMap::new(),
            deliveries: Vec::new(),
            deciding: None,
            ongoing: None,
            windows: None,
            has_memory_limit: false,
            has_warned_of_memory: false,
            grouped: None,
            group_times: [0; 2],
            open_window: Look::Wait,
            undecided: UndecidedWindows::default(),
            collected_deliveries: 0,
            scales: SizeScales::default(),
            log: SyncLog::new(places.len()),
        }
    }

    /// True if a sync or a window is being decided.
    pub(crate) fn is_deciding(&self) -> bool {
        self.deciding.is_some()
    }

    /// The first sync to which some member has still to report.
    fn open(&self) -> SyncId {
        if self.deciding.is_some() { self.next.next() } else { self.next }
    }

    /// Admits a chunk to the syncs, from the first one that is not complete. Returns the number of that sync.
    pub(crate) fn admit(&mut self, array: ArrayId) -> SyncId {
        if let Some(members) = &mut self.populations[array.index()] {
            *members += 1;
        }
        self.open()
    }

    /// Adds reports of ranks. Returns the request once the last member of every array has reported.
    pub(crate) fn collect(&mut self, collected: AggregatedReports) -> Option<DecisionRequest> {
        let open = self.open();
        assert!(collected.sync >= open, "a count is complete only when no member is left to report");
        let (arrays, ranks) = (self.populations.len(), self.places.len());
        let pending = self.gathering.entry(collected.sync);
        pending
            .or_insert_with(|| PendingSync::new(arrays, ranks, collected.first_ns))
            .add(collected, &self.scales);
        self.take_complete()
    }

    pub(crate) fn predicting(mut self, prediction: Prediction) -> Coordinator {
        self.balancer = self.balancer.map(|balancer| balancer.predicting(prediction));
        self
    }

    /// Sets the bytes that the chunks of a rank may not exceed.
    pub(crate) fn within_memory(&mut self, limit: Option<u64>) {
        self.balancer = self.balancer.take().map(|balancer| balancer.within_memory(limit));
        self.has_memory_limit = limit.is_some();
    }

    pub(crate) fn record_edges(&mut self, recording: EdgeRecording) {
        self.edge_recording = recording;
    }

    /// True if messages between chunks are recorded in the next phase. Rank 0 asks when no decision is being made.
    pub(crate) fn wants_edges(&self) -> bool {
        match self.edge_recording {
            EdgeRecording::Auto => {
                self.places.len() > 1 && self.balancer.as_ref().is_some_and(Balancer::wants_edges)
            }
            EdgeRecording::On => true,
            EdgeRecording::Off => false,
        }
    }

    pub(crate) fn by_windows(&mut self, policy: WindowPolicy) {
        self.windows = Some(policy);
    }

    /// All ranks have signalled how busy they are. Returns the action of the policy.
    pub(crate) fn look(&mut self, signal: &Signal, now_ns: u64) -> Look {
        let (active, may_open) = (self.active, self.may_open_window());
        self.windows.as_mut().map_or(Look::Wait, |policy| policy.look(signal, active, may_open, now_ns))
    }

    /// Makes the first `active` ranks the active ones, at least one and at most all, from the next decision on. In
    /// windows that decision is made soon. Returns the number of active ranks if it changes.
    pub(crate) fn resize(&mut self, active: u32) -> Option<u32> {
        let active = active.clamp(1, self.places.len() as u32);
        if active == self.active {
            return None;
        }
        let before = self.resize.map_or(self.active, |resize| resize.before);
        self.resize = Some(Resize::from(before));
        self.active = active;
        self.windows.iter_mut().for_each(|policy| policy.decide_at(0));
        Some(active)
    }

    /// True if not all ranks are active, or chunks are still moving after the number of active ranks has changed.
    pub(crate) fn is_resized(&self) -> bool {
        self.resize.is_some() || (self.active as usize) < self.places.len()
    }

    /// The run restarts, and the chunk is away from `rank`, its home.
    pub(crate) fn began_on(&mut self, chunk: ChunkId, rank: Rank) {
        self.balancer.iter_mut().for_each(|balancer| balancer.began_on(chunk, rank));
    }

    /// Returns the number of active ranks and a line for the user, once chunks have moved to these ranks. In windows
    /// another decision follows while chunks on inactive ranks have not run since the last window, up to
    /// [`DECISIONS_MAX`] decisions.
    pub(crate) fn end_resize(&mut self, now_ns: u64) -> Option<(u32, String)> {
        let report = self.log.last()?;
        let resize = self.resize.as_mut().filter(|resize| resize.is_in_decision && self.ongoing.is_none())?;
        resize.count(report);
        let waits = resize.unasked > 0 && resize.decisions > 0;
        if let Some(policy) = self.windows.as_mut().filter(|_| waits) {
            policy.decide_at(now_ns + DECISIONS_APART_NS);
            return None;
        }
        let left: u32 = report.chunks_per_rank[self.active as usize..].iter().sum();
        let Resize { before, unasked, moved, moved_bytes, migrate_ns, .. } = self.resize.take()?;
        let mut line = resize_line(self.active as usize, self.places.len(), before as usize);
        if moved > 0 {
            let (chunks, mb) = (counted(moved as usize, "chunk", "chunks"), moved_bytes as f64 / 1e6);
            line += &format!(": {chunks} ({mb:.1} MB) moved in {:.1} ms", migrate_ns as f64 / 1e6);
        }
        if unasked > 0 {
            let chunks = counted(unasked as usize, "chunk", "chunks");
            line += &format!("; {chunks} on inactive ranks will move after running once");
        }
        if left > unasked {
            let chunks = counted((left - unasked) as usize, "chunk", "chunks");
            line += &format!("; {chunks} on inactive ranks cannot move");
        }
        Some((self.active, line))
    }

    /// True if a window may be opened: none is open, nothing is being decided, and no chunk is migrating.
    pub(crate) fn may_open_window(&self) -> bool {
        self.open_window == Look::Wait && self.deciding.is_none() && self.ongoing.is_none()
    }

    /// Opens a window if one may be opened. Returns the number of the window.
    pub(crate) fn open_window(&mut self, look: Look) -> Option<u64> {
        let opens = self.windows.is_some() && look != Look::Wait && self.may_open_window();
        opens.then(|| {
            self.open_window = look;
            self.next.0
        })
    }

    /// Decides windows on two levels: first in groups of ranks.
    pub(crate) fn by_groups(&mut self, grouped: GroupedCoordinator) {
        self.grouped = Some(grouped);
    }

    /// True if groups decide the next window first. Rank 0 needs all loads to empty ranks, to record reports or edges, and
    /// to keep to limits of memory.
    pub(crate) fn decides_in_groups(&self) -> bool {
        let needs_all =
            self.is_resized() || self.keeps_reports || self.wants_edges() || self.has_memory_limit;
        self.grouped.is_some() && !needs_all
    }

    /// All groups have reported in the window.
    pub(crate) fn groups_reported(&mut self, reports: AggregatedReports) -> GroupedStep {
        let grouped = self.grouped.as_mut().expect("windows are decided in groups");
        // Windows that rank 0 has collected itself are of another time.
        self.undecided = UndecidedWindows::default();
        if self.open_window != Look::Decide {
            self.open_window = Look::Wait;
            return GroupedStep::Wait;
        }
        self.group_times = [reports.first_ns, reports.last_ns];
        self.collected_deliveries += reports.groups.iter().map(|group| group.handled).sum::<u64>();
        grouped.reported(self.next.0, reports.groups)
    }

    /// A late group offers chunks.
    pub(crate) fn offered(&mut self, first: Rank, offers: Vec<Offer>) -> GroupedStep {
        self.grouped.as_mut().map_or(GroupedStep::Wait, |grouped| grouped.offered(first, offers))
    }

    /// Records the decision of all groups. Returns the occasion of the decision, and the moves.
    pub(crate) fn groups_decided(&mut self, mut decision: Decision, now_ns: u64) -> (Occasion, Vec<Move>) {
        self.open_window = Look::Wait;
        // Ranks may have become inactive since the window was opened. The next decision empties them.
        let (active, chunks_per_rank) = (self.active, &mut decision.chunks_per_rank);
        for one in decision.moves.extract_if(.., |one| one.to.0 >= active) {
            chunks_per_rank[one.to.index()] -= 1;
            chunks_per_rank[one.from.index()] += 1;
        }
        let (occasion, [first_ns, last_ns]) = (Occasion::Window, self.group_times);
        let deliveries = self.note_deliveries(0);
        self.deciding =
            Some(PhaseRecord { occasion, active, reported: None, deliveries, waited: 0, first_ns, last_ns });
        let mut balancer = self.balancer.take().expect("it is here unless it decides");
        balancer.skip();
        self.decided(balancer, decision, now_ns)
    }

    /// Adds the deliveries of a phase and of the windows collected for it to the last ones.
    fn note_deliveries(&mut self, deliveries: u64) -> u64 {
        let deliveries = deliveries + std::mem::take(&mut self.collected_deliveries);
        if self.deliveries.len() == HISTORY {
            self.deliveries.remove(0);
        }
        self.deliveries.push(deliveries);
        deliveries
    }

    /// All ranks have reported in the window. None if nothing is decided: the window only ends the last one, or is shorter
    /// than a step of the program.
    pub(crate) fn window_reported(&mut self, reports: AggregatedReports) -> Option<DecisionRequest> {
        let look = std::mem::replace(&mut self.open_window, Look::Wait);
        let mut pending = PendingSync::new(self.populations.len(), self.places.len(), reports.first_ns);
        pending.add(reports, &self.scales);
        if look == Look::Decide {
            return self.request(Occasion::Window, pending);
        }
        let deliveries = pending.deliveries();
        let window = self.phase_report(true, pending.chunks, pending.edges, &pending.samples);
        if look == Look::Collect {
            self.collected_deliveries += deliveries;
            self.undecided.collect(window);
        } else if self.undecided.push(window) {
            self.collected_deliveries += deliveries;
        } else {
            self.collected_deliveries = 0;
        }
        None
    }

    fn phase_report(
        &self,
        window: bool,
        chunks: Vec<ChunkReport>,
        edges: EdgeReports,
        samples: &[Option<Sample>],
    ) -> PhaseReport {
        let (ranks, leaders) = (phase_ranks(&self.places, samples), self.leaders.clone());
        let inactive = (self.active..self.places.len() as u32).map(Rank).collect();
        PhaseReport { ranks, chunks, leaders, edges, inactive, window, undecided: Vec::new() }
    }

    /// The run has stalled: adds the tallies of reports that ranks still hold back.
    pub(crate) fn add_reports(&mut self, reported: Vec<(SyncId, ArrayId, Tally)>) {
        for (sync, array, tally) in reported {
            let (arrays, ranks) = (self.populations.len(), self.places.len());
            let pending = self.gathering.entry(sync).or_insert_with(|| PendingSync::new(arrays, ranks, 0));
            pending.tallies[array.index()].merge(&tally);
        }
    }

    /// Returns the request to decide the next sync, if the sync is complete and no other is being decided.
    pub(crate) fn take_complete(&mut self) -> Option<DecisionRequest> {
        if self.deciding.is_some() {
            return None;
        }
        let gathering = self.gathering.get(&self.next)?;
        let mut after = self.populations.clone();
        for (population, tally) in after.iter_mut().zip(&gathering.tallies) {
            if let Some(members) = population {
                *population = Some(tally.complete(*members)?);
            }
        }
        self.populations = after;
        let pending = self.gathering.remove(&self.next).expect("looked at just above");
        self.request(Occasion::Sync(self.next), pending)
    }

    /// Returns the balancer and the reports, for the decision; none if the window is collected for the next one.
    fn request(&mut self, occasion: Occasion, pending: PendingSync) -> Option<DecisionRequest> {
        let mut deliveries = pending.deliveries();
        let PendingSync { chunks, edges, samples, unasked, waited, first_ns, last_ns, .. } = pending;
        if let Occasion::Sync(_) = occasion {
            // One delivery per chunk is its `Start` or `Resume`, however long the phase is.
            deliveries = deliveries.saturating_sub(chunks.len() as u64);
        }
        let phase = self.phase_report(occasion.is_window(), chunks, edges, &samples);
        let report = if occasion.is_window() && self.resize.is_none() {
            let must_pay =
                self.balancer.as_ref().is_some_and(|balancer| balancer.strategy().terms().must_pay);
            self.undecided.decide_step(phase, must_pay)
        } else {
            Some(self.undecided.decide(phase))
        };
        let Some(report) = report else {
            self.collected_deliveries += deliveries;
            return None;
        };
        let deliveries = self.note_deliveries(deliveries);
        let reported = self.keeps_reports.then(|| Arc::new(report.clone()));
        let active = self.active;
        if let Some(resize) = &mut self.resize {
            resize.is_in_decision = true;
            resize.unasked = unasked[active as usize..].iter().sum();
        }
        self.deciding =
            Some(PhaseRecord { occasion, active, reported, deliveries, waited, first_ns, last_ns });
        let balancer = self.balancer.take().expect("it is here unless it decides");
        Some(DecisionRequest { report, balancer })
    }

    /// Takes back the balancer and records its decision. Returns the occasion of the decision, and the moves.
    pub(crate) fn decided(
        &mut self,
        balancer: Balancer,
        decided: Decision,
        now_ns: u64,
    ) -> (Occasion, Vec<Move>) {
        let phase = self.deciding.take().expect("its request was handed out");
        let took_ns = decided.took_ns;
        let decide_ns = took_ns.unwrap_or(0);
        let (accepted, proposed) = (decided.accepted, decided.proposed);
        let makespan_before_ns = decided.makespan_before_ns();
        let report = SyncReport {
            sync: self.next.0,
            window: phase.occasion.is_window(),
            active: Some(phase.active),
            prediction: decided.prediction,
            at_ns: now_ns,
            imbalance_before: decided.imbalance_before,
            imbalance_predicted: decided.imbalance_predicted,
            makespan_before_ns,
            makespan_predicted_ns: decided.makespan_predicted_ns(),
            bound_ns: decided.bound_ns,
            ideal_ns: decided.ideal_ns,
            moved: decided.moves.len() as u64,
            moved_bytes: 0,
            collect_ns: phase.last_ns.saturating_sub(phase.first_ns),
            decide_ns,
            migrate_ns: 0,
            chunks_per_rank: decided.chunks_per_rank,
            capacity: decided.capacity,
            share: decided.share,
            before_ns: decided.before_ns,
            predicted_ns: decided.predicted_ns,
            proposed,
            gain_ns: decided.gain_ns,
            needed_ns: decided.needed_ns,
            deliveries: phase.deliveries,
            deliveries_predicted: {
                let level = balancer.smoothing().level(self.deliveries.iter().map(|&phase| phase as f64));
                level.unwrap_or(0.0).round() as u64
            },
            makespan_unmoved_ns: decided.unmoved_ns.unwrap_or(0),
            waited: Some(phase.waited),
            reported: phase.reported,
        };
        tracing::info!(
            phase = self.next.0,
            moved = report.moved,
            before = format_args!("{:.3}", report.imbalance_before),
            predicted = format_args!("{:.3}", report.imbalance_predicted),
            decide_us = decide_ns / 1_000,
            edges = balancer.measured().edges.len(),
            "balanced"
        );
        if let Some((rank, bytes, limit)) = decided.over_memory
            && !std::mem::replace(&mut self.has_warned_of_memory, true)
        {
            let [has_mib, limit_mib] = [bytes, limit].map(|bytes| bytes as f64 / f64::from(1 << 20));
            tracing::warn!(
                "the chunks of rank {} have {has_mib:.1} MiB of state, and the limit of memory is {limit_mib:.1} MiB \
                 (CARIBOU_LB_MEMORY): the strategy `{}` finds no rank with room for them",
                rank.0,
                balancer.strategy().name()
            );
        }
        if !balancer.measured().edges.is_empty() {
            let LinkCosts { within_host, between_hosts } = balancer.measured().links;
            let prices = [within_host, between_hosts].map(|link| (link.ns_per_message, link.ns_per_byte));
            tracing::debug!(?prices, "ns per message and per byte, within a host and between hosts");
        }
        let refused = proposed.saturating_sub(report.moved);
        let (gain_us, needed_us) = (report.gain_ns / 1_000, report.needed_ns / 1_000);
        if took_ns.is_none() && report.moved > 0 {
            tracing::info!(
                phase = self.next.0,
                gain_us,
                "chunks scattered because loads change unpredictably, or moved back because scattering gained nothing"
            );
        } else if took_ns.is_none() {
            tracing::info!(
                phase = self.next.0,
                gain_us,
                needed_us,
                "not asked: no plan can gain more than it costs"
            );
        } else if !accepted && refused > 0 {
            tracing::info!(
                phase = self.next.0,
                gain_us,
                needed_us,
                "{refused} proposed moves not made: they would gain too little"
            );
        }
        self.balancer = Some(balancer);
        self.next = self.next.next();
        if decided.moves.is_empty() {
            self.note_price(&report, 0);
            self.log.push(report);
        } else {
            let expected_ns = decided.move_ns;
            self.ongoing = Some(OngoingMigration { report, decided_ns: now_ns, expected_ns });
        }
        (phase.occasion, decided.moves)
    }

    /// The run ends: records a migration in progress, without its bytes.
    pub(crate) fn end(&mut self, now_ns: u64) {
        if let Some(OngoingMigration { mut report, decided_ns, .. }) = self.ongoing.take() {
            report.migrate_ns = now_ns.saturating_sub(decided_ns);
            self.log.push(report);
        }
    }

    /// Every rank has flushed: records the bytes that moved.
    pub(crate) fn flushed(&mut self, migration_bytes: &MigrationBytes, now_ns: u64) {
        self.scales.learn(migration_bytes);
        let ongoing = self.ongoing.take().expect("ranks flush only for a decision with moves");
        let OngoingMigration { mut report, decided_ns, expected_ns } = ongoing;
        report.moved_bytes = migration_bytes.bytes;
        report.migrate_ns = now_ns.saturating_sub(decided_ns);
        if let Some(balancer) = &mut self.balancer {
            balancer.moved(report.migrate_ns);
        }
        self.note_price(&report, expected_ns);
        self.log.push(report);
    }

    /// A decision and its moves are over. The policy opens the next window if it may gain as much time as these took.
    fn note_price(&mut self, report: &SyncReport, move_ns: u64) {
        let took_ns = report.decide_ns.saturating_add(move_ns);
        let avoidable = self.balancer.as_ref().map_or(0.0, Balancer::avoidable_traffic);
        if let Some(policy) = &mut self.windows {
            policy.decided(report.moved > 0, took_ns);
            policy.expects(avoidable);
        }
    }

    pub(crate) fn log(&mut self) -> &mut SyncLog {
        &mut self.log
    }

    /// The chunks that the next sync waits for, for a stall report.
    pub(crate) fn explain(&self, name: impl Fn(ArrayId) -> String) -> Vec<String> {
        // If only removed chunks have reported, no chunk has come to this sync.
        let come = |gathering: &&PendingSync| gathering.tallies.iter().any(Tally::has_members);
        let Some(gathering) = self.gathering.get(&self.next).filter(come) else { return Vec::new() };
        let line = |(array, (population, tally)): (ArrayId, (&Option<u64>, &Tally))| {
            let members = (*population)?;
            tally.complete(members).is_none().then(|| {
                let (sync, heard, name) = (self.next, tally.heard(), name(array));
                let all = heard + tally.missing(members);
                format!("sync {sync}: {heard} of {all} chunks of {name} have arrived")
            })
        };
        let by_array = self.populations.iter().zip(&gathering.tallies);
        (0..).map(ArrayId).zip(by_array).filter_map(line).collect()
    }
}

/// The leader of each array; empty if no array follows another.
pub(crate) fn leaders_of(arrays: &[Arc<dyn ErasedArray>]) -> Vec<ArrayId> {
    let leaders: Vec<Option<ArrayId>> = arrays.iter().map(|array| array.leader()).collect();
    let numbered = (0..).map(ArrayId).zip(&leaders).filter(|_| leaders.iter().any(Option::is_some));
    numbered.map(|(array, leader)| leader.unwrap_or(array)).collect()
}

/// The reports of ranks from their samples.
pub(super) fn phase_ranks(places: &[RankPlace], samples: &[Option<Sample>]) -> Vec<RankReport> {
    let rank = |(rank, (&place, sample)): (usize, (&RankPlace, &Option<Sample>))| {
        if let Some(sample) = sample {
            tracing::debug!(rank, ?sample, "measured");
        }
        RankReport { place, sample: sample.as_ref().map(rank_sample) }
    };
    places.iter().zip(samples).enumerate().map(rank).collect()
}

/// The part of a sample that the balancer needs.
fn rank_sample(sample: &Sample) -> RankSample {
    let &Sample { wall_ns, cpu_ns, wait_ns, steal_ns, background_ns, speed, .. } = sample;
    RankSample { wall_ns, cpu_ns, wait_ns, steal_ns, background_ns, speed }
}
