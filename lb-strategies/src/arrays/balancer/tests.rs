use super::*;
use crate::ARRAYS;
use crate::arrays::snapshot::ArrayId;

fn balancer(spec: &str) -> Balancer {
    Balancer::new(ARRAYS.parse(spec).expect("listed").into())
}

pub(super) fn chunk(key: u64, rank: u32, ticks: u64, declared: bool) -> ChunkReport {
    let id = ChunkId { array: ArrayId(0), key };
    ChunkReport {
        load: ChunkLoad { id, rank: Rank(rank), ticks, bytes: 0, migratable: true },
        declared,
        wish: None,
        handled: 0,
    }
}

/// A rank of one worker, at this speed.
pub(super) fn rank(speed: f64) -> RankReport {
    let sample = RankSample { speed, ..RankSample::default() };
    RankReport { place: RankPlace { host: 0, workers: 1 }, sample: Some(sample) }
}

fn at_once(assignment: Assignment) -> StrategyResult {
    StrategyResult::Assigned { assignment, took_ns: 0 }
}

pub(super) fn phase(ranks: Vec<RankReport>, chunks: Vec<ChunkReport>) -> PhaseReport {
    PhaseReport { ranks, chunks, ..PhaseReport::default() }
}

/// Two values of the snapshot for `spec`: the expected load of a chunk after 100 and 300 ns, and a speed 5 % below 1.
fn prepared(spec: &str) -> (u64, f64) {
    let mut balancer = balancer(spec);
    let prepare = |ns| {
        let chunks = vec![chunk(0, 0, ns, true), chunk(1, 1, 100, true)];
        let expected = balancer.report(&phase(vec![rank(1.0), rank(0.95)], chunks));
        balancer.settle(&expected, at_once(Assignment::current(&expected)));
        expected
    };
    let [_, expected] = [100, 300].map(prepare);
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
    let expected = balancer("refine").report(&phase(vec![rank(2.0), rank(1.0)], chunks));
    let ticks: Vec<u64> = expected.chunks.iter().map(|chunk| chunk.ticks).collect();
    assert_eq!(ticks, [1000, 500, 1000], "in the order of their names");
}

#[test]
fn moves_that_gain_less_than_they_cost_are_proposed_and_not_made() {
    // 12 chunks of `ns` ns on the first of two ranks: to move half of them gains six times `ns`, and costs 5 us each.
    let decide = |ns: u64| {
        let chunks = (0..12).map(|key| chunk(key, 0, ns, true)).collect();
        balancer("greedy").decide(&phase(vec![rank(1.0), rank(1.0)], chunks))
    };
    let (cheap, dear) = (decide(10_000), decide(4_000));
    assert_eq!(
        (cheap.accepted, cheap.moves.len(), cheap.gain_ns, cheap.needed_ns),
        (true, 6, 60_000, 30_000)
    );
    assert_eq!((dear.accepted, dear.moves.len(), dear.proposed), (false, 0, 6));
    assert_eq!((dear.gain_ns, dear.needed_ns), (24_000, 30_000));
    assert_eq!((dear.makespan_before_ns(), dear.makespan_predicted_ns()), (48_000, 48_000));
    assert_eq!((cheap.chunks_per_rank, dear.chunks_per_rank), (vec![6, 6], vec![12, 0]));
}

/// Whether the strategy is asked in each phase. A phase is the best achievable gain and the time of the strategy, us.
fn asked(spec: &str, phases: &[(u64, u64)]) -> Vec<bool> {
    let mut balancer = balancer(spec);
    let ask = |&(gain_us, took_us): &(u64, u64)| {
        let half_ns = 500_000 + 1_000 * gain_us;
        let chunks =
            vec![chunk(0, 0, half_ns, true), chunk(1, 0, half_ns, true), chunk(2, 1, 1_000_000, true)];
        let decision = balancer.decide_in(&phase(vec![rank(1.0), rank(1.0)], chunks), took_us * 1_000);
        // By the bound there is something to gain, and yet neither of the two on rank 0 fits rank 1.
        let was_asked = decision.needed_ns == 0;
        assert!(was_asked || decision.gain_ns == gain_us * 1_000, "{decision:?}");
        was_asked
    };
    phases.iter().map(ask).collect()
}

#[test]
fn a_strategy_is_not_asked_where_no_plan_could_save_the_time_that_it_takes() {
    let spec = "refine-paper,tolerance=0.05,receivers=light,pay=on";
    assert_eq!(asked(spec, &[(0, 900), (905, 900)]), [true, false]);
    assert_eq!(asked(spec, &[(0, 900), (906, 900)]), [true, true]);
    // Forgone gains add up until asking is worth it, and then anew.
    let phases = [(0, 900), (400, 900), (400, 900), (400, 900), (400, 900)];
    assert_eq!(asked(spec, &phases), [true, false, false, true, false]);
    assert_eq!(asked(spec, &[(0, 900), (910, 100), (120, 900), (120, 900)]), [true; 4], "the least counts");
    assert_eq!(asked(spec, &[(0, 900), (0, 0), (0, 0), (0, 0), (0, 0)])[1..], [false; 4], "nothing to gain");
    let never_pays = "refine-paper,tolerance=0.05,receivers=light";
    assert_eq!(asked(never_pays, &[(0, 900), (0, 900), (0, 900)]), [true; 3]);
}

#[test]
fn a_phase_is_held_against_what_it_would_have_been_without_the_moves_before_it() {
    let mut balancer = balancer("greedy");
    let ranks = vec![rank(1.0), rank(1.0)];
    let on = |of: &dyn Fn(u64) -> u32| {
        phase(ranks.clone(), (0..12).map(|key| chunk(key, of(key), 10_000, true)).collect())
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
    let measured = Snapshot { phase: 1, ranks: Vec::new(), chunks: chunks.into(), ..Snapshot::default() };
    // The first has been removed since.
    let moved = [(0, 1), (3, 0)].map(|(key, rank)| (ChunkId { array: ArrayId(0), key }, Rank(rank)));
    assert_eq!(unmoved(&measured, &moved.into()).ranks, [Rank(0), Rank(1), Rank(0)]);
}

/// Twelve chunks on the first of two equal ranks, six in each of two arrays.
pub(super) fn two_arrays() -> PhaseReport {
    let one = |(array, key)| {
        let mut one = chunk(key, 0, 10_000_000, true);
        one.load.id.array = ArrayId(array);
        one
    };
    let all = (0..2).flat_map(|array| (0..6).map(move |key| (array, key)));
    phase(vec![rank(1.0), rank(1.0)], all.map(one).collect())
}

#[test]
fn chunks_that_are_kept_together_are_one_to_the_strategy_and_go_the_same_way() {
    let mut report = two_arrays();
    report.leaders = vec![ArrayId(0), ArrayId(0)];
    // One of the second array was inserted elsewhere, another has no leader, and one is pinned.
    report.chunks[7].load.rank = Rank(1);
    report.chunks.remove(3);
    report.chunks[10].load.migratable = false;
    let mut balancer = balancer("greedy");
    let asked = balancer.report(&report);
    assert_eq!(asked.chunks.len(), 6);
    assert_eq!(asked.chunks[0].ticks, 20_000_000);
    let alone = asked.chunks.iter().find(|chunk| chunk.id.key == 3).expect("it is there without its leader");
    assert_eq!((alone.id.array, alone.ticks), (ArrayId(1), 10_000_000));
    assert!(!asked.chunks[4].migratable, "the leader of the pinned one is pinned");
    let assignment = balancer.strategy().assign(&asked);
    let decision = balancer.settle(&asked, at_once(assignment));
    assert!(decision.accepted && !decision.moves.is_empty());
    let after = |chunk: &ChunkReport| {
        let moved = decision.moves.iter().find(|one| one.chunk == chunk.load.id);
        moved.map_or(chunk.load.rank, |one| one.to)
    };
    for key in [0, 1, 2, 4, 5] {
        let both: Vec<Rank> =
            report.chunks.iter().filter(|chunk| chunk.load.id.key == key).map(after).collect();
        assert_eq!(both[0], both[1], "key {key}");
    }
    assert_eq!(decision.chunks_per_rank.iter().sum::<u32>(), 11);
    assert_eq!(decision.predicted_ns.iter().sum::<u64>(), 110_000_000);
}

#[test]
fn a_program_s_own_moves_are_made_whatever_the_strategy_says_and_it_places_the_others_around_them() {
    let mut report = two_arrays();
    report.chunks[..6].iter_mut().for_each(|chunk| chunk.wish = Some(Rank(1)));
    let keys = |decision: &Decision| -> Vec<(u32, u64)> {
        decision.moves.iter().map(|one| (one.chunk.array.0, one.chunk.key)).collect()
    };
    let own: Vec<(u32, u64)> = (0..6).map(|key| (0, key)).collect();
    for spec in ["greedy", "refine", "program"] {
        let decision = balancer(spec).decide(&report);
        assert_eq!(keys(&decision), own, "{spec}: 6 on each rank are balanced");
        assert_eq!((decision.before_ns[0], decision.predicted_ns[0]), (120_000_000, 60_000_000));
    }
    // A chunk that is on the rank where it is wanted stays.
    report.chunks.iter_mut().for_each(|chunk| chunk.wish = Some(Rank(0)));
    let decision = balancer("rotate").decide(&report);
    assert_eq!(keys(&decision), []);
    // The wish for one chunk counts for all chunks of its group.
    report.chunks.iter_mut().for_each(|chunk| chunk.wish = None);
    report.chunks[8].wish = Some(Rank(1));
    report.leaders = vec![ArrayId(0), ArrayId(0)];
    assert_eq!(keys(&balancer("program").decide(&report)), [(0, 2), (1, 2)]);
    // Also if the other one is pinned; but nothing moves if plans are not carried out.
    report.chunks[2].load.migratable = false;
    assert_eq!(keys(&balancer("program").decide(&report)), [(0, 2), (1, 2)]);
    assert_eq!(keys(&balancer("none").decide(&report)), []);
}

#[test]
fn a_strategy_took_lately_what_it_took_at_least_the_last_two_times() {
    let mut balancer = balancer("rotate");
    assert_eq!(balancer.took_lately_ns(), None);
    let mut lately = |took_ns| {
        let report = phase(vec![rank(1.0); 2], vec![chunk(0, 0, 100, true)]);
        balancer.decide_in(&report, took_ns);
        balancer.took_lately_ns()
    };
    assert_eq!([5, 9, 2, 3, 4].map(&mut lately), [5, 5, 2, 2, 3].map(Some));
}

/// A window in which each of 16 chunks, eight of them on each rank, has handled ten messages that cost this, us.
pub(super) fn window(ranks: &[u32], cost_us: impl Fn(u64) -> u64, bytes: u64) -> PhaseReport {
    let sample = |_| {
        let sample =
            RankSample { wall_ns: 40_000_000, cpu_ns: 40_000_000, speed: 1.0, ..RankSample::default() };
        RankReport { place: RankPlace { host: 0, workers: 1 }, sample: Some(sample) }
    };
    let chunks = (0..).zip(ranks).map(|(key, &rank)| {
        let mut report = chunk(key, rank, 1_000 * cost_us(key), false);
        (report.handled, report.load.bytes) = (10, bytes);
        report
    });
    PhaseReport { window: true, ..phase((0..2).map(sample).collect(), chunks.collect()) }
}

/// Balances such windows. Returns the number of moves in each; a migration takes `migrate_ns` for each chunk.
fn moves_in_windows(
    mut balancer: Balancer,
    windows: u64,
    cost_us: impl Fn(u64, u64) -> u64,
    bytes: u64,
    migrate_ns: u64,
) -> Vec<usize> {
    let mut ranks: Vec<u32> = (0..16).map(|key| key / 8).collect();
    let decide = |number| {
        let decision = balancer.decide(&window(&ranks, |key| cost_us(number, key), bytes));
        decision.moves.iter().for_each(|one| ranks[one.chunk.key as usize] = one.to.0);
        let count = decision.moves.len();
        if count > 0 {
            balancer.moved(migrate_ns * count as u64);
        }
        count
    };
    (0..windows).map(decide).collect()
}

/// The cost of a chunk where halves swap too irregularly to be followed, us.
pub(super) fn irregular_us(number: u64, key: u64) -> u64 {
    let swapped = [0, 1, 1, 0, 1, 0, 0, 0, 1, 1, 0, 1, 1, 1, 0, 0][number as usize % 16];
    if key / 8 == swapped { 4_000 } else { 1_000 }
}

#[test]
fn halves_that_swap_too_irregularly_to_be_followed_are_scattered_once() {
    let moves = moves_in_windows(balancer("refine"), 40, irregular_us, 1_000, 10_000);
    assert!(moves[16..].iter().all(|&moves| moves == 0), "they need no following: {moves:?}");
}

/// Leaves all chunks where they are.
pub(super) struct Stays {
    pub(super) scatters: bool,
    pub(super) edges: EdgeUse,
}

impl Strategy for Stays {
    fn name(&self) -> &'static str {
        "stays"
    }
    fn assign(&self, snapshot: &Snapshot) -> Assignment {
        Assignment::current(snapshot)
    }
    fn terms(&self) -> Terms {
        Terms { scatters: self.scatters, edges: self.edges, ..Terms::default() }
    }
}

#[test]
fn chunks_are_scattered_only_where_the_strategy_allows_it() {
    let moved = |scatters| {
        let balancer = Balancer::new(Arc::new(Stays { scatters, edges: EdgeUse::Never }));
        moves_in_windows(balancer, 40, irregular_us, 1_000, 10_000).iter().sum::<usize>()
    };
    assert_eq!(moved(false), 0);
    assert!(moved(true) > 0);
}

#[test]
fn a_dear_plan_waits_until_the_imbalance_has_lasted_for_what_it_costs() {
    // The first imbalance has one chunk moved, which tells the price. The second one calls for more.
    let cost_us = |number: u64, key: u64| match (number, key) {
        (5..25, 0..8) => 6_000,
        (25.., 8..16) => 8_000,
        _ => 4_000,
    };
    let second = |migrate_ns| {
        let moves = moves_in_windows(balancer("refine"), 120, cost_us, 20_000_000, migrate_ns);
        assert_eq!(moves[..25].iter().sum::<usize>(), 1, "{moves:?}");
        moves[25..].iter().position(|&moves| moves > 0)
    };
    let (cheap, dear) = (second(100_000), second(200_000_000));
    assert!(cheap.is_some_and(|cheap| cheap < 5), "{cheap:?}");
    assert!(dear.is_some_and(|dear| dear > 10), "{dear:?}");
}

#[test]
fn a_window_in_which_nothing_is_handled_changes_no_mind() {
    let mut balancer = balancer("refine");
    let ranks: Vec<u32> = (0..16).map(|key| key / 8).collect();
    (0..5).for_each(|_| drop(balancer.decide(&window(&ranks, |_| 1_000, 0))));
    let mut idle = window(&ranks, |_| 0, 0);
    idle.chunks.iter_mut().for_each(|chunk| chunk.handled = 0);
    assert!(balancer.decide(&idle).moves.is_empty());
    let after: Vec<usize> =
        (0..5).map(|_| balancer.decide(&window(&ranks, |_| 1_000, 0)).moves.len()).collect();
    assert_eq!(after, [0; 5]);
    assert!(balancer.chooser.error() < 0.5, "{}", balancer.chooser.error());
}

#[test]
fn windows_that_were_not_decided_are_learned_from_with_the_next_that_is() {
    let ranks: Vec<u32> = (0..16).map(|key| key / 8).collect();
    let one = window(&ranks, |_| 100, 4096);
    let mut balancer = balancer("refine");
    let report = PhaseReport { undecided: vec![one.clone(), one.clone()], ..one.clone() };
    assert_eq!(report.size(), 3 * (16 + 2));
    let decision = balancer.decide(&report);
    assert_eq!((decision.phase, balancer.history.len()), (0, 3), "one decision, by three windows");
    // Each has 1600 us of work, on two whole vCPUs.
    assert_eq!(decision.ideal_ns, 3 * 800_000);
    assert_eq!(balancer.decide(&one).ideal_ns, 800_000);
}

/// Runs windows made from their number and the present ranks. Returns the ranks afterwards and the moves per window.
fn ranks_after(
    balancer: &mut Balancer,
    ranks: &mut [u32],
    windows: std::ops::Range<u64>,
    window: impl Fn(u64, &[u32]) -> PhaseReport,
) -> Vec<usize> {
    let mut moves = Vec::new();
    for number in windows {
        let decision = balancer.decide(&window(number, ranks));
        decision.moves.iter().for_each(|one| ranks[one.chunk.key as usize] = one.to.0);
        moves.push(decision.moves.len());
    }
    moves
}

/// Moves chunks with low keys from one of two ranks to the other as long as that helps.
struct LowestFirst;

impl Strategy for LowestFirst {
    fn name(&self) -> &'static str {
        "lowest"
    }
    fn assign(&self, snapshot: &Snapshot) -> Assignment {
        let longest = |plan: &Assignment| max_ns(snapshot, plan, self.terms().background);
        let mut plan = Assignment::current(snapshot);
        for at in 0..plan.ranks.len() {
            let mut next = plan.clone();
            next.ranks[at] = Rank(1 - next.ranks[at].0);
            if longest(&next) < longest(&plan) {
                plan = next;
            }
        }
        plan
    }
}

#[test]
fn the_chunks_that_left_for_a_while_are_those_that_come_back() {
    let mut balancer = Balancer::new(Arc::new(LowestFirst));
    let home: Vec<u32> = (0..16).map(|key| key / 8).collect();
    let mut ranks = home.clone();
    // Each rank in turn has half of its vCPU for a while.
    let visited = |number: u64, ranks: &[u32]| {
        let mut report = window(ranks, |_| 2_000, 4096);
        let is_visited = number < 160 && number % 40 >= 5;
        if let Some(sample) = report.ranks[number as usize / 40 % 2].sample.as_mut().filter(|_| is_visited) {
            (sample.cpu_ns, sample.wait_ns) = (20_000_000, 20_000_000);
        }
        report
    };
    ranks_after(&mut balancer, &mut ranks, 0..160, visited);
    let away = |ranks: &[u32]| ranks.iter().zip(&home).filter(|(here, home)| here != home).count();
    assert!(away(&ranks) > 1, "{ranks:?}");
    ranks_after(&mut balancer, &mut ranks, 160..250, visited);
    assert_eq!(ranks, home);
}

#[test]
fn chunks_do_not_leave_home_where_their_messages_would_cost_more_than_is_gained() {
    let moves_with = |handled: u32| {
        let mut ranks: Vec<u32> = (0..16).map(|key| key / 8).collect();
        let uneven = |_, ranks: &[u32]| {
            let mut report = window(ranks, |key| if key < 8 { 2_000 } else { 1_000 }, 4096);
            report.chunks.iter_mut().for_each(|chunk| chunk.handled = handled);
            report
        };
        ranks_after(&mut balancer("refine"), &mut ranks, 0..30, uneven).iter().sum::<usize>()
    };
    assert!(moves_with(10) > 0);
    assert_eq!(moves_with(30_000), 0, "6 ms a chunk, on both ranks together");
}

#[test]
fn scattered_chunks_that_are_slower_go_home_for_good() {
    let mut balancer = Balancer::new(Arc::new(Stays { scatters: true, edges: EdgeUse::Never }));
    let home: Vec<u32> = (0..16).map(|key| key / 8).collect();
    let mut ranks = home.clone();
    let slower_away = |number: u64, ranks: &[u32]| {
        let mut report = window(ranks, |key| irregular_us(number, key), 1_000);
        let is_home = report.chunks.iter().zip(&home).all(|(chunk, &home)| chunk.load.rank.0 == home);
        report.chunks.iter_mut().for_each(|chunk| chunk.handled = if is_home { 10 } else { 5 });
        report
    };
    let moves = ranks_after(&mut balancer, &mut ranks, 0..60, slower_away);
    assert_eq!(ranks, home, "{moves:?}");
    let made: Vec<usize> = moves.into_iter().filter(|&moves| moves > 0).collect();
    assert!(made.len() == 2 && made[0] == made[1], "there and back: {made:?}");
}

/// Chunks on each of two ranks after each phase, where rank 1 is inactive in these.
fn chunks_where_rank_1_leaves(spec: &str, windows: bool, bytes: u64, inactive: &[bool]) -> Vec<Vec<u32>> {
    let (mut balancer, mut ranks) = (balancer(spec), (0..16).map(|key| key / 8).collect::<Vec<u32>>());
    let decide = |&is_inactive: &bool| {
        let inactive = is_inactive.then_some(Rank(1)).into_iter().collect();
        let of_window = window(&ranks, |_| 2_500, bytes);
        let decision = balancer.decide(&PhaseReport { window: windows, inactive, ..of_window });
        decision.moves.iter().for_each(|one| ranks[one.chunk.key as usize] = one.to.0);
        balancer.moved(10_000);
        decision.chunks_per_rank
    };
    inactive.iter().map(decide).collect()
}

#[test]
fn a_rank_that_becomes_inactive_is_emptied_at_once_and_filled_again_when_it_is_back() {
    for spec in ["refine", "greedy", "hierarchical", "comm"] {
        for windows in [false, true] {
            // The price of the larger size is not known: it does not count where chunks must leave a rank.
            for bytes in [1_000, 100_000_000] {
                let phases =
                    chunks_where_rank_1_leaves(spec, windows, bytes, &[false, true, true, false, false]);
                let [before, left, empty, .., back] = &phases[..] else { unreachable!("there are five") };
                assert_eq!(
                    [&before[..], left, empty],
                    [[8, 8], [16, 0], [16, 0]],
                    "{spec} {windows} {bytes}"
                );
                assert!(bytes > 1_000 || back[..] == [8, 8], "{spec} {windows}: {phases:?}");
            }
        }
    }
}

#[test]
fn a_rank_that_joins_is_taken_to_get_what_the_others_of_its_host_get() {
    let mut balancer = balancer("refine");
    // For a second each rank that has chunks gets 40 % of its vCPU; rank 2 is on another host, alone.
    let sample = |share: f64| {
        let got_ns = (share * 1e9) as u64;
        let wait_ns = 1_000_000_000 - got_ns;
        RankSample { wall_ns: 1_000_000_000, cpu_ns: got_ns, wait_ns, speed: 1.0, ..RankSample::default() }
    };
    let mut shares = |inactive: &[u32]| {
        let of_rank =
            |rank: u32, sample| RankReport { place: RankPlace { host: rank / 2, workers: 1 }, sample };
        let joins = (!inactive.contains(&1)).then(RankSample::default);
        let ranks = vec![of_rank(0, Some(sample(0.4))), of_rank(1, joins), of_rank(2, Some(sample(1.0)))];
        let chunks = (0..8).map(|key| chunk(key, 2 * (key as u32 % 2), 100_000, true)).collect();
        let report =
            PhaseReport { inactive: inactive.iter().copied().map(Rank).collect(), ..phase(ranks, chunks) };
        let decision = balancer.decide(&report);
        decision.share.iter().map(|share| (share * 100.0).round() / 100.0).collect::<Vec<f64>>()
    };
    assert_eq!([shares(&[1]), shares(&[1])].map(|shares| (shares[0], shares[2])), [(0.4, 1.0); 2]);
    assert_eq!(shares(&[]), [0.4, 0.4, 1.0]);
}

#[test]
fn a_program_cannot_move_a_chunk_to_an_inactive_rank() {
    let mut report = phase(vec![rank(1.0); 2], (0..4).map(|key| chunk(key, 0, 100_000, true)).collect());
    report.chunks[1].wish = Some(Rank(1));
    assert_eq!(balancer("program").decide(&report).chunks_per_rank, [3, 1]);
    report.inactive = vec![Rank(1)];
    assert_eq!(balancer("program").decide(&report).chunks_per_rank, [4, 0]);
}
