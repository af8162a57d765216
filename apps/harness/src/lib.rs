//! The harness runs a program once per balancing strategy and compares the runs. It gives all programs the same command
//! line, disturbances, check against a serial reference, table, plot and JSON.
//!
//! A program provides its computation, its serial reference and its options; `main` is one line. A complete program:
//!
//! ```
//! use std::ops::Range;
//! use std::time::Duration;
//!
//! use harness::pools::{self, Pool};
//! use harness::{Conditions, Error, Outcome, Program, RunContext, Total};
//!
//! /// Throws darts at a square, and counts those in the circle.
//! #[derive(clap::Parser)]
//! struct Darts {
//!     /// Darts to throw
//!     #[arg(long, default_value_t = 10_000)]
//!     darts: u64,
//! }
//!
//! fn throw(hits: &mut u64, darts: Range<u64>) {
//!     let place = |random: u64| (random % 1000) as f64 / 1000.0;
//!     let is_hit = |dart: &u64| place(dart * 7919).hypot(place(dart * 104_729)) < 1.0;
//!     *hits += darts.filter(is_hit).count() as u64;
//! }
//!
//! impl Program for Darts {
//!     const NAME: &'static str = "darts";
//!     type Shape = Pool;
//!     type Options = Self;
//!     type Result = u64;
//!
//!     fn new(options: Self, _: Conditions) -> Result<Self, Error> { Ok(options) }
//!     fn total(&self) -> Total { Total { count: self.darts, unit: "darts" } }
//!     fn title(&self) -> String { "a square with a circle".to_owned() }
//!     fn description(&self) -> serde_json::Value { serde_json::json!({ "darts": self.darts }) }
//!
//!     fn run(&self, stage: &RunContext<'_>) -> Result<Outcome<Self>, Error> {
//!         let (hits, report) = pools::run(stage, self.darts, Duration::from_nanos(10), || 0, throw)?;
//!         Ok(Outcome { result: Some(hits), report })
//!     }
//!
//!     fn reference(&self) -> u64 {
//!         let mut hits = 0;
//!         throw(&mut hits, 0..self.darts);
//!         hits
//!     }
//!
//!     fn difference(hits: &u64, reference: &u64) -> Option<String> {
//!         (hits != reference).then(|| format!("{hits} hits instead of {reference}"))
//!     }
//! }
//!
//! let ended = harness::main::<Darts>(["darts", "--check", "--compare", "static,leases"]);
//! assert_eq!(ended, std::process::ExitCode::SUCCESS);
//! ```
//!
//! A program of chunks has the same parts. Its `run` calls [`arrays::run`], and its chunks report their progress to the
//! [`Observers`](arrays::Observers), as in `stencil2d`.
//!
//! | module | purpose |
//! |---|---|
//! | `program` | the trait that every program implements |
//! | `shape`, [`arrays`], [`pools`], [`supersteps`] | what differs between the shapes of programs, and one run of each |
//! | `start`, `options`, `strategies`, [`cli`], [`output`], `log` | what every `main` does; its options, result files and log lines |
//! | `comparison`, `experiment` | one run per strategy, each under the same disturbances |
//! | [`disturbance`] | busy neighbours, CPU quotas and slow ranks |
//! | [`launch`] | which process of a job prints |
//! | [`memory`], [`machine`] | whether a problem fits the memory, and the workers the vCPUs |
//! | [`iteration_clock`], `times`, `summary`, `lost_vcpu` | times of steps and numbers from them; time in which other processes held the vCPUs |
//! | [`table`], [`plot`], `progress` | output for people |

#![forbid(unsafe_code)]

pub mod arrays;
pub mod cli;
mod comparison;
pub mod disturbance;
pub mod error;
pub mod experiment;
pub mod iteration_clock;
pub mod launch;
mod log;
mod lost_vcpu;
pub mod machine;
pub mod memory;
mod options;
pub mod output;
pub mod plot;
pub mod pools;
mod program;
pub mod progress;
mod shape;
mod start;
pub mod strategies;
mod summary;
pub mod supersteps;
pub mod table;
mod times;
mod total;
mod trace;

pub use self::comparison::Comparison;
pub use self::error::Error;
pub use self::options::{CommandLine, Options};
pub use self::program::{Conditions, Outcome, Program, RunContext, Total};
pub use self::shape::{Facts, Shape};
pub use self::start::{main, start};
pub use self::summary::{Run, Settings, Summary};
pub use self::times::Times;
pub use self::trace::Trace;
