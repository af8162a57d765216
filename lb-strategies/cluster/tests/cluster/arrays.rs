//! Checks the promises of simulated arrays under every strategy, on clusters drawn by a seed, which a failure names.

use std::time::Duration;

use lb_strategies::balancer::{Balancer, Decision, MOVE_COST, PhaseReport};
use lb_strategies::pool::{Nanos, SECOND};
use lb_strategies::{ARRAYS, MoveCost, Period, Rank};
use virtual_cluster::{
    Array, ArrayRun, ArrayScenario, Bandwidths, Beside, ChunkCosts, DecisionCost, Erratic, Executed, Home,
    Neighbour, Noise, Overheads, PerWorker, RunArray, Series, Shared, SplitMix64, SyncRun, Traces, Vcpus,
    Worker, array_scenario, ideal_s,
};

/// Number of clusters on which each strategy is tried.
const CLUSTERS: u64 = 40;

/// The part of a random cluster that does not depend on the strategy.
struct Drawn {
    seed: u64,
    array: Array,
    /// The chunks are in a ring. Each sends to chunks up to this distance.
    reach: u32,
    move_cost: MoveCost,
}

fn reported(sync: &SyncRun) -> &PhaseReport {
    sync.report.as_ref().expect("reports are kept")
}

impl Drawn {
    fn new(seed: u64) -> Self {
        let mut rng = SplitMix64::new(seed);
        let mut below = |most: u64| rng.number() % most;
        let workers = (0..=below(5)).map(|_| 1 + below(3) as u32).collect();
        let (chunks, iterations, period) = (1 + below(40) as u32, 1 + below(40), below(8));
        let (reach, per_chunk_ns) = (below(3) as u32, below(3) * 1_000_000);
        let array = Array { chunks, iterations, period: Period::Steps(period), state_bytes: 4096, workers };
        Self { seed, array, reach, move_cost: MoveCost { per_chunk_ns, bytes_per_second: 1e9 } }
    }

    /// The same cluster with chunks that are balanced in windows.
    fn in_windows(seed: u64) -> Self {
        let mut drawn = Drawn::new(seed);
        drawn.array.period = match seed % 3 {
            0 => Period::Auto,
            _ => Period::Every(Duration::from_millis(1 + seed % 40)),
        };
        drawn
    }

    /// vCPUs with different clocks, beside neighbours that come and leave; some stop for a while.
    fn vcpus(&self) -> impl Vcpus + use<> {
        let seed = self.seed;
        let draw = move |what: u64, worker: Worker| {
            let of = what << 40 | u64::from(worker.rank.0) << 20 | u64::from(worker.number);
            SplitMix64::new(seed ^ of.wrapping_mul(0x9e37_79b9)).uniform()
        };
        let clocks = Traces::new(SECOND / 10, move |worker, seconds| {
            let drawn = draw(1 + (10.0 * seconds) as u64, worker);
            if drawn < 0.1 { 0.0 } else { 100.0 * (1.0 + draw(0, worker)) }
        });
        let shares = PerWorker::new(&self.array.workers, |worker| {
            let from_s = 0.3 * draw(1 << 20, worker);
            Series::constant(1.0).then(from_s, 0.2 + 0.7 * draw(2 << 20, worker)).then(from_s + 0.4, 1.0)
        });
        Shared::new(Box::new(clocks), shares)
    }

    fn sends_to(&self, chunk: u32) -> Vec<u32> {
        let chunks = self.array.chunks;
        (1..=self.reach)
            .flat_map(|far| [(chunk + far) % chunks, (chunk + chunks - far % chunks) % chunks])
            .collect()
    }

    fn run(&self, spec: &str) -> (ArrayRun, Vec<Executed>) {
        let (mut vcpus, mut history) = (self.vcpus(), Vec::new());
        let strategy = ARRAYS.parse(spec).expect("it is listed");
        let run = RunArray::new(&self.array, strategy.into(), &mut vcpus)
            .keep_reports()
            .links(Erratic::new(self.seed))
            .work(|chunk, iteration| SplitMix64::new(u64::from(chunk) << 32 | iteration).uniform())
            .exchange(|chunk| self.sends_to(chunk))
            .move_cost(self.move_cost)
            .until(1000 * SECOND)
            .watch(|executed| history.push(executed))
            .run();
        (run, history)
    }
}

/// Each chunk executes each iteration once and in order, in one place at a time, after the chunks that send to it. A
/// worker executes one iteration at a time.
fn check(drawn: &Drawn, run: &ArrayRun, history: &[Executed], whose: &str) {
    let array = &drawn.array;
    assert!(run.is_complete(array), "{whose}: {} executed of {array:?}", run.executed);
    let mut ends: Vec<Vec<Nanos>> = vec![Vec::new(); array.chunks as usize];
    for one in history {
        let before = &mut ends[one.chunk as usize];
        assert_eq!(before.len() as u64, one.iteration, "{whose}: {one:?}");
        assert!(before.last().is_none_or(|end| *end <= one.begun), "{whose}: {one:?} in two places");
        before.push(one.end);
    }
    for one in history.iter().filter(|one| one.iteration > 0) {
        let senders = (0..array.chunks).filter(|&chunk| drawn.sends_to(chunk).contains(&one.chunk));
        for sender in senders {
            let end = ends[sender as usize][one.iteration as usize - 1];
            assert!(end <= one.begun, "{whose}: {one:?} before it could hear from {sender}");
        }
    }
    for worker in array.all_workers() {
        let mut times: Vec<(Nanos, Nanos)> =
            history.iter().filter(|one| one.worker == worker).map(|one| (one.begun, one.end)).collect();
        times.sort_unstable();
        assert!(times.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{whose}: {worker} does two things");
    }
    match array.period {
        Period::Steps(period) => check_places(array, period, run, history, whose),
        _ => check_ways(array, run, history, whose),
    }
}

/// A chunk follows the decisions of windows one after another.
fn check_ways(array: &Array, run: &ArrayRun, history: &[Executed], whose: &str) {
    for chunk in 0..array.chunks {
        let moves = run.syncs.iter().flat_map(|sync| &sync.decision.moves);
        let mut moves = moves.filter(|one| one.chunk.key == u64::from(chunk));
        let ranks = array.workers.len() as u32;
        let first = (0..ranks).find(|rank| chunk < (rank + 1) * array.chunks / ranks);
        let mut rank = Rank(first.expect("blocks cover all chunks"));
        for one in history.iter().filter(|one| one.chunk == chunk) {
            while rank != one.worker.rank {
                let next = moves.next().unwrap_or_else(|| panic!("{whose}: {one:?} after {rank}"));
                assert_eq!(rank, next.from, "{whose}: {one:?}");
                rank = next.to;
            }
        }
    }
}

/// Between two syncs, a chunk is on the rank that the decisions give, from its first iteration to its last.
fn check_places(array: &Array, period: u64, run: &ArrayRun, history: &[Executed], whose: &str) {
    assert_eq!(run.syncs.len() as u64, array.syncs(), "{whose}");
    let mut ranks: Vec<Option<Rank>> = vec![None; array.chunks as usize];
    for phase in 0..=run.syncs.len() {
        let is_in = |one: &&Executed| one.iteration.checked_div(period).is_none_or(|at| at as usize == phase);
        for one in history.iter().filter(is_in) {
            let rank = ranks[one.chunk as usize].get_or_insert(one.worker.rank);
            assert_eq!(*rank, one.worker.rank, "{whose}: {one:?} in phase {phase}");
        }
        let Some(sync) = run.syncs.get(phase) else { break };
        assert_eq!(reported(sync).chunks.len(), array.chunks as usize, "{whose}");
        for one in &sync.decision.moves {
            let rank = &mut ranks[one.chunk.key as usize];
            assert_eq!(*rank, Some(one.from), "{whose}: {one:?}");
            *rank = Some(one.to);
        }
    }
}

#[test]
fn every_strategy_executes_each_iteration_of_each_chunk_once_wherever_it_is() {
    let mut moves = 0;
    for entry in ARRAYS.iter() {
        for drawn in (0..CLUSTERS).flat_map(|seed| [Drawn::new(seed), Drawn::in_windows(seed)]) {
            let (run, history) = drawn.run(entry.name);
            let Drawn { seed, array, .. } = &drawn;
            let whose = format!("{} on cluster {seed}, {}", entry.name, array.period);
            check(&drawn, &run, &history, &whose);
            moves += run.moves();
        }
    }
    assert!(moves > 1000, "{moves} moves try little");
}

#[test]
fn the_same_cluster_has_the_same_history_to_the_last_event() {
    for seed in 0..CLUSTERS {
        for drawn in [Drawn::new(seed), Drawn::in_windows(seed)] {
            assert_eq!(drawn.run("refine"), drawn.run("refine"), "cluster {seed}");
        }
    }
    assert_ne!(Drawn::new(3).run("refine").0.digest, Drawn::new(4).run("refine").0.digest);
}

#[test]
fn a_fresh_balancer_decides_the_same_from_the_reports() {
    for entry in ARRAYS.iter() {
        for seed in 0..CLUSTERS {
            let (run, _) = Drawn::new(seed).run(entry.name);
            let mut balancer = Balancer::new(ARRAYS.parse(entry.name).expect("it is listed").into());
            let again: Vec<Decision> = run.syncs.iter().map(|sync| balancer.decide(reported(sync))).collect();
            let first: Vec<&Decision> = run.syncs.iter().map(|sync| &sync.decision).collect();
            assert_eq!(again.iter().collect::<Vec<_>>(), first, "{} on cluster {seed}", entry.name);
        }
    }
}

/// Two ranks of one worker. 256 chunks of 1 ms in a grid of 16 columns send to neighbours. Of 200 iterations, every
/// 10th syncs.
fn demonstration() -> Array {
    Array {
        chunks: 256,
        iterations: 200,
        period: Period::Steps(10),
        state_bytes: 512 << 10,
        workers: vec![1, 1],
    }
}

fn grid(chunk: u32) -> Vec<u32> {
    let (column, row) = (chunk / 16, chunk % 16);
    let beside = [(1, 0), (15, 0), (0, 1), (0, 15)];
    beside.map(|(columns, rows)| (column + columns) % 16 * 16 + (row + rows) % 16).to_vec()
}

fn with(spec: &str, array: &Array, vcpus: &mut dyn Vcpus) -> ArrayRun {
    let strategy = ARRAYS.parse(spec).expect("it is listed").into();
    RunArray::new(array, strategy, vcpus).keep_reports().links(20_000u64).exchange(grid).run()
}

#[test]
fn beside_a_neighbour_refine_comes_near_the_bound_and_none_waits_for_the_slower_rank() {
    let array = demonstration();
    let make = || {
        let shares = Beside::Vcpu.shares(&[Neighbour::always(Rank(1))]);
        Shared::new(Box::new(Traces::constant(|_| 1000.0)), shares)
    };
    let [none, refine] =
        ["none", "refine"].map(|spec| with(spec, &array, &mut make()).makespan() as f64 / 1e9);
    // 128 chunks of 1 ms at half of the vCPU, 200 times.
    assert!((none / 51.2 - 1.0).abs() < 0.001, "{none}");
    // 256 chunks of 1 ms on one vCPU and a half.
    let workers: Vec<_> = array.all_workers().map(|worker| (worker, 0)).collect();
    let bound = ideal_s(&workers, &mut make(), 256.0 * 200.0);
    assert!((bound / 34.133 - 1.0).abs() < 0.001, "{bound}");
    // The first phase is as under `none`: a twentieth of the run, without its saving.
    let expected = bound * 0.95 + none * 0.05;
    assert!((refine / expected - 1.0).abs() < 0.01, "{refine}, not {expected}");
}

#[test]
fn a_slow_clock_is_seen_as_speed_and_a_neighbour_as_share() {
    let array = demonstration();
    let parts = || PerWorker::new(&array.workers, |worker| Series::constant([1.0, 0.5][worker.rank.index()]));
    let clocks = || Box::new(Traces::constant(|_| 1000.0));
    let mut slowed = Shared::slowed(clocks(), parts());
    let mut beside = Shared::new(clocks(), parts());
    let [slow, shared] = [&mut slowed, &mut beside].map(|vcpus| with("refine", &array, vcpus));
    assert_eq!(slow.makespan(), shared.makespan(), "both are half of a vCPU");
    let first = |run: &ArrayRun| {
        (reported(&run.syncs[0]).ranks[1].sample.expect("it has chunks"), run.syncs[0].decision.clone())
    };
    let ((slow, at_slow), (shared, at_shared)) = (first(&slow), first(&shared));
    assert_eq!((slow.wait_ns, slow.speed, at_slow.share[1], at_slow.capacity[1]), (0, 500.0, 1.0, 0.5));
    assert_eq!((shared.cpu_ns, shared.wait_ns), (1_280_000_000, 1_280_000_000));
    assert_eq!((shared.speed, at_shared.share[1], at_shared.capacity[1]), (1000.0, 0.5, 0.5));
    assert_eq!(at_slow.moves, at_shared.moves);
}

#[test]
fn a_clock_that_falls_counts_when_most_bursts_are_new() {
    let array = demonstration();
    let clock = |worker: Worker| {
        let quiet = Series::constant(1000.0);
        if worker.rank == Rank(1) { quiet.then(3.0, 500.0) } else { quiet }
    };
    let run = with("refine", &array, &mut PerWorker::new(&array.workers, clock));
    let speeds: Vec<f64> = run.syncs.iter().map(|sync| sync.decision.capacity[1]).take(6).collect();
    assert_eq!(
        speeds,
        [1.0, 1.0, 1.0, 1.0, 0.5, 0.5],
        "it falls in the third phase; the third sync after that knows"
    );
}

#[test]
fn moves_take_the_time_that_they_cost() {
    let array = Array {
        chunks: 4,
        iterations: 20,
        period: Period::Steps(10),
        state_bytes: 1 << 30,
        workers: vec![1, 1],
    };
    let run = |bytes_per_second| {
        let mut vcpus = Traces::constant(|worker| if worker.rank.0 == 0 { 100.0 } else { 1.0 });
        let strategy = ARRAYS.parse("rotate").expect("it is listed").into();
        let cost = MoveCost { per_chunk_ns: 7, bytes_per_second };
        RunArray::new(&array, strategy, &mut vcpus).move_cost(cost).run()
    };
    let (free, dear) = (run(0.0), run(f64::from(1 << 30)));
    assert_eq!(free.moves(), 4);
    assert_eq!(dear.makespan() - free.makespan(), 2 * SECOND, "two chunks of a second each leave each rank");
}

fn named(name: &str) -> ArrayScenario {
    array_scenario(name).expect("it is listed")
}

fn run_of(scenario: &ArrayScenario, spec: &str) -> ArrayRun {
    let run = scenario.run(ARRAYS.parse(spec).expect("it is listed").into());
    assert!(run.is_complete(&scenario.array), "{} under {spec}", scenario.name);
    run
}

fn seconds(run: &ArrayRun) -> f64 {
    run.makespan() as f64 / 1e9
}

#[test]
fn named_scenarios_take_what_arithmetic_says() {
    // One phase of 25 is as under `none`. The others take the time of the slowest rank, which has 171 chunks on a vCPU
    // in demo, 33 chunks instead of 32 in R6a, and 24 chunks on a slow vCPU in R6b. An iteration of R6 takes 0.1 s.
    let slow_s = 50.0 / 0.71;
    let demo_s = 3.64 / 128.0;
    for (name, ideal_s, none_s, refine_s) in [
        ("demo", 256.0 / 1.5 * demo_s, 256.0 * demo_s, 0.04 * 256.0 * demo_s + 0.96 * 171.0 * demo_s),
        ("R6a", 50.0 * 32.0 / 31.5, 100.0, 4.0 + 48.0 * 33.0 / 32.0),
        ("R6b", 50.0 * 32.0 / (28.0 + 4.0 * 0.71), slow_s, slow_s * (0.04 + 0.96 * 24.0 / 32.0)),
    ] {
        let scenario = named(name);
        let near = |ours: f64, expected: f64| (ours / expected - 1.0).abs() < 0.01;
        let ideal = scenario.ideal_s();
        let [none, refine] = ["none", "refine"].map(|spec| seconds(&run_of(&scenario, spec)));
        assert!(near(ideal, ideal_s), "{name}: ideal {ideal}, not {ideal_s}");
        assert!(near(none, none_s), "{name}: none {none}, not {none_s}");
        assert!(near(refine, refine_s), "{name}: refine {refine}, not {refine_s}");
    }
}

#[test]
fn as_in_figure_3_refinement_takes_a_few_syncs_after_the_neighbour_comes() {
    let scenario = named("R3");
    let [none, refine] = ["none", "refine"].map(|spec| run_of(&scenario, spec));
    let disturbed = |run: &ArrayRun| {
        let slow = run.iteration_times().into_iter().enumerate().filter(|(_, time)| *time > 150_000_000);
        slow.map(|(iteration, _)| iteration).collect::<Vec<_>>()
    };
    let (without, with) = (disturbed(&none), disturbed(&refine));
    // The neighbour slows all 200 iterations under `none`, and at most three phases of them otherwise.
    assert!((198..=202).contains(&without.len()), "{without:?}");
    assert!((1..=60).contains(&with.len()), "{with:?}");
    assert!(with.last().unwrap() - with[0] < 60, "{with:?}");
}

#[test]
fn refining_pays_also_where_the_hot_spot_is_fast_since_its_drift_is_predicted() {
    let saved = |name: &str, spec: &str| {
        let scenario = named(name);
        let scenario =
            ArrayScenario { array: Array { iterations: 200, ..scenario.array.clone() }, ..scenario };
        1.0 - seconds(&run_of(&scenario, spec)) / seconds(&run_of(&scenario, "none"))
    };
    let [still, slow, fast] = ["spot", "spot-0", "spot-5"].map(|name| saved(name, "refine"));
    assert!(still > slow && slow > 0.3 && fast > 0.1, "{still} {slow} {fast}");
    // Chunks that are spread over ranks stay balanced wherever the spot is.
    assert!(saved("spot-5", "greedy") > 0.2);
}

/// If halves swap, windows save about as much as the best strategy with the best period. Loads return, so `greedy`
/// spreads both halves over both ranks at its first sync.
#[test]
fn halves_that_swap_need_no_period() {
    for iterations in [1, 3, 10, 20, 40, 80, 200] {
        let run = |spec: &str, period| {
            let array =
                Array { chunks: 32, iterations: 2000, period, state_bytes: 64 << 10, workers: vec![1; 2] };
            let scenario = ArrayScenario {
                costs: ChunkCosts::Alternate { iterations },
                move_cost: MoveCost { bytes_per_second: 1.25e9, ..MOVE_COST },
                ..ArrayScenario::new("halves", array, || Box::new(Traces::constant(|_| 2666.67)))
            };
            scenario.run(ARRAYS.parse(spec).expect("listed").into()).makespan() as f64
        };
        let none = run("none", Period::Auto);
        let saved = 100.0 * (1.0 - run("refine", Period::Auto) / none);
        let best = 100.0 * (1.0 - run("greedy", Period::Steps(10)) / none);
        assert!(
            saved >= -1.0 && (iterations < 10 || saved >= best - 2.0),
            "{iterations}: {saved} of {best} %"
        );
    }
}

#[test]
fn chunks_begin_where_they_are_told_and_pinned_ones_stay() {
    // Rank 0 has no chunks, and rank 2 only pinned chunks.
    let home = |chunk: u32| Home { rank: Rank(if chunk < 8 { 1 } else { 2 }), migratable: chunk < 8 };
    let homes: Vec<Home> = (0..12).map(home).collect();
    for period in [Period::Steps(5), Period::Auto] {
        let array = Array { chunks: 12, iterations: 300, period, state_bytes: 0, workers: vec![1; 3] };
        let mut vcpus = Traces::constant(|_| 1000.0);
        let strategy = ARRAYS.parse("refine").expect("listed");
        let mut places = vec![std::collections::BTreeSet::new(); 12];
        let run = RunArray::new(&array, strategy.into(), &mut vcpus)
            .homes(&homes)
            .exchange(|chunk| vec![(chunk + 1) % 12, (chunk + 11) % 12])
            .watch(|executed| {
                places[executed.chunk as usize].insert(executed.worker.rank.0);
            })
            .run();
        assert!(run.is_complete(&array), "{period}");
        assert!(places[..8].iter().all(|ranks| ranks.contains(&1)), "{period}: {places:?}");
        assert!(places[8..].iter().all(|ranks| ranks.iter().eq(&[2])), "{period}: {places:?}");
        assert!(
            places[..8].iter().any(|ranks| ranks.contains(&0)),
            "{period}: nothing moves to the empty rank"
        );
        assert!(
            run.makespan() < 300 * 5_000_000,
            "{period}: {} ns, 8 ms an iteration at first",
            run.makespan()
        );
    }
}

/// Ranks of one worker and eight chunks of 1 ms, without messages between chunks, with a sync every 5 of 20 iterations.
fn on_ranks(ranks: u32) -> Array {
    let period = Period::Steps(5);
    Array { chunks: 8 * ranks, iterations: 20, period, state_bytes: 1000, workers: vec![1; ranks as usize] }
}

fn run_on(array: &Array, spec: &str, overheads: &Overheads) -> ArrayRun {
    let mut vcpus = Traces::constant(|_| 1000.0);
    let strategy = ARRAYS.parse(spec).expect("listed").into();
    let run = RunArray::new(array, strategy, &mut vcpus).links(1000u64).overheads(overheads).run();
    assert!(run.is_complete(array), "{spec} on {} ranks", array.workers.len());
    run
}

#[test]
fn a_sync_takes_two_packets_on_each_edge_of_the_tree_and_six_with_moves() {
    for ranks in [1, 2, 9, 10, 73, 74, 600] {
        let array = on_ranks(ranks);
        let (syncs, edges) = (array.syncs(), u64::from(ranks - 1));
        let quiet = run_on(&array, "refine", &Overheads::default());
        assert_eq!((quiet.moves(), quiet.messages), (0, syncs * 2 * edges), "{ranks} ranks");
        // Rank 0 hears from the lowest level, which then hears from rank 0.
        let levels = match ranks {
            1 => 0,
            2..10 => 1,
            10..74 => 2,
            74..586 => 3,
            _ => 4,
        };
        assert_eq!(quiet.makespan(), 20 * 8_000_000 + syncs * 2 * levels * 1000, "{ranks} ranks");
        let moving = run_on(&array, "rotate", &Overheads::default());
        let moves = if ranks > 1 { syncs * u64::from(array.chunks) } else { 0 };
        assert_eq!(
            (moving.moves(), moving.messages),
            (moves, syncs * 6 * edges * u64::from(ranks > 1) + moves)
        );
    }
}

#[test]
fn a_rank_has_as_many_events_however_many_ranks_there_are() {
    for period in [Period::Steps(5), Period::Every(Duration::from_millis(50))] {
        let of_rank = |ranks: u32| {
            let array = Array { period, ..on_ranks(ranks) };
            let run = run_on(&array, "rotate", &Overheads::default());
            assert!(run.moves() > u64::from(ranks), "{period}: {} moves", run.moves());
            run.events as f64 / f64::from(ranks)
        };
        let (few, many) = (of_rank(64), of_rank(2048));
        assert!(many < 1.05 * few, "{period}: {few} and {many} events a rank");
    }
}

#[test]
fn a_decision_takes_its_time_for_each_chunk_or_as_measured() {
    let array = on_ranks(10);
    let takes = |decision: DecisionCost| {
        run_on(&array, "rotate", &Overheads { decision, ..Overheads::default() }).makespan()
    };
    let free = takes(DecisionCost::default());
    assert_eq!(takes(DecisionCost::PerChunk(700)) - free, 3 * 80 * 700);
    let ticks = std::sync::atomic::AtomicU64::new(0);
    let clock = move || ticks.fetch_add(5_000, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(takes(DecisionCost::Measured(std::sync::Arc::new(clock))) - free, 3 * 5_000);
}

#[test]
fn a_message_costs_its_sender_and_its_receiver_cpu_time() {
    // Two chunks, each of which sends to the other: all but the first iteration receive, all but the last send.
    let array =
        Array { chunks: 2, iterations: 10, period: Period::Steps(0), state_bytes: 0, workers: vec![1; 2] };
    let run = |message_cpu| {
        let mut vcpus = Traces::constant(|_| 1000.0);
        let overheads = Overheads { message_cpu, ..Overheads::default() };
        let strategy = ARRAYS.parse("none").expect("listed").into();
        let run = RunArray::new(&array, strategy, &mut vcpus).overheads(&overheads);
        run.exchange(|chunk| vec![1 - chunk]).run().makespan()
    };
    assert_eq!(run(0), 10_000_000);
    // The end of each iteration is rounded up to a ns.
    assert!((18 * 1_000..18 * 1_000 + 10).contains(&(run(1_000) - run(0))), "{}", run(1_000));
}

#[test]
fn chunks_that_move_wait_for_the_wires_of_their_host() {
    let array = Array { state_bytes: 1_000_000, ..on_ranks(2) };
    let run = |bandwidths: Bandwidths| {
        run_on(&array, "rotate", &Overheads { bandwidths, ..Overheads::default() }).makespan() as f64 / 1e6
    };
    let free = run(Bandwidths::default());
    // Eight chunks of 1 ms leave each host, three times. Meanwhile all but the first are packed, in 0.255 ms each.
    let slow = run(Bandwidths { between_hosts: 1e9, ..Bandwidths::default() });
    let expected = 3.0 * (8.0 - 7.0 * 0.255);
    assert!((slow - free - expected).abs() < 0.01, "{} ms, not {expected}", slow - free);
    let near = run(Bandwidths { between_hosts: 1.0, within_host: 1e9, ranks_per_host: 2, message_bytes: 0 });
    assert!((near - slow).abs() < 1e-6, "the same rate within a host: {near} and {slow} ms");
}

#[test]
fn errors_of_measurements_make_chunks_move_that_should_stay() {
    let array = on_ranks(8);
    let moves = |relative_sd, seed| {
        let noise = Noise { relative_sd, seed };
        run_on(&array, "refine", &Overheads { noise, ..Overheads::default() }).moves()
    };
    assert_eq!((moves(0.0, 1), moves(0.0, 2)), (0, 0));
    assert!(moves(0.5, 1) > 0 && moves(0.5, 1) == moves(0.5, 1));
}

#[test]
fn a_neighbour_in_turns_takes_as_much_as_one_that_shares() {
    let scenario = named("demo");
    let sliced = ArrayScenario { slice: 4_000_000, ..scenario.clone() };
    assert_eq!(sliced.ideal_s().to_bits(), scenario.ideal_s().to_bits());
    for spec in ["none", "refine"] {
        let [shares, turns] = [&scenario, &sliced].map(|scenario| run_of(scenario, spec));
        assert!((seconds(&turns) / seconds(&shares) - 1.0).abs() < 0.03, "{spec}: {}", seconds(&turns));
        let share = turns.syncs.last().unwrap().decision.share[1];
        assert!((share - 0.5).abs() < 0.1, "{spec}: {share}");
        assert_ne!(turns.digest, shares.digest);
    }
}

#[test]
fn no_chunk_passes_a_barrier_before_the_others_and_it_takes_its_time() {
    let array =
        Array { chunks: 4, iterations: 5, period: Period::Steps(2), state_bytes: 0, workers: vec![1, 1] };
    let overheads = Overheads { barrier: Some(SECOND / 100), ..Overheads::default() };
    for strategy in ["none", "rotate"] {
        let mut begins = vec![Vec::new(); 5];
        let mut vcpus = Traces::constant(|worker| if worker.rank.0 == 0 { 10.0 } else { 20.0 });
        let run = RunArray::new(&array, ARRAYS.parse(strategy).unwrap().into(), &mut vcpus)
            .overheads(&overheads)
            .watch(|executed: Executed| begins[executed.iteration as usize].push(executed.begun))
            .run();
        assert!(run.is_complete(&array), "{strategy}");
        for (end, next) in run.iteration_ends.iter().zip(&begins[1..]) {
            assert!(next.iter().all(|begun| *begun >= end + SECOND / 100), "{strategy}");
        }
        if strategy == "none" {
            assert_eq!(
                run.makespan(),
                5 * SECOND / 5 + 4 * SECOND / 100,
                "two chunks on the slow rank, five times"
            );
        }
    }
}
