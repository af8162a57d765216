//! Drives syncs, balancing windows and migrations on one rank: passes inputs to the state machines in [`sync`], and
//! carries out their outputs.
//!
//! [`sync`]: crate::arrays::core::sync

use std::collections::BTreeSet;

use lb_strategies::balancer::{Balancer, Decision, EdgeReports};
use lb_strategies::window_policy::{Look, Signal};

use super::RankCore;
use crate::arrays::core::command::{Command, Commands, Task};
use crate::arrays::core::lifecycle::LifecyclePacket;
use crate::arrays::core::lifecycle::transfer::{ChunkBody, ChunkTransfer, Origin, Transit};
use crate::arrays::core::routing::cut::CutStep;
use crate::arrays::core::routing::envelope::{Delivery, Payload};
use crate::arrays::core::sync::SyncPacket;
use crate::arrays::core::sync::coordinator::Coordinator;
use crate::arrays::core::sync::group::{GroupStep, GroupedStep};
use crate::arrays::core::sync::migration::{MigrationStep, Move, Occasion, Outgoing};
use crate::arrays::core::sync::migration_bytes::MigrationBytes;
use crate::arrays::core::sync::report_aggregation::{AggregatedReports, UpwardReports};
use crate::arrays::core::sync::sync_arrivals::{MeasuredChunk, MeasuredRank, SyncArrival, UnmeasuredReport};
use crate::arrays::core::sync::sync_log::SyncLog;
use crate::arrays::core::sync::window::{RankSignal, Windows};
use crate::error::Error;
use crate::ids::{ArrayId, CellId, ChunkId, ROOT, Rank, SyncId};
use crate::measure::records::Sample;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod window_tests;

impl RankCore {
    /// A packet of a sync.
    pub(super) fn handle_sync(&mut self, from: Rank, packet: SyncPacket, now_ns: u64, out: &mut Commands) {
        match packet {
            SyncPacket::AggregatedReports(reports, next) => {
                self.sync.reports.child_next(from, next);
                self.reports_collected(*reports, now_ns, out);
            }
            SyncPacket::NextSyncChanged(next) => {
                self.sync.reports.child_next(from, next);
                self.report(now_ns, out);
            }
            SyncPacket::Signal(signal) => self.signalled(from, signal, now_ns, out),
            SyncPacket::Resize { active } => self.resize(active, now_ns, out),
            SyncPacket::ActiveRanks { active } => {
                self.sync.is_active = self.tree.rank.0 < active;
                self.lifecycle.seeds.set_active(self.sync.is_active);
                self.share_seeds(out);
            }
            SyncPacket::OpenWindow { number, look, edges, grouped } => {
                let decides = look == Look::Decide;
                self.sync.windows.iter_mut().for_each(|windows| windows.forget_signals(now_ns));
                self.sync.group.iter_mut().for_each(|group| group.open(grouped.then_some(look)));
                out.later.push_back(Task::SampleWindow { number, decides, chunks: self.balanced_chunks() });
                self.record_edges(edges, out);
            }
            SyncPacket::WindowReports(reports) => self.window_reported(*reports, now_ns, out),
            SyncPacket::Decision { occasion, moves, edges } => {
                if let Occasion::Sync(_) = occasion {
                    self.record_edges(edges, out);
                }
                self.sync.group.iter_mut().for_each(|group| group.decision_came(now_ns));
                self.apply_decision(occasion, &moves, now_ns, out);
            }
            SyncPacket::AskOffers { ticks } => {
                let offers = self.sync.group.as_mut().map(|group| group.offers(ticks)).unwrap_or_default();
                self.send(ROOT, SyncPacket::Offers(offers), now_ns, out);
            }
            SyncPacket::Offers(offers) => {
                let coordinator = self.sync.coordinator.as_mut().expect("offers go to rank 0");
                let step = coordinator.offered(from, offers);
                self.run_grouped_step(step, now_ns, out);
            }
            SyncPacket::Flushed(bytes) => self.flushed(&bytes, now_ns, out),
            SyncPacket::CompleteMigration(bytes) => {
                self.sync.group.iter_mut().for_each(|group| group.migrated(&bytes, now_ns));
                self.complete_migration(out);
            }
        }
    }

    pub(super) fn run_cut_steps(&mut self, steps: Vec<CutStep>, now_ns: u64, out: &mut Commands) {
        for step in steps {
            match step {
                CutStep::Send(to, packet) => self.send(to, packet, now_ns, out),
                CutStep::Drained => self.drained(now_ns, out),
            }
        }
    }

    /// The first sync that some chunks of this rank have come to and others have not.
    pub(crate) fn open_sync(&self) -> Option<SyncId> {
        self.sync.arrivals.open()
    }

    /// Rank 0: the record of syncs.
    pub(crate) fn sync_log(&mut self) -> Option<&mut SyncLog> {
        self.sync.coordinator.as_mut().map(Coordinator::log)
    }

    /// The run has ended, perhaps while chunks move.
    pub(crate) fn end_syncs(&mut self, now_ns: u64) {
        self.sync.coordinator.iter_mut().for_each(|coordinator| coordinator.end(now_ns));
    }

    /// A chunk of this rank was made at the start of the run.
    pub(crate) fn created(&mut self, chunk: ChunkId, cell: CellId) {
        self.routing.location.arrived(chunk, cell);
        self.joined(chunk, SyncId(0));
    }

    /// True if the syncs count the chunks of this array.
    pub(super) fn comes_to_syncs(&self, array: ArrayId) -> bool {
        self.sync.windows.is_none() && self.arrays[array.index()].syncs()
    }

    pub(super) fn joined(&mut self, chunk: ChunkId, next_sync: SyncId) {
        if self.comes_to_syncs(chunk.array) {
            self.sync.arrivals.joined(next_sync);
        }
    }

    /// True if a strategy that may move chunks decides at syncs, and no chunk has come to a sync that is not over.
    pub(crate) fn misses_syncs(&self) -> bool {
        self.sync.blocking && self.sync.windows.is_none() && self.open_sync().is_none()
    }

    /// A chunk has come to a sync. True if a decision will be made, false if the chunk resumes at once.
    pub(crate) fn at_sync(&mut self, arrival: SyncArrival, out: &mut Commands) -> bool {
        if self.sync.windows.is_some() {
            return false;
        }
        self.sync.arrivals.arrive(arrival, self.sync.blocking);
        self.sample_complete(out);
        self.sync.blocking
    }

    pub(super) fn sample_complete(&mut self, out: &mut Commands) {
        out.later.extend(self.sync.arrivals.take_complete().into_iter().map(Task::Sample));
    }

    /// Answers [`Task::Sample`]: reports to the sync. `loads` are the chunks' CPU times since their last sync, in
    /// order.
    pub(crate) fn sampled(
        &mut self,
        reports: UnmeasuredReport,
        sample: Sample,
        loads: &[u64],
        edges: EdgeReports,
        now_ns: u64,
        out: &mut Commands,
    ) {
        let UnmeasuredReport { sync, tallies, arrivals } = reports;
        self.sync.arrivals.sampled(sync);
        let standing = arrivals.iter().filter(|arrival| self.sync.blocking && arrival.paused);
        let waited = standing.count() as u64;
        let measured = |(arrival, &cpu_ns): (SyncArrival, &u64)| MeasuredChunk {
            chunk: arrival.chunk,
            load_ns: arrival.declared.unwrap_or(cpu_ns),
            declared: arrival.declared.is_some(),
            bytes: arrival.bytes,
            migratable: arrival.migratable,
            unasked: false,
            wish: arrival.wish,
            handled: 0,
        };
        let chunks = arrivals.into_iter().zip(loads).map(measured).collect();
        let ranks = vec![MeasuredRank { rank: self.tree.rank, sample, chunks }];
        let (first_ns, last_ns) = (now_ns, now_ns);
        let groups = Vec::new();
        let collected = AggregatedReports { sync, tallies, ranks, edges, groups, waited, first_ns, last_ns };
        self.reports_collected(collected, now_ns, out);
    }

    /// This rank, or a child and the ranks below it, have reported to a sync.
    pub(super) fn reports_collected(
        &mut self,
        collected: AggregatedReports,
        now_ns: u64,
        out: &mut Commands,
    ) {
        let Some(coordinator) = &mut self.sync.coordinator else {
            self.sync.reports.add(collected);
            return self.report(now_ns, out);
        };
        let request = coordinator.collect(collected);
        out.later.extend(request.map(|request| Task::Decide(Box::new(request))));
    }

    /// Sends up the tree the reports to each sync for which no rank here or below is known to have more.
    pub(super) fn report(&mut self, now_ns: u64, out: &mut Commands) {
        if self.tree.rank == ROOT {
            return;
        }
        let UpwardReports { reports, next } = self.sync.reports.take_complete(self.sync.arrivals.next());
        let Some(next) = next else { return };
        if reports.is_empty() {
            self.send_up(SyncPacket::NextSyncChanged(next), now_ns, out);
        }
        for collected in reports {
            self.send_up(SyncPacket::AggregatedReports(Box::new(collected), next), now_ns, out);
        }
    }

    /// Answers [`Task::Decide`].
    pub(crate) fn decided(
        &mut self,
        balancer: Balancer,
        decision: Decision,
        now_ns: u64,
        out: &mut Commands,
    ) {
        if let Some(group) = self.sync.group.as_mut().filter(|group| group.is_deciding()) {
            let reports = group.decided(balancer, &decision);
            return self.group_reported(reports, now_ns, out);
        }
        let coordinator = self.sync.coordinator.as_mut().expect("only rank 0 is asked to decide");
        let decided = coordinator.decided(balancer, decision, now_ns);
        self.announce(decided, now_ns, out);
    }

    /// Rank 0: sends a decision to all ranks.
    fn announce(&mut self, (occasion, moves): (Occasion, Vec<Move>), now_ns: u64, out: &mut Commands) {
        let coordinator = self.sync.coordinator.as_mut().expect("only rank 0 is asked to decide");
        let is_awaited = self.sync.blocking && matches!(occasion, Occasion::Sync(_));
        if is_awaited || !moves.is_empty() {
            let (moves, edges) = (moves.into(), coordinator.wants_edges());
            self.broadcast_down(ROOT, SyncPacket::Decision { occasion, moves, edges }, now_ns, out);
        }
        self.end_resize(now_ns, out);
        // The next sync may have become complete meanwhile.
        let coordinator = self.sync.coordinator.as_mut().expect("only rank 0 is asked to decide");
        out.later.extend(coordinator.take_complete().map(|request| Task::Decide(Box::new(request))));
    }

    /// This rank, or a child with all ranks below it, has signalled how busy it is. Rank 0 may open a window.
    pub(crate) fn signalled(&mut self, from: Rank, signal: RankSignal, now_ns: u64, out: &mut Commands) {
        let Some(windows) = &mut self.sync.windows else { return };
        // An inactive rank does not count, since its chunks cannot leave it: no decision can divide their load.
        let is_counted = from != self.tree.rank || self.sync.is_active;
        let signal = if is_counted { signal } else { RankSignal { busy: Signal::default(), ..signal } };
        let signal = windows.signalled(from, signal, now_ns);
        let passes_on = from == self.tree.rank || windows.rests(self.tree.rank);
        if self.checkpoints.stops() || self.begin_checkpoint(now_ns, out) {
            return;
        }
        match &mut self.sync.coordinator {
            // A child's signal goes up with this rank's next signal, or at once if this rank is idle and sends none.
            None if passes_on => self.send_up(SyncPacket::Signal(signal), now_ns, out),
            None => {}
            Some(coordinator) => {
                let look = coordinator.look(&signal.busy, now_ns);
                self.open_window(look, now_ns, out);
            }
        }
    }

    /// Makes the first `active` ranks the active ones. The others get no chunks, and the next decision empties them.
    pub(crate) fn resize(&mut self, active: u32, now_ns: u64, out: &mut Commands) {
        let Some(coordinator) = &mut self.sync.coordinator else {
            return self.send(ROOT, SyncPacket::Resize { active }, now_ns, out);
        };
        let is_balanced = self.sync.blocking && self.arrays.iter().any(|array| array.syncs());
        if !is_balanced {
            let why = "the number of active ranks stays as it is: no chunk of this run can move";
            let tells = !std::mem::replace(&mut self.sync.told_of_refusal, true);
            return out.later.extend(tells.then(|| Task::Warn(why.into())));
        }
        if self.checkpoints.stops() {
            self.sync.deferred_resize = Some(active);
            return;
        }
        if let Some(active) = coordinator.resize(active) {
            self.broadcast_down(ROOT, SyncPacket::ActiveRanks { active }, now_ns, out);
        }
    }

    /// Rank 0: reports to the user that chunks have moved to other active ranks.
    fn end_resize(&mut self, now_ns: u64, out: &mut Commands) {
        let coordinator = self.sync.coordinator.as_mut();
        let told = coordinator.and_then(|coordinator| coordinator.end_resize(now_ns));
        out.later.extend(told.map(|(active, line)| Task::ResizeEnded { active, line }));
    }

    /// Rank 0: opens a window if none is open, no chunk is migrating and no checkpoint is being made.
    pub(crate) fn open_window(&mut self, look: Look, now_ns: u64, out: &mut Commands) {
        if !self.checkpoints.stops()
            && let Some(coordinator) = &mut self.sync.coordinator
            && let Some(number) = coordinator.open_window(look)
        {
            let (edges, grouped) = (coordinator.wants_edges(), coordinator.decides_in_groups());
            let open = SyncPacket::OpenWindow { number, look, edges, grouped };
            self.broadcast_down(ROOT, open, now_ns, out);
        }
    }

    /// The chunks of this rank that may be balanced.
    fn balanced_chunks(&self) -> Vec<(ChunkId, CellId)> {
        let balanced = (0..).map(ArrayId).zip(&*self.arrays).filter(|(_, array)| array.syncs());
        balanced.flat_map(|(array, _)| self.routing.location.residents(array)).collect()
    }

    /// Answers [`Task::SampleWindow`].
    pub(crate) fn window_sampled(
        &mut self,
        number: u64,
        sample: Sample,
        chunks: Vec<MeasuredChunk>,
        edges: EdgeReports,
        now_ns: u64,
        out: &mut Commands,
    ) {
        let ranks = vec![MeasuredRank { rank: self.tree.rank, sample, chunks }];
        let (sync, tallies) = (SyncId(number), Vec::new());
        let reports = AggregatedReports {
            sync,
            tallies,
            ranks,
            edges,
            groups: Vec::new(),
            waited: 0,
            first_ns: now_ns,
            last_ns: now_ns,
        };
        self.window_reported(reports, now_ns, out);
    }

    /// Messages between chunks are recorded from now on, or no longer. The task comes after the report of the window that
    /// ends, and before any handler of a chunk that a sync resumes.
    fn record_edges(&mut self, records: bool, out: &mut Commands) {
        if std::mem::replace(&mut self.sync.records_edges, records) != records {
            out.later.push_back(Task::RecordEdges(records));
        }
    }

    /// This rank, or a child and all ranks below it, have reported in a window.
    fn window_reported(&mut self, reports: AggregatedReports, now_ns: u64, out: &mut Commands) {
        let windows = self.sync.windows.as_mut().expect("chunks are balanced in windows");
        let Some(reports) = windows.add(&self.tree, reports) else { return };
        if let Some(group) = self.sync.group.as_mut().filter(|group| group.is_open()) {
            return match group.reported(reports) {
                GroupStep::Decide(request) => out.later.push_back(Task::Decide(request)),
                GroupStep::Report(reports) => self.group_reported(*reports, now_ns, out),
            };
        }
        match &mut self.sync.coordinator {
            None => self.send_up(SyncPacket::WindowReports(Box::new(reports)), now_ns, out),
            Some(coordinator) => {
                let request = coordinator.window_reported(reports);
                out.later.extend(request.map(|request| Task::Decide(Box::new(request))));
            }
        }
    }

    /// The group of this rank has decided, and all groups below it in the tree.
    fn group_reported(&mut self, reports: AggregatedReports, now_ns: u64, out: &mut Commands) {
        match &mut self.sync.coordinator {
            None => self.send_up(SyncPacket::WindowReports(Box::new(reports)), now_ns, out),
            Some(coordinator) => {
                let step = coordinator.groups_reported(reports);
                self.run_grouped_step(step, now_ns, out);
            }
        }
    }

    /// Rank 0: goes on with a window that is decided in groups.
    fn run_grouped_step(&mut self, step: GroupedStep, now_ns: u64, out: &mut Commands) {
        match step {
            GroupedStep::Wait => {}
            GroupedStep::Ask(asks) => {
                for (first, ticks) in asks {
                    self.send(first, SyncPacket::AskOffers { ticks }, now_ns, out);
                }
            }
            GroupedStep::Decide(decision) => {
                let coordinator = self.sync.coordinator.as_mut().expect("groups report to rank 0");
                let decided = coordinator.groups_decided(*decision, now_ns);
                self.announce(decided, now_ns, out);
            }
        }
    }

    pub(super) fn apply_decision(
        &mut self,
        occasion: Occasion,
        moves: &[Move],
        now_ns: u64,
        out: &mut Commands,
    ) {
        let steps = self.sync.migrations.begin(occasion, moves, |chunk| self.routing.location.cell(chunk));
        if let Occasion::Sync(sync) = occasion {
            self.flow.control.sync_ended();
            for (chunk, cell) in self.sync.arrivals.decided(sync) {
                if self.sync.migrations.outgoing_cell(chunk).is_none() {
                    let delivery = Delivery::by_runtime(Payload::Resume);
                    out.now.push_back(Command::Enqueue { to: chunk, cell, delivery });
                }
            }
        }
        if moves.is_empty() {
            return;
        }
        self.termination.undelivered.migrations += 1;
        self.collectives.broadcasts.start_log();
        for elsewhere in moves.iter().filter(|elsewhere| elsewhere.from != self.tree.rank) {
            self.routing.location.moved(elsewhere.chunk, elsewhere.to);
        }
        // Messages under the new routes may have come early. Their bytes are counted anew below.
        self.flow.control.remove_incoming(std::mem::take(&mut self.routing.early_bytes));
        let expected = moves.iter().filter(|expected| expected.to == self.tree.rank);
        self.flow
            .control
            .add_incoming(expected.map(|expected| self.routing.location.pending_bytes(expected.chunk)).sum());
        self.run_migration_steps(steps, now_ns, out);
    }

    /// Answers [`Command::Hold`], once per outgoing chunk: none of its handlers runs any more.
    pub(crate) fn held(&mut self, now_ns: u64, out: &mut Commands) {
        if self.checkpoints.is_freezing() {
            return self.checkpoints.one_held();
        }
        let broadcasts = &self.collectives.broadcasts;
        let steps = self.sync.migrations.held(|array| Transit::after(broadcasts.next(array)));
        self.run_migration_steps(steps, now_ns, out);
    }

    /// A chunk of this rank, perhaps an outgoing one, has removed itself.
    pub(super) fn removed(&mut self, chunk: ChunkId, cell: Option<CellId>, out: &mut Commands) {
        if self.checkpoints.is_freezing() {
            cell.into_iter().for_each(|cell| self.checkpoints.forget(cell));
            return self.checkpoints.one_held();
        }
        let broadcasts = &self.collectives.broadcasts;
        let steps = self.sync.migrations.removed(chunk, |array| Transit::after(broadcasts.next(array)));
        self.run_migration_steps(steps, 0, out);
    }

    /// The last message to this rank under the old routes has arrived, and is in the mailbox of its chunk.
    pub(crate) fn drained(&mut self, now_ns: u64, out: &mut Commands) {
        let steps = self.sync.migrations.drained();
        self.run_migration_steps(steps, now_ns, out);
    }

    /// This rank, or a child and all ranks below it, have flushed. `migration_bytes` counts the bytes that moved there.
    pub(super) fn flushed(&mut self, migration_bytes: &MigrationBytes, now_ns: u64, out: &mut Commands) {
        let join = |sum: &mut MigrationBytes| sum.add(migration_bytes);
        let Some(migration_bytes) = self.sync.flushed.add(&self.tree, join) else { return };
        match &mut self.sync.coordinator {
            None => self.send_up(SyncPacket::Flushed(migration_bytes), now_ns, out),
            Some(coordinator) => {
                coordinator.flushed(&migration_bytes, now_ns);
                self.end_resize(now_ns, out);
                let complete = SyncPacket::CompleteMigration(migration_bytes);
                self.broadcast_down(ROOT, complete, now_ns, out);
            }
        }
    }

    fn run_migration_steps(
        &mut self,
        steps: impl IntoIterator<Item = MigrationStep>,
        now_ns: u64,
        out: &mut Commands,
    ) {
        for step in steps {
            match step {
                MigrationStep::Hold(cells) => {
                    out.now.push_back(Command::Hold(cells.clone()));
                    cells.into_iter().for_each(|cell| self.unblock_leaving(cell, out));
                }
                MigrationStep::SwitchRoutes { occasion, outgoing } => {
                    self.switch_routes(occasion, &outgoing, now_ns, out);
                }
                MigrationStep::MigrateOut { chunk, cell, to, transit } => {
                    let transit = Transit { blocked: self.flow.control.leave(cell), ..transit };
                    out.later.push_back(Task::MigrateOut { chunk, cell, to, transit });
                }
                MigrationStep::MigrateIndex { chunk, to } => self.migrate_index(chunk, to, now_ns, out),
                MigrationStep::Flushed(migration_bytes) => self.flushed(&migration_bytes, now_ns, out),
            }
        }
    }

    fn switch_routes(&mut self, occasion: Occasion, outgoing: &[Outgoing], now_ns: u64, out: &mut Commands) {
        for &Outgoing { chunk, cell, to } in outgoing {
            self.routing.location.departed(chunk);
            self.routing.location.moved(chunk, to);
            out.now.extend(cell.map(Command::Close));
        }
        if let Occasion::Sync(sync) = occasion {
            outgoing.iter().for_each(|_| self.sync.arrivals.left(sync.next()));
            // All chunks that stay may have come to the next sync before the last outgoing chunk stopped.
            self.sample_complete(out);
            self.report(now_ns, out);
        }
        let steps = self.routing.cut.make();
        // Insertions under the indices that leave are forwarded under the new routes.
        self.retry_insertions(out);
        self.run_cut_steps(steps, now_ns, out);
    }

    /// Sends the index of a removed chunk to its new rank, with the messages that wait for the next chunk of the index.
    fn migrate_index(&mut self, chunk: ChunkId, to: Rank, now_ns: u64, out: &mut Commands) {
        let messages = self.routing.location.take_pending_of(chunk);
        let transfer = ChunkTransfer {
            body: ChunkBody::Removed,
            messages: messages.into_iter().map(Delivery::for_other_rank).collect(),
            transit: Some(Transit::after(0)),
            ..ChunkTransfer::without_body(chunk)
        };
        self.send(to, LifecyclePacket::TransferChunk(Box::new(transfer)), now_ns, out);
    }

    /// An outgoing chunk has left its cell and goes to its new rank. `makes_room` is true if this rank is full, and is
    /// below its low watermark without the messages of the chunk.
    pub(crate) fn migrated_out(
        &mut self,
        mut transfer: Box<ChunkTransfer>,
        to: Rank,
        makes_room: bool,
        now_ns: u64,
        out: &mut Commands,
    ) {
        if makes_room {
            transfer.deferred_acks = self.flow.control.hand_over_acks(to, transfer.queued_bytes());
        }
        self.send(to, LifecyclePacket::TransferChunk(transfer), now_ns, out);
    }

    pub(super) fn receive_chunk(
        &mut self,
        from: Rank,
        mut transfer: Box<ChunkTransfer>,
        now_ns: u64,
        out: &mut Commands,
    ) {
        match transfer.origin {
            Some(Origin { rank, admitted: false }) => return self.admit_rootless(transfer, rank, out),
            Some(Origin { rank, admitted: true }) => return self.receive_inserted(rank, transfer, out),
            None if transfer.transit.is_none() => return self.receive_inserted(from, transfer, out),
            None => {}
        }
        self.flow.control.add_incoming(transfer.queued_bytes());
        self.take_over_acks(from, std::mem::take(&mut transfer.deferred_acks), out);
        let steps = self.sync.migrations.receive(*transfer);
        self.run_migration_steps(steps, now_ns, out);
    }

    /// A chunk that a handler of rank `by` inserted has come.
    pub(super) fn receive_inserted(
        &mut self,
        by: Rank,
        mut transfer: Box<ChunkTransfer>,
        out: &mut Commands,
    ) {
        if self.checkpoints.stops() {
            return self.checkpoints.insertions.push((by, transfer));
        }
        let chunk = transfer.chunk;
        let holder = self.routing.location.rank_of(chunk);
        let comes = self.sync.migrations.expects(chunk);
        if let Some(windows) = &mut self.sync.windows {
            // The previous chunk of the index may have been removed in a window (rules 5 and 6 of the migration). The
            // sender may have switched to routes that this rank does not have yet.
            let is_early = !self.sync.migrations.has_switched() && transfer.epoch != self.routing.cut.epoch();
            let waits = comes || is_early || self.sync.migrations.is_leaving_removed(chunk);
            if waits || holder != self.tree.rank {
                transfer.next_broadcast.get_or_insert(self.collectives.broadcasts.next(chunk.array));
            }
            if is_early {
                self.collectives.broadcasts.start_log();
            }
            if waits {
                return windows.keep_insertion(by, transfer);
            }
            if holder != self.tree.rank {
                return self.forward_insertion(holder, by, transfer, out);
            }
        }
        // Rank `by` may have received a `Decision` about a move to this rank that has not come here yet.
        if holder != self.tree.rank || comes || self.cell_of(chunk).is_some() {
            let chunk = self.describe(chunk);
            return self.fail(Error::IndexInUse { chunk, rank: holder, by }, out);
        }
        self.termination.undelivered.admitted += 1;
        if self.comes_to_syncs(chunk.array) {
            self.begin_phase(out);
        }
        if let (Some(windows), Some(next_broadcast)) = (&mut self.sync.windows, transfer.next_broadcast) {
            windows.admit_late(chunk, next_broadcast);
        }
        out.now.push_back(Command::Admit(transfer));
    }

    /// The index of an inserted chunk has moved: forwards the chunk.
    fn forward_insertion(
        &mut self,
        to: Rank,
        by: Rank,
        mut transfer: Box<ChunkTransfer>,
        out: &mut Commands,
    ) {
        transfer.origin = Some(Origin { rank: by, admitted: true });
        self.termination.undelivered.admitted += 1;
        *self.termination.undelivered.inserted.entry(to).or_default() += 1;
        self.send(to, LifecyclePacket::TransferChunk(transfer), 0, out);
    }

    /// Handles the kept insertions again.
    fn retry_insertions(&mut self, out: &mut Commands) {
        let kept = self.sync.windows.as_mut().map(Windows::take_insertions).unwrap_or_default();
        let mut seen = BTreeSet::new();
        for (by, transfer) in kept {
            match (&mut self.sync.windows, seen.insert(transfer.chunk)) {
                // If the first insertion of an index is admitted, the second one will find the index in use.
                (Some(windows), false) => windows.keep_insertion(by, transfer),
                _ => self.receive_inserted(by, transfer, out),
            }
        }
    }

    /// Answers [`Command::Admit`]: the chunk has a cell and the messages that came with it, of `mail_bytes` bytes.
    /// Returns the other messages for the chunk, in order.
    pub(crate) fn admit(
        &mut self,
        chunk: ChunkId,
        cell: CellId,
        transit: Option<Transit>,
        next_sync: SyncId,
        mail_bytes: u64,
        out: &mut Commands,
    ) -> Vec<Delivery> {
        self.joined(chunk, next_sync);
        let payload = match transit {
            None => Some(Payload::Start),
            Some(transit) => transit.resumes.then_some(Payload::Resume),
        };
        let mut mail = Vec::from_iter(payload.map(Delivery::by_runtime));
        if let Some(Transit { next_broadcast: broadcasts, .. }) = transit {
            mail.extend(self.collectives.broadcasts.missed(chunk.array, broadcasts));
            self.flow.control.remove_incoming(mail_bytes + self.routing.location.pending_bytes(chunk));
        }
        if let Some(late) = self.sync.windows.as_mut().and_then(|windows| windows.take_late(chunk)) {
            mail.extend(self.collectives.broadcasts.missed(chunk.array, late));
        }
        mail.extend(self.routing.location.arrived(chunk, cell));
        self.update_receivers(chunk.array, out);
        mail
    }

    pub(super) fn complete_migration(&mut self, out: &mut Commands) {
        let (removed, chunks): (Vec<_>, Vec<_>) = (self.sync.migrations.complete().into_iter())
            .partition(|transfer| matches!(transfer.body, ChunkBody::Removed));
        removed.into_iter().for_each(|transfer| self.index_arrived(transfer));
        if !chunks.is_empty() && self.sync.windows.is_none() {
            self.begin_phase(out);
        }
        out.now.extend(chunks.into_iter().map(|transfer| Command::Admit(Box::new(transfer))));
        out.now.push_back(Command::IncomingAdmitted);
    }

    /// The index of a removed chunk has come. The messages that came with it wait here for the next chunk of the index.
    fn index_arrived(&mut self, transfer: ChunkTransfer) {
        let chunk = transfer.chunk;
        let bytes = transfer.queued_bytes() + self.routing.location.pending_bytes(chunk);
        self.flow.control.remove_incoming(bytes);
        self.routing.location.prepend_pending(chunk, transfer.messages);
    }

    /// Chunks are about to be admitted. If the rank has none, its phase begins now: a phase has no time without chunks.
    pub(super) fn begin_phase(&self, out: &mut Commands) {
        out.now.extend(self.sync.arrivals.has_no_members().then_some(Command::BeginPhase));
    }

    /// Answers [`Command::IncomingAdmitted`]: all incoming chunks are admitted, and the log of broadcasts ends.
    pub(crate) fn incoming_admitted(&mut self, out: &mut Commands) {
        let epoch = self.routing.cut.epoch();
        if self.sync.windows.as_mut().is_some_and(|windows| windows.complete(epoch)) {
            // The kept insertions are admitted while broadcasts are still logged, because they may have missed some.
            self.retry_insertions(out);
            out.now.push_back(Command::IncomingAdmitted);
            return;
        }
        self.collectives.broadcasts.end_log();
        out.now.push_back(Command::CheckLowWatermark);
    }
}
