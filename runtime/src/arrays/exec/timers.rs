//! The timers of a worker: messages that chunks send to themselves for a later time.
//!
//! A worker keeps the timers that its handlers have set, even if the chunk has moved since. When a message is due, the
//! worker sends it by the present routes. So a worker that sleeps until a timer is due need not be woken. Other workers
//! lock its timers only to copy the rank for a checkpoint. Callers count these messages as in flight with the core.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::arrays::core::routing::message_list::MessageNode;

/// The time after which a worker checks again due messages that have to wait, ns.
const HELD_NS: u64 = 200_000;

/// The timers of one worker.
#[derive(Default)]
pub(crate) struct Timers {
    /// Messages by due time, ns since the run began, and by number where due times are equal.
    pending: BTreeMap<(u64, u64), Box<MessageNode>>,
    /// Number of timers set so far.
    set: u64,
}

impl Timers {
    pub(crate) fn set(&mut self, due_ns: u64, message: Box<MessageNode>) {
        self.set += 1;
        self.pending.insert((due_ns, self.set), message);
    }

    /// Due time of the next timer, if there is one, ns since the run began.
    fn next_ns(&self) -> Option<u64> {
        self.pending.first_key_value().map(|(&(due_ns, _), _)| due_ns)
    }

    /// Takes the next message that is due by `now_ns`.
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Option<Box<MessageNode>> {
        let next = self.pending.first_entry()?;
        (next.key().0 <= now_ns).then(|| next.remove())
    }

    /// All timers in the order in which they are due, with their due times, ns.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut MessageNode)> {
        self.pending.iter_mut().map(|(&(due_ns, _), message)| (due_ns, &mut **message))
    }
}

/// A worker's own timers.
pub(crate) struct WorkerTimers<'r> {
    timers: &'r Mutex<Timers>,
    /// Time at which the worker checks its timers next, ns since the run began.
    next_ns: Option<u64>,
}

impl<'r> WorkerTimers<'r> {
    pub(crate) fn new(timers: &'r Mutex<Timers>) -> WorkerTimers<'r> {
        WorkerTimers { timers, next_ns: None }
    }

    fn lock(&self) -> MutexGuard<'r, Timers> {
        self.timers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&mut self, due_ns: u64, message: Box<MessageNode>) {
        let mut timers = self.lock();
        timers.set(due_ns, message);
        self.next_ns = timers.next_ns();
    }

    /// Time at which the worker checks its timers next, ns since the run began. None without timers.
    #[inline]
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.next_ns
    }

    /// Takes the next message that is due by `now_ns`.
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Option<Box<MessageNode>> {
        let mut timers = self.lock();
        let due = timers.take_due(now_ns);
        self.next_ns = timers.next_ns();
        due
    }

    /// No message may be sent now: checks again a moment later.
    pub(crate) fn hold(&mut self, now_ns: u64) {
        self.next_ns = Some(now_ns + HELD_NS);
    }

    /// Limits a sleep to the time until the next timer is due.
    pub(crate) fn shorten(&self, nap: Option<Duration>, now_ns: u64) -> Option<Duration> {
        let until_due = |due_ns: u64| Duration::from_nanos(due_ns.saturating_sub(now_ns));
        nap.into_iter().chain(self.next_ns().map(until_due)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::core::routing::envelope::{Delivery, Payload};
    use crate::ids::{ArrayId, ChunkId};

    fn message(key: u64) -> Box<MessageNode> {
        let delivery = Delivery::by_runtime(Payload::Start);
        MessageNode::new(ChunkId { array: ArrayId(0), key }, delivery)
    }

    #[test]
    fn due_messages_come_by_time_and_then_in_the_order_they_were_set() {
        let mut timers = Timers::default();
        for (due_ns, key) in [(7, 0), (5, 1), (7, 2), (u64::MAX, 3), (5, 4)] {
            timers.set(due_ns, message(key));
        }
        assert!(timers.take_due(4).is_none());
        let mut due = |now_ns| -> Vec<u64> {
            std::iter::from_fn(|| timers.take_due(now_ns)).map(|message| message.to.key).collect()
        };
        assert_eq!(due(6), [1, 4]);
        assert_eq!(due(u64::MAX - 1), [0, 2]);
        assert_eq!(timers.next_ns(), Some(u64::MAX));
    }

    #[test]
    fn a_worker_sleeps_at_most_until_the_next_timer_is_due() {
        let timers = Mutex::default();
        let mut timers = WorkerTimers::new(&timers);
        let second = Duration::from_secs(1);
        assert_eq!(timers.shorten(None, 3), None);
        assert_eq!(timers.shorten(Some(second), 3), Some(second));
        timers.set(10, message(0));
        assert_eq!(timers.shorten(None, 3), Some(Duration::from_nanos(7)));
        assert_eq!(timers.shorten(Some(second), 3), Some(Duration::from_nanos(7)));
        assert_eq!(timers.shorten(Some(second), 11), Some(Duration::ZERO));
        timers.hold(11);
        assert_eq!(timers.shorten(None, 11), Some(Duration::from_nanos(HELD_NS)), "it has to wait");
        assert!(timers.take_due(11).is_some() && timers.next_ns().is_none());
    }
}
