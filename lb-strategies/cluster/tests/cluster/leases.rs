//! `leases` on a cluster in virtual time: how close to the ideal, and never an index missing or run twice.

mod excess;
mod promises;
