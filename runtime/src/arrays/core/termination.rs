//! Termination: finding out that nothing is left to do, and which messages reached no chunk.

pub(crate) mod quiescence;
pub(crate) mod undelivered;
