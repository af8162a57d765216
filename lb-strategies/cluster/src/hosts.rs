//! Puts ranks on hosts with measured speeds. Each host has a series of shares, and each rank is on one host.

use super::series::{PerWorker, Series};

/// The share of each worker if ranks with these numbers of workers are put on `hosts` in order. After the last host,
/// the first follows again. All workers of a rank have the share of their host.
///
/// A share is a factor of the speed: 1 for a host of nominal speed. It may be above 1.
///
/// # Panics
/// If there is no host.
///
/// ```
/// use lb_strategies::Rank;
/// use virtual_cluster::{Series, Worker, on_hosts};
/// let hosts = [Series::constant(1.0), Series::constant(0.8).then(300.0, 0.6)];
/// let shares = on_hosts(&[1, 1, 1], &hosts);
/// assert_eq!(shares.of(Worker { rank: Rank(1), number: 0 }).at(0).0, 0.8);
/// assert_eq!(shares.of(Worker { rank: Rank(2), number: 0 }).at(0).0, 1.0);
/// ```
pub fn on_hosts(workers: &[u32], hosts: &[Series]) -> PerWorker {
    PerWorker::shared(workers, hosts, |worker| worker.rank.index() % hosts.len())
}
