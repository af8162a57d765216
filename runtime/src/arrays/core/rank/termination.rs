//! Drives termination on one rank: the search for quiescence, the explanation of a stall, and undelivered messages.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{RankCore, array_text};
use crate::arrays::core::command::{Commands, Task};
use crate::arrays::core::routing::envelope::{Delivery, Envelope};
use crate::arrays::core::termination::quiescence::{SearchStep, Traffic};
use crate::arrays::core::termination::undelivered::{Addressees, UndeliveredReport};
use crate::arrays::core::termination::{DeliveryCounts, StallExplanation, Termination, TerminationPacket};
use crate::error::Error;
use crate::ids::{ArrayId, ChunkId, ROOT};
use crate::text::counted;

impl RankCore {
    /// A packet of the search for quiescence.
    pub(super) fn handle_termination(&mut self, packet: TerminationPacket, now_ns: u64, out: &mut Commands) {
        match packet {
            TerminationPacket::AtQuiescence(envelope) => self.termination.at_quiescence.push(*envelope),
            TerminationPacket::Probe => self.termination.probed = true,
            TerminationPacket::ProbeReply(traffic) => self.probe_replied(traffic, now_ns, out),
            TerminationPacket::Explain { open } => out.later.push_back(Task::Explain { open }),
            TerminationPacket::StallExplanation(explanation) => self.explanation_received(explanation, out),
        }
    }

    /// A chunk was removed before it read messages of these kinds.
    pub(crate) fn unread(&mut self, chunk: ChunkId, kinds: Vec<Cow<'static, str>>) {
        kinds.into_iter().for_each(|kind| self.termination.undelivered.unread.add(chunk, kind));
    }

    /// Takes the messages for chunks that are not here and are not expected by a migration.
    pub(crate) fn take_waiting(&mut self) -> BTreeMap<ChunkId, Vec<Delivery>> {
        let mut waiting = self.routing.location.take_pending();
        waiting.retain(|&chunk, _| !self.sync.migrations.expects(chunk));
        waiting
    }

    /// The counts of messages that reached no chunk on this rank. `waiting` counts the messages that
    /// [`take_waiting`](Self::take_waiting) took.
    pub(crate) fn undelivered_report(&self, waiting: &Addressees) -> UndeliveredReport {
        let DeliveryCounts { unread, migrations, inserted, admitted, removed } =
            &self.termination.undelivered;
        let describe = |chunk| self.describe(chunk);
        UndeliveredReport {
            rank: self.tree.rank,
            unread: unread.described(|_| true, describe),
            waiting: waiting.described(|chunk| removed.contains(&chunk), describe),
            migrations: *migrations,
            inserted: inserted.clone(),
            admitted: *admitted,
        }
    }

    /// A handler of this rank sends a message that waits for quiescence.
    pub(crate) fn send_at_quiescence(&mut self, envelope: Box<Envelope>, out: &mut Commands) {
        self.send(ROOT, TerminationPacket::AtQuiescence(envelope), 0, out);
    }

    /// True if the search for quiescence waits for this rank's reply, or rank 0 is to begin one for a waiting message.
    pub(crate) fn is_searched(&self) -> bool {
        if self.checkpoints.stops() {
            return self.checkpoints.is_probed();
        }
        let Termination { probed, delayed, at_quiescence, .. } = &self.termination;
        let replies = *probed && *delayed == 0 && !self.sync.is_deciding();
        replies || (!at_quiescence.is_empty() && self.may_suspect())
    }

    /// The number of the wave in progress, while rank 0 waits only for other ranks.
    pub(crate) fn open_wave(&self) -> Option<u64> {
        let waits_itself = self.sync.is_deciding() || self.termination.delayed > 0;
        self.termination.quiescence.open_wave().filter(|_| !waits_itself)
    }

    /// True on rank 0 while no wave is in progress.
    pub(crate) fn may_suspect(&self) -> bool {
        self.tree.rank == ROOT && self.termination.quiescence.open_wave().is_none()
    }

    /// A handler of this rank sends a message that waits here until it is due. Until then it is in flight.
    pub(crate) fn delay_message(&mut self) {
        self.termination.delayed += 1;
    }

    /// A delayed message is about to be sent. True if it is the last one and the search for quiescence waits for it.
    pub(crate) fn timer_expired(&mut self) -> bool {
        self.termination.delayed -= 1;
        self.termination.delayed == 0 && self.termination.probed
    }

    /// This rank or a child replies to the search for quiescence.
    pub(super) fn probe_replied(&mut self, traffic: Traffic, now_ns: u64, out: &mut Commands) {
        let Some(total) = self.termination.replies.add(&self.tree, |sum| *sum += traffic) else { return };
        if self.tree.rank != ROOT {
            return self.send_up(TerminationPacket::ProbeReply(total), now_ns, out);
        }
        let step = self.termination.quiescence.wave_answered(total);
        self.search(step, out);
    }

    /// This rank has had nothing to do for a long time. Rank 0 begins to probe all ranks.
    pub(crate) fn suspect(&mut self, out: &mut Commands) {
        if self.tree.rank == ROOT && !self.checkpoints.stops() {
            let step = self.termination.quiescence.suspect();
            self.search(step, out);
        }
    }

    fn search(&mut self, step: SearchStep, out: &mut Commands) {
        match step {
            SearchStep::Wait => {}
            SearchStep::Wave => self.broadcast_down(ROOT, TerminationPacket::Probe, 0, out),
            SearchStep::Quiescent => {
                let waiting = std::mem::take(&mut self.termination.at_quiescence);
                if waiting.is_empty() {
                    let open = self.collectives.reductions.unfinished();
                    return self.broadcast_down(ROOT, TerminationPacket::Explain { open }, 0, out);
                }
                self.termination.quiescence.reset();
                for Envelope { to, delivery, .. } in waiting {
                    self.send_message(to, delivery, out);
                }
            }
        }
    }

    /// This rank or a child has explained what waits there.
    fn explanation_received(&mut self, explanation: StallExplanation, out: &mut Commands) {
        let joined = self.termination.explanations.add(&self.tree, |all| {
            all.lines.extend(explanation.lines);
            all.reported.extend(explanation.reported);
        });
        let Some(StallExplanation { lines, reported }) = joined else { return };
        let Some(coordinator) = &mut self.sync.coordinator else {
            let explanation = StallExplanation { lines, reported };
            return self.send_up(TerminationPacket::StallExplanation(explanation), 0, out);
        };
        coordinator.add_reports(reported);
        let arrays = &self.arrays;
        let mut waiting = coordinator.explain(|array| array_text(arrays, array));
        waiting.extend(lines);
        self.fail(Error::Stalled { waiting }, out);
    }

    /// Answers [`Task::Explain`] with `lines` about the chunks. Adds lines about the rank itself.
    pub(crate) fn explained(&mut self, mut lines: Vec<String>, out: &mut Commands) {
        let text = |chunk: ChunkId| self.describe(chunk);
        for (chunk, waiting) in self.routing.location.pending() {
            let is_not = if self.termination.undelivered.removed.contains(&chunk) {
                "no longer exists"
            } else {
                "does not exist"
            };
            let wait = counted(waiting.len(), "message waits", "messages wait");
            let mut line = format!("{} {is_not}; {wait} for it", text(chunk));
            let insertion = waiting.iter().find(|delivery| delivery.payload.is_insertion());
            if let Some(Delivery { payload, .. }) = insertion {
                line += &format!(", such as the {}", self.arrays[chunk.array.index()].kind(payload));
            }
            lines.push(line);
        }
        let name = |array| array_text(&self.arrays, array);
        lines.extend(self.collectives.sections.explain(name, |array, key| text(ChunkId { array, key })));
        let unread = self.termination.undelivered.unread.described(|_| true, text);
        lines.extend((unread.messages > 0).then(|| unread.to_string()));
        if self.tree.rank == ROOT {
            let empty = (0..).map(ArrayId).zip(&*self.arrays).filter(|(_, array)| array.population() == 0);
            lines.extend(empty.map(|(array, _)| format!("{} was set up without chunks", name(array))));
            lines.extend(self.collectives.reductions.explain(name));
        }
        let reported = self.sync.arrivals.reported().into_iter().chain(self.sync.reports.tallies()).collect();
        self.explanation_received(StallExplanation { lines, reported }, out);
    }
}
