//! The cost of a message: tokens that travel around a ring of chunks which do nothing else.
//!
//! `options` says what can be varied and what comes out, `chunk` is the program. Unless asked for, no work is done on
//! purpose: a hop is one `send` and one `receive`, so the time per hop is the cost of the runtime and nothing else. With
//! some (`kernel`) the ring tells what tasks of a given grain cost, beside a busy neighbour above all.

pub mod chunk;
pub mod kernel;
pub mod options;
