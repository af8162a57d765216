//! Collects the slices in a span of time, ordered by their ends, each with the slices for which it may have waited.

use caribou::trace::{Activity, ChunkId, Event, NameId, RUNTIME, What};
use rustc_hash::FxHashMap;
use trace_reader::Trace;

use crate::trace::analysis::events::{Observer, WorkerName, WorkerRef};
use crate::trace::analysis::messages::{IN_FLIGHT_MAX, MatchResult, Matcher};
use crate::trace::select::Window;

/// Index of a slice in [`Slices::all`].
pub(super) type Number = u32;

/// A handler, a range of iterations, or an activity of the runtime.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
    pub(super) lost_ns: u64,
    pub(super) worker: WorkerName,
    pub(super) activity: Activity,
    /// Its chunk, as an index in [`Slices::chunks`].
    pub(super) chunk: Option<u32>,
    /// The previous slice of the same worker.
    pub(super) on_worker: Option<Number>,
    /// The previous slice of the same chunk.
    pub(super) of_chunk: Option<Number>,
    /// The slice that sent its message.
    pub(super) sender: Option<Number>,
    /// Whether the runtime sent its message.
    pub(super) from_runtime: bool,
    /// Time at which its worker woke, if the worker was idle just before the slice.
    pub(super) woke_ns: Option<u64>,
}

impl Slice {
    /// Returns whether it is work of the program and not of the runtime.
    pub(super) fn is_work(&self) -> bool {
        matches!(self.activity, Activity::Kind(_) | Activity::Iterations)
    }

    pub(super) fn cpu_ns(&self) -> u64 {
        (self.end_ns - self.begin_ns).saturating_sub(self.lost_ns)
    }
}

/// Slices, and what the dependences between them need.
#[derive(Default)]
pub(super) struct Slices {
    /// Ordered by their ends.
    pub(super) all: Vec<Slice>,
    /// Activities of the runtime.
    pub(super) parts: Vec<Number>,
    /// Handlers that contributed to a reduction.
    pub(super) contributors: Vec<Number>,
    /// Messages without a recorded send.
    pub(super) senders_unknown: u64,
    /// Messages that another worker handled before the handler that sent them had ended.
    pub(super) senders_later: u64,
    /// Handlers of multicasts and broadcasts. Their sends are never recorded.
    pub(super) sent_to_many: u64,
    /// Kinds of handlers `start` and `resume` of all arrays. The runtime's other messages are results of reductions.
    pub(super) starts: Vec<Activity>,
    pub(super) resumes: Vec<Activity>,
    chunks: Vec<ChunkId>,
}

/// State of one worker.
#[derive(Clone, Copy, Default)]
struct Lane {
    last: Option<Number>,
    woke_ns: Option<u64>,
}

/// Collects [`Slices`] from events in order of time.
pub(crate) struct Reading {
    window: Window,
    pub(super) slices: Slices,
    lanes: FxHashMap<WorkerName, Lane>,
    numbers: FxHashMap<ChunkId, u32>,
    of_chunk: Vec<Option<Number>>,
    /// Sends of messages in flight, and handlers before their send. No path leads to a later slice.
    messages: Matcher<Number, ()>,
}

impl Slices {
    pub(super) fn chunk_name(&self, trace: &Trace, chunk: u32) -> String {
        trace.chunk_name(self.chunks[chunk as usize])
    }

    /// The last of the slices `of` that ended by then.
    pub(super) fn last_by(&self, of: &[Number], ns: u64) -> Option<Number> {
        let after = of.partition_point(|&number| self.all[number as usize].end_ns <= ns);
        after.checked_sub(1).map(|place| of[place])
    }

    /// The last of all slices that ended by then.
    pub(super) fn last_of_all_by(&self, ns: u64) -> Option<Number> {
        let after = self.all.partition_point(|slice| slice.end_ns <= ns);
        after.checked_sub(1).map(|place| place as Number)
    }
}

impl Reading {
    /// Collects slices that end in the window.
    pub(crate) fn new(trace: &Trace, window: Window) -> Reading {
        let named = |text: &str| {
            let names = (0..).map(NameId).zip(&trace.names);
            let named = names.filter(|(_, name)| name.array.is_some() && name.text == text);
            named.map(|(number, _)| Activity::Kind(number)).collect()
        };
        let slices = Slices { starts: named("start"), resumes: named("resume"), ..Slices::default() };
        Reading {
            window,
            slices,
            lanes: FxHashMap::default(),
            numbers: FxHashMap::default(),
            of_chunk: Vec::new(),
            messages: Matcher::new(IN_FLIGHT_MAX, IN_FLIGHT_MAX),
        }
    }

    /// Returns whether there are more than `events_max` slices, or more than [`Number`] can count.
    pub(super) fn is_over(&self, events_max: usize) -> bool {
        self.slices.all.len() > events_max.min(Number::MAX as usize - 1)
    }
}

impl Observer<'_> for Reading {
    fn see(&mut self, place: WorkerRef<'_>, event: &Event) {
        if (self.window.from_ns..=self.window.to_ns).contains(&event.end_ns) {
            self.event(place.name(), event);
        }
    }
}

impl Reading {
    fn event(&mut self, worker: WorkerName, event: &Event) {
        match event.what {
            What::Idle => self.lanes.entry(worker).or_default().woke_ns = Some(event.end_ns),
            What::Handler { chunk, kind, from, number, lost_ns } => {
                let chunk = self.chunk(chunk);
                let from_runtime = from == RUNTIME;
                let send = self.messages.handled(from, number, ());
                self.slices.senders_unknown +=
                    u64::from(matches!(send, MatchResult::Pending | MatchResult::Duplicate));
                self.slices.sent_to_many += u64::from(!from_runtime && send == MatchResult::Unnamed);
                let sender = send.other();
                let slice = Slice { lost_ns, chunk: Some(chunk), sender, from_runtime, ..empty(event) };
                self.push(worker, Slice { activity: Activity::Kind(kind), ..slice });
            }
            What::Range { lost_ns, .. } => {
                self.push(worker, Slice { lost_ns, activity: Activity::Iterations, ..empty(event) });
            }
            What::Runtime { part, .. } => {
                let number = self.push(worker, Slice { activity: Activity::Runtime(part), ..empty(event) });
                self.slices.parts.push(number);
            }
            What::Depart { chunk, .. } => {
                let chunk = Some(self.chunk(chunk));
                let number = self.push(worker, Slice { chunk, ..empty(event) });
                self.slices.parts.push(number);
            }
            What::Send { chunk, number, .. } => {
                if let Some(last) = self.lanes.get(&worker).and_then(|lane| lane.last)
                    && let MatchResult::Matched(()) = self.messages.sent(chunk, number, last)
                {
                    self.slices.senders_unknown -= 1;
                    self.slices.senders_later += 1;
                }
            }
            What::Contribute { .. } => {
                let last = self.lanes.get(&worker).and_then(|lane| lane.last);
                if let Some(last) = last.filter(|last| self.slices.contributors.last() < Some(last)) {
                    self.slices.contributors.push(last);
                }
            }
            _ => {}
        }
    }

    fn chunk(&mut self, chunk: ChunkId) -> u32 {
        let next = self.slices.chunks.len() as u32;
        let number = *self.numbers.entry(chunk).or_insert(next);
        if number == next {
            self.slices.chunks.push(chunk);
            self.of_chunk.push(None);
        }
        number
    }

    fn push(&mut self, worker: WorkerName, mut slice: Slice) -> Number {
        let number = self.slices.all.len() as Number;
        let lane = self.lanes.entry(worker).or_default();
        (slice.worker, slice.on_worker, slice.woke_ns) = (worker, lane.last, lane.woke_ns);
        *lane = Lane { last: Some(number), woke_ns: None };
        if let Some(chunk) = slice.chunk {
            slice.of_chunk = self.of_chunk[chunk as usize].replace(number);
        }
        self.slices.all.push(slice);
        number
    }
}

/// A slice of the event. By default it is the departure of a chunk.
fn empty(event: &Event) -> Slice {
    Slice {
        begin_ns: event.begin_ns,
        end_ns: event.end_ns,
        lost_ns: 0,
        worker: WorkerName { rank: 0, worker: 0 },
        activity: Activity::Runtime(caribou::trace::Part::Migrate),
        chunk: None,
        on_worker: None,
        of_chunk: None,
        sender: None,
        from_runtime: false,
        woke_ns: None,
    }
}
