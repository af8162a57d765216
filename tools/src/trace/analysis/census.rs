//! One pass over all events: how many of which sort, messages, and the heaviest chunk of each phase; and where time went,
//! from the best that there is.

use std::collections::{BTreeMap, BTreeSet};

use caribou::trace::{ChunkId, Event, Problem, RankTrace, Trace, What};

use super::bins::Bins;
use super::efficiency::phases;
use super::spent::{Source, Spent, Worker, source, spent};
use crate::trace::select::Selection;
use crate::trace::streams;

/// What there is to count, in the order of [`sort`].
pub(crate) const SORTS: [&str; 14] = [
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

/// Where in [`SORTS`] an event is.
fn sort(what: &What) -> usize {
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

/// Messages, and the bytes in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Census {
    pub(crate) counts: [u64; SORTS.len()],
    /// Within a rank.
    pub(crate) local: Traffic,
    /// To other ranks.
    pub(crate) remote: Traffic,
    /// The chunks that came to each sync.
    pub(crate) loads: BTreeMap<u64, Loads>,
}

/// The chunks that came to a sync.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loads {
    pub(crate) sum_ns: u64,
    pub(crate) heaviest: Option<(u64, ChunkId)>,
}

/// Where the time went, and the events counted unless they are to be left alone: in one pass.
pub(crate) fn gather(trace: &Trace, quick: bool) -> (Spent, Option<Census>) {
    let everything = Selection::default();
    let bins = phases(trace, everything.window(trace));
    let ranks: Vec<_> = trace.ranks.iter().collect();
    if quick || trace.events() == 0 {
        return (spent(trace, &everything, bins), None);
    }
    let from_events = source(&ranks, false) == Source::Events;
    let Read { census, workers, problems } = read(trace, &bins, from_events);
    let mut spent = match from_events {
        true => Spent { bins, source: Source::Events, workers, problems: Vec::new(), coarse: false },
        false => spent(trace, &everything, bins),
    };
    spent.problems = problems;
    (spent, Some(census))
}

/// What one pass found.
struct Read {
    census: Census,
    /// Where time went, if that was asked for.
    workers: Vec<Worker>,
    problems: Vec<Problem>,
}

/// Reads all events once. Takes memory for each worker and sync.
fn read(trace: &Trace, bins: &Bins, with_time: bool) -> Read {
    let ranks: Vec<&RankTrace> = trace.ranks.iter().collect();
    // Events may name any number of syncs: only those on record are worth memory.
    let known: BTreeSet<u64> = trace.syncs.iter().map(|sync| sync.sync).collect();
    let begin = |rank: &RankTrace, worker| (rank.rank, Census::default(), Worker::new(rank.rank, worker));
    let see = |(rank, census, worker): &mut (u32, Census, Worker), events: &[Event]| {
        for event in events {
            census.see(*rank, event, &known);
            if with_time {
                worker.see(bins, event);
            }
        }
    };
    let (found, problems) = streams::fold(&ranks, bins.window, begin, see);
    let (mut census, mut workers) = (Census::default(), Vec::new());
    for (_, one, worker) in found {
        census.merge(one);
        workers.push(worker);
    }
    Read { census, workers, problems }
}

impl Census {
    fn see(&mut self, rank: u32, event: &Event, known: &BTreeSet<u64>) {
        self.counts[sort(&event.what)] += 1;
        match event.what {
            What::Send { rank: to, bytes, .. } => {
                let traffic = if to == rank { &mut self.local } else { &mut self.remote };
                traffic.messages += 1;
                traffic.bytes = traffic.bytes.saturating_add(bytes);
            }
            What::Load { chunk, sync, load_ns, .. } if known.contains(&sync) => {
                let one = Loads { sum_ns: load_ns, heaviest: Some((load_ns, chunk)) };
                self.loads.entry(sync).or_default().merge(one);
            }
            _ => {}
        }
    }

    fn merge(&mut self, other: Census) {
        self.counts.iter_mut().zip(other.counts).for_each(|(sum, count)| *sum += count);
        self.local.merge(other.local);
        self.remote.merge(other.remote);
        for (sync, loads) in other.loads {
            self.loads.entry(sync).or_default().merge(loads);
        }
    }

    /// Handlers, or ranges of iterations.
    pub(crate) fn handled(&self) -> u64 {
        self.counts[0] + self.counts[11]
    }
}

impl Traffic {
    fn merge(&mut self, other: Traffic) {
        self.messages += other.messages;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    /// What it stands for if only one in so many was recorded.
    pub(crate) fn times(self, arrows: u32) -> Traffic {
        let arrows = u64::from(arrows.max(1));
        Traffic { messages: self.messages.saturating_mul(arrows), bytes: self.bytes.saturating_mul(arrows) }
    }
}

impl Loads {
    fn merge(&mut self, other: Loads) {
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.heaviest = self.heaviest.max(other.heaviest);
    }
}
