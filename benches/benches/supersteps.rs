//! Measures the cost of the layer of supersteps.
//!
//! Jacobi's method solves a dense system in supersteps on two ranks, under `equal` and under the default policy, and by
//! hand. By hand, two threads on the same vCPUs share x, and meet twice per step at a barrier at which they spin. Rows,
//! kernel and memory are the same, and so is the answer, which is asserted.

#![expect(clippy::print_stderr, reason = "a benchmark reports to the person who started it")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};
use std::thread;

use caribou::Config;
use caribou::supersteps::{Job, Parts, Supersteps, Then};
use caribou_benches::figures::figure;
use caribou_benches::{Contender, in_turn, seconds};

const ROUNDS: usize = 11;
/// Equations, and steps of a run.
const SIZES: [(usize, u64); 4] = [(500, 8000), (1000, 2000), (2000, 500), (4000, 200)];

/// A matrix with its size on the diagonal and 0.5 elsewhere. The solution is all ones.
struct Jacobi {
    size: usize,
    steps: u64,
}

fn coefficients(size: usize, row: usize) -> Vec<f64> {
    (0..size).map(|column| if column == row { size as f64 } else { 0.5 }).collect()
}

/// The new x of a row.
fn solve(row: usize, coefficients: &[f64], x: &[f64]) -> f64 {
    let size = x.len() as f64;
    let mut sums = [0.0; 8];
    for (a, x) in coefficients.chunks_exact(8).zip(x.chunks_exact(8)) {
        sums.iter_mut().zip(a.iter().zip(x)).for_each(|(sum, (a, x))| *sum += a * x);
    }
    let all = size + 0.5 * (size - 1.0);
    let rest = x.len() - x.len() % 8;
    let tail: f64 = coefficients[rest..].iter().zip(&x[rest..]).map(|(a, x)| a * x).sum();
    x[row] + (all - sums.iter().sum::<f64>() - tail) / coefficients[row]
}

impl Supersteps for Jacobi {
    type Unit = Vec<f64>;
    type Edge = ();
    type Part = Vec<f64>;
    type Shared = (u64, Vec<f64>);

    fn units(&self) -> u64 {
        self.size as u64
    }

    fn begin(&self) -> (u64, Vec<f64>) {
        (0, vec![0.0; self.size])
    }

    fn unit(&self, row: u64) -> Vec<f64> {
        coefficients(self.size, row as usize)
    }

    fn changes(&self) -> bool {
        false
    }

    fn compute(&self, job: Job<'_, Self>) -> Vec<f64> {
        let rows = (job.units.start as usize..).zip(job.data.iter());
        rows.map(|(row, coefficients)| solve(row, coefficients, &job.shared.1)).collect()
    }

    fn combine(&self, (steps, x): &mut (u64, Vec<f64>), parts: Parts<'_, Vec<f64>>) -> Then {
        for (rows, part) in parts {
            x[rows.start as usize..rows.end as usize].copy_from_slice(part);
        }
        *steps += 1;
        if *steps == self.steps { Then::End } else { Then::Step }
    }
}

/// Runs the steps in supersteps. Returns seconds and x.
fn in_supersteps(size: usize, steps: u64, lb: &str) -> (f64, Vec<f64>) {
    let config = Config::default().ranks(2).lb(lb).expect("it is listed");
    let outcome = caribou::supersteps(&config, Jacobi { size, steps }).expect("nothing is wrong");
    (outcome.report.elapsed_ns as f64 * 1e-9, outcome.shared.1)
}

/// A barrier of two threads that spin.
#[derive(Default)]
struct Barrier(AtomicU64);

impl Barrier {
    /// Waits for the `time`-th meeting, counted from 1.
    fn wait(&self, time: u64) {
        self.0.fetch_add(1, Ordering::AcqRel);
        while self.0.load(Ordering::Acquire) < 2 * time {
            std::hint::spin_loop();
        }
    }
}

/// Runs the same steps by hand.
fn by_hand(size: usize, steps: u64) -> (f64, Vec<f64>) {
    let (x, barrier, took) = (RwLock::new(vec![0.0; size]), Barrier::default(), Mutex::new(0.0));
    thread::scope(|scope| {
        for (me, vcpu) in caribou::machine::vcpus().into_iter().take(2).enumerate() {
            let (x, barrier, took) = (&x, &barrier, &took);
            scope.spawn(move || {
                caribou::machine::pin_to(vcpu);
                let rows = me * size / 2..(me + 1) * size / 2;
                let matrix: Vec<Vec<f64>> = rows.clone().map(|row| coefficients(size, row)).collect();
                barrier.wait(1);
                let seconds = seconds(|| {
                    for step in 0..steps {
                        let new: Vec<f64> = {
                            let x = x.read().expect("nobody panics");
                            rows.clone().zip(&matrix).map(|(row, a)| solve(row, a, &x)).collect()
                        };
                        barrier.wait(2 + 2 * step);
                        x.write().expect("nobody panics")[rows.clone()].copy_from_slice(&new);
                        barrier.wait(3 + 2 * step);
                    }
                });
                *took.lock().expect("nobody panics") = seconds;
            });
        }
    });
    (took.into_inner().expect("nobody panics"), x.into_inner().expect("nobody panics"))
}

fn main() {
    if caribou::machine::vcpus().len() < 2 {
        return eprintln!("it takes two vCPUs");
    }
    for (size, steps) in SIZES {
        let (_, expected) = by_hand(size, steps);
        let timed = |(seconds, x): (f64, Vec<f64>)| {
            assert!(x == expected, "another answer");
            seconds
        };
        let contenders: [Contender<'_>; 3] = [
            Box::new(|| timed(by_hand(size, steps))),
            Box::new(|| timed(in_supersteps(size, steps, "equal"))),
            Box::new(|| timed(in_supersteps(size, steps, "des"))),
        ];
        let spreads = in_turn(ROUNDS, contenders).map(|all| all.per(steps as f64 * 1e-6));
        eprintln!("{size} equations: us a step, median [quartiles] of {ROUNDS} rounds in turn");
        for (name, spread) in ["by hand", "equal", "des"].iter().zip(spreads) {
            eprintln!("  {name:<8}{spread:.1}   {:.3} x by hand", spread.median / spreads[0].median);
        }
        for (lb, spread) in ["equal", "des"].iter().zip(&spreads[1..]) {
            let what = format!(
                "a step of jacobi with {size} equations on two ranks under {lb} over the same by hand"
            );
            figure(&format!("supersteps.{size}.{lb}"), "times", &what, spread.per(spreads[0].median));
        }
    }
}
