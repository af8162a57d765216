//! The control plane of one rank: passes each input to its protocol, and collects the commands that follow. The
//! executor ([`exec`](crate::arrays::exec)) calls [`RankCore`] and runs the [`Commands`] in order.
//!
//! This module itself handles packets, messages and idleness. Each protocol has a driver in a submodule, which combines
//! it with the others. State machines of protocols never call each other. A rank handles a packet to itself at once.

use std::sync::Arc;

use lb_strategies::balancer::RankPlace;
use lb_strategies::window_policy::WindowPolicy;
use lb_strategies::{Prediction, Strategy};
use litemap::LiteMap;

use super::checkpoint::Checkpoints;
use super::collectives::Collectives;
use super::collectives::tree::Tree;
use super::command::{Command, Commands, Task};
use super::flow::{Flow, FlowControl};
use super::lifecycle::erased::ErasedArray;
use super::lifecycle::{Lifecycle, LifecyclePacket};
use super::packet::Packet;
use super::routing::Routing;
use super::routing::envelope::{Delivery, Envelope};
use super::routing::in_flight::Epoch;
use super::sync::SyncProtocol;
use super::sync::coordinator::Coordinator;
use super::sync::coordinator::leaders_of;
use super::sync::group::{Group, GroupedCoordinator};
use super::sync::window::Windows;
use super::termination::Termination;
use crate::error::Error;
use crate::ids::{ArrayId, CellId, ChunkId, ROOT, Rank};
use crate::measure::edges::EdgeRecording;

mod checkpoint;
mod collectives;
#[cfg(test)]
mod drive;
mod flow;
#[cfg(test)]
mod idlers;
#[cfg(test)]
mod interleavings;
mod lifecycle;
#[cfg(test)]
mod scale;
mod sync;
mod termination;
#[cfg(test)]
mod window_scale;

/// The control plane of one rank: the state of each protocol.
pub(crate) struct RankCore {
    tree: Tree,
    arrays: Arc<[Arc<dyn ErasedArray>]>,
    pub(crate) routing: Routing,
    collectives: Collectives,
    sync: SyncProtocol,
    flow: Flow,
    termination: Termination,
    pub(crate) lifecycle: Lifecycle,
    checkpoints: Checkpoints,
}

impl RankCore {
    pub(crate) fn new(
        tree: Tree,
        places: &[RankPlace],
        arrays: Arc<[Arc<dyn ErasedArray>]>,
        strategy: Arc<dyn Strategy>,
        keeps_reports: bool,
        flow: FlowControl,
    ) -> RankCore {
        let populations: Vec<u64> = arrays.iter().map(|array| array.population()).collect();
        let blocking = strategy.terms().moves;
        let coordinator =
            (tree.rank == ROOT).then(|| Coordinator::of_arrays(strategy, &arrays, places, keeps_reports));
        RankCore {
            tree,
            routing: Routing::new(tree, &arrays),
            collectives: Collectives::new(tree.rank, &populations),
            sync: SyncProtocol::new(&tree, blocking, coordinator),
            flow: Flow::new(&tree, flow, &populations),
            termination: Termination::default(),
            checkpoints: Checkpoints::default(),
            lifecycle: Lifecycle::new(&tree, &arrays),
            arrays,
        }
    }

    /// Sets the predictor of chunk loads.
    pub(crate) fn predicting(mut self, prediction: Prediction) -> RankCore {
        self.sync.coordinator = self.sync.coordinator.map(|coordinator| coordinator.predicting(prediction));
        self
    }

    /// Sets in which phases messages between chunks are recorded, and whether the first is such a phase.
    pub(crate) fn recording_edges(mut self, recording: EdgeRecording, first: bool) -> RankCore {
        self.sync.records_edges = first;
        self.sync.coordinator.iter_mut().for_each(|coordinator| coordinator.record_edges(recording));
        self
    }

    /// Sets the bytes that the chunks of a rank may not exceed.
    pub(crate) fn within_memory(mut self, limit: Option<u64>) -> RankCore {
        self.sync.coordinator.iter_mut().for_each(|coordinator| coordinator.within_memory(limit));
        self
    }

    /// Balances chunks in windows that this policy opens. At syncs chunks then resume at once.
    pub(crate) fn by_windows(mut self, policy: &WindowPolicy) -> RankCore {
        self.sync.windows = Some(Windows::default());
        self.sync.coordinator.iter_mut().for_each(|coordinator| coordinator.by_windows(policy.clone()));
        self
    }

    /// Decides windows on two levels, if the tree of ranks has groups and the strategy a hierarchy.
    pub(crate) fn by_groups(
        mut self,
        strategy: &Arc<dyn Strategy>,
        places: &[RankPlace],
        prediction: Prediction,
    ) -> RankCore {
        let Some(hierarchy) =
            strategy.terms().hierarchy.filter(|_| (2..self.tree.ranks).contains(&self.tree.group))
        else {
            return self;
        };
        if self.tree.is_first() {
            let leaders = leaders_of(&self.arrays);
            let group = Group::new(strategy.clone(), &self.tree, places, leaders).predicting(prediction);
            self.sync.group = Some(group);
        }
        let grouped = || GroupedCoordinator::new(hierarchy, self.tree.group);
        self.sync.coordinator.iter_mut().for_each(|coordinator| coordinator.by_groups(grouped()));
        self
    }

    pub(crate) fn chunks(&self) -> u64 {
        (0..self.arrays.len() as u32).map(ArrayId).map(|array| self.routing.location.count(array)).sum()
    }

    /// All chunks of this rank are made: sends up the arrays that it has set up, and whether its chunks come to syncs.
    pub(crate) fn hello(&mut self, out: &mut Commands) {
        let hello =
            LifecyclePacket::Hello { rank: self.tree.rank, arrays: self.lifecycle.signatures.clone() };
        self.send_up(hello, 0, out);
        self.report(0, out);
        (0..self.arrays.len() as u32).map(ArrayId).for_each(|array| self.update_receivers(array, out));
    }

    /// Sends a packet. A packet to this rank itself is handled at once and never reaches a transport.
    fn send(&mut self, to: Rank, packet: impl Into<Packet>, now_ns: u64, out: &mut Commands) {
        let (mut packet, stays) = (packet.into(), to == self.tree.rank);
        if let Some(epoch) = packet.epoch_mut() {
            *epoch = if stays { self.routing.cut.epoch() } else { self.routing.cut.count_sent(to) };
        }
        if stays {
            return self.handle(to, packet, now_ns, out);
        }
        self.termination.traffic.sent += u64::from(packet.is_counted());
        out.now.push_back(Command::Send(to, packet));
    }

    /// Sends a packet to the parent. Rank 0 handles it itself.
    fn send_up(&mut self, packet: impl Into<Packet>, now_ns: u64, out: &mut Commands) {
        self.send(self.tree.parent().unwrap_or(ROOT), packet, now_ns, out);
    }

    /// Sends a packet of rank 0 to all ranks: first to the children, since they may be waiting, then to this rank.
    fn broadcast_down(&mut self, from: Rank, packet: impl Into<Packet>, now_ns: u64, out: &mut Commands) {
        let packet = packet.into();
        for child in self.tree.children() {
            let packet = packet.copy_to_child().expect("it is for all");
            self.send(child, packet, now_ns, out);
        }
        self.handle(from, packet, now_ns, out);
    }

    /// Ends the run on all ranks. Sends to each rank directly, because no other rank can be relied on to forward a
    /// packet.
    pub(crate) fn fail(&mut self, error: Error, out: &mut Commands) {
        let Tree { rank: me, ranks, .. } = self.tree;
        for rank in (0..ranks).map(Rank).filter(|&rank| rank != me) {
            out.now.push_back(Command::Send(rank, Packet::Abort(Box::new(error.clone()))));
        }
        out.later.push_back(Task::Stop(Err(Box::new(error))));
    }

    /// A message has come from another rank. Returns the cell of its chunk, if the chunk is here or has not left yet.
    /// Also returns true if this rank is drained once the message is in the mailbox.
    #[inline]
    pub(crate) fn message_received(&mut self, to: ChunkId, epoch: Epoch) -> (Option<CellId>, bool) {
        self.termination.traffic.received += 1;
        (self.cell_of(to), self.routing.cut.count_received(epoch))
    }

    #[inline(always)]
    fn cell_of(&self, to: ChunkId) -> Option<CellId> {
        // The sender used the old routes: the outgoing chunk is still here and takes the message along.
        self.routing.location.cell(to).or_else(|| self.sync.migrations.outgoing_cell(to))
    }

    /// Groups keys of chunks by the rank of the chunk.
    fn by_rank(&self, array: ArrayId, keys: &[u64]) -> LiteMap<Rank, Vec<u64>> {
        let mut by_rank = LiteMap::<Rank, Vec<u64>>::new();
        for &key in keys {
            by_rank.entry(self.routing.location.rank_of(ChunkId { array, key })).or_default().push(key);
        }
        by_rank
    }

    pub(crate) fn exit(&mut self, out: &mut Commands) {
        self.handle(self.tree.rank, Packet::Exit, 0, out);
    }

    /// A packet from another rank.
    pub(crate) fn receive(&mut self, from: Rank, packet: impl Into<Packet>, now_ns: u64, out: &mut Commands) {
        let mut packet = packet.into();
        self.termination.traffic.received += u64::from(packet.is_counted());
        let drained = packet.epoch_mut().is_some_and(|&mut epoch| self.routing.cut.count_received(epoch));
        match packet.is_tree_broadcast() {
            true => self.broadcast_down(from, packet, now_ns, out),
            false => self.handle(from, packet, now_ns, out),
        }
        if drained {
            self.drained(now_ns, out);
        }
    }

    /// Hands a packet to its protocol.
    fn handle(&mut self, from: Rank, packet: Packet, now_ns: u64, out: &mut Commands) {
        match packet {
            Packet::Message(envelope) => self.enqueue(envelope.to, envelope.delivery, out),
            Packet::Checkpoint(packet) => self.handle_checkpoint(packet, now_ns, out),
            Packet::Collective(packet) => self.handle_collective(from, packet, now_ns, out),
            Packet::Cut(packet) => {
                let steps = self.routing.cut.receive(packet);
                self.run_cut_steps(steps, now_ns, out);
            }
            Packet::Flow(packet) => self.handle_flow(from, packet, out),
            Packet::Lifecycle(packet) => self.handle_lifecycle(from, packet, now_ns, out),
            Packet::Sync(packet) => self.handle_sync(from, packet, now_ns, out),
            Packet::Termination(packet) => self.handle_termination(packet, now_ns, out),
            Packet::Exit => {
                // All ranks on the sender's side of the tree have the packet already.
                for neighbour in self.tree.neighbours().filter(|&neighbour| neighbour != from) {
                    self.send(neighbour, Packet::Exit, now_ns, out);
                }
                out.later.push_back(Task::Stop(Ok(())));
            }
            Packet::Abort(error) => out.later.push_back(Task::Stop(Err(error))),
        }
    }

    /// A message that has reached the rank it was routed to.
    fn enqueue(&mut self, to: ChunkId, delivery: Delivery, out: &mut Commands) {
        match self.cell_of(to) {
            Some(cell) => out.now.push_back(Command::Enqueue { to, cell, delivery }),
            None => self.add_pending(to, delivery),
        }
    }

    /// Keeps a message for a chunk that is not here. Its bytes count as queued only if the chunk is incoming. A message
    /// to a chunk that does not exist may never be read, and would block its sender forever.
    pub(crate) fn add_pending(&mut self, to: ChunkId, delivery: Delivery) {
        if self.sync.migrations.expects(to) {
            self.flow.control.add_incoming(delivery.bytes);
        }
        self.routing.location.add_pending(to, delivery);
    }

    /// [`add_pending`](RankCore::add_pending) for a message from another rank, which may have switched routes before
    /// this one.
    pub(crate) fn add_pending_remote(&mut self, epoch: Epoch, to: ChunkId, delivery: Delivery) {
        if self.sync.migrations.are_settled() && epoch != self.routing.cut.epoch() {
            self.routing.early_bytes += delivery.bytes;
            self.flow.control.add_incoming(delivery.bytes);
        }
        self.add_pending(to, delivery);
    }

    /// Sends a message to the rank that its chunk is on.
    fn send_message(&mut self, to: ChunkId, delivery: Delivery, out: &mut Commands) {
        let envelope = Envelope { to, delivery, epoch: Epoch::default() };
        self.send(self.routing.location.rank_of(to), Packet::Message(envelope), 0, out);
    }

    /// This rank has nothing to do.
    pub(crate) fn idle(&mut self, now_ns: u64, out: &mut Commands) {
        if self.checkpoints.has_notice() {
            self.begin_checkpoint(now_ns, out);
        }
        self.flush_partials(out);
        self.request_seeds(out);
        // Reply only if no packet was just sent: that packet would make the counts in the reply outdated.
        let works =
            self.flow.control.has_parked() || self.sync.is_deciding() || self.lifecycle.seeds.waiting() > 0;
        let rests = self.termination.delayed == 0 && !works && !self.checkpoints.stops();
        if out.is_empty() {
            self.reply_if_frozen(now_ns, out);
        }
        if out.is_empty() && rests && std::mem::take(&mut self.termination.probed) {
            self.probe_replied(self.termination.traffic, now_ns, out);
        }
    }

    /// The readable name of a chunk.
    pub(crate) fn describe(&self, chunk: ChunkId) -> String {
        self.arrays[chunk.array.index()].describe(chunk)
    }
}

/// The readable name of an array.
pub(crate) fn array_text(arrays: &[Arc<dyn ErasedArray>], array: ArrayId) -> String {
    format!("array {array} `{}`", arrays[array.index()].name())
}
