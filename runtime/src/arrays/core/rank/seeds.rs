//! Seeds as one rank handles them: hands each input to [`seeds`](crate::arrays::core::lifecycle::seeds), and sends and admits what that
//! says.

use super::{Actions, RankCore};
use crate::arrays::core::action::Action;
use crate::arrays::core::lifecycle::seeds::UnstartedChunk;
use crate::arrays::core::packet::{ChunkTransfer, Packet};
use crate::ids::{ChunkId, Rank};

impl RankCore {
    /// A handler of this rank has spawned a chunk.
    pub(crate) fn spawn(&mut self, seed: UnstartedChunk) {
        self.seeds.spawned(seed);
    }

    /// A worker of this rank finds no ready chunk: starts a seed, or asks other ranks for some.
    pub(crate) fn start_seed(&mut self, out: &mut Actions) {
        let Some((UnstartedChunk { array, body }, key)) = self.seeds.start() else {
            return self.request_seeds(out);
        };
        if self.arrays[array.index()].syncs() {
            self.begin_phase(out);
        }
        let transfer = ChunkTransfer { body, ..ChunkTransfer::without_body(ChunkId { array, key }) };
        out.push_back(Action::Admit(Box::new(transfer)));
    }

    pub(super) fn request_seeds(&mut self, out: &mut Actions) {
        for lifeline in self.seeds.request() {
            self.send(lifeline, Packet::SeedRequest, 0, out);
        }
    }

    pub(super) fn seeds_requested(&mut self, rank: Rank, out: &mut Actions) {
        self.seeds.requested_by(rank);
        self.share_seeds(out);
    }

    pub(super) fn seeds_received(&mut self, from: Rank, seeds: Vec<UnstartedChunk>, out: &mut Actions) {
        self.seeds.receive(from, seeds);
        self.share_seeds(out);
    }

    /// Sends seeds to the ranks that have asked, if there are any to spare.
    pub(crate) fn share_seeds(&mut self, out: &mut Actions) {
        while let Some((asker, seeds)) = self.seeds.share() {
            self.send(asker, Packet::Seeds(seeds), 0, out);
        }
    }
}
