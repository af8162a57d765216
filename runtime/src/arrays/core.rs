//! The control plane of one rank, sans IO: no threads, clocks, sockets or randomness; time and messages are arguments.
//!
//! [`rank::RankCore`] takes inputs (a packet, an effect of a handler, "this rank is idle") and hands each to the protocol that
//! it belongs to. It answers with [`command::Command`]s for [`exec`](super::exec) to run. Production threads and the
//! seeded simulation drive the same code.
//!
//! | folder | protocol |
//! |---|---|
//! | [`routing`] | where each chunk is, which messages are in flight under which routes |
//! | [`sync`] | chunks come to a sync, rank 0 decides, chunks migrate |
//! | [`collectives`] | reductions, sections, broadcasts, and the population count they rest on |
//! | [`flow`] | flow control: senders wait for receivers, in bytes |
//! | [`termination`] | quiescence, and the messages that reached no chunk |
//! | [`checkpoint`] | consistent copies of all ranks, by which a run can be restarted |
//! | [`lifecycle`] | chunks from their insertion to their removal, what a handler may do, seeds |

pub(crate) mod checkpoint;
pub(crate) mod codec;
pub(crate) mod collectives;
pub(crate) mod command;
pub(crate) mod flow;
pub(crate) mod lifecycle;
pub(crate) mod packet;
pub(crate) mod rank;
pub(crate) mod routing;
pub(crate) mod sync;
pub(crate) mod termination;
