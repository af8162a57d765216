//! The root of `leases`, on rank 0, with the free ranges, a record of each rank's ranges, and the queue of requests.
//!
//! | a rank is | its reports | until |
//! |---|---|---|
//! | present, active or inactive | are handled | it sends `Bye` |
//! | gone | are ignored | the end |
//!
//! A rank becomes inactive when the run shrinks: it has given back its ranges, and asks for none.
//!
//! 1. A `Want` is answered by a `Lease` if something is free. Else it waits, and is tried again at every report.
//! 2. While a `Want` waits, ranks that hold more than they need are asked to give ranges: [`steal`](super::steal).
//! 3. In the step in which these ranges come back, the root leases them, in such sizes that the waiting ranks end
//!    together.
//! 4. `Stop` is sent once, to all ranks together, when everything is done.
//! 5. When no rank can give ranges, waiting workers execute copies of pieces that other workers are late with:
//!    [`replica_broker`](super::replica_broker).

use std::ops::Range;

use super::holdings::Holdings;
use super::message::{Order, Report, ReportKind};
use super::peers::Peers;
use super::replica_broker::ReplicaBroker;
use super::size::{self, Batch, Bounds, Speeds};
use super::steal::{Holder, StealPlan, steal};
use crate::pools::apportion::apportion;
use crate::pools::machine::Nanos;
use crate::rank::Rank;

/// The settings of the root.
#[derive(Clone, Copy, Debug)]
pub(super) struct RootSettings {
    pub(super) batch: Batch,
    pub(super) bounds: Bounds,
    /// Part of a rank's fair share in its first lease.
    pub(super) first: f64,
    /// Length of pieces.
    pub(super) chunk: Nanos,
}

/// Orders of the root, each with its receiver.
pub(super) type Orders = Vec<(Rank, Order)>;

/// The machine of the root, without the rank side of rank 0.
#[derive(Debug)]
pub(super) struct LeaseRoot {
    settings: RootSettings,
    iterations: u64,
    holdings: Holdings,
    copies: ReplicaBroker,
    peers: Peers,
    stopped: bool,
}

impl LeaseRoot {
    pub(super) fn new(settings: RootSettings, iterations: u64, workers: &[u32]) -> Self {
        Self {
            settings,
            iterations,
            holdings: Holdings::new(iterations, workers.len() as u32),
            copies: ReplicaBroker::default(),
            peers: Peers::new(workers),
            stopped: false,
        }
    }

    /// Starts the pool.
    pub(super) fn begin(&mut self, now: Nanos, orders: &mut Orders) {
        self.serve(now, orders);
    }

    /// Handles the report of a rank.
    pub(super) fn receive(&mut self, now: Nanos, from: Rank, report: Report, orders: &mut Orders) {
        let peer = &mut self.peers[from];
        if !peer.is_present {
            return;
        }
        peer.standing = report.status;
        peer.reported_at = now;
        for range in report.done {
            self.holdings.done(from, range);
        }
        match report.kind {
            ReportKind::Want => peer.want = Some(now),
            ReportKind::Stolen(ranges) => {
                let thieves = peer.stealing_for.take().unwrap_or_default();
                let given: u64 = ranges.iter().map(|range| range.end - range.start).sum();
                ranges.into_iter().for_each(|range| self.holdings.give_up(from, range));
                self.share(now, &thieves, given, orders);
            }
            ReportKind::Returned(ranges) => {
                peer.want = None;
                ranges.into_iter().for_each(|range| self.holdings.give_up(from, range));
            }
            ReportKind::Offer { piece, range } => self.copies.offer(from, piece, range),
            // After `Stop`, no rank waits for an answer.
            ReportKind::Copied { owner, piece } if !self.stopped => {
                self.copies.copied(owner, piece, from, orders);
            }
            ReportKind::Progress | ReportKind::Copied { .. } => {}
            ReportKind::Settled { piece, range } => self.settled(from, piece, range, orders),
            ReportKind::Bye => peer.is_present = false,
        }
        self.serve(now, orders);
    }

    /// True if no message will come or go any more.
    pub(super) fn is_closed(&self) -> bool {
        self.stopped && self.peers.present().next().is_none()
    }

    fn serve(&mut self, now: Nanos, orders: &mut Orders) {
        if self.stopped {
            return;
        }
        if self.holdings.are_done() {
            self.stopped = true;
            orders.extend(self.peers.present().map(|rank| (rank, Order::Stop)));
            return;
        }
        while self.holdings.free() > 0 {
            let Some(rank) = self.peers.queue().min_by_key(|&rank| self.peers[rank].want) else { return };
            self.lease(now, rank, self.size(rank), orders);
        }
        if !self.steal(now, orders) {
            self.copy(orders);
        }
    }

    /// Lets waiting workers execute copies (rule 5).
    fn copy(&mut self, orders: &mut Orders) {
        loop {
            let waits = self.peers.queue().find(|&rank| self.peers[rank].standing.waiting > 0);
            let Some(rank) = waits else { return };
            let Some(copy) = self.copies.take(&self.holdings) else { return };
            self.peers[rank].standing.waiting -= 1;
            orders.push((rank, copy));
        }
    }

    fn settled(&mut self, owner: Rank, piece: u64, range: Option<Range<u64>>, orders: &mut Orders) {
        let Some(copier) = self.copies.settled(owner, piece) else { return };
        let counts = range.is_some();
        if let Some(range) = range {
            self.holdings.done(owner, range);
        }
        orders.push((copier, Order::Verdict { owner, piece, counts }));
    }

    fn lease(&mut self, now: Nanos, rank: Rank, count: u64, orders: &mut Orders) {
        let ranges = self.holdings.lease(rank, count);
        let last = self.holdings.free() == 0;
        let peer = &mut self.peers[rank];
        let since = peer.want.take().expect("only a rank that wants is served");
        peer.leases += 1;
        peer.leased = ranges.iter().map(|range| range.end - range.start).sum();
        orders.push((rank, Order::Lease { ranges, queued: now.saturating_sub(since), last }));
    }

    fn size(&self, rank: Rank) -> u64 {
        let peer = &self.peers[rank];
        if self.peers.len() == 1 {
            return self.holdings.free();
        }
        let workers = self.peers.active().map(|rank| self.peers[rank].workers).sum();
        let first = size::first(self.iterations, peer.workers, workers, self.settings.first);
        if peer.leases == 0 || self.peers.mean_speed().is_none() {
            return first;
        }
        let speeds = Speeds {
            of_rank: self.peers.speed(rank),
            of_all: self.peers.active().map(|rank| self.peers.speed(rank)).sum(),
        };
        let Bounds { min, max } = self.settings.bounds;
        let bounds = Bounds { min: min.max(4 * peer.standing.rtt), max };
        let ranks = self.peers.active().count() as u32;
        let part = self.settings.batch.part(self.holdings.free(), ranks, self.peers.variation());
        size::lease(self.holdings.free(), part, speeds, bounds)
    }

    /// Divides the given iterations among the thieves so that they end together (rule 3).
    fn share(&mut self, now: Nanos, thieves: &[Rank], given: u64, orders: &mut Orders) {
        let wanting = thieves.iter().copied().filter(|&thief| self.peers[thief].want.is_some());
        let thieves: Vec<Holder> = wanting.map(|thief| self.peers.holder(now, thief, true)).collect();
        let speed: f64 = thieves.iter().map(|thief| thief.speed).sum();
        let pool: u64 = thieves.iter().map(|thief| thief.pool).sum();
        let end = (pool + given) as f64 / speed;
        let need = |thief: &Holder| (thief.speed * end - thief.pool as f64).max(0.0);
        let (thieves, needs): (Vec<Rank>, Vec<f64>) =
            thieves.iter().map(|thief| (thief.rank, need(thief))).filter(|&(_, need)| need > 0.0).unzip();
        let parts = apportion(given, &needs).unwrap_or_default();
        for (thief, part) in thieves.into_iter().zip(parts).filter(|&(_, part)| part > 0) {
            self.lease(now, thief, part, orders);
        }
    }

    /// Asks ranks to give ranges (rule 2). Returns true if there was such a rank.
    fn steal(&mut self, now: Nanos, orders: &mut Orders) -> bool {
        let thieves: Vec<Rank> = self.peers.queue().filter(|&rank| !self.peers.is_engaged(rank)).collect();
        if thieves.is_empty() {
            return false;
        }
        let holders: Vec<Holder> = self
            .peers
            .active()
            .filter(|&rank| self.peers[rank].stealing_for.is_none())
            .map(|rank| self.peers.holder(now, rank, thieves.contains(&rank)))
            .collect();
        let Some(StealPlan { thieves, requests: cuts }) = steal(&holders, self.settings.chunk) else {
            return false;
        };
        for (victim, cut) in cuts {
            self.peers[victim].stealing_for = Some(thieves.clone());
            orders.push((victim, Order::Steal(cut)));
        }
        true
    }
}
