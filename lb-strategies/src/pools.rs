//! Policies for pools: N independent iterations, no state to move, only ranges of indices.
//!
//! | module | answers |
//! |---|---|
//! | [`policy`] | the trait of policies |
//! | [`machine`] | the machine that it makes for a rank, with the promises of the machine and of its driver |
//! | [`driver`] | drives the machine of a rank, for runs and simulations |
//! | [`message`] | messages between the machines of a pool, with their type erased |
//! | [`range_set`] | sets of indices |
//! | [`sizer`] | number of iterations that a worker takes at once |
//! | [`steps`] | the steps in which a worker executes its indices |
//! | [`equal`] | `static`: equal shares, the baseline |
//! | [`central`] | a queue at rank 0 that workers ask: the machinery of the next three |
//! | [`master_worker`] | `master-worker`: batches of a fixed size or time from a worker that does nothing else |
//! | [`guided`] | `guided`: each takes its part of the rest |
//! | [`factoring`] | `factoring`: half of the rest in equal chunks, again and again |
//! | [`caa`] | `caa`: equal shares, then a look, then shares or a master |
//! | [`ruper`] | `ruper`: RUPER-LB, quotas from reported speeds on two levels |
//! | [`leases`] | `leases`: ranges on loan, taken back from ranks that are late |
//! | [`auto`] | `auto`: the same, with sizes by measurements |

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
