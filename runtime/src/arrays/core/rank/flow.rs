//! Back-flow as the core drives it: hands each input to [`flow`](crate::arrays::core::flow), which has the
//! rules, and does what that says.

use super::{Actions, RankCore};
use crate::arrays::core::action::Action;
use crate::arrays::core::flow::{Destination, SendOutcome, StallAction, StallReport};
use crate::arrays::core::packet::Packet;
use crate::arrays::core::routing::in_flight::Epoch;
use crate::ids::{CellId, ROOT, Rank, SyncId};

impl RankCore {
    /// A message of so many bytes leaves for another rank, by the route that was just looked up: of which epoch it is, and
    /// what follows from it.
    #[inline]
    pub(crate) fn message_sent(&mut self, to: Rank, bytes: u64) -> (Epoch, SendOutcome) {
        self.traffic.sent += 1;
        (self.in_flight.count_sent(to), self.flow.count_sent(to, bytes))
    }

    /// A mark is due behind what was sent to a rank.
    #[cold]
    pub(crate) fn request_ack(&mut self, to: Rank, out: &mut Actions) {
        let bytes = self.flow.take_ack_request(Destination::Rank(to));
        self.send(to, Packet::AckRequest { bytes }, 0, out);
    }

    /// This rank has room: answers marks, and runs what was blocked by itself.
    pub(crate) fn below_low_watermark(&mut self, out: &mut Actions) {
        for (to, bytes) in self.flow.take_deferred_acks() {
            self.send(to, Packet::Ack { bytes }, 0, out);
        }
        // What is logged lies here until it has landed.
        if !self.broadcasts.are_logged() {
            self.broadcast_acks.ack();
            self.forward_broadcast_acks(out);
        }
        let freed = self.flow.unblock_own();
        self.unpark(freed, out);
    }

    /// This rank, or a child with all below it, may have taken in more marked broadcasts.
    pub(super) fn forward_broadcast_acks(&mut self, out: &mut Actions) {
        match self.broadcast_acks.take_new_acks() {
            0 => {}
            more if self.root.is_none() => self.send_up(Packet::BroadcastAck { more }, 0, out),
            more => {
                for (rank, bytes) in self.broadcast_acks.take_acked_by_all(more) {
                    self.send(rank, Packet::BroadcastAckedByAll { bytes }, 0, out);
                }
                self.resolve_deadlocks(out);
            }
        }
    }

    /// The handlers of a chunk have sent to ranks, or broadcast to all, and are blocked.
    pub(crate) fn block(&mut self, cell: CellId, by: Vec<Destination>) {
        self.flow.block(cell, by);
    }

    /// Tells whether any chunk is blocked.
    pub(crate) fn has_blocked(&self) -> bool {
        self.flow.has_blocked()
    }

    /// Tells whether any entry is parked.
    pub(crate) fn has_parked(&self) -> bool {
        self.flow.has_parked()
    }

    /// Parks the entry of a cell if its chunk is blocked.
    pub(crate) fn park_if_blocked(&mut self, cell: CellId) -> bool {
        self.flow.park_if_blocked(cell)
    }

    /// A chunk comes to this cell that was blocked where it was, or was inserted: it is blocked by all that blocks here, this
    /// rank too if it is full.
    pub(crate) fn block_incoming(&mut self, cell: CellId, is_full: bool) {
        let mut by = self.flow.blocking();
        by.extend(is_full.then_some(Destination::Rank(self.tree.rank)));
        self.flow.block(cell, by);
    }

    /// The chunk of a cell is to leave: its entry must come back, and nothing blocks it any more.
    pub(super) fn unblock_leaving(&mut self, cell: CellId, out: &mut Actions) {
        if self.flow.prepare_leave(cell) {
            self.unpark(vec![cell], out);
        }
    }

    pub(super) fn acked(&mut self, by: Destination, bytes: u64, out: &mut Actions) {
        let freed = self.flow.count_acked(by, bytes);
        self.unpark(freed, out);
    }

    /// The mail of a chunk that comes from another rank is waited for by these: they wait for this rank now.
    pub(super) fn take_over_acks(&mut self, from: Rank, deferred_acks: Vec<(Rank, u64)>, out: &mut Actions) {
        let any = !deferred_acks.is_empty();
        for (rank, bytes) in deferred_acks {
            if rank == self.tree.rank {
                self.bytes_moved(from, rank, bytes, out);
                continue;
            }
            self.flow.defer_ack(rank, bytes);
            if rank != from {
                self.send(rank, Packet::DeferredAckMoved { first_receiver: from, bytes }, 0, out);
            }
        }
        out.extend(any.then_some(Action::CheckLowWatermark));
    }

    /// So many of the bytes that were under way to a rank have come to another.
    pub(super) fn bytes_moved(&mut self, first_receiver: Rank, to: Rank, bytes: u64, out: &mut Actions) {
        self.flow.count_moved(first_receiver, to, bytes);
        self.acked(Destination::Rank(first_receiver), bytes, out);
    }

    fn unpark(&mut self, freed: Vec<CellId>, out: &mut Actions) {
        if !freed.is_empty() {
            self.end_stall(out);
        }
        out.extend(freed.into_iter().map(Action::Unpark));
    }

    /// This rank does not stand still, or no longer: rank 0 hears it, if it was told that it does.
    fn end_stall(&mut self, out: &mut Actions) {
        if let Some(stall_number) = self.flow.end_stall() {
            self.send(ROOT, Packet::StallEnded { stall_number }, 0, out);
        }
    }

    /// A chunk has come to this sync and keeps a message of so many bytes until it has ended.
    pub(crate) fn defer(&mut self, sync: SyncId, bytes: u64) {
        self.syncs.defer(sync, bytes);
    }

    /// A chunk that passes this sync has read so many bytes that it had kept.
    pub(crate) fn read_deferred(&mut self, sync: SyncId, bytes: u64) {
        self.syncs.read_deferred(sync, bytes);
    }

    /// This rank is full, and has room again once so many bytes less wait. If the end of a sync is enough for that, it waits for
    /// it, but not for ever: whom the sync waits for may be somebody that this rank blocks. Nor for ever for what nobody here
    /// could tell, if it is idle.
    pub(crate) fn above_high_watermark(
        &mut self,
        excess: u64,
        is_idle: bool,
        now_ns: u64,
        out: &mut Actions,
    ) {
        let for_nobody = is_idle && !self.flow.has_parked() && self.migrations.are_settled();
        let waits = self.waits_for_sync(excess) || (for_nobody && !self.is_deciding());
        if let Some(full_ns) = self.flow.backoff_expired(waits, now_ns) {
            let (rank, kept, ms) = (self.tree.rank.0, self.syncs.deferred_bytes(), full_ns / 1_000_000);
            tracing::warn!(rank, kept, ms, "full for so long: twice as much may wait");
            out.push_back(Action::GrowLimit);
        }
    }

    /// Tells whether its chunks keep so many bytes for the end of a sync, or more.
    fn waits_for_sync(&self, excess: u64) -> bool {
        self.syncs.deferred_bytes() >= excess.max(1)
    }

    /// When this rank has been full for so long that it lets more wait, ns.
    pub(crate) fn backoff_until_ns(&self) -> Option<u64> {
        self.flow.backoff_until_ns()
    }

    /// This rank is full, has room again once so many bytes less wait, and has nothing to run.
    pub(crate) fn full_and_idle(&mut self, excess: u64, out: &mut Actions) {
        if self.waits_for_sync(excess) {
            return self.end_stall(out);
        }
        if !self.migrations.are_settled() || self.is_deciding() {
            // What waits may be for chunks that are about to leave, or to go on.
            return;
        }
        if let Some((stall_number, stall_report)) =
            self.flow.report_stall(self.broadcast_acks.first_deferred())
        {
            self.send(ROOT, Packet::Stalled { stall_number, stall_report }, 0, out);
        }
    }

    pub(super) fn rank_stalled(
        &mut self,
        rank: Rank,
        stall_number: u64,
        stall_report: StallReport,
        out: &mut Actions,
    ) {
        let root = self.root.as_mut().expect("rank 0 hears who stands still");
        root.stall_detector.stalled(rank, stall_number, stall_report);
        self.resolve_deadlocks(out);
    }

    /// Rank 0 tells those that wait for each other alone.
    pub(super) fn resolve_deadlocks(&mut self, out: &mut Actions) {
        let root = self.root.as_mut().expect("rank 0 knows who stands still");
        for (stuck, stall_number) in
            root.stall_detector.take_deadlocked(|rank| self.broadcast_acks.first_unacked(rank))
        {
            self.send(stuck, Packet::Deadlocked { stall_number }, 0, out);
        }
    }

    pub(super) fn resolve_stall(&mut self, stall_number: u64, out: &mut Actions) {
        match self.flow.resolve_stall(stall_number) {
            None => {}
            Some(StallAction::Unpark(freed)) => self.unpark(freed, out),
            Some(StallAction::GrowLimit) => out.push_back(Action::GrowLimit),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lb_strategies::balancer::RankPlace;

    use super::*;
    use crate::arrays::core::collectives::tree::{ARITY, Tree};
    use crate::arrays::core::flow::FlowControl;
    use crate::arrays::core::lifecycle::erased::ErasedArray;
    use crate::arrays::core::packet::{ChunkTransfer, Transit};
    use crate::arrays::core::rank::idlers::IdleChunks;
    use crate::arrays::core::routing::envelope::{Delivery, NODE_BYTES, Payload};
    use crate::arrays::core::routing::in_flight::CountsByRank;
    use crate::arrays::core::sync::migration::Move;
    use crate::ids::{ArrayId, ChunkId, SyncId};
    use crate::trace::queued_bytes::QueuedBytes;

    /// A rank of two, and an array of one chunk, which has not arrived.
    fn of_two(rank: Rank) -> RankCore {
        of_two_with(rank, &Arc::default())
    }

    fn of_two_with(rank: Rank, waiting: &Arc<QueuedBytes>) -> RankCore {
        let strategy = lb_strategies::ARRAYS.parse("none").expect("it is in the table").into();
        let places = [RankPlace { host: 0, workers: 1 }; 2];
        let tree = Tree { rank, ranks: 2, arity: ARITY };
        let idlers: Arc<dyn ErasedArray> = Arc::new(IdleChunks { chunks: 1, home: |_, _| ROOT });
        let flow = FlowControl::new(rank, 2, 100, waiting);
        RankCore::new(tree, &places, [idlers].into(), strategy, false, flow)
    }

    #[test]
    fn a_rank_with_a_parked_token_answers_no_search() {
        let (mut core, mut out) = (of_two(Rank(1)), Actions::new());
        core.block(CellId(3), vec![Destination::Rank(Rank(1))]);
        assert!(core.park_if_blocked(CellId(3)));
        core.receive(ROOT, Packet::Probe, 0, &mut out);
        core.idle(0, &mut out);
        assert!(out.is_empty(), "{out:?}");
        core.below_low_watermark(&mut out);
        assert!(matches!(out.pop_front(), Some(Action::Unpark(CellId(3)))));
        core.idle(0, &mut out);
        assert!(matches!(out.pop_front(), Some(Action::Send(ROOT, Packet::ProbeReply(_)))));
    }

    #[test]
    fn who_said_before_its_mark_that_it_stands_still_is_told_that_it_is_stuck() {
        let (mut core, mut out) = (of_two(ROOT), Actions::new());
        let stall_report =
            StallReport { waits_for: vec![Destination::AllRanks], first_deferred_ack: Some(0) };
        core.receive(Rank(1), Packet::Stalled { stall_number: 5, stall_report }, 0, &mut out);
        assert!(out.is_empty(), "{out:?}");
        let delivery = Box::new(Delivery::by_runtime(Payload::Encoded([].into())));
        let (array, epoch) = (ArrayId(0), Epoch::default());
        core.receive(
            Rank(1),
            Packet::BroadcastRequest { array, delivery, ack_request: 9, epoch },
            0,
            &mut out,
        );
        let told =
            |action: &Action| matches!(action, Action::Send(Rank(1), Packet::Deadlocked { stall_number: 5 }));
        assert!(out.iter().any(told), "{out:?}");
    }

    #[test]
    fn who_arrives_pressed_is_pressed_by_its_new_rank_if_that_is_full() {
        let (mut core, mut out) = (of_two(ROOT), Actions::new());
        core.block_incoming(CellId(3), false);
        assert!(!core.has_blocked());
        core.block_incoming(CellId(3), true);
        assert!(core.park_if_blocked(CellId(3)));
        core.below_low_watermark(&mut out);
        assert!(matches!(out.pop_front(), Some(Action::Unpark(CellId(3)))));
    }

    /// Rank 1 of two, to which the chunk is on its way. What waits there is counted.
    fn that_expects(chunk: ChunkId, waiting: &Arc<QueuedBytes>, out: &mut Actions) -> RankCore {
        let mut core = of_two_with(Rank(1), waiting);
        expect(&mut core, chunk, out);
        core
    }

    fn expect(core: &mut RankCore, chunk: ChunkId, out: &mut Actions) {
        let moves = vec![Move { chunk, from: ROOT, to: Rank(1) }];
        core.receive(ROOT, Packet::SyncDecision { sync: SyncId(0), moves: moves.into() }, 0, out);
    }

    /// The chunk's arrival is answered as an executor does, with mail of so many bytes. Returns the rest of its mail.
    fn admit(core: &mut RankCore, mail_bytes: u64, out: &mut Actions) -> Vec<Delivery> {
        core.admit(CHUNK, CellId(3), Some(JOURNEY), SyncId(1), mail_bytes, out)
    }

    const JOURNEY: Transit = Transit { next_broadcast: 0, blocked: false };
    const CHUNK: ChunkId = ChunkId { array: ArrayId(0), key: 0 };

    #[test]
    fn messages_wait_with_the_core_while_their_chunk_is_on_its_way() {
        let (waiting, mut out) = (Arc::default(), Actions::new());
        let mut core = of_two_with(Rank(1), &waiting);
        let message = || Delivery { bytes: 70, ..Delivery::by_runtime(Payload::Encoded([].into())) };
        core.add_pending(CHUNK, message());
        assert_eq!(waiting.published(), 0, "it may never come");
        expect(&mut core, CHUNK, &mut out);
        assert_eq!(waiting.published(), 70);
        core.add_pending(CHUNK, message());
        core.add_pending(ChunkId { key: 1, ..CHUNK }, message());
        assert_eq!(waiting.published(), 140);
        let mail = admit(&mut core, 0, &mut out);
        assert_eq!((mail.len(), waiting.published()), (3, 0), "what waited comes behind the word to go on");
    }

    #[test]
    fn the_mail_of_a_chunk_that_has_come_waits_until_it_lands() {
        let (waiting, mut out) = (Arc::default(), Actions::new());
        let mut core = that_expects(CHUNK, &waiting, &mut out);
        let mail = [30, 40].map(|bytes| Delivery { bytes, ..Delivery::by_runtime(Payload::Resume) }).into();
        let transfer =
            ChunkTransfer { messages: mail, transit: Some(JOURNEY), ..ChunkTransfer::without_body(CHUNK) };
        core.receive(ROOT, Packet::TransferChunk(Box::new(transfer)), 0, &mut out);
        assert_eq!(waiting.published(), 70);
        core.receive(ROOT, Packet::ExpectedCounts(CountsByRank::default()), 0, &mut out);
        core.receive(ROOT, Packet::CompleteMigration, 0, &mut out);
        assert_eq!(waiting.published(), 70, "it has no mailbox yet");
        admit(&mut core, 70, &mut out);
        assert_eq!(waiting.published(), 0, "whoever admits it counts them with its mailbox");
    }

    #[test]
    fn what_comes_by_routes_that_are_not_known_yet_waits_and_what_the_rank_sends_itself_does_not() {
        let (waiting, mut out) = (Arc::default(), Actions::new());
        let mut core = that_expects(CHUNK, &waiting, &mut out);
        core.receive(ROOT, Packet::ExpectedCounts(CountsByRank::default()), 0, &mut out);
        let message = || Delivery { bytes: 70, ..Delivery::by_runtime(Payload::Resume) };
        let transfer = ChunkTransfer { transit: Some(JOURNEY), ..ChunkTransfer::without_body(CHUNK) };
        core.receive(ROOT, Packet::TransferChunk(Box::new(transfer)), 0, &mut out);
        core.receive(ROOT, Packet::CompleteMigration, 0, &mut out);
        admit(&mut core, 0, &mut out);
        let nobody = ChunkId { key: 1, ..CHUNK };
        core.add_pending_remote(Epoch::of_bit(1), nobody, message());
        core.location.departed(CHUNK);
        core.multicast(CHUNK, CHUNK.array, &[CHUNK.key], &[0; 50].into(), &mut out);
        assert_eq!(waiting.published(), 0, "by the routes of now, to chunks that there are not");
        core.add_pending_remote(Epoch::of_bit(0), nobody, message());
        assert_eq!(waiting.published(), 70);
        expect(&mut core, nobody, &mut out);
        assert_eq!(waiting.published(), 140, "both are for one that is on its way, so it turns out");
    }

    #[test]
    fn debts_that_go_on_twice_are_said_in_any_order() {
        let (mut core, mut out) = (of_two(Rank(1)), Actions::new());
        let [first, second, third] = [ROOT, Rank(2), Rank(3)];
        core.message_sent(first, 200);
        core.block(CellId(3), vec![Destination::Rank(first)]);
        assert!(core.park_if_blocked(CellId(3)));
        core.receive(third, Packet::DeferredAckMoved { first_receiver: second, bytes: 200 }, 0, &mut out);
        assert!(!core.message_sent(second, 5).1.blocks, "less than nothing is under way to it");
        core.receive(second, Packet::DeferredAckMoved { first_receiver: first, bytes: 200 }, 0, &mut out);
        core.receive(third, Packet::Ack { bytes: 200 }, 0, &mut out);
        assert!(!core.has_blocked() && !core.has_parked());
        let freed = out.iter().filter(|action| matches!(action, Action::Unpark(CellId(3))));
        assert_eq!(freed.count(), 1, "{out:?}");
        assert!(!core.message_sent(second, 5).1.blocks, "as good as nothing is under way to it");
    }

    #[test]
    fn a_broadcast_that_is_logged_waits_until_the_last_who_came_has_it() {
        let (waiting, mut out) = (Arc::default(), Actions::new());
        let mut core = that_expects(CHUNK, &waiting, &mut out);
        let delivery = Box::new(Delivery::by_runtime(Payload::Encoded([0; 50].into())));
        let broadcast = Packet::Broadcast { array: CHUNK.array, number: 0, delivery, ack_requested: false };
        core.receive(ROOT, broadcast, 0, &mut out);
        out.clear();
        assert_eq!(waiting.published(), 50);
        let mail = admit(&mut core, 0, &mut out);
        core.incoming_admitted(&mut out);
        assert_eq!((mail.len(), waiting.published()), (2, 50));
        drop(mail);
        assert_eq!(waiting.published(), 0);
    }

    #[test]
    fn a_marked_broadcast_that_is_logged_is_taken_in_when_all_have_landed() {
        let mut out = Actions::new();
        let mut core = that_expects(CHUNK, &Arc::default(), &mut out);
        let delivery = Box::new(Delivery::by_runtime(Payload::Encoded([].into())));
        let broadcast = Packet::Broadcast { array: CHUNK.array, number: 0, delivery, ack_requested: true };
        core.receive(ROOT, broadcast, 0, &mut out);
        core.below_low_watermark(&mut out);
        let tells = |action: &Action| matches!(action, Action::Send(ROOT, Packet::BroadcastAck { more: 1 }));
        assert!(!out.iter().any(tells), "nobody is here, but somebody is to hear it");
        let mut out = Actions::new();
        core.incoming_admitted(&mut out);
        assert!(matches!(out.pop_front(), Some(Action::CheckLowWatermark)));
        core.below_low_watermark(&mut out);
        assert!(out.iter().any(tells));
    }

    #[test]
    fn who_broadcasts_counts_a_letter_for_each_chunk_where_most_are() {
        let array = ArrayId(0);
        let (mut root, mut below, mut out) = (of_two(ROOT), of_two(Rank(1)), Actions::new());
        let blocks = |core: &mut RankCore| {
            let delivery = Delivery::by_runtime(Payload::Encoded([].into()));
            core.broadcast(array, delivery, &mut Actions::new()).is_some()
        };
        root.flow = FlowControl::new(ROOT, 2, 50 * NODE_BYTES, &Arc::default());
        assert!(!blocks(&mut root));
        (0..20).for_each(|key| below.created(ChunkId { array, key }, CellId(key as u32)));
        below.hello(&mut out);
        let told = out.into_iter().filter_map(|action| match action {
            Action::Send(ROOT, told @ Packet::ReceiversGrew { chunks: 20, .. }) => Some(told),
            _ => None,
        });
        let told = told.collect::<Vec<_>>().pop().expect("an even share is one chunk");
        let mut out = Actions::new();
        root.receive(Rank(1), told, 0, &mut out);
        let tells = |action: &Action| matches!(action, Action::Send(Rank(1), Packet::MaxReceivers { .. }));
        assert!(out.iter().any(tells), "{out:?}");
        assert!(blocks(&mut root), "a window is a quarter of the limit");
    }

    #[test]
    fn a_marked_broadcast_is_taken_in_when_there_is_room_or_at_once_where_nobody_hears_it() {
        let array = ArrayId(0);
        let (mut core, mut out) = (of_two(Rank(1)), Actions::new());
        let mut told = |core: &mut RankCore, act: &dyn Fn(&mut RankCore, &mut Actions)| {
            act(core, &mut out);
            let news = |action| match action {
                Action::Send(ROOT, Packet::BroadcastAck { more }) => Some(more),
                _ => None,
            };
            out.drain(..).find_map(news)
        };
        let comes = |number| {
            move |core: &mut RankCore, out: &mut Actions| {
                let delivery = Box::new(Delivery::by_runtime(Payload::Encoded([].into())));
                core.receive(
                    ROOT,
                    Packet::Broadcast { array, number, delivery, ack_requested: true },
                    0,
                    out,
                );
            }
        };
        assert_eq!(told(&mut core, &comes(0)), Some(1), "nobody is here");
        core.location.arrived(ChunkId { array, key: 0 }, CellId(0));
        assert_eq!(told(&mut core, &comes(1)), None, "whether there is room others know");
        assert_eq!(told(&mut core, &RankCore::below_low_watermark), Some(1));
    }
}
