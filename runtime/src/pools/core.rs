//! The data of a pool without threads or clocks: packets, saved work, and the user's functions with their types erased.

pub(crate) mod image;
pub(crate) mod packet;
pub(crate) mod undone;
pub(crate) mod work;
