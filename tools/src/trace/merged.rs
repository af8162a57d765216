//! The events of a stretch of time, of all workers as one sequence, with where they happened.
//!
//! [`merge`](super::merge) with what commands choose from: ranks, workers, a window. Clocks of different processes agree
//! only so far (`End::clocks`), and so does the order; it does nothing about that.

use caribou::trace::{Event, Problem, RankTrace, Trace};

use super::merge;
use super::select::{Selection, Window};

/// Said where a command needs events and there are none.
pub(crate) const NO_EVENTS: &str = "no events were recorded, only the profile: `caribou trace profile` shows it (CARIBOU_TRACE records events)";

/// Events with where they happened, earliest end first.
pub(crate) struct Merged<'t> {
    events: merge::Merged<'t>,
    window: Window,
}

/// Where an event happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'t> {
    pub(crate) rank: &'t RankTrace,
    pub(crate) worker: u32,
}

impl<'t> Merged<'t> {
    /// Events that touch the window, of the workers of these ranks.
    pub(crate) fn new(ranks: impl IntoIterator<Item = &'t RankTrace>, window: Window) -> Self {
        Self { events: merge::Merged::between(ranks, window.from_ns, window.to_ns), window }
    }

    /// Events that touch the window, of these workers.
    pub(crate) fn of(places: impl IntoIterator<Item = Place<'t>>, window: Window) -> Self {
        let workers = places.into_iter().map(|Place { rank, worker }| (rank, worker));
        Self { events: merge::Merged::of(workers, window.from_ns, window.to_ns), window }
    }

    /// All that was selected.
    pub(crate) fn selected(trace: &'t Trace, selection: &Selection) -> Self {
        Self::new(selection.ranks(trace), selection.window(trace))
    }

    /// What could not be read.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        self.events.problems().cloned().collect()
    }
}

impl<'t> Iterator for Merged<'t> {
    type Item = (Place<'t>, Event);

    fn next(&mut self) -> Option<Self::Item> {
        let Window { from_ns, to_ns } = self.window;
        let touches = |(_, _, event): &(_, _, Event)| event.end_ns >= from_ns && event.begin_ns <= to_ns;
        let (rank, worker, event) = self.events.find(touches)?;
        Some((Place { rank, worker }, event))
    }
}
