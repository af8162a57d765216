//! Runs windows of several groups without packets.

use std::collections::BTreeMap;

use super::*;
use crate::ARRAYS;
use crate::arrays::balancer::{RankPlace, RankReport, RankSample};
use crate::arrays::snapshot::{ArrayId, ChunkLoad};
use crate::arrays::window_policy::Look;

const SIZE: u32 = 4;

/// A run of groups of four ranks. Chunks have a constant load.
struct Run {
    groups: Vec<GroupBalancer>,
    hierarchy: Hierarchy,
    /// Load of each chunk, ns on a rank of speed 1, and its rank.
    chunks: Vec<(u64, u32)>,
    /// By group.
    speeds: Vec<f64>,
    phase: u64,
    /// Number of offers in the last window.
    offers: usize,
}

impl Run {
    fn new(spec: &str, speeds: &[f64], chunks: Vec<(u64, u32)>) -> Run {
        let strategy: Arc<dyn Strategy> = ARRAYS.parse(spec).expect("listed").into();
        let hierarchy = strategy.terms().hierarchy.expect("it has two levels");
        let group = |group: u32| GroupBalancer::new(strategy.clone(), Rank(group * SIZE), SIZE);
        let groups = (0..speeds.len() as u32).map(group).collect();
        Run { groups, hierarchy, chunks, speeds: speeds.to_vec(), phase: 0, offers: 0 }
    }

    fn times_ns(&self) -> Vec<u64> {
        let mut times = vec![0.0; self.groups.len() * SIZE as usize];
        self.chunks.iter().for_each(|&(ns, rank)| times[rank as usize] += ns as f64);
        times.iter().enumerate().map(|(rank, ns)| (ns / self.speeds[rank / SIZE as usize]) as u64).collect()
    }

    fn report(&self, group: usize, wishes: &BTreeMap<u64, Rank>) -> PhaseReport {
        let (times, speed) = (self.times_ns(), self.speeds[group]);
        let longest = times.iter().copied().max().unwrap_or(0);
        let members = group as u32 * SIZE..(group as u32 + 1) * SIZE;
        let rank = |rank: u32| {
            let cpu_ns = times[rank as usize];
            let sample = RankSample { wall_ns: longest, cpu_ns, speed, ..RankSample::default() };
            RankReport { place: RankPlace { host: group as u32, workers: 1 }, sample: Some(sample) }
        };
        let here = (0..).zip(&self.chunks).filter(|(_, (_, rank))| members.contains(rank));
        let chunk = |(key, &(ns, rank)): (u64, &(u64, u32))| {
            let id = ChunkId { array: ArrayId(0), key };
            let ticks = (ns as f64 / speed) as u64;
            let load = ChunkLoad { id, rank: Rank(rank % SIZE), ticks, bytes: 100, migratable: true };
            ChunkReport { load, declared: false, wish: wishes.get(&key).copied(), handled: 10 }
        };
        PhaseReport {
            ranks: members.clone().map(rank).collect(),
            chunks: here.map(chunk).collect(),
            window: true,
            ..PhaseReport::default()
        }
    }

    /// One window, decided and carried out.
    fn window(&mut self, wishes: &BTreeMap<u64, Rank>) -> Decision {
        let mut reports = Vec::new();
        for group in 0..self.groups.len() {
            let report = self.report(group, wishes);
            let (report, mut balancer) =
                self.groups[group].reported(report, Look::Decide).expect("it is decided");
            let decision = balancer.decide(&report);
            reports.push(self.groups[group].decided(balancer, &decision));
        }
        reports.reverse();
        let (mut window, asks) = GroupedWindow::new(self.hierarchy, u64::from(SIZE), self.phase, reports);
        self.offers = 0;
        for (first, ticks) in asks {
            let offers = self.groups[(first.0 / SIZE) as usize].offers(ticks);
            self.offers += offers.len();
            window.offered(first, offers);
        }
        let decision = window.decide();
        for one in &decision.moves {
            let (_, rank) = &mut self.chunks[one.chunk.key as usize];
            assert_eq!(*rank, one.from.0, "each chunk moves once");
            *rank = one.to.0;
        }
        self.groups.iter_mut().for_each(|group| group.moved(10_000));
        self.phase += 1;
        decision
    }

    fn imbalance(&self) -> f64 {
        let times = self.times_ns();
        let work = |(rank, &ns): (usize, &u64)| ns as f64 * self.speeds[rank / SIZE as usize];
        let capacity = self.speeds.iter().sum::<f64>() * f64::from(SIZE);
        let fair = times.iter().enumerate().map(work).sum::<f64>() / capacity;
        times.iter().copied().max().unwrap_or(0) as f64 / fair
    }
}

/// Forty chunks of 2 ms on each rank of the first group, of 1 ms on all others.
fn late_first_group(groups: u32) -> Vec<(u64, u32)> {
    (0..groups * SIZE * 40)
        .map(|key| (if key / 40 < SIZE { 2_000_000 } else { 1_000_000 }, key / 40))
        .collect()
}

#[test]
fn a_late_group_gives_chunks_in_every_nth_window_only() {
    let mut run = Run::new("hierarchical,every=3", &[1.0; 4], late_first_group(4));
    for window in 0..6 {
        let decision = run.window(&BTreeMap::new());
        let crossed = decision.moves.iter().filter(|one| one.from.0 / SIZE != one.to.0 / SIZE).count();
        match window {
            0 => assert!(crossed > 40 && run.offers < 120, "{crossed} of {} offers", run.offers),
            _ => assert_eq!(crossed, 0, "window {window}"),
        }
        assert!(run.imbalance() < 1.06, "window {window}: {}", run.imbalance());
        let chunks: u32 = decision.chunks_per_rank.iter().sum();
        assert_eq!(chunks as usize, run.chunks.len());
    }
}

#[test]
fn groups_of_unequal_speed_finish_together() {
    let chunks = (0..4 * SIZE * 60).map(|key| (1_000_000, key / 60)).collect();
    let mut run = Run::new("hierarchical,every=1", &[1.0, 0.5, 1.0, 2.0], chunks);
    (0..12).for_each(|_| drop(run.window(&BTreeMap::new())));
    // In windows a plan must gain more than the errors of earlier predictions.
    assert!(run.imbalance() < 1.08, "{}: {:?}", run.imbalance(), run.times_ns());
}

#[test]
fn chunks_go_to_the_group_that_their_program_wants() {
    let mut run = Run::new("hierarchical", &[1.0; 3], (0..120).map(|key| (1_000_000, key / 10)).collect());
    let wishes = BTreeMap::from([(3, Rank(9)), (4, Rank(1))]);
    let decision = run.window(&wishes);
    let of = |key: u64| decision.moves.iter().find(|one| one.chunk.key == key).map(|one| (one.from, one.to));
    assert_eq!((of(3), of(4)), (Some((Rank(0), Rank(9))), Some((Rank(0), Rank(1)))));
    let mut counts = vec![0; 12];
    run.chunks.iter().for_each(|&(_, rank)| counts[rank as usize] += 1);
    assert_eq!(decision.chunks_per_rank, counts);
}

#[test]
fn chunks_that_go_together_leave_their_group_together() {
    let mut run = Run::new("hierarchical", &[1.0; 2], (0..80).map(|key| (1_000_000, key / 10)).collect());
    let mut report = run.report(0, &BTreeMap::from([(3, Rank(6))]));
    // Array 1 follows array 0.
    let followers: Vec<ChunkReport> = report
        .chunks
        .iter()
        .map(|chunk| {
            let mut follower = ChunkReport { wish: None, ..chunk.clone() };
            follower.load.id.array = ArrayId(1);
            follower
        })
        .collect();
    report.chunks.extend(followers);
    report.leaders = vec![ArrayId(0); 2];
    let (report, mut balancer) = run.groups[0].reported(report, Look::Decide).expect("it is decided");
    let decision = balancer.decide(&report);
    let moves = run.groups[0].decided(balancer, &decision).moves;
    let of = |array| {
        moves.iter().find(|one| one.chunk == ChunkId { array: ArrayId(array), key: 3 }).map(|one| one.to)
    };
    assert_eq!((of(0), of(1)), (Some(Rank(6)), Some(Rank(6))));
}

#[test]
fn measurements_before_a_window_that_only_begins_are_not_added() {
    let mut run = Run::new("hierarchical,tolerance=0.01", &[1.0; 1], late_first_group(1));
    let sum = |report: &PhaseReport| report.chunks.iter().map(|chunk| chunk.load.ticks).sum::<u64>();
    let [old, new] = [(); 2].map(|()| run.report(0, &BTreeMap::new()));
    let one = sum(&old);
    assert!(run.groups[0].reported(old, Look::Begin).is_none());
    let (report, balancer) = run.groups[0].reported(new, Look::Decide).expect("it is decided");
    assert_eq!((sum(&report), report.undecided.len()), (one, 1));
    let decision = run.groups[0].decided(balancer, &Decision::default());
    assert_eq!(decision.handled, 10 * run.chunks.len() as u64, "of the last window");
    let [old, new] = [(); 2].map(|()| run.report(0, &BTreeMap::new()));
    assert!(run.groups[0].reported(old, Look::Collect).is_none());
    let (report, _) = run.groups[0].reported(new, Look::Decide).expect("it is decided");
    assert_eq!(sum(&report), 2 * one, "collected windows are added");
}

#[test]
fn declared_work_takes_longer_in_a_slower_group() {
    let chunks = (0..2 * SIZE * 40).map(|key| (1_000_000, key / 40)).collect();
    let mut run = Run::new("hierarchical,every=1,between=0", &[1.0, 0.5], chunks);
    let reports = [0, 1].map(|group| {
        let mut report = run.report(group, &BTreeMap::new());
        for chunk in &mut report.chunks {
            (chunk.declared, chunk.load.ticks) = (true, 1_000_000);
        }
        let (report, mut balancer) = run.groups[group].reported(report, Look::Decide).expect("it is decided");
        let decision = balancer.decide(&report);
        run.groups[group].decided(balancer, &decision)
    });
    let (_, asks) = GroupedWindow::new(run.hierarchy, u64::from(SIZE), 0, reports.into());
    // Of 320 chunks the fast ranks should have two thirds: 213, and the slow ones 107 of their 160.
    let [(first, ticks)] = asks[..] else { panic!("{asks:?}") };
    assert!(first == Rank(4) && (52_000_000..54_000_000).contains(&ticks), "{first} {ticks}");
}

#[test]
fn offers_are_bounded() {
    let mut run = Run::new("hierarchical,offers=2", &[1.0; 4], late_first_group(4));
    run.window(&BTreeMap::new());
    assert_eq!(run.offers, 2 * SIZE as usize);
}

#[test]
fn a_chunk_that_moves_within_its_group_is_not_given_away() {
    // All chunks of the first group are on its first rank.
    let chunks =
        (0..160).map(|_| (1_000_000, 0)).chain((0..240).map(|key| (500_000, SIZE + key / 20))).collect();
    let mut run = Run::new("hierarchical,every=1,between=0", &[1.0; 4], chunks);
    let mut crossed = 0;
    for _ in 0..4 {
        // `window` checks that no chunk moves twice.
        let decision = run.window(&BTreeMap::new());
        crossed += decision.moves.iter().filter(|one| one.from.0 / SIZE != one.to.0 / SIZE).count();
    }
    assert!(crossed > 40 && run.imbalance() < 1.1, "{crossed}, {}", run.imbalance());
}
