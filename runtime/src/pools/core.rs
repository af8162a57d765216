//! One rank of a pool as a state machine, and what users wrote without its types.

pub(crate) mod image;
pub(crate) mod packet;
pub(crate) mod undone;
pub(crate) mod work;
