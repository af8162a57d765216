//! Arrays of chunks on a cluster in virtual time, moved by the balancer of production.
//!
//! # What is modelled
//! - A chunk executes its iterations in order. It begins the first at once, and a later one when it has a message from
//!   each chunk that sends to it ([`RunArray::exchange`]; by default none). There is no barrier: chunks run ahead as far
//!   as their neighbours let them. A rank's workers take its ready chunks in the order in which they became ready.
//! - At a [period](Array::period) of iterations there is a sync, as in the runtime. Chunks wait, unless the strategy
//!   never moves anything. A rank reports to rank 0 when all of its chunks have come. The
//!   [balancer](lb_strategies::balancer::Balancer) decides, and ranks are told the moves. Chunks that stay go on at once.
//!   Outgoing chunks leave one after another when a marker of every rank has come. Incoming chunks go on when rank 0
//!   knows that all have arrived. All of this is messages over [`Links`].
//! - At any other period chunks are balanced in windows. Rank 0 sees how busy ranks are, and opens a window by the
//!   [policy](lb_strategies::window_policy) of production. Each rank reports at once. Chunks that move leave after their
//!   current iteration, and only they wait.
//! - Reports have the measurements of a real rank, without noise: the CPU time of its chunks and workers, the time they
//!   waited for a vCPU, the median clock of its last five bursts.
//!
//! # What is not modelled
//! Rank 0 sees at once how busy ranks are. Ranks report to rank 0 directly, and each rank tells each that it has switched
//! to the new routes; in the runtime this goes by a tree of ranks. A vCPU is shared at every instant, not by slices of
//! milliseconds. Messages, and deciding, take no CPU time of workers. The background load is the time waited: neighbours
//! are other guests, and their work while a worker is idle is not seen.
//!
//! [`RunPool`](super::RunPool) is the same for pools. Both share the execution of work (`execution`), events and post,
//! but not the loop around them. There a machine per rank decides the next action, here the chunks do; a trait for both
//! would be longer than the four lines it saves.

mod event;
mod history;
mod placement;
mod report;
mod windows;

use std::sync::Arc;

use self::history::EventLoop;
use lb_strategies::Rank;
use lb_strategies::arrays::accept::MoveCost;
use lb_strategies::arrays::balancer::{Decision, MOVE_COST, PhaseReport};
use lb_strategies::arrays::period::Period;
use lb_strategies::arrays::strategy::Strategy;
use lb_strategies::pools::machine::Nanos;
use lb_strategies::virtual_time::links::Links;
use lb_strategies::virtual_time::vcpus::{Vcpus, Worker};

/// An array, and the ranks that it is on. Chunks begin in blocks: of C chunks on P ranks, rank p has pC/P up to (p+1)C/P. They
/// begin elsewhere if [told](RunArray::homes).
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
    /// Bytes that travel when a chunk moves.
    pub state_bytes: u64,
    /// Number of workers of each rank, at least one; there is at least one rank.
    pub workers: Vec<u32>,
}

impl Array {
    /// Number of syncs in a run under a strategy that keeps to the period.
    pub fn syncs(&self) -> u64 {
        let Period::Steps(period) = self.period else { return 0 };
        self.iterations.saturating_sub(1).checked_div(period).unwrap_or(0)
    }

    /// All workers, in order.
    pub fn all_workers(&self) -> impl Iterator<Item = Worker> + '_ {
        lb_strategies::virtual_time::vcpus::all_workers(&self.workers)
    }
}

/// The place at which a chunk begins.
///
/// ```
/// use lb_strategies::Rank;
/// let home = virtual_cluster::Home { rank: Rank(3), migratable: false };
/// assert_ne!(home, virtual_cluster::Home { migratable: true, ..home });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    /// Its rank.
    pub rank: Rank,
    /// True if the chunk may be moved.
    pub migratable: bool,
}

/// An array about to run on a cluster.
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
    sends_to: Vec<Vec<u32>>,
    /// By chunk.
    homes: Vec<Home>,
    move_cost: MoveCost,
    end: Nanos,
    keeps_reports: bool,
    watch: Box<dyn FnMut(Executed) + 'r>,
}

/// A chunk has executed an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    /// The chunk.
    pub chunk: u32,
    /// The iteration, counted from 0.
    pub iteration: u64,
    /// The worker that executed it.
    pub worker: Worker,
    /// Time at which it began.
    pub begun: Nanos,
    /// Time at which it was through.
    pub end: Nanos,
}

impl<'r> RunArray<'r> {
    /// One unit of work per chunk and iteration, independent chunks, links without delay, and moves at the cost that the
    /// balancer assumes.
    pub fn new(array: &Array, strategy: Arc<dyn Strategy>, vcpus: &'r mut dyn Vcpus) -> Self {
        let (chunks, ranks) = (array.chunks as usize, array.workers.len());
        let home = |chunk| Home { rank: Rank(block(chunk, chunks, ranks) as u32), migratable: true };
        Self {
            array: array.clone(),
            strategy,
            vcpus,
            links: Box::new(0),
            work: Box::new(|_, _| 1.0),
            sends_to: vec![Vec::new(); chunks],
            homes: (0..chunks).map(home).collect(),
            move_cost: MOVE_COST,
            end: Nanos::MAX,
            keeps_reports: false,
            watch: Box::new(|_| ()),
        }
    }

    /// Keeps the reports of each sync: they have all chunks, so they may be large.
    #[must_use]
    pub fn keep_reports(mut self) -> Self {
        self.keeps_reports = true;
        self
    }

    /// With these links between ranks.
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

    /// With chunks that send to these others after each iteration.
    #[must_use]
    pub fn exchange(mut self, sends_to: impl Fn(u32) -> Vec<u32>) -> Self {
        self.sends_to = (0..self.array.chunks).map(sends_to).collect();
        self
    }

    /// With chunks that begin at these places, in their order.
    ///
    /// # Panics
    /// If there is not one for each chunk, or it names a rank that is not there.
    #[must_use]
    pub fn homes(mut self, homes: &[Home]) -> Self {
        assert_eq!(homes.len(), self.homes.len(), "each chunk begins somewhere");
        let ranks = self.array.workers.len();
        assert!(homes.iter().all(|home| home.rank.index() < ranks), "chunks begin on the {ranks} ranks");
        homes.clone_into(&mut self.homes);
        self
    }

    /// Sets the cost of moves: an outgoing chunk leaves after that time.
    #[must_use]
    pub fn move_cost(mut self, move_cost: MoveCost) -> Self {
        self.move_cost = move_cost;
        self
    }

    /// Stops at `at`, finished or not.
    #[must_use]
    pub fn until(mut self, at: Nanos) -> Self {
        self.end = at;
        self
    }

    /// Tells `watch` of everything that is executed, in the order of its ends.
    #[must_use]
    pub fn watch(mut self, watch: impl FnMut(Executed) + 'r) -> Self {
        self.watch = Box::new(watch);
        self
    }

    /// Runs it to the end.
    pub fn run(self) -> ArrayRun {
        EventLoop::new(self).run()
    }
}

/// The record of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayRun {
    /// Time at which the last chunk had executed each iteration.
    pub iteration_ends: Vec<Nanos>,
    /// The syncs, or windows that were decided, in order.
    pub syncs: Vec<SyncRun>,
    /// Time of each worker of every rank in which it had a chunk to execute, with or without its vCPU.
    pub busy: Vec<Nanos>,
    /// Iterations executed, of all chunks together.
    pub executed: u64,
    /// Messages between ranks: of chunks, of syncs, and chunks that move.
    pub messages: u64,
    /// Of all events in their order: two runs with the same number had the same history.
    pub digest: u64,
}

/// A sync, or a window that was decided.
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
    /// Time at which the last iteration was done.
    pub fn makespan(&self) -> Nanos {
        self.iteration_ends.last().copied().unwrap_or(0)
    }

    /// Length of each iteration: from the end of the one before to its own.
    pub fn iteration_times(&self) -> Vec<Nanos> {
        let begins = std::iter::once(&0).chain(&self.iteration_ends);
        begins.zip(&self.iteration_ends).map(|(begin, end)| end - begin).collect()
    }

    /// Time in which workers had nothing to execute before the makespan, all added up.
    pub fn idle(&self) -> Nanos {
        let makespan = self.makespan();
        self.busy.iter().map(|busy| makespan.saturating_sub(*busy)).sum()
    }

    /// Chunks that were moved, counted at each sync.
    pub fn moves(&self) -> u64 {
        self.syncs.iter().map(|sync| sync.decision.moves.len() as u64).sum()
    }

    /// Tells whether each chunk has executed each iteration.
    pub fn is_complete(&self, array: &Array) -> bool {
        self.executed == u64::from(array.chunks) * array.iterations
            && self.iteration_ends.len() as u64 == if array.chunks > 0 { array.iterations } else { 0 }
    }
}

/// The rank on which a chunk begins, where chunks begin in blocks.
fn block(chunk: usize, chunks: usize, ranks: usize) -> usize {
    // The last rank whose first chunk is not after this one.
    ((chunk + 1) * ranks).div_ceil(chunks) - 1
}
