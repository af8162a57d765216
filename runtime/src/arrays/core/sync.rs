//! Load balancing: rank 0 collects the costs of chunks, decides, and chunks migrate. Rank 0 gets the
//! costs at a sync, to which all chunks come, or in a window. In a window, ranks report the costs of chunks while these run.
//!
//! | module | part |
//! |---|---|
//! | [`sync_arrivals`] | chunks of one rank come to a sync |
//! | [`report_aggregation`] | their reports go up the tree of ranks |
//! | [`window`] | all ranks measure their chunks, and report |
//! | [`coordinator`] | rank 0 collects the reports, lets the balancer decide, keeps the record ([`sync_log`]) |
//! | [`migration`] | the decision ([`move_list`]) is carried out; the bytes that it moved are counted ([`migration_bytes`]) |

use serde::{Deserialize, Serialize};

use self::coordinator::Coordinator;
use self::migration::{Migrations, Occasion};
use self::migration_bytes::MigrationBytes;
use self::move_list::MoveList;
use self::report_aggregation::{AggregatedReports, NextSync, ReportAggregation};
use self::sync_arrivals::Syncs;
use self::window::{RankSignal, Windows};
use super::collectives::tree::{Convergecast, Tree};
pub(crate) mod coordinator;
pub(crate) mod migration;
pub(crate) mod migration_bytes;
pub(crate) mod move_list;
pub(crate) mod report_aggregation;
pub(crate) mod sync_arrivals;
pub(crate) mod sync_log;
pub(crate) mod window;

/// One rank's part of syncs.
pub(crate) struct SyncProtocol {
    pub(crate) arrivals: Syncs,
    pub(crate) reports: ReportAggregation,
    /// Present where chunks are balanced in windows, and come to no sync.
    pub(crate) windows: Option<Windows>,
    pub(crate) migrations: Migrations,
    /// Ranks that have flushed: this one and its children.
    pub(crate) flushed: Convergecast<MigrationBytes>,
    /// True if `at_sync` waits for a decision.
    pub(crate) blocking: bool,
    /// False while this rank is to have no work.
    pub(crate) is_active: bool,
    /// Rank 0 only.
    pub(crate) coordinator: Option<Coordinator>,
    /// Rank 0 only: the requested number of active ranks, if the request came while all ranks stop for a checkpoint.
    pub(crate) deferred_resize: Option<u32>,
    /// Rank 0 only: the user was told that the run cannot be shrunk.
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
            blocking,
            is_active: true,
            coordinator,
            deferred_resize: None,
            told_of_refusal: false,
        }
    }

    /// True while a sync is being decided: then this rank is not idle, even if its workers are.
    pub(crate) fn is_deciding(&self) -> bool {
        self.coordinator.as_ref().is_some_and(Coordinator::is_deciding)
    }
}

/// A packet of a sync.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum SyncPacket {
    /// Loads and reports of the sender and the ranks below it, and the next sync that they report to. To the parent.
    AggregatedReports(Box<AggregatedReports>, NextSync),
    /// The next sync that the sender and the ranks below it report to has changed. To the parent.
    NextSyncChanged(NextSync),
    /// How busy the sender and the ranks below it are. To the parent.
    Signal(RankSignal),
    /// Makes ranks 0 to `active` - 1 the active ones. To rank 0.
    Resize { active: u32 },
    /// Ranks 0 to `active` - 1 are to have all work from now on. Down the tree.
    Resized { active: u32 },
    /// All ranks are to measure their chunks, for a decision or only to begin a new window. Down the tree.
    OpenWindow { number: u64, decides: bool },
    /// Measurements of the sender and the ranks below it in a window. To the parent.
    WindowReports(Box<AggregatedReports>),
    /// Rank 0's decision, down the tree: the chunks that move. At a sync, all other chunks may resume.
    Decision { occasion: Occasion, moves: MoveList },
    /// The sender and the ranks below it are drained, and have all their incoming chunks. To the parent.
    Flushed(MigrationBytes),
    /// Chunks that have moved may resume. Down the tree.
    CompleteMigration,
}

impl SyncPacket {
    /// A copy for a child in the tree.
    pub(crate) fn copy_to_child(&self) -> Option<SyncPacket> {
        match self {
            &SyncPacket::Resized { active } => Some(SyncPacket::Resized { active }),
            SyncPacket::OpenWindow { number, decides } => {
                Some(SyncPacket::OpenWindow { number: *number, decides: *decides })
            }
            SyncPacket::Decision { occasion, moves } => {
                Some(SyncPacket::Decision { occasion: *occasion, moves: moves.clone() })
            }
            SyncPacket::CompleteMigration => Some(SyncPacket::CompleteMigration),
            _ => None,
        }
    }
}
