//! Policies for supersteps: units of data that can be divided anew between any two steps, and copied.
//!
//! | module | answers |
//! |---|---|
//! | [`policy`] | what a policy is told, and what it may answer |

pub mod policy;

pub use policy::{Divider, Division, Problem, Step, SuperstepStrategy, Work};
