//! `leases` on a cluster in virtual time: how close to the ideal, and never an index missing or run twice.

#[path = "leases/excess.rs"]
mod excess;
#[path = "leases/promises.rs"]
mod promises;
