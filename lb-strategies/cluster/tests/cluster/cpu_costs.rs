//! Checks the CPU time that the runtime takes from the workers of simulated arrays, against sums by hand.

use std::time::Duration;

use lb_strategies::{ARRAYS, MoveCost, Period};
use virtual_cluster::{
    Array, ArrayRun, ArrayScenario, Bandwidths, CpuCosts, DecisionCost, Overheads, RunArray, Traces,
};

/// Two ranks of one worker and four chunks of 1 ms and 1000 bytes, with a sync every 5 of 20 iterations.
fn array() -> Array {
    Array { chunks: 8, iterations: 20, period: Period::Steps(5), state_bytes: 1000, workers: vec![1, 1] }
}

/// Runs an array without cost of moves but `overheads`, on links that take 1 us.
fn run(array: &Array, spec: &str, overheads: &Overheads) -> ArrayRun {
    let mut vcpus = Traces::constant(|_| 1000.0);
    let strategy = ARRAYS.parse(spec).expect("listed").into();
    let free = MoveCost { per_chunk_ns: 0, bytes_per_second: 0.0 };
    let run = RunArray::new(array, strategy, &mut vcpus).links(1000u64).move_cost(free).overheads(overheads);
    let run = run.keep_reports().run();
    assert!(run.is_complete(array), "{spec}");
    run
}

/// How much longer a run takes with these costs than without, ns.
fn extra(array: &Array, spec: &str, cpu: CpuCosts) -> u64 {
    let costs = Overheads { cpu, ..Overheads::default() };
    run(array, spec, &costs).makespan() - run(array, spec, &Overheads::default()).makespan()
}

#[test]
fn an_iteration_and_messages_take_cpu_time_that_is_load() {
    let array = Array { chunks: 2, iterations: 10, ..array() };
    let on = |ranks: usize, cpu| {
        let overheads = Overheads {
            bandwidths: Bandwidths { message_bytes: 300, ..Bandwidths::default() },
            cpu,
            ..Overheads::default()
        };
        let array = Array { workers: vec![1; ranks], ..array.clone() };
        let mut vcpus = Traces::constant(|_| 1000.0);
        let none = ARRAYS.parse("none").expect("listed").into();
        let run = RunArray::new(&array, none, &mut vcpus).overheads(&overheads).keep_reports();
        run.exchange(|chunk| vec![1 - chunk]).run()
    };
    let near =
        CpuCosts { iteration: 1000.0, local_message: 500.0, message_byte: 90.0, ..CpuCosts::default() };
    let one = on(1, near);
    // Both chunks execute ten iterations, and send a message after each but the last.
    assert_eq!(one.makespan(), 20_000_000 + 20 * 1000 + 18 * 500);
    let reported = one.syncs[0].report.as_ref().expect("kept");
    assert_eq!(reported.chunks[0].load.ticks, 5_000_000 + 5 * 1500);
    // Each rank sends nine messages and receives nine.
    assert_eq!(on(2, near).makespan(), 10_000_000 + 10 * 1000 + 18 * 300 * 90);
}

#[test]
fn messages_that_come_together_from_one_rank_are_one_packet() {
    let makespan = |chunks: u32, workers: Vec<u32>, beside: fn(u32) -> Vec<u32>| {
        let cpu = CpuCosts { packet: 700.0, ..CpuCosts::default() };
        let array = Array { chunks, iterations: 10, period: Period::Steps(10), workers, ..array() };
        let mut vcpus = Traces::constant(|_| 1000.0);
        let none = ARRAYS.parse("none").expect("listed").into();
        let overheads = Overheads { cpu, ..Overheads::default() };
        let run = RunArray::new(&array, none, &mut vcpus).overheads(&overheads);
        run.exchange(beside).run().makespan()
    };
    let pairs = |chunk| vec![(chunk + 2) % 4];
    // Two chunks take turns, so each message is a packet. The first iteration needs none.
    assert_eq!(makespan(4, vec![1, 1], pairs), 20_000_000 + 2 * 9 * 700);
    // Both messages come at once. A worker handles the packet, and begins the chunk of its first message 700 ns later.
    assert_eq!(makespan(4, vec![2, 2], pairs), 10_000_000 + 5 * 700);
    // Three ranks with a chunk each get the messages of the other two at once, as two packets.
    let all = |chunk| vec![(chunk + 1) % 3, (chunk + 2) % 3];
    assert_eq!(makespan(3, vec![1; 3], all), 10_000_000 + 9 * 2 * 700);
}

#[test]
fn reports_packets_and_predictions_occupy_workers_at_a_sync() {
    let cpu = CpuCosts {
        report: 700.0,
        report_chunk: 50.0,
        packet: 300.0,
        collect_chunk: 20.0,
        ..CpuCosts::default()
    };
    // Rank 1 reports, rank 0 gets the packet and collects, rank 1 gets the decision.
    assert_eq!(extra(&array(), "refine", cpu), 3 * (700 + 4 * 50 + 300 + 8 * 20 + 300));
    assert_eq!(extra(&array(), "refine", CpuCosts { pack_chunk: 1e6, ..CpuCosts::default() }), 0, "no moves");
}

#[test]
fn a_window_delays_the_chunks_of_each_rank() {
    // Nothing moves. A window takes a report from each rank, and from rank 0 a packet and the collection.
    let array = Array { period: Period::Every(Duration::from_millis(10)), iterations: 25, ..array() };
    let cpu = CpuCosts {
        report: 700.0,
        report_chunk: 50.0,
        packet: 300.0,
        collect_chunk: 20.0,
        ..CpuCosts::default()
    };
    let (extra, window) = (extra(&array, "refine", cpu), 700 + 4 * 50 + 300 + 8 * 20);
    assert_eq!(extra % window, 0, "{extra} ns");
    assert!((5..=10).contains(&(extra / window)), "{} windows in 100 ms", extra / window);
}

#[test]
fn packing_and_unpacking_occupy_both_workers_and_caches_are_cold_after_a_move() {
    // At each of three syncs all chunks move: a rank packs four and then unpacks four.
    let (pack, unpack) = (3000, 2000);
    let cpu = CpuCosts {
        pack_chunk: 2000.0,
        pack_byte: 1.0,
        unpack_chunk: 1500.0,
        unpack_byte: 0.5,
        ..CpuCosts::default()
    };
    assert_eq!(extra(&array(), "rotate", cpu), 3 * 4 * (pack + unpack));
    let cold = CpuCosts { reload_byte: 2.0, ..CpuCosts::default() };
    // The end of each iteration is rounded up to a ns.
    let reloads = extra(&array(), "rotate", cold);
    assert!((24_000..=24_012).contains(&reloads), "3 times 4 chunks of 2000 ns, not {reloads}");
    assert_eq!(extra(&array(), "refine", cold), 0);
}

#[test]
fn a_short_decision_occupies_a_worker_of_rank_0_and_a_long_one_does_not() {
    let takes = |fixed: f64, period| {
        let decision = DecisionCost::Linear { fixed, per_chunk: 10.0, per_rank: 100.0 };
        // Chunks differ, so that the strategy is asked; all are on rank 0.
        let array = Array { period, iterations: 40, ..array() };
        let overheads = Overheads { decision, ..Overheads::default() };
        run(&array, "rotate", &overheads)
    };
    let syncs = Period::Steps(5);
    let [free, short, long] = [-280.0, 4720.0, 2e6 - 280.0].map(|fixed| takes(fixed, syncs).makespan());
    assert_eq!((short - free, long - free), (7 * 5000, 7 * 2_000_000), "all wait at a sync");
    let windows = Period::Every(Duration::from_millis(30));
    let run = takes(2e6, windows);
    assert!(run.syncs.iter().any(|sync| sync.decision.took_ns > Some(1_999_999)), "a thread decides");
}

#[test]
fn four_ranks_on_two_vcpus_take_twice_as_long() {
    let array = Array { workers: vec![1; 4], ..array() };
    let vcpus = || Box::new(Traces::constant(|_| 1000.0)) as Box<dyn virtual_cluster::Vcpus>;
    let mut scenario = ArrayScenario::new("crowd", array, vcpus);
    scenario.exchange = false;
    scenario.overheads.bandwidths.ranks_per_host = 4;
    let none = || ARRAYS.parse("none").expect("listed").into();
    let own = scenario.run(none()).makespan();
    scenario.vcpus_per_host = Some(2);
    assert_eq!((own, scenario.run(none()).makespan()), (40_000_000, 80_000_000));
    assert_eq!(scenario.ideal_s().to_bits(), 0.08_f64.to_bits());
}

#[test]
fn a_worker_that_has_stopped_spinning_takes_a_while_to_wake_up() {
    // Chunk 0 takes 2 ms, chunk 1 on the other rank 1 ms, and each waits for the other: so rank 1 waits for 1 ms.
    let array = Array { chunks: 2, iterations: 10, ..array() };
    let makespan = |spin, wake| {
        let overheads = Overheads { spin, wake, ..Overheads::default() };
        let mut vcpus = Traces::constant(|_| 1000.0);
        let none = ARRAYS.parse("none").expect("listed").into();
        let run = RunArray::new(&array, none, &mut vcpus).overheads(&overheads);
        run.work(|chunk, _| if chunk == 0 { 2.0 } else { 1.0 })
            .exchange(|chunk| vec![1 - chunk])
            .run()
            .makespan()
    };
    assert_eq!(makespan(0, 0), 20_000_000);
    // Chunk 1 begins its iteration later, but still ends before chunk 0.
    assert_eq!(makespan(0, 300_000), 20_000_000);
    assert_eq!(makespan(1_000_000, 1_200_000), 20_000_000, "it spins for as long as it waits");
    let late = makespan(500_000, 1_200_000);
    assert!((21_000_000..24_000_000).contains(&late), "{late}");
}

#[test]
fn only_as_many_workers_wake_up_as_there_are_jobs() {
    // Rank 1 has two workers and one chunk, and a rank on the same vCPU keeps it busy. A second worker that woke up for
    // nothing would take the vCPU for as long.
    let array = Array { chunks: 2, iterations: 10, ..array() };
    let makespan = |workers: u32| {
        let array = Array { workers: vec![1, workers], ..array.clone() };
        let mut scenario = ArrayScenario::new("crowd", array, || Box::new(Traces::constant(|_| 1000.0)));
        scenario.sends_to = Some(std::sync::Arc::new(|chunk| vec![1 - chunk]));
        scenario.overheads.bandwidths.ranks_per_host = 2;
        scenario.overheads.wake = 300_000;
        scenario.network.rtt = 0;
        scenario.vcpus_per_host = Some(1);
        scenario.run(ARRAYS.parse("none").expect("listed").into()).makespan()
    };
    assert_eq!((makespan(1), makespan(2)), (22_700_000, 22_700_000));
}

#[test]
fn a_worker_needs_a_vcpu_to_wake_up() {
    let array = Array { chunks: 2, iterations: 10, ..array() };
    let makespan = |vcpus, wake| {
        let array = array.clone();
        let mut scenario = ArrayScenario::new("crowd", array, || Box::new(Traces::constant(|_| 1000.0)));
        scenario.sends_to = Some(std::sync::Arc::new(|chunk| vec![1 - chunk]));
        scenario.overheads.bandwidths.ranks_per_host = 2;
        scenario.overheads.wake = wake;
        scenario.network.rtt = 0;
        scenario.vcpus_per_host = Some(vcpus);
        scenario.run(ARRAYS.parse("none").expect("listed").into()).makespan()
    };
    assert_eq!((makespan(2, 0), makespan(1, 0)), (10_000_000, 20_000_000));
    // On one vCPU a rank sleeps while the other executes two iterations, in the first of which it answers.
    assert_eq!((makespan(2, 300_000), makespan(1, 300_000)), (10_000_000, 20_000_000 + 9 * 300_000));
}
