//! The control plane of one rank: all protocols between ranks, without threads, clocks, sockets or randomness. Time and
//! messages are arguments, so production threads and the seeded simulation drive the same code.
//!
//! The executor ([`exec`](super::exec)) passes inputs to [`rank::RankCore`]: a packet, an effect of a handler, or that
//! the rank is idle. `RankCore` hands each input to its protocol and returns [`command::Command`]s for the executor.
//!
//! | module | protocol |
//! |---|---|
//! | [`routing`] | finds the rank of each chunk, and counts the messages in flight under each set of routes |
//! | [`sync`] | collects loads at syncs or while chunks run, decides on rank 0, and migrates chunks |
//! | [`collectives`] | reductions, reductions over sections, broadcasts, and the population count that they need |
//! | [`flow`] | flow control: senders wait for receivers, in bytes |
//! | [`termination`] | detects quiescence, and counts the messages that reached no chunk |
//! | [`checkpoint`] | copies all ranks consistently, so that a run can be restarted |
//! | [`lifecycle`] | inserts, spawns and removes chunks, and defines what a handler may do |

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
