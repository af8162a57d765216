//! One rank of a pool as a state machine, and what users wrote without its types.

pub(crate) mod rank;
pub(crate) mod work;
