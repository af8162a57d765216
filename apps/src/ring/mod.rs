//! What a message costs: tokens that travel around a ring of chunks which do nothing else.
//!
//! `options` says what can be varied and what comes out, `chunk` is the program. No work is done on purpose: a hop is one
//! `send` and one `receive`, so the time per hop is the cost of the runtime and nothing else.

pub mod chunk;
pub mod options;
