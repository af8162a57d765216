//! One rank of a pool as a state machine, and what users wrote without its types.

pub(crate) mod packet;
pub(crate) mod work;
