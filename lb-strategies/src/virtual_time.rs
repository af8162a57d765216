//! Virtual time: what every simulation needs, of a cluster or of the runtime itself.
//!
//! Deterministic: it knows no clock, thread or random number but those of its input.
//!
//! | module | answers |
//! |---|---|
//! | [`events`] | what is to happen when |
//! | [`links`], [`post`] | what lies between ranks, and what is on its way there |
//! | [`vcpus`] | what each worker can give, and when that changes |
//! | [`on_off`] | a load that comes and goes at random |
//! | [`splitmix`] | random numbers that anybody can repeat |

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
