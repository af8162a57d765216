//! Tests how far `leases` ends after the ideal time, in scenarios and sweeps of the RUPER-LB paper, and with unequal
//! tasks.

use lb_strategies::POOLS;
use lb_strategies::Rank;
use lb_strategies::pool::{Nanos, Pool, SECOND};
use virtual_cluster::{PoolRun, RunPool, Traces, Worker};

/// The speed of a worker at a time in seconds.
type Speed<'s> = &'s dyn Fn(Worker, f64) -> f64;

/// A pool, its speeds, and the policy that runs it.
struct Scenario<'s> {
    name: String,
    iterations: u64,
    workers: Vec<u32>,
    speed: Speed<'s>,
    /// Time for which speeds are constant, ns.
    step: Nanos,
    rtt: Nanos,
    spec: &'s str,
    /// Length of a piece, s.
    chunk: f64,
}

impl<'s> Scenario<'s> {
    /// With pieces of 1 s instead of 0.1 s, which gives a tenth of the events and similar results.
    fn new(name: &str, iterations: u64, workers: Vec<u32>, speed: Speed<'s>) -> Self {
        let (step, rtt) = (5 * SECOND, SECOND / 100);
        Self { name: name.into(), iterations, workers, speed, step, rtt, spec: "leases,chunk=1", chunk: 1.0 }
    }

    /// With pieces of 0.1 s, the default.
    fn finely(self) -> Self {
        Self { spec: "leases", chunk: 0.1, ..self }
    }

    fn with_rtt(self, rtt: Nanos) -> Self {
        Self { name: format!("{} rtt {} ms", self.name, rtt as f64 / 1e6), rtt, ..self }
    }

    fn names(&self) -> Vec<Worker> {
        let ranks = (0..).map(Rank).zip(&self.workers);
        ranks.flat_map(|(rank, &workers)| (0..workers).map(move |number| Worker { rank, number })).collect()
    }

    /// The earliest time at which all could be done, s: `min {T : sum of speeds integrated up to T >= I}`.
    fn ideal(&self) -> f64 {
        let (names, step) = (self.names(), self.step as f64 / SECOND as f64);
        let (mut left, mut time) = (self.iterations as f64, 0.0);
        loop {
            let speed: f64 = names.iter().map(|&worker| (self.speed)(worker, time + step / 2.0)).sum();
            if speed * step >= left {
                return time + left / speed;
            }
            left -= speed * step;
            time += step;
        }
    }

    fn run(&self) -> PoolRun {
        let policy = POOLS.parse(self.spec).expect("the specification is right");
        let mut vcpus = Traces::new(self.step, self.speed);
        let pool = Pool::new(self.iterations, self.workers.clone());
        RunPool::new(&pool, &*policy, &mut vcpus).links(self.rtt / 2).run()
    }

    /// Runs the scenario. Returns the seconds beyond the ideal, which must be at most `0.001 T + 2 chunk + 4 RTT`.
    fn check(&self) -> f64 {
        let (ideal, run) = (self.ideal(), self.run());
        assert!(run.is_complete(self.iterations), "{}: {:?}", self.name, run.closed);
        let excess = run.makespan() as f64 / 1e9 - ideal;
        let limit = 0.001 * ideal + 2.0 * self.chunk + 4.0 * self.rtt as f64 / 1e9;
        assert!(excess <= limit, "{}: {excess} s above the ideal {ideal} s, more than {limit} s", self.name);
        excess
    }
}

fn linear(worker: Worker, _: f64) -> f64 {
    1000.0 + 150.0 * f64::from(worker.number)
}

/// Rank 1 falls to a twentieth of its speed.
fn collapse_of_rank_1(at: f64) -> impl Fn(Worker, f64) -> f64 {
    move |worker, t| if worker.rank.0 == 1 && t >= at { 50.0 } else { 1000.0 }
}

/// Rank 1 is slow every other 250 s: all its workers together, or half of them at a time.
fn waves(phase: f64, together: bool) -> impl Fn(Worker, f64) -> f64 {
    move |worker, t| {
        let half = if together { 0.0 } else { f64::from(worker.number % 2) };
        let odd = ((t + phase + 250.0 * half) / 250.0).floor() as u64 % 2 == 1;
        if worker.rank.0 == 0 || odd { 1000.0 } else { 300.0 }
    }
}

/// A neighbour whose load changes in 8 steps of 2400 s.
fn tide(worker: Worker, t: f64) -> f64 {
    const TIDE: [f64; 8] = [0.35, 0.55, 0.8, 0.95, 0.9, 0.7, 0.85, 0.6];
    let place = (2.0 * f64::from(worker.number) - 7.0) / 7.0;
    let duty = TIDE[((t + 1200.0) / 2400.0) as usize % 8] * 0.96 * (1.0 + 0.05 * place);
    2180.0 * if worker.rank.0 == 0 { 1.0 + 0.003 * place } else { 1.0 - 0.53 * duty.min(1.0) }
}

#[test]
fn on_one_rank_unequal_and_changing_workers_end_together() {
    let doubling = |worker: Worker, _: f64| 100.0 * f64::from(1u32 << worker.number);
    let falls =
        |to, at| move |worker: Worker, t: f64| if worker.number == 7 && t >= at { to } else { 1000.0 };
    let stops = |worker: Worker, t: f64| {
        if worker.number == 3 && (820.0..1720.0).contains(&t) { 0.0 } else { linear(worker, t) }
    };
    let (l3, l4) = (falls(100.0, 1500.0), falls(50.0, 2850.0));
    // Pieces last 1 s, but the last ones are shorter.
    assert!(Scenario::new("L1", 20_000_000, vec![8], &linear).check() < 0.1);
    assert!(Scenario::new("L2", 4_000_000, vec![4], &doubling).check() < 0.1);
    Scenario::new("L3", 30_000_000, vec![8], &l3).check();
    Scenario::new("L4", 24_000_000, vec![8], &l4).check();
    Scenario::new("L5", 20_000_000, vec![8], &stops).check();
    Scenario::new("L5", 20_000_000, vec![8], &stops).finely().check();
}

#[test]
fn a_collapse_of_a_worker_costs_a_piece_whenever_it_comes() {
    for at in (2400..3000).step_by(98) {
        let speed =
            |worker: Worker, t: f64| if worker.number == 7 && t >= f64::from(at) { 50.0 } else { 1000.0 };
        let excess = Scenario::new(&format!("S2 {at}"), 24_000_000, vec![8], &speed).finely().check();
        // Less than the time that the current piece takes at a twentieth of the speed.
        assert!(excess < 2.1, "{at}: {excess}");
    }
}

#[test]
fn a_collapse_of_a_rank_costs_a_piece_whenever_it_comes() {
    // Later collapses are in the sweep `S1` of `scenarios`.
    for at in (2000..2400).step_by(110) {
        let speed = collapse_of_rank_1(f64::from(at));
        Scenario::new(&format!("S1 {at}"), 48_000_000, vec![8, 8], &speed).finely().check();
    }
    let (late, mid) = (collapse_of_rank_1(2880.0), collapse_of_rank_1(2000.0));
    for rtt in [SECOND / 10_000, SECOND / 100, SECOND / 20, SECOND / 5] {
        Scenario::new("M3 late", 48_000_000, vec![8, 8], &late).with_rtt(rtt).finely().check();
        Scenario::new("M3 mid", 48_000_000, vec![8, 8], &mid).with_rtt(rtt).check();
    }
}

#[test]
fn waves_do_not_matter() {
    for phase in (0..480).step_by(96) {
        let (m4, m5) = (waves(f64::from(phase), false), waves(f64::from(phase), true));
        Scenario::new(&format!("S3 {phase}"), 48_000_000, vec![8, 8], &m4).check();
        Scenario::new(&format!("S4 {phase}"), 48_000_000, vec![8, 8], &m5).check();
    }
}

#[test]
fn a_tide_takes_few_messages() {
    for rtt in [SECOND / 10_000, SECOND / 20, SECOND / 5] {
        let scenario = Scenario::new("F7", 400_000_000, vec![8, 8], &tide).with_rtt(rtt);
        scenario.check();
        let messages = scenario.run().messages;
        assert!(messages < 400, "{messages}");
    }
}

/// A number in 0..1, pseudo-random.
fn uniform(seed: u64) -> f64 {
    let mut x = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// Lognormal costs in seconds; the standard deviation of the logarithm is 1.5.
fn lognormal(count: u64, mean: f64, seed: u64) -> Vec<f64> {
    let normal = |at: u64| {
        let (u, v) = (uniform(4 * at + 1 + seed), uniform(4 * at + 3 + seed));
        (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    };
    (0..count).map(|at| mean * (1.5 * normal(at) - 1.125).exp()).collect()
}

fn tasks(name: &str, spec: &str, costs: &[f64], workers: Vec<u32>) -> f64 {
    let mut sums = vec![0.0];
    sums.extend(costs.iter().scan(0.0, |sum, cost| {
        *sum += cost;
        Some(*sum)
    }));
    let all: u32 = workers.iter().sum();
    let (ideal, longest) = (sums[costs.len()] / f64::from(all), costs.iter().copied().fold(0.0, f64::max));
    let policy = POOLS.parse(spec).expect("the specification is right");
    let pool = Pool::new(costs.len() as u64, workers);
    let mut vcpus = Traces::constant(|_| 1.0);
    let run = RunPool::new(&pool, &*policy, &mut vcpus)
        .links(SECOND / 200)
        .work(|range| sums[range.end as usize] - sums[range.start as usize])
        .run();
    assert!(run.is_complete(costs.len() as u64));
    let excess = run.makespan() as f64 / 1e9 - ideal;
    let limit = 0.001 * ideal + 2.0 * longest.max(0.1) + 0.04;
    assert!(excess <= limit, "{name}: {excess} above {ideal}, more than {limit}");
    excess
}

#[test]
fn tasks_of_very_unequal_cost_end_within_the_longest() {
    for spec in ["leases", "leases,beta=0", "auto"] {
        for workers in [vec![8], vec![8; 4]] {
            let ranks = workers.len();
            tasks(&format!("L8 1 ms x{ranks}"), spec, &lognormal(1_000_000, 1e-3, 1), workers.clone());
            tasks(&format!("L8 1 s x{ranks}"), spec, &lognormal(20_000, 1.0, 2), workers.clone());
            tasks(&format!("L8 30 s x{ranks}"), spec, &lognormal(700, 30.0, 3), workers);
        }
    }
}

#[test]
fn a_short_pool_on_slow_links_loses_a_few_round_trips() {
    let speed = |worker: Worker, _: f64| if worker.rank.0 == 1 { 20_000.0 } else { 100_000.0 };
    for rtt in [SECOND / 10_000, SECOND / 100, SECOND / 20, SECOND / 5] {
        for iterations in [100_000, 1_000_000, 10_000_000] {
            let name = format!("short {iterations}");
            Scenario::new(&name, iterations, vec![4; 3], &speed).with_rtt(rtt).finely().check();
            let mut auto =
                Scenario::new(&format!("{name}, auto"), iterations, vec![4; 3], &speed).with_rtt(rtt);
            (auto.spec, auto.chunk) = ("auto", 0.5);
            auto.check();
        }
    }
}
