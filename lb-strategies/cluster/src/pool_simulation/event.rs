//! Events of a pool on the cluster, and a digest of a whole history.

use crate::execution::WorkerEvent;
use lb_strategies::pools::machine::Nanos;
use lb_strategies::virtual_time::events::digested;

#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A worker is there.
    Arrives(usize),
    /// Its speed changes, or its range is at its end.
    WorkerEvent(WorkerEvent),
    /// A message has arrived; it waits in its queue.
    Delivered {
        from: u32,
        to: u32,
    },
    /// A rank has time for a message that has arrived.
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

/// `before`, with one more event.
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
