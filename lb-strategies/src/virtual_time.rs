//! Virtual time: tools of every simulation, of a cluster or of the runtime itself.
//!
//! Deterministic: its only clocks, threads and random numbers are in its input.
//!
//! | module | answers |
//! |---|---|
//! | [`events`] | the queue of events |
//! | [`links`], [`post`] | delays between ranks, and messages in flight |
//! | [`vcpus`] | the speed of each worker, and when it changes |
//! | [`on_off`] | a load that comes and goes at random |
//! | [`splitmix`] | random numbers that are easy to reproduce |

pub mod events;
pub mod links;
pub mod on_off;
pub mod post;
pub mod splitmix;
pub mod vcpus;

pub use events::Events;
pub use links::{Erratic, Jitter, Links, PerPair};
pub use on_off::OnOff;
pub use post::Post;
pub use splitmix::SplitMix64;
pub use vcpus::{Traces, Vcpus, Worker};
