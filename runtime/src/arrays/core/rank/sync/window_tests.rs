//! Tests chunks that are removed or inserted between the report of their rank in a balancing window and the decision.

use lb_strategies::window_policy::WindowPolicy;

use super::tests::{rank_of, transfer};
use super::*;
use crate::arrays::core::checkpoint::CheckpointPacket;
use crate::arrays::core::collectives::CollectivePacket;
use crate::arrays::core::lifecycle::handler::ChunkRecord;
use crate::arrays::core::packet::Packet;
use crate::arrays::core::rank::idlers::arrival;
use crate::arrays::core::routing::cut::CutPacket;
use crate::arrays::core::routing::envelope::Envelope;
use crate::arrays::core::routing::in_flight::{CountsByRank, Epoch, InFlight};

/// Rank `rank` of four, in a run that balances in windows. All chunks start on rank 1.
fn core(rank: u32) -> RankCore {
    rank_of(4, Rank(rank)).by_windows(&WindowPolicy::new(None, true))
}

fn chunk(key: u64) -> ChunkId {
    arrival(key, SyncId(0)).chunk
}

fn message(to: u64, bytes: u64, epoch: Epoch) -> Packet {
    let delivery = Delivery { bytes, ..Delivery::by_runtime(Payload::Start) };
    Packet::Message(Envelope { to: chunk(to), delivery, epoch })
}

/// The epochs before and after the first cut.
fn epochs() -> [Epoch; 2] {
    let mut in_flight = InFlight::default();
    let before = in_flight.epoch();
    in_flight.end_epoch();
    [before, in_flight.epoch()]
}

/// An insertion that was sent in this epoch.
fn insertion(key: u64, epoch: Epoch) -> LifecyclePacket {
    let LifecyclePacket::TransferChunk(inserted) = transfer(key, None) else { unreachable!("it is one") };
    LifecyclePacket::TransferChunk(Box::new(ChunkTransfer { epoch, ..*inserted }))
}

fn decide(core: &mut RankCore, moves: &[Move], out: &mut Commands) {
    let decision =
        SyncPacket::Decision { occasion: Occasion::Window, moves: moves.to_vec().into(), edges: false };
    core.receive(ROOT, decision, 0, out);
}

/// The chunks that are sent to another rank: each with its receiver, whether only its index is sent, and its messages.
fn sent(out: &mut Commands) -> Vec<(Rank, bool, usize)> {
    let transfer = |command| match command {
        Command::Send(to, Packet::Lifecycle(LifecyclePacket::TransferChunk(transfer))) => {
            Some((to, matches!(transfer.body, ChunkBody::Removed), transfer.messages.len()))
        }
        _ => None,
    };
    out.now.drain(..).filter_map(transfer).collect()
}

#[test]
fn the_index_of_a_chunk_that_is_removed_before_it_leaves_moves_with_its_messages() {
    let (mut core, mut out) = (core(1), Commands::default());
    core.created(chunk(0), CellId(7));
    decide(&mut core, &[Move { chunk: chunk(0), from: Rank(1), to: Rank(2) }], &mut out);
    assert!(out.now.iter().any(|command| matches!(command, Command::Hold(_))), "{out:?}");
    // Its handler runs on another worker, and removes it.
    core.remove(chunk(0), &mut ChunkRecord::default(), &mut out);
    let [before, _] = epochs();
    let mut sender = InFlight::default();
    sender.count_sent(Rank(1));
    core.receive(Rank(3), message(0, 5, before), 0, &mut out);
    core.receive(ROOT, CutPacket::ExpectedCounts(sender.end_epoch()), 0, &mut out);
    assert_eq!(sent(&mut out), [(Rank(2), true, 1)]);
    assert!(out.later.is_empty(), "there is no chunk to take out: {out:?}");
}

#[test]
fn a_chunk_inserted_under_an_index_that_leaves_is_forwarded_after_the_switch() {
    let (mut core, mut out) = (core(1), Commands::default());
    let [before, _] = epochs();
    for key in [0, 1] {
        core.created(chunk(key), CellId(key as u32));
    }
    let moves = [0, 1].map(|key| Move { chunk: chunk(key), from: Rank(1), to: Rank(2) });
    decide(&mut core, &moves, &mut out);
    core.remove(chunk(0), &mut ChunkRecord::default(), &mut out);
    core.receive(Rank(3), insertion(0, before), 0, &mut out);
    assert!(
        !out.now.iter().any(|command| matches!(command, Command::Admit(_))),
        "it would run on the old rank"
    );
    assert_eq!(sent(&mut out), []);
    core.held(0, &mut out);
    assert_eq!(sent(&mut out), [(Rank(2), false, 0)], "all ranks may know of the move now");
    core.receive(Rank(3), insertion(0, before), 0, &mut out);
    assert_eq!(sent(&mut out), [(Rank(2), false, 0)]);
}

#[test]
fn a_chunk_inserted_by_routes_not_yet_known_waits_for_the_messages_of_its_index() {
    let (mut core, mut out) = (core(2), Commands::default());
    let [before, after] = epochs();
    core.receive(Rank(3), insertion(0, after), 0, &mut out);
    core.receive(Rank(3), message(0, 9, after), 0, &mut out);
    decide(&mut core, &[Move { chunk: chunk(0), from: Rank(1), to: Rank(2) }], &mut out);
    core.receive(ROOT, CutPacket::ExpectedCounts(CountsByRank::default()), 0, &mut out);
    let Packet::Message(Envelope { delivery, .. }) = message(0, 5, before) else { unreachable!("it is one") };
    let index = ChunkTransfer {
        body: ChunkBody::Removed,
        messages: vec![delivery],
        transit: Some(Transit::after(0)),
        ..ChunkTransfer::without_body(chunk(0))
    };
    core.receive(Rank(1), LifecyclePacket::TransferChunk(Box::new(index)), 0, &mut out);
    core.receive(ROOT, SyncPacket::CompleteMigration(MigrationBytes::default()), 0, &mut out);
    let admits =
        |out: &Commands| out.now.iter().filter(|command| matches!(command, Command::Admit(_))).count();
    assert_eq!(admits(&out), 0);
    core.incoming_admitted(&mut out);
    assert!(out.now.iter().any(|command| matches!(command, Command::IncomingAdmitted)), "the log goes on");
    assert_eq!((admits(&out), out.later.len()), (1, 0), "{out:?}");
    let mail = core.admit(chunk(0), CellId(1), None, SyncId(0), 0, &mut out);
    assert_eq!(
        mail.iter().map(|delivery| delivery.bytes).collect::<Vec<_>>(),
        [0, 5, 9],
        "start, then in order"
    );
}

#[test]
fn a_chunk_inserted_by_new_routes_in_the_old_epoch_is_admitted_after_the_migration() {
    let (mut core, mut out) = (core(2), Commands::default());
    let [before, _] = epochs();
    decide(&mut core, &[Move { chunk: chunk(0), from: Rank(1), to: Rank(2) }], &mut out);
    // Rank 3 has the `Decision`, and has not switched.
    core.receive(Rank(3), insertion(0, before), 0, &mut out);
    let mut sender = InFlight::default();
    sender.count_sent(Rank(2));
    core.receive(ROOT, CutPacket::ExpectedCounts(sender.end_epoch()), 0, &mut out);
    let index = ChunkTransfer {
        body: ChunkBody::Removed,
        transit: Some(Transit::after(0)),
        ..ChunkTransfer::without_body(chunk(0))
    };
    core.receive(Rank(1), LifecyclePacket::TransferChunk(Box::new(index)), 0, &mut out);
    core.receive(ROOT, SyncPacket::CompleteMigration(MigrationBytes::default()), 0, &mut out);
    core.incoming_admitted(&mut out);
    assert!(out.now.iter().any(|command| matches!(command, Command::Admit(_))), "{out:?}");
}

#[test]
fn a_chunk_that_is_inserted_during_a_checkpoint_waits_and_gets_the_broadcasts_after_it() {
    let (mut core, mut out) = (core(1), Commands::default());
    core.receive(ROOT, CheckpointPacket::Freeze, 0, &mut out);
    core.receive(Rank(3), insertion(9, epochs()[0]), 0, &mut out);
    let delivery = Box::new(Delivery::by_runtime(Payload::Encoded([1].into())));
    let broadcast =
        CollectivePacket::Broadcast { array: ArrayId(0), number: 0, delivery, ack_requested: false };
    core.receive(ROOT, broadcast, 0, &mut out);
    let admits = |out: &mut Commands| out.now.drain(..).any(|command| matches!(command, Command::Admit(_)));
    assert!(!admits(&mut out), "no handler starts before the end of the checkpoint");
    core.receive(ROOT, CheckpointPacket::Thaw, 0, &mut out);
    assert!(admits(&mut out));
    let mail = core.admit(chunk(9), CellId(5), None, SyncId(0), 0, &mut out);
    let kinds = mail.iter().map(|delivery| matches!(delivery.payload, Payload::Encoded(_)));
    assert!(kinds.eq([false, true]), "`start`, and the broadcast: {mail:?}");
}
