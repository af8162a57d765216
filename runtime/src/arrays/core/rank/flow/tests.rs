//! Tests flow control together with the other protocols of one rank.

use std::sync::Arc;

use lb_strategies::balancer::RankPlace;

use super::*;
use crate::arrays::core::collectives::CollectivePacket;
use crate::arrays::core::collectives::tree::{ARITY, Tree};
use crate::arrays::core::flow::{FlowControl, StallReport};
use crate::arrays::core::lifecycle::LifecyclePacket;
use crate::arrays::core::lifecycle::erased::ErasedArray;
use crate::arrays::core::lifecycle::transfer::{ChunkTransfer, Transit};
use crate::arrays::core::packet::Packet;
use crate::arrays::core::rank::idlers::IdleChunks;
use crate::arrays::core::routing::cut::CutPacket;
use crate::arrays::core::routing::envelope::{Delivery, NODE_BYTES, Payload};
use crate::arrays::core::routing::in_flight::CountsByRank;
use crate::arrays::core::sync::SyncPacket;
use crate::arrays::core::sync::migration::{Move, Occasion};
use crate::arrays::core::sync::migration_bytes::MigrationBytes;
use crate::arrays::core::termination::TerminationPacket;
use crate::ids::{ArrayId, ChunkId, SyncId};
use crate::trace::queued_bytes::QueuedBytes;

/// One of two ranks, with an array of one chunk, which has not arrived.
fn of_two(rank: Rank) -> RankCore {
    of_two_with(rank, &Arc::default())
}

fn of_two_with(rank: Rank, waiting: &Arc<QueuedBytes>) -> RankCore {
    let strategy = lb_strategies::ARRAYS.parse("none").expect("it is in the table").into();
    let places = [RankPlace { host: 0, workers: 1 }; 2];
    let tree = Tree { rank, ranks: 2, arity: ARITY, group: 1 };
    let idlers: Arc<dyn ErasedArray> = Arc::new(IdleChunks { chunks: 1, home: |_, _| ROOT });
    let flow = FlowControl::new(rank, 2, 100, waiting);
    RankCore::new(tree, &places, [idlers].into(), strategy, false, flow)
}

#[test]
fn a_rank_with_a_parked_entry_does_not_reply_to_the_search() {
    let (mut core, mut out) = (of_two(Rank(1)), Commands::default());
    core.block(CellId(3), vec![Destination::Rank(Rank(1))]);
    assert!(core.park_if_blocked(CellId(3)));
    core.receive(ROOT, TerminationPacket::Probe, 0, &mut out);
    core.idle(0, &mut out);
    assert!(out.is_empty(), "{out:?}");
    core.below_low_watermark(&mut out);
    assert!(matches!(out.now.pop_front(), Some(Command::Unpark(CellId(3)))));
    core.idle(0, &mut out);
    assert!(matches!(
        out.now.pop_front(),
        Some(Command::Send(ROOT, Packet::Termination(TerminationPacket::ProbeReply(_))))
    ));
}

#[test]
fn a_rank_that_reports_its_stall_before_its_request_for_an_ack_hears_of_the_deadlock() {
    let (mut core, mut out) = (of_two(ROOT), Commands::default());
    let report = StallReport { waits_for: vec![Destination::AllRanks], first_deferred_ack: Some(0) };
    core.receive(Rank(1), FlowPacket::Stalled { number: 5, report }, 0, &mut out);
    assert!(out.is_empty(), "{out:?}");
    let delivery = Box::new(Delivery::by_runtime(Payload::Encoded([].into())));
    let (array, epoch) = (ArrayId(0), Epoch::default());
    core.receive(
        Rank(1),
        CollectivePacket::BroadcastRequest { array, delivery, ack_request: 9, epoch },
        0,
        &mut out,
    );
    let resolves = |command: &Command| {
        matches!(command, Command::Send(Rank(1), Packet::Flow(FlowPacket::Deadlocked { number: 5 })))
    };
    assert!(out.now.iter().any(resolves), "{out:?}");
}

#[test]
fn a_chunk_that_comes_blocked_is_blocked_by_its_new_rank_if_that_is_full() {
    let (mut core, mut out) = (of_two(ROOT), Commands::default());
    core.block_incoming(CellId(3), false);
    assert!(!core.has_blocked());
    core.block_incoming(CellId(3), true);
    assert!(core.park_if_blocked(CellId(3)));
    core.below_low_watermark(&mut out);
    assert!(matches!(out.now.pop_front(), Some(Command::Unpark(CellId(3)))));
}

/// Rank 1 of two, to which the chunk is in flight. `waiting` counts the queued bytes.
fn that_expects(chunk: ChunkId, waiting: &Arc<QueuedBytes>, out: &mut Commands) -> RankCore {
    let mut core = of_two_with(Rank(1), waiting);
    expect(&mut core, chunk, out);
    core
}

fn expect(core: &mut RankCore, chunk: ChunkId, out: &mut Commands) {
    let moves = vec![Move { chunk, from: ROOT, to: Rank(1) }];
    core.receive(
        ROOT,
        SyncPacket::Decision { occasion: Occasion::Sync(SyncId(0)), moves: moves.into(), edges: false },
        0,
        out,
    );
}

/// Admits the chunk as an executor does, with messages of `queued_bytes` bytes. Returns the other messages for the
/// chunk.
fn admit(core: &mut RankCore, queued_bytes: u64, out: &mut Commands) -> Vec<Delivery> {
    core.admit(CHUNK, CellId(3), Some(JOURNEY), SyncId(1), queued_bytes, out)
}

const JOURNEY: Transit = Transit { resumes: true, ..Transit::after(0) };
const CHUNK: ChunkId = ChunkId { array: ArrayId(0), key: 0 };

#[test]
fn messages_are_queued_with_the_core_while_their_chunk_is_on_its_way() {
    let (waiting, mut out) = (Arc::default(), Commands::default());
    let mut core = of_two_with(Rank(1), &waiting);
    let message = || Delivery { bytes: 70, ..Delivery::by_runtime(Payload::Encoded([].into())) };
    core.add_pending(CHUNK, message());
    assert_eq!(waiting.published(), 0, "it may never come");
    expect(&mut core, CHUNK, &mut out);
    assert_eq!(waiting.published(), 70);
    core.add_pending(CHUNK, message());
    core.add_pending(ChunkId { key: 1, ..CHUNK }, message());
    assert_eq!(waiting.published(), 140);
    let messages = admit(&mut core, 0, &mut out);
    assert_eq!((messages.len(), waiting.published()), (3, 0), "what waited comes behind the word to go on");
}

#[test]
fn messages_of_a_chunk_that_has_come_are_queued_until_the_migration_completes() {
    let (waiting, mut out) = (Arc::default(), Commands::default());
    let mut core = that_expects(CHUNK, &waiting, &mut out);
    let messages = [30, 40].map(|bytes| Delivery { bytes, ..Delivery::by_runtime(Payload::Resume) }).into();
    let transfer = ChunkTransfer { messages, transit: Some(JOURNEY), ..ChunkTransfer::without_body(CHUNK) };
    core.receive(ROOT, LifecyclePacket::TransferChunk(Box::new(transfer)), 0, &mut out);
    assert_eq!(waiting.published(), 70);
    core.receive(ROOT, CutPacket::ExpectedCounts(CountsByRank::default()), 0, &mut out);
    core.receive(ROOT, SyncPacket::CompleteMigration(MigrationBytes::default()), 0, &mut out);
    assert_eq!(waiting.published(), 70, "it has no mailbox yet");
    admit(&mut core, 70, &mut out);
    assert_eq!(waiting.published(), 0, "whoever admits it counts them with its mailbox");
}

#[test]
fn messages_by_routes_not_yet_known_are_queued_and_messages_of_the_rank_itself_are_not() {
    let (waiting, mut out) = (Arc::default(), Commands::default());
    let mut core = that_expects(CHUNK, &waiting, &mut out);
    core.receive(ROOT, CutPacket::ExpectedCounts(CountsByRank::default()), 0, &mut out);
    let message = || Delivery { bytes: 70, ..Delivery::by_runtime(Payload::Resume) };
    let transfer = ChunkTransfer { transit: Some(JOURNEY), ..ChunkTransfer::without_body(CHUNK) };
    core.receive(ROOT, LifecyclePacket::TransferChunk(Box::new(transfer)), 0, &mut out);
    core.receive(ROOT, SyncPacket::CompleteMigration(MigrationBytes::default()), 0, &mut out);
    admit(&mut core, 0, &mut out);
    let missing = ChunkId { key: 1, ..CHUNK };
    core.add_pending_remote(Epoch::of_bit(1), missing, message());
    core.routing.location.departed(CHUNK);
    core.multicast(CHUNK, CHUNK.array, &[CHUNK.key], &[0; 50].into(), &mut out);
    assert_eq!(waiting.published(), 0, "by the routes of now, to chunks that there are not");
    core.add_pending_remote(Epoch::of_bit(0), missing, message());
    assert_eq!(waiting.published(), 70);
    expect(&mut core, missing, &mut out);
    assert_eq!(waiting.published(), 140, "both are for one that is on its way, so it turns out");
}

#[test]
fn the_news_of_deferred_acks_that_move_twice_may_come_in_any_order() {
    let (mut core, mut out) = (of_two(Rank(1)), Commands::default());
    let [first, second, third] = [ROOT, Rank(2), Rank(3)];
    core.message_sent(first, 200);
    core.block(CellId(3), vec![Destination::Rank(first)]);
    assert!(core.park_if_blocked(CellId(3)));
    core.receive(third, FlowPacket::DeferredAckMoved { first_receiver: second, bytes: 200 }, 0, &mut out);
    assert!(!core.message_sent(second, 5).1.blocks, "less than nothing is under way to it");
    core.receive(second, FlowPacket::DeferredAckMoved { first_receiver: first, bytes: 200 }, 0, &mut out);
    core.receive(third, FlowPacket::Ack { bytes: 200 }, 0, &mut out);
    assert!(!core.has_blocked() && !core.has_parked());
    let freed = out.now.iter().filter(|command| matches!(command, Command::Unpark(CellId(3))));
    assert_eq!(freed.count(), 1, "{out:?}");
    assert!(!core.message_sent(second, 5).1.blocks, "as good as nothing is under way to it");
}

#[test]
fn a_logged_broadcast_is_queued_until_the_last_incoming_chunk_has_it() {
    let (waiting, mut out) = (Arc::default(), Commands::default());
    let mut core = that_expects(CHUNK, &waiting, &mut out);
    let delivery = Box::new(Delivery::by_runtime(Payload::Encoded([0; 50].into())));
    let broadcast =
        CollectivePacket::Broadcast { array: CHUNK.array, number: 0, delivery, ack_requested: false };
    core.receive(ROOT, broadcast, 0, &mut out);
    out.clear();
    assert_eq!(waiting.published(), 50);
    let messages = admit(&mut core, 0, &mut out);
    core.incoming_admitted(&mut out);
    assert_eq!((messages.len(), waiting.published()), (2, 50));
    drop(messages);
    assert_eq!(waiting.published(), 0);
}

#[test]
fn a_logged_broadcast_is_acknowledged_when_the_migration_completes() {
    let mut out = Commands::default();
    let mut core = that_expects(CHUNK, &Arc::default(), &mut out);
    let delivery = Box::new(Delivery::by_runtime(Payload::Encoded([].into())));
    let broadcast =
        CollectivePacket::Broadcast { array: CHUNK.array, number: 0, delivery, ack_requested: true };
    core.receive(ROOT, broadcast, 0, &mut out);
    core.below_low_watermark(&mut out);
    let tells = |command: &Command| {
        matches!(command, Command::Send(ROOT, Packet::Flow(FlowPacket::BroadcastAck { more: 1 })))
    };
    assert!(!out.now.iter().any(tells), "nobody is here, but somebody is to hear it");
    let mut out = Commands::default();
    core.incoming_admitted(&mut out);
    assert!(matches!(out.now.pop_front(), Some(Command::CheckLowWatermark)));
    core.below_low_watermark(&mut out);
    assert!(out.now.iter().any(tells));
}

#[test]
fn a_broadcast_counts_a_node_for_each_receiver_of_the_rank_with_most() {
    let array = ArrayId(0);
    let (mut root, mut below, mut out) = (of_two(ROOT), of_two(Rank(1)), Commands::default());
    let blocks = |core: &mut RankCore| {
        let delivery = Delivery::by_runtime(Payload::Encoded([].into()));
        core.broadcast(array, delivery, &mut Commands::default()).is_some()
    };
    root.flow.control = FlowControl::new(ROOT, 2, 50 * NODE_BYTES, &Arc::default());
    assert!(!blocks(&mut root));
    (0..20).for_each(|key| below.created(ChunkId { array, key }, CellId(key as u32)));
    below.hello(&mut out);
    let reports = out.now.into_iter().filter_map(|command| match command {
        Command::Send(ROOT, sent @ Packet::Flow(FlowPacket::ReceiversGrew { chunks: 20, .. })) => Some(sent),
        _ => None,
    });
    let report = reports.collect::<Vec<_>>().pop().expect("an even share is one chunk");
    let mut out = Commands::default();
    root.receive(Rank(1), report, 0, &mut out);
    let tells = |command: &Command| {
        matches!(command, Command::Send(Rank(1), Packet::Flow(FlowPacket::MaxReceivers { .. })))
    };
    assert!(out.now.iter().any(tells), "{out:?}");
    assert!(blocks(&mut root), "a window is a quarter of the limit");
}

#[test]
fn a_broadcast_is_acknowledged_below_the_low_watermark_or_at_once_without_receivers() {
    let array = ArrayId(0);
    let (mut core, mut out) = (of_two(Rank(1)), Commands::default());
    let mut acked = |core: &mut RankCore, act: &dyn Fn(&mut RankCore, &mut Commands)| {
        act(core, &mut out);
        let news = |command| match command {
            Command::Send(ROOT, Packet::Flow(FlowPacket::BroadcastAck { more })) => Some(more),
            _ => None,
        };
        out.now.drain(..).find_map(news)
    };
    let comes = |number| {
        move |core: &mut RankCore, out: &mut Commands| {
            let delivery = Box::new(Delivery::by_runtime(Payload::Encoded([].into())));
            core.receive(
                ROOT,
                CollectivePacket::Broadcast { array, number, delivery, ack_requested: true },
                0,
                out,
            );
        }
    };
    assert_eq!(acked(&mut core, &comes(0)), Some(1), "nobody is here");
    core.routing.location.arrived(ChunkId { array, key: 0 }, CellId(0));
    assert_eq!(acked(&mut core, &comes(1)), None, "whether there is room others know");
    assert_eq!(acked(&mut core, &RankCore::below_low_watermark), Some(1));
}
