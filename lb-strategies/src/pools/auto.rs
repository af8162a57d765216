//! `auto`: the policy [`leases`](super::leases), with sizes by the measurements of the first ranges.
//!
//! It does not choose between policies, since `leases` loses to none by more than a piece and a few round trips. With
//! each piece and each lease it chooses sizes, from the time per iteration and its coefficient of variation *cv*:
//!
//! | iterations are | pieces | leases in one round |
//! |---|---|---|
//! | even (*cv* < 0.5), shorter than a hundredth of `chunk` | five times `chunk` | 3/4 of the free iterations |
//! | even, longer | `chunk` | 3/4 of the free iterations |
//! | erratic, shorter than a tenth of `chunk` | `chunk` | by the factoring formula |
//! | erratic, longer | single iterations | by the factoring formula |
//!
//! The variation is measured on pieces, as if their iterations were independent. So a neighbour that comes and goes looks
//! like erratic iterations, and makes pieces and leases shorter. That is the right response to it as well.

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
