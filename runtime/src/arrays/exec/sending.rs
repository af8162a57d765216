//! Sends the messages of chunks: finds the cell or the rank of the receiver (hop 2). If the receiver is on this rank,
//! pushes the message into its mailbox (hop 4).
//!
//! | where the worker finds the receiver | path of the message |
//! |---|---|
//! | the rank has one worker, and messages are neither recorded, counted, nor forced through the wire format | [`push_by_route`] at once |
//! | the worker has cached the cell (several workers) | [`push_by_cache`], without the lock of the core |
//! | the location table has the cell | [`push_by_route`]; the worker caches the cell |
//! | the mailbox refuses, since the chunk has just left its cell | the location table is looked up again |
//! | the location table names another rank | [`send_remote`], to the transport or to worker 0, which has the transport |
//! | the chunk belongs here and has not come | [`send_remote`] leaves the message with the core as pending |
//!
//! A message that is recorded, counted by its receiver or forced through the wire format first goes
//! through `inspect`, once.
//!
//! [`push_by_route`]: Worker::push_by_route
//! [`push_by_cache`]: Worker::push_by_cache
//! [`send_remote`]: Worker::send_remote

use std::time::Duration;

use super::edges::EdgeRecorders;
use super::mailbox::PushedBy;
use super::worker::Worker;
use crate::arrays::core::flow::Destination;
use crate::arrays::core::lifecycle::handler::Effect;
use crate::arrays::core::packet::Packet;
use crate::arrays::core::routing::envelope::{Delivery, Envelope, NODE_BYTES, Payload};
use crate::arrays::core::routing::in_flight::Epoch;
use crate::arrays::core::routing::location::Route;
use crate::arrays::core::routing::message_list::{FreeList, MessageList, MessageNode};
use crate::arrays::core::routing::residents::Residents;
use crate::ids::{CellId, ChunkId, Sender};
use crate::wire::codec::Codec;

/// Number of cells of an array that a worker caches at least, however few chunks are here.
const CACHE_MIN: usize = 1024;

/// The state of a worker for sending.
pub(crate) struct SendState {
    /// By array, cells of chunks to which this worker has sent. A refused push removes one. Empty for a lone worker.
    cache: Box<[Residents]>,
    /// True if all messages are recorded in a trace, or forced through the wire format, when they are sent.
    checks_always: bool,
    /// True if messages are checked: all of them, or because they may be counted by their receivers.
    checks_sends: bool,
    /// True if messages are not checked and the worker is the only one: it looks up the location table at once.
    is_plain: bool,
}

impl SendState {
    pub(crate) fn new(lone: bool, arrays: usize, checks_always: bool, edges: &EdgeRecorders) -> SendState {
        let cache = (0..arrays).map(|_| Residents::default()).collect();
        let checks_sends = checks_always || edges.may_record();
        SendState { cache, checks_always, checks_sends, is_plain: lone && !checks_sends }
    }

    /// Messages are counted by their receivers from now on, or no longer. The worker is the only one of its rank.
    fn count_edges(&mut self, counts: bool) {
        self.checks_sends = self.checks_always || counts;
        self.is_plain = !self.checks_sends;
    }
}

impl<'r> Worker<'r> {
    /// Hop 2. If the message leaves the rank, its node goes to the free list.
    #[inline(always)]
    pub(super) fn send(&mut self, node: Box<MessageNode>, free_list: &mut FreeList) {
        tracing::trace!(hop = 2, "Worker::send");
        if self.send_state.is_plain {
            self.push_by_route(node, free_list);
        } else {
            self.send_checked(node, free_list);
        }
    }

    /// Sends the messages of a handler that has also left effects. Out of line, since most handlers leave none.
    #[inline(never)]
    pub(super) fn send_all(&mut self, nodes: MessageList, free_list: &mut FreeList) {
        for node in nodes {
            self.send(node, free_list);
        }
    }

    /// Sends a message before its handler returns.
    #[inline(never)]
    pub(super) fn send_early(&mut self, node: Box<MessageNode>, free_list: &mut FreeList) {
        self.send(node, free_list);
    }

    /// [`send`](Self::send) where the rank has several workers, or checks messages.
    #[inline(never)]
    fn send_checked(&mut self, mut node: Box<MessageNode>, free_list: &mut FreeList) {
        if !self.send_state.checks_sends || self.inspect(&mut node) {
            self.route_and_send(node, free_list);
        }
    }

    /// Counts a message by its receiver and checks it, as the run requires. If encoding fails, ends the run and returns
    /// false.
    #[inline]
    fn inspect(&mut self, node: &mut MessageNode) -> bool {
        if self.shared.edges.records() {
            self.shared.edges.count(self.id, node.to, &node.message);
        }
        !self.send_state.checks_always || self.check_send(node)
    }

    /// Sends a message that was checked.
    fn route_and_send(&mut self, node: Box<MessageNode>, free_list: &mut FreeList) {
        if self.shared.scheduler.lone() {
            self.push_by_route(node, free_list);
            return;
        }
        let to = node.to;
        if let Some(node) = self.push_by_cache(node)
            && let Some(cell) = self.push_by_route(node, free_list)
        {
            self.cache_cell(to, cell);
        }
    }

    /// Caches the cell of a chunk. A cache with twice as many cells as there are chunks here is cleared.
    fn cache_cell(&mut self, to: ChunkId, cell: CellId) {
        let cache = &mut self.send_state.cache[to.array.index()];
        if cache.len() >= CACHE_MIN && cache.len().is_power_of_two() {
            let here = self.shared.control_plane.lock().rank.routing.location.count(to.array);
            if cache.len() as u64 > 2 * here {
                *cache = Residents::default();
            }
        }
        cache.insert(to.key, cell);
    }

    /// Looks up the location table, and pushes if the chunk is here. Returns its cell if the push succeeded.
    #[inline(always)]
    fn push_by_route(&mut self, node: Box<MessageNode>, free_list: &mut FreeList) -> Option<CellId> {
        let to = node.to;
        let Some(cell) = self.shared.control_plane.with(|core| core.rank.routing.location.cell(to)) else {
            self.send_remote(node, free_list);
            return None;
        };
        if let Some(node) = self.local_delivery.push(cell, node, PushedBy::Chunk) {
            self.retry_route(node, free_list);
            return None;
        }
        Some(cell)
    }

    /// The routes have changed since they were looked up.
    #[cold]
    fn retry_route(&mut self, node: Box<MessageNode>, free_list: &mut FreeList) {
        self.route_and_send(node, free_list);
    }

    /// Pushes into a cached cell, without the lock of the core. Returns the message if it was not pushed.
    fn push_by_cache(&mut self, node: Box<MessageNode>) -> Option<Box<MessageNode>> {
        let to = node.to;
        let Some(cell) = self.send_state.cache[to.array.index()].get(to.key) else { return Some(node) };
        let refused = self.local_delivery.push(cell, node, PushedBy::Chunk);
        if refused.is_some() {
            self.send_state.cache[to.array.index()].remove(to.key);
        }
        refused
    }

    /// Sends to another rank, or leaves the message with the core where the chunk has not come.
    #[inline(never)]
    fn send_remote(&mut self, mut node: Box<MessageNode>, free_list: &mut FreeList) {
        let mut core = self.shared.control_plane.lock();
        let rank = match core.rank.routing.location.route_cached(node.to) {
            Route::There(rank) => rank,
            Route::Pending => {
                core.rank.add_pending(node.to, free_list.take_message(node));
                self.shared.watermarks.update(&core.rank);
                drop(core);
                return self.blocked_by([Destination::Rank(self.shared.info.rank)]);
            }
            Route::Here(_) => {
                drop(core);
                return self.retry_route(node, free_list);
            }
        };
        let (epoch, sent) = core.rank.message_sent(rank, node.message.bytes);
        let left = if self.remote_sender.has_transport() && !core.has_outbound() {
            drop(core);
            tracing::trace!(hop = 3, "Transport::send");
            self.remote_sender.send_node(rank, &mut node, epoch)
        } else {
            self.remote_sender.transmit(&mut core, rank, Packet::from_node(&mut node, epoch));
            drop(core);
            self.remote_sender.flush()
        };
        free_list.put(node);
        if sent.ack_request_due || sent.blocks {
            self.after_send(rank, sent);
        }
        self.fail_unless(left);
    }

    pub(super) fn send_at_quiescence(&mut self, mut node: Box<MessageNode>) {
        if self.inspect(&mut node) {
            let (to, delivery, epoch) = (node.to, node.message, Epoch::default());
            let envelope = Box::new(Envelope { to, delivery, epoch });
            self.with_core(|core, _, out| core.send_at_quiescence(envelope, out));
            // Worker 0 of rank 0 searches for quiescence from now on.
            self.shared.scheduler.wake_driver();
        }
    }

    /// Keeps a chunk's message to itself until it is due. The handler has returned: the delay begins now.
    pub(super) fn send_after(&mut self, delay: Duration, mut node: Box<MessageNode>) {
        if !self.inspect(&mut node) {
            return;
        }
        self.with_core(|core, _, _| core.delay_message());
        // The clock of the kernel never goes back, so two messages with the same delay stay in order.
        let now_ns = self.shared.clock.now_ns();
        let due_ns = now_ns.saturating_add(delay.as_nanos().try_into().unwrap_or(u64::MAX));
        self.timers.set(due_ns, node);
        self.update_poll_schedule();
    }

    /// Sends the messages that are due, by the present routes. True if there were any.
    #[cold]
    pub(super) fn send_due(&mut self, free_list: &mut FreeList) -> bool {
        let now_ns = self.shared.clock.now_ns();
        if self.timers.next_ns().is_none_or(|at_ns| at_ns > now_ns) {
            return false;
        }
        let mut any = false;
        let mut held = false;
        self.with_core(|core, _, _| held = core.holds_timers());
        if held {
            self.timers.hold(now_ns);
            return false;
        }
        while let Some(node) = self.timers.take_due(now_ns) {
            // User code may count the bytes of the message, and may panic.
            self.instruments.turn_to_hook(node.to, "send_after", 0);
            let mut searched = false;
            self.with_core(|core, _, _| searched = core.timer_expired());
            self.route_and_send(node, free_list);
            if searched {
                // Worker 0 replies to the probe: wake it now.
                self.shared.scheduler.wake_driver();
            }
            any = true;
        }
        self.clear_blocked();
        self.update_poll_schedule();
        any
    }

    pub(super) fn spread(&mut self, from: ChunkId, effect: Effect) {
        let mut blocked_by = Vec::new();
        self.with_core(|core, _, out| match effect {
            Effect::Broadcast { array, message } => {
                let (from, payload) = (Sender::new(from, 0), Payload::Encoded(message));
                let delivery = Delivery { from, bytes: NODE_BYTES, payload };
                blocked_by.extend(core.broadcast(array, delivery, out));
            }
            Effect::Multicast { array, keys, message } => {
                blocked_by = core.multicast(from, array, &keys, &message, out);
            }
            _ => unreachable!("only these two go to many"),
        });
        self.blocked_by(blocked_by);
    }

    /// Begins or ends counting messages by their receivers.
    pub(super) fn record_edges(&mut self, records: bool) {
        self.shared.edges.record(records);
        if self.shared.scheduler.lone() {
            self.send_state.count_edges(self.shared.edges.records());
        }
    }

    /// Records a message, and encodes and decodes it in some runs. If encoding fails, ends the run and returns false.
    #[cold]
    fn check_send(&mut self, node: &mut MessageNode) -> bool {
        if self.instruments.keeps_events() {
            self.record_send(node.to, &node.message);
        }
        if !self.shared.wire {
            return true;
        }
        // The message is routed afterwards, and gets its epoch then.
        match self.shared.codec.round_trip(Packet::from_node(node, Epoch::default())) {
            Ok(Packet::Message(envelope)) => node.message = envelope.delivery,
            Ok(other) => unreachable!("{other:?} was a message"),
            Err(error) => {
                self.fail(error);
                return false;
            }
        }
        true
    }

    /// Records that a message is about to leave.
    fn record_send(&mut self, to: ChunkId, delivery: &Delivery) {
        let shared = self.shared;
        let Some(recorder) = self.instruments.recorder() else { return };
        if recorder.wants_send(delivery.from) {
            let rank = match shared.control_plane.lock().rank.routing.location.route(to) {
                Route::There(rank) => rank,
                Route::Here(_) | Route::Pending => shared.info.rank,
            };
            let bytes = shared.arrays[to.array.index()].encoded_bytes(&delivery.payload);
            let others_see_it = rank != shared.info.rank || !shared.scheduler.lone();
            let clock = others_see_it.then_some(|| shared.clock.now_ns());
            recorder.sends(delivery.from, to, rank, bytes, clock);
        }
    }
}
