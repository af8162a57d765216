//! A runtime for iterative parallel programs on machines that are not equal and not quiet: rented vCPUs of different
//! speed, neighbours that come and go, caps imposed by the host.
//!
//! Such a program runs as many more pieces (*chunks*) than there are processors. The runtime measures what each chunk
//! really costs (CPU time) and what each processor can really give (speed, share of its vCPU), and moves chunks, while the
//! program runs, to where they finish soonest.
//!
//! ```
//! use caribou::{Chunk, Config, Ctx};
//! use serde::{Deserialize, Serialize};
//!
//! /// One strip of a bar, cooled by its neighbours.
//! #[derive(Serialize, Deserialize)]
//! struct Strip { step: u64, heat: f64, heard: Vec<f64> }
//!
//! #[derive(Serialize, Deserialize)]
//! enum Message { Halo { step: u64, heat: f64 } }
//!
//! const STRIPS: u32 = 64;
//!
//! impl Chunk for Strip {
//!     type Index = u32;
//!     type Message = Message;
//!
//!     fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
//!         let me = ctx.index();
//!         for neighbour in [(me + 1) % STRIPS, (me + STRIPS - 1) % STRIPS] {
//!             ctx.send(neighbour, Message::Halo { step: self.step, heat: self.heat });
//!         }
//!     }
//!
//!     // A neighbour may be one step ahead; the runtime keeps its message until we catch up.
//!     fn ready(&self, Message::Halo { step, .. }: &Message) -> bool { *step == self.step }
//!
//!     fn receive(&mut self, Message::Halo { heat, .. }: Message, ctx: &mut Ctx<'_, Self>) {
//!         self.heard.push(heat);
//!         if self.heard.len() < 2 { return; }
//!         self.heat = 0.5 * self.heat + 0.25 * self.heard.drain(..).sum::<f64>();
//!         self.step += 1;
//!         if self.step == 100 { return if ctx.index() == 0 { ctx.exit() }; }
//!         if ctx.sync_due(self.step) { ctx.at_sync() } else { self.start(ctx) }
//!     }
//! }
//!
//! fn main() -> Result<(), caribou::Error> {
//!     caribou::run(Config::default().ranks(2), |setup| {
//!         setup.array(STRIPS, |i| Strip { step: 0, heat: f64::from(i), heard: Vec::new() });
//!     })?;
//!     Ok(())
//! }
//! ```
//!
//! Iterations that need nothing of each other are a pool, and no chunks: see [`pool()`].
//!
//! # Words
//!
//! | word | means | elsewhere |
//! |---|---|---|
//! | rank | one address space that holds chunks; a process, or an in-process stand-in | Charm++ PE, MPI rank |
//! | worker | a thread of a rank, pinned to a vCPU | PE in an SMP build |
//! | chunk, array, index | migratable state, its collection, its name in it | chare-array element |
//! | message | a value of the one typed enum of an array | entry-method call |
//! | sync, phase | `at_sync` ... `resume`; the interval between two syncs | AtSync, ResumeFromSync |
//! | snapshot, strategy, assignment | what was measured -> policy -> the new placement | LDStats, strategy, LBMigrateMsg |
//! | pool, iteration, policy | independent work by index; what hands out ranges of it | loop, task bag; scheduler |
//! | ticks | CPU time x relative vCPU speed: work, independent of where it ran | `t_i * f_p` |
//!
//! # What is where
//!
//! `api` is what users write and the only generic code; `core` is the control plane of a rank, without threads, clocks or
//! sockets; `exec` gives it threads and clocks, or one thread and a seed; `measure` reads the machine; `transport` moves
//! packets. Policies are in the crate `lb_strategies`, which knows nothing of this one. `ARCHITECTURE.md` in the
//! repository has the map, the five hops from `send` to `receive`, and the invariants.

mod api;
mod config;
mod core;
mod error;
mod exec;
mod ids;
#[cfg(feature = "mpi")]
mod job;
mod launch;
pub mod lb;
#[cfg(feature = "mpi")]
mod liveness;
mod measure;
pub mod monitor;
mod report;
mod run;
pub mod trace;
mod transport;
mod warn;
mod wire;

pub use api::chunk::{Chunk, Load};
pub use api::ctx::{Array, Ctx, Section, Target};
pub use api::index::{Extent, Index};
pub use api::pool::{Accumulator, Cancel, Pool, PoolOutcome, PoolProgress};
pub use api::setup::{Placement, Setup};
pub use api::stream::{Stream, stream};
pub use api::testing;
pub use config::{BackgroundSource, Config, Pin, Processes, VARIABLES, Variable};
pub use core::reduction::{Reducer, Values};
pub use error::Error;
#[cfg(feature = "mpi")]
pub use job::Runtime;
pub use launch::Launch;
pub use lb_strategies::pool::PoolStrategy;
pub use lb_strategies::{Assignment, Background, Rank, Snapshot, Strategy};
pub use measure::cgroup::{available_memory, cpu_quota};
pub use measure::topology::{allowed_vcpus as vcpus, pin_to};
pub use report::{
    Addressee, ClockOffset, PoolReport, PoolWorker, Report, SyncReport, SyncTotals, Undelivered,
};
pub use run::pool::pool;
pub use run::run;
pub use wire::bulk;
