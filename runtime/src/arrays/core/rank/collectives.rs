//! Drives collectives on one rank: reductions, sections, multicasts and broadcasts.

use std::sync::Arc;

use super::{RankCore, array_text};
use crate::arrays::core::collectives::CollectivePacket;
use crate::arrays::core::collectives::broadcast::duplicate;
use crate::arrays::core::collectives::population::MemberReport;
use crate::arrays::core::collectives::reduction::{
    FinishedReduction, Partial, ReductionSpec, ResultTarget, Values, scan,
};
use crate::arrays::core::collectives::section::{
    SectionContribution, SectionOutput, SectionPartial, SectionResult,
};
use crate::arrays::core::command::{Command, Commands, Task};
use crate::arrays::core::flow::{Destination, SendOutcome};
use crate::arrays::core::lifecycle::handler::ChunkRecord;
use crate::arrays::core::routing::envelope::{Delivery, NODE_BYTES, Payload};
use crate::arrays::core::routing::in_flight::Epoch;
use crate::error::Error;
use crate::ids::{ArrayId, ChunkId, ROOT, Rank, Sender};

impl RankCore {
    /// A packet of a collective.
    pub(super) fn handle_collective(
        &mut self,
        from: Rank,
        packet: CollectivePacket,
        now_ns: u64,
        out: &mut Commands,
    ) {
        match packet {
            CollectivePacket::Multicast { from, array, keys, message, epoch } => {
                self.apply_multicast(from, array, keys, message, epoch, out);
            }
            CollectivePacket::BroadcastRequest { array, delivery, ack_request, .. } => {
                self.sequence_broadcast(from, array, delivery, ack_request, out);
            }
            CollectivePacket::Broadcast { array, number, delivery, ack_requested } => {
                self.apply_broadcast(array, number, *delivery, out);
                let is_heard =
                    self.routing.location.count(array) > 0 || self.collectives.broadcasts.are_logged();
                self.broadcast_received(is_heard, ack_requested, out);
            }
            CollectivePacket::Partial { array, sequence, partial } => {
                let local = self.routing.location.count(array);
                let added = self.collectives.reductions.receive(array, sequence, *partial, local);
                self.advance_reductions(array, sequence, added, out);
            }
            CollectivePacket::SectionPartial(part) => {
                let (array, first) = (part.array, part.keys[0]);
                let root = || self.arrays[array.index()].home(first, self.tree.ranks);
                let added = self.collectives.sections.receive(*part, root);
                self.advance_section(array, added, out);
            }
            CollectivePacket::ReductionResult { rank, to, tag, values } => {
                match self.tree.child_towards(rank) {
                    Some(child) => {
                        let result = CollectivePacket::ReductionResult { rank, to, tag, values };
                        self.send(child, result, now_ns, out);
                    }
                    None => self.enqueue(to, result(tag, values), out),
                }
            }
            CollectivePacket::SectionResult { array, keys, tag, values, .. } => {
                for key in keys {
                    self.enqueue(ChunkId { array, key }, result(tag, values.clone()), out);
                }
            }
        }
    }

    fn apply_multicast(
        &mut self,
        from: ChunkId,
        array: ArrayId,
        keys: Vec<u64>,
        message: Arc<[u8]>,
        epoch: Epoch,
        out: &mut Commands,
    ) {
        let (from, payload) = (Sender::new(from, 0), Payload::Encoded(message));
        let delivery = Delivery { from, bytes: NODE_BYTES, payload };
        let mut here = Vec::with_capacity(keys.len());
        for to in keys.into_iter().map(|key| ChunkId { array, key }) {
            match self.cell_of(to) {
                Some(cell) => here.push((to, cell)),
                None => self.add_pending_remote(epoch, to, duplicate(&delivery).unshared()),
            }
        }
        out.now.push_back(Command::EnqueueToAll { to: here, delivery });
    }

    /// Sends a message to several chunks. Returns the destinations that block the sender.
    pub(crate) fn multicast(
        &mut self,
        from: ChunkId,
        array: ArrayId,
        keys: &[u64],
        message: &Arc<[u8]>,
        out: &mut Commands,
    ) -> Vec<Destination> {
        let mut blocked_by = Vec::new();
        for (rank, keys) in self.by_rank(array, keys) {
            let bytes = message.len() as u64 + keys.len() as u64 * NODE_BYTES;
            let (message, epoch) = (message.clone(), Epoch::default());
            self.send(rank, CollectivePacket::Multicast { from, array, keys, message, epoch }, 0, out);
            if rank == self.tree.rank {
                blocked_by.push(Destination::Rank(rank));
                continue;
            }
            let SendOutcome { ack_request_due, blocks } = self.flow.control.count_sent(rank, bytes);
            blocked_by.extend(blocks.then_some(Destination::Rank(rank)));
            if ack_request_due {
                self.request_ack(rank, out);
            }
        }
        blocked_by
    }

    /// Sends a message to all chunks of an array. Returns the destination that blocks the sender, if any.
    pub(crate) fn broadcast(
        &mut self,
        array: ArrayId,
        delivery: Delivery,
        out: &mut Commands,
    ) -> Option<Destination> {
        // A rank holds a node for each of its chunks that receives the broadcast.
        let nodes = self.flow.receivers.max(array) * NODE_BYTES;
        let SendOutcome { ack_request_due, blocks } =
            self.flow.control.count_broadcast(delivery.payload.bytes() + nodes);
        let ack_request =
            if ack_request_due { self.flow.control.take_ack_request(Destination::AllRanks) } else { 0 };
        self.request_broadcast(array, delivery, ack_request, out);
        blocks.then_some(Destination::AllRanks)
    }

    fn request_broadcast(
        &mut self,
        array: ArrayId,
        delivery: Delivery,
        ack_request: u64,
        out: &mut Commands,
    ) {
        let (delivery, epoch) = (Box::new(delivery), Epoch::default());
        self.send(ROOT, CollectivePacket::BroadcastRequest { array, delivery, ack_request, epoch }, 0, out);
    }

    pub(crate) fn contribute(
        &mut self,
        chunk: ChunkId,
        report: MemberReport,
        spec: ReductionSpec,
        values: Values,
        out: &mut Commands,
    ) {
        let array = chunk.array;
        let local = self.routing.location.count(array);
        let values = if spec.target == ResultTarget::Scan { values.scanned(chunk.key) } else { values };
        let partial = Partial::contribution(report, spec, values);
        let added = self.collectives.reductions.contribute(array, report.sequence, partial, local);
        let added = added.map_err(|why| self.seen_at(chunk, &why));
        self.advance_reductions(array, report.sequence, added, out);
    }

    /// A chunk contributes nothing to a reduction.
    pub(crate) fn abstain(&mut self, chunk: ChunkId, report: MemberReport, out: &mut Commands) {
        let (array, local) = (chunk.array, self.routing.location.count(chunk.array));
        let added =
            self.collectives.reductions.contribute(array, report.sequence, Partial::empty(report), local);
        self.advance_reductions(array, report.sequence, added, out);
    }

    /// A chunk contributes to no reduction any more.
    pub(crate) fn leave_reductions(&mut self, chunk: ChunkId, record: &mut ChunkRecord, out: &mut Commands) {
        if record.reductions.has_left() {
            return;
        }
        let report = record.reductions.leave();
        let (array, sequence, local) =
            (chunk.array, report.sequence, self.routing.location.count(chunk.array));
        let added = self.collectives.reductions.leave(array, sequence, Partial::empty(report), local);
        self.advance_reductions(array, sequence, added, out);
    }

    /// The reason why a reduction fails, with the chunk whose contribution revealed the fault.
    fn seen_at(&self, chunk: ChunkId, why: &str) -> String {
        format!("{why}; detected at the contribution of {}", self.describe(chunk))
    }

    /// A chunk's contribution is invalid: the run ends with the reason.
    pub(crate) fn refuse_contribution(&mut self, chunk: ChunkId, why: &str, out: &mut Commands) {
        let why = format!("{} {why}", self.describe(chunk));
        self.fail_reduction(chunk.array, why, out);
    }

    /// A partial result was added to a reduction. `added` is true if all chunks of this rank have contributed, so that
    /// this rank sends it to the parent.
    fn advance_reductions(
        &mut self,
        array: ArrayId,
        sequence: u64,
        added: Result<bool, String>,
        out: &mut Commands,
    ) {
        if let Some((array, sequence, partial)) = self.collectives.reductions.take_uncombined() {
            let partial = Box::new(partial);
            out.later.push_back(Task::Combine(CollectivePacket::Partial { array, sequence, partial }));
        }
        match added {
            Ok(true) if self.tree.rank != ROOT => {
                for (sequence, partial) in self.collectives.reductions.complete(array, sequence) {
                    self.pass_on(array, sequence, partial, out);
                }
            }
            Ok(_) => {}
            Err(why) => self.fail_reduction(array, why, out),
        }
        self.finish_reductions(array, out);
    }

    /// User code has combined the values in a partial result, which is now handled like one from another rank.
    pub(crate) fn combined(
        &mut self,
        packet: CollectivePacket,
        combined: Result<(), (ArrayId, String)>,
        now_ns: u64,
        out: &mut Commands,
    ) {
        match combined {
            Ok(()) => self.handle_collective(self.tree.rank, packet, now_ns, out),
            Err((array, why)) => self.fail_reduction(array, why, out),
        }
    }

    /// A chunk contributes to a reduction over a section.
    pub(crate) fn contribute_in(
        &mut self,
        chunk: ChunkId,
        mut contribution: SectionContribution,
        out: &mut Commands,
    ) {
        let array = chunk.array;
        if contribution.spec.target == ResultTarget::Scan {
            contribution.values = contribution.values.scanned(chunk.key);
        }
        let part = SectionPartial::new(array, contribution);
        let (first, location) = (part.keys[0], &self.routing.location);
        let here = |key: &&u64| location.cell(ChunkId { array, key: **key }).is_some();
        let root = || self.arrays[array.index()].home(first, self.tree.ranks);
        let added = self.collectives.sections.contribute(part, root, |keys| keys.iter().filter(here).count());
        let added = added.map_err(|why| self.seen_at(chunk, &why));
        self.advance_section(array, added, out);
    }

    /// A partial result was added to a reduction over a section: carries out the output.
    fn advance_section(&mut self, array: ArrayId, added: Result<SectionOutput, String>, out: &mut Commands) {
        let SectionOutput { combine, pass_on, finished } = match added {
            Ok(advance) => advance,
            Err(why) => return self.fail_reduction(array, why, out),
        };
        out.later.extend(combine.map(|part| Task::Combine(CollectivePacket::SectionPartial(Box::new(part)))));
        if let Some((root, parts)) = pass_on {
            for part in parts {
                self.send(root, CollectivePacket::SectionPartial(Box::new(part)), 0, out);
            }
        }
        for SectionResult { keys, spec, values } in finished {
            self.send_result(array, Contributors::Section(&keys), spec, values, out);
        }
    }

    fn fail_reduction(&mut self, array: ArrayId, why: String, out: &mut Commands) {
        let array = array_text(&self.arrays, array);
        self.fail(Error::Reduction { rank: self.tree.rank, array, why }, out);
    }

    /// Rank 0 numbers a broadcast of a rank and sends it to all ranks.
    fn sequence_broadcast(
        &mut self,
        from: Rank,
        array: ArrayId,
        delivery: Box<Delivery>,
        ack_request: u64,
        out: &mut Commands,
    ) {
        let (number, ack_requested) = (self.collectives.broadcasts.number(array), ack_request > 0);
        if ack_requested {
            self.flow.broadcast_acks.sent(from, ack_request);
        }
        self.broadcast_down(
            ROOT,
            CollectivePacket::Broadcast { array, number, delivery, ack_requested },
            0,
            out,
        );
        if ack_requested {
            // The sender may have reported before that it waits for this broadcast.
            self.resolve_deadlocks(out);
        }
    }

    fn apply_broadcast(&mut self, array: ArrayId, number: u64, mut delivery: Delivery, out: &mut Commands) {
        if self.collectives.broadcasts.are_logged() {
            // Incoming chunks and chunks that are here share one message.
            delivery = delivery.shared(|bytes| self.flow.control.track(bytes));
        }
        self.collectives.broadcasts.apply(array, number, &delivery);
        // A chunk that is kept until the end of a checkpoint was inserted before this broadcast.
        let kept = self.checkpoints.insertions.iter().map(|(_, transfer)| transfer.chunk);
        for chunk in kept.filter(|chunk| chunk.array == array) {
            self.routing.location.add_pending(chunk, duplicate(&delivery).for_other_rank());
        }
        out.now.push_back(Command::EnqueueToAll { to: self.routing.location.residents(array), delivery });
    }

    /// Passes a partial result to the parent.
    fn pass_on(&mut self, array: ArrayId, sequence: u64, partial: Partial, out: &mut Commands) {
        self.send_up(CollectivePacket::Partial { array, sequence, partial: Box::new(partial) }, 0, out);
    }

    fn finish_reductions(&mut self, array: ArrayId, out: &mut Commands) {
        if self.tree.rank != ROOT {
            return;
        }
        while let Some(FinishedReduction { array, sequence, spec, values }) =
            self.collectives.reductions.finish(array)
        {
            self.send_result(array, Contributors::All(sequence), spec, values, out);
        }
    }

    /// Sends the result of a reduction to its target.
    fn send_result(
        &mut self,
        array: ArrayId,
        over: Contributors<'_>,
        spec: ReductionSpec,
        values: Arc<Values>,
        out: &mut Commands,
    ) {
        let ReductionSpec { tag, reducer, target } = spec;
        match (target, over) {
            (ResultTarget::All, Contributors::All(number)) => {
                let payload = Payload::Reduced { tag, values, number: Some(number) };
                self.request_broadcast(array, Delivery::by_runtime(payload), 0, out);
            }
            (ResultTarget::All, Contributors::Section(section)) => {
                for (rank, keys) in self.by_rank(array, section) {
                    let (values, epoch) = (values.clone(), Epoch::default());
                    self.send(
                        rank,
                        CollectivePacket::SectionResult { array, keys, tag, values, epoch },
                        0,
                        out,
                    );
                }
            }
            (ResultTarget::AllOf(array), _) => self.request_broadcast(array, result(tag, values), 0, out),
            (ResultTarget::Chunk(key), _) => self.send_result_to(ChunkId { array, key }, tag, values, out),
            (ResultTarget::ChunkOf(to), _) => self.send_result_to(to, tag, values, out),
            (ResultTarget::Scan, _) => match scan(reducer, &values) {
                Ok(results) => {
                    for (key, values) in results {
                        self.send_result_to(ChunkId { array, key }, tag, Arc::new(values), out);
                    }
                }
                Err(why) => self.fail_reduction(array, why, out),
            },
            (ResultTarget::Exit, _) => {
                out.later.push_back(Task::SetExitValue(values));
                self.exit(out);
            }
        }
    }

    fn send_result_to(&mut self, to: ChunkId, tag: u32, values: Arc<Values>, out: &mut Commands) {
        let rank = self.routing.location.rank_of(to);
        match self.tree.parent() {
            // The result goes down the tree, so that it keeps its order among the results for all chunks.
            None => self.handle_collective(
                ROOT,
                CollectivePacket::ReductionResult { rank, to, tag, values },
                0,
                out,
            ),
            Some(_) => self.send_message(to, result(tag, values), out),
        }
    }

    /// Sends on all partial results: this rank has nothing to do, or has worked for a long time.
    pub(crate) fn flush_partials(&mut self, out: &mut Commands) {
        for (root, part) in self.collectives.sections.take_all() {
            self.send(root, CollectivePacket::SectionPartial(Box::new(part)), 0, out);
        }
        if self.tree.rank != ROOT {
            for (array, sequence, partial) in self.collectives.reductions.take_all() {
                self.pass_on(array, sequence, partial, out);
            }
        }
    }
}

/// The chunks of an array that have contributed to a reduction.
#[derive(Clone, Copy)]
enum Contributors<'k> {
    /// All chunks that take part in the reduction of this number.
    All(u64),
    /// The chunks of a section, by key.
    Section(&'k [u64]),
}

/// The delivery of a reduction's result to chunks that wait for the result.
fn result(tag: u32, values: Arc<Values>) -> Delivery {
    Delivery::by_runtime(Payload::Reduced { tag, values, number: None })
}
