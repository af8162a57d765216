//! One file a strategy; [`STRATEGIES`](crate::STRATEGIES) lists them.
//!
//! To add one: a file here with a type, its [`Strategy`](crate::Strategy) and an `ENTRY`, and a line in the
//! table. The property tests walk the table, so the newcomer is tested by being listed.

pub mod greedy;
pub mod greedy_refine;
pub mod none;
pub mod random;
pub mod refine;
pub mod refine_best;
pub mod refine_paper;
pub mod rotate;
