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
//! *cv* is measured on pieces as if their iterations were independent. So a neighbour that comes and goes looks like
//! erratic iterations, and makes pieces and leases shorter. Shorter pieces and leases also suit such a neighbour.

use super::equal::CHUNK;
use super::leases::{FIRST, LEASE_MAX, LEASE_MIN, Leases, REPLICATE};
use crate::entry::Entry;
use crate::pools::policy::PoolStrategy;

pub(crate) const ENTRY: Entry<dyn PoolStrategy> = Entry {
    name: "auto",
    summary: "leases whose sizes follow the cost and variation of the iterations",
    parameters: &[CHUNK, LEASE_MIN, LEASE_MAX, FIRST, REPLICATE],
    build: |parameters| Ok(Box::new(Leases::measured(ENTRY.name, parameters)?)),
};
