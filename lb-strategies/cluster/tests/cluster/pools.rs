//! Checks the promises of every pool policy in the table.
//!
//! Speeds change at random and are sometimes 0, links have random delays, and workers come late. Everything is a
//! function of a seed. A failure names the seed and the policy.

use lb_strategies::Rank;
use lb_strategies::pool::{Nanos, Pool, PoolStrategy, SECOND};
use lb_strategies::{Listing, POOLS};
use virtual_cluster::{Links, PoolRun, RunPool, Traces, Worker};

/// Far more time than any run needs: a run that has not ended by then hangs.
const END: Nanos = 20_000 * SECOND;

/// Every policy with its defaults, then with other settings that change its decisions.
fn all() -> Vec<&'static str> {
    let variants = [
        "static,chunk=2",
        "guided,least=5",
        "factoring,x=3,least=2",
        "master-worker,batch=1",
        "master-worker,batch=10,chunk=0.01",
        "caa,task=1",
        "caa,task=7,repeat=on",
        "caa,repeat=on",
        // Always shares; always a master.
        "caa,task=3,k1=1,k2=0,k3=0,k4=0",
        "caa,u2=0,u3=0,u4=0",
    ];
    POOLS.iter().map(|entry| entry.name).chain(variants).collect()
}

fn parse(spec: &str) -> Box<dyn PoolStrategy> {
    POOLS.parse(spec).expect("valid specification")
}

/// A number from 0 to 1 that depends on all arguments.
fn draw(seed: u64, what: u64, of: u64, at: u64) -> f64 {
    let mut bits = seed;
    for number in [what, of, at] {
        bits = (bits ^ number).wrapping_add(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
    }
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// Iterations per second. The speed changes every half second, and is 0 a fifth of the time.
fn speed(seed: u64, worker: Worker, seconds: f64) -> f64 {
    let of = u64::from(worker.rank.0) << 32 | u64::from(worker.number);
    let drawn = draw(seed, 1, of, (2.0 * seconds) as u64);
    if drawn < 0.2 { 0.0 } else { 20.0 + 1000.0 * (drawn - 0.2).powi(3) }
}

/// Random delays of messages up to 50 ms, and up to 1 ms of service.
struct Random {
    seed: u64,
    messages: u64,
}

impl Links for Random {
    fn delay(&mut self, from: Rank, to: Rank, _now: Nanos) -> Nanos {
        self.messages += 1;
        (draw(self.seed, u64::from(from.0), u64::from(to.0), self.messages) * 0.05 * SECOND as f64) as Nanos
    }

    fn service(&mut self, _rank: Rank) -> Nanos {
        self.messages += 1;
        (draw(self.seed, 3, 3, self.messages) * 0.001 * SECOND as f64) as Nanos
    }
}

/// This number of ranks with 1 to 4 workers each.
fn pool(seed: u64, ranks: u64, iterations: impl Fn(u64) -> u64) -> Pool {
    let workers: Vec<u32> = (0..ranks).map(|rank| 1 + (4.0 * draw(seed, 4, rank, 0)) as u32).collect();
    let all: u32 = workers.iter().sum();
    Pool::new(iterations(u64::from(all)), workers)
}

fn late_run(spec: &str, seed: u64, pool: &Pool) -> PoolRun {
    let policy = parse(spec);
    let mut vcpus = Traces::new(SECOND / 2, |worker, seconds| speed(seed, worker, seconds));
    let mut run = RunPool::new(pool, &*policy, &mut vcpus).links(Random { seed, messages: 0 }).until(END);
    for rank in (0..pool.ranks()).map(Rank) {
        for number in 0..pool.workers_of(rank) {
            let drawn = draw(seed, 5, u64::from(rank.0), u64::from(number));
            if drawn < 0.3 {
                run = run.late(Worker { rank, number }, (drawn * 50.0 * SECOND as f64) as Nanos);
            }
        }
    }
    run.run()
}

#[test]
fn every_policy_runs_every_iteration_once_whatever_the_speeds_delays_and_arrivals() {
    let sizes: [fn(u64) -> u64; 7] =
        [|_| 0, |_| 1, |all| all - 1, |all| all, |all| all + 1, |_| 300, |_| 7001];
    for spec in all() {
        for seed in 0..12 {
            let ranks = [1, 2, 3, 8][seed as usize % 4];
            for size in sizes {
                let pool = pool(seed, ranks, size);
                let run = late_run(spec, seed, &pool);
                assert!(run.is_complete(pool.iterations), "{spec}, seed {seed}, {pool:?}: {run:#?}");
            }
        }
    }
}

#[test]
fn the_same_seed_is_the_same_history() {
    for spec in all() {
        let pool = pool(9, 3, |_| 500);
        let run = late_run(spec, 9, &pool);
        assert_eq!(run, late_run(spec, 9, &pool), "{spec}");
        assert_ne!(run.digest, late_run(spec, 10, &pool).digest, "{spec}: the digest says nothing");
    }
}

#[test]
fn an_absent_worker_gets_no_later_share() {
    for spec in ["caa,u2=100,u3=100,u4=100", "caa", "caa,u2=0,u3=0,u4=0"] {
        let policy = parse(spec);
        let mut vcpus = Traces::constant(|_| 100.0);
        let run = RunPool::new(&Pool::new(3000, vec![1, 2]), &*policy, &mut vcpus);
        let run = run.late(Worker { rank: Rank(1), number: 1 }, 1000 * SECOND).run();
        assert!(run.is_complete(3000), "{spec}");
        assert!(run.makespan() < 25 * SECOND, "{spec}: {}", run.makespan());
        assert!(run.said.is_some_and(|said| said.contains("left for 2 workers")), "{spec}");
    }
}

#[test]
fn a_master_executes_nothing_unless_it_is_alone() {
    let run = |workers| {
        let mut vcpus = Traces::constant(|_| 100.0);
        RunPool::new(&Pool::new(1000, workers), &*parse("master-worker,batch=1"), &mut vcpus).run()
    };
    let (alone, two) = (run(vec![1]), run(vec![1, 1]));
    assert_eq!((alone.workers[0].done, alone.messages), (1000, 0));
    assert_eq!((two.workers[0].done, two.workers[1].done), (0, 1000));
    // One answer per request, one last request, and the dismissal.
    assert_eq!(two.messages, 2 * 1000 + 2);
}

#[test]
fn guided_and_factoring_ask_rarely_and_even_out_a_slow_worker() {
    let run = |spec| {
        let mut vcpus = Traces::constant(|worker| if worker.rank == Rank(3) { 500.0 } else { 1000.0 });
        RunPool::new(&Pool::new(70_000, vec![1; 4]), &*parse(spec), &mut vcpus).links(SECOND / 1000).run()
    };
    let best = 70_000.0 / 3500.0 * SECOND as f64;
    let fixed = run("static");
    assert!(fixed.makespan() as f64 > 1.7 * best);
    // `guided` gives the slow worker nearly a quarter of all before any speed is known. A master does not work.
    for (spec, limit) in [("guided", 1.76), ("factoring", 1.01), ("master-worker", 1.44)] {
        let run = run(spec);
        assert!((run.makespan() as f64) < limit * best, "{spec}: {} of {best}", run.makespan());
        assert!(run.messages < 2000, "{spec}: {} messages", run.messages);
    }
}

#[test]
fn the_repetition_of_phases_evens_out_what_shares_lose() {
    let run = |spec| {
        // Fast workers become slow when the first shares are done.
        let mut vcpus = Traces::new(SECOND, |worker, seconds| match (worker.number, seconds < 60.0) {
            (0, true) | (1, false) => 20.0,
            _ => 5.0,
        });
        RunPool::new(&Pool::new(2400, vec![2]), &*parse(spec), &mut vcpus).run()
    };
    let shares = "caa,task=1,u2=100,u3=100,u4=100";
    let (once, again) = (run(shares), run(&format!("{shares},repeat=on")));
    // Both together do 25 per second at any time: 96 s at best.
    assert!(once.makespan() > 200 * SECOND, "{}", once.makespan());
    assert!(again.makespan() < 98 * SECOND, "{}", again.makespan());
    let said = again.said.expect("it decides");
    assert!(said.starts_with("DD (899 left for 2 workers"), "{said}");
    // The second decision sees the change. The sum of all rounds would show it only after ten rounds.
    assert!(said.matches("left").count() < 5, "{said}");
}

#[test]
fn what_cannot_be_is_said_in_a_line() {
    for spec in
        ["master-worker,batch=0", "master-worker,batch=many", "caa,k1=2", "caa,repeat=yes", "factoring,x=0.5"]
    {
        let Err(error) = POOLS.parse(spec) else { panic!("{spec} is taken") };
        assert!(error.to_string().contains("is not"), "{error}");
    }
    assert!(POOLS.help().contains("batch=auto"));
}
