//! `auto`: the policy [`leases`](super::leases), its sizes by what the first ranges showed.
//!
//! Nothing is chosen between policies, since `leases` loses to none by more than a piece and a few round trips. What is
//! chosen, from the time per iteration and its coefficient of variation *cv*, anew with each piece and each lease, is
//!
//! | iterations are | pieces | leases in one round |
//! |---|---|---|
//! | even (*cv* < 0.5), shorter than a hundredth of `chunk` | five times `chunk` | 3/4 of what is free |
//! | even, longer | `chunk` | 3/4 of what is free |
//! | erratic, shorter than a tenth of `chunk` | `chunk` | by the factoring formula |
//! | erratic, longer | single iterations | by the factoring formula |
//!
//! The variation is measured on pieces, as if their iterations were independent. A neighbour that comes and goes thus looks
//! like erratic iterations, and makes pieces and leases shorter: which is the right answer to it as well.

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
