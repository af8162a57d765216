//! The simulation's network: every packet gets a seeded delay, and keeps its place only among packets of its pair.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;

use super::Transport;
use crate::error::Error;
use crate::ids::Rank;

/// Delays are drawn from 0 to this, and now and then a hundred times as much.
const DELAY_MAX_NS: u64 = 20_000;
const SLOW_ONE_IN: u32 = 50;

/// All packets under way, by arrival time.
pub(crate) struct Network<P> {
    rng: Pcg32,
    /// (arrival, sequence) -> packet; the sequence makes keys unique.
    under_way: BTreeMap<(u64, u64), (Rank, Rank, P)>,
    sequence: u64,
    /// When the last packet of a pair arrives: the next one arrives later.
    last: BTreeMap<(Rank, Rank), u64>,
}

impl<P> Network<P> {
    pub(crate) fn new(seed: u64) -> Network<P> {
        let rng = Pcg32::seed_from_u64(seed);
        Network { rng, under_way: BTreeMap::new(), sequence: 0, last: BTreeMap::new() }
    }

    fn send(&mut self, from: Rank, to: Rank, packet: P, now_ns: u64) {
        let slow = if self.rng.random_ratio(1, SLOW_ONE_IN) { 100 } else { 1 };
        let arrival = now_ns + self.rng.random_range(0..=DELAY_MAX_NS * slow);
        let last = self.last.entry((from, to)).or_default();
        *last = arrival.max(*last + 1);
        self.sequence += 1;
        self.under_way.insert((*last, self.sequence), (from, to, packet));
    }

    /// When the next packet arrives.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.under_way.keys().next().map(|&(arrival, _)| arrival)
    }

    /// The next packet: sender, receiver, packet.
    pub(crate) fn take(&mut self) -> Option<(Rank, Rank, P)> {
        self.under_way.pop_first().map(|(_, packet)| packet)
    }
}

/// One rank's way into the network. The simulation itself hands out what arrives.
pub(crate) struct Sim<P> {
    pub(crate) rank: Rank,
    pub(crate) network: Arc<Mutex<Network<P>>>,
    /// The rank's time, kept by the simulation.
    pub(crate) now_ns: Arc<std::sync::atomic::AtomicU64>,
}

impl<P> Transport<P> for Sim<P> {
    fn send(&mut self, to: Rank, packet: P) -> Result<(), Error> {
        let now_ns = self.now_ns.load(std::sync::atomic::Ordering::Relaxed);
        self.network.lock().unwrap_or_else(PoisonError::into_inner).send(self.rank, to, packet, now_ns);
        Ok(())
    }

    fn poll(&mut self) -> Option<Result<(Rank, P), Error>> {
        None
    }

    fn idle(&mut self) -> bool {
        true
    }

    fn ready(&mut self) -> bool {
        false
    }

    fn close(&mut self, _lost: &dyn Fn() -> bool) {}
}
