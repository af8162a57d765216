//! Defines the events of a simulated pool, and the digest of a history.

use crate::execution::WorkerEvent;
use lb_strategies::pools::machine::Nanos;
use lb_strategies::virtual_time::events::digested;

#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A worker comes.
    Arrives(usize),
    /// The speed of a worker changes, or its range may have ended.
    WorkerEvent(WorkerEvent),
    /// A message has arrived, and waits in the queue of its receiver.
    Delivered {
        from: u32,
        to: u32,
    },
    /// A rank handles a message that has arrived.
    Served {
        from: u32,
        to: u32,
    },
    Timer {
        rank: u32,
    },
}

impl From<WorkerEvent> for Event {
    fn from(look: WorkerEvent) -> Self {
        Self::WorkerEvent(look)
    }
}

/// The digest `before`, extended by one event.
pub(super) fn digest(before: u64, now: Nanos, event: &Event) -> u64 {
    let kind = match event {
        Event::Arrives(worker) => 1 + 8 * *worker as u64,
        Event::WorkerEvent(WorkerEvent { worker, version }) => 2 + 8 * (*worker as u64) + (version << 32),
        Event::Delivered { from, to } => 3 + 8 * u64::from(*from) + (u64::from(*to) << 32),
        Event::Served { from, to } => 4 + 8 * u64::from(*from) + (u64::from(*to) << 32),
        Event::Timer { rank } => 5 + 8 * u64::from(*rank),
    };
    digested(before, now, kind)
}
