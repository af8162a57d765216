//! The promises of every pool policy, checked over the whole table: a new entry is tested by being listed.
//!
//! Speeds change at random and are zero at times, links delay at random, workers come late and ranks die; all of it is a
//! function of a seed, which a failure names with the policy.

use lb_strategies::Rank;
use lb_strategies::cluster::{Links, PoolRun, RunPool, Traces, Worker};
use lb_strategies::pool::{Nanos, Pool, PoolStrategy, RangeSet, SECOND};
use lb_strategies::{Listing, POOLS};

/// Far more than any of the runs needs: what has not ended by then hangs.
const END: Nanos = 20_000 * SECOND;

/// Every policy with its defaults, then with the other settings that change its ways.
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

/// A number from 0 to 1 that depends on all of these.
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

/// Iterations per second: another speed every half second, none in a fifth of them.
fn speed(seed: u64, worker: Worker, seconds: f64) -> f64 {
    let of = u64::from(worker.rank.0) << 32 | u64::from(worker.number);
    let drawn = draw(seed, 1, of, (2.0 * seconds) as u64);
    if drawn < 0.2 { 0.0 } else { 20.0 + 1000.0 * (drawn - 0.2).powi(3) }
}

/// Delays up to 50 ms, another one for each message, and up to 1 ms of service.
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

/// A delay of 10 ms, and messages that queue, so that some of a lost rank are heard after its loss.
struct Steady;

impl Links for Steady {
    fn delay(&mut self, _from: Rank, _to: Rank, _now: Nanos) -> Nanos {
        SECOND / 100
    }

    fn service(&mut self, _rank: Rank) -> Nanos {
        SECOND / 200
    }
}

/// So many ranks with 1 to 4 workers each.
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

/// Kills ranks at parts of the time that the run takes without a death; all hear of it 10 ms later.
fn deadly_run(spec: &str, seed: u64, pool: &Pool, deaths: &[(Rank, f64)]) -> (PoolRun, Vec<(Rank, Nanos)>) {
    let policy = parse(spec);
    let run = |deaths: &[(Rank, Nanos)]| {
        let mut vcpus = Traces::new(SECOND / 2, |worker, seconds| speed(seed, worker, seconds));
        let run = RunPool::new(pool, &*policy, &mut vcpus).links(Steady).until(END);
        deaths.iter().fold(run, |run, &(rank, at)| run.death(rank, at)).run()
    };
    let alive = run(&[]).makespan();
    let deaths: Vec<_> = deaths.iter().map(|&(rank, part)| (rank, (alive as f64 * part) as Nanos)).collect();
    (run(&deaths), deaths)
}

#[test]
fn policies_that_survive_losses_leave_nothing_undone_and_do_nothing_twice() {
    let survivors = all().into_iter().filter(|spec| parse(spec).survives_loss());
    let mut checked = 0;
    for spec in survivors {
        for seed in 0..12 {
            let pool = pool(seed, 2 + seed % 3, |all| if seed % 2 == 0 { 2 * all } else { 900 });
            let last = Rank(pool.ranks() - 1);
            let mut deaths = vec![(last, draw(seed, 6, 0, 0))];
            if pool.ranks() > 2 {
                deaths.push((Rank(1), draw(seed, 6, 1, 0)));
            }
            let (run, deaths) = deadly_run(spec, seed, &pool, &deaths);
            let over = run.closed[0].unwrap_or_else(|| panic!("{spec}, seed {seed}: rank 0 hangs: {run:#?}"));
            // Who dies after the end dies with its results.
            if deaths.iter().any(|&(_, at)| at + SECOND / 100 >= over) {
                continue;
            }
            checked += 1;
            assert_eq!(run.executed, RangeSet::from(0..pool.iterations), "{spec}, seed {seed}");
            assert_eq!(run.repeated, 0, "{spec}, seed {seed}");
            for rank in (0..pool.ranks()).map(Rank) {
                let dead = deaths.iter().any(|&(of, _)| of == rank);
                assert!(dead || run.closed[rank.index()].is_some(), "{spec}, seed {seed}: {rank:?} hangs");
            }
        }
    }
    assert!(checked > 50, "few runs were still going on when a rank died: {checked}");
}

#[test]
fn with_the_last_other_worker_gone_the_master_executes_itself() {
    for spec in ["master-worker", "master-worker,batch=1", "caa,task=1,u2=0,u3=0,u4=0"] {
        let pool = Pool::new(200, vec![1, 1]);
        let (run, _) = deadly_run(spec, 3, &pool, &[(Rank(1), 0.8)]);
        assert_eq!((run.executed.len(), run.workers[0].done), (200, 200), "{spec}");
        assert!(run.closed[0].is_some(), "{spec}");
    }
}

#[test]
fn a_round_whose_only_worker_is_lost_does_not_wait_for_it() {
    // 2 tasks each; the fast rank 1 is through at 0.5 s, rank 0 has one left at 1 s, and the faster gets it.
    let policy = parse("caa,task=1,repeat=on");
    let mut vcpus = Traces::constant(|worker| if worker.rank == Rank(1) { 4.0 } else { 1.0 });
    let run = RunPool::new(&Pool::new(4, vec![1, 1]), &*policy, &mut vcpus).links(SECOND / 100);
    let run = run.death(Rank(1), SECOND * 11 / 10).until(END).run();
    assert!(run.said.as_ref().is_some_and(|said| said.starts_with("DD, one task each (1 left")), "{run:#?}");
    assert_eq!((run.executed.len(), run.repeated, run.workers[0].done), (4, 0, 4), "{run:#?}");
    assert!(run.closed[0].is_some());
}

#[test]
fn who_does_not_show_up_has_no_part_in_later_shares() {
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
    // An answer to each request, a last request, and the dismissal.
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
    // Guided gives the slow worker a quarter of all, or nearly so, before anything is known; a master is a worker less.
    for (spec, limit) in [("guided", 1.76), ("factoring", 1.01), ("master-worker", 1.44)] {
        let run = run(spec);
        assert!((run.makespan() as f64) < limit * best, "{spec}: {} of {best}", run.makespan());
        assert!(run.messages < 2000, "{spec}: {} messages", run.messages);
    }
}

#[test]
fn the_repetition_of_phases_evens_out_what_shares_lose() {
    let run = |spec| {
        // Fast workers become slow when the first shares are over.
        let mut vcpus = Traces::new(SECOND, |worker, seconds| match (worker.number, seconds < 60.0) {
            (0, true) | (1, false) => 20.0,
            _ => 5.0,
        });
        RunPool::new(&Pool::new(2400, vec![2]), &*parse(spec), &mut vcpus).run()
    };
    let shares = "caa,task=1,u2=100,u3=100,u4=100";
    let (once, again) = (run(shares), run(&format!("{shares},repeat=on")));
    // Both together do 25 a second, whichever is the faster: 96 s at best.
    assert!(once.makespan() > 200 * SECOND, "{}", once.makespan());
    assert!(again.makespan() < 98 * SECOND, "{}", again.makespan());
    let said = again.said.expect("it decides");
    assert!(said.starts_with("DD (899 left for 2 workers"), "{said}");
    // The second look sees the change; what all rounds together have shown would take ten to follow it.
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
