//! The interface for users: chunks, and the part of the runtime that a chunk can use. The only generic code.

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
