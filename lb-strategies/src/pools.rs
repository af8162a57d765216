//! Policies for pools: N independent iterations without state. A policy decides which worker executes which iterations.
//!
//! | module | purpose |
//! |---|---|
//! | [`policy`], [`machine`], [`message`] | the trait of a policy, its state machine on one rank, and the messages between ranks |
//! | [`driver`] | runs the machine of a rank, in runs and simulations |
//! | [`range_set`], [`sizer`], [`steps`] | sets of iterations, and how many of them a worker takes and executes at once |
//! | [`equal`] | `static`: equal parts, with which other policies are compared |
//! | [`central`] | a queue at rank 0, on which the next three policies are built |
//! | [`master_worker`] | `master-worker`: one worker only hands out batches of a fixed size or time |
//! | [`guided`] | `guided`: each worker takes its part of the remaining iterations |
//! | [`factoring`] | `factoring`: half of the remaining iterations in equal chunks, repeatedly |
//! | [`caa`] | `caa`: equal parts, then a comparison of speeds, then new parts or a master |
//! | [`ruper`] | `ruper`: RUPER-LB, quotas from reported speeds on two levels |
//! | [`leases`] | `leases`: ranges on loan, taken back from ranks that are late |
//! | [`auto`] | `auto`: `leases` with sizes from measurements |

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
