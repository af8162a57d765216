//! What a run tells when it is over, whatever its shape: worker times, memory, syncs, messages that nobody read.
//!
//! [`Report`](crate::Report) is that of a run of arrays, [`PoolReport`](crate::pools::PoolReport) that of a pool,
//! [`SuperstepReport`](crate::supersteps::SuperstepReport) that of a program in supersteps. Each holds a [`RunReport`].

pub use crate::arrays::core::termination::undelivered::{Addressee, Undelivered};
pub use crate::run::report::RunReport;
pub use crate::trace::{ClockOffset, SyncReport, SyncTotals};
