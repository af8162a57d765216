//! The events of all workers as one sequence, in the order of their ends.
//!
//! A rank's file has the events of each worker in order. Whoever follows a message or a chunk from rank to rank needs them
//! in one order: this merges them as they are read, with one block a worker in memory. Clocks of different processes agree
//! only so far (`End::clocks`), and so does the order; it does nothing about that.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use caribou::trace::{Event, Problem, RankTrace, Stream, Trace};

use super::select::{Selection, Window};

/// Said where a command needs events and there are none.
pub(crate) const NO_EVENTS: &str = "no events were recorded, only the profile: `caribou trace profile` shows it (CARIBOU_TRACE records events)";

/// Events with where they happened, earliest end first.
pub(crate) struct Merged<'t> {
    sources: Vec<Source<'t>>,
    /// The end of the next event of each source that has one.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    window: Window,
}

/// Where an event happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'t> {
    pub(crate) rank: &'t RankTrace,
    pub(crate) worker: u32,
}

struct Source<'t> {
    place: Place<'t>,
    stream: Stream,
    head: Option<Event>,
}

impl<'t> Merged<'t> {
    /// Events that touch the window, of the workers of these ranks.
    pub(crate) fn new(ranks: impl IntoIterator<Item = &'t RankTrace>, window: Window) -> Self {
        let places =
            ranks.into_iter().flat_map(|rank| (0..rank.workers).map(move |worker| Place { rank, worker }));
        Self::of(places, window)
    }

    /// Events that touch the window, of these workers.
    pub(crate) fn of(places: impl IntoIterator<Item = Place<'t>>, window: Window) -> Self {
        let source = |place: Place<'t>| Source {
            place,
            stream: place.rank.stream_between(place.worker, window.from_ns, window.to_ns),
            head: None,
        };
        let sources = places.into_iter().map(source).collect::<Vec<_>>();
        let mut merged = Self { next: BinaryHeap::with_capacity(sources.len()), sources, window };
        (0..merged.sources.len()).for_each(|number| merged.advance(number));
        merged
    }

    /// All that was selected.
    pub(crate) fn selected(trace: &'t Trace, selection: &Selection) -> Self {
        Self::new(selection.ranks(trace), selection.window(trace))
    }

    /// What could not be read.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        self.sources.iter().flat_map(|source| source.stream.problems().iter().cloned()).collect()
    }

    fn advance(&mut self, number: usize) {
        let Window { from_ns, to_ns } = self.window;
        let source = &mut self.sources[number];
        source.head = source.stream.find(|event| event.end_ns >= from_ns && event.begin_ns <= to_ns);
        if let Some(event) = &source.head {
            self.next.push(Reverse((event.end_ns, number)));
        }
    }
}

impl<'t> Iterator for Merged<'t> {
    type Item = (Place<'t>, Event);

    fn next(&mut self) -> Option<Self::Item> {
        let Reverse((_, number)) = self.next.pop()?;
        let source = &mut self.sources[number];
        let (place, event) =
            (source.place, source.head.take().expect("what is in the heap has a next event"));
        self.advance(number);
        Some((place, event))
    }
}
