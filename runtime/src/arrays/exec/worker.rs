//! A worker: one thread of a rank, which finds ready chunks, runs their handlers and applies the effects. One turn:
//!
//! ```text
//! find a ready entry -> begin -> for each message: deliver, flush, lap -> finish -> poll
//! ```
//!
//! A message takes five hops: [`Ctx::send`](crate::Ctx::send) (1), the flush here (2), send and poll of a
//! [`Transport`](crate::transport::Transport) (3), [`Mailbox::push`](super::mailbox::Mailbox::push) (4), and
//! [`Slot::deliver`](crate::arrays::api::slot::Slot) (5). [`polling`](super::polling) defines when a worker polls.

use std::sync::Arc;

use super::cells::Cell;
use super::deciding::PendingDecision;
use super::instruments::Instruments;
use super::local_delivery::LocalDelivery;
use super::mailbox::{BeginOutcome, FinishOutcome};
use super::polling::PollSchedule;
use super::ready::ReadyQueue;
use super::remote_sender::RemoteSender;
use super::sending::SendState;
use super::shared::RankShared;
use super::simulated::Simulated;
use super::spin_policy::SpinPolicy;
use super::timers::WorkerTimers;
use crate::arrays::core::command::Commands;
use crate::arrays::core::lifecycle::erased::ErasedSlot;
use crate::arrays::core::lifecycle::handler::Handler;
use crate::arrays::core::packet::Packet;
use crate::arrays::core::routing::envelope::Payload;
use crate::arrays::core::routing::message_list::{MessageList, Outbox};
use crate::checkpoint::background::Background;
use crate::error::Error;
use crate::ids::{CellId, ChunkId, RUNTIME, Sender, WorkerId};
use crate::transport::handle::TransportHandle;
use crate::wire::WireError;

pub(crate) struct Worker<'r> {
    pub(super) shared: &'r RankShared,
    pub(super) id: WorkerId,
    pub(super) local_delivery: LocalDelivery<'r>,
    pub(super) spin_policy: SpinPolicy,
    pub(super) send_state: SendState,
    pub(super) remote_sender: RemoteSender<'r>,
    pub(super) timers: WorkerTimers<'r>,
    /// The decision that a thread is making while this worker goes on.
    pub(super) pending_decision: Option<Arc<PendingDecision>>,
    /// The part of a checkpoint that a thread is writing.
    pub(super) pending_io: Option<Background>,
    pub(super) poll_schedule: PollSchedule,
    pub(super) instruments: Instruments<'r>,
    pub(super) simulated: Simulated,
    /// Empty; kept for its memory.
    pub(super) commands: Commands,
}

/// The state of a chunk after the effects of its handler.
#[derive(PartialEq)]
pub(super) enum HandlerOutcome {
    Stays,
    Removed,
    /// The handler has ended the run: the chunk handles nothing more.
    Ended,
}

impl<'r> Worker<'r> {
    pub(crate) fn new(
        shared: &'r RankShared,
        id: WorkerId,
        ready: ReadyQueue<'r>,
        transport: Option<TransportHandle<'r, Packet>>,
    ) -> Worker<'r> {
        let instruments = Instruments::new(shared, id);
        let remote_sender = RemoteSender::new(shared, transport);
        let mut worker = Worker {
            shared,
            id,
            local_delivery: LocalDelivery::new(shared, id, ready),
            spin_policy: SpinPolicy::new(),
            send_state: SendState::new(
                shared.scheduler.lone(),
                shared.arrays.len(),
                shared.wire || instruments.keeps_events(),
                &shared.edges,
            ),
            timers: WorkerTimers::new(&shared.timers[id.index()]),
            pending_decision: None,
            pending_io: None,
            poll_schedule: PollSchedule::signalling_every(match id {
                WorkerId(0) => shared.info.signal_ns,
                _ => u64::MAX,
            }),
            remote_sender,
            instruments,
            simulated: Simulated::default(),
            commands: Commands::default(),
        };
        worker.update_poll_schedule();
        worker
    }

    /// An outbox for the handlers that this worker runs.
    pub(crate) fn outbox(&self) -> Outbox {
        Outbox::of(self.instruments.activity().clone())
    }

    /// Runs at most `runs_max` ready chunks; returns early when a poll is due. Returns the number of runs.
    pub(crate) fn run_ready(&mut self, runs_max: u32, outbox: &mut Outbox) -> u32 {
        let mut runs = 0;
        while runs < runs_max
            && let Some((id, cell)) = self.local_delivery.find().or_else(|| self.find_seed())
        {
            self.run(id, cell, outbox);
            runs += 1;
            let polls =
                self.poll_schedule.is_active() && self.poll_schedule.is_due_between_runs(&self.instruments);
            if polls || self.shared.scheduler.stopped() {
                break;
            }
        }
        runs
    }

    /// Runs the chunk of this entry for the messages that are in its mailbox now.
    #[inline(always)]
    fn run(&mut self, id: CellId, cell: &'r Cell, outbox: &mut Outbox) {
        let shared = self.shared;
        if shared.watermarks.may_block() && self.park_if_blocked(id) {
            return;
        }
        let (chunk, mut slot, mut mail) = match cell.mailbox.begin() {
            BeginOutcome::Run(chunk, slot, mail) => (chunk, slot, mail),
            BeginOutcome::Start(chunk, slot, mut mail) => {
                mail.push(outbox.free_list.fill(chunk, Sender::RUNTIME, 0, || Payload::Start));
                (chunk, slot, mail)
            }
            BeginOutcome::Held => return self.held(),
        };
        if !shared.scheduler.lone() {
            self.local_delivery.share_newest();
            if cell.count_run(self.id) {
                // The chunk's last handler, on another worker, may have ended only a moment ago.
                self.instruments.start_slice();
            }
        }
        self.instruments.turn_to(chunk, id, cell);
        let left = self.simulated.shuffle(&mut mail, || cell.mailbox.take_newer());
        if self.handle(chunk, &mut *slot, &mut mail, left, outbox, id) == HandlerOutcome::Removed {
            return self.vacate(chunk, id, slot, mail);
        }
        if !cell.facts.are_known() {
            cell.facts.learn(&mut *slot);
        }
        match cell.mailbox.finish(slot, mail) {
            FinishOutcome::Idle => {}
            FinishOutcome::Ready => self.local_delivery.enqueue_ready(id, cell),
            FinishOutcome::Held => self.held(),
        }
    }

    /// No handler of an outgoing chunk runs any more.
    #[cold]
    fn held(&mut self) {
        self.with_core(|core, now_ns, out| core.held(now_ns, out));
    }

    /// Handles at most `left` messages. Each is a function (state, message) -> (state, outbox), flushed before the
    /// next.
    #[inline]
    fn handle(
        &mut self,
        chunk: ChunkId,
        slot: &mut dyn ErasedSlot,
        mail: &mut MessageList,
        mut left: usize,
        outbox: &mut Outbox,
        cell: CellId,
    ) -> HandlerOutcome {
        let info = &self.shared.info;
        while left > 0
            && let Some(mut node) = mail.next()
        {
            left -= 1;
            self.count_out(node.message.bytes);
            self.instruments.begin();
            if let Err(why) = slot.deliver(&mut node.message, &mut Handler { outbox, info, host: self }) {
                self.fail_to_decode(chunk, &why);
                return HandlerOutcome::Stays;
            }
            outbox.free_list.recycle(node);
            let more = !mail.is_empty();
            if outbox.has_only_messages() {
                self.flush_messages(outbox);
                self.instruments.lap(more);
            } else {
                let outcome = self.apply_effects(chunk, slot, mail, outbox, cell);
                self.instruments.lap(more && outcome == HandlerOutcome::Stays);
                match outcome {
                    HandlerOutcome::Stays => {}
                    HandlerOutcome::Removed => return outcome,
                    HandlerOutcome::Ended => return HandlerOutcome::Stays,
                }
            }
            if self.local_delivery.gauge.is_blocked() {
                self.instruments.pause();
                self.block(cell);
                return HandlerOutcome::Stays;
            }
            if !more {
                return HandlerOutcome::Stays;
            }
            self.local_delivery.share_newest();
            if self.poll_schedule.is_active() && self.poll_schedule.is_due_amid_run(&mut self.instruments) {
                self.poll_amid_run(chunk, cell, &mut outbox.free_list);
                if self.shared.scheduler.stopped() {
                    return HandlerOutcome::Stays;
                }
            }
        }
        HandlerOutcome::Stays
    }

    #[cold]
    fn fail_to_decode(&mut self, chunk: ChunkId, why: &WireError) {
        let what = format!("a message to {}", self.describe(chunk));
        self.fail(Error::Wire { rank: self.shared.info.rank, what, why: why.to_string() });
    }

    /// Hop 2, the flush, for a handler that has left only message nodes, as most handlers do.
    #[inline]
    fn flush_messages(&mut self, outbox: &mut Outbox) {
        for node in outbox.take_messages() {
            self.send(node, &mut outbox.free_list);
        }
    }

    pub(crate) fn describe(&self, chunk: ChunkId) -> String {
        if chunk == RUNTIME {
            "the runtime".into()
        } else {
            self.shared.control_plane.lock().rank.describe(chunk)
        }
    }
}
