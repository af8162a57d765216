//! Passes inputs to the core, and runs the commands and tasks that the core returns.
//!
//! A [`Command`] runs while the core is locked, so no other worker sees a state between two commands. A [`Task`] may
//! run handlers and hooks, so it runs after the lock. Placement functions and index conversions are user code that runs
//! under the lock; they cannot call the runtime. Packets are encoded after the lock, in the order in which the core
//! returned them.

use std::collections::VecDeque;

use super::control_plane::Core;
use super::mailbox::PushedBy;
use super::remote_sender::SendResult;
use super::watermarks::bytes_of;
use super::worker::Worker;
use crate::arrays::core::collectives::broadcast::duplicate;
use crate::arrays::core::collectives::exit_value::ExitValue;
use crate::arrays::core::command::{Command, Commands, Task};
use crate::arrays::core::lifecycle::handler::HandlerHost as _;
use crate::arrays::core::lifecycle::transfer::{ChunkBody, ChunkTransfer, Transit};
use crate::arrays::core::rank::RankCore;
use crate::arrays::core::routing::envelope::Delivery;
use crate::arrays::core::routing::message_list::MessageNode;
use crate::error::Error;
use crate::ids::{CellId, ChunkId, Rank, SyncId};
use crate::trace::Part;
use crate::warn::warn;

impl Worker<'_> {
    /// Passes an input to the core and runs the requests that follow. Times of successive inputs may go back a little.
    pub(crate) fn with_core(&mut self, input: impl FnOnce(&mut RankCore, u64, &mut Commands)) {
        let shared = self.shared;
        let now_ns = self.instruments.now_ns();
        let mut commands = std::mem::take(&mut self.commands);
        let has_seeds = {
            let core = &mut *shared.control_plane.lock();
            input(&mut core.rank, now_ns, &mut commands);
            while let Some(command) = commands.now.pop_front() {
                self.run_command(core, command, now_ns, &mut commands);
            }
            shared.watermarks.update(&core.rank);
            shared.seeds.follow(&core.rank)
        };
        let tasks = std::mem::take(&mut commands.later);
        self.commands = commands;
        let sent = self.remote_sender.flush();
        if has_seeds {
            self.share_among_workers();
        }
        if !tasks.is_empty() {
            self.run_tasks(tasks);
        }
        self.fail_unless(sent);
    }

    /// Ends the run with the error of a packet that could not be sent or decoded.
    #[inline]
    pub(crate) fn fail_unless(&mut self, sent: SendResult) {
        if let Err(error) = sent {
            self.fail(*error);
        }
    }

    /// Runs a command, with the core locked.
    fn run_command(&mut self, core: &mut Core, command: Command, now_ns: u64, out: &mut Commands) {
        match command {
            Command::Send(to, packet) => self.remote_sender.transmit(core, to, packet),
            Command::Enqueue { to, cell, delivery } => self.enqueue(core, to, cell, delivery),
            Command::EnqueueToAll { to, delivery } => match to[..] {
                [] => {}
                [(to, cell)] => {
                    out.now.push_front(Command::Enqueue { to, cell, delivery: delivery.unshared() });
                }
                _ => {
                    let shared = delivery.shared(|bytes| self.shared.watermarks.track(bytes));
                    for (to, cell) in to {
                        self.enqueue(core, to, cell, duplicate(&shared));
                    }
                }
            },
            Command::Hold(cells) => {
                let (all, mailbox) = (cells.len(), |cell| &self.shared.cells.get(cell).mailbox);
                let mut held = cells.into_iter().filter(|&cell| mailbox(cell).hold()).count();
                if held < all {
                    // Otherwise all ranks would wait for a long queue: a rank that chunks leave often has one.
                    self.shared.scheduler.withdraw(&mut self.local_delivery.ready, |entry| {
                        let consumed = held < all && mailbox(entry).withdraw();
                        held += usize::from(consumed);
                        consumed
                    });
                }
                (0..held).for_each(|_| core.rank.held(now_ns, out));
            }
            Command::Thaw(cells) => {
                let is_full = self.shared.watermarks.is_full();
                cells.iter().for_each(|&entry| core.rank.thawed(entry, is_full));
                // Update now: other workers may take entries before the core is unlocked.
                self.shared.watermarks.update(&core.rank);
                for entry in cells {
                    let cell = self.shared.cells.get(entry);
                    if cell.mailbox.release() {
                        self.local_delivery.enqueue_ready(entry, cell);
                    }
                }
            }
            Command::Close(cell) => self.shared.cells.get(cell).mailbox.close(),
            Command::BeginPhase => self.shared.measurements.begin_phase(now_ns),
            Command::Admit(transfer) => self.admit(core, *transfer, out),
            Command::Unpark(entry) => {
                let cell = self.shared.cells.get(entry);
                if cell.mailbox.withdraw() {
                    core.rank.held(now_ns, out);
                } else {
                    self.local_delivery.enqueue_ready(entry, cell);
                }
            }
            Command::CheckLowWatermark => self.shared.watermarks.check_low_watermark(&mut core.rank, out),
            Command::GrowLimit => {
                self.shared.watermarks.grow_limit();
                core.rank.below_low_watermark(out);
            }
            Command::IncomingAdmitted => core.rank.incoming_admitted(out),
        }
    }

    /// Puts a message of the core into a mailbox.
    fn enqueue(&mut self, core: &mut Core, to: ChunkId, cell: CellId, delivery: Delivery) {
        let refused = self.local_delivery.push(cell, MessageNode::new(to, delivery), PushedBy::Core);
        // The chunk was removed after the lookup. The core keeps the message, as for any missing chunk.
        refused.into_iter().for_each(|node| core.rank.add_pending(to, node.message.for_other_rank()));
    }

    /// Gives an incoming chunk a cell, its messages, and its pending messages.
    fn admit(&mut self, core: &mut Core, transfer: ChunkTransfer, out: &mut Commands) {
        let mail_bytes = transfer.queued_bytes();
        let ChunkTransfer { chunk, body, messages: mut mail, transit, bytes, .. } = transfer;
        let ChunkBody::Live(mut slot) = body else { unreachable!("chunks are decoded with their packets") };
        let next_sync = SyncId(slot.record().syncs.next);
        let in_handler = self.instruments.in_handler();
        if transit.is_some() && !in_handler {
            // Start a slice now: the last slice may have ended before the chunk left its old rank.
            self.instruments.skip(Part::Migrate, SyncId(next_sync.0.saturating_sub(1)));
        }
        if let Some(recorder) = self.instruments.recorder() {
            let array = &self.shared.arrays[chunk.array.index()];
            recorder.arrived(chunk, bytes, in_handler, || array.index_text(chunk.key));
        }
        // The worker that starts a seed has nothing else to do.
        let starts_here = transit.is_none() && self.shared.arrays[chunk.array.index()].has_seeds();
        let cell = self.shared.cells.reserve();
        let rest = core.rank.admit(chunk, cell, transit, next_sync, mail_bytes, out);
        let waiting = mail_bytes + rest.iter().map(|delivery| delivery.bytes).sum::<u64>();
        mail.extend(rest);
        if transit.is_none_or(|transit| transit.blocked) {
            core.rank.block_incoming(cell, self.shared.watermarks.is_full());
        }
        // Update now: other workers may take the entry before the core is unlocked.
        self.shared.watermarks.update(&core.rank);
        self.local_delivery.count_in(waiting, PushedBy::Core);
        let mail = mail.into_iter().map(|delivery| MessageNode::new(chunk, delivery)).collect();
        // Only now can other workers find the chunk, so their messages come after the pending messages.
        if self.shared.cells.settle(cell, chunk, slot, mail) {
            let place = self.shared.cells.get(cell);
            if starts_here {
                place.set_home(self.id);
            }
            self.local_delivery.enqueue_ready(cell, place);
        }
    }

    /// Runs tasks, with the core unlocked. If a handler is running, the worker then returns to its chunk.
    #[cold]
    fn run_tasks(&mut self, tasks: VecDeque<Task>) {
        self.local_delivery.share_newest();
        let chunk = self.instruments.activity().chunk.get();
        for task in tasks {
            self.run_task(task);
        }
        self.instruments.return_to(chunk);
    }

    fn run_task(&mut self, task: Task) {
        match task {
            Task::Combine(mut packet) => {
                let combined = packet.combine();
                self.with_core(|core, now_ns, out| core.combined(packet, combined, now_ns, out));
            }
            Task::MigrateOut { chunk, cell, to, transit } => self.migrate_out(chunk, cell, to, transit),
            Task::Sample(reports) => self.sample(reports),
            Task::SampleWindow { number, decides, chunks } => self.sample_window(number, decides, &chunks),
            Task::RecordEdges(records) => self.record_edges(records),
            Task::Decide(request) => self.decide(request),
            Task::Explain { open } => {
                let lines = self.explain(&open);
                self.with_core(|core, _, out| core.explained(lines, out));
            }
            Task::Save { number, chunks, next_broadcasts, rest } => {
                self.save(number, &chunks, &next_broadcasts, *rest);
            }
            Task::CommitCheckpoint { number, arrays, written } => self.commit(number, arrays, written),
            Task::Warn(what) => warn(&what),
            Task::ResizeEnded { active, line } => self.resize_ended(active, &line),
            Task::SetExitValue(values) => match ExitValue::reduced(&values) {
                Ok(value) => self.shared.ending.set_exit_value(value),
                Err(why) => unreachable!("numbers and bytes encode: {why}"),
            },
            Task::Stop(result) => self.shared.stop(result.map_err(|error| *error)),
        }
    }

    fn migrate_out(&mut self, chunk: ChunkId, cell: CellId, to: Rank, transit: Transit) {
        self.instruments.interrupt();
        let (mut slot, mail) = self.shared.cells.get(cell).mailbox.take();
        let counted = slot.deferred_bytes() + bytes_of(&mail);
        self.shared.cells.free(cell);
        self.instruments.turn_to_hook(chunk, "on_depart", slot.record().syncs.next);
        let (bytes, mail) =
            (slot.state_bytes(), mail.into_messages().map(Delivery::for_other_rank).collect());
        slot.on_depart();
        tracing::debug!(?chunk, to = to.0, "departs");
        let transfer = Box::new(ChunkTransfer {
            messages: mail,
            bytes,
            transit: Some(transit),
            ..ChunkTransfer::inserted(chunk, slot)
        });
        let watermarks = &self.shared.watermarks;
        self.with_core(|core, now_ns, out| {
            core.migrated_out(transfer, to, watermarks.is_below_without(counted), now_ns, out);
        });
        self.count_out(counted);
        if let Some(recorder) = self.instruments.recorder() {
            recorder.departed(chunk, to, bytes, self.shared.clock.now_ns());
        }
    }

    /// The run cannot go on: sends the error to every rank and stops this rank.
    pub(crate) fn fail(&mut self, error: Error) {
        let text = error.to_string();
        self.with_core(|core, _, out| core.fail(error, out));
        // Log now: the run returns the error when all handlers have returned, and one of them may never return. But log
        // after all ranks were sent the error: the writer of the log may panic.
        tracing::error!(rank = self.shared.info.rank.0, error = %text, "the run has failed");
    }
}
