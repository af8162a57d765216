//! Defines what messages, syncs, migrations, decisions and measurements cost in a simulated array. By default they cost
//! nothing.

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
    /// CPU time that the runtime itself takes from workers.
    pub cpu: CpuCosts,
    /// Time for which an idle worker spins, ns. Then it sleeps.
    pub spin: Nanos,
    /// Time that a sleeping worker takes to wake up when it gets something to do, ns. It needs a vCPU for that, and the
    /// time counts as its CPU time.
    pub wake: Nanos,
}

impl Overheads {
    /// True if iterations of chunks cost more than the work of the chunks.
    pub(crate) fn pays_per_iteration(&self) -> bool {
        let CpuCosts { iteration, local_message, message_byte, reload_byte, .. } = self.cpu;
        self.message_cpu > 0
            || [iteration, local_message, message_byte, reload_byte].iter().any(|&cost| cost > 0.0)
    }
}

/// CPU time that the runtime takes from the workers of a simulated array, ns. A vCPU beside a neighbour takes longer for
/// it, as for the work of chunks.
///
/// Costs of iterations, messages and reloads are part of the measured load of a chunk, as in the runtime. All others are
/// *chores*: a free worker of the rank does them before it takes a ready chunk, one after another, and packets wait for
/// that. The messages between ranks also cost [`Overheads::message_cpu`] each.
///
/// ```
/// use virtual_cluster::{CpuCosts, Overheads};
/// assert_eq!(Overheads::default().cpu, CpuCosts::default(), "nothing");
/// let costs = CpuCosts { pack_chunk: 1000.0, pack_byte: 0.25, ..CpuCosts::default() };
/// assert_eq!(costs.pack(4000), 2000.0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuCosts {
    /// To find a ready chunk and to run it, for each iteration.
    pub iteration: f64,
    /// To send and to receive a message from one chunk to another on the same rank, both together. The sender pays.
    pub local_message: f64,
    /// To send, and again to receive, a byte of a message to another rank ([`Bandwidths::message_bytes`]).
    pub message_byte: f64,
    /// A rank's part in a sync or window, whatever the number of its chunks: its sample, and its report.
    pub report: f64,
    /// To report a chunk at a sync or window, on the rank of the chunk.
    pub report_chunk: f64,
    /// To let a chunk come to a sync and to resume it, in addition.
    pub sync_chunk: f64,
    /// To collect the report of a chunk and to predict its load, on rank 0, before the strategy is asked.
    pub collect_chunk: f64,
    /// To handle a packet, on the rank that gets it: of a sync, window or migration, or of all messages between chunks
    /// that come from one rank within a microsecond.
    pub packet: f64,
    /// To take a chunk out of its rank and send it, whatever its size.
    pub pack_chunk: f64,
    /// The same for each byte of its state.
    pub pack_byte: f64,
    /// To receive a chunk and to put it into its new rank, whatever its size.
    pub unpack_chunk: f64,
    /// The same for each byte of its state.
    pub unpack_byte: f64,
    /// To load a byte of the state into the caches of another vCPU. The first iteration after a move pays.
    pub reload_byte: f64,
}

impl CpuCosts {
    /// CPU time to send a chunk with a state of `bytes` bytes, ns.
    pub fn pack(&self, bytes: u64) -> f64 {
        self.pack_chunk + self.pack_byte * bytes as f64
    }

    /// CPU time to receive it, ns.
    pub fn unpack(&self, bytes: u64) -> f64 {
        self.unpack_chunk + self.unpack_byte * bytes as f64
    }
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

/// The time that a decision takes, if the strategy is asked. Meanwhile workers go on, except for the short decisions of
/// [`Linear`](Self::Linear).
#[derive(Clone)]
pub enum DecisionCost {
    /// This time for each chunk, ns.
    PerChunk(Nanos),
    /// Times that add up, ns. As in the runtime, a worker of rank 0 takes a decision of less than 1 ms itself, as a chore;
    /// a thread takes a longer one.
    Linear {
        /// Time of any decision.
        fixed: f64,
        /// Time for each chunk.
        per_chunk: f64,
        /// Time for each rank.
        per_rank: f64,
    },
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
            Self::Linear { fixed, per_chunk, per_rank } => {
                write!(f, "Linear({fixed}, {per_chunk}, {per_rank})")
            }
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
