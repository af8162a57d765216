//! Checks the promises of every strategy in the table.

use lb_strategies::ARRAYS;
use lb_strategies::metrics::{completion_ns, max_ns, max_over_avg, memory_bytes};
use lb_strategies::synthetic::Workload;
use lb_strategies::{
    ArrayId, Assignment, Background, Block, ChunkId, ChunkLoad, Edge, LinkCost, LinkCosts, Memory, Rank,
    RankLoad, Snapshot, Strategy,
};
use proptest::prelude::*;

/// Strategies that promise never to raise the maximum completion time.
const NEVER_WORSE: [&str; 4] = ["refine-paper", "refine", "comm", "sfc"];
/// Those of them that count messages.
const COUNT_MESSAGES: [&str; 2] = ["refine", "comm"];

/// Every strategy with its defaults, then with other settings that change its decisions.
fn all() -> Vec<Box<dyn Strategy>> {
    let variants = [
        "random,seed=7",
        "greedy,background=additive",
        "refine-paper,receivers=all,settle=0,coarse=on",
        "refine,background=additive",
        "refine,settle=tolerance,band=0",
        "refine,tolerance=0,settle=0,band=1",
        "comm,steps=2000",
        "comm,moves=3,steps=500",
        "comm,tolerance=0,move-cost=0,seed=5,steps=500,background=additive",
        "sfc,curve=rows,tolerance=0",
        "sfc,curve=morton,dimensions=3,background=additive",
        "hierarchical,group=2,every=1,between=0",
        "hierarchical,group=3,every=1,between=0,offers=1,background=additive",
    ];
    // By default `comm` makes so many steps that hundreds of snapshots would take minutes.
    let defaults = ARRAYS.iter().map(|entry| entry.name).filter(|name| *name != "comm");
    let specs = defaults.chain(variants);
    specs.map(|spec| ARRAYS.parse(spec).expect("valid specification")).collect()
}

fn is_available(snapshot: &Snapshot, rank: Rank) -> bool {
    snapshot.ranks.get(rank.index()).is_some_and(|rank| rank.available)
}

/// Checks every promise that can be checked with one snapshot and its assignment.
fn check(strategy: &dyn Strategy, snapshot: &Snapshot) -> Result<(), TestCaseError> {
    let name = strategy.name();
    let assignment = strategy.assign(snapshot);
    prop_assert_eq!(&assignment, &strategy.assign(snapshot), "{} is not a function", name);
    prop_assert_eq!(assignment.ranks.len(), snapshot.chunks.len(), "{}", name);

    let anywhere = snapshot.ranks.iter().any(|rank| rank.available);
    for (chunk, &rank) in snapshot.chunks.iter().zip(&assignment.ranks) {
        if !chunk.migratable || !anywhere || name == "none" {
            prop_assert_eq!(rank, chunk.rank, "{} moved {:?}", name, chunk);
        } else {
            prop_assert!(is_available(snapshot, rank), "{} put {:?} on rank {}", name, chunk, rank);
        }
    }

    let forced = snapshot.chunks.iter().any(|chunk| chunk.migratable && !is_available(snapshot, chunk.rank));
    let now = memory_bytes(snapshot, &Assignment::current(snapshot));
    let used = memory_bytes(snapshot, &assignment).into_iter().zip(now);
    let limits = snapshot.memory.iter().flat_map(|memory| memory.limits.iter().copied());
    let (mut excess, mut excess_before) = (0_u128, 0_u128);
    for (rank, ((bytes, before), limit)) in used.zip(limits.chain(std::iter::repeat(u64::MAX))).enumerate() {
        excess += u128::from(bytes.saturating_sub(limit));
        excess_before += u128::from(before.saturating_sub(limit));
        prop_assert!(forced || bytes <= limit.max(before), "{} fills rank {} beyond its memory", name, rank);
    }
    let counts_all = snapshot.edges.is_empty() || COUNT_MESSAGES.contains(&name);
    // A rank above its limit of memory is relieved even if that takes time.
    let relieves = excess < excess_before;
    if NEVER_WORSE.contains(&name) && !forced && !relieves && counts_all {
        let model = strategy.terms().background;
        let before = max_ns(snapshot, &Assignment::current(snapshot), model);
        let after = max_ns(snapshot, &assignment, model);
        prop_assert!(after <= before, "{} raised the maximum from {} to {}", name, before, after);
    }
    Ok(())
}

/// Realistic numbers, and numbers that no machine measures.
fn capacity() -> impl proptest::strategy::Strategy<Value = f64> {
    prop_oneof![
        8 => 0.1..2.0f64,
        1 => prop::sample::select(vec![0.0, -1.0, 1e-300, 1e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY]),
    ]
}

fn ticks() -> impl proptest::strategy::Strategy<Value = u64> {
    prop_oneof![
        6 => 900_000..1_100_000u64,
        2 => 0..10_000_000u64,
        1 => prop::sample::select(vec![0, 1, u64::MAX / 2, u64::MAX - 1, u64::MAX]),
    ]
}

prop_compose! {
    fn rank_load()(
        speed in capacity(),
        share in capacity(),
        background_ns in ticks(),
        available in prop::bool::weighted(0.9),
        host: u32,
    )
        -> RankLoad { RankLoad { speed, share, background_ns, available, host } }
}

prop_compose! {
    // A chunk may even name a rank that does not exist.
    fn chunk_load()(
        array in 0..2u32,
        key: u64,
        rank in 0..12u32,
        ticks in ticks(),
        bytes: u64,
        migratable in prop::bool::weighted(0.9),
    )
        -> ChunkLoad { ChunkLoad { id: ChunkId { array: ArrayId(array), key }, rank: Rank(rank), ticks, bytes, migratable } }
}

prop_compose! {
    fn hostile()(
        phase: u64,
        ranks in prop::collection::vec(rank_load(), 0..12),
        chunks in prop::collection::vec(chunk_load(), 0..120),
        edges in prop_oneof![24 => Just(Vec::new()), 1 => prop::collection::vec(edge(), 0..60)],
        links in links(),
        memory in prop::option::weighted(0.04, memory()),
    ) -> Snapshot { Snapshot { phase, ranks, chunks, edges, links, memory } }
}

prop_compose! {
    // An edge may name chunks that do not exist.
    fn edge()(from in 0..130_usize, to in 0..130_usize, messages: u16, bytes in ticks()) -> Edge {
        Edge { from, to, messages: u64::from(messages), bytes }
    }
}

prop_compose! {
    fn links()(ns in prop::array::uniform4(prop_oneof![3 => Just(0.0), 6 => 0.0..100.0_f64, 1 => capacity()])) -> LinkCosts {
        let link = |at: usize| LinkCost { ns_per_message: ns[at], ns_per_byte: ns[at + 1] };
        LinkCosts { within_host: link(0), between_hosts: link(2) }
    }
}

prop_compose! {
    // A block may name chunks that do not exist, or one chunk twice.
    fn memory()(
        limits in prop::collection::vec(prop_oneof![0..1_000_u64, any::<u64>()], 0..14),
        footprints in prop::collection::vec(0..100_u64, 0..130),
        working in prop::collection::vec(prop_oneof![0..100_u64, any::<u64>()], 0..130),
        blocks in prop::collection::vec((0..500_u64, prop::collection::vec(0..130_usize, 0..8)), 0..20),
    ) -> Memory {
        let blocks = blocks.into_iter().map(|(bytes, chunks)| Block { bytes, chunks }).collect();
        Memory { limits, footprints, working, blocks }
    }
}

prop_compose! {
    /// Realistic machines: known ranks, all available, sensible capacities.
    fn sensible()(capacities in prop::collection::vec((0.3..1.0f64, 0.3..1.0f64, 0..50_000_000u64), 1..12))(
        chunks in prop::collection::vec((0..capacities.len() as u32, 500_000..1_500_000u64), 0..300),
        capacities in Just(capacities),
    ) -> Snapshot {
        let rank_load = |(speed, share, background_ns)|
            RankLoad { speed, share, background_ns, ..RankLoad::default() };
        let chunk_load = |(key, (rank, ticks))| ChunkLoad {
            id: ChunkId { array: ArrayId(0), key }, rank: Rank(rank), ticks, bytes: 1, migratable: true,
        };
        Snapshot {
            phase: 1,
            ranks: capacities.into_iter().map(rank_load).collect(),
            chunks: (0..).zip(chunks).map(chunk_load).collect(),
            ..Snapshot::default()
        }
    }
}

prop_compose! {
    /// Few and coarse chunks, for which heuristics fail.
    fn coarse()(ranks in 2..5u32)(
        chunks in prop::collection::vec((0..ranks, 1..10u64), 2..12),
        ranks in Just(ranks),
    ) -> Snapshot {
        let chunk_load = |(key, (rank, ticks))| ChunkLoad {
            id: ChunkId { array: ArrayId(0), key }, rank: Rank(rank), ticks: 1_000_000 * ticks, bytes: 1, migratable: true,
        };
        Snapshot {
            phase: 1,
            ranks: vec![RankLoad::default(); ranks as usize],
            chunks: (0..).zip(chunks).map(chunk_load).collect(),
            ..Snapshot::default()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn every_strategy_keeps_its_promises_on_coarse_chunks(snapshot in coarse()) {
        for strategy in all() {
            check(&*strategy, &snapshot)?;
        }
    }
}

prop_compose! {
    /// Realistic messages and limits of memory, on realistic machines.
    fn connected()(
        snapshot in sensible(),
        edges in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..100_000_u64), 0..200),
        ns_per_byte in 0.0..20.0_f64,
        limit in prop::option::of(1..40_u64),
    ) -> Snapshot {
        let count = snapshot.chunks.len().max(1);
        let edge = |(from, to, bytes): (prop::sample::Index, prop::sample::Index, u64)|
            Edge { from: from.index(count), to: to.index(count), messages: 1, bytes };
        let link = LinkCost { ns_per_message: 500.0, ns_per_byte };
        let limits = |limit| Memory { limits: vec![limit; snapshot.ranks.len()], ..Memory::default() };
        Snapshot {
            edges: edges.into_iter().map(edge).collect(),
            links: LinkCosts { within_host: link, between_hosts: link },
            memory: limit.map(limits),
            ..snapshot
        }
    }
}

proptest! {
    // `refine` searches in nearly all of these.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_strategy_keeps_its_promises_with_messages_and_limits_of_memory(snapshot in connected()) {
        for strategy in all() {
            check(&*strategy, &snapshot)?;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_strategy_keeps_its_promises_on_hostile_numbers(snapshot in hostile()) {
        for strategy in all() {
            check(&*strategy, &snapshot)?;
        }
    }

    #[test]
    fn every_strategy_keeps_its_promises_on_sensible_machines(snapshot in sensible()) {
        for strategy in all() {
            check(&*strategy, &snapshot)?;
        }
    }

    #[test]
    fn greedy_is_within_a_chunk_of_the_bound(snapshot in sensible()) {
        let slowest = snapshot.ranks.iter().map(|rank| rank.speed * rank.share).fold(f64::INFINITY, f64::min);
        let bound = lb_strategies::metrics::bound_ns(&snapshot, Background::Share);
        let greedy = ARRAYS.parse("greedy").expect("listed").assign(&snapshot);
        let after = max_ns(&snapshot, &greedy, Background::Share);
        let chunk_ns = 1_500_000.0 / slowest;
        let allowed = bound..=bound + chunk_ns as u64 + 1;
        prop_assert!(allowed.contains(&after), "{} for a bound of {}", after, bound);
    }
}

#[test]
fn a_slow_rank_and_a_noisy_rank_end_with_proportionally_less() {
    for name in ["greedy", "refine", "sfc", "hierarchical", "comm"] {
        let strategy = ARRAYS.parse(name).expect("listed");
        let mut snapshot = Workload::Equal.snapshot(4000, 4, 1);
        snapshot.ranks[1].speed = 0.5;
        snapshot.ranks[2].share = 0.25;
        let assignment = strategy.assign(&snapshot);
        for (rank, fair) in
            [1.0, 0.5, 0.25, 1.0].map(|capacity| capacity / 2.75 * 4000.0).into_iter().enumerate()
        {
            let count = assignment.ranks.iter().filter(|other| other.index() == rank).count();
            assert!(
                (count as f64 / fair - 1.0).abs() < 0.04,
                "{name}: {count} chunks on rank {rank}, {fair} would be fair"
            );
        }
    }
}

#[test]
fn additive_background_is_added_once_and_in_ticks() {
    for name in ["greedy", "refine", "sfc", "hierarchical", "comm"] {
        let strategy = ARRAYS.parse(&format!("{name},background=additive")).expect("listed");
        let mut snapshot = Workload::Equal.snapshot(3000, 3, 1);
        // 1 s at speed 0.5 is worth 500 chunks. 3500 chunks over a capacity of 2.5 are 1400 per unit of speed.
        snapshot.ranks[2] = RankLoad { speed: 0.5, background_ns: 1_000_000_000, ..RankLoad::default() };
        let assignment = strategy.assign(&snapshot);
        for (rank, fair) in [1400, 1400, 200].into_iter().enumerate() {
            let count = assignment.ranks.iter().filter(|other| other.index() == rank).count();
            assert!(
                count.abs_diff(fair) <= 20,
                "{name}: {count} chunks on rank {rank}, {fair} would be fair"
            );
        }
        let completions = completion_ns(&snapshot, &assignment, Background::Additive);
        assert!(
            completions.iter().all(|ns| ns.abs_diff(1_400_000_000) < 30_000_000),
            "{name}: {completions:?}"
        );
    }
}

#[test]
fn the_edges_of_the_input_are_handled() {
    for strategy in all() {
        for (chunks, ranks) in [(0, 0), (0, 3), (1, 1), (7, 1), (1, 7), (2, 2)] {
            for workload in Workload::ALL {
                check(&*strategy, &workload.snapshot(chunks, ranks, 5)).expect("promises hold");
            }
        }
        let mut homeless = Workload::Equal.snapshot(4, 2, 1);
        homeless.ranks.clear();
        assert_eq!(strategy.assign(&homeless), Assignment::current(&homeless), "{}", strategy.name());
    }
}

#[test]
fn what_is_balanced_stays_and_a_giant_is_left_alone() {
    for name in NEVER_WORSE {
        let strategy = ARRAYS.parse(name).expect("listed");
        let equal = Workload::Equal.snapshot(100, 10, 1);
        assert_eq!(strategy.assign(&equal), Assignment::current(&equal), "{name}");

        let giant = Workload::Giant.snapshot(101, 4, 1);
        let assignment = strategy.assign(&giant);
        let company_ns = max_ns(&giant, &assignment, Background::Share) - 100_000_000;
        assert_eq!(company_ns, 0, "{name}");
    }
}

#[test]
fn an_emptied_rank_is_empty_and_the_others_are_balanced() {
    for name in ["greedy", "refine", "sfc", "hierarchical", "comm"] {
        let mut snapshot = Workload::Uniform.snapshot(1000, 10, 1);
        snapshot.ranks[4].available = false;
        let assignment = ARRAYS.parse(name).expect("listed").assign(&snapshot);
        assert!(assignment.ranks.iter().all(|rank| *rank != Rank(4)), "{name}");
        assert!(max_over_avg(&snapshot, &assignment, Background::Share) < 1.05, "{name}");
    }
}
