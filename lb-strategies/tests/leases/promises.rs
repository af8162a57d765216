//! What a pool is promised under any speeds, delays, late comers and deaths, over thousands of seeds.
//!
//! A failure names its seed; `Trial::new(seed)` is the whole story of a run.

use lb_strategies::POOLS;
use lb_strategies::Rank;
use lb_strategies::cluster::{Links, PoolRun, RunPool, Traces, Worker};
use lb_strategies::pool::{Nanos, Pool, RangeSet, SECOND};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Links that delay every message by another time.
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
    deaths: Vec<(Rank, Nanos)>,
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
                // The first of all is there: it shows when the pool is stopped.
                if (rank.0, number) != (0, 0) && rng.random_range(0..5) == 0 {
                    late.push((Worker { rank, number }, rng.random_range(0..2 * SECOND)));
                }
            }
        }
        let service = [0, 0, 20_000][rng.random_range(0..3)];
        Self {
            seed,
            pool: Pool::new(iterations, workers),
            spec,
            longest_delay,
            service,
            late,
            deaths: Vec::new(),
        }
    }

    fn with_deaths(mut self, within: Nanos) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(self.seed ^ 0xdead);
        for rank in 1..self.pool.ranks() {
            if rng.random_range(0..self.pool.ranks()) < 2 {
                self.deaths.push((Rank(rank), rng.random_range(0..=within)));
            }
        }
        self
    }

    fn run(&self) -> PoolRun {
        let seed = self.seed;
        // A third of the time a worker stands still; else its speed is anything from 10 to 10 000.
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
        for &(rank, at) in &self.deaths {
            run = run.death(rank, at);
        }
        run.run()
    }
}

impl std::fmt::Display for Trial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { seed, pool, spec, longest_delay, deaths, .. } = self;
        write!(f, "seed {seed}: {spec} on {:?} with {} iterations, ", pool.workers, pool.iterations)?;
        write!(f, "delays to {longest_delay} ns, deaths {deaths:?}")
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
        let trial = Trial::new(seed, "leases").with_deaths(SECOND);
        assert_eq!(trial.run(), trial.run(), "{trial}");
    }
}

/// What survivors are promised; whether a death came early enough for that to be something.
fn survivors_finish(trial: &Trial, run: &PoolRun) -> bool {
    assert_eq!(run.repeated, 0, "{trial}");
    let mut workers = run.workers.iter();
    for rank in 0..trial.pool.ranks() {
        let of_rank: Vec<_> = workers.by_ref().take(trial.pool.workers_of(Rank(rank)) as usize).collect();
        if !trial.deaths.iter().any(|death| death.0.0 == rank) {
            assert!(run.closed[rank as usize].is_some(), "{trial}: rank {rank} hangs");
            assert!(
                of_rank.iter().all(|worker| worker.released.is_some()),
                "{trial}: a worker of {rank} hangs"
            );
        }
    }
    // Who dies when all is done, before the root hears of it, takes results along: there is nobody left to do it again.
    // The worker that did the last of it is released two messages later; others may still be at copies.
    let released =
        run.workers.iter().filter_map(|worker| worker.released).min().expect("rank 0 does not die");
    let heard = |at: Nanos| at + 4 * trial.longest_delay + SECOND / 100;
    if trial.deaths.iter().all(|&(_, at)| heard(at) < released) {
        assert_eq!(run.executed, RangeSet::from(0..trial.pool.iterations), "{trial}");
        return !trial.deaths.is_empty();
    }
    false
}

#[test]
fn survivors_run_what_the_dead_had() {
    let mut early = 0;
    for seed in 0..5_000 {
        let trial = Trial::new(seed, "leases").with_deaths(SECOND / 2);
        early += u32::from(survivors_finish(&trial, &trial.run()));
    }
    assert!(early > 300, "only {early} deaths came before the end");
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

#[test]
fn with_copies_and_deaths_survivors_commit_everything() {
    for seed in 0..5_000 {
        let trial = Trial::new(seed, "leases,replicate=on").with_deaths(SECOND / 2);
        survivors_finish(&trial, &trial.run());
    }
}

/// When the pool is over if worker 1 of rank `of` stands still for an hour in the last tasks of a second each.
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
fn a_copy_saves_who_waits_for_a_worker_that_stands_still() {
    for (of, workers) in [(0, vec![3]), (1, vec![1, 2]), (0, vec![2, 2]), (2, vec![1, 1, 2])] {
        let without = over_despite_a_standstill(of, workers.clone(), "leases");
        let with = over_despite_a_standstill(of, workers.clone(), "leases,replicate=on");
        assert!(without > 3600.0, "{without}");
        assert!(with < 20.0, "{workers:?}: {with}");
    }
}

#[test]
fn without_the_root_all_the_others_close() {
    for seed in 0..500 {
        let mut trial = Trial::new(seed, "leases");
        trial.deaths = vec![(Rank(0), SECOND / 2)];
        let run = trial.run();
        assert_eq!(run.repeated, 0, "{trial}");
        assert!(run.closed[1..].iter().all(Option::is_some), "{trial}: {:?}", run.closed);
    }
}
