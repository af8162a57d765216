//! Computes the phases (times between syncs) of a rank for the exports. A phase has the loads of chunks at the sync
//! that ends it, and the messages sent since the previous sync. What happened after the last sync is in no phase. If the
//! trace has no messages, or one in N alone, the messages are those that the ranks reported to the sync. Without such a
//! report, the messages of a trace with one in N are estimates: N times those.
//!
//! A chunk that moved within a phase may have sent on several ranks. All its messages belong to the rank that has its
//! load.
//!
//! Phases are passed on one by one. Memory holds the chunks and syncs of the run, the loads and communicating pairs of
//! one phase, and the pairs whose sender moved within a phase.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use caribou::trace::{ChunkId, Event, RUNTIME, What};
use lb_strategies::balancer::PhaseReport;
use trace_reader::{Problem, RankTrace, Trace};

use super::rows::Row;
use crate::Error;
use crate::trace::analysis::events::{Observer, Scope, WorkerRef, by_worker};
use crate::trace::analysis::merge::Merge;
use crate::trace::open::warn;
use crate::trace::page::plural;
use crate::trace::select::Window;

/// Load of a chunk in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) chunk: ChunkId,
    pub(super) load_ns: u64,
    pub(super) bytes: u64,
}

/// Work and messages of the chunks of one rank between two syncs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Phase {
    /// The sync that ended the phase.
    pub(super) id: u64,
    pub(super) loads: Vec<Load>,
    pub(super) edges: Edges,
    /// Whether the messages are estimates.
    pub(super) is_estimated: bool,
}

/// Messages and bytes.
type Amount = (u64, u64);

/// Messages and bytes, by sender and receiver.
type Edges = BTreeMap<(ChunkId, ChunkId), Amount>;

/// Adds messages from one chunk to another.
fn add(edges: &mut Edges, ends: (ChunkId, ChunkId), (messages, bytes): Amount) {
    let sum = edges.entry(ends).or_default();
    *sum = (sum.0.saturating_add(messages), sum.1.saturating_add(bytes));
}

impl Phase {
    /// The phase with one load for each chunk. A balancing window without a decision has the number of the next
    /// decision, so a phase may consist of several windows. Their loads are added.
    fn joined(mut self) -> Phase {
        self.loads.sort_by_key(|load| load.chunk);
        self.loads.dedup_by(|later, sum| {
            let same = later.chunk == sum.chunk;
            if same {
                (sum.load_ns, sum.bytes) = (sum.load_ns.saturating_add(later.load_ns), later.bytes);
            }
            same
        });
        self
    }

    /// The chunks that have a load in the phase.
    fn chunks(&self) -> BTreeSet<ChunkId> {
        self.loads.iter().map(|load| load.chunk).collect()
    }

    /// Takes the reported messages of the rank's chunks if the trace has none, or has a sample and all windows of the
    /// phase have reports. The report of a sync is `None` unless the run recorded it.
    fn complete(mut self, trace: &Trace) -> Phase {
        // Syncs are in the order of their numbers, and edges in the order of their senders.
        let earlier = trace.syncs.partition_point(|sync| sync.sync < self.id);
        let report = trace.syncs.get(earlier).filter(|sync| sync.sync == self.id);
        let report = report.and_then(|sync| sync.reported.as_deref());
        let all = |report: &'_ PhaseReport| {
            report.undecided.iter().chain([report]).all(|window| !window.edges.is_empty())
        };
        let is_sample = weight(trace) > 1;
        if let Some(report) = report.filter(|report| self.edges.is_empty() || is_sample && all(report)) {
            self.edges.clear();
            let chunks = self.chunks();
            let lists = report.undecided.iter().chain([report]).map(|window| &window.edges.list);
            for (list, &chunk) in lists.flat_map(|list| chunks.iter().map(move |chunk| (list, chunk))) {
                let first = list.partition_point(|edge| edge.from < chunk);
                for edge in list[first..].iter().take_while(|edge| edge.from == chunk) {
                    add(&mut self.edges, (edge.from, edge.to), (edge.messages, edge.bytes));
                }
            }
        } else {
            self.is_estimated = is_sample && !self.edges.is_empty();
        }
        self
    }
}

/// Number of messages that each recorded message represents.
fn weight(trace: &Trace) -> u64 {
    u64::from(trace.run.arrows.max(1))
}

/// Prints that the messages are estimates.
pub(super) fn say_estimated(trace: &Trace, out: &mut dyn Write) -> Result<(), Error> {
    let one_in = weight(trace);
    Ok(writeln!(
        out,
        "one in {one_in} messages has its send recorded: messages and bytes are {one_in} times those, estimates"
    )?)
}

/// Prints that phases were left out, if there were any.
pub(super) fn say_partial(left_out: usize, out: &mut dyn Write) -> Result<(), Error> {
    if left_out > 0 {
        let phases = plural(left_out, "phase");
        writeln!(
            out,
            "left out at the end: {phases} without loads of some chunks, because the run was cut off or events were dropped"
        )?;
    }
    Ok(())
}

/// The error of a trace that has no load of any chunk, with the reason.
pub(super) fn no_loads(trace: &Trace) -> Error {
    let filter = &trace.run.filter;
    // Records of older versions have no filter.
    let keeps_chunks = filter.is_empty() || filter.split(',').any(|word| matches!(word, "all" | "chunks"));
    let mut samples = trace.ranks.iter().flat_map(|rank| &rank.samples);
    let why = if !keeps_chunks {
        format!(
            "CARIBOU_TRACE_FILTER was `{filter}`, without `chunks`; -messages keeps them and leaves out sends"
        )
    } else if trace.syncs.is_empty() && samples.all(|sample| sample.sync.is_none()) {
        "the run had no sync, so no phase ended".into()
    } else {
        "no chunk came to a recorded sync".into()
    };
    Error::Usage(format!("the trace has no loads of chunks: {why}"))
}

/// The chunks and phases of a run.
#[derive(Debug)]
pub(super) struct RunPhases {
    window: Window,
    /// Time and rank of the first event of each chunk.
    pub(super) homes: BTreeMap<ChunkId, (u64, u32)>,
    /// The syncs in the window, with the number of loads in their phases.
    pub(super) phases: BTreeMap<u64, u64>,
    /// Whether the trace has a load, also outside of the window.
    pub(super) has_loads: bool,
}

impl RunPhases {
    /// Reads the whole trace.
    pub(super) fn new(trace: &Trace, window: Window) -> RunPhases {
        let mut known =
            RunPhases { window, homes: BTreeMap::new(), phases: BTreeMap::new(), has_loads: false };
        warn(&by_worker(&Scope::all(trace), &mut [&mut known]));
        known
    }

    /// Leaves out the phases after the last whole one: a run that was cut off, or a trace that dropped events, has no loads
    /// of some chunks in them. Returns how many there were. A phase is whole if each chunk has a load in it for each of
    /// its windows. If no phase is, some chunks come to no sync, and all phases stay.
    pub(super) fn leave_out_partial(&mut self, trace: &Trace) -> usize {
        let chunks: BTreeMap<u64, u64> = trace
            .syncs
            .iter()
            .map(|sync| (sync.sync, sync.chunks_per_rank.iter().copied().map(u64::from).sum()))
            .collect();
        let is_whole = |(id, loads): (&u64, &u64)| {
            chunks.get(id).is_some_and(|&chunks| chunks > 0 && loads.is_multiple_of(chunks))
        };
        let Some(last) = self.phases.iter().rev().find(|&(id, loads)| is_whole((id, loads))) else {
            return 0;
        };
        let next = last.0 + 1;
        self.phases.split_off(&next).len()
    }

    fn seen(&mut self, chunk: ChunkId, at_ns: u64, rank: u32) {
        let first = self.homes.entry(chunk).or_insert((at_ns, rank));
        *first = (*first).min((at_ns, rank));
    }
}

impl Observer<'_> for RunPhases {
    fn see(&mut self, place: WorkerRef<'_>, event: &Event) {
        let rank = place.rank.rank;
        match event.what {
            What::Arrive { chunk, .. } => self.seen(chunk, event.begin_ns, rank),
            What::Load { chunk, sync, .. } => {
                self.seen(chunk, event.begin_ns, rank);
                self.has_loads = true;
                if (self.window.from_ns..=self.window.to_ns).contains(&event.begin_ns) {
                    *self.phases.entry(sync).or_default() += 1;
                }
            }
            What::Send { chunk, to, rank: to_rank, .. } => {
                self.seen(chunk, event.begin_ns, rank);
                self.seen(to, event.begin_ns, to_rank);
            }
            _ => {}
        }
    }
}

/// The messages of chunks that moved after they had sent, by phase and sender. No rank that they were sent on has the
/// load of their sender.
#[derive(Debug, Default)]
pub(super) struct Strays(BTreeMap<(u64, ChunkId), Vec<(ChunkId, Amount)>>);

impl Strays {
    /// Reads the whole trace.
    pub(super) fn new(trace: &Trace, window: Window) -> Result<Strays, Error> {
        let mut strays = Strays::default();
        for rank in &trace.ranks {
            // Whoever visits the phases reports the problems.
            read(trace, rank, window, |phase| {
                let chunks = phase.chunks();
                for ((from, to), amount) in phase.edges {
                    if !chunks.contains(&from) {
                        strays.0.entry((phase.id, from)).or_default().push((to, amount));
                    }
                }
                Ok(())
            })?;
        }
        Ok(strays)
    }

    /// The phase with all messages of those chunks that have a load in it, and with no others.
    fn bring_home(&mut self, mut phase: Phase) -> Phase {
        let chunks = phase.chunks();
        phase.edges.retain(|(from, _), _| chunks.contains(from));
        for from in chunks {
            for (to, amount) in self.0.remove(&(phase.id, from)).into_iter().flatten() {
                add(&mut phase.edges, (from, to), amount);
            }
        }
        phase
    }
}

/// Passes the phases of a rank to `visit`, in order of their syncs. Takes the messages that belong to them from
/// `strays`.
pub(super) fn for_each(
    trace: &Trace,
    rank: &RankTrace,
    window: Window,
    strays: &mut Strays,
    mut visit: impl FnMut(Phase) -> Result<(), Error>,
) -> Result<(), Error> {
    let problems = read(trace, rank, window, |phase| visit(strays.bring_home(phase).complete(trace)))?;
    warn(&problems);
    Ok(())
}

/// Passes the phases of a rank to `visit`, with the messages that were sent on the rank. Returns what could not be read.
fn read(
    trace: &Trace,
    rank: &RankTrace,
    window: Window,
    mut visit: impl FnMut(Phase) -> Result<(), Error>,
) -> Result<Vec<Problem>, Error> {
    let mut visit = |phase: Phase| visit(phase.joined());
    let row = |worker| Row { number: worker, rank: rank.rank, worker };
    let rows: Vec<Row> = (0..rank.workers).map(row).collect();
    let mut open: Option<Phase> = None;
    let (mut edges, weight) = (Edges::new(), weight(trace));
    let mut merged = Merge::of(trace, &rows, window);
    for (_, turn) in merged.by_ref() {
        for event in [turn.event].iter().chain(&turn.points) {
            match event.what {
                What::Send { chunk, to, bytes, .. } if to != RUNTIME => {
                    add(&mut edges, (chunk, to), (weight, bytes.saturating_mul(weight)));
                }
                What::Load { chunk, sync, load_ns, bytes } => {
                    let mut phase = match open.take() {
                        Some(phase) if phase.id == sync => phase,
                        before => {
                            before.map_or(Ok(()), &mut visit)?;
                            Phase { id: sync, ..Phase::default() }
                        }
                    };
                    let sent = std::mem::take(&mut edges);
                    sent.into_iter().for_each(|(ends, amount)| add(&mut phase.edges, ends, amount));
                    open.insert(phase).loads.push(Load { chunk, load_ns, bytes });
                }
                _ => {}
            }
        }
    }
    open.map_or(Ok(()), visit)?;
    Ok(merged.problems())
}
