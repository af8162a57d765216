//! How the balancer uses the messages between chunks.

use super::tests::{Stays, chunk, irregular_us, phase, rank, two_arrays, window};
use super::*;
use crate::arrays::snapshot::ArrayId;

/// Leaves all chunks where they are, except that chunk 0 goes to rank 1.
struct MovesFirst {
    edges: EdgeUse,
}

impl Strategy for MovesFirst {
    fn name(&self) -> &'static str {
        "moves-first"
    }
    fn assign(&self, snapshot: &Snapshot) -> Assignment {
        let mut assignment = Assignment::current(snapshot);
        assignment.ranks[0] = Rank(1);
        assignment
    }
    fn terms(&self) -> Terms {
        Terms { edges: self.edges, ..Terms::default() }
    }
}

fn balancer(edges: EdgeUse) -> Balancer {
    Balancer::new(Arc::new(MovesFirst { edges }))
}

fn edge(from: u64, to: u64, messages: u64, bytes: u64) -> EdgeReport {
    let id = |key| ChunkId { array: ArrayId(0), key };
    EdgeReport { from: id(from), to: id(to), messages, bytes }
}

/// Two chunks on rank 0 and one on rank 1, of 1 ms each. The first two exchange messages.
fn neighbours(messages: u64) -> PhaseReport {
    let chunks = [(2, 1), (1, 0), (0, 0)].map(|(key, rank)| chunk(key, rank, 1_000_000, true));
    let edges = EdgeReports::new(vec![edge(0, 1, messages, 0), edge(1, 0, messages, 0)], 0);
    PhaseReport { edges, ..phase(vec![rank(1.0), rank(1.0)], chunks.into()) }
}

#[test]
fn a_strategy_that_uses_edges_sees_them_priced_and_another_one_does_not() {
    let expected = balancer(EdgeUse::Always).report(&neighbours(10));
    let position = |from, to| Edge { from, to, messages: 10, bytes: 0 };
    assert_eq!(expected.edges, [position(0, 1), position(1, 0)]);
    assert_eq!(expected.links.within_host, crate::LinkCost { ns_per_message: 50.0, ns_per_byte: 0.25 });
    assert!(expected.links.between_hosts.ns_per_message > 50.0);
    let mut without = neighbours(10);
    without.edges = EdgeReports::default();
    let blind = balancer(EdgeUse::Never).report(&neighbours(10));
    assert_eq!(blind, balancer(EdgeUse::Always).report(&without));
    assert_eq!(blind.links, LinkCosts::default());
}

#[test]
fn messages_that_would_cross_ranks_count_in_the_gain_of_a_plan() {
    // The move takes rank 0 from 2 ms to 1 ms and rank 1 from 1 ms to 2 ms, and messages cross.
    let decision = balancer(EdgeUse::Always).decide(&neighbours(1_000));
    assert_eq!((decision.accepted, decision.gain_ns), (false, 0));
    let at = |messages| {
        let mut report = neighbours(messages);
        report.chunks[0].load.ticks = 0;
        balancer(EdgeUse::Always).decide(&report)
    };
    assert_eq!(at(0).gain_ns, 1_000_000);
    assert_eq!((at(1_000).gain_ns, at(1_000).accepted), (950_000, true), "1000 messages of 50 ns each way");
    assert_eq!((at(30_000).gain_ns, at(30_000).accepted), (0, false));
    assert_eq!(at(1_000).predicted_ns.len(), 2);
}

#[test]
fn edges_between_groups_add_up_and_edges_within_one_are_dropped() {
    let mut report = two_arrays();
    report.leaders = vec![ArrayId(0), ArrayId(0)];
    let id = |array, key| ChunkId { array: ArrayId(array), key };
    let to = |from, to| EdgeReport { from, to, messages: 1, bytes: 8 };
    let edges = vec![
        to(id(0, 2), id(1, 2)),
        to(id(0, 2), id(0, 3)),
        to(id(1, 2), id(0, 3)),
        to(id(1, 2), id(1, 3)),
        to(id(1, 3), id(0, 2)),
    ];
    report.edges = EdgeReports::new(edges, 0);
    let expected = balancer(EdgeUse::Always).report(&report);
    let position = |from, to, messages| Edge { from, to, messages, bytes: 8 * messages };
    assert_eq!(expected.edges, [position(2, 3, 3), position(3, 2, 1)]);
}

#[test]
fn in_windows_messages_are_charged_once() {
    // Ten messages per chunk are assumed to stay on the rank where the chunk began, unless edges are known.
    let ranks: Vec<u32> = (0..16).map(|key| key / 8).collect();
    let crossing_ns = |edges| {
        let mut balancer = balancer(EdgeUse::Always);
        let expected = balancer.report(&PhaseReport { edges, ..window(&ranks, |_| 5_000, 8) });
        let mut plan = Assignment::current(&expected);
        plan.ranks[0] = Rank(1);
        balancer.crossing_ns(&plan)
    };
    assert!(crossing_ns(EdgeReports::default()) > 500.0);
    assert!(crossing_ns(EdgeReports::new(vec![edge(3, 4, 1, 1)], 0)) < 1.0);
}

#[test]
fn edges_are_wanted_as_the_strategy_says_and_where_they_matter_as_long_as_they_do() {
    let ranks: Vec<u32> = (0..16).map(|key| key / 8).collect();
    let wanted = |edges, messages| -> usize {
        let mut balancer = balancer(edges);
        let phase = |_| {
            let wants = balancer.wants_edges();
            // Two ranks of 40 ms: 80 000 messages of 50 ns take 2 ms of each, or 5 %.
            let edges = if wants {
                EdgeReports::new(vec![edge(0, 1, messages, 0)], 0)
            } else {
                EdgeReports::default()
            };
            balancer.decide(&PhaseReport { edges, ..window(&ranks, |_| 5_000, 8) });
            usize::from(wants)
        };
        (0..19).map(phase).sum()
    };
    assert_eq!([EdgeUse::Always, EdgeUse::Never].map(|edges| wanted(edges, 1)), [19, 0]);
    assert_eq!([80_000, 40_000].map(|messages| wanted(EdgeUse::WhereTheyMatter, messages)), [19, 3]);
}

#[test]
fn equal_reports_with_edges_give_equal_decisions() {
    let ranks: Vec<u32> = (0..16).map(|key| key / 8).collect();
    let decisions = || {
        let mut balancer = balancer(EdgeUse::WhereTheyMatter);
        let decide = |number: u64| {
            let edges = (0..15).map(|key| edge(key, key + 1, 1_000 * number, 64)).collect();
            let edges = EdgeReports::new(edges, number);
            let report = PhaseReport { edges, ..window(&ranks, |key| 4_000 + 100 * (key ^ number), 8) };
            balancer.decide(&report)
        };
        (0..12).map(decide).collect::<Vec<_>>()
    };
    assert_eq!(decisions(), decisions());
}

const STAYS: Stays = Stays { scatters: true, edges: EdgeUse::Always };

#[test]
fn more_messages_between_ranks_are_a_reason_to_ask_and_those_that_an_answer_left_are_none() {
    let mut balancer = Balancer::new(Arc::new(STAYS));
    let mut is_asked = |messages| {
        let chunks = [0, 1].map(|key| chunk(key, key as u32, 10_000_000, true));
        let edges = EdgeReports::new(vec![edge(0, 1, messages, 0)], 0);
        let report = PhaseReport { edges, ..phase(vec![rank(1.0), rank(1.0)], chunks.into()) };
        balancer.decide_in(&report, 1_000_000).took_ns.is_some()
    };
    // A message takes 50 ns of each rank, a decision 1 ms; both ranks have equal loads.
    let asked = [100_000, 100_000, 100_000, 200_000, 200_000].map(&mut is_asked);
    assert_eq!(asked, [true, false, false, true, false]);
}

#[test]
fn a_plan_that_is_carried_out_in_part_leaves_messages_that_can_be_avoided() {
    /// All chunks to rank 0, of which only a part moves before the price of a byte is known.
    struct Gathers;
    impl Strategy for Gathers {
        fn name(&self) -> &'static str {
            "gathers"
        }
        fn assign(&self, snapshot: &Snapshot) -> Assignment {
            Assignment { ranks: vec![Rank(0); snapshot.chunks.len()] }
        }
        fn terms(&self) -> Terms {
            STAYS.terms()
        }
    }
    let ranks: Vec<u32> = (0..16).map(|key| key % 2).collect();
    let avoidable = |messages| {
        let mut balancer = Balancer::new(Arc::new(Gathers));
        let edges = (0..15).map(|key| edge(key, key + 1, messages, 0)).collect();
        let edges = EdgeReports::new(edges, 0);
        // Chunks of 4 MiB, of which four move at first.
        balancer.decide(&PhaseReport { edges, ..window(&ranks, |_| 500, 4 << 20) });
        balancer.avoidable_traffic()
    };
    assert!(avoidable(100_000) > 0.1, "{}", avoidable(100_000));
    assert!(avoidable(1) <= 0.0, "messages do not matter");
}

#[test]
fn chunks_whose_messages_matter_are_not_scattered() {
    let moves = |messages| -> usize {
        let mut balancer = Balancer::new(Arc::new(STAYS));
        let mut ranks: Vec<u32> = (0..16).map(|key| key / 8).collect();
        let decide = |number| {
            let edges = (0..15).map(|key| edge(key, key + 1, messages, 0)).collect();
            let edges = EdgeReports::new(edges, 0);
            let report = window(&ranks, |key| irregular_us(number, key), 1_000);
            let decision = balancer.decide(&PhaseReport { edges, ..report });
            decision.moves.iter().for_each(|one| ranks[one.chunk.key as usize] = one.to.0);
            decision.moves.len()
        };
        (0..40).map(decide).sum()
    };
    assert_eq!(moves(10_000), 0);
    assert!(moves(1) > 0);
}
