//! Defines what messages, decisions and measurements cost in a simulated array. By default they cost nothing.

use std::sync::Arc;

use lb_strategies::pools::machine::Nanos;

/// What a simulated array pays beside the work of its chunks and the delays of its links.
///
/// ```
/// use virtual_cluster::{DecisionCost, Overheads};
/// let free = Overheads::default();
/// assert_eq!((free.message_cpu, free.bandwidths.message_bytes), (0, 0));
/// assert!(matches!(free.decision, DecisionCost::PerChunk(0)));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Overheads {
    /// The rates at which bytes travel.
    pub bandwidths: Bandwidths,
    /// CPU time of a worker to send, and again to receive, a message of a chunk to a chunk of another rank, ns. It is
    /// part of the measured load of both chunks.
    pub message_cpu: Nanos,
    /// The time from the end of an iteration on all chunks to the begin of the next, if there is a barrier between them:
    /// what a reduction and a broadcast take. By default chunks run ahead as far as their neighbours allow.
    pub barrier: Option<Nanos>,
    /// The time from the last report to the decision.
    pub decision: DecisionCost,
    /// The errors of measurements.
    pub noise: Noise,
}

/// Rates at which bytes travel, and sizes. Each host sends one message at a time to other hosts, and each rank sends one
/// message at a time to ranks of its host.
///
/// ```
/// use virtual_cluster::Bandwidths;
/// let wires = Bandwidths { between_hosts: 1.25e8, ranks_per_host: 4, ..Bandwidths::default() };
/// assert_eq!((wires.host(3), wires.host(4)), (0, 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bandwidths {
    /// Bytes per second that a host sends to other hosts.
    pub between_hosts: f64,
    /// Bytes per second that a rank sends to other ranks of its host.
    pub within_host: f64,
    /// Number of ranks on each host, in the order of the ranks.
    pub ranks_per_host: u32,
    /// Size of a message from chunk to chunk.
    pub message_bytes: u64,
}

impl Default for Bandwidths {
    fn default() -> Self {
        Self { between_hosts: f64::INFINITY, within_host: f64::INFINITY, ranks_per_host: 1, message_bytes: 0 }
    }
}

impl Bandwidths {
    /// The host of a rank.
    pub fn host(&self, rank: u32) -> u32 {
        rank / self.ranks_per_host.max(1)
    }
}

/// The time that a decision takes, if the strategy is asked. Meanwhile workers go on.
#[derive(Clone)]
pub enum DecisionCost {
    /// This time for each chunk, ns.
    PerChunk(Nanos),
    /// The time that the strategy takes by this clock, ns. Then two runs are not the same.
    Measured(Arc<dyn Fn() -> Nanos + Send + Sync>),
}

impl Default for DecisionCost {
    fn default() -> Self {
        Self::PerChunk(0)
    }
}

impl std::fmt::Debug for DecisionCost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::PerChunk(ns) => write!(f, "PerChunk({ns})"),
            Self::Measured(_) => write!(f, "Measured"),
        }
    }
}

/// Normal errors of measured loads of chunks and of measured clocks of workers.
///
/// ```
/// assert_eq!(virtual_cluster::Noise::default().relative_sd, 0.0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Noise {
    /// Standard deviation of an error, as a part of the true value.
    pub relative_sd: f64,
    /// Seed of the errors.
    pub seed: u64,
}
