//! One rank of a pool as a state machine, and the user's functions with their types erased.

pub(crate) mod image;
pub(crate) mod packet;
pub(crate) mod undone;
pub(crate) mod work;
