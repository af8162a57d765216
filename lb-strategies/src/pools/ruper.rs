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
//! ```text
//!   Wants, Timer            Report, Claim                       one rank
//!  -------------> RankMonitor ----------> RootMonitor    Task ------------ Worker ...
//!      Run        + Task <---------- Assign, Granted       \ Supply, LocalWorker ...
//! ```
//!
//! # What differs from the paper
//! - Shares are whole numbers that add up. At first, ranks get shares by their numbers of workers. In the paper, each
//!   rank gets an equal part of the rest when it starts. Here only a rank that starts after others have reported does.
//! - Monitors do not wait for each other. Waiting workers do nothing, and are not polled.
//! - Each index is run once. A quota allows a worker to take indices from the rank, which claims indices from rank 0
//!   ahead of need. Taken indices are never taken back, so no quota falls below the number taken, and nothing is left
//!   over. With `counts=fungible`, as in the paper, only numbers matter. A quota that falls too late then leaves excess
//!   iterations.
//! - The interval between the reports of a rank is constant. With `mpi-adapt=on`, it is longer for a steady speed, as
//!   for workers (figure 4), from `mpi-interval` to four times that.
//! - The speed of a rank is guessed from predictions, and corrected over `report-floor` at least. Averages correct it
//!   also if the rank seems to have stopped, not only if it seems to have gone back.
//! - The balance between ranks ends for all ranks at once. When a report of any rank shows that the end is near, all
//!   ranks get final quotas in the same step. In the paper, each rank gets its final quota at its own next report.
//! - A process has one task. The paper's figure 1 has several, each with its own workers.
//! - Durations other than the interval between rebalances are fractions of it. The paper does not define them.
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
    summary: "quotas by reported speeds, between workers and between ranks (RUPER-LB)",
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
