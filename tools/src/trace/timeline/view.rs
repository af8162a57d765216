//! Assigns events to rows of a timeline, and classifies them.

use std::collections::BTreeMap;

use caribou::trace::{ChunkId, Event, NameId, RUNTIME, What};
use rustc_hash::FxHashMap;
use trace_reader::Trace;

use super::super::analysis::events::{WorkerName, WorkerRef};
use super::super::chunks::is_called;
use super::super::select::Selection;

/// Largest number of rows of workers.
const WORKERS_MAX: usize = 512;
/// Largest number of rows of chunks.
const CHUNKS_MAX: usize = 100;

/// Class of a slice in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    Kind(NameId),
    Iterations,
    /// In the row of a chunk: the chunk ran on this rank.
    Rank(u32),
    Moving,
    Runtime,
    Idle,
    Lost,
}

/// A slice in a row, times in ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    pub(super) row: usize,
    pub(super) class: Class,
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
    /// Time at the end of the slice that was not CPU time.
    pub(super) lost_ns: u64,
}

/// The rows of a timeline.
pub(super) enum View {
    Workers {
        rows: BTreeMap<WorkerName, usize>,
        left_out: u64,
    },
    Chunks {
        wanted: Vec<String>,
        rows: Vec<ChunkId>,
        /// The row of each chunk that has been seen; none for chunks without a row.
        known: FxHashMap<ChunkId, Option<usize>>,
        left_out: u64,
    },
}

impl Class {
    pub(super) fn is_work(&self) -> bool {
        matches!(self, Class::Kind(_) | Class::Iterations | Class::Rank(_))
    }

    pub(super) fn name(self, trace: &Trace) -> String {
        match self {
            Class::Kind(kind) => trace.name(kind),
            Class::Iterations => "iterations".into(),
            Class::Rank(rank) => format!("on rank {rank}"),
            Class::Moving => "moving a chunk".into(),
            Class::Runtime => "runtime".into(),
            Class::Idle => "idle".into(),
            Class::Lost => "lost".into(),
        }
    }
}

impl View {
    /// One row per chunk of these names. Without names, one row per selected worker.
    pub(super) fn new(trace: &Trace, selection: &Selection, chunks: &[String]) -> View {
        if !chunks.is_empty() {
            let wanted = chunks.to_vec();
            return View::Chunks { wanted, rows: Vec::new(), known: FxHashMap::default(), left_out: 0 };
        }
        let workers = selection
            .ranks(trace)
            .flat_map(|rank| (0..rank.workers).map(move |worker| WorkerName { rank: rank.rank, worker }))
            .collect::<Vec<_>>();
        let rows = workers.iter().copied().take(WORKERS_MAX).zip(0..).collect::<BTreeMap<_, _>>();
        View::Workers { left_out: (workers.len() - rows.len()) as u64, rows }
    }

    /// Removes the workers that have no row.
    pub(super) fn places<'t>(&self, mut places: Vec<WorkerRef<'t>>) -> Vec<WorkerRef<'t>> {
        if let View::Workers { rows, .. } = self {
            places.retain(|place| rows.contains_key(&place.name()));
        }
        places
    }

    /// Number of rows so far.
    pub(super) fn rows(&self) -> usize {
        match self {
            View::Workers { rows, .. } => rows.len(),
            View::Chunks { rows, .. } => rows.len(),
        }
    }

    /// The rows in display order.
    pub(super) fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.rows()).collect();
        if let View::Chunks { rows, .. } = self {
            order.sort_by_key(|&row| rows[row]);
        }
        order
    }

    pub(super) fn name(&self, trace: &Trace, row: usize) -> String {
        match self {
            View::Workers { rows, .. } => {
                let Some((worker, _)) = rows.iter().find(|&(_, &number)| number == row) else {
                    return String::new();
                };
                let several = trace.ranks.iter().any(|other| other.rank == worker.rank && other.workers > 1);
                if several { format!("rank {worker}") } else { format!("rank {}", worker.rank) }
            }
            View::Chunks { rows, .. } => trace.chunk_name(rows[row]),
        }
    }

    /// The slice of this event in its row; none if the event takes no time.
    pub(super) fn slice(&mut self, trace: &Trace, place: WorkerRef<'_>, event: &Event) -> Option<Slice> {
        let by_chunk = matches!(self, View::Chunks { .. });
        let (class, lost_ns) = match event.what {
            What::Handler { lost_ns, .. } if by_chunk => (Class::Rank(place.rank.rank), lost_ns),
            What::Handler { kind, lost_ns, .. } => (Class::Kind(kind), lost_ns),
            What::Depart { .. } => (Class::Moving, 0),
            What::Range { lost_ns, .. } => (Class::Iterations, lost_ns),
            What::Runtime { .. } => (Class::Runtime, 0),
            What::Idle => (Class::Idle, 0),
            _ => return None,
        };
        let row = self.row(trace, place, event)?;
        Some(Slice { row, class, begin_ns: event.begin_ns, end_ns: event.end_ns, lost_ns })
    }

    /// The row of this event.
    pub(super) fn row(&mut self, trace: &Trace, place: WorkerRef<'_>, event: &Event) -> Option<usize> {
        if let View::Workers { rows, .. } = self {
            return rows.get(&place.name()).copied();
        }
        self.row_of_chunk(trace, chunk_of(&event.what)?)
    }

    /// The row of one end of a message: of the worker, or of the chunk.
    pub(super) fn known_row(&self, worker: WorkerName, chunk: ChunkId) -> Option<usize> {
        match self {
            View::Workers { rows, .. } => rows.get(&worker).copied(),
            View::Chunks { known, .. } => known.get(&chunk).copied().flatten(),
        }
    }

    /// A chunk that has events, selected or not.
    pub(super) fn any_chunk(&self) -> Option<ChunkId> {
        match self {
            View::Workers { .. } => None,
            View::Chunks { known, .. } => known.keys().copied().filter(|&chunk| chunk != RUNTIME).min(),
        }
    }

    fn row_of_chunk(&mut self, trace: &Trace, chunk: ChunkId) -> Option<usize> {
        let View::Chunks { wanted, rows, known, left_out } = self else { return None };
        if let Some(&row) = known.get(&chunk) {
            return row;
        }
        let asked_for = wanted.iter().any(|name| is_called(trace, chunk, name));
        let row = (asked_for && rows.len() < CHUNKS_MAX).then_some(rows.len());
        *left_out += u64::from(asked_for && row.is_none());
        if row.is_some() {
            rows.push(chunk);
        }
        known.insert(chunk, row);
        row
    }

    /// A note if there are too many workers or chunks for rows.
    pub(super) fn left_out(&self) -> Option<String> {
        match self {
            View::Workers { left_out, .. } if *left_out > 0 => {
                Some(format!("{left_out} more workers: --rank chooses among them"))
            }
            View::Chunks { left_out, .. } if *left_out > 0 => {
                Some(format!("{left_out} more chunks have this name: choose single ones"))
            }
            _ => None,
        }
    }
}

fn chunk_of(what: &What) -> Option<ChunkId> {
    match *what {
        What::Handler { chunk, .. }
        | What::Depart { chunk, .. }
        | What::Mark { chunk, .. }
        | What::Span { chunk, .. } => Some(chunk),
        _ => None,
    }
}
