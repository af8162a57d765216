//! Drives the lifecycle of chunks on one rank: checks the setup; inserts, spawns and removes chunks.

use super::RankCore;
use crate::arrays::core::collectives::population::Membership;
use crate::arrays::core::command::{Command, Commands};
use crate::arrays::core::lifecycle::LifecyclePacket;
use crate::arrays::core::lifecycle::handler::ChunkRecord;
use crate::arrays::core::lifecycle::seeds::UnstartedChunk;
use crate::arrays::core::lifecycle::signature::{ArraySignature, difference};
use crate::arrays::core::lifecycle::transfer::{ChunkBody, ChunkTransfer, Origin};
use crate::arrays::core::termination::REMOVED_MAX;
use crate::error::Error;
use crate::ids::{ChunkId, ROOT, Rank};

impl RankCore {
    /// A packet about chunks and arrays.
    pub(super) fn handle_lifecycle(
        &mut self,
        from: Rank,
        packet: LifecyclePacket,
        now_ns: u64,
        out: &mut Commands,
    ) {
        match packet {
            LifecyclePacket::TransferChunk(transfer) => self.receive_chunk(from, transfer, now_ns, out),
            LifecyclePacket::SeedRequest => self.seeds_requested(from, out),
            LifecyclePacket::Seeds(seeds) => self.seeds_received(from, seeds, out),
            LifecyclePacket::Hello { rank, arrays } => self.check_setup(rank, arrays, now_ns, out),
        }
    }

    /// A rank has sent the arrays that it has set up. If they differ from this rank's, rank 0 fails the run.
    fn check_setup(&mut self, rank: Rank, arrays: Vec<ArraySignature>, now_ns: u64, out: &mut Commands) {
        let Some(what) = difference(&arrays, &self.lifecycle.signatures) else { return };
        match self.tree.parent() {
            None => self.fail(Error::SetupDiffers { rank, what }, out),
            Some(_) => self.send_up(LifecyclePacket::Hello { rank, arrays }, now_ns, out),
        }
    }

    /// A chunk was inserted without a parent by one of this rank's handlers: rank 0 admits it to the counts of its
    /// array.
    pub(crate) fn insert_root(&mut self, transfer: ChunkTransfer, out: &mut Commands) {
        let origin = Some(Origin { rank: self.tree.rank, admitted: false });
        self.send(
            ROOT,
            LifecyclePacket::TransferChunk(Box::new(ChunkTransfer { origin, ..transfer })),
            0,
            out,
        );
    }

    /// Rank 0 admits a chunk without a parent: it joins the first reduction and the first sync that are not complete.
    pub(super) fn admit_rootless(
        &mut self,
        mut transfer: Box<ChunkTransfer>,
        origin: Rank,
        out: &mut Commands,
    ) {
        transfer.origin = Some(Origin { rank: origin, admitted: true });
        let array = transfer.chunk.array;
        let coordinator = self.sync.coordinator.as_mut().expect("rank 0 admits chunks without a parent");
        let ChunkBody::Live(slot) = &mut transfer.body else { unreachable!("it was decoded when it came") };
        let record = slot.record();
        record.reductions = Membership::admitted(self.collectives.reductions.admit(array));
        record.first_reduction = record.reductions.next;
        record.syncs = Membership::admitted(coordinator.admit(array).0);
        self.insert(transfer, out);
    }

    /// A chunk was inserted by one of this rank's handlers.
    pub(crate) fn insert(&mut self, transfer: Box<ChunkTransfer>, out: &mut Commands) {
        let to = self.routing.location.rank_of(transfer.chunk);
        *self.termination.undelivered.inserted.entry(to).or_default() += 1;
        self.send(to, LifecyclePacket::TransferChunk(transfer), 0, out);
    }

    /// A chunk of this rank was removed: sends its last reports to reductions and syncs, which would wait for it.
    pub(crate) fn remove(&mut self, chunk: ChunkId, record: &mut ChunkRecord, out: &mut Commands) {
        let cell = self.routing.location.cell(chunk);
        if let Some(cell) = cell {
            out.now.push_back(Command::Close(cell));
            self.flow.control.leave(cell);
        }
        self.routing.location.departed(chunk);
        if self.termination.undelivered.removed.len() < REMOVED_MAX {
            self.termination.undelivered.removed.insert(chunk);
        }
        self.leave_reductions(chunk, record, out);
        if self.comes_to_syncs(chunk.array) {
            self.sync.arrivals.removed(chunk.array, record.syncs.leave());
            self.sample_complete(out);
        }
        self.removed(chunk, cell, out);
    }

    pub(crate) fn spawn(&mut self, seed: UnstartedChunk) {
        self.lifecycle.seeds.spawned(seed);
    }

    /// A worker of this rank finds no ready chunk: starts a seed, or requests seeds from other ranks.
    pub(crate) fn start_seed(&mut self, out: &mut Commands) {
        let Some((UnstartedChunk { array, body }, key)) = self.lifecycle.seeds.start() else {
            return self.request_seeds(out);
        };
        if self.comes_to_syncs(array) {
            self.begin_phase(out);
        }
        let transfer = ChunkTransfer { body, ..ChunkTransfer::without_body(ChunkId { array, key }) };
        out.now.push_back(Command::Admit(Box::new(transfer)));
    }

    pub(super) fn request_seeds(&mut self, out: &mut Commands) {
        for lifeline in self.lifecycle.seeds.request() {
            self.send(lifeline, LifecyclePacket::SeedRequest, 0, out);
        }
    }

    pub(super) fn seeds_requested(&mut self, rank: Rank, out: &mut Commands) {
        self.lifecycle.seeds.requested_by(rank);
        self.share_seeds(out);
    }

    pub(super) fn seeds_received(&mut self, from: Rank, seeds: Vec<UnstartedChunk>, out: &mut Commands) {
        self.lifecycle.seeds.receive(from, seeds);
        self.share_seeds(out);
    }

    /// Sends seeds to the ranks that have requested some, if this rank can spare any.
    pub(crate) fn share_seeds(&mut self, out: &mut Commands) {
        while let Some((asker, seeds)) = self.lifecycle.seeds.share() {
            self.send(asker, LifecyclePacket::Seeds(seeds), 0, out);
        }
    }
}
