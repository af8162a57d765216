//! Records the events of one worker, and its profile. The recorder is called for every message, so it accesses only
//! memory of its worker.
//!
//! A worker's time is cut into *slices* without gaps: handlers, idle times, and work of the runtime. Slices begin and
//! end at clock readings that measuring needs anyway.
//!
//! 1. Slices and messages are buffered.
//! 2. At the end of each batch of handlers ([`meter`](crate::measure::meter), 0.2 ms), the slices are counted in the
//!    profile. Time of the batch that was not CPU time is charged to its longest handler. Then its events are encoded.
//! 3. The worker itself compresses and writes a full block, in a separate slice (`Part::Flush`). So no second thread is
//!    needed, and memory is bounded by one batch and one block.

use std::sync::Arc;

use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::block::{Block, Kind};
use super::encoding::Encoder;
use super::event::UserEvent;
use super::event::{ArrayId, ChunkId, Event, NameId, Part, What};
use super::filter::Class;
use super::profile::Activity;
use super::recording::Recording;
use crate::ids::{Rank, Sender, SyncId, WorkerId};

/// Bytes of a block before compression.
const BLOCK_BYTES: usize = 256 << 10;
/// Idle slices longer than this enter the profile at their own time, instead of with their batch, ns.
const IDLE_LONG_NS: u64 = 100_000;
/// Age at which an incomplete block is written, ns, so that a run that dies leaves most of its events.
const BLOCK_AGE_MAX_NS: u64 = 1_000_000_000;

/// One worker's record.
pub(crate) struct Recorder {
    recording: Arc<Recording>,
    worker: WorkerId,
    keeps: KeptClasses,
    /// The end of the last slice, ns. If the clock goes back, it counts as stopped. Clocks of virtual machines go back
    /// when the machine moves to another host.
    last_ns: u64,
    profile: BatchCounts,
    /// The longest slice of a handler in this batch.
    longest: Option<Longest>,
    known: FxHashMap<(ArrayId, usize), NameId>,
    /// Events of this batch.
    events: Vec<Event>,
    /// Events of closed batches, which are not encoded yet.
    settled: Vec<Event>,
    /// Events within the running handler, which end when the handler ends and are recorded after it.
    pending: Vec<Pending>,
    /// The time that was read before the first message of a flush left.
    flush_ns: Option<u64>,
    /// Events of the program within the running handler.
    user_events: Vec<Event>,
    block: EventBuffer,
}

/// The classes of events that are kept.
#[derive(Clone, Copy)]
struct KeptClasses {
    any: bool,
    handlers: bool,
    idle: bool,
    runtime: bool,
    chunks: bool,
    marks: bool,
    iterations: bool,
    arrows: u32,
}

/// Counts for the profile since the last batch.
#[derive(Default)]
struct BatchCounts {
    begin_ns: Option<u64>,
    by_kind: Vec<CallStats>,
    kept: CallStats,
    /// Idle time without the long idle slices.
    idle: CallStats,
    lost_ns: u64,
}

#[derive(Clone, Copy, Default)]
struct CallStats {
    ns: u64,
    calls: u64,
    longest_ns: u64,
    /// The second longest call. It becomes the longest if most of the longest call turns out to be lost time.
    second_ns: u64,
}

impl CallStats {
    #[inline]
    fn add(&mut self, ns: u64) {
        self.ns += ns;
        self.calls += 1;
        if ns > self.longest_ns {
            self.second_ns = std::mem::replace(&mut self.longest_ns, ns);
        } else {
            self.second_ns = self.second_ns.max(ns);
        }
    }

    /// Subtracts lost time from a call that was counted as `ns`.
    fn lose(&mut self, ns: u64, lost_ns: u64) {
        self.ns = self.ns.saturating_sub(lost_ns);
        if self.longest_ns == ns {
            self.longest_ns = self.second_ns.max(ns - lost_ns);
        }
    }
}

#[derive(Clone, Copy)]
struct Longest {
    ns: u64,
    kind: NameId,
    /// The position among the events.
    event: Option<usize>,
}

/// An event within a handler, until the handler ends.
struct Pending {
    /// Earliest begin. None for an event at the end of the handler.
    since_ns: Option<u64>,
    what: What,
}

impl Pending {
    fn at_end(what: What) -> Pending {
        Pending { since_ns: None, what }
    }

    fn ended(self, end_ns: u64) -> Event {
        Event {
            begin_ns: self.since_ns.map_or(end_ns, |since_ns| since_ns.min(end_ns)),
            end_ns,
            what: self.what,
        }
    }
}

/// Encoded events for the next block of the file.
struct EventBuffer {
    encoder: Encoder,
    bytes: Vec<u8>,
    events: usize,
    first_ns: u64,
    last_ns: u64,
}

impl EventBuffer {
    fn new() -> EventBuffer {
        EventBuffer {
            encoder: Encoder::default(),
            bytes: Vec::new(),
            events: 0,
            first_ns: u64::MAX,
            last_ns: 0,
        }
    }
}

impl Recorder {
    /// A recorder; none if the rank records nothing.
    pub(crate) fn new(recording: &Arc<Recording>, worker: WorkerId, now_ns: u64) -> Option<Recorder> {
        let keeps = KeptClasses {
            any: recording.keeps_events(),
            handlers: recording.keeps(Class::Handlers),
            idle: recording.keeps(Class::Idle),
            runtime: recording.keeps(Class::Runtime),
            chunks: recording.keeps(Class::Chunks),
            marks: recording.keeps(Class::Marks),
            iterations: recording.keeps(Class::Iterations),
            arrows: recording.arrows(),
        };
        recording.profiled.then(|| Recorder {
            recording: recording.clone(),
            worker,
            keeps,
            last_ns: now_ns,
            profile: BatchCounts::default(),
            longest: None,
            known: FxHashMap::default(),
            events: Vec::new(),
            settled: Vec::new(),
            pending: Vec::new(),
            flush_ns: None,
            user_events: Vec::new(),
            block: EventBuffer::new(),
        })
    }

    /// Tells whether any events are recorded.
    pub(crate) fn keeps_events(&self) -> bool {
        self.keeps.any
    }

    /// Ends the slice of a handler, which began when the last slice ended.
    #[inline]
    pub(crate) fn handled(&mut self, chunk: ChunkId, kind: NameId, from: Sender, now_ns: u64) {
        let (begin_ns, now_ns) = self.end_slice(now_ns);
        let wall_ns = now_ns - begin_ns;
        self.profile.begin_ns.get_or_insert(begin_ns);
        self.profile.by_kind[kind.0 as usize].add(wall_ns);
        let event = if self.keeps.any {
            let what = What::Handler { chunk, kind, from: from.chunk(), number: from.number, lost_ns: 0 };
            self.keep_handler(chunk.array, Event { begin_ns, end_ns: now_ns, what })
        } else {
            None
        };
        if self.longest.is_none_or(|longest| wall_ns > longest.ns) {
            self.longest = Some(Longest { ns: wall_ns, kind, event });
        }
    }

    /// Counts a handler that ended. The next handler of its kind continues in the same slice.
    pub(crate) fn joined(&mut self, kind: NameId) {
        self.profile.by_kind[kind.0 as usize].calls += 1;
    }

    /// Records the handler and the events within it. Returns the handler's position among the events.
    #[inline(never)]
    fn keep_handler(&mut self, array: ArrayId, handler: Event) -> Option<usize> {
        let end_ns = handler.end_ns;
        self.end_user_events(end_ns);
        let kept = self.keeps.handlers && self.recording.keeps_array(array);
        let position = kept.then_some(self.events.len());
        self.events.extend(kept.then_some(handler));
        self.end_pending(end_ns);
        position
    }

    /// Ends a slice without a handler: packets were received, a message was deferred, or a handler was interrupted.
    pub(crate) fn received(&mut self, now_ns: u64) {
        let (begin_ns, now_ns) = self.end_slice(now_ns);
        let long_ns = now_ns - begin_ns;
        self.profile.begin_ns.get_or_insert(begin_ns);
        self.profile.kept.add(long_ns);
        if self.keeps.runtime {
            let what = What::Runtime { part: Part::Keep, sync: 0 };
            self.events.push(Event { begin_ns, end_ns: now_ns, what });
        }
        self.end_pending(now_ns);
    }

    /// Begin and end of the slice that ends now. The end is never before the begin.
    #[inline]
    fn end_slice(&mut self, now_ns: u64) -> (u64, u64) {
        let begin_ns = self.last_ns;
        self.last_ns = now_ns.max(begin_ns);
        (begin_ns, self.last_ns)
    }

    /// Records the user events of the last slice. The clock of their times may be ahead of the clock of slices.
    #[inline]
    fn end_user_events(&mut self, end_ns: u64) {
        let ended = |told: Event| Event {
            begin_ns: told.begin_ns.min(end_ns),
            end_ns: told.end_ns.min(end_ns),
            what: told.what,
        };
        self.events.extend(self.user_events.drain(..).map(ended));
    }

    /// Ends the events within the last slice.
    #[inline]
    fn end_pending(&mut self, now_ns: u64) {
        self.flush_ns = None;
        self.events.extend(self.pending.drain(..).map(|pending| pending.ended(now_ns)));
    }

    /// The number of a kind. The texts are constants of the program, so equal addresses mean equal texts.
    pub(crate) fn kind(&mut self, array: ArrayId, kind: &'static str) -> NameId {
        let key = (array, kind.as_ptr() as usize ^ kind.len() << 48);
        self.known.get(&key).copied().unwrap_or_else(|| self.new_kind(key, kind))
    }

    #[cold]
    fn new_kind(&mut self, key: (ArrayId, usize), kind: &'static str) -> NameId {
        let id = self.recording.name(Some(key.0), kind);
        self.known.insert(key, id);
        let rows = self.profile.by_kind.len().max(id.0 as usize + 1);
        self.profile.by_kind.resize(rows, CallStats::default());
        id
    }

    /// Tells whether the send of this message is recorded.
    #[inline]
    pub(crate) fn wants_send(&self, from: Sender) -> bool {
        self.keeps.arrows != 0
            && (self.keeps.arrows == 1 || is_sampled(from, self.keeps.arrows))
            && self.recording.keeps_array(from.array)
    }

    /// Begins a flush within a handler: the clock must be read again.
    pub(crate) fn flushes(&mut self) {
        self.flush_ns = None;
    }

    /// Records a message that is about to leave; its event ends with the handler. If other workers or ranks can take it
    /// earlier, the event begins at the time read by `clock`, once per flush. Otherwise it is a point.
    #[inline]
    pub(crate) fn sends(
        &mut self,
        from: Sender,
        to: ChunkId,
        rank: Rank,
        bytes: u64,
        clock: Option<impl FnOnce() -> u64>,
    ) {
        let since_ns = clock.map(|clock| *self.flush_ns.get_or_insert_with(clock));
        let what = What::Send { chunk: from.chunk(), to, rank: rank.0, number: from.number, bytes };
        self.pending.push(Pending { since_ns, what });
    }

    /// Records a contribution of a chunk to a reduction.
    pub(crate) fn contributed(&mut self, chunk: ChunkId, number: u64) {
        if self.keeps.chunks && self.recording.keeps_array(chunk.array) {
            self.pending.push(Pending::at_end(What::Contribute { chunk, number }));
        }
    }

    /// Records an event of the program in a chunk.
    pub(crate) fn tell(&mut self, chunk: ChunkId, event: UserEvent, now_ns: u64) {
        if !self.keeps.marks || !self.recording.keeps_array(chunk.array) {
            return;
        }
        let name = |text| self.recording.name(None, text);
        // The clock of the event may also be behind the clock of slices.
        let now_ns = now_ns.max(self.last_ns);
        self.user_events.push(match event {
            UserEvent::Mark { name: text } => Event::point(now_ns, What::Mark { chunk, name: name(text) }),
            UserEvent::Counter { name: text, value } => {
                Event::point(now_ns, What::Counter { chunk, name: name(text), value })
            }
            UserEvent::Span { name: text, begin_ns } => Event {
                begin_ns: begin_ns.clamp(self.last_ns, now_ns),
                end_ns: now_ns,
                what: What::Span { chunk, name: name(text) },
            },
        });
    }

    /// Ends an idle slice.
    pub(crate) fn idle(&mut self, now_ns: u64) {
        let long_ns = now_ns.saturating_sub(self.last_ns);
        if long_ns > IDLE_LONG_NS {
            return self.slice(Activity::Idle, What::Idle, self.keeps.idle, now_ns);
        }
        let (begin_ns, end_ns) = self.end_slice(now_ns);
        if long_ns == 0 {
            return;
        }
        self.profile.begin_ns.get_or_insert(begin_ns);
        self.profile.idle.add(long_ns);
        if self.keeps.idle {
            self.events.push(Event { begin_ns, end_ns, what: What::Idle });
        }
    }

    /// Ends a slice in which the runtime worked.
    pub(crate) fn runtime(&mut self, part: Part, sync: SyncId, now_ns: u64) {
        let keep = self.keeps.runtime;
        self.slice(Activity::Runtime(part), What::Runtime { part, sync: sync.0 }, keep, now_ns);
    }

    fn slice(&mut self, activity: Activity, what: What, keep: bool, now_ns: u64) {
        let (begin_ns, now_ns) = self.end_slice(now_ns);
        let long_ns = now_ns - begin_ns;
        if long_ns == 0 {
            return;
        }
        self.recording.profile(self.worker).add(activity, begin_ns, now_ns, long_ns, 1, long_ns);
        if keep {
            self.events.push(Event { begin_ns, end_ns: now_ns, what });
        }
    }

    /// Ends the slice of a range of iterations that took `cpu_ns` of CPU time.
    pub(crate) fn executed(&mut self, first: u64, count: u64, cpu_ns: u64, now_ns: u64) {
        let (begin_ns, now_ns) = self.end_slice(now_ns);
        let wall_ns = now_ns - begin_ns;
        let cpu_ns = cpu_ns.min(wall_ns);
        let lost_ns = wall_ns - cpu_ns;
        let mut profile = self.recording.profile(self.worker);
        profile.add(Activity::Iterations, begin_ns, now_ns, cpu_ns, 1, cpu_ns);
        if lost_ns > 0 {
            profile.add(Activity::Lost, begin_ns, now_ns, lost_ns, 1, lost_ns);
        }
        drop(profile);
        if self.keeps.iterations {
            let what = What::Range { first, count, lost_ns };
            self.events.push(Event { begin_ns, end_ns: now_ns, what });
        }
    }

    /// Records a chunk that came to this rank, at the end of the last slice or within the running handler.
    pub(crate) fn arrived(
        &mut self,
        chunk: ChunkId,
        bytes: u64,
        in_handler: bool,
        index: impl FnOnce() -> String,
    ) {
        if self.keeps.any && self.recording.keeps_array(chunk.array) {
            self.recording.chunk(chunk, index());
            let what = What::Arrive { chunk, bytes };
            match self.keeps.chunks {
                true if in_handler => self.pending.push(Pending::at_end(what)),
                true => self.events.push(Event::point(self.last_ns, what)),
                false => {}
            }
        }
    }

    /// Ends the slice in which a chunk left this rank.
    pub(crate) fn departed(&mut self, chunk: ChunkId, rank: Rank, bytes: u64, now_ns: u64) {
        let keep = self.keeps.chunks && self.recording.keeps_array(chunk.array);
        self.slice(
            Activity::Runtime(Part::Migrate),
            What::Depart { chunk, rank: rank.0, bytes },
            keep,
            now_ns,
        );
    }

    /// Records the load of a chunk that came to a sync.
    pub(crate) fn loaded(&mut self, chunk: ChunkId, sync: SyncId, load_ns: u64, bytes: u64) {
        if self.keeps.chunks && self.recording.keeps_array(chunk.array) {
            self.events.push(Event::point(self.last_ns, What::Load { chunk, sync: sync.0, load_ns, bytes }));
        }
    }

    /// Records messages of a pool's policy to these ranks.
    pub(crate) fn pool_sent(&mut self, ranks: &[u32]) {
        if self.keeps.arrows != 0 {
            let at_ns = self.last_ns;
            self.events.extend(ranks.iter().map(|&rank| Event::point(at_ns, What::PoolSend { rank })));
        }
    }

    /// Ends a batch, of which `lost_ns` of the wall time of handlers was not CPU time.
    pub(crate) fn close_batch(&mut self, lost_ns: u64) {
        if let Some(Longest { ns, kind, event }) = self.longest.take()
            && lost_ns > 0
        {
            let lost_ns = lost_ns.min(ns);
            self.profile.by_kind[kind.0 as usize].lose(ns, lost_ns);
            self.profile.lost_ns += lost_ns;
            if let Some(Event { what: What::Handler { lost_ns: lost, .. }, .. }) =
                event.map(|event| &mut self.events[event])
            {
                *lost = lost_ns;
            }
        }
        self.count();
        if self.settled.is_empty() {
            std::mem::swap(&mut self.settled, &mut self.events);
        } else {
            self.settled.append(&mut self.events);
        }
    }

    /// Adds the counts of the batch to the profile.
    fn count(&mut self) {
        let Some(begin_ns) = self.profile.begin_ns.take() else { return };
        let mut profile = self.recording.profile(self.worker);
        let BatchCounts { by_kind, kept, idle, .. } = &mut self.profile;
        let kinds = (0..).map(NameId).map(Activity::Kind).zip(by_kind);
        for (activity, tally) in kinds.chain([(Activity::Runtime(Part::Keep), kept), (Activity::Idle, idle)])
        {
            if tally.calls > 0 {
                let CallStats { ns, calls, longest_ns, .. } = std::mem::take(tally);
                profile.add(activity, begin_ns, self.last_ns, ns, calls, longest_ns);
            }
        }
        let lost_ns = std::mem::take(&mut self.profile.lost_ns);
        if lost_ns > 0 {
            profile.add(Activity::Lost, begin_ns, self.last_ns, lost_ns, 1, lost_ns);
        }
    }

    /// Encodes the events of closed batches.
    pub(crate) fn encode(&mut self) {
        let mut settled = std::mem::take(&mut self.settled);
        settled.drain(..).for_each(|event| self.encode_one(&event));
        self.settled = settled;
        let age_ns = self.last_ns.saturating_sub(self.block.first_ns);
        if self.block.events > 0 && age_ns > BLOCK_AGE_MAX_NS {
            self.write();
        }
    }

    fn encode_one(&mut self, event: &Event) {
        let block = &mut self.block;
        block.encoder.encode(event, &mut block.bytes);
        block.events += 1;
        block.first_ns = block.first_ns.min(event.begin_ns);
        block.last_ns = block.last_ns.max(event.end_ns);
        if block.bytes.len() >= BLOCK_BYTES {
            self.write();
        }
    }

    fn write(&mut self) {
        let EventBuffer { bytes, events, first_ns, last_ns, .. } = &mut self.block;
        let block = Block::new(Kind::Events, self.worker.0, *events, (*first_ns, *last_ns), bytes);
        bytes.clear();
        self.block = EventBuffer { bytes: std::mem::take(bytes), ..EventBuffer::new() };
        self.recording.write(&block);
    }

    /// Tells whether some events are not in the file yet.
    pub(crate) fn has_unwritten(&self) -> bool {
        self.block.events > 0 || !self.events.is_empty() || !self.settled.is_empty()
    }

    /// Writes all remaining events, because the worker has ended.
    pub(crate) fn finish(&mut self) {
        self.end_user_events(self.last_ns);
        self.end_pending(self.last_ns);
        self.close_batch(0);
        self.encode();
        if self.block.events > 0 {
            self.write();
        }
    }
}

/// Samples one send of `one_in` by a hash of its name. Taking every `one_in`-th send would not do: if a chunk always
/// sends in the same order, the same send would be sampled in each step.
fn is_sampled(from: Sender, one_in: u32) -> bool {
    (FxBuildHasher.hash_one((from.key, from.number)) >> 32).is_multiple_of(one_in.into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{CallStats, Recorder, is_sampled};
    use crate::ids::{ArrayId, ChunkId, RUNTIME, Sender, WorkerId};
    use crate::trace::recording::{Recording, RecordingOptions};
    use crate::trace::{Event, Filter, NameId, RunRecord, UserEvent};

    #[test]
    fn user_events_of_another_clock_stay_within_their_handler() {
        let dir = std::env::temp_dir().join(format!("caribou-recorder-{}", std::process::id()));
        let wanted = RecordingOptions {
            dir: Some(dir.clone()),
            filter: Filter::default(),
            bytes_max: 1 << 20,
            profile: true,
        };
        let run = RunRecord { ranks: 1, workers: vec![1], ..RunRecord::default() };
        let (recording, error) = Recording::begin(&wanted, &run, &["Teller".into()]);
        assert!(error.is_none(), "{error:?}");
        let mut recorder = Recorder::new(&Arc::new(recording), WorkerId(0), 100).expect("it keeps a profile");
        let chunk = ChunkId { array: ArrayId(0), key: 0 };
        let kind = recorder.kind(chunk.array, "message");
        // The clock of slices reads 100 before these events and 200 after them.
        recorder.tell(chunk, UserEvent::Mark { name: "early" }, 99);
        recorder.tell(chunk, UserEvent::Span { name: "within", begin_ns: 98 }, 150);
        recorder.tell(chunk, UserEvent::Counter { name: "late", value: 1.0 }, 201);
        recorder.handled(chunk, kind, Sender::new(RUNTIME, 0), 200);
        let times: Vec<_> =
            recorder.events.iter().map(|event: &Event| (event.begin_ns, event.end_ns)).collect();
        assert_eq!(times, [(100, 100), (100, 150), (200, 200), (100, 200)]);
        assert_eq!(kind, NameId(0));
        std::fs::remove_dir_all(dir).expect("it was made");
    }

    #[test]
    fn sends_are_sampled_evenly_from_each_kind_that_a_chunk_sends_in_turn() {
        for kind in 0..4 {
            let sends = (0..100_u64).flat_map(|key| (0..100).map(move |step| (key, 4 * step + kind + 1)));
            let drawn =
                sends.filter(|&(key, number)| is_sampled(Sender { array: ArrayId(0), number, key }, 16));
            let drawn = drawn.count();
            assert!((500..750).contains(&drawn), "{drawn} of 10000 of kind {kind}");
        }
    }

    #[test]
    fn the_second_longest_is_the_longest_once_the_first_has_lost_its_time() {
        let mut tally = CallStats::default();
        [300, 92_000, 400, 100_000].into_iter().for_each(|ns| tally.add(ns));
        tally.lose(100_000, 95_000);
        assert_eq!((tally.longest_ns, tally.ns, tally.calls), (92_000, 97_700, 4));
        let mut tally = CallStats::default();
        [100_000, 300].into_iter().for_each(|ns| tally.add(ns));
        tally.lose(100_000, 95_000);
        assert_eq!(tally.longest_ns, 5_000);
    }
}
