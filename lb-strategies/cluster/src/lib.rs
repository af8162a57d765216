//! A cluster in virtual time, on which policies are compared: vCPUs of changing speed, links with delays, and programs.
//!
//! It is deterministic: the same cluster and program give the same history, event by event. All clocks, threads and
//! random numbers come from its inputs. A run of hours on hundreds of vCPUs takes seconds.
//!
//! | module | purpose |
//! |---|---|
//! | [`virtual_time`](lb_strategies::virtual_time) | defines speeds of workers, delays between ranks, and the queue of events |
//! | [`series`], [`jumps`], [`hardware_threads`] | define vCPU speeds by a series, at random, or by workers that share cores |
//! | [`neighbours`], [`hosts`], [`slices`] | define the load of neighbours, the free part of measured hosts, and time slices |
//! | [`crowded`] | defines hosts with more workers than vCPUs |
//! | [`overheads`] | defines the costs of messages, syncs, moves and decisions of an array, and the errors of its measurements |
//! | [`costs`], [`chunk_costs`], [`cost_table`], [`recorded_loads`] | define the costs of iterations and chunks |
//! | [`job_times`], [`mod@exchange`] | compute how long workers compute in a step, and how long their parts travel |
//! | `execution` | executes the work of workers between two events |
//! | [`pool_simulation`], [`array_simulation`], [`step_simulation`] | run a pool, an array of chunks or a program in supersteps under a policy |
//! | [`ideal`] | computes the time of the best possible policy |
//! | [`pool_scenario`](mod@pool_scenario), [`array_scenario`](mod@array_scenario), [`step_scenario`](mod@step_scenario) | combine a program, its cluster and its disturbances |
//! | [`pool_scenarios`], [`array_scenarios`] | have the named scenarios |
//! | [`crossbar_cluster`], [`jacobi_cluster`], [`grid_cluster`] | have the programs and clusters of papers |
//!
//! Two workers, one of them three times as fast:
//!
//! ```
//! use virtual_cluster::{RunPool, Traces};
//! use lb_strategies::{POOLS, pool::{Pool, SECOND}};
//! let policy = POOLS.parse("ruper,interval=30,chunk=0.01")?;
//! let mut vcpus = Traces::constant(|worker| if worker.number == 0 { 300.0 } else { 100.0 });
//! let run = RunPool::new(&Pool::new(40_000, vec![2]), &*policy, &mut vcpus).run();
//! assert!(run.is_complete(40_000));
//! assert!(run.makespan() < 101 * SECOND, "equal shares take 200 s");
//! # Ok::<(), lb_strategies::ParseError>(())
//! ```

#![forbid(unsafe_code)]

pub mod array_scenario;
pub mod array_scenarios;
pub mod array_simulation;
pub mod chunk_costs;
pub mod cloud_cluster;
pub mod cost_table;
pub mod costs;
pub mod crossbar_cluster;
pub mod crowded;
pub mod exchange;
mod execution;
pub mod grid_cluster;
pub mod hardware_threads;
pub mod hosts;
pub mod ideal;
pub mod jacobi_cluster;
pub mod job_times;
pub mod jumps;
pub mod neighbours;
pub mod overheads;
pub mod pool_scenario;
pub mod pool_scenarios;
pub mod pool_simulation;
pub mod recorded_loads;
pub mod series;
pub mod slices;
pub mod step_scenario;
pub mod step_simulation;

pub use array_scenario::{ArrayScenario, SendsTo};
pub use array_scenarios::{ARRAY_SCENARIOS, ArrayScenarioEntry, array_scenario};
pub use array_simulation::{Array, ArrayRun, Executed, Home, RunArray, SyncRun};
pub use chunk_costs::{ChunkCosts, Grid};
pub use cost_table::CostTable;
pub use costs::Costs;
pub use crowded::Crowded;
pub use exchange::{Exchange, Part, Wire};
pub use hardware_threads::{HardwareThreads, Host};
pub use hosts::on_hosts;
pub use ideal::ideal_s;
pub use job_times::{Computed, Computing, JobTimes, OnVcpus};
pub use jumps::{Jumps, Level};
pub use lb_strategies::virtual_time::{
    Erratic, Events, Jitter, Links, PerPair, Post, SplitMix64, Traces, Vcpus, Worker,
};
pub use neighbours::{Beside, Neighbour, NeighbourShares, Presence};
pub use overheads::{Bandwidths, CpuCosts, DecisionCost, Noise, Overheads};
pub use pool_scenario::{MakeVcpus, Network, Scenario};
pub use pool_scenarios::sweeps::{SWEEPS, Sweep};
pub use pool_scenarios::{SCENARIOS, ScenarioEntry, scenario};
pub use pool_simulation::{PoolRun, RunPool, WorkerRun};
pub use recorded_loads::{LoadFormat, RecordedLoads, RecordedLoadsError};
pub use series::{PerWorker, Series, Shared};
pub use slices::Sliced;
pub use step_scenario::{StepScenario, Times};
pub use step_simulation::{NewDivision, RunSteps, StepProgram, StepsRun};
