use super::*;
use crate::ARRAYS;
use crate::arrays::snapshot::ArrayId;

fn balancer(spec: &str) -> Balancer {
    Balancer::new(ARRAYS.parse(spec).expect("listed").into())
}

fn chunk(key: u64, rank: u32, ticks: u64, declared: bool) -> ChunkReport {
    let id = ChunkId { array: ArrayId(0), key };
    ChunkReport { load: ChunkLoad { id, rank: Rank(rank), ticks, bytes: 0, migratable: true }, declared }
}

/// A rank of one worker, at this speed.
fn rank(speed: f64) -> RankReport {
    let sample = RankSample { speed, ..RankSample::default() };
    RankReport { place: RankPlace { host: 0, workers: 1 }, sample: Some(sample) }
}

/// The expected load of a chunk that took 100 and then 300 ns, and the speed of a rank 5 % slower than the other, as
/// `spec` is told of them.
fn prepared(spec: &str) -> (u64, f64) {
    let mut balancer = balancer(spec);
    let phase = |ns| {
        let chunks = vec![chunk(0, 0, ns, true), chunk(1, 1, 100, true)];
        let expected = balancer.report(PhaseReport { ranks: vec![rank(1.0), rank(0.95)], chunks });
        balancer.settle(&expected, Assignment::current(&expected));
        expected
    };
    let [_, expected] = [100, 300].map(phase);
    (expected.chunks[0].ticks, expected.ranks[1].speed)
}

#[test]
fn a_strategy_sees_measurements_prepared_as_it_wants() {
    assert_eq!(prepared("refine"), (200, 1.0));
    assert_eq!(prepared("refine-paper"), (300, 0.95));
    assert_eq!(prepared("refine-paper,smoothing=0.25,speed-noise=0.04"), (150, 0.95));
}

#[test]
fn measured_time_counts_at_the_speed_of_its_rank_and_declared_ticks_as_they_are() {
    let chunks = vec![chunk(2, 1, 1000, true), chunk(1, 1, 1000, false), chunk(0, 0, 1000, false)];
    let expected = balancer("refine").report(PhaseReport { ranks: vec![rank(2.0), rank(1.0)], chunks });
    let ticks: Vec<u64> = expected.chunks.iter().map(|chunk| chunk.ticks).collect();
    assert_eq!(ticks, [1000, 500, 1000], "in the order of their names");
}

#[test]
fn moves_that_gain_less_than_they_cost_are_proposed_and_not_made() {
    // 12 chunks of so many ns on the first of two ranks: half of them gain six, and cost 5 us each.
    let decide = |ns: u64| {
        let chunks = (0..12).map(|key| chunk(key, 0, ns, true)).collect();
        balancer("greedy").decide(&PhaseReport { ranks: vec![rank(1.0), rank(1.0)], chunks })
    };
    let (cheap, dear) = (decide(10_000), decide(4_000));
    assert_eq!((cheap.accepted, cheap.moves.len(), cheap.gain_ns, cheap.cost_ns), (true, 6, 60_000, 30_000));
    assert_eq!((dear.accepted, dear.moves.len(), dear.proposed), (false, 0, 6));
    assert_eq!((dear.gain_ns, dear.cost_ns), (24_000, 30_000));
    assert_eq!((dear.makespan_before_ns(), dear.makespan_predicted_ns()), (48_000, 48_000));
    assert_eq!((cheap.chunks_per_rank, dear.chunks_per_rank), (vec![6, 6], vec![12, 0]));
}

#[test]
fn a_phase_is_held_against_what_it_would_have_been_without_the_moves_before_it() {
    let mut balancer = balancer("greedy");
    let ranks = vec![rank(1.0), rank(1.0)];
    let on = |of: &dyn Fn(u64) -> u32| PhaseReport {
        ranks: ranks.clone(),
        chunks: (0..12).map(|key| chunk(key, of(key), 10_000, true)).collect(),
    };
    let first = balancer.decide(&on(&|_| 0));
    assert_eq!(first.unmoved_ns, None);
    let to = |key| first.moves.iter().find(|one| one.chunk.key == key).map_or(0, |one| one.to.0);
    let second = balancer.decide(&on(&to));
    assert_eq!((second.makespan_before_ns(), second.unmoved_ns), (60_000, Some(120_000)));
    assert_eq!((second.phase, second.moves.len()), (1, 0));
}

#[test]
fn a_chunk_that_did_not_move_is_where_it_is_and_one_that_did_where_it_was() {
    let chunks = [(1, 0), (2, 1), (3, 1)].map(|(key, rank)| chunk(key, rank, 1, true).load);
    let measured = Snapshot { phase: 1, ranks: Vec::new(), chunks: chunks.into(), edges: Vec::new() };
    // The first has been removed since.
    let moved = [(0, 1), (3, 0)].map(|(key, rank)| (ChunkId { array: ArrayId(0), key }, Rank(rank)));
    assert_eq!(unmoved(&measured, &moved.into()).ranks, [Rank(0), Rank(1), Rank(0)]);
}
