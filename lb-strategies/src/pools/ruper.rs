//! `ruper`: RUPER-LB, quotas from reported speeds, between workers and between ranks.
//!
//! After Giménez-Alventosa, Moltó and Segrelles, "RUPER-LB: Load balancing embarrassingly parallel applications in
//! unpredictable cloud environments"; "the paper" here.
//!
//! A worker has a *quota*: how many iterations it may execute in all. It reports now and then how many it has done. A
//! *rebalance* of its rank (the paper's checkpoint) shares what is left among the rank's workers by their speeds, without anybody
//! stopping. In the
//! same way rank 0 shares the iterations among the ranks, by predictions that these report. When the end is near, first
//! the quotas of the ranks stay, then those of the workers, and who has reached its quota leaves.
//!
//! ```text
//!   Wants, Timer            Report, Claim                       one rank
//!  -------------> RankMonitor ----------> RootMonitor    Task ------------ Worker ...
//!      Run        + Task <---------- Assign, Granted       \ Supply, OwnWorker ...
//! ```
//!
//! # What differs from the paper
//! - Shares are whole numbers that add up. At first ranks share by their numbers of workers; in the paper each gets an
//!   equal part of what is left when it starts, which is what one gets here that starts after others have reported.
//! - Monitors do not wait for each other. Workers that wait do nothing, and are not polled.
//! - Each index is run once: a quota is a licence to take indices from the rank, which claims them from rank 0 ahead of
//!   need. What has been taken is never taken back, so no quota falls below it, of a worker or of a rank; therefore
//!   nothing is left over. `counts=fungible` is as in the paper: only numbers matter, and a quota that falls too late
//!   leaves iterations done that nobody asked for.
//! - The interval between the reports of a rank is constant. With `mpi-adapt=on` it follows how steady the rank's speed
//!   is, as that of workers does (figure 4), between `mpi-interval` and four times that.
//! - The speed of a rank, which is guessed from predictions, is corrected over `report-floor` at least; and by its averages
//!   also where it seems to have stood still, not only where it seems to have gone back.
//! - The balance between ranks ends early and for all: whoever's report shows that the end is near, everybody hears it in
//!   the same step. In the paper a rank hears it when it reports itself, and may be given something else before.
//! - A process has one task. The paper's figure 1 has several, each with workers of its own.
//! - Durations other than that between rebalances are fractions of it, of which the paper gives none.
//!
//! # What it does not do
//! It does not balance the last `t-min`: a worker or rank that becomes slow there makes all wait. It knows no variance and
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
