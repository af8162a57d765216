//! Collectives: reductions over arrays and sections, broadcasts, and the count of a population that changes meanwhile.

pub(crate) mod broadcast;
pub(crate) mod exit_value;
pub(crate) mod own;
pub(crate) mod population;
pub(crate) mod reduction;
pub(crate) mod section;
pub(crate) mod tree;
