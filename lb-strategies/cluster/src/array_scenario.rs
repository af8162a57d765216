//! Defines a simulated array of chunks with its cluster and disturbances, to compare strategies under equal conditions.

use std::sync::Arc;

use super::array_simulation::{Array, ArrayRun, Executed, Home, RunArray};
use super::chunk_costs::{ChunkCosts, Grid};
use super::costs::Costs;
use super::crowded::Crowded;
use super::ideal::ideal_s;
use super::overheads::Overheads;
use super::pool_scenario::{MakeVcpus, Network};
use super::slices::Sliced;
use lb_strategies::arrays::accept::MoveCost;
use lb_strategies::arrays::balancer::MOVE_COST;
use lb_strategies::arrays::strategy::Strategy;
use lb_strategies::pools::machine::{Nanos, SECOND};
use lb_strategies::virtual_time::vcpus::Vcpus;

/// The chunks that a chunk sends to.
pub type SendsTo = Arc<dyn Fn(u32) -> Vec<u32> + Send + Sync>;

/// An array on a cluster, the same in each run under any strategy.
///
/// ```
/// use lb_strategies::{ARRAYS, Period};
/// use virtual_cluster::{Array, ArrayScenario, Traces};
/// let array = Array { chunks: 12, iterations: 100, period: Period::Steps(10), state_bytes: 0, workers: vec![1, 1] };
/// let scenario = ArrayScenario::new("halves", array, || {
///     Box::new(Traces::constant(|worker| if worker.rank.0 == 0 { 1000.0 } else { 500.0 }))
/// });
/// assert_eq!(scenario.ideal_s(), 0.8);
/// let run = scenario.run(ARRAYS.parse("none")?.into());
/// assert_eq!(run.makespan(), 1_200_000_000);
/// # Ok::<(), lb_strategies::ParseError>(())
/// ```
#[derive(Clone)]
pub struct ArrayScenario {
    /// Name in reports.
    pub name: String,
    /// Number of chunks, iterations and workers.
    pub array: Array,
    /// The cost of chunks.
    pub costs: ChunkCosts,
    /// The ranks on which chunks begin; none if chunks begin in blocks.
    pub homes: Option<Arc<[Home]>>,
    /// True if each chunk of the grid exchanges messages with its neighbours. Otherwise chunks are independent.
    pub exchange: bool,
    /// The chunks that each chunk sends to after each iteration, instead of its neighbours in the grid.
    pub sends_to: Option<SendsTo>,
    /// The cost of moving chunks.
    pub move_cost: MoveCost,
    /// The network between ranks.
    pub network: Network,
    /// The costs of messages and decisions, and the errors of measurements.
    pub overheads: Overheads,
    /// Number of vCPUs on which the workers of each host [take turns](Crowded); none if each worker has its own. A host has
    /// [`ranks_per_host`](super::Bandwidths::ranks_per_host) ranks.
    pub vcpus_per_host: Option<u32>,
    /// The time slice of a worker and other processes on its vCPU, ns; 0 if they share it at any time. Workers that take
    /// turns on the vCPUs of a host have no others beside them.
    pub slice: Nanos,
    /// Makes the vCPUs of one run, in their initial state.
    pub make_vcpus: MakeVcpus,
}

impl ArrayScenario {
    /// Equal chunks in a grid, each of which needs messages of its neighbours. A round trip between ranks takes 0.1 ms.
    pub fn new(
        name: impl Into<String>,
        array: Array,
        vcpus: impl Fn() -> Box<dyn Vcpus> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            array,
            costs: ChunkCosts::Fixed(Costs::Equal),
            homes: None,
            exchange: true,
            sends_to: None,
            move_cost: MOVE_COST,
            network: Network { rtt: SECOND / 10_000, ..Network::default() },
            overheads: Overheads::default(),
            vcpus_per_host: None,
            slice: 0,
            make_vcpus: Arc::new(vcpus),
        }
    }

    /// The grid of the chunks.
    pub fn grid(&self) -> Grid {
        Grid::of(self.array.chunks)
    }

    /// The rank on which each chunk begins.
    pub fn first_ranks(&self) -> Vec<u32> {
        match &self.homes {
            Some(homes) => homes.iter().map(|home| home.rank.0).collect(),
            None => self.array.blocks().collect(),
        }
    }

    /// Returns for each chunk the chunks that it sends to after each iteration.
    pub fn receivers(&self) -> impl Fn(u32) -> Vec<u32> + '_ {
        let grid = self.grid();
        move |chunk| match &self.sends_to {
            Some(sends_to) => sends_to(chunk),
            None if self.exchange => grid.beside(chunk),
            None => Vec::new(),
        }
    }

    /// The vCPUs of one run, on which workers take turns if there are not enough of them, and cut into time slices.
    fn vcpus(&self) -> Box<dyn Vcpus> {
        let vcpus = self.whole_vcpus();
        if self.slice > 0 { Box::new(Sliced::new(vcpus, self.slice)) } else { vcpus }
    }

    /// The same without time slices.
    fn whole_vcpus(&self) -> Box<dyn Vcpus> {
        let vcpus = (self.make_vcpus)();
        match self.vcpus_per_host {
            Some(count) => {
                let ranks_per_host = self.overheads.bandwidths.ranks_per_host;
                Box::new(Crowded::new(vcpus, &self.array.workers, ranks_per_host, count))
            }
            None => vcpus,
        }
    }

    /// The largest number of workers per vCPU, at least 1.
    pub fn crowding(&self) -> u32 {
        let Some(vcpus) = self.vcpus_per_host else { return 1 };
        let hosts = self.array.workers.chunks(self.overheads.bandwidths.ranks_per_host.max(1) as usize);
        let of_host = hosts.map(|workers| workers.iter().sum::<u32>().div_ceil(vcpus.max(1)));
        of_host.max().unwrap_or(1)
    }

    /// Runs the array under `strategy`.
    pub fn run(&self, strategy: Arc<dyn Strategy>) -> ArrayRun {
        self.run_telling(strategy, |_| ())
    }

    /// The same. Calls `progress` now and then, with the executed part of all iterations.
    pub fn run_telling(&self, strategy: Arc<dyn Strategy>, progress: impl Fn(f64)) -> ArrayRun {
        self.prepared(strategy, &mut *self.vcpus(), progress).run()
    }

    /// The same. Calls `watch` for each executed iteration, and keeps the reports of syncs, which have all chunks.
    pub fn run_watched(
        &self,
        strategy: Arc<dyn Strategy>,
        progress: impl Fn(f64),
        watch: impl FnMut(Executed),
    ) -> ArrayRun {
        self.prepared(strategy, &mut *self.vcpus(), progress).watch(watch).keep_reports().run()
    }

    /// The run under `strategy` on these vCPUs.
    fn prepared<'r>(
        &'r self,
        strategy: Arc<dyn Strategy>,
        vcpus: &'r mut dyn Vcpus,
        progress: impl Fn(f64) + 'r,
    ) -> RunArray<'r> {
        let (grid, all) = (self.grid(), f64::from(self.array.chunks) * self.array.iterations as f64);
        let run = RunArray::new(&self.array, strategy, vcpus)
            .links(self.network.links())
            .move_cost(self.move_cost)
            .overheads(&self.overheads)
            .crowding(self.crowding())
            .progress(move |executed| progress(executed as f64 / all))
            .work(move |chunk, iteration| self.costs.work(grid, chunk, iteration));
        let run = match &self.homes {
            Some(homes) => run.homes(homes),
            None => run,
        };
        if self.exchange || self.sends_to.is_some() { run.exchange(self.receivers()) } else { run }
    }

    /// The time that the best placement would take if chunks could be divided and no chunk waited for another, s.
    pub fn ideal_s(&self) -> f64 {
        let workers: Vec<_> = self.array.all_workers().map(|worker| (worker, 0)).collect();
        ideal_s(&workers, &mut *self.whole_vcpus(), self.costs.total(self.grid(), self.array.iterations))
    }
}
