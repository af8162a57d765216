//! The events of all workers in the order in which they end.
//!
//! Holds one block of each worker; what cannot be read is left out and told at the end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use caribou::trace::{Event, Problem, RankTrace, Stream, Trace};

/// Events of several workers, by time.
pub(crate) struct Merged<'t> {
    sources: Vec<Source<'t>>,
    /// When the next event of each source ends.
    next: BinaryHeap<Reverse<(u64, usize)>>,
}

struct Source<'t> {
    rank: &'t RankTrace,
    worker: u32,
    stream: Stream,
    event: Option<Event>,
}

impl<'t> Merged<'t> {
    /// All workers of a trace.
    pub(crate) fn new(trace: &'t Trace) -> Merged<'t> {
        Merged::between(&trace.ranks, 0, u64::MAX)
    }

    /// All workers of these ranks, in the blocks that touch this stretch of time.
    pub(crate) fn between(
        ranks: impl IntoIterator<Item = &'t RankTrace>,
        from_ns: u64,
        to_ns: u64,
    ) -> Merged<'t> {
        let workers = ranks.into_iter().flat_map(|rank| (0..rank.workers).map(move |worker| (rank, worker)));
        Merged::of(workers, from_ns, to_ns)
    }

    /// These workers, in the blocks that touch this stretch of time.
    pub(crate) fn of(
        workers: impl IntoIterator<Item = (&'t RankTrace, u32)>,
        from_ns: u64,
        to_ns: u64,
    ) -> Merged<'t> {
        let mut merged = Merged { sources: Vec::new(), next: BinaryHeap::new() };
        for (rank, worker) in workers {
            let stream = rank.stream_between(worker, from_ns, to_ns);
            merged.sources.push(Source { rank, worker, stream, event: None });
            merged.advance(merged.sources.len() - 1);
        }
        merged
    }

    fn advance(&mut self, number: usize) {
        let source = &mut self.sources[number];
        source.event = source.stream.next();
        if let Some(event) = source.event {
            self.next.push(Reverse((event.end_ns, number)));
        }
    }

    /// What could not be read so far.
    pub(crate) fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.sources.iter().flat_map(|source| source.stream.problems())
    }
}

impl<'t> Iterator for Merged<'t> {
    type Item = (&'t RankTrace, u32, Event);

    fn next(&mut self) -> Option<Self::Item> {
        let Reverse((_, number)) = self.next.pop()?;
        let source = &self.sources[number];
        let (rank, worker) = (source.rank, source.worker);
        let event = source.event.expect("a source in the heap has an event");
        self.advance(number);
        Some((rank, worker, event))
    }
}
