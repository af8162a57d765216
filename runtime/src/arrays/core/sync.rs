//! A sync: chunks of all ranks report to rank 0, rank 0 decides, and chunks migrate.
//!
//! | module | part |
//! |---|---|
//! | [`sync_arrivals`] | chunks of one rank come to a sync |
//! | [`report_aggregation`] | their reports go up the tree of ranks |
//! | [`coordinator`] | rank 0 collects the reports, has them balanced, keeps the record ([`sync_log`]) |
//! | [`migration`] | the decision ([`move_list`]) is carried out; what it moved is measured ([`migration_bytes`]) |

pub(crate) mod coordinator;
pub(crate) mod migration;
pub(crate) mod migration_bytes;
pub(crate) mod move_list;
pub(crate) mod report_aggregation;
pub(crate) mod sync_arrivals;
pub(crate) mod sync_log;
