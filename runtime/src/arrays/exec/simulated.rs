//! The choices of a seed about a worker, and the worker's side of a simulation.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;

use crate::arrays::core::routing::envelope::Payload;
use crate::arrays::core::routing::message_list::MessageList;

/// One worker's part in a simulation; does nothing outside of one.
#[derive(Default)]
pub(crate) struct Simulated {
    rng: Option<Pcg32>,
    /// Load declared by handlers, ns of ticks.
    charged_ns: u64,
}

impl Simulated {
    /// A worker whose mail is mixed by `seed`, which also says whether it puts decisions off.
    pub(crate) fn seeded(seed: u64) -> Simulated {
        Simulated { rng: Some(Pcg32::seed_from_u64(seed)), charged_ns: 0 }
    }

    /// Reorders the mail of a run and what is behind it in the mailbox, as far as the promised order allows, and says how much
    /// of it to handle at most.
    #[inline]
    pub(crate) fn shuffle(&mut self, mail: &mut MessageList, newer: impl FnOnce() -> MessageList) -> usize {
        self.rng.as_mut().map_or(usize::MAX, |rng| shuffle(mail, newer(), rng))
    }

    /// Tells whether other things happen before the strategy is asked.
    pub(crate) fn puts_off(&mut self) -> bool {
        self.rng.as_mut().is_some_and(|rng| rng.random_ratio(1, 2))
    }

    /// A handler declares load.
    pub(crate) fn charge(&mut self, ticks_ns: u64) {
        self.charged_ns = self.charged_ns.saturating_add(ticks_ns);
    }

    /// The load declared since this was last called, ns of ticks.
    pub(crate) fn take_charged_ns(&mut self) -> u64 {
        std::mem::take(&mut self.charged_ns)
    }
}

/// Picks mail of random senders next, keeping each sender's order, and lets a run handle a random part of it.
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
