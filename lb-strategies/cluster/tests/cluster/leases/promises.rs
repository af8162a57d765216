//! Checks the promises of a pool under `leases`, with random speeds, delays and late workers, over thousands of seeds.
//!
//! A failure names its seed. `Trial::new(seed)` repeats the run.

use lb_strategies::POOLS;
use lb_strategies::Rank;
use lb_strategies::pool::{Nanos, Pool, SECOND};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use virtual_cluster::{Links, PoolRun, RunPool, Traces, Worker};

/// Links that delay every message by a random time.
struct Jitter {
    rng: Pcg64Mcg,
    longest: Nanos,
    service: Nanos,
}

impl Links for Jitter {
    fn delay(&mut self, _: Rank, _: Rank, _: Nanos) -> Nanos {
        self.rng.random_range(0..=self.longest)
    }

    fn service(&mut self, _: Rank) -> Nanos {
        self.service
    }
}

/// A pool, a cluster and an order of events, all from one seed.
struct Trial {
    seed: u64,
    pool: Pool,
    spec: String,
    longest_delay: Nanos,
    service: Nanos,
    late: Vec<(Worker, Nanos)>,
}

impl Trial {
    fn new(seed: u64, policy: &str) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let ranks = [1, 2, 3, 8][rng.random_range(0..4)];
        let workers: Vec<u32> = (0..ranks).map(|_| rng.random_range(1..=3)).collect();
        let all = u64::from(workers.iter().sum::<u32>());
        let iterations = [0, 1, all - 1, all, all + 1, 20 * all, 200 * all][rng.random_range(0..7)];
        let chunk = [0.001, 0.02, 0.1][rng.random_range(0..3)];
        let spec = format!("{policy},chunk={chunk},lease-min={},lease-max=2", 5.0 * chunk);
        let longest_delay = [0, 1_000, SECOND / 1000, SECOND / 5][rng.random_range(0..4)];
        let mut late = Vec::new();
        for (rank, &workers) in (0..).map(Rank).zip(&workers) {
            for number in 0..workers {
                // The first worker of all is never late, because it notices when the pool is stopped.
                if (rank.0, number) != (0, 0) && rng.random_range(0..5) == 0 {
                    late.push((Worker { rank, number }, rng.random_range(0..2 * SECOND)));
                }
            }
        }
        let service = [0, 0, 20_000][rng.random_range(0..3)];
        Self { seed, pool: Pool::new(iterations, workers), spec, longest_delay, service, late }
    }

    fn run(&self) -> PoolRun {
        let seed = self.seed;
        // A third of the time a worker stops; else its speed is between 10 and 10 000.
        let mut vcpus = Traces::new(SECOND / 10, move |worker: Worker, t: f64| {
            let place =
                (u64::from(worker.rank.0) << 40) + (u64::from(worker.number) << 32) + (t * 10.0) as u64;
            let mut rng = Pcg64Mcg::seed_from_u64(seed.rotate_left(7) ^ place);
            if rng.random_range(0..3) == 0 { 0.0 } else { 10f64.powf(rng.random_range(1.0..4.0)) }
        });
        let rng = Pcg64Mcg::seed_from_u64(!seed);
        let links = Jitter { rng, longest: self.longest_delay, service: self.service };
        let policy = POOLS.parse(&self.spec).expect("the specification is right");
        let mut run = RunPool::new(&self.pool, &*policy, &mut vcpus).links(links).until(100 * SECOND);
        for &(worker, at) in &self.late {
            run = run.late(worker, at);
        }
        run.run()
    }
}

impl std::fmt::Display for Trial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { seed, pool, spec, longest_delay, .. } = self;
        write!(f, "seed {seed}: {spec} on {:?} with {} iterations, ", pool.workers, pool.iterations)?;
        write!(f, "delays to {longest_delay} ns")
    }
}

#[test]
fn every_index_is_run_once_and_everybody_goes_home() {
    for seed in 0..10_000 {
        let trial = Trial::new(seed, "leases");
        let run = trial.run();
        assert!(run.is_complete(trial.pool.iterations), "{trial}: {run:?}");
        assert!(run.messages < 1000 + 20 * trial.pool.iterations, "{trial}: {} messages", run.messages);
    }
}

#[test]
fn every_index_is_run_once_under_auto_too() {
    for seed in 0..2_000 {
        let trial = Trial::new(seed, "auto");
        let run = trial.run();
        assert!(run.is_complete(trial.pool.iterations), "{trial}: {run:?}");
    }
}

#[test]
fn the_same_seed_has_the_same_history() {
    for seed in 0..200 {
        let trial = Trial::new(seed, "leases");
        assert_eq!(trial.run(), trial.run(), "{trial}");
    }
}

#[test]
fn with_copies_every_index_is_committed_once() {
    let mut discarded = 0;
    for seed in 0..5_000 {
        let trial = Trial::new(seed, "leases,replicate=on");
        let run = trial.run();
        assert!(run.is_complete(trial.pool.iterations), "{trial}: {run:?}");
        discarded += run.discarded;
    }
    assert!(discarded > 100, "only {discarded} iterations were copied in vain");
}

/// The time at which worker 0 is released, s, if worker 1 of rank `of` stops for an hour in the last tasks of 1 s each.
fn over_despite_a_standstill(of: u32, workers: Vec<u32>, spec: &str) -> f64 {
    let mut vcpus = Traces::new(SECOND / 10, move |worker: Worker, t: f64| {
        if worker.rank.0 == of && worker.number == 1 && (9.5..3600.0).contains(&t) { 0.0 } else { 1.0 }
    });
    let iterations = 10 * u64::from(workers.iter().sum::<u32>());
    let policy = POOLS.parse(spec).expect("the specification is right");
    let run = RunPool::new(&Pool::new(iterations, workers), &*policy, &mut vcpus).links(SECOND / 1000).run();
    assert!(run.is_complete(iterations));
    run.workers[0].released.expect("it is complete") as f64 / 1e9
}

#[test]
fn a_copy_ends_the_wait_for_a_stopped_worker() {
    for (of, workers) in [(0, vec![3]), (1, vec![1, 2]), (0, vec![2, 2]), (2, vec![1, 1, 2])] {
        let without = over_despite_a_standstill(of, workers.clone(), "leases");
        let with = over_despite_a_standstill(of, workers.clone(), "leases,replicate=on");
        assert!(without > 3600.0, "{without}");
        assert!(with < 20.0, "{workers:?}: {with}");
    }
}
