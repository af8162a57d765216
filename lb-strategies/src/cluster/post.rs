//! Messages on their way between ranks: none of a pair overtakes another.

use std::collections::VecDeque;

use super::links::Links;
use crate::Rank;
use crate::pools::machine::Nanos;

/// What is on its way between ranks, over links.
///
/// ```
/// use lb_strategies::Rank;
/// use lb_strategies::cluster::Post;
/// let mut post = Post::new(2, 500u64);
/// assert_eq!(post.send(Rank(0), Rank(1), "hello", 100), 600);
/// assert_eq!(post.take(Rank(0), Rank(1)), Some("hello"));
/// ```
pub struct Post<L, M> {
    links: L,
    ranks: u32,
    /// By sender and receiver.
    ways: Vec<Way<M>>,
}

struct Way<M> {
    messages: VecDeque<M>,
    /// When the last of them arrives.
    last: Nanos,
}

impl<L: Links, M> Post<L, M> {
    /// Between so many ranks.
    pub fn new(ranks: u32, links: L) -> Self {
        let way = || Way { messages: VecDeque::new(), last: 0 };
        let pairs = ranks as usize * ranks as usize;
        Self { links, ranks, ways: std::iter::repeat_with(way).take(pairs).collect() }
    }

    /// A message leaves now; says when it arrives.
    pub fn send(&mut self, from: Rank, to: Rank, message: M, now: Nanos) -> Nanos {
        let delay = self.links.delay(from, to, now);
        let way = self.way(from, to);
        way.messages.push_back(message);
        way.last = way.last.max(now + delay);
        way.last
    }

    /// Takes the message that has been longest on its way between two ranks.
    pub fn take(&mut self, from: Rank, to: Rank) -> Option<M> {
        self.way(from, to).messages.pop_front()
    }

    /// How long a rank is busy with one message.
    pub fn service(&mut self, rank: Rank) -> Nanos {
        self.links.service(rank)
    }

    fn way(&mut self, from: Rank, to: Rank) -> &mut Way<M> {
        &mut self.ways[from.0 as usize * self.ranks as usize + to.0 as usize]
    }
}
