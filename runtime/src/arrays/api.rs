//! The interface for users: chunks, and the little that they see of the runtime. The only generic code.

pub(crate) mod chunk;
pub(crate) mod combine;
pub(crate) mod ctx;
pub(crate) mod grid;
pub(crate) mod halos;
pub(crate) mod index;
pub(crate) mod keys;
mod parts;
pub(crate) mod reply;
pub(crate) mod section;
pub(crate) mod seed;
pub(crate) mod setup;
pub(crate) mod slot;
pub mod testing;
