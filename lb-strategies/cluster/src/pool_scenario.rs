//! Defines a simulated pool with its cluster and disturbances, to compare policies under equal conditions.

use std::sync::Arc;

use super::costs::Costs;
use super::ideal::ideal_s;
use super::pool_simulation::{PoolRun, RunPool};
use lb_strategies::pools::machine::{Nanos, SECOND};
use lb_strategies::pools::policy::{Pool, PoolStrategy};
use lb_strategies::virtual_time::links::{Jitter, Links};
use lb_strategies::virtual_time::vcpus::{Vcpus, Worker, all_workers};

/// A pool on a cluster, the same in each run under any policy.
///
/// ```
/// use virtual_cluster::{Scenario, Traces};
/// use lb_strategies::{POOLS, pool::Pool};
/// let scenario = Scenario::new("halves", Pool::new(1500, vec![2]), || {
///     Box::new(Traces::constant(|worker| if worker.number == 0 { 100.0 } else { 50.0 }))
/// });
/// let run = scenario.run(&*POOLS.parse("static")?);
/// assert_eq!(run.makespan(), 15_000_000_000);
/// assert_eq!(scenario.ideal_s(), 10.0);
/// # Ok::<(), lb_strategies::ParseError>(())
/// ```
#[derive(Clone)]
pub struct Scenario {
    /// Name in reports.
    pub name: String,
    /// Number of iterations and workers.
    pub pool: Pool,
    /// The cost of iterations.
    pub costs: Costs,
    /// The network between ranks.
    pub network: Network,
    /// Workers that come late, with the times at which they come.
    pub late: Vec<(Worker, Nanos)>,
    /// Makes the vCPUs of one run, in their initial state.
    pub make_vcpus: MakeVcpus,
}

/// Makes the vCPUs of one run.
pub type MakeVcpus = Arc<dyn Fn() -> Box<dyn Vcpus> + Send + Sync>;

/// Links that are the same for all pairs of ranks.
///
/// ```
/// use virtual_cluster::Network;
/// assert_eq!(Network::default().rtt, 10_000_000, "10 ms there and back");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Time of a round trip, ns.
    pub rtt: Nanos,
    /// Largest additional delay of a message, one way, ns.
    pub jitter: Nanos,
    /// Seed of the jitter.
    pub seed: u64,
}

impl Default for Network {
    fn default() -> Self {
        Self { rtt: SECOND / 100, jitter: 0, seed: 0 }
    }
}

impl Network {
    /// The links of one run.
    pub fn links(self) -> Box<dyn Links> {
        match self.jitter {
            0 => Box::new(self.rtt / 2),
            most => Box::new(Jitter::new(self.rtt / 2, most, self.seed)),
        }
    }
}

impl Scenario {
    /// Equal iterations, a quiet network, and all workers present from start to end. `vcpus` makes the vCPUs of a run.
    pub fn new(
        name: impl Into<String>,
        pool: Pool,
        vcpus: impl Fn() -> Box<dyn Vcpus> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            pool,
            costs: Costs::Equal,
            network: Network::default(),
            late: Vec::new(),
            make_vcpus: Arc::new(vcpus),
        }
    }

    /// The vCPUs of one run, in their initial state.
    pub fn vcpus(&self) -> Box<dyn Vcpus> {
        (self.make_vcpus)()
    }

    /// Runs the pool under `policy`. Stops after a day and a hundred times the ideal time, because the policy hangs.
    pub fn run(&self, policy: &dyn PoolStrategy) -> PoolRun {
        let mut vcpus = self.vcpus();
        let end = (100.0 * self.ideal_s() + 86_400.0) * SECOND as f64;
        let mut run = RunPool::new(&self.pool, policy, &mut *vcpus)
            .links(self.network.links())
            .work(|range| self.costs.work(range))
            .until(end as Nanos);
        for &(worker, at) in &self.late {
            run = run.late(worker, at);
        }
        run.run()
    }

    /// The time of the best schedule if iterations could be divided, s.
    pub fn ideal_s(&self) -> f64 {
        let workers: Vec<(Worker, Nanos)> =
            self.workers().map(|worker| (worker, self.start(worker))).collect();
        ideal_s(&workers, &mut *self.vcpus(), self.costs.work(0..self.pool.iterations))
    }

    /// The time from which on a worker is present.
    pub fn start(&self, worker: Worker) -> Nanos {
        self.late.iter().find(|(late, _)| *late == worker).map_or(0, |&(_, at)| at)
    }

    /// All workers, in order.
    pub fn workers(&self) -> impl Iterator<Item = Worker> + '_ {
        all_workers(&self.pool.workers)
    }
}
