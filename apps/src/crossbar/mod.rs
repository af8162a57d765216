//! A crossbar switch under many loads: a pool of a few thousand independent simulations, each of milliseconds to seconds.
//!
//! It is the workload by which the combined adaptive algorithm (CAA) was measured: 3072 simulations of a switch with 16
//! ports and buffers at its crosspoints. `traffic` says what arrives, `scheduler` what leaves first, `switch` simulates
//! both; `grid` says which simulations there are, `tally` counts exactly what they find, `results` prints it. `options`
//! is the command line, `run` the program as the harness sees it.

pub mod grid;
pub mod options;
pub mod results;
pub mod run;
pub mod scheduler;
pub mod switch;
pub mod tally;
pub mod traffic;
#[cfg(test)]
mod validation;
