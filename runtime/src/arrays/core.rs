//! Sans-IO state machines: no threads, clocks, sockets or randomness; time and messages are arguments.
//!
//! [`rank::RankCore`] is the whole control plane of one rank. It takes inputs (a packet, an effect of a handler, "I am idle")
//! and answers with [`action::Action`]s for [`exec`](super::exec) to carry out. Production threads and the seeded
//! simulation drive the same code.

pub(crate) mod action;
pub(crate) mod activity;
pub(crate) mod broadcast;
pub(crate) mod broadcast_acks;
pub(crate) mod codec;
pub(crate) mod coordinator;
pub(crate) mod envelope;
pub(crate) mod erased;
pub(crate) mod exit_value;
pub(crate) mod flow;
pub(crate) mod handler;
pub(crate) mod in_flight;
pub(crate) mod location;
pub(crate) mod message_list;
pub(crate) mod migration;
pub(crate) mod migration_bytes;
pub(crate) mod move_list;
pub(crate) mod own;
pub(crate) mod packet;
pub(crate) mod population;
pub(crate) mod quiescence;
pub(crate) mod rank;
mod receivers;
pub(crate) mod reduction;
mod report_aggregation;
pub(crate) mod residents;
pub(crate) mod section;
pub(crate) mod seeds;
pub(crate) mod signature;
pub(crate) mod sync_arrivals;
pub(crate) mod sync_log;
pub(crate) mod tree;
pub(crate) mod undelivered;
