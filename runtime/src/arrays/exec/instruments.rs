//! The instruments of a worker: measure the load of chunks, record the run, and update the activity
//! board, on which the monitor sees the current work of each worker.
//!
//! The [`Meter`], which charges chunks, and the [`Recorder`] cut time into slices at the same clock readings. A run
//! without record has no `Recorder`; a run with neither measurement nor record has no `Meter` either. A *lap* is the
//! time between two readings in a run of a chunk.

use std::rc::Rc;

use super::cells::Cell;
use super::shared::RankShared;
use crate::arrays::core::lifecycle::activity::Activity;
use crate::ids::{CellId, ChunkId, ROOT, RUNTIME, SyncId, WorkerId};
use crate::measure::counters::SampleTrigger;
use crate::measure::cpu::thread_cpu_ns;
use crate::measure::meter::Meter;
use crate::measure::speed::Speed;
use crate::threads::tsc_clock::TscClock;
use crate::trace::activity_board::AtWork;
use crate::trace::recorder::Recorder;
use crate::trace::{NameId, Part, UserEvent};

/// Maximum number of consecutive deliveries to a chunk in one lap: a clock reading takes as long as a short delivery.
const SHARE_MAX: u32 = 8;
/// A lap is short if it took less than this per delivery, ns: about fifty clock readings.
const SHORT_NS: u64 = 500;

/// The instruments of one worker.
pub(crate) struct Instruments<'r> {
    shared: &'r RankShared,
    worker: WorkerId,
    meter: Option<Meter>,
    ticks: TscClock,
    recorder: Option<Recorder>,
    /// The last idle time. Counted with the next slice, since a sender may wait for the reply of the next handler.
    gap: Option<Gap>,
    speed: Option<Speed>,
    activity: Rc<Activity>,
    /// Number of deliveries to the current chunk since the last lap. The next lap includes their time.
    untimed: u32,
    was_short: bool,
    /// The kind of the current message, if the run is recorded.
    kind: NameId,
    /// The cell of the current chunk, which is charged.
    cell: Option<(CellId, &'r Cell)>,
    /// The worker's entry on the activity board.
    at_work: &'r AtWork,
}

/// An idle time: its end, and the part of it for which the worker was parked.
struct Gap {
    end_ns: u64,
    parked_ns: u64,
}

impl<'r> Instruments<'r> {
    pub(crate) fn new(shared: &'r RankShared, worker: WorkerId) -> Instruments<'r> {
        let now_ns = shared.clock.now_ns();
        let recording = shared.measurements.recording();
        let recorder = Recorder::new(recording, worker, now_ns);
        Instruments {
            shared,
            worker,
            meter: (shared.measurements.measures() || recorder.is_some()).then(|| Meter::new(now_ns)),
            ticks: TscClock::new(&shared.clock),
            recorder,
            gap: None,
            speed: None,
            activity: Rc::default(),
            untimed: 0,
            was_short: false,
            kind: NameId(0),
            cell: None,
            at_work: &recording.at_work[worker.index()],
        }
    }

    /// The recorder, if the run is recorded, for events without a duration.
    #[inline]
    pub(crate) fn recorder(&mut self) -> Option<&mut Recorder> {
        self.settle();
        self.recorder.as_mut()
    }

    pub(crate) fn keeps_events(&self) -> bool {
        self.recorder.as_ref().is_some_and(Recorder::keeps_events)
    }

    /// True if some recorded events are not in a file yet.
    pub(crate) fn has_unwritten(&self) -> bool {
        self.recorder.as_ref().is_some_and(Recorder::has_unwritten)
    }

    #[inline]
    pub(crate) fn activity(&self) -> &Rc<Activity> {
        &self.activity
    }

    /// True if a handler is running that has not been recorded.
    #[inline]
    pub(crate) fn in_handler(&self) -> bool {
        self.activity.running.get()
    }

    /// Deliveries handled so far.
    #[inline]
    pub(crate) fn handled(&self) -> u64 {
        self.at_work.begun()
    }

    /// The end of the last lap or idle time, if handlers are measured.
    #[inline]
    pub(crate) fn last_ns(&self) -> Option<u64> {
        self.meter.as_ref().map(|meter| self.gap.as_ref().map_or(meter.last_ns(), |gap| gap.end_ns))
    }

    /// The time now, by the clock for laps ([`TscClock`]).
    #[inline]
    pub(crate) fn now_ns(&mut self) -> u64 {
        self.ticks.now_ns(&self.shared.clock)
    }

    /// The end of the last lap or idle time, or the time now if handlers are not measured.
    #[inline]
    pub(crate) fn time_ns(&mut self) -> u64 {
        match self.last_ns() {
            Some(last_ns) => last_ns,
            None => self.now_ns(),
        }
    }

    #[inline]
    pub(crate) fn turn_to(&mut self, chunk: ChunkId, id: CellId, cell: &'r Cell) {
        self.activity.chunk.set(chunk);
        self.cell = Some((id, cell));
        self.at_work.set_chunk(chunk);
    }

    /// Sets the activity to packets: user code encodes and decodes their contents.
    #[inline]
    pub(crate) fn turn_to_packets(&mut self) {
        self.at_work.set_exchanging();
        self.set_activity(RUNTIME, "a packet", 0);
    }

    /// Sets the activity to work of the runtime, which may call user code.
    pub(crate) fn turn_to_other(&mut self, what: &'static str) {
        self.at_work.set_chunk(RUNTIME);
        self.set_activity(RUNTIME, what, 0);
    }

    /// Sets the activity to a hook of this chunk, which is not a handler.
    pub(crate) fn turn_to_hook(&mut self, chunk: ChunkId, hook: &'static str, phase: u64) {
        self.show(chunk);
        self.set_activity(chunk, hook, phase);
    }

    /// Returns to this chunk from another activity.
    pub(crate) fn return_to(&mut self, chunk: ChunkId) {
        self.show(chunk);
        self.activity.chunk.set(chunk);
    }

    /// Shows this chunk on the activity board, outside any handler. The next handler reports its kind again.
    fn show(&mut self, chunk: ChunkId) {
        self.at_work.set_hook(chunk);
        self.activity.reported.set(None);
    }

    #[inline]
    fn set_activity(&mut self, chunk: ChunkId, what: &'static str, phase: u64) {
        self.activity.chunk.set(chunk);
        self.activity.kind.set(what);
        self.activity.phase.set(phase);
        self.activity.running.set(false);
    }

    /// Begins the next delivery to the current chunk.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.at_work.begin_handler();
    }

    /// A handler begins: with another array or kind of message than the last call, or before the previous one has
    /// ended.
    #[inline(never)]
    pub(crate) fn set_kind(&mut self, kind: &'static str) {
        let array = self.activity.chunk.get().array;
        if self.activity.running.get() {
            if self.activity.reported.get() == Some((array, kind)) && self.joins() {
                return;
            }
            self.interrupt();
        }
        if let Some(recorder) = &mut self.recorder {
            self.kind = recorder.kind(array, kind);
            self.at_work.set_kind(self.kind);
        }
        self.activity.reported.set(Some((array, kind)));
    }

    /// Merges a handler with the previous one of the same kind, which has no separate lap. True unless single events
    /// are recorded. A clock reading between the two would take longer than most of these handlers.
    fn joins(&mut self) -> bool {
        let joins = !self.keeps_events();
        if joins && let Some(recorder) = &mut self.recorder {
            recorder.joined(self.kind);
        }
        joins
    }

    /// Sets the activity to the strategy, which decides this sync.
    pub(crate) fn begin_decision(&mut self, sync: SyncId) {
        self.interrupt();
        self.at_work.set_deciding(sync);
    }

    pub(crate) fn end_decision(&mut self) {
        self.show(RUNTIME);
    }

    /// Shows the worker as idle.
    pub(crate) fn rest(&self) {
        self.at_work.set_idle();
    }

    /// Ends a delivery to the current chunk. Charges the chunk the time since the last lap, unless a delivery follows
    /// (`more`) that shares the lap.
    #[inline]
    pub(crate) fn lap(&mut self, more: bool) {
        if self.meter.is_none() {
            self.activity.end();
        } else if !more || !self.shares_lap() {
            self.measure_lap();
        }
    }

    /// True if a delivery shares its lap with the next one to the same chunk; counts the delivery then. It does if the
    /// last lap was short or its message was deferred, up to [`SHARE_MAX`], unless single events are recorded.
    fn shares_lap(&mut self) -> bool {
        let short = self.was_short || !self.in_handler();
        let shares = short && self.untimed + 1 < SHARE_MAX && !self.keeps_events();
        self.untimed += u32::from(shares);
        shares
    }

    /// The worker leaves the current chunk, which has more messages: charges the time that was not charged yet.
    pub(crate) fn pause(&mut self) {
        if self.untimed > 0 {
            self.measure_lap();
        }
    }

    /// Charges the time since the last lap, if time is measured.
    #[inline(never)]
    fn measure_lap(&mut self) {
        self.settle();
        let deliveries = 1 + std::mem::take(&mut self.untimed);
        let (Some(meter), Some((id, cell))) = (&mut self.meter, self.cell) else { return };
        let mut now_ns = self.ticks.now_ns(&self.shared.clock);
        // When a thread that has used up its share reads the CPU clock, the kernel may preempt it for long. That time
        // must fall into the slice of a handler, like all time lost to preemption.
        let cpu_clock_ns = (self.activity.running.get() && meter.is_due(now_ns)).then(thread_cpu_ns);
        if cpu_clock_ns.is_some() {
            now_ns = self.ticks.now_ns(&self.shared.clock);
        }
        let wall_ns = meter.lap(id, now_ns);
        self.was_short = wall_ns < SHORT_NS * u64::from(deliveries);
        cell.charge(wall_ns, deliveries);
        self.record(now_ns);
        if let Some(cpu_clock_ns) = cpu_clock_ns {
            self.close_batch_at(cpu_clock_ns);
        }
    }

    /// Reads the CPU clock and corrects the loads charged since its last reading.
    pub(crate) fn close_batch(&mut self) {
        self.settle();
        self.close_batch_at(thread_cpu_ns());
    }

    #[cold]
    fn close_batch_at(&mut self, cpu_clock_ns: u64) {
        let Some(meter) = &mut self.meter else { return };
        let (refund, published) = meter.close(cpu_clock_ns);
        let lost_ns = refund.as_ref().map_or(0, |refund| refund.ns);
        if let Some(refund) = refund {
            self.shared.cells.get(refund.cell).refund(refund.ns);
        }
        let gauge = self.shared.measurements.gauge(self.worker);
        gauge.publish(published);
        gauge.set_deliveries(self.at_work.begun());
        if let Some(recorder) = &mut self.recorder {
            recorder.close_batch(lost_ns);
            if self.worker == WorkerId(0) {
                self.observe(SampleTrigger::Periodic);
            }
        }
        self.calibrate();
        if let Some(recorder) = self.recorder.as_mut().filter(|recorder| recorder.keeps_events()) {
            recorder.encode();
            self.skip(Part::Flush, SyncId(0));
        }
    }

    /// Records the running handler up to now. The time that follows belongs to another activity.
    #[cold]
    pub(crate) fn interrupt(&mut self) {
        self.settle();
        if self.activity.running.get() && self.recorder.is_some() {
            let now_ns = self.now_ns();
            self.record(now_ns);
        }
        self.activity.end();
    }

    /// Records the activity up to now.
    #[inline]
    fn record(&mut self, now_ns: u64) {
        let Activity { chunk, from, running, .. } = &*self.activity;
        let handled = running.replace(false);
        match &mut self.recorder {
            Some(recorder) if handled => recorder.handled(chunk.get(), self.kind, from.get(), now_ns),
            Some(recorder) => recorder.received(now_ns),
            None => {}
        }
    }

    /// Counts the time since the last reading as time of the runtime.
    pub(crate) fn skip(&mut self, part: Part, sync: SyncId) {
        self.settle();
        let now_ns = self.shared.clock.now_ns();
        if let Some(meter) = &mut self.meter {
            meter.skip(now_ns);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.runtime(part, sync, now_ns);
        }
    }

    /// Starts the next slice now. The time since the last reading belongs to no handler here: the worker took packets,
    /// or another worker may have ended the chunk's last handler only just now.
    pub(crate) fn start_slice(&mut self) {
        self.settle();
        let Some(meter) = &mut self.meter else { return };
        let now_ns = self.ticks.now_ns(&self.shared.clock);
        meter.skip(now_ns);
        if let Some(recorder) = &mut self.recorder {
            recorder.received(now_ns);
        }
    }

    /// Ends an idle time, which began at the end of the last slice. The worker was parked for `parked_ns` of it.
    pub(crate) fn idle(&mut self, parked_ns: u64) {
        self.settle();
        if self.meter.is_some() {
            self.gap = Some(Gap { end_ns: self.now_ns(), parked_ns });
        }
    }

    /// Counts an idle time that has ended.
    #[inline]
    fn settle(&mut self) {
        if self.gap.is_some() {
            self.settle_gap();
        }
    }

    #[inline(never)]
    fn settle_gap(&mut self) {
        let (Some(Gap { end_ns, parked_ns }), Some(meter)) = (self.gap.take(), &mut self.meter) else {
            return;
        };
        meter.gap(end_ns, parked_ns);
        if let Some(recorder) = &mut self.recorder {
            recorder.idle(end_ns);
        }
    }

    /// The running handler declares load.
    pub(crate) fn charge_declared(&self, ticks_ns: u64) {
        if let Some((_, cell)) = self.cell {
            cell.facts.charge(ticks_ns);
        }
    }

    /// Records a user event of the running handler.
    pub(crate) fn tell(&mut self, event: UserEvent) {
        self.settle();
        if let Some(recorder) = &mut self.recorder {
            recorder.tell(self.activity.chunk.get(), event, self.shared.clock.now_ns());
        }
    }

    /// Measures the vCPU's speed for the first time, if speeds are measured.
    pub(crate) fn measure_speed(&mut self) {
        if self.shared.measurements.measures() {
            let speed = Speed::measured(self.shared.info.slowness);
            self.shared.measurements.gauge(self.worker).set_speed(speed.turns_per_us());
            self.speed = Some(speed);
        }
    }

    /// Measures the speed again if a sync or a window has requested new speeds of all workers.
    pub(crate) fn calibrate(&mut self) {
        let record = &self.shared.measurements;
        if let Some(speed) = &mut self.speed
            && speed.answer(record.rounds())
        {
            record.gauge(self.worker).set_speed(speed.turns_per_us());
            self.skip(Part::Measure, SyncId(0));
        }
    }

    /// Records a sample of the rank, and at the end of the run the log of syncs.
    pub(crate) fn observe(&mut self, when: SampleTrigger) {
        if self.recorder.is_none() {
            return;
        }
        let shared = self.shared;
        shared
            .measurements
            .observe(when, shared.clock.now_ns(), || shared.control_plane.lock().rank.chunks());
        if when == SampleTrigger::AtEnd && shared.info.rank == ROOT {
            self.record_syncs();
        }
    }

    /// Records the log of finished syncs. Only rank 0 has it.
    pub(crate) fn record_syncs(&self) {
        if self.recorder.is_some() {
            let control_plane = &self.shared.control_plane;
            let new =
                |seen| control_plane.lock().rank.sync_log().map(|log| log.after(seen)).unwrap_or_default();
            self.shared.measurements.recording().syncs(new);
        }
    }

    /// Completes the record when the worker leaves.
    pub(crate) fn finish(&mut self) {
        self.settle();
        if let Some(recorder) = &mut self.recorder {
            recorder.finish();
        }
        if self.worker == WorkerId(0) {
            self.observe(SampleTrigger::AtEnd);
        }
    }
}
