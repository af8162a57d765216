//! Passes a trace to a viewer, one [`NestedSlice`] after the other, in order of time per track. The trace is read
//! twice, because only the end of an arrow shows whether the arrow is drawn. The first time finds the arrows, the
//! second time writes everything.

use std::collections::BTreeMap;
use std::io;

use caribou::trace::{ChunkId, Event, What};
use rustc_hash::FxHashSet;
use trace_reader::{RankTrace, Trace};

use super::arrows::{ArrowStart, Arrows};
use super::counters::{busy, of_sample};
use super::names::{ITERATIONS, MIGRATE_IN, MIGRATE_OUT, Names};
use super::nested_slices::NestedSlice;
use super::rows::Row;
use super::viewer::{Arrow, Count, Flows, Point, Slice, Track, Value, Viewer};
use crate::trace::analysis::merge::Merge;
use crate::trace::analysis::sync_effect::began_ns;
use crate::trace::select::Window;

/// Passes a trace to a viewer. Returns the number of arrows that would run backwards in time.
pub(super) fn show(
    trace: &Trace,
    names: &Names,
    rows: &[Row],
    window: Window,
    flows: Flows,
    viewer: &mut dyn Viewer,
) -> io::Result<u64> {
    let mut drawn = Drawn::default();
    once(trace, names, rows, window, flows, (None, &mut drawn))?;
    once(trace, names, rows, window, flows, (Some(&drawn), viewer))
}

/// The existing arrows, by number.
#[derive(Default)]
struct Drawn {
    begin: FxHashSet<u64>,
    /// Arrows that continue from the arrival of a chunk to its next handler.
    pass: FxHashSet<u64>,
}

impl Viewer for Drawn {
    fn slice(&mut self, _: &Slice<'_>) -> io::Result<()> {
        Ok(())
    }

    fn point(&mut self, point: &Point<'_>) -> io::Result<()> {
        match point.arrow {
            Some(Arrow::Begins(id)) => self.begin.insert(id),
            Some(Arrow::Passes(id)) => self.pass.insert(id),
            _ => false,
        };
        Ok(())
    }

    fn count(&mut self, _: &Count<'_>) -> io::Result<()> {
        Ok(())
    }
}

/// Reads the trace once. With `drawn`, passes all to the viewer, with the arrows in `drawn`; without, finds arrows.
fn once(
    trace: &Trace,
    names: &Names,
    rows: &[Row],
    window: Window,
    flows: Flows,
    (drawn, viewer): (Option<&Drawn>, &mut dyn Viewer),
) -> io::Result<u64> {
    let mut show = Show {
        trace,
        names,
        rows,
        flows,
        drawn,
        viewer,
        arrows: Arrows::new(),
        left: vec![0; rows.len()],
        waited: vec![false; rows.len()],
        landed: BTreeMap::new(),
        phase_ends_ns: trace.syncs.iter().map(|sync| sync.at_ns).collect(),
    };
    show.run(window)?;
    let shown = |rank: &&RankTrace| rows.iter().any(|row| row.rank == rank.rank);
    for rank in trace.ranks.iter().filter(shown) {
        show.rank(rank, window)?;
        show.viewer.end_slice()?;
    }
    let mut merged = Merge::of(trace, rows, window);
    for (position, turn) in merged.by_ref() {
        show.turn(position, &turn)?;
        show.viewer.end_slice()?;
    }
    if drawn.is_some() {
        super::warn_left_out(&merged);
    }
    for (chunk, landed) in std::mem::take(&mut show.landed) {
        show.migration(chunk, &landed, Arrow::Ends)?;
    }
    Ok(show.arrows.backwards)
}

/// A chunk that has arrived and has not run since.
#[derive(Clone, Copy)]
struct ArrivedChunk {
    left: ArrowStart,
    position: usize,
    at_ns: u64,
    bytes: u64,
}

struct Show<'a> {
    trace: &'a Trace,
    names: &'a Names,
    rows: &'a [Row],
    flows: Flows,
    drawn: Option<&'a Drawn>,
    viewer: &'a mut dyn Viewer,
    arrows: Arrows,
    /// Number of messages and chunks that left each row.
    left: Vec<u32>,
    /// Whether the last slice of each row was idle time.
    waited: Vec<bool>,
    landed: BTreeMap<ChunkId, ArrivedChunk>,
    phase_ends_ns: Vec<u64>,
}

impl<'a> Show<'a> {
    /// Passes the facts of the run as a whole.
    fn run(&mut self, window: Window) -> io::Result<()> {
        let run = &self.trace.run;
        let text = |text: &str| Value::Text(text.to_owned());
        let arguments = vec![
            ("run_id", text(&run.run_id)),
            ("command", text(&run.arguments.join(" "))),
            ("version", text(&run.version)),
            ("git_hash", text(&run.git_hash)),
            ("lb", text(&run.lb)),
            ("placement", text(&run.placement)),
        ];
        self.viewer.point(&Point { arguments, ..point(Track::Run, window.from_ns, "run") })?;
        let inside = |at_ns: u64| (window.from_ns..=window.to_ns).contains(&at_ns);
        for sync in self.trace.syncs.iter().filter(|sync| inside(began_ns(sync))) {
            let name = format!("LB step {}", sync.sync);
            self.viewer.point(&point(Track::Run, began_ns(sync), &name))?;
            let mut count = |name, unit, at_ns, value| {
                self.viewer.count(&Count { place: Track::Run, name, unit, at_ns, value })
            };
            count("imbalance", "", sync.at_ns, sync.imbalance_before)?;
            count("chunks moved", "chunks", sync.at_ns, sync.moved as f64)?;
        }
        Ok(())
    }

    /// Passes the facts of a rank that need no events.
    fn rank(&mut self, rank: &RankTrace, window: Window) -> io::Result<()> {
        let place = Track::Rank(rank.rank);
        let inside = |at_ns: u64| (window.from_ns..=window.to_ns).contains(&at_ns);
        for sample in rank.samples.iter().filter(|sample| inside(sample.at_ns)) {
            for (name, unit, value) in of_sample(sample) {
                self.viewer.count(&Count { place, name, unit, at_ns: sample.at_ns, value })?;
            }
        }
        for (at_ns, value) in busy(&rank.profiles).into_iter().filter(|(at_ns, _)| inside(*at_ns)) {
            self.viewer.count(&Count { place, name: "busy", unit: "%", at_ns, value })?;
        }
        Ok(())
    }

    fn turn(&mut self, position: usize, turn: &NestedSlice) -> io::Result<()> {
        let (event, row) = (turn.event, self.rows[position]);
        let waited = match event.what {
            What::Handler { .. }
            | What::Idle
            | What::Runtime { .. }
            | What::Depart { .. }
            | What::Range { .. } => std::mem::replace(&mut self.waited[position], event.what == What::Idle),
            _ => false,
        };
        let mut slice = Slice {
            row,
            begin_ns: event.begin_ns,
            end_ns: event.end_ns,
            name: "",
            arguments: Vec::new(),
            cpu_ns: None,
            spans: turn.spans.iter().map(|span| self.span(span)).collect(),
            arrows: Vec::new(),
        };
        match event.what {
            What::Handler { kind, .. } => {
                slice.name = self.names.of(kind);
                slice.cpu_ns = Some(event.cpu_ns());
                self.handler(position, &event, waited, &mut slice)?;
            }
            What::Range { first, count, .. } => {
                slice.name = ITERATIONS;
                slice.cpu_ns = Some(event.cpu_ns());
                slice.arguments = vec![("first", Value::Count(first)), ("count", Value::Count(count))];
            }
            What::Idle => slice.name = "idle",
            What::Runtime { part, sync } => {
                slice.name = part.name();
                slice.arguments = vec![("sync", Value::Count(sync))];
            }
            What::Depart { chunk, rank, bytes } => {
                slice.name = MIGRATE_OUT;
                slice.arguments = vec![
                    ("chunk", self.chunk(chunk)),
                    ("to_rank", Value::Count(u64::from(rank))),
                    ("bytes", Value::Count(bytes)),
                ];
                let left = self.leaves(position, event.begin_ns, bytes)?;
                self.arrows.departed(chunk, rank, left);
            }
            _ => return self.point(position, &event, &event),
        }
        self.viewer.slice(&slice)?;
        turn.points.iter().try_for_each(|point| self.point(position, &event, point))
    }

    /// Adds the arguments of a handler, and the arrows that end in it.
    fn handler(
        &mut self,
        position: usize,
        event: &Event,
        waited: bool,
        slice: &mut Slice<'_>,
    ) -> io::Result<()> {
        let What::Handler { chunk, from, number, .. } = event.what else { return Ok(()) };
        let left = self.arrows.handled(from, number, event.begin_ns);
        let phase = self.phase_ends_ns.partition_point(|&end_ns| end_ns <= event.begin_ns) as u64;
        slice.arguments = vec![
            ("chunk", self.chunk(chunk)),
            ("src_chunk", self.chunk(from)),
            ("phase", Value::Count(phase)),
        ];
        if let Some(left) = left {
            slice.arguments.push(("src_rank", Value::Count(u64::from(self.rows[left.position].rank))));
            slice.arguments.push(("bytes_in", Value::Count(left.bytes)));
        }
        let wanted = self.flows == Flows::All || self.flows == Flows::Waits && waited;
        if let Some(left) = left.filter(|_| wanted) {
            slice.arrows.push(self.begins(left)?);
        }
        if let Some(landed) = self.landed.remove(&chunk) {
            let here = self.rows[position].rank == self.rows[landed.position].rank;
            let head = if here { Arrow::Passes } else { Arrow::Ends };
            let id = self.migration(chunk, &landed, head)?;
            slice.arrows.extend(here.then_some(id));
        }
        Ok(())
    }

    /// Passes a point inside or between slices.
    fn point(&mut self, position: usize, slice: &Event, event: &Event) -> io::Result<()> {
        let row = self.rows[position];
        let at_ns = before_end(slice, event.end_ns);
        let mut point = point(Track::Worker(row), at_ns, "");
        let name;
        match event.what {
            What::Send { chunk, number, bytes, .. } => {
                let left = self.leaves(position, at_ns.min(event.begin_ns), bytes)?;
                self.arrows.sent(chunk, number, left);
                return Ok(());
            }
            What::Arrive { chunk, bytes } => return self.arrive(position, event, chunk, bytes),
            What::Counter { name, value, .. } if value.is_finite() => {
                let (place, name) = (Track::Rank(row.rank), self.names.of(name));
                return self.viewer.count(&Count { place, name, unit: "", at_ns: event.end_ns, value });
            }
            What::Mark { chunk, name } => {
                point.name = self.names.of(name);
                point.arguments = vec![("chunk", self.chunk(chunk))];
            }
            What::Contribute { chunk, number } => {
                point.name = "contribute";
                point.arguments = vec![("chunk", self.chunk(chunk)), ("count", Value::Count(number))];
            }
            What::Dropped { events } => {
                name = format!("dropped {events} events");
                point.name = &name;
                point.dropped = true;
            }
            _ => return Ok(()),
        }
        self.viewer.point(&point)
    }

    fn arrive(&mut self, position: usize, event: &Event, chunk: ChunkId, bytes: u64) -> io::Result<()> {
        let left = self.arrows.arrived(chunk, self.rows[position].rank, event.begin_ns);
        let Some(left) = left.filter(|_| self.flows != Flows::None) else {
            // Chunks that were created here have no departure.
            if bytes == 0 {
                return Ok(());
            }
            let mut point = point(Track::Worker(self.rows[position]), event.begin_ns, MIGRATE_IN);
            point.arguments = vec![("chunk", self.chunk(chunk)), ("bytes", Value::Count(bytes))];
            return self.viewer.point(&point);
        };
        let landed = ArrivedChunk { left, position, at_ns: event.begin_ns, bytes };
        if let Some(drawn) = self.drawn {
            let id = self.number(left);
            let head = if drawn.pass.contains(&id) { Arrow::Passes(id) } else { Arrow::Ends(id) };
            self.arrive_chunk(chunk, &landed, head)?;
        }
        match self.landed.insert(chunk, landed) {
            // The chunk has migrated again without running.
            Some(before) => self.migration(chunk, &before, Arrow::Ends).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Passes a migration, of which the kind of its end is now known. Returns its number.
    fn migration(
        &mut self,
        chunk: ChunkId,
        landed: &ArrivedChunk,
        head: impl Fn(u64) -> Arrow,
    ) -> io::Result<u64> {
        let id = self.begins(landed.left)?;
        if self.drawn.is_none() {
            self.arrive_chunk(chunk, landed, head(id))?;
        }
        Ok(id)
    }

    fn arrive_chunk(&mut self, chunk: ChunkId, landed: &ArrivedChunk, head: Arrow) -> io::Result<()> {
        let mut point = point(Track::Worker(self.rows[landed.position]), landed.at_ns, MIGRATE_IN);
        point.arguments = vec![("chunk", self.chunk(chunk)), ("bytes", Value::Count(landed.bytes))];
        point.arrow = Some(head);
        self.viewer.point(&point)
    }

    /// Counts a departure from a row. If its arrow is drawn, passes the begin of the arrow.
    fn leaves(&mut self, position: usize, at_ns: u64, bytes: u64) -> io::Result<ArrowStart> {
        self.left[position] = self.left[position].wrapping_add(1);
        let left = ArrowStart { position, event: self.left[position], at_ns, bytes };
        if self.drawn.is_some_and(|drawn| drawn.begin.contains(&self.number(left))) {
            self.tail(left)?;
        }
        Ok(left)
    }

    /// Passes the begin of an arrow that is drawn. Returns its number.
    fn begins(&mut self, left: ArrowStart) -> io::Result<u64> {
        if self.drawn.is_none() {
            self.tail(left)?;
        }
        Ok(self.number(left))
    }

    fn tail(&mut self, left: ArrowStart) -> io::Result<()> {
        let mut point = point(Track::Worker(self.rows[left.position]), left.at_ns, "send");
        point.arrow = Some(Arrow::Begins(self.number(left)));
        self.viewer.point(&point)
    }

    /// The row and the number of the departure.
    fn number(&self, left: ArrowStart) -> u64 {
        u64::from(self.rows[left.position].number) << 40 | u64::from(left.event)
    }

    fn span(&self, span: &Event) -> (u64, u64, &'a str) {
        let name = if let What::Span { name, .. } = span.what { self.names.of(name) } else { "" };
        (span.begin_ns, span.end_ns, name)
    }

    fn chunk(&self, chunk: ChunkId) -> Value {
        Value::Text(self.trace.chunk_name(chunk))
    }
}

fn point(place: Track, at_ns: u64, name: &str) -> Point<'_> {
    Point { place, at_ns, name, arguments: Vec::new(), arrow: None, dropped: false }
}

/// For a point at the end of a slice, a time just inside the slice.
fn before_end(slice: &Event, at_ns: u64) -> u64 {
    if at_ns == slice.end_ns && slice.begin_ns < slice.end_ns { at_ns - 1 } else { at_ns }
}
