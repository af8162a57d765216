//! Policies for pools: N independent iterations, no state to move, only ranges of indices.
//!
//! | module | answers |
//! |---|---|
//! | [`policy`] | what a policy is |
//! | [`machine`] | the machine that it makes for a rank, what that promises, and what its driver does |
//! | [`driver`] | drives the machine of a rank, for whoever runs a pool |
//! | [`message`] | what the machines of a pool say to each other, for whoever carries it |
//! | [`range_set`] | which indices |
//! | [`sizer`] | how many iterations a worker takes at once |
//! | [`steps`] | how a worker goes through what it was given |
//! | [`equal`] | `static`: equal shares, the baseline |
//! | [`central`] | a queue at rank 0 that workers ask: the machinery of the next three |
//! | [`master_worker`] | `master-worker`: batches of a fixed size or time from a worker that does nothing else |
//! | [`guided`] | `guided`: each takes its part of the rest |
//! | [`factoring`] | `factoring`: half of the rest in equal chunks, again and again |
//! | [`caa`] | `caa`: equal shares, then a look, then shares or a master |
//! | [`ruper`] | `ruper`: RUPER-LB, quotas from reported speeds on two levels |
//! | [`leases`] | `leases`: ranges on loan, taken back from who is late |
//! | [`auto`] | `auto`: the same, with sizes by what was measured |

pub mod auto;
pub mod caa;
pub mod central;
pub mod driver;
pub mod equal;
pub mod factoring;
pub mod guided;
pub mod leases;
pub mod machine;
pub mod master_worker;
pub mod message;
pub mod policy;
pub mod range_set;
pub mod ruper;
pub mod sizer;
pub mod steps;
pub(crate) mod table;

pub use crate::apportion::{self, apportion};
pub use driver::{Action, Driver, Order};
pub use machine::{Input, Machine, Nanos, Output, PoolRank, SECOND};
pub use message::{Message, Unreadable};
pub use policy::{Pool, PoolStrategy};
pub use range_set::RangeSet;
