//! Runs the event loop of a simulated array: chunks execute and send, and ranks go through syncs and windows.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use super::chores::Chore;
use super::event::{Event, Packet, digest};
use super::groups::Groups;
use super::placement::{Chunk, RankState};
use super::report::{Errors, Gauges};
use super::tree::{self, Down, Up};
use super::windows::Windows;
use super::wires::Wires;
use super::{Array, ArrayRun, Executed, Home, RunArray, SyncRun};
use crate::execution::Execution;
use crate::overheads::{DecisionCost, Overheads};
use lb_strategies::Rank;
use lb_strategies::arrays::accept::MoveCost;
use lb_strategies::arrays::balancer::{
    Balancer, ChunkReport, Decision, PhaseReport, RankPlace, RankReport, RankSample,
};
use lb_strategies::arrays::period::Moments;
use lb_strategies::arrays::snapshot::{ArrayId, ChunkId, ChunkLoad, Snapshot};
use lb_strategies::arrays::window_policy::WindowPolicy;
use lb_strategies::pools::machine::Nanos;
use lb_strategies::virtual_time::events::Events;

/// Number of executed iterations from one report of progress to the next.
const TOLD: u64 = 1 << 16;

/// What a worker executes.
#[derive(Clone, Copy)]
enum Job {
    /// An iteration of this chunk.
    Iteration(u32),
    Chore(Chore),
    /// Nothing yet: it wakes up.
    WakeUp,
}

/// The execution of a job by a worker.
pub(super) struct Running {
    job: Job,
    begun: Nanos,
    /// CPU time of the worker when it began.
    cpu_ns: f64,
}

/// The reports on a phase so far.
pub(super) struct Reports {
    samples: Vec<Option<RankSample>>,
    /// By chunk; those that have not reported have no load.
    chunks: Vec<ChunkReport>,
}

impl Reports {
    /// No reports yet, for these numbers of ranks and chunks.
    pub(super) fn of(ranks: usize, chunks: usize) -> Reports {
        let load = ChunkLoad {
            id: ChunkId { array: ArrayId(0), key: 0 },
            rank: Rank(0),
            ticks: 0,
            bytes: 0,
            migratable: false,
        };
        let chunk = ChunkReport { load, declared: false, wish: None, handled: 0 };
        Reports { samples: vec![None; ranks], chunks: vec![chunk; chunks] }
    }

    pub(super) fn add_sample(&mut self, rank: u32, sample: RankSample) {
        self.samples[rank as usize] = Some(sample);
    }

    pub(super) fn add_chunk(&mut self, report: ChunkReport) {
        let place = report.load.id.key as usize;
        self.chunks[place] = report;
    }
}

pub(super) struct EventLoop<'r> {
    pub(super) array: Array,
    pub(super) balancer: Balancer,
    /// Number of iterations from one sync to the next; 0 for no sync.
    sync_period: u64,
    /// The windows of rank 0; none if chunks are balanced at syncs.
    pub(super) windows: Option<Windows>,
    /// True if the strategy moves chunks. Then decisions are carried out, and chunks wait at a sync.
    pub(super) stops: bool,
    work: Box<dyn Fn(u32, u64) -> f64 + 'r>,
    sends_to: Groups,
    pub(super) move_cost: MoveCost,
    pub(super) overheads: Overheads,
    /// True if chunks pay for more than their work.
    pays: bool,
    pub(super) errors: Errors,
    progress: Box<dyn FnMut(u64) + 'r>,
    watch: Box<dyn FnMut(Executed) + 'r>,
    pub(super) now: Nanos,
    end: Nanos,
    keeps_reports: bool,
    pub(super) events: Events<Event>,
    pub(super) execution: Execution<'r>,
    /// By worker.
    pub(super) running: Vec<Option<Running>>,
    /// By worker, the time at which its last job ended.
    idle_since: Vec<Nanos>,
    /// The number of the first worker of each rank; the last element is the number of workers.
    pub(super) firsts: Vec<usize>,
    pub(super) chunks: Vec<Chunk>,
    pub(super) places: Vec<RankState>,
    pub(super) gauges: Vec<Gauges>,
    wires: Wires<'r>,
    /// By phase, the reports on those that are not yet decided.
    pub(super) gathered: BTreeMap<u64, Reports>,
    /// By rank, the chunks that stay there at the last sync.
    staying: Groups,
    /// By iteration, the number of chunks that have executed it.
    through: Vec<u32>,
    /// Chunks may begin the iterations before this one: all, or where there is a barrier those that it has released.
    released: u64,
    pub(super) run: ArrayRun,
}

impl<'r> EventLoop<'r> {
    pub(super) fn new(plan: RunArray<'r>) -> Self {
        let RunArray {
            array,
            strategy,
            vcpus,
            links,
            work,
            sends_to,
            homes,
            move_cost,
            overheads,
            crowding,
            end,
            keeps_reports,
            progress,
            watch,
        } = plan;
        let ranks = array.workers.len();
        let names: Vec<_> = array.all_workers().collect();
        let mut firsts = vec![0];
        firsts.extend(array.workers.iter().scan(0, |sum, &workers| {
            *sum += workers as usize;
            Some(*sum)
        }));
        let workers = names.len();
        let mut execution = Execution::new(vcpus, names);
        let gauges = firsts.windows(2).map(|pair| Gauges::new(pair[0]..pair[1], &mut execution)).collect();
        let mut senders = vec![0; array.chunks as usize];
        sends_to.members().iter().for_each(|&to| senders[to as usize] += 1);
        let mut places: Vec<RankState> = (0..ranks).map(|_| RankState::default()).collect();
        homes.iter().for_each(|home| places[home.rank.index()].chunks += 1);
        tree::count_awaited(&mut places);
        let chunk = |(home, &senders): (&Home, &u32)| Chunk::new(*home, senders);
        let (sync_period, windows) = match array.period.moments(&strategy.terms()) {
            Moments::Syncs { period } => (period, None),
            Moments::Windows { fixed_ns } => {
                let policy = WindowPolicy::new(fixed_ns, strategy.terms().must_pay).crowded(crowding);
                (0, Some(Windows::new(policy, workers)))
            }
        };
        Self {
            sync_period,
            windows,
            chunks: homes.iter().zip(&senders).map(chunk).collect(),
            stops: strategy.terms().moves,
            keeps_reports,
            balancer: Balancer::new(Arc::clone(&strategy)),
            work,
            sends_to,
            move_cost,
            errors: Errors::of(overheads.noise),
            wires: Wires::new(ranks, links, overheads.bandwidths),
            pays: overheads.pays_per_iteration(),
            progress,
            watch,
            now: 0,
            end,
            events: Events::default(),
            execution,
            running: (0..workers).map(|_| None).collect(),
            idle_since: vec![0; workers],
            firsts,
            places,
            gauges,
            gathered: BTreeMap::new(),
            staying: Groups::of(std::iter::empty()),
            through: Vec::new(),
            released: if overheads.barrier.is_some() { 1 } else { array.iterations },
            overheads,
            run: ArrayRun {
                iteration_ends: Vec::new(),
                syncs: Vec::new(),
                busy: Vec::new(),
                executed: 0,
                events: 0,
                messages: 0,
                digest: 0,
            },
            array,
        }
    }

    /// Handles events until none is left.
    pub(super) fn run(mut self) -> ArrayRun {
        for chunk in 0..self.array.chunks {
            self.enqueue_if_ready(chunk);
        }
        for rank in 0..self.places.len() as u32 {
            self.occupy(rank);
        }
        if let Some(windows) = &self.windows {
            self.events.at(windows.interval(), Event::Look);
        }
        while let Some((now, event)) = self.events.pop() {
            if now > self.end {
                break;
            }
            self.now = now;
            self.handle_event(event);
        }
        let spent = (0..self.running.len()).map(|worker| self.execution.spent(worker));
        self.run.busy = spent.map(|spent| (spent.cpu_ns + spent.wait_ns).round() as Nanos).collect();
        self.run
    }

    fn handle_event(&mut self, event: Event) {
        self.run.digest = digest(self.run.digest, self.now, &event);
        self.run.events += 1;
        match event {
            Event::WorkerEvent(look) => {
                if self.execution.advance_to(look, self.now, &mut self.events) {
                    self.finish(look.worker);
                }
            }
            Event::JobDone { worker } => self.finish(worker),
            Event::Delivered { from, to, packet } => {
                let served = self.wires.serve(to, self.now);
                self.events.at(served, Event::Served { from, to, packet });
            }
            Event::Served { from, to, packet } => {
                if let (Packet::Halo { to, .. }, true) = (packet, self.pays) {
                    self.chunks[to as usize].crossed += 1;
                }
                self.handle_packet(from, to, packet);
                self.occupy(to);
            }
            Event::Departs { chunk, from } => self.leave(chunk, from),
            Event::Released { through } => self.release(through),
            Event::Look => self.look(),
            Event::Decided { moves } => self.decided(moves),
        }
    }

    pub(super) fn send(&mut self, from: u32, to: u32, packet: Packet) {
        if from == to {
            return self.receive(to, packet);
        }
        self.run.messages += 1;
        let sizes = [self.overheads.bandwidths.message_bytes, self.array.state_bytes];
        let bytes = packet.bytes(sizes, self.places[from as usize].awaited);
        let arrival = self.wires.arrival(from, to, bytes, self.now);
        self.events.in_turn(arrival, Event::Delivered { from, to, packet });
    }

    pub(super) fn receive(&mut self, rank: u32, packet: Packet) {
        match packet {
            Packet::Halo { to, iteration } => {
                self.chunks[to as usize].receive_halo(iteration);
                self.enqueue_if_ready(to);
            }
            Packet::Reports { phase, chunks } => self.come_to_sync(rank, phase, chunks),
            Packet::Up(what) => self.rises(rank, what),
            Packet::Down(what) => self.falls(rank, what),
            Packet::Chunk(chunk) => {
                self.chunks[chunk as usize].reloads = true;
                let migration = &mut self.places[rank as usize].migration;
                migration.incoming.push(chunk);
                migration.incoming_left -= 1;
                self.check_flushed(rank);
            }
        }
    }
}

/// Execution.
impl EventLoop<'_> {
    fn enqueue_if_ready(&mut self, chunk: u32) {
        let it = &mut self.chunks[chunk as usize];
        if it.is_ready(self.array.iterations.min(self.released)) {
            it.taken = true;
            self.places[it.rank as usize].ready.push_back(chunk);
        }
    }

    /// Gives chores and ready chunks to idle workers of a rank.
    pub(super) fn occupy(&mut self, rank: u32) {
        let workers = self.firsts[rank as usize]..self.firsts[rank as usize + 1];
        let wakes =
            |running: &Option<Running>| running.as_ref().is_some_and(|it| matches!(it.job, Job::WakeUp));
        let mut waking = self.running[workers.clone()].iter().filter(|running| wakes(running)).count();
        for worker in workers {
            if self.running[worker].is_some() {
                continue;
            }
            if self.sleeps(worker) {
                if self.places[rank as usize].jobs() <= waking {
                    continue;
                }
                waking += 1;
                let work = self.work_of(worker, self.overheads.wake as f64);
                self.begin(worker, Job::WakeUp, work);
            } else if let Some((cpu_ns, chore)) = self.begin_chore(rank) {
                let work = self.work_of(worker, cpu_ns);
                self.begin(worker, Job::Chore(chore), work);
            } else if let Some(chunk) = self.places[rank as usize].ready.pop_front() {
                let work = self.work_of_iteration(worker, chunk);
                self.begin(worker, Job::Iteration(chunk), work);
            } else {
                return;
            }
        }
    }

    /// True if an idle worker has stopped spinning, and takes a while to wake up.
    fn sleeps(&self, worker: usize) -> bool {
        self.overheads.wake > 0 && self.now > self.idle_since[worker].saturating_add(self.overheads.spin)
    }

    fn begin(&mut self, worker: usize, job: Job, work: f64) {
        let (begun, cpu_ns) = (self.now, self.execution.spent(worker).cpu_ns);
        self.running[worker] = Some(Running { job, begun, cpu_ns });
        if self.execution.begin(worker, work, self.now, &mut self.events) {
            self.events.at(self.now, Event::JobDone { worker });
        }
    }

    /// The work of the next iteration of a chunk, with what the runtime does for it.
    fn work_of_iteration(&mut self, worker: usize, chunk: u32) -> f64 {
        let mut work = (self.work)(chunk, self.chunks[chunk as usize].next);
        if self.pays {
            let cpu_ns = self.runtime_ns(chunk);
            work += self.work_of(worker, cpu_ns);
        }
        work
    }

    /// CPU time of the runtime for an iteration of a chunk: its messages, its scheduling, and its caches after a move.
    fn runtime_ns(&mut self, chunk: u32) -> f64 {
        let it = &self.chunks[chunk as usize];
        let sends = it.next + 1 < self.array.iterations;
        let receivers = self.sends_to.places(chunk).map(|place| self.sends_to.member(place));
        let (mut near, mut far) = (0, it.crossed);
        for to in receivers.filter(|_| sends) {
            if self.chunks[to as usize].rank == it.rank { near += 1 } else { far += 1 }
        }
        let Overheads { cpu, message_cpu, bandwidths, .. } = &self.overheads;
        let far_ns = *message_cpu as f64 + cpu.message_byte * bandwidths.message_bytes as f64;
        let it = &mut self.chunks[chunk as usize];
        it.crossed = 0;
        let reloaded = if std::mem::take(&mut it.reloads) { self.array.state_bytes as f64 } else { 0.0 };
        cpu.iteration
            + f64::from(near) * cpu.local_message
            + f64::from(far) * far_ns
            + reloaded * cpu.reload_byte
    }

    /// Notes that a worker has done its job, and gives it the next one.
    fn finish(&mut self, worker: usize) {
        let running = self.running[worker].take().expect("it runs");
        let rank = self.execution.name(worker).rank.0;
        self.idle_since[worker] = self.now;
        match running.job {
            Job::WakeUp => {}
            Job::Iteration(chunk) => self.finish_iteration(worker, chunk, &running),
            Job::Chore(chore) => self.finish_chore(rank, chore),
        }
        self.occupy(rank);
        self.execution.rest(worker, self.now, &mut self.events);
    }

    fn finish_iteration(&mut self, worker: usize, chunk: u32, running: &Running) {
        let name = self.execution.name(worker);
        let it = &mut self.chunks[chunk as usize];
        let iteration = it.next;
        it.has_executed();
        let cpu_ns = self.execution.spent(worker).cpu_ns - running.cpu_ns;
        it.cpu_ns += cpu_ns;
        self.run.executed += 1;
        if self.run.executed.is_multiple_of(TOLD) {
            (self.progress)(self.run.executed);
        }
        let (begun, end, cpu_ns) = (running.begun, self.now, cpu_ns.round() as Nanos);
        (self.watch)(Executed { chunk, iteration, worker: name, begun, end, cpu_ns });
        self.count(iteration);
        if iteration + 1 < self.array.iterations {
            self.send_halos(chunk, iteration + 1);
            if (iteration + 1).checked_rem(self.sync_period) == Some(0) {
                self.arrive_at_sync(chunk, (iteration + 1) / self.sync_period - 1);
            }
            self.enqueue_if_ready(chunk);
        }
        let it = &self.chunks[chunk as usize];
        // At a sync a decision that takes time leaves chunks waiting that are to move. No rank counts them as running.
        if self.windows.is_some() && it.waits && it.leaves_for.is_some() {
            self.held(chunk);
        }
    }

    /// True if all chunks have executed all iterations.
    pub(super) fn is_over(&self) -> bool {
        self.run.executed == u64::from(self.array.chunks) * self.array.iterations
    }

    fn count(&mut self, iteration: u64) {
        let place = iteration as usize;
        if place == self.through.len() {
            self.through.push(0);
        }
        self.through[place] += 1;
        if self.through[place] == self.array.chunks {
            self.run.iteration_ends.push(self.now);
            if let Some(barrier) = self.overheads.barrier {
                self.events.at(self.now + barrier, Event::Released { through: iteration + 1 });
            }
        }
    }

    /// Lets all chunks begin the iterations up to this one.
    fn release(&mut self, through: u64) {
        self.released = through + 1;
        for chunk in 0..self.array.chunks {
            self.enqueue_if_ready(chunk);
        }
        for rank in 0..self.places.len() as u32 {
            self.occupy(rank);
        }
    }

    fn send_halos(&mut self, chunk: u32, iteration: u64) {
        let from = self.chunks[chunk as usize].rank;
        for place in self.sends_to.places(chunk) {
            let to = self.sends_to.member(place);
            self.send(from, self.chunks[to as usize].rank, Packet::Halo { to, iteration });
        }
    }
}

/// Syncs.
impl EventLoop<'_> {
    fn arrive_at_sync(&mut self, chunk: u32, phase: u64) {
        self.chunks[chunk as usize].waits = self.stops;
        let rank = self.chunks[chunk as usize].rank;
        let report = ChunkReport { handled: 0, ..self.take_report(chunk) };
        let (ranks, chunks) = (self.places.len(), self.chunks.len());
        let reports = self.gathered.entry(phase).or_insert_with(|| Reports::of(ranks, chunks));
        reports.add_chunk(report);
        if !self.places[rank as usize].has_come(phase) {
            return self.come_to_sync(rank, phase, 1);
        }
        reports.add_sample(
            rank,
            self.gauges[rank as usize].sample(&mut self.execution, &mut self.errors, self.now),
        );
        let chunks = self.places[rank as usize].chunks as usize;
        let cpu_ns = self.report_ns(chunks) + self.overheads.cpu.sync_chunk * chunks as f64;
        self.do_chore(rank, cpu_ns, Chore::ReportSync { phase });
    }

    /// The cost of a chunk since its last report.
    pub(super) fn take_report(&mut self, chunk: u32) -> ChunkReport {
        let it = &mut self.chunks[chunk as usize];
        let load = ChunkLoad {
            id: ChunkId { array: ArrayId(0), key: u64::from(chunk) },
            rank: Rank(it.rank),
            ticks: (std::mem::take(&mut it.cpu_ns) * self.errors.factor()) as u64,
            bytes: self.array.state_bytes,
            migratable: it.migratable,
        };
        ChunkReport { load, declared: false, wish: None, handled: std::mem::take(&mut it.handled) }
    }

    /// Decides a sync to which all chunks have come.
    pub(super) fn decide_sync(&mut self, phase: u64) {
        let gathered = self.gathered.remove(&phase).expect("its chunks have written into it");
        self.decide(gathered);
    }

    pub(super) fn phase_report(&self, gathered: Reports) -> PhaseReport {
        let samples = gathered.samples.into_iter().zip(&self.array.workers);
        let ranks = samples.zip(0..).map(|((sample, &workers), rank)| {
            let host = self.overheads.bandwidths.host(rank);
            RankReport { place: RankPlace { host, workers }, sample }
        });
        let (ranks, chunks) = (ranks.collect(), gathered.chunks);
        PhaseReport { ranks, chunks, window: self.windows.is_some(), ..PhaseReport::default() }
    }

    /// Decides. If the moves are carried out, writes them where ranks and chunks find them.
    pub(super) fn decide(&mut self, gathered: Reports) {
        let mut report = self.phase_report(gathered);
        if let Some(windows) = &mut self.windows {
            let must_pay = self.balancer.strategy().terms().must_pay;
            let Some(step) = windows.undecided.decide_step(report, must_pay) else { return };
            windows.migrates = true;
            report = step;
        }
        let (chunks, ranks) = (self.array.chunks, self.places.len());
        let decision = match &self.overheads.decision {
            DecisionCost::PerChunk(ns) => self.balancer.decide_in(&report, ns * u64::from(chunks)),
            DecisionCost::Linear { fixed, per_chunk, per_rank } => {
                let took_ns = fixed + per_chunk * f64::from(chunks) + per_rank * ranks as f64;
                self.balancer.decide_in(&report, took_ns as u64)
            }
            DecisionCost::Measured(clock) => {
                let strategy = Arc::clone(self.balancer.strategy());
                let ask = |expected: &Snapshot| {
                    let begin = clock();
                    Ok::<_, Infallible>((strategy.assign(expected), clock().saturating_sub(begin)))
                };
                let Ok(decision) = self.balancer.decide_by(&report, ask);
                decision
            }
        };
        if self.stops {
            for one in &decision.moves {
                self.chunks[one.chunk.key as usize].leaves_for = Some(one.to.0);
                self.places[one.from.index()].migration.outgoing.push(one.chunk.key as u32);
                self.places[one.to.index()].migration.incoming_left += 1;
                self.count_move(one.from.0, one.to.0);
            }
        }
        let moves = decision.moves.len() as u32;
        let took = decision.took_ns.unwrap_or(0);
        let report = self.keeps_reports.then_some(report);
        self.run.syncs.push(SyncRun { at: self.now + took, report, decision });
        let is_chore = matches!(self.overheads.decision, DecisionCost::Linear { .. });
        self.decide_after(took, is_chore, moves);
    }

    /// Announces the last decision.
    pub(super) fn decided(&mut self, moves: u32) {
        match &self.windows {
            Some(_) if moves == 0 || !self.stops => self.balanced(None),
            None if !self.stops => {}
            Some(_) => self.falls(0, Down::Decision { moves }),
            None => {
                let stays = self.chunks.iter().map(|it| it.leaves_for.is_none().then_some(it.rank));
                self.staying = Groups::by(self.places.len(), stays);
                if let Some(SyncRun { decision, .. }) = self.run.syncs.last() {
                    decision.moves.iter().for_each(|one| self.chunks[one.chunk.key as usize].leave());
                }
                self.falls(0, Down::Decision { moves });
            }
        }
    }

    pub(super) fn begin_migration(&mut self, rank: u32, moves: bool) {
        let place = &mut self.places[rank as usize];
        if place.chunks == 0 {
            // The rank had no chunk to report. Its next phase begins now.
            self.gauges[rank as usize].sample(&mut self.execution, &mut self.errors, self.now);
        }
        if moves {
            place.begin_migration();
            self.rises(rank, Up::SentCounts);
        }
        for place in self.staying.places(rank) {
            self.resume(self.staying.member(place));
        }
        self.occupy(rank);
    }

    /// Ends a migration when all chunks of the last decision have arrived.
    pub(super) fn migrated(&mut self) {
        if let Some(SyncRun { at, .. }) = self.run.syncs.last() {
            self.balancer.moved(self.now - at);
        }
        let took_ns = |Decision { move_ns, took_ns, .. }: &Decision| move_ns + took_ns.unwrap_or(0);
        self.balanced(self.run.syncs.last().map(|sync| took_ns(&sync.decision)));
    }

    fn resume(&mut self, chunk: u32) {
        self.chunks[chunk as usize].waits = false;
        self.enqueue_if_ready(chunk);
    }

    /// Lets incoming chunks continue, since all chunks have arrived.
    pub(super) fn land(&mut self, rank: u32) {
        let arrivals = self.places[rank as usize].end_migration();
        arrivals.into_iter().for_each(|chunk| self.resume(chunk));
        self.occupy(rank);
    }

    /// Sends outgoing chunks one after another, since all ranks use the new routes.
    pub(super) fn send_outgoing(&mut self, rank: u32) {
        let migration = &mut self.places[rank as usize].migration;
        migration.has_sent = true;
        let outgoing = std::mem::take(&mut migration.outgoing);
        let pack_ns = self.overheads.cpu.pack(self.array.state_bytes);
        let mut at = self.now;
        for chunk in outgoing {
            if pack_ns > 0.0 {
                self.do_chore(rank, pack_ns, Chore::Pack { chunk });
                continue;
            }
            at += self.move_cost.cost_ns(1, self.array.state_bytes);
            self.events.at(at, Event::Departs { chunk, from: rank });
        }
        self.check_flushed(rank);
    }

    fn leave(&mut self, chunk: u32, from: u32) {
        self.send(from, self.chunks[chunk as usize].rank, Packet::Chunk(chunk));
        self.places[from as usize].migration.outgoing_left -= 1;
        self.check_flushed(from);
    }

    fn check_flushed(&mut self, rank: u32) {
        let migration = &self.places[rank as usize].migration;
        if migration.has_sent && migration.outgoing_left == 0 && migration.incoming_left == 0 {
            self.rises(rank, Up::Flushed);
        }
    }
}
