//! `auto` is the policy [`leases`](super::leases) with sizes that it measures on the first ranges.
//!
//! It does not choose between policies, because `leases` is never slower than another policy by more than a piece and a
//! few round trips. A *piece* is what a worker takes at once, a *lease* what a rank gets. Their sizes follow from the
//! time per iteration and its coefficient of variation *cv*:
//!
//! | iterations are | pieces | leases in one round |
//! |---|---|---|
//! | even (*cv* < 0.5), shorter than a hundredth of `chunk` | five times `chunk` | 3/4 of the free iterations |
//! | even, longer | `chunk` | 3/4 of the free iterations |
//! | erratic, shorter than a tenth of `chunk` | `chunk` | by the factoring formula |
//! | erratic, longer | single iterations | by the factoring formula |
//!
//! *cv* is measured on pieces as if their iterations were independent. So a process that comes and goes on a vCPU looks
//! like erratic iterations, and makes pieces and leases shorter. Shorter ones also suit such a process.

use super::equal::CHUNK;
use super::leases::{FIRST, LEASE_MAX, LEASE_MIN, Leases, REPLICATE};
use crate::entry::Entry;
use crate::pools::policy::PoolStrategy;

pub(crate) const ENTRY: Entry<dyn PoolStrategy> = Entry {
    name: "auto",
    summary: "leases with sizes by the measured time of iterations and its variation",
    parameters: &[CHUNK, LEASE_MIN, LEASE_MAX, FIRST, REPLICATE],
    build: |parameters| Ok(Box::new(Leases::measured(ENTRY.name, parameters)?)),
};
