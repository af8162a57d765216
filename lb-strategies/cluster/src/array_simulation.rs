//! Simulates an array of chunks on a cluster in virtual time. Chunks are moved by the balancer of production.
//!
//! # What is modelled
//! - A chunk executes its iterations in order. It begins the first at once, and a later one when it has a message from
//!   each chunk that sends to it ([`RunArray::exchange`]; by default none). Without an [`Overheads::barrier`] chunks run
//!   ahead as far as their neighbours allow. The workers of a rank take ready chunks in the order in which these became ready.
//! - With a [period](Array::period) of iterations there are syncs, as in the runtime. Chunks wait, unless the strategy
//!   never moves anything. A rank reports when all its chunks and those of the ranks below it have come. The
//!   [balancer](lb_strategies::balancer::Balancer) decides on rank 0. Chunks that stay continue as soon as their rank
//!   knows the decision. Outgoing chunks leave one after another when all ranks use the new routes. When all have
//!   arrived, incoming chunks continue. All these packets go over [`Links`], along the tree of ranks (`tree.rs`), eight
//!   children per rank. So events and memory are linear in ranks.
//! - With any other period, chunks are balanced in windows. Rank 0 reads how busy ranks are, and opens a window by the
//!   [policy](lb_strategies::window_policy) of production. Each rank reports at once. Only chunks that move wait. They
//!   leave after their current iteration.
//! - Reports have the measurements of a real rank: the CPU time of its chunks and workers, the time that they waited for
//!   a vCPU, and the median clock of its last five bursts. They have the errors of [`Overheads::noise`].
//! - [`Overheads`] also has the bandwidth between and within hosts, the CPU time of messages between chunks, and the time
//!   of a decision. [`CpuCosts`](super::CpuCosts) has the CPU time that the runtime takes from workers for iterations,
//!   reports, packets, moves, and cold caches after a move. By default all of these cost nothing, and packets are
//!   handled while workers execute chunks. `chores.rs` defines when workers pay.
//! - [`Sliced`](super::Sliced) vCPUs run a worker and its neighbours in turn. On [`Crowded`](super::Crowded) vCPUs more
//!   workers than vCPUs take turns. A worker that sleeps needs a vCPU to [wake up](Overheads::wake).
//!
//! # What is not modelled
//! - One balancer on rank 0 decides every window, also under `hierarchical`. In the runtime, `hierarchical` decides in
//!   [groups](lb_strategies::grouped), which see fewer loads.
//! - Rank 0 reads at once how busy ranks are. In the runtime, this too goes through the tree.
//! - An outgoing chunk does not wait for messages under the old routes that are slower than two packets of the tree.
//! - Caches are modelled only after a move: chunks that share a cache do not disturb each other.
//! - The background load is the time waited. Neighbours are other guests: while a worker is idle, they are not
//!   measured.
//!
//! [`RunPool`](super::RunPool) simulates pools. Both simulations share `execution`, events and messages, but not the
//! event loop. In a pool, a machine per rank decides the next action; here the chunks do.

mod chores;
mod event;
mod groups;
mod history;
mod placement;
mod report;
mod tree;
mod windows;
mod wires;

use std::sync::Arc;

use self::groups::Groups;
use self::history::EventLoop;
use crate::overheads::Overheads;
use lb_strategies::Rank;
use lb_strategies::arrays::accept::MoveCost;
use lb_strategies::arrays::balancer::{Decision, MOVE_COST, PhaseReport};
use lb_strategies::arrays::period::Period;
use lb_strategies::arrays::strategy::Strategy;
use lb_strategies::pools::machine::Nanos;
use lb_strategies::virtual_time::links::Links;
use lb_strategies::virtual_time::vcpus::{Vcpus, Worker};

/// An array, and its ranks. Chunks begin in blocks: of C chunks on P ranks, rank p has pC/P up to (p+1)C/P.
/// [`RunArray::homes`] sets other ranks.
///
/// ```
/// use lb_strategies::Period;
/// use virtual_cluster::Array;
/// let array = Array { chunks: 64, iterations: 100, period: Period::Steps(20), state_bytes: 4096, workers: vec![1, 1] };
/// assert_eq!(array.syncs(), 4, "none after the last iteration");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// Number of chunks.
    pub chunks: u32,
    /// Number of iterations that each executes.
    pub iterations: u64,
    /// When chunks are balanced; a step is an iteration.
    pub period: Period,
    /// Size of the state of a chunk, in bytes.
    pub state_bytes: u64,
    /// Number of workers of each rank, at least one; there is at least one rank.
    pub workers: Vec<u32>,
}

impl Array {
    /// Number of syncs in a run under a strategy that keeps to syncs.
    pub fn syncs(&self) -> u64 {
        let Period::Steps(period) = self.period else { return 0 };
        self.iterations.saturating_sub(1).checked_div(period).unwrap_or(0)
    }

    /// The rank of each chunk if chunks begin in blocks.
    pub fn blocks(&self) -> impl Iterator<Item = u32> + use<> {
        let (chunks, ranks) = (self.chunks as usize, self.workers.len());
        (0..chunks).map(move |chunk| block(chunk, chunks, ranks) as u32)
    }

    /// All workers, in order.
    pub fn all_workers(&self) -> impl Iterator<Item = Worker> + '_ {
        lb_strategies::virtual_time::vcpus::all_workers(&self.workers)
    }
}

/// Where a chunk begins.
///
/// ```
/// use lb_strategies::Rank;
/// let home = virtual_cluster::Home { rank: Rank(3), migratable: false };
/// assert_ne!(home, virtual_cluster::Home { migratable: true, ..home });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    /// The rank on which the chunk begins.
    pub rank: Rank,
    /// True if the chunk may be moved.
    pub migratable: bool,
}

/// An array before its run on a cluster.
///
/// ```
/// use lb_strategies::{ARRAYS, Period};
/// use virtual_cluster::{Array, RunArray, Traces};
/// // Rank 1 is half as fast: of 12 chunks it should have 4.
/// let array = Array { chunks: 12, iterations: 100, period: Period::Steps(10), state_bytes: 0, workers: vec![1, 1] };
/// let mut vcpus = Traces::constant(|worker| if worker.rank.0 == 0 { 60.0 } else { 30.0 });
/// let run = RunArray::new(&array, ARRAYS.parse("refine")?.into(), &mut vcpus).run();
/// assert!(run.is_complete(&array));
/// assert_eq!(run.moves(), 2);
/// assert_eq!(run.makespan() / 1_000_000, 10 * 200 + 12_000, "90 iterations of 8 chunks, a sixtieth of a second each");
/// # Ok::<(), lb_strategies::ParseError>(())
/// ```
pub struct RunArray<'r> {
    array: Array,
    strategy: Arc<dyn Strategy>,
    vcpus: &'r mut dyn Vcpus,
    links: Box<dyn Links + 'r>,
    /// Units of work of a chunk in an iteration.
    work: Box<dyn Fn(u32, u64) -> f64 + 'r>,
    /// By chunk, the chunks that it sends to.
    sends_to: Groups,
    /// Where each chunk begins.
    homes: Vec<Home>,
    move_cost: MoveCost,
    overheads: Overheads,
    crowding: u32,
    end: Nanos,
    keeps_reports: bool,
    progress: Box<dyn FnMut(u64) + 'r>,
    watch: Box<dyn FnMut(Executed) + 'r>,
}

/// The execution of one iteration by a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    /// The chunk.
    pub chunk: u32,
    /// The iteration, counted from 0.
    pub iteration: u64,
    /// The worker that executed it.
    pub worker: Worker,
    /// Time at which the iteration began.
    pub begun: Nanos,
    /// Time at which the iteration ended.
    pub end: Nanos,
    /// CPU time of the worker. For the rest of the time it waited for its vCPU.
    pub cpu_ns: Nanos,
}

impl<'r> RunArray<'r> {
    /// One unit of work per chunk and iteration, no messages, no delay on links, and moves at the balancer's assumed
    /// cost.
    pub fn new(array: &Array, strategy: Arc<dyn Strategy>, vcpus: &'r mut dyn Vcpus) -> Self {
        let chunks = array.chunks as usize;
        let home = |rank| Home { rank: Rank(rank), migratable: true };
        Self {
            array: array.clone(),
            strategy,
            vcpus,
            links: Box::new(0),
            work: Box::new(|_, _| 1.0),
            sends_to: Groups::by(chunks, std::iter::empty()),
            homes: array.blocks().map(home).collect(),
            move_cost: MOVE_COST,
            overheads: Overheads::default(),
            crowding: 1,
            end: Nanos::MAX,
            keeps_reports: false,
            progress: Box::new(|_| ()),
            watch: Box::new(|_| ()),
        }
    }

    /// Keeps the reports of each sync, which may be large because they have all chunks.
    #[must_use]
    pub fn keep_reports(mut self) -> Self {
        self.keeps_reports = true;
        self
    }

    /// Sets the links between ranks.
    #[must_use]
    pub fn links(mut self, links: impl Links + 'r) -> Self {
        self.links = Box::new(links);
        self
    }

    /// Sets the work of a chunk in an iteration.
    #[must_use]
    pub fn work(mut self, work: impl Fn(u32, u64) -> f64 + 'r) -> Self {
        self.work = Box::new(work);
        self
    }

    /// Sets the chunks to which each chunk sends after each iteration.
    #[must_use]
    pub fn exchange(mut self, sends_to: impl Fn(u32) -> Vec<u32>) -> Self {
        self.sends_to = Groups::of((0..self.array.chunks).map(sends_to));
        self
    }

    /// Sets where each chunk begins, in the order of the chunks.
    ///
    /// # Panics
    /// If there is not one home for each chunk, or a home is on a rank that does not exist.
    #[must_use]
    pub fn homes(mut self, homes: &[Home]) -> Self {
        assert_eq!(homes.len(), self.homes.len(), "each chunk begins somewhere");
        let ranks = self.array.workers.len();
        assert!(homes.iter().all(|home| home.rank.index() < ranks), "chunks begin on the {ranks} ranks");
        homes.clone_into(&mut self.homes);
        self
    }

    /// Sets the cost of moves: an outgoing chunk leaves after this time.
    #[must_use]
    pub fn move_cost(mut self, move_cost: MoveCost) -> Self {
        self.move_cost = move_cost;
        self
    }

    /// Sets the costs of messages and decisions, and the errors of measurements.
    #[must_use]
    pub fn overheads(mut self, overheads: &Overheads) -> Self {
        self.overheads = overheads.clone();
        self
    }

    /// Sets the number of workers per vCPU. Windows are that many times as long, as in the runtime.
    #[must_use]
    pub fn crowding(mut self, workers_per_vcpu: u32) -> Self {
        self.crowding = workers_per_vcpu;
        self
    }

    /// Calls `progress` now and then, with the number of iterations that all chunks together have executed.
    #[must_use]
    pub fn progress(mut self, progress: impl FnMut(u64) + 'r) -> Self {
        self.progress = Box::new(progress);
        self
    }

    /// Stops at `at`, even if the array is not finished.
    #[must_use]
    pub fn until(mut self, at: Nanos) -> Self {
        self.end = at;
        self
    }

    /// Calls `watch` for each executed iteration, in the order of the ends.
    #[must_use]
    pub fn watch(mut self, watch: impl FnMut(Executed) + 'r) -> Self {
        self.watch = Box::new(watch);
        self
    }

    /// Runs the array to the end.
    pub fn run(self) -> ArrayRun {
        EventLoop::new(self).run()
    }
}

/// The record of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayRun {
    /// Time at which the last chunk had executed each iteration.
    pub iteration_ends: Vec<Nanos>,
    /// The syncs and the decided windows, in order.
    pub syncs: Vec<SyncRun>,
    /// By worker: time in which it had a chunk to execute or a chore to do, with or without its vCPU.
    pub busy: Vec<Nanos>,
    /// Iterations executed, added up over all chunks.
    pub executed: u64,
    /// Number of events that were simulated.
    pub events: u64,
    /// Number of messages between ranks: of chunks, of syncs, and chunks that move.
    pub messages: u64,
    /// Digest of all events in order: two runs with the same digest had the same history.
    pub digest: u64,
}

/// A sync, or a decided window.
#[derive(Clone, Debug, PartialEq)]
pub struct SyncRun {
    /// Time of the decision.
    pub at: Nanos,
    /// The reports of ranks, if they are [kept](RunArray::keep_reports).
    pub report: Option<PhaseReport>,
    /// The decision.
    pub decision: Decision,
}

impl ArrayRun {
    /// Time at which the last iteration ended.
    pub fn makespan(&self) -> Nanos {
        self.iteration_ends.last().copied().unwrap_or(0)
    }

    /// Length of each iteration, from the end of the iteration before.
    pub fn iteration_times(&self) -> Vec<Nanos> {
        let begins = std::iter::once(&0).chain(&self.iteration_ends);
        begins.zip(&self.iteration_ends).map(|(begin, end)| end - begin).collect()
    }

    /// Time in which workers had nothing to execute before the makespan, added up over workers.
    pub fn idle(&self) -> Nanos {
        let makespan = self.makespan();
        self.busy.iter().map(|busy| makespan.saturating_sub(*busy)).sum()
    }

    /// Number of moves of chunks at all syncs together.
    pub fn moves(&self) -> u64 {
        self.syncs.iter().map(|sync| sync.decision.moves.len() as u64).sum()
    }

    /// True if each chunk has executed each iteration.
    pub fn is_complete(&self, array: &Array) -> bool {
        self.executed == u64::from(array.chunks) * array.iterations
            && self.iteration_ends.len() as u64 == if array.chunks > 0 { array.iterations } else { 0 }
    }
}

/// The rank on which a chunk begins if chunks begin in blocks.
fn block(chunk: usize, chunks: usize, ranks: usize) -> usize {
    // The last rank whose first chunk is this chunk or an earlier one.
    ((chunk + 1) * ranks).div_ceil(chunks) - 1
}
