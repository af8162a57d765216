//! Drives cores of several ranks in tests, without workers. Chunks only send messages, come to syncs and move.
//!
//! A chunk that starts or resumes sends its messages and comes to the next sync. The test decides when a packet
//! arrives, and when the handlers of outgoing chunks return.

use std::collections::BTreeMap;
use std::convert::Infallible;

use lb_strategies::balancer::EdgeReports;
use lb_strategies::{Assignment, ChunkLoad, Snapshot};

use super::idlers::{IdleChunks, arrival};
use super::*;
use crate::arrays::core::lifecycle::transfer::ChunkTransfer;
use crate::arrays::core::routing::envelope::Payload;
use crate::arrays::core::sync::coordinator::DecisionRequest;
use crate::arrays::core::sync::sync_arrivals::{SyncArrival, UnmeasuredReport};
use crate::ids::{Sender, SyncId};
use crate::measure::records::Sample;

/// The behaviour of the chunks of a run. Chunks are numbered, and start on the ranks in turn.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    pub(super) ranks: u32,
    pub(super) arity: u32,
    pub(super) chunks: u64,
    pub(super) syncs: u64,
    /// The chunks to which a chunk sends a message when it starts or resumes.
    pub(super) sends_to: fn(u64, Plan) -> Vec<u64>,
    /// The rank to which a chunk moves at a sync. None if the chunk stays.
    pub(super) goes_to: fn(u64, SyncId, Plan) -> Option<Rank>,
}

pub(super) struct CoreDriver {
    pub(super) plan: Plan,
    pub(super) cores: Vec<RankCore>,
    /// Packets sent, each with its sender and its receiver.
    pub(super) sent: Vec<(Rank, Rank, Packet)>,
    /// Number of handlers of outgoing chunks that have not returned, by rank.
    pub(super) running: Vec<usize>,
    /// Number of moves of chunks.
    pub(super) moved: usize,
    /// Number of syncs that have moved chunks.
    migrations: usize,
    /// Number of times that a rank has admitted all its incoming chunks.
    landed: usize,
    /// Rank of each chunk; for a migrating chunk, its old rank.
    places: BTreeMap<u64, Rank>,
    /// Number of cells that each rank has given out.
    cells: Vec<u32>,
    next_sync: BTreeMap<u64, SyncId>,
    /// Number of messages sent, by sender and receiver.
    numbers: BTreeMap<(u64, u64), u32>,
    /// Numbers of the messages that have come, by sender and receiver.
    came: BTreeMap<(u64, u64), Vec<u32>>,
}

impl CoreDriver {
    /// All chunks are made, and none has started.
    pub(super) fn new(plan: Plan) -> CoreDriver {
        let Plan { ranks, arity, chunks, .. } = plan;
        let places = vec![RankPlace { host: 0, workers: 1 }; ranks as usize];
        let home = |key: u64, ranks: u32| Rank((key % u64::from(ranks)) as u32);
        let idlers: Arc<dyn ErasedArray> = Arc::new(IdleChunks { chunks, home });
        let arrays: Arc<[_]> = [idlers].into();
        let strategy: Arc<dyn Strategy> = lb_strategies::ARRAYS.parse("rotate").expect("it is there").into();
        let core = |rank| {
            let tree = Tree { rank, ranks, arity, group: 1 };
            let flow = FlowControl::without_limit(rank);
            RankCore::new(tree, &places, arrays.clone(), strategy.clone(), false, flow)
        };
        let mut drive = CoreDriver {
            plan,
            cores: (0..ranks).map(Rank).map(core).collect(),
            sent: Vec::new(),
            running: vec![0; ranks as usize],
            moved: 0,
            migrations: 0,
            landed: 0,
            places: (0..chunks).map(|key| (key, home(key, ranks))).collect(),
            cells: vec![0; ranks as usize],
            next_sync: BTreeMap::new(),
            numbers: BTreeMap::new(),
            came: BTreeMap::new(),
        };
        for key in 0..chunks {
            let rank = home(key, ranks);
            let cell = drive.new_cell(rank);
            drive.cores[rank.index()].created(chunk(key), cell);
        }
        drive
    }

    /// Every chunk of a rank starts.
    pub(super) fn start(&mut self, rank: Rank, now_ns: u64) {
        let mut out = Commands::default();
        self.cores[rank.index()].hello(&mut out);
        for key in (rank.0.into()..self.plan.chunks).step_by(self.plan.ranks as usize) {
            self.resume(rank, key, &mut out);
        }
        self.run_all(rank, now_ns, out);
    }

    pub(super) fn receive(&mut self, from: Rank, to: Rank, packet: Packet, now_ns: u64) {
        let mut out = Commands::default();
        self.cores[to.index()].receive(from, packet, now_ns, &mut out);
        self.run_all(to, now_ns, out);
    }

    /// The handler of an outgoing chunk returns.
    pub(super) fn held(&mut self, rank: Rank, now_ns: u64) {
        let mut out = Commands::default();
        self.running[rank.index()] -= 1;
        self.cores[rank.index()].held(now_ns, &mut out);
        self.run_all(rank, now_ns, out);
    }

    /// A chunk that runs sends its messages.
    pub(super) fn talk(&mut self, key: u64, now_ns: u64) {
        let rank = self.places[&key];
        if self.cores[rank.index()].routing.location.cell(chunk(key)).is_none() {
            return;
        }
        let mut out = Commands::default();
        self.send_messages(rank, key, &mut out);
        self.run_all(rank, now_ns, out);
    }

    /// Checks that each message has come once, and that messages between two chunks came in order.
    pub(super) fn check(&self) {
        let in_order = |(&pair, &sent): (_, &u32)| (pair, (0..sent).collect());
        let expected: BTreeMap<(u64, u64), Vec<u32>> = self.numbers.iter().map(in_order).collect();
        assert_eq!(self.came, expected, "each message once, and in order");
        assert_eq!(self.landed, self.migrations * self.plan.ranks as usize, "everybody has landed");
        assert!(self.next_sync.values().all(|next| next.0 == self.plan.syncs), "every chunk is through");
    }

    fn resume(&mut self, rank: Rank, key: u64, out: &mut Commands) {
        self.send_messages(rank, key, out);
        let next = self.next_sync.entry(key).or_default();
        if next.0 == self.plan.syncs {
            return;
        }
        let core = &mut self.cores[rank.index()];
        let cell = core.routing.location.cell(chunk(key)).expect("it is here");
        assert!(core.at_sync(SyncArrival { cell, ..arrival(key, *next) }, out), "it waits for a decision");
        *next = next.next();
    }

    fn send_messages(&mut self, rank: Rank, from: u64, out: &mut Commands) {
        for to in (self.plan.sends_to)(from, self.plan) {
            let number = self.numbers.entry((from, to)).or_default();
            let (from, payload) = (Sender::new(chunk(from), *number), Payload::Encoded([].into()));
            *number += 1;
            self.cores[rank.index()].send_message(chunk(to), Delivery { from, bytes: 0, payload }, out);
        }
    }

    /// A message or a call of the runtime reaches its chunk.
    fn hear(&mut self, rank: Rank, key: u64, delivery: &Delivery, out: &mut Commands) {
        match delivery.payload {
            Payload::Encoded(_) => {
                self.came.entry((delivery.from.key, key)).or_default().push(delivery.from.number);
            }
            _ => self.resume(rank, key, out),
        }
    }

    /// Runs requests as a worker does: all commands before the next task.
    fn run_all(&mut self, rank: Rank, now_ns: u64, mut out: Commands) {
        loop {
            while let Some(command) = out.now.pop_front() {
                self.run_command(rank, command, &mut out);
            }
            let Some(task) = out.later.pop_front() else { return };
            self.run_task(rank, task, now_ns, &mut out);
        }
    }

    fn run_command(&mut self, rank: Rank, command: Command, out: &mut Commands) {
        match command {
            Command::Send(to, packet) => self.sent.push((rank, to, packet)),
            Command::Enqueue { to, delivery, .. } => self.hear(rank, to.key, &delivery, out),
            Command::Hold(cells) => self.running[rank.index()] += cells.len(),
            Command::Admit(transfer) => self.admit(rank, &transfer, out),
            Command::IncomingAdmitted => {
                self.cores[rank.index()].incoming_admitted(out);
                self.landed += 1;
            }
            Command::Close(_) | Command::BeginPhase | Command::CheckLowWatermark => {}
            other => panic!("{other:?} has no part in a sync"),
        }
    }

    fn run_task(&mut self, rank: Rank, task: Task, now_ns: u64, out: &mut Commands) {
        let core = &mut self.cores[rank.index()];
        match task {
            Task::MigrateOut { chunk, to, transit, .. } => {
                let transfer =
                    ChunkTransfer { bytes: 10, transit: Some(transit), ..ChunkTransfer::without_body(chunk) };
                core.migrated_out(Box::new(transfer), to, false, now_ns, out);
            }
            Task::Sample(reports) => sample(core, reports, now_ns, out),
            Task::Decide(request) => self.decide(*request, now_ns, out),
            other => panic!("{other:?} has no part in a sync"),
        }
    }

    fn admit(&mut self, rank: Rank, transfer: &ChunkTransfer, out: &mut Commands) {
        let (key, cell) = (transfer.chunk.key, self.new_cell(rank));
        let next = self.next_sync[&key];
        self.places.insert(key, rank);
        let messages = self.cores[rank.index()].admit(transfer.chunk, cell, transfer.transit, next, 0, out);
        messages.iter().for_each(|delivery| self.hear(rank, key, delivery, out));
    }

    fn new_cell(&mut self, rank: Rank) -> CellId {
        self.cells[rank.index()] += 1;
        CellId(self.cells[rank.index()])
    }

    fn decide(&mut self, request: DecisionRequest, now_ns: u64, out: &mut Commands) {
        let DecisionRequest { report, mut balancer } = request;
        let plan = self.plan;
        let assign = |expected: &Snapshot| {
            let to = |chunk: &ChunkLoad| (plan.goes_to)(chunk.id.key, SyncId(expected.phase), plan);
            let ranks = expected.chunks.iter().map(|chunk| to(chunk).unwrap_or(chunk.rank)).collect();
            Ok::<_, Infallible>((Assignment { ranks }, 0))
        };
        let Ok(decision) = balancer.decide_by(&report, assign);
        self.moved += decision.moves.len();
        self.migrations += usize::from(!decision.moves.is_empty());
        self.cores[0].decided(balancer, decision, now_ns, out);
    }
}

fn chunk(key: u64) -> ChunkId {
    ChunkId { array: ArrayId(0), key }
}

fn sample(core: &mut RankCore, reports: UnmeasuredReport, now_ns: u64, out: &mut Commands) {
    // As large as real values, because a number is encoded in as many bytes as it needs.
    let ns = 3_000_000_000;
    let sample =
        Sample { at_ns: ns, wall_ns: ns, cpu_ns: ns, chunk_ns: ns, idle_ns: ns, ..Sample::default() };
    let loads = vec![10_000_000; reports.arrivals.len()];
    core.sampled(reports, sample, &loads, EdgeReports::default(), now_ns, out);
}
