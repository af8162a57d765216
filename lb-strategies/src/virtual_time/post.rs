//! Carries messages between ranks in virtual time, in order per pair.

use std::collections::VecDeque;

use super::links::Links;
use crate::Rank;
use crate::pools::machine::Nanos;

/// Messages in flight between ranks, over links.
///
/// ```
/// use lb_strategies::Rank;
/// use lb_strategies::virtual_time::Post;
/// let mut post = Post::new(2, 500u64);
/// assert_eq!(post.send(Rank(0), Rank(1), "hello", 100), 600);
/// assert_eq!(post.take(Rank(0), Rank(1)), Some("hello"));
/// ```
pub struct Post<L, M> {
    links: L,
    ranks: u32,
    /// By sender and receiver.
    pairs: Vec<PairQueue<M>>,
    /// By receiver, when it has handled the messages that it has taken.
    free: Vec<Nanos>,
}

struct PairQueue<M> {
    messages: VecDeque<M>,
    /// Arrival of the last of them.
    last: Nanos,
}

impl<L: Links, M> Post<L, M> {
    /// Message transport between this number of ranks.
    pub fn new(ranks: u32, links: L) -> Self {
        let way = || PairQueue { messages: VecDeque::new(), last: 0 };
        let pairs = ranks as usize * ranks as usize;
        let ways = std::iter::repeat_with(way).take(pairs).collect();
        Self { links, ranks, pairs: ways, free: vec![0; ranks as usize] }
    }

    /// Sends a message now. Returns the time of its arrival.
    pub fn send(&mut self, from: Rank, to: Rank, message: M, now: Nanos) -> Nanos {
        let delay = self.links.delay(from, to, now);
        let way = self.pair(from, to);
        way.messages.push_back(message);
        way.last = way.last.max(now.saturating_add(delay));
        way.last
    }

    /// Takes the oldest message in flight between two ranks.
    pub fn take(&mut self, from: Rank, to: Rank) -> Option<M> {
        self.pair(from, to).messages.pop_front()
    }

    /// Handles a message that arrives now. Returns when the receiver has handled it, after earlier messages.
    pub fn serve(&mut self, to: Rank, now: Nanos) -> Nanos {
        let service = self.links.service(to);
        let free = &mut self.free[to.index()];
        *free = (*free).max(now).saturating_add(service);
        *free
    }

    fn pair(&mut self, from: Rank, to: Rank) -> &mut PairQueue<M> {
        &mut self.pairs[from.0 as usize * self.ranks as usize + to.0 as usize]
    }
}
