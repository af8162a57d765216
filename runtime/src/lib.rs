//! A runtime for iterative parallel programs on unequal, noisy machines: rented vCPUs of different speed, CPU quotas,
//! and other tenants that come and go.
//!
//! Such a program consists of many more pieces (*chunks*) than there are processors. The runtime measures the CPU time
//! of each chunk, and the speed and the available share of each vCPU. While the program runs, the runtime moves chunks
//! to where they finish soonest.
//!
//! ```
//! use caribou::{Chunk, Config, Ctx, Halo, Halos, Reducer, Target};
//! use serde::{Deserialize, Serialize};
//!
//! /// One strip of a ring-shaped bar, which takes on the heat of its neighbours.
//! #[derive(Serialize, Deserialize)]
//! struct Strip { heat: f64, halos: Halos<f64> }
//!
//! const STRIPS: u32 = 64;
//!
//! impl Chunk for Strip {
//!     type Index = u32;
//!     type Message = Halo<f64>;
//!
//!     fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
//!         let me = ctx.index();
//!         ctx.send((me + 1) % STRIPS, self.halos.halo(0, self.heat));
//!         ctx.send((me + STRIPS - 1) % STRIPS, self.halos.halo(1, self.heat));
//!     }
//!
//!     // A neighbour may be one step ahead; the runtime keeps its message until we catch up.
//!     fn ready(&self, halo: &Halo<f64>) -> bool { self.halos.expects(halo) }
//!
//!     fn receive(&mut self, halo: Halo<f64>, ctx: &mut Ctx<'_, Self>) {
//!         let Some(heats) = self.halos.add(halo) else { return };
//!         self.heat = 0.5 * self.heat + 0.25 * heats.sum::<f64>();
//!         match self.halos.step() {
//!             100 => ctx.contribute(0, Reducer::Max, vec![self.heat], Target::Exit),
//!             _ => self.start(ctx),
//!         }
//!     }
//! }
//!
//! fn main() -> Result<(), caribou::Error> {
//!     let report = caribou::run(Config::default().ranks(2), |setup| {
//!         setup.array(STRIPS, |i| Strip { heat: f64::from(i), halos: Halos::new(2) });
//!     })?;
//!     assert!(report.value::<Vec<f64>>()?[0] < 63.0);
//!     Ok(())
//! }
//! ```
//!
//! By default chunks are balanced while they run, without any call of the program. A program can instead name the
//! points at which chunks may migrate (*syncs*): it calls [`Ctx::at_sync`] where [`Ctx::sync_due`] is true. With
//! [`Config::period`], or `CARIBOU_LB_PERIOD=20`, chunks are balanced at syncs only.
//!
//! [`Grid`] finds the neighbours of a chunk in one, two or three dimensions, periodic or not.
//!
//! For independent iterations, use a pool: see [`pool()`]. For steps on data that can be divided anywhere, write a
//! program in supersteps: see [`supersteps()`].
//!
//! # Words
//!
//! | word | means | elsewhere |
//! |---|---|---|
//! | rank | one address space that holds chunks; a process, or an in-process stand-in | Charm++ PE, MPI rank |
//! | worker | a thread of a rank, pinned to a vCPU where there are enough | PE in an SMP build |
//! | chunk, array, index | migratable state; a collection of chunks; the key of a chunk in it | chare-array element |
//! | seed | a spawned chunk that has not started: any rank may start it | seed (Charm++), GLB task |
//! | message | a value of the message type of an array, sent to a chunk | entry-method call |
//! | window | the time between two measurements of chunks while they run (the default) | LB period of MetaLB |
//! | sync, phase | the point at which chunks may migrate; the time between two syncs, or a window | AtSync, ResumeFromSync |
//! | snapshot, strategy, assignment | the measurements; the policy; the new placement | LDStats, strategy, LBMigrateMsg |
//! | pool, iteration, policy | independent work by index; one index; the rule that hands out ranges | loop, task bag; scheduler |
//! | unit, share, division | a piece of the data; the units of a worker; the split of all units | row, block, distribution |
//! | step, job, part | a superstep; a worker's units in a step; the result of a job | iteration, task, contribution |
//! | copy | the same job on a second worker; the slower worker drops it | replica |
//! | ticks | CPU time x relative vCPU speed: work, independent of where it ran | `t_i * f_p` |
//!
//! # Code map
//!
//! Each shape of program has its folder. `arrays` and `pools` have the user's interface (`api`), protocols without
//! threads or sockets (`core`), and their execution by threads or by a seed (`exec`). `supersteps` is a layer on
//! arrays. Below them, `run` starts the ranks, `transport` moves packets, `trace` records, and `measure` reads the
//! machine. Policies are in the crate `lb_strategies`. `ARCHITECTURE.md` in the repository has the map, the five hops
//! from `send` to `receive`, and the invariants. `docs/architecture` has a page per large mechanism, and
//! `docs/decisions` has the decisions.

mod arrays;
pub mod checkpoint;
pub mod config;
mod error;
mod heap;
mod ids;
mod launch;
pub mod lb;
#[cfg(feature = "mpi")]
mod liveness;
pub mod machine;
mod measure;
pub mod monitor;
mod notice;
mod panics;
pub mod pools;
pub mod random;
pub mod report;
mod run;
pub mod supersteps;
mod text;
mod threads;
pub mod trace;
mod transport;
mod warn;
mod wire;

pub use arrays::api::chunk::{Chunk, Load};
pub use arrays::api::combine::Combine;
pub use arrays::api::ctx::{Array, Ctx, Elsewhere, Target};
pub use arrays::api::grid::{Grid, GridIndex, Neighbour};
pub use arrays::api::halos::{Halo, Halos};
pub use arrays::api::index::{Extent, Index};
pub use arrays::api::reply::ReplyTo;
pub use arrays::api::section::Section;
pub use arrays::api::seed::Seed;
pub use arrays::api::setup::{Placement, Setup};
pub use arrays::api::testing;
pub use arrays::core::collectives::own::Own;
pub use arrays::core::collectives::reduction::{Reducer, Values};
pub use arrays::report::Report;
pub use arrays::run::run;
pub use config::Config;
pub use error::Error;
pub use launch::Launch;
pub use pools::api::pool::Pool;
pub use pools::run::pool;
#[cfg(feature = "mpi")]
pub use run::job::Runtime;
pub use supersteps::run::supersteps;
pub use wire::bulk;

/// Paths of version 0.1, kept so that programs compile. (The compiler does not warn of a deprecated re-export.)
#[doc(hidden)]
mod old_paths {
    pub use crate::config::{BackgroundSource, Pin, Processes, VARIABLES, Variable};
    pub use crate::lb::pool::PoolStrategy;
    pub use crate::lb::supersteps::SuperstepStrategy;
    pub use crate::lb::{Assignment, Background, Rank, Snapshot, Strategy};
    pub use crate::machine::{available_memory, check_room, cpu_quota, pin_to, vcpus};
    pub use crate::pools::{Accumulator, Cancel, Collected, Histogram, Largest, Max, Min, Smallest};
    pub use crate::pools::{PoolOutcome, PoolProgress, PoolReport, PoolWorker};
    pub use crate::random::{Stream, stream};
    pub use crate::report::{Addressee, ClockOffset, RunReport, SyncReport, SyncTotals, Undelivered};
    pub use crate::supersteps::{DivisionReport, Exchange, Job, Parts, SuperstepOutcome, SuperstepReport};
    pub use crate::supersteps::{SuperstepWorker, Supersteps, Then};
}
#[doc(hidden)]
#[deprecated(
    note = "import it from `config`, `lb`, `machine`, `pools`, `random`, `report` or `supersteps`"
)]
pub use old_paths::*;
