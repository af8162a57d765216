//! The table of the policies for pools.

use crate::entry::Entry;
use crate::pools::policy::PoolStrategy;
use crate::pools::{auto, caa, equal, factoring, guided, leases, master_worker, ruper};

/// All policies for pools, simplest first.
pub(crate) const ENTRIES: &[Entry<dyn PoolStrategy>] = &[
    equal::ENTRY,
    guided::ENTRY,
    factoring::ENTRY,
    master_worker::ENTRY,
    caa::ENTRY,
    ruper::ENTRY,
    leases::ENTRY,
    auto::ENTRY,
];
