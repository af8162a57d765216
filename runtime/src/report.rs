//! The reports of finished runs of arrays, pools and supersteps: worker times, memory, syncs, undelivered messages.
//!
//! [`Report`](crate::Report) is for arrays, [`PoolReport`](crate::pools::PoolReport) for pools,
//! [`SuperstepReport`](crate::supersteps::SuperstepReport) for programs in supersteps. Each holds a [`RunReport`].

pub use crate::arrays::core::termination::undelivered::{Addressee, Undelivered};
pub use crate::run::report::RunReport;
pub use crate::trace::{ClockOffset, SyncReport, SyncTotals};
