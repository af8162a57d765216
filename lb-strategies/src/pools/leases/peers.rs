//! The root's record of the ranks: their requests, their speeds, and the iterations that they should still hold.
//!
//! The root assumes that a rank continues as it reported. The rules of [`root_link`](super::root_link) keep this nearly
//! true.

use std::ops::{Index, IndexMut};

use super::message::LeaseStatus;
use super::root_link::seconds;
use super::steal::Holder;
use crate::pools::machine::Nanos;
use crate::rank::Rank;

/// All ranks.
#[derive(Debug)]
pub(super) struct Peers {
    all: Vec<Peer>,
}

/// One rank.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) workers: u32,
    pub(super) is_present: bool,
    pub(super) standing: LeaseStatus,
    pub(super) reported_at: Nanos,
    /// Number of leases sent to it, and the size of the last one.
    pub(super) leases: u64,
    pub(super) leased: u64,
    /// When its unanswered `Want` came.
    pub(super) want: Option<Nanos>,
    /// The ranks for which it has been asked to give ranges.
    pub(super) stealing_for: Option<Vec<Rank>>,
}

impl Index<Rank> for Peers {
    type Output = Peer;

    fn index(&self, rank: Rank) -> &Peer {
        &self.all[rank.0 as usize]
    }
}

impl IndexMut<Rank> for Peers {
    fn index_mut(&mut self, rank: Rank) -> &mut Peer {
        &mut self.all[rank.0 as usize]
    }
}

impl Peers {
    /// Ranks that are all present and have not reported.
    pub(super) fn new(workers: &[u32]) -> Self {
        let peer = |&workers: &u32| Peer {
            workers,
            is_present: true,
            standing: LeaseStatus::default(),
            reported_at: 0,
            leases: 0,
            leased: 0,
            want: None,
            stealing_for: None,
        };
        Self { all: workers.iter().map(peer).collect() }
    }

    /// Number of ranks at the start.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// True if another rank has been asked to give ranges to this one.
    pub(super) fn is_engaged(&self, rank: Rank) -> bool {
        self.all.iter().any(|peer| peer.stealing_for.as_ref().is_some_and(|thieves| thieves.contains(&rank)))
    }

    /// The present state of a rank, if it continues as it reported.
    pub(super) fn holder(&self, now: Nanos, rank: Rank, wants: bool) -> Holder {
        let Peer { standing, leases, leased, reported_at: heard, .. } = &self[rank];
        let unseen = if standing.leases < *leases { *leased } else { 0 };
        let speed = self.speed(rank);
        let executed = (speed * seconds(now.saturating_sub(*heard))) as u64;
        let pool = (standing.pool + unseen).saturating_sub(executed);
        Holder { rank, pool, speed, waiting: standing.waiting, rtt: standing.rtt, wants }
    }

    /// The ranks that have not sent `Bye`.
    pub(super) fn present(&self) -> impl Iterator<Item = Rank> + '_ {
        (0..).map(Rank).zip(&self.all).filter(|(_, peer)| peer.is_present).map(|(rank, _)| rank)
    }

    /// The present ranks that may have work.
    pub(super) fn active(&self) -> impl Iterator<Item = Rank> + '_ {
        self.present().filter(|&rank| !self[rank].standing.is_inactive)
    }

    /// The active ranks with an unanswered `Want`.
    pub(super) fn queue(&self) -> impl Iterator<Item = Rank> + '_ {
        self.active().filter(|&rank| self[rank].want.is_some())
    }

    /// Iterations per second that the rank reported, else those of as many mean workers of other ranks.
    pub(super) fn speed(&self, rank: Rank) -> f64 {
        let peer = &self[rank];
        let mean = || self.mean_speed().unwrap_or(1.0) * f64::from(peer.workers);
        peer.standing.speed.unwrap_or_else(mean)
    }

    /// Iterations per second of one worker; `None` before any rank has reported a speed.
    pub(super) fn mean_speed(&self) -> Option<f64> {
        let known = self.all.iter().filter(|peer| peer.is_present);
        let known = known.filter_map(|peer| peer.standing.speed.map(|speed| (speed, peer.workers)));
        let (sum, workers) =
            known.fold((0.0, 0), |(sum, all), (speed, workers)| (sum + speed, all + workers));
        (workers > 0).then(|| sum / f64::from(workers))
    }

    /// The largest coefficient of variation that a rank has measured.
    pub(super) fn variation(&self) -> Option<f64> {
        let known = self.present().filter_map(|rank| self[rank].standing.variation);
        known.reduce(f64::max)
    }
}
