//! Computes how heat spreads over a plate: a five-point stencil in chunks, the usual first program of load balancing
//! papers. The serial reference has the same bits. `hand_blocked` computes the same blocks without a runtime.

pub mod chunk;
pub mod hand_blocked;
pub mod kernel;
pub mod options;
pub mod plate;
mod rows;
pub mod run;
pub mod serial;
