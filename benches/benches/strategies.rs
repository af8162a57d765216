//! Measures how long each strategy takes to decide, for 10^3 to 10^6 chunks, and what it achieves.
//!
//! Each rank holds 100 chunks. The limit is a sort of the same loads, timed in the same run. A strategy that visits
//! chunks in order of load cannot be faster; one that leaves most chunks alone can. (The loads of the ramp come in
//! order, so its sort is a mere scan.) After the timings of a size, one line per strategy has three numbers: its time
//! over that of the sort, the maximum over the average completion time after it, and the part of the chunks that it
//! moves.

#![expect(clippy::print_stderr, reason = "a benchmark reports to the person who started it")]

use std::hint::black_box;
use std::time::Instant;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use lb_strategies::ARRAYS;
use lb_strategies::Snapshot;
use lb_strategies::metrics::{Moved, max_over_avg};
use lb_strategies::synthetic::Workload;

const WORKLOADS: [Workload; 4] = [Workload::Uniform, Workload::Lognormal, Workload::Ramp, Workload::HotSpots];
const CHUNKS: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];
const CHUNKS_PER_RANK: usize = 100;

fn strategies(criterion: &mut Criterion) {
    for workload in WORKLOADS {
        let mut group = criterion.benchmark_group(workload.name());
        group.sample_size(10).warm_up_time(std::time::Duration::from_millis(100));
        group.measurement_time(std::time::Duration::from_millis(300));
        for chunks in CHUNKS {
            let snapshot = workload.snapshot(chunks, chunks / CHUNKS_PER_RANK, 1);
            group.bench_function(BenchmarkId::new("sort", chunks), |bencher| {
                bencher.iter(|| sorted_loads(black_box(&snapshot)));
            });
            for entry in ARRAYS.iter() {
                let strategy = ARRAYS.parse(entry.name).expect("defaults are valid");
                group.bench_function(BenchmarkId::new(entry.name, chunks), |bencher| {
                    bencher.iter(|| strategy.assign(black_box(&snapshot)));
                });
            }
            compare(workload, &snapshot);
        }
        group.finish();
    }
}

/// The limit: the loads of all chunks in order.
fn sorted_loads(snapshot: &Snapshot) -> Vec<u64> {
    let mut loads: Vec<u64> = snapshot.chunks.iter().map(|chunk| chunk.ticks).collect();
    loads.sort_unstable();
    loads
}

/// Prints time as a multiple of the sort's, and quality.
fn compare(workload: Workload, snapshot: &Snapshot) {
    let limit = shortest(|| sorted_loads(snapshot));
    let chunks = snapshot.chunks.len();
    eprintln!("{} {chunks}: a sort takes {:.3} ms", workload.name(), limit * 1e3);
    for entry in ARRAYS.iter() {
        let strategy = ARRAYS.parse(entry.name).expect("defaults are valid");
        let ratio = shortest(|| strategy.assign(snapshot)) / limit;
        let assignment = strategy.assign(snapshot);
        let after = max_over_avg(snapshot, &assignment, strategy.terms().background);
        let moved = 100.0 * Moved::of(snapshot, &assignment).chunks as f64 / chunks as f64;
        eprintln!("  {:<14} {ratio:>7.2} x sort   max/avg {after:.4}   moved {moved:>6.2} %", entry.name);
    }
}

/// The shortest of three runs, in seconds: what the work takes when nothing interferes.
#[expect(clippy::disallowed_methods, reason = "a benchmark reads the real clock")]
fn shortest<T>(mut work: impl FnMut() -> T) -> f64 {
    let run = |_| {
        let start = Instant::now();
        black_box(work());
        start.elapsed().as_secs_f64()
    };
    (0..3).map(run).fold(f64::INFINITY, f64::min)
}

criterion_group!(benches, strategies);
criterion_main!(benches);
