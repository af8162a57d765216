//! What all programs share, from the command line inwards:
//!
//! | module | answers |
//! |---|---|
//! | `program`, `cli`, `options`, `output`, `log` | what every `main` does; what was asked for, and where results and log lines go |
//! | `shape` | which strategies are for programs of which shape |
//! | `launch` | which of several processes speaks |
//! | `memory` | whether a problem fits |
//! | `experiment` | how a program is run once per strategy |
//! | `disturbance` | what disturbs it meanwhile, and when |
//! | `iteration_clock`, `record`, `summary` | what happened, as times and as numbers |
//! | `table`, `plot`, `progress` | what a person sees |
//! | `pooling` | how pools are run once per strategy |

pub mod cli;
pub mod disturbance;
pub mod error;
pub mod experiment;
pub mod iteration_clock;
pub mod launch;
pub mod log;
pub mod machine;
pub mod memory;
pub mod options;
pub mod output;
pub mod plot;
pub mod pooling;
pub mod program;
mod progress;
pub mod record;
mod shape;
pub mod summary;
pub mod table;
