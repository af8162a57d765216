//! `ruper`: RUPER-LB, quotas from reported speeds, between workers and between ranks.
//!
//! After Giménez-Alventosa, Moltó and Segrelles, "RUPER-LB: Load balancing embarrassingly parallel applications in
//! unpredictable cloud environments"; "the paper" here.
//!
//! A worker has a *quota*: the number of iterations it may execute in all. It reports now and then how many it has done.
//! A *rebalance* of its rank (the paper's checkpoint) shares the rest among the rank's workers by their speeds. No worker
//! stops for it. In the same way rank 0 shares the iterations among the ranks, by predictions that these report. When the
//! end is near, first the quotas of the ranks become final, then the quotas of the workers. A worker that has reached its
//! final quota leaves.
//!
//! ```text
//!   Wants, Timer            Report, Claim                       one rank
//!  -------------> RankMonitor ----------> RootMonitor    Task ------------ Worker ...
//!      Run        + Task <---------- Assign, Granted       \ Supply, LocalWorker ...
//! ```
//!
//! # What differs from the paper
//! - Shares are whole numbers that add up. At first ranks share by their numbers of workers. In the paper each gets an
//!   equal part of the rest when it starts. Here only a rank that starts after others have reported gets that.
//! - Monitors do not wait for each other. Workers that wait do nothing, and are not polled.
//! - Each index is run once: a quota is a licence to take indices from the rank, which claims them from rank 0 ahead of
//!   need. Taken indices are never taken back. So no quota, of a worker or of a rank, falls below the number taken, and
//!   nothing is left over. `counts=fungible` is as in the paper: only numbers matter. Then a quota that falls too late
//!   leaves excess iterations executed.
//! - The interval between the reports of a rank is constant. With `mpi-adapt=on` it follows the steadiness of the rank's
//!   speed, as for workers (figure 4), between `mpi-interval` and four times that.
//! - The speed of a rank is guessed from predictions. It is corrected over `report-floor` at least. Averages correct it
//!   also if the rank seems to have stood still, not only if it seems to have gone back.
//! - The balance between ranks ends early and for all. When a report of any rank shows that the end is near, all ranks
//!   are told in the same step. In the paper a rank is told when it reports itself, and may be given a new quota before.
//! - A process has one task. The paper's figure 1 has several, each with workers of its own.
//! - Durations other than the interval between rebalances are fractions of it; the paper gives none.
//!
//! # Limits
//! It does not balance the last `t-min`: a worker or rank that becomes slow there makes all wait. It uses no variance and
//! no trend.

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
