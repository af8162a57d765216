//! Compares the search with all placements of small snapshots, and tests its limits.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::{Comm, Moved, Refine, Snapshot, max_ns};
use crate::arrays::metrics::{Crossing, memory_bytes};
use crate::arrays::snapshot::{ArrayId, Block, ChunkId, ChunkLoad, LinkCost, LinkCosts, Memory, RankLoad};
use crate::arrays::snapshot::{Assignment, Edge};
use crate::arrays::strategy::Background;
use crate::arrays::strategy::Strategy as _;
use crate::arrays::synthetic::Workload;
use crate::rank::Rank;

/// One unit of load or of bytes takes 1 ms.
const UNIT: u64 = 1_000_000;

fn chunk(key: u64, rank: u32, ticks: u64) -> ChunkLoad {
    ChunkLoad { id: ChunkId { array: ArrayId(0), key }, rank: Rank(rank), ticks, bytes: 0, migratable: true }
}

fn edge((from, to, bytes): (usize, usize, u64)) -> Edge {
    Edge { from, to, messages: 1, bytes }
}

/// All bytes between ranks take 1 ms each.
fn dear() -> LinkCosts {
    let link = LinkCost { ns_per_message: 0.0, ns_per_byte: UNIT as f64 };
    LinkCosts { within_host: link, between_hosts: link }
}

/// The set `synthetic-blocks` of LBAF in half units: nine chunks of five blocks on four ranks, and eight edges.
fn blocks(limit: u64) -> Snapshot {
    let loads = [(0, 2), (0, 1), (0, 1), (0, 1), (1, 1), (1, 4), (1, 2), (1, 1), (2, 3)];
    let edges = [(0, 5, 4), (1, 4, 2), (3, 2, 2), (3, 8, 1), (4, 1, 4), (5, 8, 4), (7, 6, 2), (8, 6, 3)];
    let block = |chunks: &[usize]| Block { bytes: 9, chunks: chunks.into() };
    Snapshot {
        ranks: vec![RankLoad::default(); 4],
        chunks: (0..).zip(loads).map(|(key, (rank, halves))| chunk(key, rank, halves * UNIT)).collect(),
        edges: edges.map(edge).into(),
        links: dear(),
        memory: Some(Memory {
            limits: vec![limit; 4],
            footprints: vec![0; 9],
            blocks: vec![block(&[0, 1]), block(&[2, 3]), block(&[4, 5]), block(&[6, 7]), block(&[8])],
            ..Memory::default()
        }),
        ..Snapshot::default()
    }
}

/// Time of the last rank, in half units of `blocks`.
fn halves(snapshot: &Snapshot, plan: &Assignment) -> u64 {
    max_ns(snapshot, plan, Background::Share) / UNIT
}

#[test]
fn the_enumerated_optima_of_synthetic_blocks_are_found_with_the_fewest_moves_allowed() {
    // Of all 4^9 placements, by load alone 840 take 2.0, and two moves suffice; by load and messages 24 take 4.0, and
    // four moves suffice; by messages alone 16 take no time, and five moves suffice.
    let mut by_load = blocks(36);
    by_load.links = LinkCosts::default();
    let mut tight = blocks(18);
    tight.links = LinkCosts::default();
    let mut by_messages = blocks(54);
    by_messages.chunks.iter_mut().for_each(|chunk| chunk.ticks = 0);
    for (snapshot, least, moves) in [(by_load, 4, 2), (tight, 4, 2), (blocks(54), 8, 4), (by_messages, 0, 5)]
    {
        for seed in 1..=5 {
            let allowed = Comm { moves: Some(moves), seed, ..Comm::default() }.assign(&snapshot);
            assert_eq!(halves(&snapshot, &allowed), least, "seed {seed}");
            assert_eq!(Moved::of(&snapshot, &allowed).chunks, moves, "seed {seed}");
            let limit = snapshot.memory.as_ref().expect("it has limits").limits[0];
            assert!(memory_bytes(&snapshot, &allowed).iter().all(|&bytes| bytes <= limit));
            let fewer = Comm { moves: Some(moves - 1), seed, ..Comm::default() }.assign(&snapshot);
            assert!(halves(&snapshot, &fewer) > least, "one move less is not enough");
        }
    }
}

prop_compose! {
    /// Up to six chunks on three ranks of two hosts, with messages and limits of memory.
    fn small()(
        chunks in prop::collection::vec((0..3_u32, 0..20_u64, 0..5_u32), 2..6),
        edges in prop::collection::vec((0..6_usize, 0..6_usize, 0..10_u64), 0..8),
        speeds in prop::array::uniform3(0.5..1.5_f64),
        limit in prop::option::of(2..6_u64),
    ) -> Snapshot {
        let place = |(key, (rank, load, pinned)): (u64, (u32, u64, u32))| {
            ChunkLoad { migratable: pinned > 0, ..chunk(key, rank, load * UNIT) }
        };
        let rank = |(host, speed)| RankLoad { speed, host, ..RankLoad::default() };
        let near = LinkCost { ns_per_message: 0.0, ns_per_byte: UNIT as f64 / 4.0 };
        let count = chunks.len();
        Snapshot {
            ranks: [0, 0, 1].into_iter().zip(speeds).map(rank).collect(),
            chunks: (0..).zip(chunks).map(place).collect(),
            edges: edges.into_iter().map(|(from, to, bytes)| edge((from % count, to % count, bytes))).collect(),
            links: LinkCosts { within_host: near, ..dear() },
            memory: limit.map(|limit| Memory { limits: vec![limit; 3], footprints: vec![1; count], ..Memory::default() }),
            ..Snapshot::default()
        }
    }
}

/// The time of the best of all placements that keep to the limits of memory, or of the present one.
fn enumerated_ns(snapshot: &Snapshot) -> u64 {
    let now = Assignment::current(snapshot);
    let before = memory_bytes(snapshot, &now);
    let limit = snapshot.memory.as_ref().map_or(u64::MAX, |memory| memory.limits[0]);
    let plans = (0..3_usize.pow(snapshot.chunks.len() as u32)).filter_map(|code| {
        let place = |(position, chunk): (usize, &ChunkLoad)| {
            let rank = Rank((code / 3_usize.pow(position as u32) % 3) as u32);
            (chunk.migratable || rank == chunk.rank).then_some(rank)
        };
        let plan =
            Assignment { ranks: snapshot.chunks.iter().enumerate().map(place).collect::<Option<_>>()? };
        let used = memory_bytes(snapshot, &plan);
        let fits = used.iter().zip(&before).all(|(&bytes, &before)| bytes <= limit.max(before));
        fits.then(|| max_ns(snapshot, &plan, Background::Share))
    });
    plans.min().expect("the present one at least")
}

#[test]
fn nearly_all_small_problems_are_solved() {
    let mut runner = TestRunner::deterministic();
    let mut ratios: Vec<f64> = (0..300)
        .map(|_| {
            let snapshot = small().new_tree(&mut runner).expect("nothing is rejected").current();
            let comm = Comm { tolerance: 0.0, move_cost: Some(0.0), ..Comm::default() };
            let found = max_ns(&snapshot, &comm.assign(&snapshot), Background::Share);
            found.max(1) as f64 / enumerated_ns(&snapshot).max(1) as f64
        })
        .collect();
    ratios.sort_unstable_by(f64::total_cmp);
    assert!(ratios[0] >= 1.0, "a limit was exceeded");
    assert!(ratios[290] < 1.001 && ratios[299] < 1.2, "{:?}", &ratios[280..]);
}

#[test]
fn a_limit_of_moves_holds_and_forced_moves_do_not_count() {
    let mut snapshot = Workload::HotSpots.snapshot(288, 32, 1);
    for moves in [0, 1, 7, 20] {
        let plan = Comm { moves: Some(moves), ..Comm::default() }.assign(&snapshot);
        assert!(Moved::of(&snapshot, &plan).chunks <= moves);
    }
    snapshot.ranks[3].available = false;
    let left = snapshot.chunks.iter().filter(|chunk| chunk.rank == Rank(3) && chunk.migratable).count();
    let plan = Comm { moves: Some(0), ..Comm::default() }.assign(&snapshot);
    assert_eq!(Moved::of(&snapshot, &plan).chunks, left);
}

#[test]
fn chunks_that_exchange_much_stay_on_a_host() {
    // Eight pairs of chunks are apart, on two hosts of two ranks.
    let mut snapshot = Workload::Equal.snapshot(16, 4, 1);
    (0..).zip(&mut snapshot.ranks).for_each(|(number, rank)| rank.host = number / 2);
    snapshot.edges = (0..8).map(|from| edge((from, from + 8, 100_000))).collect();
    let between = LinkCost { ns_per_message: 0.0, ns_per_byte: 8.0 };
    snapshot.links = LinkCosts { between_hosts: between, ..LinkCosts::default() };
    let plan = Comm::default().assign(&snapshot);
    assert_eq!(Crossing::of(&snapshot, &plan).bytes_between_hosts, 0);
    let refined = crate::ARRAYS.parse("refine").expect("listed").assign(&snapshot);
    assert_eq!(Crossing::of(&snapshot, &refined).bytes_between_hosts, 0, "by default too, where it matters");
}

/// A grid of `side` by `side` equal chunks, scattered over two hosts. Each chunk sends each neighbour 10 messages.
fn scattered_grid(side: u64) -> Snapshot {
    let mut snapshot = Workload::Equal.snapshot((side * side) as usize, 2, 1);
    snapshot.ranks[1].host = 1;
    let key = |row: u64, column: u64| row << 32 | column;
    for (position, chunk) in (0..).zip(&mut snapshot.chunks) {
        let (row, column) = (position / side, position % side);
        (chunk.id.key, chunk.ticks) = (key(row, column), 10_000);
        chunk.rank = Rank((((row * 7919 + column) * 2_654_435_761) >> 7 & 1) as u32);
        let neighbours = [(column + 1 < side, position + 1), (row + 1 < side, position + side)];
        for (_, other) in neighbours.into_iter().filter(|(exists, _)| *exists) {
            let [one, other] = [position, other].map(|position| position as usize);
            let edge = |from, to| Edge { from, to, messages: 10, bytes: 2_560 };
            snapshot.edges.extend([edge(one, other), edge(other, one)]);
        }
    }
    let link = |ns_per_message| LinkCost { ns_per_message, ns_per_byte: 0.25 };
    snapshot.links = LinkCosts { within_host: link(50.0), between_hosts: link(1_000.0) };
    snapshot
}

#[test]
fn scattered_chunks_come_together_in_regions_at_once() {
    let snapshot = scattered_grid(32);
    let crossing = |placement: &Assignment| Crossing::of(&snapshot, placement).messages;
    let before = crossing(&Assignment::current(&snapshot));
    let after = crossing(&Comm::default().assign(&snapshot));
    assert!(before > 15_000 && after < 2_000, "{before} {after}");
}

#[test]
fn refine_searches_only_where_messages_between_ranks_take_time() {
    // Rank 0 has all load of a line of chunks, so any plan by loads parts few neighbours.
    let mut snapshot = Workload::Equal.snapshot(64, 2, 1);
    snapshot.chunks.iter_mut().take(48).for_each(|chunk| chunk.rank = Rank(0));
    let sent =
        |messages| (0..63).map(|from| Edge { from, to: from + 1, messages, bytes: 0 }).collect::<Vec<_>>();
    let link = LinkCost { ns_per_message: 1_000.0, ns_per_byte: 0.0 };
    snapshot.links = LinkCosts { within_host: link, between_hosts: link };
    let refine = Refine::default();
    let by_loads = refine.assign(&snapshot);
    let comm = Comm::default();
    let may_gain = |snapshot: &Snapshot| {
        let start = refine.start(snapshot);
        assert!(comm.is_needed(snapshot, &start));
        comm.may_gain(snapshot, &refine.refine(snapshot, &start), &start)
    };
    snapshot.edges = sent(100);
    assert!(!may_gain(&snapshot), "0.1 ms of 32");
    assert_eq!(refine.assign(&snapshot), by_loads);
    snapshot.edges = sent(2_000);
    assert!(may_gain(&snapshot), "2 ms of 32");
}
