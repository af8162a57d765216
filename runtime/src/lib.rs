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
//! Each shape of program has its folder: `arrays` and `pools`, with what users write (`api`), its state machines without
//! threads, clocks or sockets (`core`), and its threads, or one thread and a seed (`exec`). Below them `run` starts ranks
//! of any shape, `transport` moves their packets without knowing them, `trace` records, `measure` reads the machine.
//! Policies are in the crate `lb_strategies`, which knows nothing of this one. `ARCHITECTURE.md` in the repository has
//! the map, the five hops from `send` to `receive`, and the invariants.

mod arrays;
mod config;
mod error;
mod ids;
mod launch;
pub mod lb;
#[cfg(feature = "mpi")]
mod liveness;
mod measure;
pub mod monitor;
mod pools;
mod run;
mod text;
mod threads;
pub mod trace;
mod transport;
mod warn;
mod wire;

pub use arrays::api::chunk::{Chunk, Load};
pub use arrays::api::ctx::{Array, Ctx, Section, Target};
pub use arrays::api::index::{Extent, Index};
pub use arrays::api::setup::{Placement, Setup};
pub use arrays::api::testing;
pub use arrays::core::reduction::{Reducer, Values};
pub use arrays::core::undelivered::{Addressee, Undelivered};
pub use arrays::report::Report;
pub use arrays::run::run;
pub use config::{BackgroundSource, Config, Pin, Processes, VARIABLES, Variable};
pub use error::Error;
pub use launch::Launch;
pub use lb_strategies::pool::PoolStrategy;
pub use lb_strategies::{Assignment, Background, Rank, Snapshot, Strategy};
pub use measure::cgroup::{available_memory, cpu_quota};
pub use measure::topology::{allowed_vcpus as vcpus, pin_to};
pub use pools::api::pool::{Accumulator, Cancel, Collected, Pool, PoolOutcome, PoolProgress};
pub use pools::api::stream::{Stream, stream};
pub use pools::report::{PoolReport, PoolWorker};
pub use pools::run::pool;
#[cfg(feature = "mpi")]
pub use run::job::Runtime;
pub use run::report::RunReport;
pub use threads::room::check_room;
pub use trace::{ClockOffset, SyncReport, SyncTotals};
pub use wire::bulk;
