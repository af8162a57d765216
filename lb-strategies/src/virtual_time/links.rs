//! Defines the delays of messages between ranks: constant, by pair, with jitter, or erratic.

use super::splitmix::SplitMix64;
use crate::pools::machine::Nanos;
use crate::rank::Rank;

/// The links between ranks.
///
/// ```
/// use lb_strategies::{Rank, virtual_time::Links};
/// let mut everywhere: u64 = 5_000_000;
/// assert_eq!(everywhere.delay(Rank(0), Rank(1), 0), 5_000_000);
/// ```
pub trait Links {
    /// The delay of a message sent now. Messages between two ranks never overtake each other.
    fn delay(&mut self, from: Rank, to: Rank, now: Nanos) -> Nanos;

    /// The time for which a rank is busy with one message. A rank handles messages one after the other.
    fn service(&mut self, _rank: Rank) -> Nanos {
        0
    }

    /// True if a message between two ranks never has a delay so short that it would overtake an earlier one.
    fn keeps_order(&self) -> bool {
        false
    }
}

/// The same delay for all pairs at all times.
impl Links for Nanos {
    fn delay(&mut self, _from: Rank, _to: Rank, _now: Nanos) -> Nanos {
        *self
    }

    fn keeps_order(&self) -> bool {
        true
    }
}

impl<L: Links + ?Sized> Links for Box<L> {
    fn delay(&mut self, from: Rank, to: Rank, now: Nanos) -> Nanos {
        (**self).delay(from, to, now)
    }

    fn service(&mut self, rank: Rank) -> Nanos {
        (**self).service(rank)
    }

    fn keeps_order(&self) -> bool {
        (**self).keeps_order()
    }
}

/// One delay for each pair, as for near and far ranks.
///
/// ```
/// use lb_strategies::{Rank, virtual_time::{Links, PerPair}};
/// let mut racks = PerPair(|from: Rank, to: Rank| if from.0 / 8 == to.0 / 8 { 50_000 } else { 500_000 });
/// assert_eq!(racks.delay(Rank(0), Rank(9), 0), 500_000);
/// ```
pub struct PerPair<F>(
    /// The delay of a message between two ranks.
    pub F,
);

impl<F: Fn(Rank, Rank) -> Nanos> Links for PerPair<F> {
    fn delay(&mut self, from: Rank, to: Rank, _now: Nanos) -> Nanos {
        (self.0)(from, to)
    }
}

/// Links with jitter: each message takes longer by a random time below a maximum, uniform, by seed.
///
/// ```
/// use lb_strategies::{Rank, virtual_time::{Jitter, Links}};
/// let mut links = Jitter::new(1_000u64, 500, 42);
/// assert!((1_000..1_500).contains(&links.delay(Rank(0), Rank(1), 0)));
/// ```
pub struct Jitter<L> {
    links: L,
    most: Nanos,
    rng: SplitMix64,
}

impl<L: Links> Jitter<L> {
    /// `links` with a jitter below `most`.
    pub fn new(links: L, most: Nanos, seed: u64) -> Self {
        Self { links, most, rng: SplitMix64::new(seed) }
    }
}

impl<L: Links> Links for Jitter<L> {
    fn delay(&mut self, from: Rank, to: Rank, now: Nanos) -> Nanos {
        self.links.delay(from, to, now).saturating_add((self.rng.uniform() * self.most as f64) as Nanos)
    }

    fn service(&mut self, rank: Rank) -> Nanos {
        self.links.service(rank)
    }
}

/// Links that reverse every order that is not promised, by seed. Most messages take up to 20 us, some 100 times that.
///
/// ```
/// use lb_strategies::{Rank, virtual_time::{Erratic, Links}};
/// let mut links = Erratic::new(42);
/// assert!(links.delay(Rank(0), Rank(1), 0) <= 2_000_000);
/// ```
pub struct Erratic {
    rng: SplitMix64,
}

impl Erratic {
    /// The links of this seed.
    pub fn new(seed: u64) -> Self {
        Self { rng: SplitMix64::new(seed) }
    }
}

impl Links for Erratic {
    fn delay(&mut self, _from: Rank, _to: Rank, _now: Nanos) -> Nanos {
        let most = if self.rng.uniform() < 0.02 { 2e6 } else { 2e4 };
        (self.rng.uniform() * most) as Nanos
    }
}
