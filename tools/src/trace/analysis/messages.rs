//! Matches the two halves of each message, its send and its handler, by the sender and the sender's message count.
//!
//! - Broadcasts, results for all chunks and messages of the runtime have no count or no recorded send, and never match.
//! - The half that comes first waits for the other half. If events come in order of their ends, that is nearly always
//!   the send. A handler may come first because clocks differ. It waits only if `handled_max` is above 0.
//! - A bounded number of each half waits, so that memory does not grow with the trace. Beyond the bound the oldest
//!   halves are dropped and counted.
//! - A half that still waits at the end has no other half in the trace. The run may have ended first, or the trace may
//!   be cut off, filtered or sampled. The other half may also be outside of the window.
//! - Counts restart after 2^32 - 1 messages of a sender, and when an index is inserted again after its chunk was
//!   removed. A new half then replaces a waiting half of the same name.

use caribou::trace::{ChunkId, Event, NameId, RUNTIME, What};
use rustc_hash::FxHashMap;

use super::events::{WorkerName, WorkerRef};

/// Default limit of sends that wait for their handler.
pub(crate) const IN_FLIGHT_MAX: usize = 1 << 20;
/// Default limit of handlers that wait for their send. They wait only if a clock is wrong or the send was not recorded.
const EARLY_MAX: usize = 1 << 14;

/// A message, by its sender and the sender's message count.
pub(crate) type Name = (ChunkId, u32);

/// The name of a message; none if its send is never recorded.
pub(crate) fn name(from: ChunkId, number: u32) -> Option<Name> {
    (number != 0 && from != RUNTIME).then_some((from, number))
}

/// Messages of which one half has been seen, with data `S` of sends and `H` of handlers.
pub(crate) struct Matcher<S, H> {
    sent: BoundedTable<S>,
    handled: BoundedTable<H>,
}

/// Result of adding one half of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatchResult<T> {
    /// The other half was seen before.
    Matched(T),
    /// The other half was not seen; this half waits for it.
    Pending,
    /// Like `Pending`, but this half replaced a waiting half of the same name.
    Duplicate,
    /// This half is never matched.
    Unnamed,
}

impl<T> MatchResult<T> {
    pub(crate) fn other(self) -> Option<T> {
        match self {
            MatchResult::Matched(other) => Some(other),
            MatchResult::Pending | MatchResult::Duplicate | MatchResult::Unnamed => None,
        }
    }
}

impl<S, H> Matcher<S, H> {
    /// Sets the limits of waiting sends and handlers.
    pub(crate) fn new(sent_max: usize, handled_max: usize) -> Self {
        Self { sent: BoundedTable::new(sent_max), handled: BoundedTable::new(handled_max) }
    }

    /// Adds a send. Returns its handler if that was seen.
    pub(crate) fn sent(&mut self, from: ChunkId, number: u32, send: S) -> MatchResult<H> {
        meet(&mut self.handled, &mut self.sent, name(from, number), send)
    }

    /// Adds a handler. Returns its send if that was seen.
    pub(crate) fn handled(&mut self, from: ChunkId, number: u32, handler: H) -> MatchResult<S> {
        meet(&mut self.sent, &mut self.handled, name(from, number), handler)
    }

    /// Number of sends without a handler.
    pub(crate) fn unhandled(&self) -> u64 {
        self.sent.all().count() as u64 + self.sent.evicted
    }

    /// Waiting handlers without a send, in no order.
    pub(crate) fn unsent(&self) -> impl Iterator<Item = (&Name, &H)> {
        self.handled.all()
    }

    /// Numbers of sends and handlers that were dropped because too many waited.
    pub(crate) fn evicted(&self) -> (u64, u64) {
        (self.sent.evicted, self.handled.evicted)
    }
}

fn meet<T, W>(
    others: &mut BoundedTable<T>,
    same: &mut BoundedTable<W>,
    name: Option<Name>,
    half: W,
) -> MatchResult<T> {
    let Some(name) = name else { return MatchResult::Unnamed };
    match others.take(&name) {
        Some(other) => MatchResult::Matched(other),
        None if same.keep(name, half) => MatchResult::Duplicate,
        None => MatchResult::Pending,
    }
}

/// A bounded table, which drops the older half of its entries when it is full.
struct BoundedTable<T> {
    young: FxHashMap<Name, T>,
    old: FxHashMap<Name, T>,
    most: usize,
    evicted: u64,
}

impl<T> BoundedTable<T> {
    fn new(most: usize) -> Self {
        Self { young: FxHashMap::default(), old: FxHashMap::default(), most, evicted: 0 }
    }

    fn take(&mut self, name: &Name) -> Option<T> {
        self.young.remove(name).or_else(|| self.old.remove(name))
    }

    /// Returns whether `half` replaced another half of that name.
    fn keep(&mut self, name: Name, half: T) -> bool {
        if self.most == 0 {
            return false;
        }
        let replaced = self.take(&name).is_some();
        if self.young.len() >= self.most.div_ceil(2) {
            self.evicted += self.old.len() as u64;
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(name, half);
        replaced
    }

    fn all(&self) -> impl Iterator<Item = (&Name, &T)> {
        self.old.iter().chain(&self.young)
    }
}

/// A message: its send and its handler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Message {
    pub(crate) sent: Sent,
    pub(crate) begun: Received,
}

/// The send: worker, time and receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sent {
    pub(crate) from: ChunkId,
    pub(crate) to: ChunkId,
    pub(crate) number: u32,
    pub(crate) bytes: u64,
    pub(crate) at_ns: u64,
    pub(crate) worker: WorkerName,
}

/// The handler: worker, times and chunk. The worker found the message before the handler ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Received {
    pub(crate) by: ChunkId,
    pub(crate) kind: NameId,
    pub(crate) at_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) worker: WorkerName,
}

impl Message {
    /// Time in ns from the send to the begin of the handler; 0 if that begin is before the send.
    pub(crate) fn latency_ns(&self) -> u64 {
        self.begun.at_ns.saturating_sub(self.sent.at_ns)
    }

    /// Earliest time at which the worker can have found it. A busy worker looks at the end of its last handler.
    pub(crate) fn found_ns(&self) -> u64 {
        self.begun.at_ns.max(self.sent.at_ns)
    }

    /// Time in ns by which the message was handled before it was sent; 0 if clocks agree.
    pub(crate) fn early_ns(&self) -> u64 {
        self.sent.at_ns.saturating_sub(self.begun.end_ns)
    }
}

impl Default for Matcher<Sent, Received> {
    fn default() -> Self {
        Self::new(IN_FLIGHT_MAX, EARLY_MAX)
    }
}

impl Matcher<Sent, Received> {
    /// Adds an event, in order of ends. Returns the message that it completes.
    pub(crate) fn see(&mut self, place: WorkerRef<'_>, event: &Event) -> MatchResult<Message> {
        let worker = place.name();
        let Event { begin_ns: at_ns, end_ns, .. } = *event;
        match event.what {
            What::Send { chunk: from, to, number, bytes, .. } => {
                let sent = Sent { from, to, number, bytes, at_ns, worker };
                self.sent(from, number, sent).map(|begun| Message { sent, begun })
            }
            What::Handler { chunk: by, kind, from, number, .. } => {
                let begun = Received { by, kind, at_ns, end_ns, worker };
                self.handled(from, number, begun).map(|sent| Message { sent, begun })
            }
            _ => MatchResult::Unnamed,
        }
    }
}

impl<T> MatchResult<T> {
    fn map<U>(self, to: impl FnOnce(T) -> U) -> MatchResult<U> {
        match self {
            MatchResult::Matched(other) => MatchResult::Matched(to(other)),
            MatchResult::Pending => MatchResult::Pending,
            MatchResult::Duplicate => MatchResult::Duplicate,
            MatchResult::Unnamed => MatchResult::Unnamed,
        }
    }
}

#[cfg(test)]
mod tests {
    use caribou::trace::ArrayId;

    use super::*;

    const SENDER: ChunkId = ChunkId { array: ArrayId(0), key: 7 };

    fn matcher(sent_max: usize, handled_max: usize) -> Matcher<&'static str, u32> {
        Matcher::new(sent_max, handled_max)
    }

    #[test]
    fn halves_meet_once_in_either_order() {
        let mut matcher = matcher(10, 10);
        assert_eq!(matcher.sent(SENDER, 1, "one"), MatchResult::Pending);
        assert_eq!(matcher.handled(SENDER, 1, 11), MatchResult::Matched("one"));
        assert_eq!(matcher.handled(SENDER, 2, 12), MatchResult::Pending);
        let other = ChunkId { key: 8, ..SENDER };
        assert_eq!(matcher.sent(other, 2, "of another"), MatchResult::Pending);
        assert_eq!(matcher.sent(SENDER, 2, "two"), MatchResult::Matched(12));
        assert_eq!(matcher.handled(SENDER, 1, 11), MatchResult::Pending, "it has been handled");
        assert_eq!(
            (matcher.unhandled(), matcher.unsent().collect::<Vec<_>>()),
            (1, vec![(&(SENDER, 1), &11)])
        );
    }

    #[test]
    fn broadcasts_and_messages_of_the_runtime_are_never_matched() {
        let mut matcher = matcher(10, 10);
        for (from, number) in [(SENDER, 0), (RUNTIME, 0), (RUNTIME, 3)] {
            assert_eq!(matcher.sent(from, number, "all"), MatchResult::Unnamed);
            assert_eq!(matcher.handled(from, number, 1), MatchResult::Unnamed);
        }
        assert_eq!((matcher.unhandled(), matcher.unsent().count()), (0, 0));
    }

    #[test]
    fn a_count_that_begins_again_replaces_what_was_never_handled() {
        let mut matcher = matcher(4, 0);
        assert_eq!(matcher.sent(SENDER, 1, "lost"), MatchResult::Pending);
        (u32::MAX - 2..=u32::MAX)
            .for_each(|number| assert_eq!(matcher.sent(SENDER, number, ""), MatchResult::Pending));
        assert_eq!(matcher.sent(SENDER, 1, "new"), MatchResult::Duplicate, "it is among the older ones");
        assert_eq!(matcher.handled(SENDER, 1, 0), MatchResult::Matched("new"));
        assert_eq!(matcher.handled(SENDER, 1, 0), MatchResult::Pending);
        assert_eq!(matcher.unsent().count(), 0, "handlers do not wait where nobody wants them");
    }

    #[test]
    fn a_full_table_gives_up_its_oldest_entries_and_counts_them() {
        let mut matcher = matcher(6, 6);
        (1..=100).for_each(|number| assert_eq!(matcher.sent(SENDER, number, ""), MatchResult::Pending));
        let kept: Vec<u32> =
            (1..=100).filter(|&number| matcher.handled(SENDER, number, number).other().is_some()).collect();
        assert!((3..=6).contains(&kept.len()) && kept.ends_with(&[99, 100]) && kept.is_sorted(), "{kept:?}");
        assert!(matcher.unsent().count() <= 6);
        let (missing, unsent) = (100 - kept.len() as u64, matcher.unsent().count() as u64);
        assert_eq!(matcher.evicted(), (missing, missing - unsent));
    }

    #[test]
    fn halves_that_come_and_go_take_no_memory() {
        let mut matcher = matcher(10, 10);
        for number in 1..10_000 {
            matcher.sent(SENDER, number, "");
            assert_eq!(matcher.handled(SENDER, number, 0), MatchResult::Matched(""));
        }
        assert_eq!((matcher.unhandled(), matcher.evicted()), (0, (0, 0)));
        assert!(matcher.sent.young.capacity() <= 16, "{}", matcher.sent.young.capacity());
    }
}
