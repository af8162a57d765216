//! `ruper` is RUPER-LB: quotas from reported speeds, between the workers of a rank and between ranks.
//!
//! The source is Giménez-Alventosa, Moltó and Segrelles, "RUPER-LB: Load balancing embarrassingly parallel applications
//! in unpredictable cloud environments" ("the paper" here).
//!
//! A worker has a *quota*: the number of iterations that it may execute in all. It reports now and then how many it has
//! done. A *rebalance* of its rank (the paper's checkpoint) divides the remaining iterations among the rank's workers
//! by speed, without stopping them. Rank 0 divides the iterations among the ranks in the same way, by predictions that
//! the ranks report. Near the end, first the quotas of ranks become final, then the quotas of workers. A worker that
//! has reached its final quota leaves.
//!
//! | part of a rank | purpose |
//! |---|---|
//! | `Task` | holds the quotas of its workers, measures their speeds by their reports, and rebalances them |
//! | `Supply` | holds indices, and claims more from rank 0 ahead of need (`Claim`, `Granted`) |
//! | `LocalWorker` | records whether a worker runs or waits |
//! | `RankMonitor` | sends `Report` to rank 0, and gets the quota of its rank (`Assign`) |
//! | `RootMonitor`, on rank 0 instead | divides the iterations among the ranks, and grants indices |
//!
//! # What differs from the paper
//! - Shares are whole numbers that add up. At first, ranks get shares by their numbers of workers. If a rank starts
//!   after others have reported, it gets an equal part of the rest. In the paper, every rank does when it starts.
//! - Monitors do not wait for each other. A worker without indices waits until its rank has some for it.
//! - Each index is run once. A worker takes indices from its rank, up to its quota, and the rank claims them from rank
//!   0. Taken indices are never taken back. So no quota falls below the number taken, and every index is run.
//! - With `counts=fungible`, as in the paper, only the number of iterations matters. If a quota falls below the number
//!   that is done, more iterations are run than the pool has.
//! - The interval between the reports of a rank is constant. With `mpi-adapt=on`, it grows up to four times that while
//!   the speed of the rank is steady (figure 4), by the same rule as the interval of a worker (figure 2).
//! - Rank 0 computes the speed of a rank from two predictions at least `report-floor` apart. If the prediction has not
//!   grown, it multiplies the old speed by the ratio of two averages over the time since the rank's start: now, and at
//!   the earlier prediction. In the paper, it does so only if the prediction has fallen.
//! - The balance between ranks ends for all ranks at once. When a report of any rank shows that the end is near, all
//!   ranks get final quotas in the same step. In the paper, each rank gets its final quota at its own next report.
//! - A process has one task, the pool. The paper's figure 1 has several, each with its own workers.
//! - By default, durations other than `interval` and `chunk` are fractions of `interval`. The paper names some of them,
//!   without values.
//!
//! # Limits
//! The last `t-min` seconds are not balanced: all ranks wait for a worker or rank that becomes slow then. Neither
//! variance nor trend of speeds is used.

mod command;
mod grants;
mod guess_worker;
mod interval;
mod local_workers;
mod message;
mod parameters;
mod rank;
mod rank_monitor;
mod root_monitor;
mod share;
mod supply;
mod task;
mod worker;

use crate::entry::Entry;
use crate::pools::machine::Machine;
use crate::pools::policy::{Pool, PoolStrategy};
use crate::rank::Rank;
use parameters::{Counts, Settings};
use rank::RuperRank;

pub use message::{Reason, RuperMessage};

pub(crate) const ENTRY: Entry<dyn PoolStrategy> = Entry {
    name: "ruper",
    summary: "shares by reported speeds, between workers and between ranks (RUPER-LB)",
    parameters: parameters::PARAMETERS,
    build: |parameters| Ok(Box::new(Ruper { settings: Settings::read(parameters)? })),
};

struct Ruper {
    settings: Settings,
}

impl PoolStrategy for Ruper {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn is_exact(&self) -> bool {
        self.settings.counts == Counts::Indexed
    }

    fn rank(&self, pool: &Pool, rank: Rank) -> Machine {
        Machine::new(RuperRank::new(&self.settings, pool, rank))
    }
}
