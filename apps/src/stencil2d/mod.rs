//! Heat on a plate: a five-point stencil in chunks, the first program of every load balancing paper.
//!
//! `plate` describes the problem and its division, `kernel` does the work of one chunk, `serial` is the reference it must
//! equal bit for bit, `hand_blocked` the same blocks without a runtime, `options` its command line. `chunk` is the program
//! as the runtime sees it, `run` as the harness does.

pub mod chunk;
pub mod hand_blocked;
pub mod kernel;
pub mod options;
pub mod plate;
mod rows;
pub mod run;
pub mod serial;
