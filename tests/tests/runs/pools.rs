//! Pools, as programs see them: every iteration counts once, whichever worker executes it, and what goes wrong is said.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use caribou::pools::{Accumulator, Cancel, Collected};
use caribou::random::stream;
use caribou::{Config, Error, Pool, pool};
use caribou_tests::counter::COUNTER;
use caribou_tests::faulty::{AFAR, DROPS, ECHO};
use lb_strategies::POOLS;
use lb_strategies::Rank;
use lb_strategies::pool::{Input, Machine, Output, PoolRank, PoolStrategy};
use rand::RngExt;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

const ITERATIONS: u64 = 5_000;

/// The result of the iterations of a test: commutative, and different for every set of iterations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Sums {
    count: u64,
    drawn: u64,
}

impl Accumulator for Sums {
    fn merge(&mut self, other: Sums) {
        self.count += other.count;
        self.drawn = self.drawn.wrapping_add(other.drawn);
    }
}

fn body(sums: &mut Sums, range: std::ops::Range<u64>) {
    for iteration in range {
        sums.count += 1;
        sums.drawn = sums.drawn.wrapping_add(stream(5, iteration).random());
    }
}

fn serial() -> Sums {
    let mut sums = Sums::default();
    body(&mut sums, 0..ITERATIONS);
    sums
}

fn policies() -> impl Iterator<Item = &'static str> {
    POOLS.iter().map(|entry| entry.name)
}

fn config(lb: &str, ranks: u32, workers: u32) -> Config {
    Config::default().ranks(ranks).workers(workers).lb(lb).expect("it is in the table")
}

#[test]
fn every_policy_gives_the_serial_result_on_any_ranks_and_workers() {
    for lb in policies() {
        for (ranks, workers) in [(1, 1), (1, 3), (2, 1), (3, 2)] {
            for wire in [false, true] {
                // Short ranges, so that there is something to hand out.
                let config = config(&format!("{lb},chunk=0.00001"), ranks, workers).wire_always(wire);
                let outcome = pool(&config, ITERATIONS, Sums::default, body).unwrap();
                assert_eq!(outcome.result, serial(), "{lb} {ranks} x {workers}");
                let report = outcome.report;
                assert_eq!((report.iterations, report.cancelled), (ITERATIONS, false));
                assert_eq!(report.workers.len() as u32, ranks * workers);
                let done: u64 = report.workers.iter().map(|worker| worker.iterations).sum();
                assert_eq!(done, ITERATIONS);
            }
        }
    }
}

#[test]
fn a_simulated_pool_gives_the_serial_result_for_every_seed() {
    for lb in policies() {
        let mut digests = Vec::new();
        for seed in [1, 2, 1] {
            let config = Config::default().lb(&format!("{lb},chunk=0.0001")).unwrap().simulate(seed);
            let outcome = pool(&config, ITERATIONS, Sums::default, body).unwrap();
            assert_eq!(outcome.result, serial(), "{lb} {seed}");
            assert_eq!(outcome.report.workers.len(), 8, "four ranks of two");
            digests.push(outcome.report);
        }
        assert!(digests[0] == digests[2] && digests[0] != digests[1], "{lb}: the seed makes the run");
    }
    let config = Config::default().simulate(3);
    let error = pool(&config, 10, || 0, |_: &mut u64, _| panic!("simulated")).unwrap_err();
    assert!(error.to_string().contains("simulated"), "{error}");
}

#[test]
fn a_pool_of_nothing_ends() {
    for lb in policies() {
        for iterations in [0, 1, 2] {
            let outcome =
                pool(&config(lb, 2, 2), iterations, || 0, |count: &mut u64, _| *count += 1).unwrap();
            assert_eq!(outcome.report.iterations, iterations, "{lb}");
            assert!(outcome.result <= iterations);
        }
    }
}

#[test]
fn an_iteration_that_panics_ends_the_run_with_its_name() {
    for lb in policies() {
        for ranks in [1, 2] {
            let outcome = pool(
                &config(lb, ranks, 2),
                100,
                || 0,
                |_: &mut u64, range| {
                    assert!(!range.contains(&60), "sixty is too much");
                },
            );
            let error = outcome.unwrap_err();
            assert!(matches!(error, Error::Panicked { .. }), "{lb}: {error}");
            let line = error.to_string();
            assert!(line.contains("executing iterations") && line.contains("sixty is too much"), "{line}");
        }
    }
}

#[test]
fn what_is_accumulated_may_panic_too() {
    #[derive(Serialize, Deserialize)]
    struct Unmergeable;
    impl Accumulator for Unmergeable {
        fn merge(&mut self, _: Unmergeable) {
            panic!("will not");
        }
    }
    let error =
        pool(&config("static", 1, 2), 10, || Unmergeable, |_, _| {}).err().map(|error| error.to_string());
    assert!(error.is_some_and(|line| line.contains("will not") && !line.contains("executing")));
    let error = pool(&config("static", 2, 1), 10, || -> u64 { panic!("not even that") }, |_, _| {});
    assert!(error.is_err_and(|error| error.to_string().contains("not even that")));
}

#[test]
fn a_cancelled_pool_keeps_what_it_has() {
    for lb in policies() {
        let cancel = Cancel::default();
        let config = config(&format!("{lb},chunk=0.0001"), 2, 2);
        let begun = AtomicU64::new(0);
        let outcome = Pool::new(&config, 1 << 40)
            .cancelled_by(&cancel)
            .run(Sums::default, |sums, range| {
                // Not before all workers that work have begun.
                if begun.fetch_add(1, Ordering::Relaxed) > 20 {
                    cancel.cancel();
                }
                body(sums, range);
            })
            .unwrap();
        assert!(outcome.report.cancelled && outcome.report.iterations > 0, "{lb}");
        assert_eq!(outcome.result.count, outcome.report.iterations, "{lb}");
    }
}

#[test]
fn progress_grows_to_the_end() {
    let told = Mutex::new(Vec::new());
    let config = config("static,chunk=0.001", 2, 1);
    Pool::new(&config, 300)
        .on_progress(Duration::from_millis(1), |progress| told.lock().unwrap().push(progress.done))
        .run(
            || 0,
            |_: &mut u64, range| {
                range.for_each(|_| std::thread::sleep(Duration::from_micros(200)));
            },
        )
        .unwrap();
    let told = told.into_inner().unwrap();
    let grows = told.windows(2).all(|pair| pair[0] < pair[1]);
    assert!(told.len() > 3 && grows && *told.last().unwrap() == 300, "{told:?}");
}

#[test]
fn nobody_hears_of_the_same_progress_twice() {
    for seed in 0..50 {
        let (told, config) = (Mutex::new(Vec::new()), config("static,chunk=0.001", 2, 1).simulate(seed));
        Pool::new(&config, 300)
            .on_progress(Duration::from_millis(1), |progress| told.lock().unwrap().push(progress.done))
            .run(|| 0, |_: &mut u64, _| {})
            .unwrap();
        let told = told.into_inner().unwrap();
        let grows = told.windows(2).all(|pair| pair[0] < pair[1]);
        assert!(grows && told.last() == Some(&300), "seed {seed}: {told:?}");
    }
}

#[test]
fn a_strategy_for_arrays_is_refused_with_those_for_pools() {
    let refused = pool(&config("refine", 1, 1), 1, || 0, |_: &mut u64, _| {}).unwrap_err();
    let line = refused.to_string();
    assert!(line.starts_with("CARIBOU_LB: `refine` balances arrays") && line.contains("static"), "{line}");
    let unknown = Config::default().lb("statics").unwrap_err().to_string();
    assert!(unknown.contains("did you mean \"static\"?") && unknown.contains("refine"), "{unknown}");
}

#[test]
fn a_result_that_does_not_survive_encoding_is_an_error() {
    #[derive(Serialize)]
    struct Loud(u64);
    impl<'de> Deserialize<'de> for Loud {
        fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Loud, D::Error> {
            Err(serde::de::Error::custom("cannot be read"))
        }
    }
    impl Accumulator for Loud {
        fn merge(&mut self, other: Loud) {
            self.0 += other.0;
        }
    }
    let outcome = pool(&config("static", 2, 1), 10, || Loud(0), |loud, range| loud.0 += range.count() as u64);
    let error = outcome.err().expect("the part of rank 1 cannot be read");
    assert!(
        matches!(&error, Error::Wire { rank: Rank(0), .. }) && error.to_string().contains("cannot be read")
    );
}

/// A policy that panics when a rank's machine is made, or when the pool begins.
struct Faulty {
    when_made: bool,
}

struct FaultyRank {
    begins: bool,
}

impl PoolStrategy for Faulty {
    fn name(&self) -> &'static str {
        "faulty"
    }

    fn rank(&self, _: &lb_strategies::pool::Pool, rank: Rank) -> Machine {
        assert!(!self.when_made || rank.0 == 0, "cannot be made");
        Machine::new(FaultyRank { begins: self.when_made })
    }
}

impl PoolRank for FaultyRank {
    type Message = ();

    fn step(&mut self, _: u64, input: Input<()>, _: &mut Vec<Output<()>>) {
        assert!(self.begins || !matches!(input, Input::Begin), "will not begin");
    }
}

#[test]
fn a_policy_that_panics_ends_the_run_on_all_ranks() {
    for (when_made, words) in [(true, "cannot be made"), (false, "will not begin")] {
        let config = Config::default().ranks(2).workers(1).pool_strategy(Faulty { when_made });
        let error = pool(&config, 10, || 0, |_: &mut u64, _| {}).unwrap_err().to_string();
        assert!(error.contains("calling the policy `faulty`") && error.contains(words), "{error}");
    }
}

fn has_messages_of_its_own(config: &Config) {
    let config =
        config.clone().register_pool_strategy(COUNTER).lb("counter").expect("it has a name of its own");
    let outcome = pool(&config, ITERATIONS, Sums::default, body).expect("it ends");
    assert_eq!(outcome.result, serial());
    assert!(outcome.report.messages > 0, "the other ranks ask");
    assert_eq!(
        outcome.report.decision.as_deref(),
        Some(&*format!("{} questions", outcome.report.messages / 2))
    );
}

#[test]
fn a_policy_that_writes_to_itself_or_to_nobody_is_named_by_threads_and_simulation() {
    for (policy, to) in [(AFAR, "rank 4000"), (ECHO, "itself")] {
        for ranks in [1, 2] {
            let config =
                Config::default().ranks(ranks).register_pool_strategy(policy).lb(policy.name).unwrap();
            for config in [config.clone(), config.simulate(3)] {
                let error = pool(&config, 10, || 0, |_: &mut u64, _| {}).expect_err("it is refused");
                let Error::PolicyFailed { rank, policy: named, fault } = &error else { panic!("{error}") };
                assert!(rank.0 < ranks && named == policy.name, "{error}");
                assert!(
                    fault.contains(&format!("to {to}, expected another rank from 0 to {}", ranks - 1)),
                    "{error}"
                );
            }
        }
    }
}

#[test]
fn a_policy_that_panics_when_it_is_dropped_ends_the_run_with_an_error() {
    for ranks in [1, 2] {
        let config = Config::default().ranks(ranks).register_pool_strategy(DROPS).lb("drops").unwrap();
        for config in [config.clone(), config.simulate(3)] {
            let error = pool(&config, 10, || 0, |_: &mut u64, _| {}).expect_err("it panics");
            assert!(error.to_string().ends_with("it panicked outside of a handler: it falls"), "{error}");
        }
    }
}

#[test]
fn a_policy_of_a_programs_own_has_messages_of_its_own() {
    for seed in 0..50 {
        has_messages_of_its_own(&Config::default().ranks(3).workers(2).simulate(seed));
    }
    for wire in [false, true] {
        // Neither rank runs everything before the other asks.
        let config = Config::default().ranks(2).workers(1).wire_always(wire);
        has_messages_of_its_own(&config);
    }
}

/// A policy whose ranks disagree on what a message is.
struct Babel;

impl PoolStrategy for Babel {
    fn name(&self) -> &'static str {
        "babel"
    }

    fn rank(&self, _: &lb_strategies::pool::Pool, rank: Rank) -> Machine {
        if rank.0 == 0 { Machine::new(Says(7_u64)) } else { Machine::new(Says("seven".to_owned())) }
    }
}

/// Says something to the next rank when the pool begins.
struct Says<M>(M);

impl<M: Clone + Send + Serialize + DeserializeOwned + 'static> PoolRank for Says<M> {
    type Message = M;

    fn step(&mut self, _: u64, input: Input<M>, out: &mut Vec<Output<M>>) {
        if let (Input::Begin, true) = (input, size_of::<M>() == size_of::<u64>()) {
            out.push(Output::Send { to: Rank(1), message: self.0.clone() });
        }
    }
}

#[test]
fn a_message_that_cannot_be_read_ends_the_run_with_the_name_of_the_policy() {
    let two = Config::default().ranks(2).workers(1).pool_strategy(Babel);
    for (config, but) in
        [(two.clone(), ", but `u64`"), (two.clone().wire_always(true), ""), (two.simulate(3), "")]
    {
        let error = pool(&config, 10, || 0, |_: &mut u64, _| {}).unwrap_err();
        let expected = "rank 1: a message from rank 0 to the policy `babel` cannot cross the wire: it is not a `alloc::string::String`";
        assert_eq!(error.to_string(), format!("{expected}{but}"));
        assert!(matches!(error, Error::Wire { rank: Rank(1), .. }), "{error:?}");
    }
}

#[test]
fn a_rank_that_fails_tells_the_others_before_its_own_workers_are_back() {
    let (failed, late) = (AtomicU64::new(0), AtomicU64::new(0));
    let config = config("static,chunk=0.001", 2, 2);
    let outcome = pool(
        &config,
        4000,
        || 0,
        |_: &mut u64, range| match range.start {
            0 => {
                std::thread::sleep(Duration::from_millis(50));
                failed.store(1, Ordering::SeqCst);
                panic!("worker 0.0 fails");
            }
            // Its neighbour is busy for long.
            1000..2000 => std::thread::sleep(Duration::from_millis(600)),
            // The other rank has much to do, in small steps.
            _ => {
                std::thread::sleep(Duration::from_millis(1) * range.count() as u32);
                late.fetch_add(failed.load(Ordering::SeqCst), Ordering::SeqCst);
            }
        },
    );
    assert!(outcome.unwrap_err().to_string().contains("worker 0.0 fails"));
    // In 600 ms the two workers would have been through some hundreds of steps.
    assert!(late.into_inner() < 100);
}

#[test]
fn what_runs_twice_counts_once() {
    let config = config("leases,replicate=on,chunk=0.001", 2, 2);
    let outcome = pool(&config, 60, Sums::default, |sums, range| {
        for iteration in range {
            std::thread::sleep(Duration::from_millis(if iteration % 16 == 3 { 40 } else { 1 }));
            body(sums, iteration..iteration + 1);
        }
    });
    let outcome = outcome.unwrap();
    assert_eq!((outcome.result.count, outcome.report.iterations), (60, 60));
    let done: u64 = outcome.report.workers.iter().map(|worker| worker.iterations).sum();
    assert_eq!(done, 60, "{:?}", outcome.report.workers);
}

#[test]
fn what_is_neutral_need_not_be_anything_special_but_neutral() {
    let made = AtomicU64::new(0);
    let init = || {
        made.fetch_add(1, Ordering::Relaxed);
        Collected(vec![7_u64])
    };
    let outcome = pool(&config("static", 2, 2), 100, init, |_, _| ()).unwrap();
    assert_eq!(made.into_inner(), 4, "one for each worker");
    assert_eq!(outcome.result.0, [7; 4]);
}

#[test]
fn a_pool_of_iterations_that_cost_nothing_stops_at_once_when_it_is_cancelled() {
    for lb in policies() {
        let cancel = Cancel::default();
        let config = config(lb, 1, 1);
        let pool = Pool::new(&config, 1 << 60).cancelled_by(&cancel);
        let outcome = pool.run(
            || 0,
            |count: &mut u64, range| {
                *count += range.end - range.start;
                cancel.cancel();
            },
        );
        let outcome = outcome.unwrap();
        assert!(outcome.report.cancelled && outcome.result == outcome.report.iterations, "{lb}");
        assert_eq!(outcome.report.workers.iter().map(|worker| worker.ranges).sum::<u64>(), 1, "{lb}");
    }
}
