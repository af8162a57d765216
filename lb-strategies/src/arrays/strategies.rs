//! Strategies for arrays, one file each.
//!
//! To add a strategy, write a file with a type, its [`Strategy`] and an `ENTRY`, and add the `ENTRY` to `ENTRIES`. The
//! property tests run every entry of this table.

pub mod comm;
pub mod greedy;
pub mod hierarchical;
pub mod none;
pub mod program;
pub mod random;
pub mod refine;
pub mod refine_paper;
pub mod rotate;
pub mod sfc;

use crate::arrays::strategy::Strategy;
use crate::entry::Entry;

/// Every strategy, simplest first.
pub(crate) const ENTRIES: &[Entry<dyn Strategy>] = &[
    none::ENTRY,
    program::ENTRY,
    rotate::ENTRY,
    random::ENTRY,
    greedy::ENTRY,
    refine_paper::ENTRY,
    refine::ENTRY,
    sfc::ENTRY,
    hierarchical::ENTRY,
    comm::ENTRY,
];
