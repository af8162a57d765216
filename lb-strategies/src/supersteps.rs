//! Policies for supersteps: units of data that can be divided anew between any two steps, and copied.
//!
//! | module | answers |
//! |---|---|
//! | [`policy`] | what a policy is told, and what it may answer |
//! | [`division`] | units in proportion to speeds, by their weights |
//! | [`equal`] | `equal`: as much for each, the baseline |

pub mod division;
pub mod equal;
pub mod policy;
pub(crate) mod table;

pub use division::divide;
pub use policy::{Divider, Division, Problem, Step, SuperstepStrategy, Weights, Work};
