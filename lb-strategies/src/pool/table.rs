//! The policies for pools, in order.

use super::{PoolStrategy, auto, caa, equal, factoring, guided, leases, master_worker, ruper};
use crate::entry::Entry;

/// Every policy for pools, simplest first.
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
