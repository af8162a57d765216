//! Measures the cost of a policy for a pool of iterations of a microsecond, on a quiet machine.
//!
//! The limit is two threads that execute half of the iterations each, without a policy. Each policy executes the same
//! on one rank of two workers, and on two ranks of one, in turn with the limit. The ratio of the times is as noisy as
//! the machine. So each line also has two times that the runtime measured, as parts of all worker time: the time of
//! workers in the policy, and their time with nothing to execute.

#![expect(clippy::print_stderr, reason = "a benchmark reports to the person who started it")]

use std::cell::RefCell;
use std::hint::black_box;
use std::ops::Range;
use std::thread;

use caribou::Config;
use caribou::pools::PoolReport;
use caribou_benches::{Contender, in_turn, seconds};
use lb_strategies::POOLS;

const ROUNDS: usize = 9;
const WORKERS: u32 = 2;
/// About a second of two workers.
const ITERATIONS: u64 = 2_000_000;
/// Rounds of a loop that an iteration takes: about a microsecond.
const WORK: u64 = 800;

fn execute(sum: &mut u64, range: Range<u64>) {
    for iteration in range {
        let worked = (0..WORK).fold(iteration, |sum, turn| black_box(sum.wrapping_mul(turn | 1)));
        *sum = sum.wrapping_add(worked);
    }
}

/// Seconds of two threads that share the iterations equally.
fn limit() -> f64 {
    let vcpus = caribou::machine::vcpus();
    seconds(|| {
        thread::scope(|scope| {
            for (worker, vcpu) in (0..u64::from(WORKERS)).zip(vcpus) {
                scope.spawn(move || {
                    caribou::machine::pin_to(vcpu);
                    let half = ITERATIONS / u64::from(WORKERS);
                    let mut sum = 0;
                    execute(&mut sum, worker * half..(worker + 1) * half);
                    black_box(sum);
                });
            }
        });
    })
}

fn pool(lb: &str, ranks: u32) -> PoolReport {
    let config = Config::default().ranks(ranks).workers(WORKERS / ranks).lb(lb).expect("it is in the table");
    caribou::pool(&config, ITERATIONS, || 0, execute).expect("it ends").report
}

fn main() {
    if caribou::machine::vcpus().len() < WORKERS as usize {
        eprintln!("skipped: {WORKERS} vCPUs are needed");
        return;
    }
    let per_iteration_us = limit() * 1e6 * f64::from(WORKERS) / ITERATIONS as f64;
    eprintln!("{ITERATIONS} iterations of {per_iteration_us:.2} us; medians of {ROUNDS} rounds in turn");
    eprintln!("policy          ranks   of the limit   in the policy   idle");
    for entry in POOLS.iter() {
        for ranks in [1, 2] {
            let reports = RefCell::new(Vec::new());
            let contenders: [Contender<'_>; 2] = [
                Box::new(limit),
                Box::new(|| {
                    let report = pool(entry.name, ranks);
                    let elapsed_s = report.elapsed_ns as f64 * 1e-9;
                    reports.borrow_mut().push(report);
                    elapsed_s
                }),
            ];
            let [limit, pool] = in_turn(ROUNDS, contenders);
            let reports = reports.into_inner();
            let part = |time: &dyn Fn(&PoolReport) -> u64| {
                let parts = reports.iter().map(|report| {
                    100.0 * time(report) as f64 / (report.elapsed_ns * u64::from(WORKERS)) as f64
                });
                let mut parts: Vec<f64> = parts.collect();
                parts.sort_by(f64::total_cmp);
                parts[parts.len() / 2]
            };
            let in_policy = part(&|report| report.workers.iter().map(|worker| worker.policy_ns).sum());
            let idle = part(&PoolReport::idle_ns);
            eprintln!(
                "{:<16}{ranks:<8}{:<15.4}{in_policy:.4} %        {idle:.2} %",
                entry.name,
                pool.median / limit.median
            );
        }
    }
}
