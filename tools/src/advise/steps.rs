//! Finds the steps of a recorded run: what each chunk computed between two exchanges of messages.
//!
//! A chunk is on step 0 at first. A message that was sent on step s brings its receiver to step s + 1 at least. So chunks
//! need no common counter, and programs of several kinds of chunks that answer each other have steps too. Messages of
//! small arrays, such as collectors of results, count nothing.
//!
//! The trace has the messages of a handler after the handlers of deferred messages that followed at once. Deferred
//! messages belong to the next step, so messages count from the step of the first handler of such a row. Of two messages
//! to the same chunk in a row, the second is of the next step.

use std::collections::BTreeMap;

use caribou::trace::{ArrayId, ChunkId, Event, Part, RUNTIME, What};
use rustc_hash::FxHashMap;

use crate::trace::analysis::events::{Observer, WorkerRef};

/// Smallest part of the CPU time of all chunks with which an array is replayed.
const ARRAY_MIN: f64 = 0.01;
/// Number of values of which a median or a low quantile is computed.
const KEPT_MAX: usize = 100_000;
/// A handler that lost less was hardly interrupted by another process, ns.
const TURN_MIN_NS: u64 = 100_000;
/// A piece of the runtime's own work that took longer was interrupted, ns.
const WHOLE_NS: u64 = 50_000;

/// CPU time of chunks, by chunk and by array.
#[derive(Debug, Default)]
pub(super) struct Totals {
    by_chunk: BTreeMap<ChunkId, u64>,
}

impl Totals {
    /// The chunks of all arrays that compute a notable part, in order of their arrays and keys.
    pub(super) fn chunks(&self) -> Vec<ChunkId> {
        let mut by_array = BTreeMap::<ArrayId, u64>::new();
        for (chunk, ns) in &self.by_chunk {
            *by_array.entry(chunk.array).or_default() += ns;
        }
        let least = ARRAY_MIN * by_array.values().sum::<u64>() as f64;
        let is_main = |chunk: &&ChunkId| by_array[&chunk.array] as f64 > least;
        self.by_chunk.keys().filter(is_main).copied().collect()
    }

    /// The part of the CPU time of all chunks that these chunks have.
    pub(super) fn part_of(&self, chunks: &[ChunkId]) -> f64 {
        let all: u64 = self.by_chunk.values().sum();
        let these: u64 = chunks.iter().filter_map(|chunk| self.by_chunk.get(chunk)).sum();
        if all > 0 { these as f64 / all as f64 } else { 0.0 }
    }
}

impl Observer<'_> for Totals {
    fn see(&mut self, _: WorkerRef<'_>, event: &Event) {
        if let What::Handler { chunk, .. } = event.what {
            *self.by_chunk.entry(chunk).or_default() += event.cpu_ns();
        }
    }
}

/// The state of one chunk while the events are read.
#[derive(Clone, Debug, Default)]
struct Progress {
    /// The step of its last handler.
    step: usize,
    /// CPU time of the handlers of this step, of the longest of them, and their number.
    sum_ns: u64,
    longest_ns: u64,
    handlers: u64,
    /// The step of the first handler of a row, and the end of its last handler.
    row_step: usize,
    row_end_ns: u64,
    /// By receiver, the number of messages of the row so far.
    sent_to: BTreeMap<u32, usize>,
}

/// A message that was sent and not yet handled.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    step: usize,
    sent_ns: u64,
    crosses: bool,
}

/// Messages from one chunk to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

/// The steps of a run. Its events must be seen in the order of time.
#[derive(Debug)]
pub(super) struct Steps {
    places: FxHashMap<ChunkId, u32>,
    /// By rank, the speed of its vCPUs relative to the fastest.
    speeds: Vec<f64>,
    /// Number of steps that are kept.
    steps_max: usize,
    progress: Vec<Progress>,
    in_flight: FxHashMap<(u32, u32), InFlight>,
    /// By step and chunk, CPU time on the fastest vCPU, ns.
    pub(super) work: Vec<Vec<f32>>,
    /// By step, the end of its last handler.
    pub(super) ends_ns: Vec<u64>,
    /// Begin of the first handler.
    pub(super) begin_ns: u64,
    /// By chunk, the rank of its first handler.
    pub(super) homes: Vec<Option<u32>>,
    /// By sender and receiver, the messages of the kept steps.
    pub(super) traffic: BTreeMap<(u32, u32), Traffic>,
    /// True if the run has more steps than are kept.
    pub(super) is_cut: bool,
    /// Number of steps of the whole run, and of its messages.
    pub(super) all_steps: usize,
    all_messages: u64,
    /// End of the last handler of the whole run.
    last_end_ns: u64,
    /// Times from the sending of messages to other ranks to their handlers, ns.
    transits_ns: Vec<u64>,
    /// CPU times of a message beside the longest of its step, ns.
    message_ns: Vec<u64>,
    /// By rank, over the whole run: CPU time of chunks, of the runtime's own work for messages, lost time and idle time, ns.
    pub(super) ranks: Vec<RankTimes>,
    state: Traffic,
    departures_ns: u64,
    /// Times for which others had the vCPU in the middle of a handler, ns.
    turns_ns: Vec<u64>,
}

/// What the workers of a rank spent their time on, ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RankTimes {
    pub(super) chunks: u64,
    pub(super) keep: u64,
    pub(super) lost: u64,
    pub(super) idle: u64,
    /// Writing the trace.
    pub(super) flush: u64,
}

impl Steps {
    /// Steps of these chunks, of which `cells_max` costs are kept.
    pub(super) fn new(chunks: &[ChunkId], speeds: Vec<f64>, cells_max: usize) -> Steps {
        Steps {
            places: chunks.iter().copied().zip(0..).collect(),
            steps_max: (cells_max / chunks.len().max(1)).max(1),
            progress: vec![Progress::default(); chunks.len()],
            in_flight: FxHashMap::default(),
            work: Vec::new(),
            ends_ns: Vec::new(),
            begin_ns: u64::MAX,
            homes: vec![None; chunks.len()],
            traffic: BTreeMap::new(),
            is_cut: false,
            all_steps: 0,
            all_messages: 0,
            last_end_ns: 0,
            transits_ns: Vec::new(),
            message_ns: Vec::new(),
            ranks: vec![RankTimes::default(); speeds.len()],
            speeds,
            state: Traffic::default(),
            departures_ns: 0,
            turns_ns: Vec::new(),
        }
    }

    /// The time between sending and handling that messages to other ranks need at least, ns.
    pub(super) fn latency_ns(&mut self) -> Option<u64> {
        quantile(&mut self.transits_ns, 0.1)
    }

    /// The CPU time of handling a message that completes no step, ns.
    pub(super) fn message_ns(&mut self) -> Option<u64> {
        quantile(&mut self.message_ns, 0.5)
    }

    /// CPU time of the runtime to receive and to defer messages, in the mean of all messages, ns.
    pub(super) fn keep_ns(&self) -> f64 {
        let keep: u64 = self.ranks.iter().map(|times| times.keep).sum();
        keep as f64 / self.all_messages.max(1) as f64
    }

    /// Time from the first handler to the end of the last one, also of steps that are not kept, ns.
    pub(super) fn whole_ns(&self) -> u64 {
        self.last_end_ns.saturating_sub(self.begin_ns)
    }

    /// The usual time for which others had the vCPU before the worker had it again, ns.
    pub(super) fn turn_ns(&mut self) -> Option<u64> {
        quantile(&mut self.turns_ns, 0.5)
    }

    /// The mean size of the state of a chunk that moved, and the bytes per second at which states left.
    pub(super) fn moved(&self) -> Option<(u64, f64)> {
        let Traffic { messages, bytes } = self.state;
        let mean = bytes.checked_div(messages)?;
        Some((mean, bytes as f64 * 1e9 / self.departures_ns.max(1) as f64))
    }

    fn handle(&mut self, rank: u32, event: &Event, place: u32, sender: Option<u32>, number: u32) {
        let state = &mut self.progress[place as usize];
        let sent = sender.map(|sender| (sender, self.in_flight.remove(&(sender, number))));
        let step = match sent {
            Some((_, Some(sent))) => {
                if sent.crosses && self.transits_ns.len() < KEPT_MAX {
                    self.transits_ns.push(event.begin_ns.saturating_sub(sent.sent_ns));
                }
                sent.step + 1
            }
            _ => 0,
        };
        if step > state.step {
            if state.handlers > 1 && self.message_ns.len() < KEPT_MAX {
                self.message_ns.push((state.sum_ns - state.longest_ns) / (state.handlers - 1));
            }
            (state.step, state.sum_ns, state.longest_ns, state.handlers) = (step, 0, 0, 0);
        }
        if !state.sent_to.is_empty() || event.begin_ns != state.row_end_ns {
            state.row_step = state.step;
            state.sent_to.clear();
        }
        state.row_end_ns = event.end_ns;
        let cpu_ns = event.cpu_ns();
        state.sum_ns = state.sum_ns.saturating_add(cpu_ns);
        state.longest_ns = state.longest_ns.max(cpu_ns);
        state.handlers += 1;
        let step = state.step;
        self.add(rank, place, step, cpu_ns);
        if step < self.ends_ns.len() {
            self.ends_ns[step] = self.ends_ns[step].max(event.end_ns);
        }
        self.all_steps = self.all_steps.max(step + 1);
        self.last_end_ns = self.last_end_ns.max(event.end_ns);
        self.begin_ns = self.begin_ns.min(event.begin_ns);
        self.homes[place as usize].get_or_insert(rank);
    }

    fn add(&mut self, rank: u32, place: u32, step: usize, cpu_ns: u64) {
        if step >= self.steps_max {
            self.is_cut = true;
            return;
        }
        if step >= self.work.len() {
            self.work.resize_with(step + 1, || vec![0.0; self.progress.len()]);
            self.ends_ns.resize(step + 1, 0);
        }
        let speed = self.speeds.get(rank as usize).copied().unwrap_or(1.0);
        self.work[step][place as usize] += (cpu_ns as f64 * speed) as f32;
    }

    fn send(&mut self, at_ns: u64, ends: (u32, u32), number: u32, bytes: u64, crosses: bool) {
        let state = &mut self.progress[ends.0 as usize];
        let before = state.sent_to.entry(ends.1).or_default();
        let step = state.row_step + *before;
        *before += 1;
        self.in_flight.insert((ends.0, number), InFlight { step, sent_ns: at_ns, crosses });
        self.all_messages += 1;
        // Edges follow from the messages of the kept steps.
        if step >= self.steps_max {
            return;
        }
        let traffic = self.traffic.entry(ends).or_default();
        traffic.messages += 1;
        traffic.bytes = traffic.bytes.saturating_add(bytes);
    }
}

impl Observer<'_> for Steps {
    fn see(&mut self, place: WorkerRef<'_>, event: &Event) {
        let rank = place.rank.rank;
        if let Some(times) = self.ranks.get_mut(rank as usize) {
            times.add(event);
        }
        if let What::Handler { lost_ns: lost_ns @ TURN_MIN_NS.., .. } = event.what
            && self.turns_ns.len() < KEPT_MAX
        {
            self.turns_ns.push(lost_ns);
        }
        let number_of = |chunk: ChunkId| self.places.get(&chunk).copied();
        match event.what {
            What::Handler { chunk, from, number, .. } => {
                let sender = if from == RUNTIME { None } else { number_of(from) };
                if let Some(place) = number_of(chunk) {
                    self.handle(rank, event, place, sender, number);
                }
            }
            What::Send { chunk, to, rank: to_rank, number, bytes } if to != RUNTIME => {
                if let Some(ends) = number_of(chunk).zip(number_of(to)) {
                    self.send(event.begin_ns, ends, number, bytes, to_rank != rank);
                }
            }
            What::Depart { bytes, .. } => {
                self.state.messages += 1;
                self.state.bytes = self.state.bytes.saturating_add(bytes);
                self.departures_ns = self.departures_ns.saturating_add(event.duration_ns());
            }
            _ => {}
        }
    }
}

impl RankTimes {
    fn add(&mut self, event: &Event) {
        let ns = event.duration_ns();
        let sum = match event.what {
            What::Handler { .. } => {
                self.lost = self.lost.saturating_add(ns.saturating_sub(event.cpu_ns()));
                self.chunks = self.chunks.saturating_add(event.cpu_ns());
                return;
            }
            What::Idle => &mut self.idle,
            What::Runtime { part: Part::Keep, .. } if ns < WHOLE_NS => &mut self.keep,
            What::Runtime { part: Part::Flush, .. } => &mut self.flush,
            _ => return,
        };
        *sum = sum.saturating_add(ns);
    }
}

/// The value below which this part of the values lies; none without values.
pub(super) fn quantile(values: &mut [u64], part: f64) -> Option<u64> {
    let place = (values.len() as f64 * part) as usize;
    let place = place.min(values.len().checked_sub(1)?);
    Some(*values.select_nth_unstable(place).1)
}
