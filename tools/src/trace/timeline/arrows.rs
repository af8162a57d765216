//! Selects the messages with the longest latency, for the arrows of a picture.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::super::analysis::messages::Message;

/// The messages with the longest latency.
pub(super) struct Slowest {
    /// The message with the shortest latency is on top.
    arrows: BinaryHeap<Reverse<Arrow>>,
    most: usize,
    /// Number of all messages.
    pub(super) seen: u64,
}

impl Slowest {
    pub(super) fn new(most: usize) -> Slowest {
        Slowest { arrows: BinaryHeap::new(), most, seen: 0 }
    }

    pub(super) fn add(&mut self, message: Message) {
        self.seen += 1;
        let (latency_ns, number) = (message.latency_ns(), Reverse(self.seen));
        self.arrows.push(Reverse(Arrow { latency_ns, number, message }));
        if self.arrows.len() > self.most {
            self.arrows.pop();
        }
    }

    pub(super) fn len(&self) -> usize {
        self.arrows.len()
    }

    /// The selected messages in the order in which they were handled.
    pub(super) fn messages(&self) -> Vec<Message> {
        let mut arrows: Vec<&Arrow> = self.arrows.iter().map(|Reverse(arrow)| arrow).collect();
        arrows.sort_by_key(|arrow| arrow.number.0);
        arrows.into_iter().map(|arrow| arrow.message).collect()
    }
}

/// A message, ordered by latency.
struct Arrow {
    latency_ns: u64,
    /// For equal latencies, the earlier message counts as longer.
    number: Reverse<u64>,
    message: Message,
}

impl PartialEq for Arrow {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Arrow {}

impl PartialOrd for Arrow {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Arrow {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.latency_ns, self.number).cmp(&(other.latency_ns, other.number))
    }
}
