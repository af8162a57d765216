//! The part of a worker that only a simulation uses: choices by seed, and the load that handlers declare.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;

use crate::arrays::core::routing::envelope::Payload;
use crate::arrays::core::routing::message_list::MessageList;

/// The simulation state of one worker; does nothing outside a simulation.
#[derive(Default)]
pub(crate) struct Simulated {
    rng: Option<Pcg32>,
    /// Load declared by handlers, ns of ticks.
    charged_ns: u64,
}

impl Simulated {
    /// The state of a worker. `seed` shuffles its messages and picks the decisions to defer.
    pub(crate) fn seeded(seed: u64) -> Simulated {
        Simulated { rng: Some(Pcg32::seed_from_u64(seed)), charged_ns: 0 }
    }

    /// Shuffles the messages of a run together with the newer messages in the mailbox, within the guaranteed order.
    /// Returns the maximum number of messages that the run may handle.
    #[inline]
    pub(crate) fn shuffle(&mut self, mail: &mut MessageList, newer: impl FnOnce() -> MessageList) -> usize {
        self.rng.as_mut().map_or(usize::MAX, |rng| shuffle(mail, newer(), rng))
    }

    /// True if the seed defers a decision, so that other events happen before the strategy is called.
    pub(crate) fn puts_off(&mut self) -> bool {
        self.rng.as_mut().is_some_and(|rng| rng.random_ratio(1, 2))
    }

    /// Adds load that a handler declares.
    pub(crate) fn charge(&mut self, ticks_ns: u64) {
        self.charged_ns = self.charged_ns.saturating_add(ticks_ns);
    }

    /// Takes the load declared since the last call, ns of ticks.
    pub(crate) fn take_charged_ns(&mut self) -> u64 {
        std::mem::take(&mut self.charged_ns)
    }
}

/// Picks the next message from a random sender, keeping the order per sender. Lets the run handle a random number of
/// them.
fn shuffle(mail: &mut MessageList, newer: MessageList, rng: &mut Pcg32) -> usize {
    let mut all: Vec<_> = std::mem::take(mail).chain(newer).collect();
    let front = all.first().map(|node| &node.message.payload);
    let stays_first = usize::from(matches!(front, Some(Payload::Start | Payload::Deferred)));
    for place in stays_first..all.len() {
        let pick = rng.random_range(place..all.len());
        let from = all[pick].message.from.chunk();
        let same = |&earlier: &usize| all[earlier].message.from.chunk() == from;
        let first = (place..=pick).find(same).expect("the pick itself matches");
        let node = all.remove(first);
        all.insert(place, node);
    }
    let handled = rng.random_range(1..=all.len());
    *mail = all.into_iter().collect();
    handled
}
