//! Load balancing between ranks: rank 0 collects the costs of chunks and decides new ranks for them, and chunks
//! migrate. The costs come from a *sync*, at which all chunks report and may wait, or from a *balancing window*, in
//! which chunks run on.
//!
//! | module | purpose |
//! |---|---|
//! | [`sync_arrivals`] | records which chunks of one rank have come to a sync |
//! | [`report_aggregation`] | merges the reports to a sync on their way up the tree of ranks |
//! | [`window`] | merges the measurements of all ranks in a balancing window |
//! | [`group`] | decides windows within groups of ranks, for strategies on two levels |
//! | [`coordinator`] | runs on rank 0: collects the reports, calls the balancer, keeps the record ([`sync_log`]) |
//! | [`migration`] | carries out the decision ([`move_list`]), and counts the bytes that moved ([`migration_bytes`]) |

use lb_strategies::grouped::Offer;
use lb_strategies::window_policy::Look;
use serde::{Deserialize, Serialize};

use self::coordinator::Coordinator;
use self::group::Group;
use self::migration::{Migrations, Occasion};
use self::migration_bytes::MigrationBytes;
use self::move_list::MoveList;
use self::report_aggregation::{AggregatedReports, NextSync, ReportAggregation};
use self::sync_arrivals::Syncs;
use self::window::{RankSignal, Windows};
use super::collectives::tree::{Convergecast, Tree};
pub(crate) mod coordinator;
pub(crate) mod group;
pub(crate) mod migration;
pub(crate) mod migration_bytes;
pub(crate) mod move_list;
pub(crate) mod report_aggregation;
pub(crate) mod sync_arrivals;
pub(crate) mod sync_log;
pub(crate) mod window;

/// The state of one rank for syncs, windows and migrations.
pub(crate) struct SyncProtocol {
    pub(crate) arrivals: Syncs,
    pub(crate) reports: ReportAggregation,
    /// None if chunks are balanced at syncs.
    pub(crate) windows: Option<Windows>,
    pub(crate) migrations: Migrations,
    /// Collects `Flushed` of this rank and its children.
    pub(crate) flushed: Convergecast<MigrationBytes>,
    /// True while messages between chunks are recorded on this rank.
    pub(crate) records_edges: bool,
    /// True if the strategy may move chunks, so that chunks wait for a decision in `at_sync`.
    pub(crate) blocking: bool,
    /// False while this rank is inactive: it is to have no work.
    pub(crate) is_active: bool,
    /// The first rank of each group only, if windows are decided on two levels.
    pub(crate) group: Option<Group>,
    /// Rank 0 only.
    pub(crate) coordinator: Option<Coordinator>,
    /// Rank 0 only: the requested number of active ranks, if the request came while all ranks stop for a checkpoint.
    pub(crate) deferred_resize: Option<u32>,
    /// Rank 0 only: a warning has been given that the run cannot be shrunk.
    pub(crate) told_of_refusal: bool,
}

impl SyncProtocol {
    pub(crate) fn new(tree: &Tree, blocking: bool, coordinator: Option<Coordinator>) -> SyncProtocol {
        SyncProtocol {
            arrivals: Syncs::default(),
            reports: ReportAggregation::new(tree),
            windows: None,
            migrations: Migrations::new(tree.rank),
            flushed: Convergecast::default(),
            records_edges: false,
            blocking,
            is_active: true,
            group: None,
            coordinator,
            deferred_resize: None,
            told_of_refusal: false,
        }
    }

    /// True while a sync, or the window of a group, is being decided on this rank. Such a rank is not idle, even if its workers are.
    pub(crate) fn is_deciding(&self) -> bool {
        self.coordinator.as_ref().is_some_and(Coordinator::is_deciding)
            || self.group.as_ref().is_some_and(Group::is_deciding)
    }
}

/// A packet of a sync.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum SyncPacket {
    /// Loads and reports of the sender and the ranks below it, and the next sync that they report to. To the parent.
    AggregatedReports(Box<AggregatedReports>, NextSync),
    /// A new [`NextSync`] of the sender and the ranks below it, without reports. To the parent.
    NextSyncChanged(NextSync),
    /// How busy the sender and the ranks below it are. To the parent.
    Signal(RankSignal),
    /// Requests that ranks 0 to `active` - 1 be the active ranks. To rank 0.
    Resize { active: u32 },
    /// Ranks 0 to `active` - 1 are the active ranks from now on. Down the tree.
    ActiveRanks { active: u32 },
    /// Requests measurements of all chunks, for a decision or only to begin a new window. `edges` is true if messages
    /// between chunks are recorded in the new window, `grouped` if groups of ranks decide first. Down the tree.
    OpenWindow { number: u64, look: Look, edges: bool, grouped: bool },
    /// Measurements of the sender and the ranks below it in a window. To the parent.
    WindowReports(Box<AggregatedReports>),
    /// Requests offers of chunks for this many ticks, because the group of the receiver is late. To a first rank.
    AskOffers { ticks: u64 },
    /// Chunks that a late group gives. To rank 0.
    Offers(Vec<Offer>),
    /// The chunks that move, decided by rank 0. At a sync, all other chunks may resume, and messages between chunks are
    /// recorded from then on if `edges` is true. Down the tree.
    Decision { occasion: Occasion, moves: MoveList, edges: bool },
    /// The sender and the ranks below it are drained, and have all their incoming chunks. To the parent.
    Flushed(MigrationBytes),
    /// Chunks that have moved may resume. Has the bytes that all ranks have received. Down the tree.
    CompleteMigration(MigrationBytes),
}

impl SyncPacket {
    pub(crate) fn copy_to_child(&self) -> Option<SyncPacket> {
        match self {
            &SyncPacket::ActiveRanks { active } => Some(SyncPacket::ActiveRanks { active }),
            &SyncPacket::OpenWindow { number, look, edges, grouped } => {
                Some(SyncPacket::OpenWindow { number, look, edges, grouped })
            }
            &SyncPacket::Decision { occasion, ref moves, edges } => {
                Some(SyncPacket::Decision { occasion, moves: moves.clone(), edges })
            }
            SyncPacket::CompleteMigration(bytes) => Some(SyncPacket::CompleteMigration(bytes.clone())),
            _ => None,
        }
    }
}
