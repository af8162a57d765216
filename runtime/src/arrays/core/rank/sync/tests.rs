use std::sync::Arc;

use super::*;
use crate::arrays::core::collectives::tree::{ARITY, Tree};
use crate::arrays::core::flow::{Destination, FlowControl, FlowPacket};
use crate::arrays::core::lifecycle::erased::ErasedArray;
use crate::arrays::core::packet::Packet;
use crate::arrays::core::rank::idlers::{IdleChunks, arrival};
use crate::arrays::core::routing::cut::CutPacket;
use crate::arrays::core::routing::in_flight::CountsByRank;
use crate::arrays::core::sync::coordinator::DecisionRequest;
use crate::ids::SyncId;
use lb_strategies::balancer::RankPlace;

/// A report to `sync` from a rank without measurements.
fn collected(sync: SyncId) -> SyncPacket {
    let (tallies, ranks) = (Vec::new(), Vec::new());
    let collected = AggregatedReports {
        groups: Vec::new(),
        sync,
        tallies,
        ranks,
        edges: EdgeReports::default(),
        waited: 0,
        first_ns: 0,
        last_ns: 0,
    };
    SyncPacket::AggregatedReports(Box::new(collected), None)
}

fn problems(out: &mut Commands) -> Vec<DecisionRequest> {
    let request = |task| match task {
        Task::Decide(request) => Some(*request),
        _ => None,
    };
    out.later.drain(..).filter_map(request).collect()
}

/// All chunks stay.
fn decide(core: &mut RankCore, request: DecisionRequest, out: &mut Commands) {
    let DecisionRequest { report, mut balancer } = request;
    let decision = balancer.decide(&report);
    assert!(decision.moves.is_empty(), "{decision:?}");
    core.decided(balancer, decision, 0, out);
}

#[test]
fn a_sync_that_completes_when_the_last_outgoing_chunk_stops_is_reported() {
    let mut core = rank_of(2, Rank(1));
    let mut out = Commands::default();
    let syncs_to_sample = |out: &mut Commands| -> Vec<SyncId> {
        let sample = |task| match task {
            Task::Sample(reports) => Some(reports.sync),
            _ => None,
        };
        out.later.drain(..).filter_map(sample).collect()
    };
    let (stayer, leaver) = (0, 1);
    for key in [stayer, leaver] {
        core.created(arrival(key, SyncId(0)).chunk, arrival(key, SyncId(0)).cell);
    }
    core.at_sync(arrival(stayer, SyncId(0)), &mut out);
    core.at_sync(arrival(leaver, SyncId(0)), &mut out);
    assert_eq!(syncs_to_sample(&mut out), [SyncId(0)]);
    let moves = [Move { chunk: arrival(leaver, SyncId(0)).chunk, from: Rank(1), to: ROOT }];
    core.receive(
        ROOT,
        SyncPacket::Decision {
            occasion: Occasion::Sync(SyncId(0)),
            moves: moves.to_vec().into(),
            edges: false,
        },
        0,
        &mut out,
    );
    core.at_sync(arrival(stayer, SyncId(1)), &mut out);
    assert_eq!(syncs_to_sample(&mut out), [SyncId(0); 0], "the leaver may still be running");
    core.held(0, &mut out);
    assert_eq!(syncs_to_sample(&mut out), [SyncId(1)]);
}

#[test]
fn a_rank_whose_messages_may_be_about_to_leave_does_not_stall() {
    let mut core = rank_of(2, Rank(1));
    let mut out = Commands::default();
    for key in [0, 1] {
        core.created(arrival(key, SyncId(0)).chunk, arrival(key, SyncId(0)).cell);
    }
    for key in [0, 1] {
        core.at_sync(arrival(key, SyncId(0)), &mut out);
    }
    let stands_still = |core: &mut RankCore, out: &mut Commands| {
        out.clear();
        core.full_and_idle(0, out);
        !out.is_empty()
    };
    let moves = [Move { chunk: arrival(1, SyncId(0)).chunk, from: Rank(1), to: ROOT }];
    core.receive(
        ROOT,
        SyncPacket::Decision {
            occasion: Occasion::Sync(SyncId(0)),
            moves: moves.to_vec().into(),
            edges: false,
        },
        0,
        &mut out,
    );
    core.block(CellId(0), vec![Destination::Rank(Rank(1))]);
    assert!(core.park_if_blocked(CellId(0)));
    assert!(!stands_still(&mut core, &mut out));
    core.held(0, &mut out);
    core.receive(ROOT, CutPacket::ExpectedCounts(CountsByRank::default()), 0, &mut out);
    assert!(!stands_still(&mut core, &mut out));
    core.receive(ROOT, SyncPacket::CompleteMigration(MigrationBytes::default()), 0, &mut out);
    assert!(stands_still(&mut core, &mut out));
}

pub(super) fn rank_of(ranks: usize, rank: Rank) -> RankCore {
    let strategy = lb_strategies::ARRAYS.parse("refine").expect("it is in the table").into();
    let places = vec![RankPlace { host: 0, workers: 1 }; ranks];
    let idlers: Arc<dyn ErasedArray> = Arc::new(IdleChunks { chunks: 2, home: |_, _| Rank(1) });
    let tree = Tree { rank, ranks: ranks as u32, arity: ARITY, group: 1 };
    RankCore::new(tree, &places, [idlers].into(), strategy, false, FlowControl::without_limit(rank))
}

pub(super) fn transfer(key: u64, transit: Option<Transit>) -> LifecyclePacket {
    let chunk = arrival(key, SyncId(0)).chunk;
    LifecyclePacket::TransferChunk(Box::new(ChunkTransfer { transit, ..ChunkTransfer::without_body(chunk) }))
}

/// The actions of rank 1 for a chunk that comes to it at sync 0, or is inserted there.
fn on_arrival(core: &mut RankCore, migrates: bool) -> Vec<&'static str> {
    let (mut out, from) = (Commands::default(), Rank(2));
    if migrates {
        let moves = [Move { chunk: arrival(5, SyncId(0)).chunk, from, to: Rank(1) }];
        core.receive(
            ROOT,
            SyncPacket::Decision {
                occasion: Occasion::Sync(SyncId(0)),
                moves: moves.to_vec().into(),
                edges: false,
            },
            0,
            &mut out,
        );
        core.receive(ROOT, CutPacket::ExpectedCounts(CountsByRank::default()), 0, &mut out);
        core.receive(from, transfer(5, Some(Transit::after(0))), 0, &mut out);
        core.receive(ROOT, SyncPacket::CompleteMigration(MigrationBytes::default()), 0, &mut out);
    } else {
        core.receive(from, transfer(5, None), 0, &mut out);
    }
    assert!(out.later.is_empty(), "{out:?}");
    let name = |command| match command {
        Command::BeginPhase => Some("begin a phase"),
        Command::Admit(_) => Some("admit"),
        _ => None,
    };
    out.now.into_iter().filter_map(name).collect()
}

#[test]
fn the_phase_of_a_rank_without_chunks_begins_when_it_gets_one() {
    for migrates in [true, false] {
        let mut core = rank_of(3, Rank(1));
        assert_eq!(on_arrival(&mut core, migrates), ["begin a phase", "admit"], "{migrates}");
        let mut core = rank_of(3, Rank(1));
        core.created(arrival(0, SyncId(0)).chunk, arrival(0, SyncId(0)).cell);
        assert_eq!(on_arrival(&mut core, migrates), ["admit"], "{migrates}");
    }
}

#[test]
fn an_index_is_in_use_though_only_its_inserter_knows_that_it_moves_here() {
    let mut core = rank_of(4, Rank(2));
    let mut out = Commands::default();
    // Rank 3 has the `Decision` that the chunk moves from its home, rank 1, to rank 2.
    core.receive(Rank(3), transfer(0, None), 0, &mut out);
    let Some(Task::Stop(Err(error))) = out.later.pop_back() else { panic!("{out:?}") };
    assert_eq!(
        *error,
        Error::IndexInUse { chunk: "IdleChunks[0] of array 0".into(), rank: Rank(1), by: Rank(3) }
    );
    assert!(!out.now.iter().any(|command| matches!(command, Command::Admit(_))), "{out:?}");
}

#[test]
fn a_sync_that_completes_during_a_decision_is_decided_next_whether_chunks_wait_or_not() {
    for spec in ["none", "refine"] {
        let strategy = lb_strategies::ARRAYS.parse(spec).expect("it is in the table").into();
        let alone = [RankPlace { host: 0, workers: 1 }];
        let tree = Tree { rank: ROOT, ranks: 1, arity: ARITY, group: 1 };
        let flow = FlowControl::without_limit(ROOT);
        let mut core = RankCore::new(tree, &alone, [].into(), strategy, false, flow);
        let mut out = Commands::default();
        core.receive(ROOT, collected(SyncId(0)), 0, &mut out);
        let first = problems(&mut out).pop().expect("nobody is missing");
        assert_eq!(first.sync(), SyncId(0), "{spec}");
        core.receive(ROOT, collected(SyncId(1)), 0, &mut out);
        assert!(problems(&mut out).is_empty(), "one decision at a time");
        decide(&mut core, first, &mut out);
        let next: Vec<SyncId> = problems(&mut out).iter().map(DecisionRequest::sync).collect();
        assert_eq!(next, [SyncId(1)], "{spec}");
    }
}

/// A rank that is alone and has a sync to decide, and the request for the decision.
fn root_that_decides() -> (RankCore, DecisionRequest) {
    let strategy = lb_strategies::ARRAYS.parse("refine").expect("it is in the table").into();
    let alone = [RankPlace { host: 0, workers: 1 }];
    let tree = Tree { rank: ROOT, ranks: 1, arity: ARITY, group: 1 };
    let mut core = RankCore::new(tree, &alone, [].into(), strategy, false, FlowControl::without_limit(ROOT));
    let mut out = Commands::default();
    core.receive(ROOT, collected(SyncId(0)), 0, &mut out);
    let request = problems(&mut out).pop().expect("nobody is missing");
    (core, request)
}

#[test]
fn a_rank_that_waits_for_its_decision_is_not_idle() {
    let (mut core, request) = root_that_decides();
    let mut out = Commands::default();
    core.suspect(&mut out);
    core.idle(0, &mut out);
    assert!(out.is_empty() && !core.is_searched(), "{out:?}");
    decide(&mut core, request, &mut out);
    assert!(core.is_searched());
    out.clear();
    core.idle(0, &mut out);
    assert!(!core.is_searched(), "it has answered");
}

#[test]
fn a_rank_that_is_full_of_deferred_messages_waits_for_the_sync_but_not_for_ever() {
    let (mut core, mut out) = (rank_of(2, Rank(1)), Commands::default());
    for key in [0, 1] {
        core.created(arrival(key, SyncId(0)).chunk, arrival(key, SyncId(0)).cell);
    }
    core.at_sync(arrival(0, SyncId(0)), &mut out);
    core.defer(SyncId(0), 70);
    core.read_deferred(SyncId(0), 10);
    core.defer(SyncId(1), 60);
    core.read_deferred(SyncId(1), 60);
    core.block(CellId(1), vec![Destination::Rank(Rank(1))]);
    assert!(core.park_if_blocked(CellId(1)));
    out.clear();
    core.full_and_idle(60, &mut out);
    assert!(out.is_empty(), "{out:?}");
    core.above_high_watermark(61, true, 0, &mut out);
    assert_eq!(core.backoff_until_ns(), None, "the end of the sync is not enough");
    let mut widens = |core: &mut RankCore, now_ns| {
        core.above_high_watermark(60, false, now_ns, &mut out);
        matches!(out.now.pop_front(), Some(Command::GrowLimit))
    };
    for (begin_ns, times) in [(5, 1), (u64::MAX / 2, 2)] {
        assert!(!widens(&mut core, begin_ns));
        let until_ns = core.backoff_until_ns().expect("it waits");
        assert_eq!(until_ns - begin_ns, times * 250_000_000);
        assert!(!widens(&mut core, until_ns - 1) && widens(&mut core, until_ns));
    }
    assert!(!widens(&mut core, 7));
    core.receive(
        ROOT,
        SyncPacket::Decision { occasion: Occasion::Sync(SyncId(0)), moves: Vec::new().into(), edges: false },
        0,
        &mut out,
    );
    assert_eq!(core.backoff_until_ns(), None, "the next sync has its own time");
    out.clear();
    core.full_and_idle(0, &mut out);
    let stands_still =
        |command: &Command| matches!(command, Command::Send(ROOT, Packet::Flow(FlowPacket::Stalled { .. })));
    assert!(out.now.iter().any(stands_still), "nothing is kept for a sync any more: {out:?}");
}

#[test]
fn a_rank_that_waits_for_its_decision_does_not_stall() {
    let (mut core, request) = root_that_decides();
    let mut out = Commands::default();
    core.block(CellId(0), vec![Destination::Rank(ROOT)]);
    assert!(core.park_if_blocked(CellId(0)));
    core.full_and_idle(0, &mut out);
    assert!(out.is_empty(), "{out:?}");
    decide(&mut core, request, &mut out);
    core.full_and_idle(0, &mut out);
    assert!(out.now.iter().any(|command| matches!(command, Command::Unpark(CellId(0)))), "{out:?}");
}
