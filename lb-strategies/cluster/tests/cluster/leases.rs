//! Tests `leases` on simulated clusters: runs end near the ideal time, and each index is run exactly once.

mod excess;
mod promises;
