//! The queue of events in every event loop in virtual time.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use crate::pools::machine::Nanos;

/// Events by their time. Events of the same time happen in the order in which they were added.
///
/// An event is added in O(log events), or in O(1) at the time of the event that happens, and by [`in_turn`](Self::in_turn).
///
/// ```
/// use lb_strategies::virtual_time::Events;
/// let mut events = Events::default();
/// events.at(7, "third");
/// events.at(3, "first");
/// events.at(3, "second");
/// assert_eq!(events.next_at(), Some(3));
/// let order: Vec<_> = std::iter::from_fn(|| events.pop()).collect();
/// assert_eq!(order, [(3, "first"), (3, "second"), (7, "third")]);
/// ```
pub struct Events<E> {
    heap: BinaryHeap<TimedEvent<E>>,
    /// Events of the time `now`, and events that were added in turn: both in the order of their times.
    queues: [VecDeque<TimedEvent<E>>; 2],
    /// Time of the newest event that was taken.
    now: Nanos,
    sequence: u64,
}

struct TimedEvent<E> {
    at: Nanos,
    sequence: u64,
    event: E,
}

impl<E> Default for Events<E> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), queues: [VecDeque::new(), VecDeque::new()], now: 0, sequence: 0 }
    }
}

impl<E> Events<E> {
    /// Adds an event at this time.
    pub fn at(&mut self, at: Nanos, event: E) {
        self.sequence += 1;
        let event = TimedEvent { at, sequence: self.sequence, event };
        let happens_now = at == self.now && self.queues[0].back().is_none_or(|last| last.at == at);
        if happens_now { self.queues[0].push_back(event) } else { self.heap.push(event) }
    }

    /// Adds an event at this time, which is most often not before the time of the event that was last added in turn.
    ///
    /// ```
    /// use lb_strategies::virtual_time::Events;
    /// let mut events = Events::default();
    /// [(9, "fourth"), (9, "fifth"), (7, "second")].map(|(at, event)| events.in_turn(at, event));
    /// [(8, "third"), (3, "first")].map(|(at, event)| events.at(at, event));
    /// let order: Vec<_> = std::iter::from_fn(|| events.pop()).map(|(_, event)| event).collect();
    /// assert_eq!(order, ["first", "second", "third", "fourth", "fifth"]);
    /// ```
    pub fn in_turn(&mut self, at: Nanos, event: E) {
        if self.queues[1].back().is_some_and(|last| last.at > at) {
            return self.at(at, event);
        }
        self.sequence += 1;
        self.queues[1].push_back(TimedEvent { at, sequence: self.sequence, event });
    }

    /// Time of the next event.
    pub fn next_at(&self) -> Option<Nanos> {
        let firsts = self.queues.iter().map(VecDeque::front).chain([self.heap.peek()]);
        firsts.flatten().max().map(|planned| planned.at)
    }

    /// Takes the next event, with its time.
    pub fn pop(&mut self) -> Option<(Nanos, E)> {
        let [now, in_turn] = self.queues.each_ref().map(VecDeque::front);
        let planned = match (now.max(in_turn), self.heap.peek()) {
            (first, Some(of_heap)) if first.is_none_or(|first| of_heap > first) => self.heap.pop(),
            _ if now > in_turn => self.queues[0].pop_front(),
            _ => self.queues[1].pop_front(),
        }?;
        self.now = planned.at;
        Some((planned.at, planned.event))
    }
}

impl<E> TimedEvent<E> {
    /// Reversed, because the heap returns the greatest first.
    fn key(&self) -> std::cmp::Reverse<(Nanos, u64)> {
        std::cmp::Reverse((self.at, self.sequence))
    }
}

impl<E> Ord for TimedEvent<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl<E> PartialOrd for TimedEvent<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for TimedEvent<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for TimedEvent<E> {}

/// The digest of a history with one more event, which `event` encodes. Equal digests show that two runs are equal.
pub fn digested(before: u64, now: Nanos, event: u64) -> u64 {
    (before ^ now.rotate_left(17) ^ event).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}
