//! What does over-decomposition cost on quiet cores?
//!
//! The same five-point stencil on the same 2048 x 2048 plate in the same 64 blocks of 256 x 256: as chunks under the
//! runtime, and blocked by hand in a loop, without messages, measurement or balancing. Runs take turns; the ratio is that of
//! the medians. One rank, and as many as there are vCPUs.

#![expect(clippy::print_stderr, reason = "a benchmark reports to the person who started it")]

use std::sync::Arc;
use std::time::Duration;

use caribou::Config;
use caribou_apps::stencil2d::hand_blocked::HandBlocked;
use caribou_apps::stencil2d::plate::Shape;
use caribou_apps::stencil2d::run::Plate;
use caribou_benches::figures::figure;
use caribou_benches::{Contender, in_turn, seconds};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use harness::iteration_clock::IterationClock;
use harness::{Program, Stage};

const GRID: usize = 2048;
const CHUNK: usize = 256;
const ROUNDS: usize = 9;
/// Iterations of one contender in one round.
const ITERATIONS: u32 = 60;
/// Iterations at the start that do not count: pages are touched for the first time.
const WARM_UP: u32 = 5;

fn shape() -> Shape {
    Shape::new(GRID, CHUNK).expect("the chunk divides the grid")
}

/// Seconds for `iterations` of the plate under the runtime, measured and balanced as by default.
fn chunks(ranks: u32, lb: &str, iterations: u32) -> f64 {
    let clock = Arc::new(IterationClock::new(WARM_UP + iterations));
    let config = Config::default().ranks(ranks).lb(lb).expect("it is in the table");
    let plate = Plate { shape: shape(), iterations: WARM_UP + iterations };
    plate.run(&Stage { config: &config, clock: &clock, gathers: false }).expect("it ends");
    let (_, complete_ns) = clock.times_ns();
    (complete_ns[(WARM_UP + iterations - 1) as usize] - complete_ns[WARM_UP as usize - 1]) as f64 * 1e-9
}

/// Seconds for the same by hand.
fn blocks(threads: usize, iterations: u32) -> f64 {
    let mut blocks = HandBlocked::new(shape());
    blocks.run(threads, WARM_UP);
    seconds(|| blocks.run(threads, iterations))
}

fn overdecomposition(criterion: &mut Criterion) {
    let vcpus = caribou::vcpus().len();
    let mut sizes = vec![1, vcpus];
    sizes.dedup();
    let mut group = criterion.benchmark_group("iteration");
    group.sample_size(10).warm_up_time(Duration::from_millis(300));
    group.measurement_time(Duration::from_secs(1));
    for &ranks in &sizes {
        group.bench_function(BenchmarkId::new("chunks", ranks), |bencher| {
            bencher.iter_custom(|n| Duration::from_secs_f64(chunks(ranks as u32, "refine", n as u32)));
        });
        group.bench_function(BenchmarkId::new("blocks by hand", ranks), |bencher| {
            bencher.iter_custom(|n| Duration::from_secs_f64(blocks(ranks, n as u32)));
        });
    }
    group.finish();
    sizes.iter().for_each(|&ranks| compare(ranks));
}

fn compare(ranks: usize) {
    let contenders: [Contender<'_>; 3] = [
        Box::new(|| blocks(ranks, ITERATIONS)),
        Box::new(|| chunks(ranks as u32, "none", ITERATIONS)),
        Box::new(|| chunks(ranks as u32, "refine", ITERATIONS)),
    ];
    let spreads = in_turn(ROUNDS, contenders).map(|all| all.per(f64::from(ITERATIONS) * 1e-3));
    eprintln!("{ranks} ranks: ms an iteration, median [quartiles] of {ROUNDS} rounds in turn");
    for (name, spread) in ["blocks by hand", "chunks, none", "chunks, refine"].iter().zip(spreads) {
        eprintln!("  {name:<16}{spread:.3}   {:.3} x by hand", spread.median / spreads[0].median);
    }
    let ratio = spreads[2].per(spreads[0].median);
    let what = "chunks of 256 x 256 under refine as by default over the same blocked by hand";
    figure(&format!("overdecomposition.{ranks}-ranks"), "times", what, ratio);
}

criterion_group!(benches, overdecomposition);
criterion_main!(benches);
