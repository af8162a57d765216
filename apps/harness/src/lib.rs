//! All that programs share: a command line, runs with one strategy after the other under the same disturbances, the check
//! against a serial reference, a table, a plot, numbers.
//!
//! A program is its computation, its reference and its options; `main` is one line. This one is complete:
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
//! A program of chunks has the same parts; its `run` calls [`arrays::run`], and its chunks tell the
//! [`Observers`](arrays::Observers) how far they are, as `stencil2d` does.
//!
//! | module | answers |
//! |---|---|
//! | `program` | the interface of a program to the harness |
//! | `shape`, [`arrays`], [`pools`], [`supersteps`] | what differs between shapes of programs, and how one of each is run |
//! | `start`, `options`, `strategies`, [`cli`], [`output`], `log` | the work of every `main`; options, and the places of results and log lines |
//! | `comparison`, `experiment` | how a program is run once per strategy |
//! | [`disturbance`] | what disturbs it meanwhile, and when |
//! | [`launch`] | which of several processes speaks |
//! | [`memory`], [`machine`] | whether a problem fits |
//! | [`iteration_clock`], `times`, `summary`, `lost_vcpu` | what happened, as times and as numbers; whether others held the vCPUs |
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
