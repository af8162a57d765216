//! Writes what a simulated array did as a trace, which `caribou trace` reads like that of a run.
//!
//! A chunk begins an iteration with the last of the messages that it needs. So its handler of this message is as long as
//! the iteration, and the handlers of earlier messages take no time. CPU time of the runtime itself is in no event; the
//! worker is idle then. A chunk arrives when it begins its next iteration, which may be later than in the simulation.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Arc;

use caribou::config::Prediction;
use caribou::report::SyncReport;
use caribou::trace::{
    Activity, ArrayId, ChunkId, End, Event, Name, NameId, Profile, RUNTIME, RunRecord, Sample, Shape, What,
    Writer,
};
use lb_strategies::Strategy;
use rustc_hash::FxHashMap;
use virtual_cluster::{ArrayRun, ArrayScenario, Executed, SyncRun};

use super::compare::Policy;

/// Number of events per block.
const BLOCK: usize = 20_000;
/// Largest number of events, because all are in memory.
pub(super) const EVENTS_MOST: f64 = 3e7;

const START: NameId = NameId(0);
const HALO: NameId = NameId(1);
const NEXT: NameId = NameId(2);

/// Approximate number of events of a run.
pub(super) fn events(scenario: &ArrayScenario) -> f64 {
    let sent = scenario.receivers()(0).len() as f64;
    (1.0 + 2.0 * sent) * f64::from(scenario.array.chunks) * scenario.array.iterations as f64
}

/// What traces of simulated runs have instead of a program.
pub(crate) const SIMULATED: &str = "simulated";

/// Runs the scenario under a policy, and writes its trace to `dir`.
pub(super) fn record(scenario: &ArrayScenario, policy: &Policy<dyn Strategy>, dir: &Path) -> io::Result<()> {
    let mut executed = Vec::new();
    let run = scenario.run_watched(Arc::clone(&policy.strategy), |_| (), |one| executed.push(one));
    let moves = policy.strategy.terms().moves;
    let mut recording = Recording::new(scenario, if moves { &run.syncs } else { &[] });
    executed.iter().for_each(|one| recording.iteration(one));
    recording.remaining_moves();
    recording.write(scenario, policy, &run, dir)
}

/// A move that was decided and not yet made.
#[derive(Clone, Copy)]
struct Planned {
    /// The number of the sync.
    sync: usize,
    at_ns: u64,
    to: u32,
}

/// A message on its way.
#[derive(Clone, Copy)]
struct Message {
    from: u32,
    number: u32,
}

/// The events so far.
struct Recording<'s> {
    scenario: &'s ArrayScenario,
    /// By rank and worker.
    events: Vec<Vec<Vec<Event>>>,
    /// The end of the last event of each worker that takes time, by rank.
    busy_until_ns: Vec<Vec<u64>>,
    /// By chunk: its rank, the end of its last iteration, the messages that it has sent, its moves to come.
    ranks: Vec<u32>,
    ends_ns: Vec<u64>,
    sent: Vec<u32>,
    planned: Vec<VecDeque<Planned>>,
    receivers: Vec<Vec<u32>>,
    /// By chunk and iteration, the messages for it in the order of their sends.
    messages: FxHashMap<(u32, u64), Vec<Message>>,
    /// By sync, the time until its last chunk had arrived.
    migrated_ns: Vec<u64>,
}

fn id(chunk: u32) -> ChunkId {
    ChunkId { array: ArrayId(0), key: u64::from(chunk) }
}

impl<'s> Recording<'s> {
    /// The beginning of a run. Only moves of `syncs` are made.
    fn new(scenario: &'s ArrayScenario, syncs: &[SyncRun]) -> Self {
        let (chunks, workers) = (scenario.array.chunks, &scenario.array.workers);
        let homes = scenario.first_ranks();
        let mut planned = vec![VecDeque::new(); chunks as usize];
        for (sync, SyncRun { at, decision, .. }) in syncs.iter().enumerate() {
            for one in &decision.moves {
                planned[one.chunk.key as usize].push_back(Planned { sync, at_ns: *at, to: one.to.0 });
            }
        }
        let mut recording = Self {
            scenario,
            events: workers.iter().map(|&count| vec![Vec::new(); count as usize]).collect(),
            busy_until_ns: workers.iter().map(|&count| vec![0; count as usize]).collect(),
            ends_ns: vec![0; chunks as usize],
            sent: vec![0; chunks as usize],
            planned,
            receivers: (0..chunks).map(scenario.receivers()).collect(),
            messages: FxHashMap::default(),
            migrated_ns: vec![0; syncs.len()],
            ranks: homes,
        };
        for chunk in 0..chunks {
            let rank = recording.ranks[chunk as usize];
            recording.push(rank, 0, Event::point(0, What::Arrive { chunk: id(chunk), bytes: 0 }));
        }
        recording
    }

    fn push(&mut self, rank: u32, worker: u32, event: Event) {
        self.events[rank as usize][worker as usize].push(event);
    }

    /// Records an iteration. Iterations come in the order of their ends.
    fn iteration(&mut self, executed: &Executed) {
        let Executed { chunk, iteration, worker, begun, end, cpu_ns } = *executed;
        let (rank, number) = (worker.rank.0, worker.number);
        while self.ranks[chunk as usize] != rank
            && let Some(planned) = self.planned[chunk as usize].pop_front()
        {
            self.make_move(chunk, planned, begun);
        }
        let idle_from_ns = self.busy_until_ns[worker.rank.index()][number as usize];
        if idle_from_ns < begun {
            self.push(rank, number, Event { begin_ns: idle_from_ns, end_ns: begun, what: What::Idle });
        }
        self.busy_until_ns[worker.rank.index()][number as usize] = end;
        let mut messages = self.messages.remove(&(chunk, iteration)).unwrap_or_default();
        let last = messages.pop();
        for message in messages {
            let what = handler(chunk, HALO, Some(message), 0);
            self.push(rank, number, Event::point(begun, what));
        }
        let kind = match (iteration, last) {
            (0, _) => START,
            (_, Some(_)) => HALO,
            (_, None) => NEXT,
        };
        let lost_ns = (end - begun).saturating_sub(cpu_ns);
        self.push(
            rank,
            number,
            Event { begin_ns: begun, end_ns: end, what: handler(chunk, kind, last, lost_ns) },
        );
        self.ends_ns[chunk as usize] = end;
        if iteration + 1 < self.scenario.array.iterations {
            self.send(executed);
        }
    }

    /// Records the messages for the next iteration.
    fn send(&mut self, executed: &Executed) {
        let Executed { chunk, iteration, worker, end, .. } = *executed;
        let bytes = self.scenario.overheads.bandwidths.message_bytes;
        for place in 0..self.receivers[chunk as usize].len() {
            let to = self.receivers[chunk as usize][place];
            let sent = &mut self.sent[chunk as usize];
            *sent = sent.wrapping_add(1).max(1);
            let number = *sent;
            let rank = self.ranks[to as usize];
            let what = What::Send { chunk: id(chunk), to: id(to), rank, number, bytes };
            self.push(worker.rank.0, worker.number, Event::point(end, what));
            self.messages.entry((to, iteration + 1)).or_default().push(Message { from: chunk, number });
        }
    }

    /// Moves a chunk after its last iteration and the decision. It arrives at `arrives_ns` at the latest.
    fn make_move(&mut self, chunk: u32, planned: Planned, arrives_ns: u64) {
        let (from, bytes) = (self.ranks[chunk as usize], self.scenario.array.state_bytes);
        let Planned { sync, at_ns, to } = planned;
        let departs_ns = at_ns.max(self.ends_ns[chunk as usize]);
        let arrives_ns = arrives_ns.max(departs_ns);
        let more = !self.planned[chunk as usize].is_empty();
        let arrives_ns = if more { departs_ns } else { arrives_ns };
        self.push(from, 0, Event::point(departs_ns, What::Depart { chunk: id(chunk), rank: to, bytes }));
        self.push(to, 0, Event::point(arrives_ns, What::Arrive { chunk: id(chunk), bytes }));
        self.ranks[chunk as usize] = to;
        self.migrated_ns[sync] = self.migrated_ns[sync].max(arrives_ns - at_ns);
    }

    /// Makes the moves of chunks that executed nothing after them.
    fn remaining_moves(&mut self) {
        for chunk in 0..self.scenario.array.chunks {
            while let Some(planned) = self.planned[chunk as usize].pop_front() {
                self.make_move(chunk, planned, 0);
            }
        }
    }

    /// Writes a file for each rank.
    fn write(
        mut self,
        scenario: &ArrayScenario,
        policy: &Policy<dyn Strategy>,
        run: &ArrayRun,
        dir: &Path,
    ) -> io::Result<()> {
        let (end_ns, homes) = (run.makespan(), scenario.first_ranks());
        self.loads(run);
        let mut reports: Vec<SyncReport> =
            (0..).zip(&run.syncs).map(|(number, sync)| self.report(number, sync)).collect();
        for rank in 0..scenario.array.workers.len() as u32 {
            let record = run_record(scenario, policy, dir, rank);
            let mut writer = Writer::create(dir, &record)?;
            writer.arrays(&["Simulated".into()])?;
            let kind = |text: &str| Name { array: Some(ArrayId(0)), text: text.into() };
            writer.names(&[kind("start"), kind("Halo"), kind("Next")])?;
            let chunks = (0..).zip(&homes).filter(|(_, home)| **home == rank).map(|(chunk, _)| chunk);
            writer.chunks(&chunks.map(|chunk: u32| (id(chunk), chunk.to_string())).collect::<Vec<_>>())?;
            let mut handled = 0;
            for (worker, mut events) in (0..).zip(std::mem::take(&mut self.events[rank as usize])) {
                let idle_from_ns = self.busy_until_ns[rank as usize][worker as usize];
                if idle_from_ns < end_ns {
                    events.push(Event { begin_ns: idle_from_ns, end_ns, what: What::Idle });
                }
                events.sort_by_key(|event| event.end_ns);
                events.chunks(BLOCK).try_for_each(|block| writer.events(worker, block))?;
                writer.profile(worker, &profile(&events))?;
                handled +=
                    events.iter().filter(|event| matches!(event.what, What::Handler { .. })).count() as u64;
            }
            writer.samples(&samples(run, rank))?;
            if rank == 0 {
                writer.syncs(&std::mem::take(&mut reports))?;
            }
            writer.finish(&End { elapsed_ns: end_ns, messages: handled, ..End::default() })?;
        }
        Ok(())
    }

    /// Records the load of each chunk at each sync.
    fn loads(&mut self, run: &ArrayRun) {
        for (sync, SyncRun { at, report, .. }) in (0..).zip(&run.syncs) {
            for chunk in report.iter().flat_map(|report| &report.chunks) {
                let load = &chunk.load;
                let what = What::Load {
                    chunk: id(load.id.key as u32),
                    sync,
                    load_ns: load.ticks,
                    bytes: load.bytes,
                };
                self.push(load.rank.0, 0, Event::point(*at, what));
            }
        }
    }

    /// The record of a sync.
    fn report(&self, number: u64, sync: &SyncRun) -> SyncReport {
        let SyncRun { at, report: reported, decision } = sync;
        let moved = if self.migrated_ns.is_empty() { 0 } else { decision.moves.len() as u64 };
        let mut report = SyncReport::default();
        (report.sync, report.at_ns) = (number, *at);
        report.window = reported.as_ref().is_some_and(|reported| reported.window);
        report.prediction = decision.prediction;
        report.imbalance_before = decision.imbalance_before;
        report.imbalance_predicted = decision.imbalance_predicted;
        report.ideal_ns = decision.ideal_ns;
        report.makespan_before_ns = decision.makespan_before_ns();
        report.makespan_predicted_ns = decision.makespan_predicted_ns();
        report.makespan_unmoved_ns = decision.unmoved_ns.unwrap_or(0);
        report.bound_ns = decision.bound_ns;
        (report.moved, report.moved_bytes) = (moved, moved * self.scenario.array.state_bytes);
        report.decide_ns = decision.took_ns.unwrap_or(0);
        report.migrate_ns = self.migrated_ns.get(number as usize).copied().unwrap_or(0);
        report.chunks_per_rank.clone_from(&decision.chunks_per_rank);
        report.capacity.clone_from(&decision.capacity);
        report.share.clone_from(&decision.share);
        report.before_ns.clone_from(&decision.before_ns);
        report.predicted_ns.clone_from(&decision.predicted_ns);
        (report.proposed, report.gain_ns, report.needed_ns) =
            (decision.proposed, decision.gain_ns, decision.needed_ns);
        let handled =
            reported.iter().flat_map(|reported| &reported.chunks).map(|chunk| u64::from(chunk.handled));
        report.deliveries = handled.sum();
        report.deliveries_predicted = report.deliveries;
        report.reported = reported.clone().map(Arc::new);
        report
    }
}

/// The handler of a message, or of none.
fn handler(chunk: u32, kind: NameId, message: Option<Message>, lost_ns: u64) -> What {
    let (from, number) = message.map_or((RUNTIME, 0), |message| (id(message.from), message.number));
    What::Handler { chunk: id(chunk), kind, from, number, lost_ns }
}

/// How the worker with these events spent its time.
fn profile(events: &[Event]) -> Profile {
    let mut profile = Profile::default();
    for event in events {
        let (begin_ns, end_ns, cpu_ns) = (event.begin_ns, event.end_ns, event.cpu_ns());
        match event.what {
            What::Handler { kind, lost_ns, .. } => {
                profile.add(Activity::Kind(kind), begin_ns, end_ns, cpu_ns, 1, cpu_ns);
                if lost_ns > 0 {
                    profile.add(Activity::Lost, begin_ns, end_ns, lost_ns, 1, lost_ns);
                }
            }
            What::Idle => profile.add(Activity::Idle, begin_ns, end_ns, cpu_ns, 1, cpu_ns),
            _ => {}
        }
    }
    profile
}

/// What the rank measured at each sync.
fn samples(run: &ArrayRun, rank: u32) -> Vec<Sample> {
    let sample = |(number, sync): (u64, &SyncRun)| {
        let report = sync.report.as_ref()?;
        let measured = report.ranks.get(rank as usize)?.sample?;
        let on_rank = report.chunks.iter().filter(|chunk| chunk.load.rank.0 == rank);
        let chunks: Vec<u64> = on_rank.map(|chunk| u64::from(chunk.handled)).collect();
        Some(Sample {
            at_ns: sync.at,
            sync: Some(number),
            wall_ns: measured.wall_ns,
            cpu_ns: measured.cpu_ns,
            chunk_ns: measured.cpu_ns,
            idle_ns: measured.wall_ns.saturating_sub(measured.cpu_ns + measured.wait_ns),
            wait_ns: measured.wait_ns,
            background_ns: measured.background_ns,
            speed: measured.speed,
            chunks: chunks.len() as u64,
            deliveries: chunks.iter().sum(),
            ..Sample::default()
        })
    };
    (0..).zip(&run.syncs).filter_map(sample).collect()
}

fn run_record(scenario: &ArrayScenario, policy: &Policy<dyn Strategy>, dir: &Path, rank: u32) -> RunRecord {
    let workers = &scenario.array.workers;
    let host = |rank: u32| format!("host{}", scenario.overheads.bandwidths.host(rank));
    let (ranks, all) = (workers.len() as u32, workers.iter().sum::<u32>());
    RunRecord {
        run_id: format!("simulated-{}-{}", scenario.name, policy.spec),
        arguments: vec![SIMULATED.into(), scenario.name.clone()],
        version: env!("CARGO_PKG_VERSION").into(),
        git_hash: "unknown".into(),
        started_unix_ns: 0,
        shape: Shape::Arrays,
        lb: policy.spec.clone(),
        predict: Prediction::default().to_string(),
        memory_limit: None,
        ranks,
        workers: workers.clone(),
        hosts: (0..ranks).map(host).collect(),
        placement: format!("{ranks} ranks of {all} workers in virtual time"),
        pinned: true,
        trace: dir.display().to_string(),
        filter: "all".into(),
        arrows: 1,
        rank,
        pid: 1 + rank,
    }
}
