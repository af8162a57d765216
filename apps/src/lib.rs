//! Programs written against Caribou, each over a serial reference kernel.
//!
//! A program is a folder here: what it computes, its serial reference, its chunks, its options. Around it lies what all
//! programs share, from the command line inwards:
//!
//! | module | answers |
//! |---|---|
//! | `program`, `cli`, `options`, `output`, `log` | what every `main` does; what was asked for, and where results and log lines go |
//! | `shape` | which strategies are for programs of which shape |
//! | `launch` | which of several processes speaks |
//! | `memory` | whether a problem fits |
//! | `experiment`, `director` | how a program is run once per strategy, and what is done to it meanwhile |
//! | `disturbance`, `neighbour`, `quota`, `slow`, `workers` | what disturbs it, whom, and how much could be won back |
//! | `iteration_clock`, `record`, `summary` | what happened, as times and as numbers |
//! | `table`, `plot`, `progress` | what a person sees |
//! | `pooling`, `estimate` | how pools are run once per strategy; sums that merge exactly, values with their errors |
//!
//! Only the chunks and the `run` of a program name the runtime; everything else is tested without it.
#![forbid(unsafe_code)]

pub mod cli;
pub mod crossbar;
mod director;
pub mod disturbance;
pub mod error;
pub mod estimate;
pub mod experiment;
pub mod iteration_clock;
pub mod launch;
pub mod log;
pub mod machine;
pub mod memory;
pub mod montecarlo;
pub mod neighbour;
pub mod options;
pub mod output;
pub mod plot;
pub mod pooling;
pub mod program;
mod progress;
mod quota;
pub mod record;
pub mod ring;
mod shape;
mod slow;
pub mod stencil2d;
pub mod summary;
pub mod table;
mod workers;
