//! What is known of a run.

pub(crate) mod bins;
pub(crate) mod census;
pub(crate) mod efficiency;
pub(crate) mod messages;
pub(crate) mod outcome;
pub(crate) mod spent;
pub(crate) mod spread;
pub(crate) mod taken;
