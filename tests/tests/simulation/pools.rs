//! The production pool by seed: every policy, with cancels, iterations that panic, ranks that stop or are slow.
//!
//! The oracle: every iteration counts once, a cancelled pool is what it says it is, a panic is told with its name, and
//! every run ends.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use caribou::pools::{Cancel, PoolOutcome, PoolReport};
use caribou::random::stream;
use caribou::{Error, Pool};
use caribou_tests::simulated;
use lb_strategies::POOLS;
use rand::RngExt;

/// The fate of a pool, drawn by the seed besides what the simulation draws itself.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Runs,
    /// The worker that executes this iteration cancels.
    CancelledBy(u64),
    /// Cancelled from outside when so many iterations have been executed.
    CancelledAt(u64),
    PanicsIn(u64),
}

/// Iterations executed, the sum of their numbers, and of the squares.
type Sums = Box<[u64]>;

fn add(sums: &mut Sums, range: Range<u64>) {
    for iteration in range {
        sums[0] += 1;
        sums[1] += iteration;
        sums[2] += iteration * iteration;
    }
}

/// Runs the pool of a seed.
fn simulate(seed: u64) -> (u64, Fate, Result<PoolOutcome<Sums>, Error>) {
    let mut rng = stream(seed, 77);
    let lb = POOLS.iter().nth(rng.random_range(0..POOLS.iter().count())).expect("one of them").name;
    let lb = if lb == "leases" && rng.random() { "leases,replicate=on" } else { lb };
    let chunk_s = 10_f64.powf(rng.random_range(-4.0..-0.5));
    let iterations = rng.random_range(0..2000);
    let fate = match rng.random_range(0..8) {
        0 => Fate::CancelledBy(rng.random_range(0..iterations.max(1))),
        1 => Fate::CancelledAt(rng.random_range(0..iterations.max(1))),
        2 => Fate::PanicsIn(rng.random_range(0..iterations.max(1))),
        _ => Fate::Runs,
    };
    let config = simulated(seed)
        .lb(&format!("{lb},chunk={chunk_s}"))
        .expect("it is in the table")
        .ranks(rng.random_range(1..=4))
        .workers(rng.random_range(1..=3));
    let cancel = &Cancel::default();
    let mut pool = Pool::new(&config, iterations);
    if let Fate::CancelledBy(_) = fate {
        pool = pool.cancelled_by(cancel);
    }
    if let Fate::CancelledAt(limit) = fate {
        pool = pool.cancelled_by(cancel).on_progress(Duration::from_millis(5), move |progress| {
            if progress.done >= limit {
                cancel.cancel();
            }
        });
    }
    let body = |sums: &mut Sums, range: Range<u64>| {
        match fate {
            Fate::CancelledBy(iteration) if range.contains(&iteration) => cancel.cancel(),
            Fate::PanicsIn(iteration) => assert!(!range.contains(&iteration), "a planted panic"),
            _ => {}
        }
        add(sums, range);
    };
    let outcome = pool.run(|| Sums::from([0; 3]), body);
    (iterations, fate, outcome)
}

fn check(seed: u64) {
    let (iterations, fate, outcome) = simulate(seed);
    let mut serial = Sums::from([0; 3]);
    add(&mut serial, 0..iterations);
    let outcome = match (fate, outcome) {
        (Fate::PanicsIn(_), Err(error)) if iterations > 0 => {
            assert!(error.to_string().contains("a planted panic"), "{error}");
            return;
        }
        (_, outcome) => outcome.unwrap_or_else(|error| panic!("{error}")),
    };
    let PoolReport { cancelled, iterations: executed, workers, .. } = outcome.report;
    assert!(!matches!(fate, Fate::PanicsIn(_)) || iterations == 0, "the panic was swallowed");
    assert_eq!(outcome.result[0], executed);
    assert_eq!(workers.iter().map(|worker| worker.iterations).sum::<u64>(), executed);
    if cancelled {
        assert!(matches!(fate, Fate::CancelledBy(_) | Fate::CancelledAt(_)) && executed < iterations);
    } else {
        assert_eq!(outcome.result, serial);
    }
}

#[test]
fn every_seed_ends_with_every_iteration_counted_once() {
    for seed in super::seeds(300) {
        let checked = std::panic::catch_unwind(|| check(seed));
        assert!(checked.is_ok());
    }
}

#[test]
fn a_seed_is_a_run() {
    for seed in 0..20 {
        let [one, other] =
            [simulate(seed).2, simulate(seed).2].map(|outcome| outcome.map(|pool| pool.report));
        assert_eq!(one, other, "seed {seed}");
    }
}

/// The times that the body executes an iteration beyond the first, over all iterations and some seeds.
fn executed_again(lb: &str) -> u64 {
    let again = |seed| {
        let config = simulated(seed).lb(lb).expect("it is in the table").ranks(3).workers(2);
        let executed = AtomicU64::new(0);
        let body = |count: &mut u64, range: Range<u64>| {
            executed.fetch_add(range.end - range.start, Ordering::Relaxed);
            *count += range.end - range.start;
        };
        let outcome = Pool::new(&config, 500).run(|| 0, body).unwrap_or_else(|error| panic!("{lb}: {error}"));
        assert_eq!(outcome.result, 500, "{lb}, seed {seed}");
        executed.into_inner() - 500
    };
    (0..50).map(again).sum()
}

#[test]
fn only_replication_that_was_asked_for_executes_an_iteration_again() {
    for entry in POOLS.iter() {
        assert_eq!(executed_again(entry.name), 0, "{}", entry.name);
        let replicates = entry.parameters.iter().any(|parameter| parameter.name == "replicate");
        assert_eq!(replicates, ["leases", "auto"].contains(&entry.name), "the page names those that can");
        if replicates {
            let lb = format!("{},replicate=on,chunk=0.001", entry.name);
            assert!(executed_again(&lb) > 0, "{lb}");
        }
    }
}
