//! Local delivery: pushes message nodes into the mailboxes of this rank, and enqueues the ready entries that this
//! creates. Packets from other ranks arrive here too.

use super::cells::Cell;
use super::mailbox::{PushOutcome, PushedBy};
use super::ready::ReadyQueue;
use super::shared::RankShared;
use super::watermarks::QueueGauge;
use crate::arrays::core::packet::Packet;
use crate::arrays::core::routing::envelope::Envelope;
use crate::arrays::core::routing::in_flight::Epoch;
use crate::arrays::core::routing::message_list::{FreeList, MessageNode};
use crate::error::Error;
use crate::ids::{CellId, Rank, WorkerId};
use crate::transport::PacketHandler;

/// The local delivery of one worker.
pub(crate) struct LocalDelivery<'r> {
    pub(super) shared: &'r RankShared,
    id: WorkerId,
    pub(super) ready: ReadyQueue<'r>,
    pub(super) gauge: QueueGauge,
}

/// Receives packets from the transport. A message from another process is decoded from its bytes directly into a node.
pub(crate) struct PacketSink<'a, 'r> {
    pub(super) local_delivery: &'a mut LocalDelivery<'r>,
    pub(super) free_list: &'a mut FreeList,
    pub(super) poll_state: &'a mut PollState,
}

impl PacketHandler<Packet> for PacketSink<'_, '_> {
    fn take(&mut self, from: Rank, packet: Packet) -> bool {
        self.local_delivery.receive(from, packet, self.free_list, self.poll_state)
    }

    fn read(&mut self, _from: Rank, bytes: &[u8]) -> Option<Result<bool, Box<Error>>> {
        let (node, epoch) = match self.local_delivery.shared.codec.decode_onto(bytes, self.free_list)? {
            Ok(read) => read,
            Err(why) => return Some(Err(why)),
        };
        let drained = self.local_delivery.receive_message(node, epoch);
        Some(Ok(self.poll_state.count_message(drained)))
    }
}

/// The state of one poll of the transport. Messages go into mailboxes at once; the poll stops at any other packet.
pub(crate) struct PollState {
    /// Number of packets that may still be taken. At least one when the poll begins.
    pub(super) left: usize,
    /// None while the poll goes on.
    pub(super) stop: Option<PollStop>,
}

/// The reason why a poll stops: an input that the core must handle before the next packet.
pub(crate) enum PollStop {
    /// The rank has received all messages of the epoch that has ended.
    Drained,
    /// A packet that is not a message, with its sender.
    Packet(Rank, Packet),
}

impl PollState {
    pub(crate) fn new(packets_max: usize) -> PollState {
        PollState { left: packets_max, stop: None }
    }

    /// Counts a message. Stops the poll if the message was the last of its epoch. True if another packet may be taken.
    #[inline]
    fn count_message(&mut self, drained: bool) -> bool {
        self.left -= 1;
        if drained {
            self.stop = Some(PollStop::Drained);
        }
        self.left > 0 && !drained
    }
}

impl<'r> LocalDelivery<'r> {
    pub(crate) fn new(shared: &'r RankShared, id: WorkerId, ready: ReadyQueue<'r>) -> LocalDelivery<'r> {
        LocalDelivery { shared, id, ready, gauge: shared.watermarks.gauge(shared.measurements.workers()) }
    }

    /// The next ready entry, with its cell.
    #[inline]
    pub(super) fn find(&mut self) -> Option<(CellId, &'r Cell)> {
        self.shared.scheduler.find(self.id, &mut self.ready, &self.shared.cells)
    }

    /// Lets other workers steal the newest entry. Called before user code, which may take long.
    #[inline]
    pub(super) fn share_newest(&mut self) {
        self.shared.scheduler.share_newest(self.id, &mut self.ready);
    }

    /// Hop 4: pushes a message, and enqueues the ready entry if the push created one. Returns a refused node.
    #[inline(always)]
    pub(crate) fn push(
        &mut self,
        cell: CellId,
        node: Box<MessageNode>,
        by: PushedBy,
    ) -> Option<Box<MessageNode>> {
        let bytes = node.message.bytes;
        let shared = self.shared;
        let place = shared.cells.get(cell);
        match place.mailbox.push(node, by) {
            PushOutcome::Queued => {}
            PushOutcome::Ready => self.enqueue_ready(cell, place),
            PushOutcome::Refused(node) => return Some(node),
        }
        self.count_in(bytes, by);
        None
    }

    /// Receives a packet: a message goes into its mailbox, any other packet stops the poll. True if the poll goes on.
    #[inline(always)]
    pub(super) fn receive(
        &mut self,
        from: Rank,
        packet: Packet,
        free_list: &mut FreeList,
        poll_state: &mut PollState,
    ) -> bool {
        match packet {
            Packet::Message(envelope) => {
                let drained = self.receive_envelope(envelope, free_list);
                poll_state.count_message(drained)
            }
            packet => {
                poll_state.left -= 1;
                poll_state.stop = Some(PollStop::Packet(from, packet));
                false
            }
        }
    }

    /// Receives a message of another rank, moved into a node in one step. True if the rank is drained now.
    #[inline(always)]
    fn receive_envelope(&mut self, envelope: Envelope, free_list: &mut FreeList) -> bool {
        let Envelope { to, delivery, epoch } = envelope;
        let node = free_list.fill(to, delivery.from, delivery.bytes, || delivery.payload);
        self.receive_message(node, epoch)
    }

    /// Receives a message of another rank that is already in a node. True if the rank is drained now.
    #[inline(always)]
    fn receive_message(&mut self, node: Box<MessageNode>, epoch: Epoch) -> bool {
        tracing::trace!(hop = 3, "Transport::poll");
        let to = node.to;
        let mut core = self.shared.control_plane.lock();
        let (cell, drained) = core.rank.message_received(to, epoch);
        let unread = match cell {
            Some(cell) => self.push(cell, node, PushedBy::Core),
            None => Some(node),
        };
        if let Some(early) = unread {
            // Its chunk has not arrived, or was removed between the lookup and the push.
            core.rank.add_pending_remote(epoch, to, early.message);
            self.shared.watermarks.update(&core.rank);
        }
        drained
    }

    /// Enqueues the ready entry of the chunk in this cell, on the queue of its home worker.
    #[inline]
    pub(crate) fn enqueue_ready(&mut self, entry: CellId, cell: &'r Cell) {
        if !self.ready.push_newest(entry, cell) {
            self.enqueue_ready_shared(entry, cell);
        }
    }

    /// [`enqueue_ready`](Self::enqueue_ready) if the queue holds other entries or the rank has several workers.
    #[inline(never)]
    fn enqueue_ready_shared(&mut self, entry: CellId, cell: &'r Cell) {
        if self.shared.scheduler.lone() {
            self.ready.push(entry, cell);
        } else {
            self.shared.scheduler.put(entry, cell, self.id, &mut self.ready);
        }
    }
}
