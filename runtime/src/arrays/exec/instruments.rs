//! The instruments of a worker: they measure and record its time, and note its present work.
//!
//! Time is cut into slices at the same readings of the clock for the [`Meter`], which charges chunks, and for the
//! [`Recorder`], which keeps a record. Either may be missing: a run may be neither measured nor recorded.

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

/// Deliveries to a chunk in a row, at most, that share a lap: a reading of the clock takes as long as a short one.
const SHARE_MAX: u32 = 8;
/// A lap is short that took less than this a delivery, ns: some fifty readings.
const SHORT_NS: u64 = 500;

/// One worker's instruments.
pub(crate) struct Instruments<'r> {
    shared: &'r RankShared,
    worker: WorkerId,
    meter: Option<Meter>,
    /// The clock of laps.
    ticks: TscClock,
    recorder: Option<Recorder>,
    /// Accounted for with what comes next: somebody may wait for the answer of the handler that ends it.
    gap: Option<Gap>,
    speed: Option<Speed>,
    activity: Rc<Activity>,
    /// Deliveries to the chunk in hand since the last lap. The next lap holds their time too.
    untimed: u32,
    /// The last lap was short.
    was_short: bool,
    /// The number of the kind of message in hand, where a record is kept.
    kind: NameId,
    /// Where the chunk in hand is: who is charged.
    cell: Option<(CellId, &'r Cell)>,
    /// What is in hand, as others may see it.
    at_work: &'r AtWork,
}

/// A time without work: when it ended, and how much of it the worker was parked.
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

    /// The recorder, if a record is kept, for what is not time.
    #[inline]
    pub(crate) fn recorder(&mut self) -> Option<&mut Recorder> {
        self.settle();
        self.recorder.as_mut()
    }

    /// Tells whether single events are recorded.
    pub(crate) fn keeps_events(&self) -> bool {
        self.recorder.as_ref().is_some_and(Recorder::keeps_events)
    }

    /// Tells whether there are events that are in no file yet.
    pub(crate) fn has_unwritten(&self) -> bool {
        self.recorder.as_ref().is_some_and(Recorder::has_unwritten)
    }

    #[inline]
    pub(crate) fn activity(&self) -> &Rc<Activity> {
        &self.activity
    }

    /// Tells whether a handler is running that has not been recorded.
    #[inline]
    pub(crate) fn in_handler(&self) -> bool {
        self.activity.running.get()
    }

    /// Deliveries handled so far.
    #[inline]
    pub(crate) fn handled(&self) -> u64 {
        self.at_work.begun()
    }

    /// The end of the last lap or gap, where handlers are measured.
    #[inline]
    pub(crate) fn last_ns(&self) -> Option<u64> {
        self.meter.as_ref().map(|meter| self.gap.as_ref().map_or(meter.last_ns(), |gap| gap.end_ns))
    }

    /// The time now, by the clock of laps ([`Ticks`]).
    #[inline]
    pub(crate) fn now_ns(&mut self) -> u64 {
        self.ticks.now_ns(&self.shared.clock)
    }

    /// The end of the last lap or gap, or the time now where handlers are not measured.
    #[inline]
    pub(crate) fn time_ns(&mut self) -> u64 {
        match self.last_ns() {
            Some(last_ns) => last_ns,
            None => self.now_ns(),
        }
    }

    /// The worker turns to the chunk in this place.
    #[inline]
    pub(crate) fn turn_to(&mut self, chunk: ChunkId, id: CellId, cell: &'r Cell) {
        self.activity.chunk.set(chunk);
        self.cell = Some((id, cell));
        self.at_work.set_chunk(chunk);
    }

    /// The worker turns to packets: user code encodes and decodes what is in them.
    #[inline]
    pub(crate) fn turn_to_packets(&mut self) {
        self.at_work.set_exchanging();
        self.set_activity(RUNTIME, "a packet", 0);
    }

    /// The worker turns to something of its own, in which it may run user code.
    pub(crate) fn turn_to_other(&mut self, what: &'static str) {
        self.at_work.set_chunk(RUNTIME);
        self.set_activity(RUNTIME, what, 0);
    }

    /// The worker turns to a hook of this chunk, which is no handler.
    pub(crate) fn turn_to_hook(&mut self, chunk: ChunkId, hook: &'static str, phase: u64) {
        self.show(chunk);
        self.set_activity(chunk, hook, phase);
    }

    /// It returns to this chunk from what it turned to meanwhile.
    pub(crate) fn return_to(&mut self, chunk: ChunkId) {
        self.show(chunk);
        self.activity.chunk.set(chunk);
    }

    /// Others see this chunk, in no handler: the kind of the next one is to be told anew.
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

    /// The chunk in hand is given its next delivery.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.at_work.begin_handler();
    }

    /// The handler that begins is that of another array or kind of message than was said last, or the one before has not
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

    /// A handler begins after one of the same kind that has no lap of its own. Where no events are kept both are one slice: the
    /// reading between them would take longer than most of these handlers.
    fn joins(&mut self) -> bool {
        let joins = !self.keeps_events();
        if joins && let Some(recorder) = &mut self.recorder {
            recorder.joined(self.kind);
        }
        joins
    }

    /// The strategy is asked to decide this sync.
    pub(crate) fn begin_decision(&mut self, sync: SyncId) {
        self.interrupt();
        self.at_work.set_deciding(sync);
    }

    /// It has answered.
    pub(crate) fn end_decision(&mut self) {
        self.show(RUNTIME);
    }

    /// The worker has no work.
    pub(crate) fn rest(&self) {
        self.at_work.set_idle();
    }

    /// A delivery to the chunk in hand has ended: charges it the time since the last lap, or lets the next lap do so where the
    /// chunk goes on with `more`.
    #[inline]
    pub(crate) fn lap(&mut self, more: bool) {
        if self.meter.is_none() {
            self.activity.end();
        } else if !more || !self.shares_lap() {
            self.measure_lap();
        }
    }

    /// Tells whether a delivery is to share its lap with the next to the same chunk, and counts it if so: it was short, as far
    /// as is known, or its message was put away. Not where events are kept, and not too many.
    fn shares_lap(&mut self) -> bool {
        let short = self.was_short || !self.in_handler();
        let shares = short && self.untimed + 1 < SHARE_MAX && !self.keeps_events();
        self.untimed += u32::from(shares);
        shares
    }

    /// The worker turns from the chunk in hand, which has more messages: charges it what it was not yet.
    pub(crate) fn pause(&mut self) {
        if self.untimed > 0 {
            self.measure_lap();
        }
    }

    /// Charges the time since the last lap, where time is measured.
    #[inline(never)]
    fn measure_lap(&mut self) {
        self.settle();
        let deliveries = 1 + std::mem::take(&mut self.untimed);
        let (Some(meter), Some((id, cell))) = (&mut self.meter, self.cell) else { return };
        let mut now_ns = self.ticks.now_ns(&self.shared.clock);
        // Where the CPU clock is read the kernel stops who has had enough, for long: that time is to be in the slice of a
        // handler, like any other that is lost.
        let cpu_clock_ns = (self.activity.running.get() && meter.is_due(now_ns)).then(thread_cpu_ns);
        if cpu_clock_ns.is_some() {
            now_ns = self.ticks.now_ns(&self.shared.clock);
        }
        let wall_ns = meter.lap(id, now_ns);
        self.was_short = wall_ns < SHORT_NS * u64::from(deliveries);
        cell.charge(wall_ns);
        self.record(now_ns);
        if let Some(cpu_clock_ns) = cpu_clock_ns {
            self.close_batch_at(cpu_clock_ns);
        }
    }

    /// Reads the CPU clock and corrects what was charged since it was read last.
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

    /// Records the handler that is running up to now: what follows in its time is something else.
    #[cold]
    pub(crate) fn interrupt(&mut self) {
        self.settle();
        if self.activity.running.get() && self.recorder.is_some() {
            let now_ns = self.now_ns();
            self.record(now_ns);
        }
        self.activity.end();
    }

    /// Records what has been in hand until now.
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

    /// Counts the time since the last reading as the runtime's own.
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

    /// What follows begins now. The time since the last reading was no handler's: packets were taken, or a chunk waited that
    /// another worker had before.
    pub(crate) fn restart_clock(&mut self) {
        self.settle();
        let Some(meter) = &mut self.meter else { return };
        let now_ns = self.ticks.now_ns(&self.shared.clock);
        meter.skip(now_ns);
        if let Some(recorder) = &mut self.recorder {
            recorder.received(now_ns);
        }
    }

    /// There was nothing to do since the last slice, of which the worker was parked for so long.
    pub(crate) fn idle(&mut self, parked_ns: u64) {
        self.settle();
        if self.meter.is_some() {
            self.gap = Some(Gap { end_ns: self.now_ns(), parked_ns });
        }
    }

    /// Accounts for a time without work that has ended.
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

    /// The program tells something about the handler that is running.
    pub(crate) fn tell(&mut self, event: UserEvent) {
        self.settle();
        if let Some(recorder) = &mut self.recorder {
            recorder.tell(self.activity.chunk.get(), event, self.shared.clock.now_ns());
        }
    }

    /// Measures the vCPU's speed for the first time, where speeds are measured.
    pub(crate) fn measure_speed(&mut self) {
        if self.shared.measurements.measures() {
            let speed = Speed::measured(self.shared.info.slowness);
            self.shared.measurements.gauge(self.worker).set_speed(speed.turns_per_us());
            self.speed = Some(speed);
        }
    }

    /// Measures it again if a sync has asked all workers for that.
    pub(crate) fn calibrate(&mut self) {
        let record = &self.shared.measurements;
        if let Some(speed) = &mut self.speed
            && speed.answer(record.rounds())
        {
            record.gauge(self.worker).set_speed(speed.turns_per_us());
            self.skip(Part::Measure, SyncId(0));
        }
    }

    /// Keeps for the record how the rank is doing, and at the end what syncs did.
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

    /// Keeps for the record what syncs did that are over. Rank 0 alone knows.
    pub(crate) fn record_syncs(&self) {
        if self.recorder.is_some() {
            let control_plane = &self.shared.control_plane;
            let new =
                |seen| control_plane.lock().rank.sync_log().map(|log| log.after(seen)).unwrap_or_default();
            self.shared.measurements.recording().syncs(new);
        }
    }

    /// The worker leaves: what it has put by goes to the record.
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
