//! Finds the handler that handled a message, or the message that a handler handled.
//!
//! A [`What::Send`] and a [`What::Handler`] are one message if sender and number agree. Those that wait for their other half
//! are kept, at most [`UNDER_WAY_MAX`] of them; beyond that the oldest is given up and counted. Memory does not grow with the
//! trace. Events come in the order of their ends ([`Merged`](crate::trace::merged::Merged)); since clocks differ a little, a handler
//! may come before its message, and waits for it a while.

use std::collections::VecDeque;

use caribou::trace::{ChunkId, Event, NameId, What};
use rustc_hash::FxHashMap;

use super::events::Place;

/// Messages that wait for their handler, at most.
const UNDER_WAY_MAX: usize = 1 << 20;
/// Handlers that wait for their message, at most. They do so only if a clock is wrong, or if the message was not recorded.
const EARLY_MAX: usize = 1 << 14;

/// A message, from being sent to being handled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Message {
    pub(crate) sent: Sent,
    pub(crate) begun: Begun,
}

/// Where, when and to whom it was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sent {
    pub(crate) from: ChunkId,
    pub(crate) to: ChunkId,
    pub(crate) bytes: u64,
    pub(crate) at_ns: u64,
    pub(crate) rank: u32,
    pub(crate) worker: u32,
}

/// Where and when its handler ran. The message was found somewhere between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Begun {
    pub(crate) kind: NameId,
    pub(crate) at_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) rank: u32,
    pub(crate) worker: u32,
}

impl Message {
    /// From when it was sent to when it was found, ns; 0 if that was at once, or clocks differ.
    pub(crate) fn latency_ns(&self) -> u64 {
        self.begun.at_ns.saturating_sub(self.sent.at_ns)
    }

    /// When it was found, at the earliest: a worker that did not wait begins to look when its last handler ends.
    pub(crate) fn found_ns(&self) -> u64 {
        self.begun.at_ns.max(self.sent.at_ns)
    }

    /// Whether the clocks say that it was handled before it was sent.
    pub(crate) fn is_early(&self) -> bool {
        self.begun.end_ns < self.sent.at_ns
    }
}

/// Puts halves of messages together.
pub(crate) struct Matcher {
    sent: Waiting<Sent>,
    begun: Waiting<Begun>,
}

impl Default for Matcher {
    fn default() -> Self {
        Self { sent: Waiting::new(UNDER_WAY_MAX), begun: Waiting::new(EARLY_MAX) }
    }
}

impl Matcher {
    /// The message that this event completes.
    pub(crate) fn see(&mut self, place: Place<'_>, event: &Event) -> Option<Message> {
        let (rank, worker) = (place.rank.rank, place.worker);
        match event.what {
            What::Send { chunk: from, to, number, bytes, .. } if number != 0 => {
                let sent = Sent { from, to, bytes, at_ns: event.begin_ns, rank, worker };
                match self.begun.take((from, number)) {
                    Some(begun) => Some(Message { sent, begun }),
                    None => {
                        self.sent.keep((from, number), sent);
                        None
                    }
                }
            }
            What::Handler { kind, from, number, .. } if number != 0 => {
                let begun = Begun { kind, at_ns: event.begin_ns, end_ns: event.end_ns, rank, worker };
                match self.sent.take((from, number)) {
                    Some(sent) => Some(Message { sent, begun }),
                    None => {
                        self.begun.keep((from, number), begun);
                        None
                    }
                }
            }
            _ => None,
        }
    }

    /// Messages whose handler has not been found.
    pub(crate) fn unmatched(&self) -> u64 {
        self.sent.entries.len() as u64 + self.sent.given_up
    }

    /// Messages that were given up since too many were under way.
    pub(crate) fn given_up(&self) -> u64 {
        self.sent.given_up
    }
}

type Key = (ChunkId, u32);

/// A bounded table that gives up its oldest entries.
struct Waiting<T> {
    entries: FxHashMap<Key, T>,
    /// In the order in which they came; some have been taken since.
    order: VecDeque<Key>,
    most: usize,
    given_up: u64,
}

impl<T> Waiting<T> {
    fn new(most: usize) -> Self {
        Self { entries: FxHashMap::default(), order: VecDeque::new(), most, given_up: 0 }
    }

    fn take(&mut self, key: Key) -> Option<T> {
        self.entries.remove(&key)
    }

    fn keep(&mut self, key: Key, entry: T) {
        while self.entries.len() >= self.most {
            let oldest = self.order.pop_front().expect("every entry is in the order");
            self.given_up += u64::from(self.entries.remove(&oldest).is_some());
        }
        if self.order.len() >= 2 * self.most {
            let entries = &self.entries;
            self.order.retain(|key| entries.contains_key(key));
        }
        if self.entries.insert(key, entry).is_none() {
            self.order.push_back(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use caribou::trace::ArrayId;

    use super::*;

    #[test]
    fn a_full_table_gives_up_its_oldest_entry_and_counts_it() {
        let mut waiting = Waiting::new(3);
        let key = |number| (ChunkId { array: ArrayId(0), key: 7 }, number);
        for number in 1..=3 {
            waiting.keep(key(number), number);
        }
        assert_eq!(waiting.take(key(1)), Some(1));
        for number in 4..=6 {
            waiting.keep(key(number), number);
        }
        assert_eq!(waiting.given_up, 2);
        let left: Vec<_> = (1..=6).filter_map(|number| waiting.take(key(number))).collect();
        assert_eq!(left, [4, 5, 6]);
    }

    #[test]
    fn keys_that_come_and_go_take_no_memory() {
        let mut waiting = Waiting::new(10);
        for number in 0..10_000 {
            let key = (ChunkId { array: ArrayId(0), key: 7 }, number);
            waiting.keep(key, ());
            waiting.take(key);
        }
        assert!(waiting.order.len() <= 20, "{}", waiting.order.len());
    }
}
