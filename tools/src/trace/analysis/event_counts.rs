//! Counts events by kind and messages sent, and finds the heaviest chunk of each sync.

use std::collections::{BTreeMap, BTreeSet};

use caribou::trace::{ChunkId, Event, What};
use trace_reader::Trace;

use super::events::{Observer, WorkerRef};

/// Kinds of events, in the order of [`kind_of`].
pub(crate) const EVENT_KINDS: [&str; 14] = [
    "handler",
    "send",
    "idle",
    "runtime",
    "depart",
    "arrive",
    "contribute",
    "load",
    "mark",
    "span",
    "counter",
    "range",
    "pool send",
    "dropped",
];

/// Index of an event's kind in [`EVENT_KINDS`].
fn kind_of(what: &What) -> usize {
    match what {
        What::Handler { .. } => 0,
        What::Send { .. } => 1,
        What::Idle => 2,
        What::Runtime { .. } => 3,
        What::Depart { .. } => 4,
        What::Arrive { .. } => 5,
        What::Contribute { .. } => 6,
        What::Load { .. } => 7,
        What::Mark { .. } => 8,
        What::Span { .. } => 9,
        What::Counter { .. } => 10,
        What::Range { .. } => 11,
        What::PoolSend { .. } => 12,
        What::Dropped { .. } => 13,
    }
}

/// Number of messages, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

/// Numbers of events and messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventCounts {
    pub(crate) counts: [u64; EVENT_KINDS.len()],
    /// Messages within a rank.
    pub(crate) local: Traffic,
    /// Messages to other ranks.
    pub(crate) remote: Traffic,
    /// Loads of the chunks at each sync.
    pub(crate) loads: BTreeMap<u64, Loads>,
}

/// Loads of the chunks that came to a sync.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loads {
    pub(crate) sum_ns: u64,
    pub(crate) heaviest: Option<(u64, ChunkId)>,
}

/// Computes [`EventCounts`].
pub(crate) struct EventCounter {
    pub(crate) event_counts: EventCounts,
    /// The recorded syncs. Others are ignored, because events may name any number of them.
    syncs: BTreeSet<u64>,
}

impl EventCounter {
    pub(crate) fn new(trace: &Trace) -> EventCounter {
        let syncs = trace.syncs.iter().map(|sync| sync.sync).collect();
        EventCounter { event_counts: EventCounts::default(), syncs }
    }
}

impl Observer<'_> for EventCounter {
    fn see(&mut self, place: WorkerRef<'_>, event: &Event) {
        let census = &mut self.event_counts;
        census.counts[kind_of(&event.what)] += 1;
        match event.what {
            What::Send { rank: to, bytes, .. } => {
                let traffic = if to == place.rank.rank { &mut census.local } else { &mut census.remote };
                traffic.messages += 1;
                traffic.bytes = traffic.bytes.saturating_add(bytes);
            }
            What::Load { chunk, sync, load_ns, .. } if self.syncs.contains(&sync) => {
                let loads = census.loads.entry(sync).or_default();
                loads.sum_ns = loads.sum_ns.saturating_add(load_ns);
                loads.heaviest = loads.heaviest.max(Some((load_ns, chunk)));
            }
            _ => {}
        }
    }
}

/// The arrays to which the filter restricted the recording; none if all were recorded.
pub(crate) fn arrays_recorded(trace: &Trace) -> Vec<&str> {
    trace.run.filter.split(',').filter_map(|word| word.strip_prefix("array=")).collect()
}

impl EventCounts {
    /// Number of recorded sends.
    pub(crate) fn sent(&self) -> u64 {
        self.counts[1]
    }

    /// Number of handlers, or of ranges of iterations.
    pub(crate) fn handled(&self) -> u64 {
        self.counts[0] + self.counts[11]
    }
}

impl Traffic {
    /// Estimates all traffic, if one message in `arrows` was recorded.
    pub(crate) fn times(self, arrows: u32) -> Traffic {
        let arrows = u64::from(arrows.max(1));
        Traffic { messages: self.messages.saturating_mul(arrows), bytes: self.bytes.saturating_mul(arrows) }
    }
}
