//! Sans-IO state machines: no threads, clocks, sockets or randomness; time and messages are arguments.
//!
//! [`rank::RankCore`] is the whole control plane of one rank. It takes inputs (a packet, an effect of a handler, "I am idle")
//! and answers with [`action::Action`]s for [`exec`](super::exec) to carry out. Production threads and the seeded
//! simulation drive the same code.

pub(crate) mod action;
mod ascent;
mod audience;
pub(crate) mod balance;
pub(crate) mod broadcast;
pub(crate) mod census;
pub(crate) mod codec;
pub(crate) mod collect;
pub(crate) mod coordinator;
pub(crate) mod crossings;
pub(crate) mod envelope;
pub(crate) mod erased;
pub(crate) mod exit_value;
pub(crate) mod freight;
pub(crate) mod handler;
pub(crate) mod in_hand;
pub(crate) mod location;
pub(crate) mod mail;
pub(crate) mod moves;
pub(crate) mod outline;
pub(crate) mod own;
pub(crate) mod packet;
pub(crate) mod pressure;
pub(crate) mod quiescence;
pub(crate) mod rank;
pub(crate) mod reduction;
pub(crate) mod residents;
pub(crate) mod section;
pub(crate) mod seeds;
pub(crate) mod sync_log;
pub(crate) mod tree;
pub(crate) mod undelivered;
pub(crate) mod uptake;
