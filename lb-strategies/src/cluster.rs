//! A cluster in virtual time: vCPUs of changing speed, links with delays, and programs that run on them.
//!
//! Deterministic: the same cluster and program give the same history to the last event. It knows no clock, thread or
//! random number but those of its input, so that a run of hours on hundreds of vCPUs is a matter of seconds.
//!
//! | module | answers |
//! |---|---|
//! | [`vcpus`] | what each worker can give, and when that changes |
//! | [`series`], [`jumps`], [`hardware_threads`] | vCPUs as written down, drawn at random, or shared by workers that wander |
//! | [`neighbours`], [`hosts`] | what neighbours take, and what measured hosts have left |
//! | [`costs`], [`chunk_costs`] | what iterations cost, and chunks |
//! | [`links`], [`post`] | what lies between ranks, and what is on its way there |
//! | [`events`], `execution` | what is to happen when, and who executes how much until then |
//! | [`run_pool`], [`run_array`] | how long a pool, or an array of chunks, takes there under a policy, and what was lost |
//! | [`ideal`] | how long the best policy would take |
//! | [`scenario`](mod@scenario), [`scenarios`] | all of that together, and the scenarios that have names |
//! | [`array_scenario`](mod@array_scenario), [`array_scenarios`] | the same of arrays |
//! | [`crossbar_cluster`] | the tasks and the cluster of a paper |
//! | [`splitmix`] | random numbers that anybody can repeat |

pub mod array_scenario;
pub mod array_scenarios;
pub mod chunk_costs;
pub mod costs;
pub mod crossbar_cluster;
pub mod events;
mod execution;
pub mod hardware_threads;
pub mod hosts;
pub mod ideal;
pub mod jumps;
pub mod links;
pub mod neighbours;
pub mod post;
pub mod run_array;
pub mod run_pool;
pub mod scenario;
pub mod scenarios;
pub mod series;
pub mod splitmix;
pub mod vcpus;

pub use array_scenario::ArrayScenario;
pub use array_scenarios::{ARRAY_SCENARIOS, ArrayScenarioEntry, array_scenario};
pub use chunk_costs::{ChunkCosts, Grid};
pub use costs::Costs;
pub use events::Events;
pub use hardware_threads::{HardwareThreads, Host};
pub use hosts::on_hosts;
pub use ideal::ideal_s;
pub use jumps::{Jumps, Level};
pub use links::{Erratic, Jitter, Links, PerPair};
pub use neighbours::{Beside, Neighbour};
pub use post::Post;
pub use run_array::{Array, ArrayRun, Executed, RunArray, SyncRun};
pub use run_pool::{PoolRun, RunPool, WorkerRun};
pub use scenario::{MakeVcpus, Network, Scenario};
pub use scenarios::sweeps::{SWEEPS, Sweep};
pub use scenarios::{SCENARIOS, ScenarioEntry, scenario};
pub use series::{PerWorker, Series, Shared};
pub use splitmix::SplitMix64;
pub use vcpus::{Traces, Vcpus, Worker};
