//! Polls: when a worker looks for packets, due timers and the strategy's decision, and how it handles a packet.
//!
//! | moment | method | condition | packets at most |
//! |---|---|---|---|
//! | after a run of a chunk | [`poll`] | [`is_due_between_runs`]: 1 us after the last poll, or each 4th handler | 64 |
//! | no chunk was run: none is ready, or the transport is congested | [`poll`] | none | 64 |
//! | between two messages of a run | [`poll_amid_run`] | [`is_due_amid_run`]: 50 us after the last poll | 64 |
//! | each turn of a spin | [`poll_in_spin`] | none | 1 |
//! | after a wait in which the spin found nothing | [`poll_packets`] | none | 64 |
//!
//! A parked worker does not poll: the transport wakes it, or limits its sleep. A simulation does not poll: it calls
//! [`receive`].
//!
//! # Rules
//!
//! 1. *Inactive.* A worker skips its polls while it has no transport, timer, pending decision or checkpoint write.
//! 2. *Interval.* The interval begins at the end of the last poll. It is at least as long as that poll, because a poll
//!    may copy a chunk.
//! 3. *Time.* If handlers are measured, the time is the end of the last lap. Otherwise the worker polls after every 4th
//!    handler, and within a run reads the clock after every 8th. A clock reading takes longer than a short handler.
//! 4. *Rare polls.* If the last two polls were at least 10 us apart, handlers or waits are long. Without measurement
//!    the worker then polls after every run, and within a run reads the clock after every handler. A poll tries all
//!    ranks.
//! 5. *Spins.* A spin reads no clock, because a reading takes longer than its poll. Unless handlers are measured, polls
//!    of a spin do not count for rules 2 and 4.
//! 6. *Stops.* A poll stops where the core must act (see [`PollStop`]) and goes on after that. A chunk transfer ends
//!    the poll.
//! 7. *Signals* report to rank 0 how busy this rank is, where chunks are balanced while they run. A rank sends signals
//!    while it handles messages, and one more after that. So a stalled run exchanges no signals, and is found to have
//!    stalled. When a signal is due, the rank also passes a [notice](crate::notice) to the core.
//! 8. *Requests* to [shrink or expand](crate::run::resize) the run are taken by [`poll`].
//!
//! [`is_due_between_runs`]: PollSchedule::is_due_between_runs
//! [`is_due_amid_run`]: PollSchedule::is_due_amid_run
//! [`poll`]: Worker::poll
//! [`poll_amid_run`]: Worker::poll_amid_run
//! [`poll_in_spin`]: Worker::poll_in_spin
//! [`poll_packets`]: Worker::poll_packets
//! [`receive`]: Worker::receive

use lb_strategies::window_policy::Signal;

use super::instruments::Instruments;
use super::local_delivery::{PacketSink, PollState, PollStop};
use super::remote_sender::RemoteSender;
use super::worker::Worker;
use crate::arrays::core::lifecycle::LifecyclePacket;
use crate::arrays::core::lifecycle::transfer::ChunkBody;
use crate::arrays::core::packet::Packet;
use crate::arrays::core::routing::message_list::FreeList;
use crate::arrays::core::sync::window::RankSignal;
use crate::ids::{CellId, ChunkId, Rank, WorkerId};
use crate::transport::PacketHandler;

/// Interval of polls in the middle of a run, ns.
const AMID_RUN_NS: u64 = 50_000;
/// Number of handlers in a run between two readings of the clock, where handlers are not measured.
const AMID_RUN_HANDLERS: u64 = 8;
/// Interval of polls between runs, ns. An earlier poll costs more than it finds, and splits outgoing batches.
const BETWEEN_RUNS_NS: u64 = 1_000;
/// The same interval as a number of handlers, where handlers are not measured.
const BETWEEN_RUNS_HANDLERS: u64 = 4;
/// Polls that are at least this far apart are rare, ns.
const RARE_NS: u64 = 10_000;
/// The most packets of a poll before the worker looks at ready chunks again.
const PACKETS_MAX: usize = 64;

/// Decides when a worker polls next.
#[derive(Default)]
pub(crate) struct PollSchedule {
    is_active: bool,
    /// The time of the last poll, ns. Not updated by polls of a spin without measured time.
    began_ns: u64,
    /// The end of the last poll, ns; its begin if the poll found nothing, since that reads no clock at its end.
    ended_ns: u64,
    /// True if the last poll began long after the end of the poll before (rule 4).
    is_rare: bool,
    /// Time at which the next signal to rank 0 is due, ns.
    signal_ns: u64,
    /// Number of messages handled up to the last signal, and whether that signal reported work.
    signalled: u64,
    signals_work: bool,
}

impl PollSchedule {
    /// A schedule with a signal to rank 0 every `signal_ns` ns.
    pub(super) fn signalling_every(signal_ns: u64) -> PollSchedule {
        PollSchedule { signal_ns, ..PollSchedule::default() }
    }

    /// True if a signal to rank 0 is due (rule 7).
    #[inline]
    fn signal_is_due(&self, instruments: &mut Instruments<'_>) -> bool {
        self.signal_ns < u64::MAX && instruments.time_ns() >= self.signal_ns
    }

    /// A signal is due. Returns whether it reports work, or None if no signal is to be sent (rule 7). `handled` counts
    /// the messages of this worker. `others_work` is true if other workers of the rank may work.
    fn begin_signal(&mut self, handled: u64, others_work: bool, next_ns: u64) -> Option<bool> {
        self.signal_ns = next_ns;
        let works = std::mem::replace(&mut self.signalled, handled) != handled || others_work;
        let was_at_work = std::mem::replace(&mut self.signals_work, works);
        (works || was_at_work).then_some(works)
    }

    /// True if there is something to poll (rule 1).
    #[inline]
    pub(super) fn is_active(&self) -> bool {
        self.is_active
    }

    /// True if a poll is due between two runs of chunks.
    #[inline]
    pub(super) fn is_due_between_runs(&self, instruments: &Instruments<'_>) -> bool {
        match instruments.last_ns() {
            Some(last_ns) => last_ns >= self.next_ns(BETWEEN_RUNS_NS),
            None => self.is_rare || instruments.handled().is_multiple_of(BETWEEN_RUNS_HANDLERS),
        }
    }

    /// True if a poll is due although the running chunk has more messages.
    #[inline]
    pub(super) fn is_due_amid_run(&self, instruments: &mut Instruments<'_>) -> bool {
        let reads = || self.is_rare || instruments.handled().is_multiple_of(AMID_RUN_HANDLERS);
        (instruments.last_ns().is_some() || reads()) && instruments.time_ns() >= self.next_ns(AMID_RUN_NS)
    }

    #[inline]
    fn begin(&mut self, now_ns: u64, remote_sender: &mut RemoteSender<'_>) {
        let is_rare = now_ns >= self.ended_ns + RARE_NS;
        if is_rare != self.is_rare {
            remote_sender.set_frequent_polls(!is_rare);
        }
        (self.began_ns, self.ended_ns, self.is_rare) = (now_ns, now_ns, is_rare);
    }

    fn end(&mut self, now_ns: u64) {
        self.ended_ns = now_ns;
    }

    /// Time at which the next poll is due, ns (rule 2).
    #[inline]
    fn next_ns(&self, interval_ns: u64) -> u64 {
        self.ended_ns + interval_ns.max(self.ended_ns.saturating_sub(self.began_ns))
    }
}

impl Worker<'_> {
    /// Polls, on time that no chunk is charged for. True if the poll found anything.
    pub(super) fn poll(&mut self, free_list: &mut FreeList) -> bool {
        let any = self.poll_packets(free_list);
        if self.poll_schedule.signal_is_due(&mut self.instruments) {
            self.signal();
        }
        if self.is_asked_to_resize() {
            self.take_resize_request();
        }
        if any || self.remote_sender.transfers() {
            self.instruments.start_slice();
            self.poll_schedule.end(self.instruments.time_ns());
        }
        self.take_written() | self.take_answer() || any
    }

    /// True if a request to shrink or expand the run waits, on the worker that takes such requests.
    #[inline]
    pub(super) fn is_asked_to_resize(&self) -> bool {
        let takes = self.shared.info.takes_resizes && self.id == WorkerId(0);
        takes && self.shared.resizes.as_ref().is_some_and(|requests| requests.is_asked())
    }

    #[cold]
    fn take_resize_request(&mut self) {
        let requested = self.shared.resizes.as_ref().and_then(|requests| requests.take());
        if let Some(active) = requested {
            self.with_core(|core, now_ns, out| core.resize(active, now_ns, out));
        }
    }

    /// Sends rank 0 a signal of how busy this rank is, where chunks are balanced in windows.
    #[cold]
    fn signal(&mut self) {
        let rank = self.shared.info.rank;
        if let Some(listener) = &self.shared.notices {
            if let Some(by) = listener.take() {
                self.with_core(|core, now_ns, out| core.noticed(by, now_ns, out));
            }
            if listener.take_advice() {
                self.with_core(|core, now_ns, out| core.ask_for_checkpoint(now_ns, out));
            }
        }
        let mut stops = false;
        self.with_core(|core, _, _| stops = core.holds_timers());
        let (now_ns, handled) = (self.instruments.now_ns(), self.instruments.handled());
        let (next_ns, others_work) =
            (now_ns + self.shared.info.signal_ns, !self.shared.scheduler.others_are_parked());
        // Send no signal while all ranks stop for a checkpoint: the signal that a rank is idle must not be lost.
        let works = if stops { None } else { self.poll_schedule.begin_signal(handled, others_work, next_ns) };
        if let Some(works) = works {
            // Without measurement, windows open by the clock alone.
            let busy = Signal::of(self.shared.measurements.busy(now_ns).unwrap_or(0.0));
            let signal = RankSignal { busy, rests: !works };
            self.with_core(|core, now_ns, out| core.signalled(rank, signal, now_ns, out));
        }
    }

    /// Polls in the middle of a run, and returns to the chunk.
    #[cold]
    pub(super) fn poll_amid_run(&mut self, chunk: ChunkId, id: CellId, free_list: &mut FreeList) {
        self.instruments.pause();
        self.poll(free_list);
        self.instruments.turn_to(chunk, id, self.shared.cells.get(id));
    }

    /// Polls for packets and timers. The time of the poll belongs to the slice that the caller ends.
    #[inline]
    pub(super) fn poll_packets(&mut self, free_list: &mut FreeList) -> bool {
        if !self.poll_schedule.is_active {
            return false;
        }
        self.poll_schedule.begin(self.instruments.time_ns(), &mut self.remote_sender);
        self.take_packets(PACKETS_MAX, free_list)
    }

    /// Polls for at most one packet. With a packet the worker has work, and stops spinning.
    #[inline]
    pub(super) fn poll_in_spin(&mut self, free_list: &mut FreeList) -> bool {
        if !self.poll_schedule.is_active {
            return false;
        }
        if let Some(last_ns) = self.instruments.last_ns() {
            self.poll_schedule.begin(last_ns, &mut self.remote_sender);
        }
        self.take_packets(1, free_list)
    }

    /// Checks again whether there is something to poll (rule 1).
    pub(super) fn update_poll_schedule(&mut self) {
        self.poll_schedule.is_active = self.remote_sender.has_transport()
            || self.timers.next_ns().is_some()
            || self.has_question()
            || self.pending_io.is_some();
    }

    /// Hop 3, receiving side. Also sends messages that are due and packets that wait.
    #[inline(never)]
    fn take_packets(&mut self, packets_max: usize, free_list: &mut FreeList) -> bool {
        let any = self.timers.next_ns().is_some() && self.send_due(free_list);
        if !self.remote_sender.has_transport() {
            return any;
        }
        if self.shared.control_plane.outbound_waits() {
            let sent = self.remote_sender.send_outbound();
            self.fail_unless(sent);
        }
        // User code decodes the packets, and may panic.
        self.instruments.turn_to_packets();
        let mut poll_state = PollState::new(packets_max);
        while poll_state.left > 0 {
            let polled = self.remote_sender.poll(&mut self.local_delivery, free_list, &mut poll_state);
            let goes_on = self.handle_stop(poll_state.stop.take());
            self.fail_unless(polled);
            if !goes_on {
                break;
            }
        }
        any || poll_state.left < packets_max
    }

    /// Handles the reason for which the poll stopped. True if the poll goes on.
    #[inline]
    fn handle_stop(&mut self, stop: Option<PollStop>) -> bool {
        match stop {
            None => false,
            Some(PollStop::Drained) => {
                self.drained();
                true
            }
            Some(PollStop::Packet(from, packet)) => {
                // A chunk transfer is slow: ready chunks run first.
                let goes_on = !matches!(packet, Packet::Lifecycle(LifecyclePacket::TransferChunk(_)));
                self.receive_other(from, packet);
                goes_on
            }
        }
    }

    /// The rank is drained: it has all messages of the epoch that has ended.
    #[cold]
    fn drained(&mut self) {
        self.with_core(|core, now_ns, out| core.drained(now_ns, out));
    }

    #[inline(never)]
    fn receive_other(&mut self, from: Rank, packet: Packet) {
        self.local_delivery.share_newest();
        let packet = self.call_on_arrive(packet);
        self.with_core(|core, now_ns, out| core.receive(from, packet, now_ns, out));
    }

    /// Calls `on_arrive` of a migrated chunk: user code, so before the core is locked.
    fn call_on_arrive(&mut self, mut packet: Packet) -> Packet {
        if let Packet::Lifecycle(LifecyclePacket::TransferChunk(transfer)) = &mut packet
            && let (ChunkBody::Live(slot), Some(_)) = (&mut transfer.body, transfer.transit)
        {
            let phase = slot.record().syncs.next;
            self.instruments.turn_to_hook(transfer.chunk, "on_arrive", phase);
            slot.on_arrive();
        }
        packet
    }

    /// Receives a packet of a simulation, which has no transport. Decodes a message from bytes if the run asks for
    /// that.
    pub(super) fn receive(&mut self, from: Rank, packet: Packet, free_list: &mut FreeList) {
        let mut poll_state = PollState::new(1);
        let mut reception =
            PacketSink { local_delivery: &mut self.local_delivery, free_list, poll_state: &mut poll_state };
        let read = match self.shared.message_bytes(&packet) {
            Ok(bytes) => bytes.and_then(|bytes| reception.read(from, &bytes)),
            Err(error) => Some(Err(Box::new(error))),
        };
        match read {
            Some(Ok(_)) => {}
            Some(Err(error)) => return self.fail(*error),
            None => {
                reception.take(from, packet);
            }
        }
        self.handle_stop(poll_state.stop);
    }
}
