//! The queue of events in every event loop in virtual time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::pools::machine::Nanos;

/// Events by their time. Events of the same time happen in the order in which they were added.
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
    sequence: u64,
}

struct TimedEvent<E> {
    at: Nanos,
    sequence: u64,
    event: E,
}

impl<E> Default for Events<E> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), sequence: 0 }
    }
}

impl<E> Events<E> {
    /// Adds an event at this time.
    pub fn at(&mut self, at: Nanos, event: E) {
        self.sequence += 1;
        self.heap.push(TimedEvent { at, sequence: self.sequence, event });
    }

    /// Time of the next event.
    pub fn next_at(&self) -> Option<Nanos> {
        self.heap.peek().map(|planned| planned.at)
    }

    /// Takes the next event, with its time.
    pub fn pop(&mut self) -> Option<(Nanos, E)> {
        self.heap.pop().map(|planned| (planned.at, planned.event))
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
