//! Defines the amount of work of a program, such as 200 iterations.

/// An amount of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total {
    /// The count.
    pub count: u64,
    /// The unit, such as "iterations".
    pub unit: &'static str,
}
