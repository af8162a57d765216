//! `leases` lends iterations to ranks, and takes them back from late ranks. It is the default policy for pools.
//!
//! The *root*, on rank 0, has the free ranges. It lends them to ranks as *leases*, large ones first and ever smaller
//! ones towards the end (factoring). A rank asks for the next lease before the last one is used up. Its workers take
//! *pieces* of a tenth of a second, and smaller pieces at the end. When the root has nothing left, a rank that has more
//! than it can run in time gives back the tail. So at any speeds, no worker waits for long while a rank has iterations
//! that were not begun. A worker that has stopped holds back one piece.
//!
//! ```text
//!            Want, Progress                 Lease
//!  rank -----------------------> root -----------------------> rank
//!       <-----------------------      <-----------------------
//!            Steal, Stop                   Stolen, Bye
//! ```
//!
//! Unlike in the RUPER-LB paper, there are no quotas and no scheduled reports, because nothing is decided before it
//! must be. The root and the rank side of rank 0 exchange no messages.
#![doc = ""]
//! | module | purpose |
//! |---|---|
//! | [`range_pool`], [`pace`] | decide which piece a worker takes, and how long pieces are |
//! | [`speed`] | estimates the speed of a worker |
//! | `rank`, `root_link` | decide when a rank asks for a lease or reports to the root |
//! | `root`, `peers`, [`holdings`] | decide which rank gets which ranges, and record the ranges of each rank |
//! | [`size`] | computes the size of a lease |
//! | `steal` | chooses the ranks that give ranges back |
//! | `tail_replication`, `replica_broker` | let a second worker execute a late piece, and decide which result counts |
//! | [`message`] | defines the messages |

pub mod holdings;
pub mod message;
pub mod pace;
mod peers;
pub mod range_pool;
mod rank;
mod replica_broker;
mod root;
mod root_link;
pub mod size;
pub mod speed;
mod steal;
mod tail_replication;

pub use holdings::Holdings;
pub use message::{LeaseMessage, LeaseStatus, Order, Report, ReportKind, Thieves};
pub use pace::Pace;
pub use range_pool::RangePool;
pub use size::Batch;
pub use speed::SpeedEstimator;

use message::Output;
use rank::{LeaseRank, Replication};
use root::{LeaseRoot, Orders, RootSettings};
use size::Bounds;

use super::equal::{CHUNK, chunk};
use crate::entry::Entry;
use crate::parameters::{Parameter, Parameters};
use crate::parse_error::ParseError;
use crate::pools::machine::{Input, Machine, Nanos, PoolRank, SECOND};
use crate::pools::policy::{Pool, PoolStrategy};
use crate::rank::Rank;

const BETA: Parameter = Parameter {
    name: "beta",
    default: "0.5",
    meaning: "part of the free iterations that the ranks get in one round; 0: by the variation of the iterations",
};
pub(crate) const LEASE_MIN: Parameter = Parameter {
    name: "lease-min",
    default: "1",
    meaning: "seconds of work in the shortest lease; at least four round trips",
};
pub(crate) const LEASE_MAX: Parameter =
    Parameter { name: "lease-max", default: "300", meaning: "seconds of work in the longest lease" };
pub(crate) const FIRST: Parameter = Parameter {
    name: "first",
    default: "0.02",
    meaning: "part of its fair share that a rank gets before its speed is known",
};

pub(crate) const REPLICATE: Parameter = Parameter {
    name: "replicate",
    default: "off",
    meaning: "on: at the end waiting workers execute copies of late pieces, so iterations must have no side effects; the run still waits for the late workers",
};

pub(crate) const ENTRY: Entry<dyn PoolStrategy> = Entry {
    name: "leases",
    summary: "ranks get ranges of iterations, their workers pieces on demand; late ranks give back the rest",
    parameters: &[CHUNK, BETA, LEASE_MIN, LEASE_MAX, FIRST, REPLICATE],
    build: |parameters| {
        let beta = parameters.number("beta", 0.0..=1.0)?;
        let batch = if beta > 0.0 { Batch::Part(beta) } else { Batch::Factoring };
        Ok(Box::new(Leases::read(ENTRY.name, parameters, batch, Pace::Fixed)?))
    },
};

/// The policies `leases` and `auto`, which differ in what they measure.
pub(crate) struct Leases {
    name: &'static str,
    chunk: Nanos,
    pace: Pace,
    copies: Replication,
    root: RootSettings,
}

impl Leases {
    /// The variant `auto`, with measured sizes.
    pub(crate) fn measured(name: &'static str, parameters: &Parameters) -> Result<Self, ParseError> {
        Self::read(name, parameters, Batch::Measured, Pace::Measured)
    }

    fn read(
        name: &'static str,
        parameters: &Parameters,
        batch: Batch,
        pace: Pace,
    ) -> Result<Self, ParseError> {
        let time = |key| -> Result<Nanos, ParseError> {
            Ok((parameters.number(key, 0.0..=1e6)? * SECOND as f64) as Nanos)
        };
        let bounds = Bounds { min: time("lease-min")?, max: time("lease-max")? };
        let (first, chunk) = (parameters.number("first", 0.0..=1.0)?, chunk(parameters)?);
        let root = RootSettings { batch, bounds, first, chunk };
        let copies = if parameters.switch("replicate")? { Replication::NotYet } else { Replication::Never };
        Ok(Self { name, chunk, pace, copies, root })
    }
}

impl PoolStrategy for Leases {
    fn name(&self) -> &'static str {
        self.name
    }

    fn resizes(&self) -> bool {
        true
    }

    fn rank(&self, pool: &Pool, rank: Rank) -> Machine {
        let workers = pool.workers_of(rank);
        let ranges = RangePool::new(workers, self.chunk, pool.cost_hint).with_pace(self.pace);
        let alone = pool.ranks() == 1;
        let root = || LeaseRoot::new(self.root, pool.iterations, &pool.workers);
        Machine::new(LeasesRank {
            rank: LeaseRank::new(rank, ranges, workers, self.chunk, alone, self.copies),
            root: (rank == Rank(0)).then(root),
            closed: false,
        })
    }
}

/// The machine of a rank. On rank 0 it has the root, too.
struct LeasesRank {
    rank: LeaseRank,
    root: Option<LeaseRoot>,
    closed: bool,
}

impl PoolRank for LeasesRank {
    type Message = LeaseMessage;

    fn step(&mut self, now: Nanos, input: Input<LeaseMessage>, out: &mut Vec<Output>) {
        if self.closed {
            return;
        }
        let mut orders = Orders::new();
        match (input, &mut self.root) {
            (Input::Begin, Some(root)) => root.begin(now, &mut orders),
            (Input::Wants { worker }, _) => self.rank.wants(now, worker, out),
            (Input::Timer, _) => self.rank.timer(now, out),
            (Input::Resize { active }, _) => self.rank.resize(now, active, out),
            (Input::Message { from, message: LeaseMessage::Report(report) }, Some(root)) => {
                root.receive(now, from, report, &mut orders);
            }
            (Input::Message { message: LeaseMessage::Order(order), .. }, None) => {
                self.rank.receive(now, order, out);
            }
            (Input::Begin | Input::Message { .. }, _) => {}
        }
        self.deliver(now, orders, out);
        if self.rank.is_closed() && self.root.as_ref().is_none_or(LeaseRoot::is_closed) {
            self.closed = true;
            out.push(Output::Closed);
        }
    }
}

impl LeasesRank {
    /// Delivers orders and reports until there are none: by messages to other ranks, directly within rank 0.
    fn deliver(&mut self, now: Nanos, mut orders: Orders, out: &mut Vec<Output>) {
        loop {
            for (to, order) in std::mem::take(&mut orders) {
                if to == Rank(0) {
                    self.rank.receive(now, order, out);
                } else {
                    out.push(Output::Send { to, message: LeaseMessage::Order(order) });
                }
            }
            let reports = self.rank.reports();
            if reports.is_empty() {
                return;
            }
            for report in reports {
                if let Some(root) = &mut self.root {
                    root.receive(now, Rank(0), report, &mut orders);
                } else {
                    out.push(Output::Send { to: Rank(0), message: LeaseMessage::Report(report) });
                }
            }
        }
    }
}
