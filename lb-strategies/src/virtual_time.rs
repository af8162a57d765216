//! Virtual time: the tools of every simulation, of a cluster or of the runtime itself. They are deterministic: clocks,
//! threads and random numbers come from their inputs only.
//!
//! | module | purpose |
//! |---|---|
//! | [`events`] | queues events by their times |
//! | [`links`], [`post`] | define delays between ranks, and carry messages |
//! | [`vcpus`] | defines the speed of each worker over time |
//! | [`on_off`] | generates a load that comes and goes at random |
//! | [`splitmix`] | generates random numbers that are easy to reproduce |

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
