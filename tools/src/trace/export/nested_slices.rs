//! Groups the events of one worker into *turns*: a slice, together with the points and spans inside it.
//!
//! A trace records the sends of a handler after the handler, and its named spans before or after it. Other tools need
//! nested slices, and each point inside its slice. Memory is bounded by the events of one handler.

use std::collections::VecDeque;

use caribou::trace::{Event, What};
use trace_reader::{Problem, Stream, Trace};

use super::rows::Row;
use crate::trace::analysis::merge::Merge;
use crate::trace::select::Window;

/// Points and spans kept per handler. Further ones are counted and left out.
const INSIDE_MAX: usize = 1 << 18;

/// A turn: a slice of a worker's time with its spans and points, or a point outside of all slices.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NestedSlice {
    /// A handler, a range, idle time, an activity of the runtime, or a departure; or a point.
    pub(super) event: Event,
    /// Spans inside the slice, strictly nested, outer before inner.
    pub(super) spans: Vec<Event>,
    /// Points of the handler in order, all at its end.
    pub(super) points: Vec<Event>,
}

/// The turns of one worker, in order.
pub(super) struct NestedSlices {
    stream: Stream,
    window: Window,
    /// The turn that may still get points and spans.
    open: Option<NestedSlice>,
    /// Spans that came before their handler.
    early: Vec<Event>,
    ready: VecDeque<NestedSlice>,
    /// Number of spans and points that belong to no slice, or were too many.
    left_out: u64,
}

impl NestedSlices {
    /// Yields the turns that begin within the window.
    fn new(stream: Stream, window: Window) -> NestedSlices {
        NestedSlices { stream, window, open: None, early: Vec::new(), ready: VecDeque::new(), left_out: 0 }
    }

    fn take(&mut self, event: Event) {
        let over = self.open.as_ref().is_some_and(|open| event.end_ns > open.event.end_ns);
        match event.what {
            What::Span { .. } => self.span(event),
            What::Handler { .. }
            | What::Range { .. }
            | What::Idle
            | What::Runtime { .. }
            | What::Depart { .. } => {
                self.close();
                let turn = NestedSlice { event, spans: Vec::new(), points: Vec::new() };
                self.open = Some(self.with_early(turn));
            }
            _ if over || !belongs(&event, self.open.as_ref()) => {
                self.close();
                self.ready.push_back(NestedSlice { event, spans: Vec::new(), points: Vec::new() });
            }
            _ => {
                let points = self.open.as_mut().map(|open| &mut open.points);
                match points.filter(|points| points.len() < INSIDE_MAX) {
                    Some(points) => points.push(event),
                    None => self.left_out += 1,
                }
            }
        }
    }

    fn span(&mut self, span: Event) {
        let inside = |open: &&mut NestedSlice| {
            runs_program(&open.event)
                && open.event.begin_ns <= span.begin_ns
                && span.end_ns <= open.event.end_ns
        };
        let spans = self.open.as_mut().filter(inside).map_or(&mut self.early, |open| &mut open.spans);
        if spans.len() < INSIDE_MAX {
            spans.push(span);
        } else {
            self.left_out += 1;
        }
    }

    /// Adds the early spans that lie inside the turn. The others are left out, because no later turn can contain them.
    fn with_early(&mut self, mut turn: NestedSlice) -> NestedSlice {
        let event = turn.event;
        let inside = |span: &Event| {
            event.begin_ns <= span.begin_ns && span.end_ns <= event.end_ns && runs_program(&event)
        };
        let before = self.early.len() as u64;
        turn.spans.extend(self.early.drain(..).filter(inside));
        self.left_out += before - turn.spans.len() as u64;
        turn
    }

    fn close(&mut self) {
        if let Some(mut turn) = self.open.take() {
            nest(&mut turn.spans);
            self.ready.push_back(turn);
        }
    }
}

/// Merges the turns of all workers in order of their begins. In this order a send comes before its handler, so only
/// messages in flight have to be stored. Memory is one block of events per worker.
impl Merge<NestedSlices> {
    pub(super) fn of(trace: &Trace, rows: &[Row], window: Window) -> Merge<NestedSlices> {
        let turns = |row: &Row| {
            let rank = trace.ranks.iter().find(|rank| rank.rank == row.rank);
            let rank = rank.expect("rows are made of the ranks that are there");
            NestedSlices::new(rank.stream_between(row.worker, window.from_ns, window.to_ns), window)
        };
        Merge::new(rows.iter().map(turns).collect(), |turn| turn.event.begin_ns)
    }

    /// Problems so far.
    pub(super) fn problems(&self) -> Vec<Problem> {
        self.sources().iter().flat_map(|turns| turns.stream.problems().to_vec()).collect()
    }

    /// Number of spans and points that belong to no slice, or were too many.
    pub(super) fn left_out(&self) -> u64 {
        self.sources().iter().map(|turns| turns.left_out).sum()
    }
}

impl Iterator for NestedSlices {
    type Item = NestedSlice;

    fn next(&mut self) -> Option<NestedSlice> {
        loop {
            while let Some(turn) = self.ready.pop_front() {
                if (self.window.from_ns..=self.window.to_ns).contains(&turn.event.begin_ns) {
                    return Some(turn);
                }
            }
            match self.stream.next() {
                Some(event) => self.take(event),
                None if self.open.is_some() => self.close(),
                None => {
                    self.left_out += self.early.drain(..).count() as u64;
                    return None;
                }
            }
        }
    }
}

/// Returns whether code of the program runs in the event, so that the program's points belong to it.
fn runs_program(event: &Event) -> bool {
    matches!(event.what, What::Handler { .. } | What::Range { .. })
}

/// Returns whether a point at the end of a turn comes from that turn.
fn belongs(point: &Event, open: Option<&NestedSlice>) -> bool {
    let Some(open) = open else { return false };
    match (point.what, open.event.what) {
        (
            What::Send { chunk, .. }
            | What::Contribute { chunk, .. }
            | What::Mark { chunk, .. }
            | What::Counter { chunk, .. },
            What::Handler { chunk: ran, .. },
        ) => chunk == ran,
        (
            What::PoolSend { .. } | What::Mark { .. } | What::Counter { .. } | What::Send { .. },
            What::Range { .. },
        )
        // A handler that polls is interrupted: its sends until then are recorded at the end of the runtime's slice.
        | (What::Send { .. } | What::Contribute { .. }, What::Runtime { .. }) => true,
        _ => false,
    }
}

/// Sorts spans so that outer ones come first, and cuts off the part of an inner span that lies outside.
fn nest(spans: &mut [Event]) {
    spans.sort_by_key(|span| (span.begin_ns, u64::MAX - span.end_ns));
    let mut ends: Vec<u64> = Vec::new();
    for span in spans {
        ends.retain(|&end_ns| end_ns > span.begin_ns);
        span.end_ns = ends.last().map_or(span.end_ns, |&outer_ns| span.end_ns.min(outer_ns));
        ends.push(span.end_ns);
    }
}

#[cfg(test)]
mod tests {
    use caribou::trace::{ArrayId, ChunkId, NameId};

    use super::*;

    #[test]
    fn what_an_interrupted_handler_sent_belongs_to_the_slice_that_interrupted_it() {
        let chunk = ChunkId { array: ArrayId(0), key: 0 };
        let event = |what| Event { begin_ns: 10, end_ns: 20, what };
        let turn = |what| NestedSlice { event: event(what), spans: Vec::new(), points: Vec::new() };
        let runtime = turn(What::Runtime { part: caribou::trace::Part::Keep, sync: 0 });
        let send = event(What::Send { chunk, to: chunk, rank: 0, number: 1, bytes: 8 });
        assert!(belongs(&send, Some(&runtime)));
        assert!(!belongs(&send, Some(&turn(What::Idle))) && !belongs(&send, None));
    }

    #[test]
    fn spans_that_overlap_are_cut_so_that_they_nest() {
        let chunk = ChunkId { array: ArrayId(0), key: 0 };
        let span = |name, begin_ns, end_ns| {
            let what = What::Span { chunk, name: NameId(name) };
            Event { begin_ns, end_ns, what }
        };
        let mut spans = [span(2, 50, 90), span(1, 0, 60), span(0, 0, 100), span(3, 95, 99), span(4, 55, 58)];
        nest(&mut spans);
        let all: Vec<(u64, u64)> = spans.iter().map(|span| (span.begin_ns, span.end_ns)).collect();
        assert_eq!(all, [(0, 100), (0, 60), (50, 60), (55, 58), (95, 99)]);
    }
}
