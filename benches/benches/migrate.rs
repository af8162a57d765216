//! Measures how fast chunks migrate between the ranks of one process.
//!
//! Every chunk comes to a sync, migrates to the other rank (`rotate`), and comes to the next sync. The limit is the
//! time of a channel for as many boxes from thread to thread. Migration should take less time than a copy of the
//! chunk's numbers. Both are timed in the same run. With `wire` chunks are encoded and decoded, as between processes.

#![expect(clippy::print_stderr, reason = "a benchmark reports to the person who started it")]

use std::hint::black_box;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use caribou::{Config, Report};
use caribou_benches::figures::figure;
use caribou_benches::nomad::Nomad;
use caribou_benches::{Contender, in_turn, seconds};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const ROUNDS: usize = 7;
/// Syncs of a run, at each of which all chunks move; the same of a run that encodes all chunks.
const SYNCS: u64 = 40;
const SYNCS_WIRE: u64 = 4;

/// Some chunks of some size.
#[derive(Clone, Copy)]
struct Load {
    chunks: u32,
    bytes: usize,
}

const LARGE: Load = Load { chunks: 100, bytes: 512 * 1024 };
const SMALL: Load = Load { chunks: 1000, bytes: 64 };

fn rotate(load: Load, syncs: u64, wire: bool) -> Report {
    let config = Config::default().ranks(2).wire_always(wire).lb("rotate").expect("it is in the table");
    let report = caribou::run(config, move |setup| {
        setup.array(load.chunks, move |_| Nomad::<Vec<f64>>::new(syncs, load.bytes));
    })
    .expect("it ends");
    let all_moved = report.syncs.iter().all(|sync| sync.moved == u64::from(load.chunks));
    assert!(all_moved && report.syncs.len() as u64 == syncs, "everybody moves at every sync");
    report
}

/// Time from the decision until the last chunk landed, us per chunk; the median of the run's syncs.
fn migrate_us(report: &Report) -> f64 {
    let mut costs: Vec<f64> =
        report.syncs.iter().map(|sync| sync.migrate_ns as f64 / 1e3 / sync.moved as f64).collect();
    costs.sort_by(f64::total_cmp);
    costs[costs.len() / 2]
}

/// Time from one sync to the next, us per chunk: everything that a sync costs.
fn sync_us(report: &Report) -> f64 {
    let times: Vec<u64> = report.syncs.iter().map(|sync| sync.at_ns).collect();
    let mut gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_unstable();
    gaps[gaps.len() / 2] as f64 / 1e3 / report.syncs[0].moved as f64
}

/// The limit: us per box through a channel to another thread, with one message back for all boxes.
fn hand_over_us(load: Load) -> f64 {
    let (to_other, from_here) = channel::<Box<Vec<f64>>>();
    let (to_here, from_other) = channel();
    let vcpus = caribou::machine::vcpus();
    let (here, there) = (vcpus[0], vcpus[vcpus.len() - 1]);
    thread::scope(|scope| {
        scope.spawn(move || {
            caribou::machine::pin_to(there);
            loop {
                let arrived: Vec<_> = from_here.iter().take(load.chunks as usize).collect();
                if arrived.is_empty() || to_here.send(arrived).is_err() {
                    return;
                }
            }
        });
        let giver = scope.spawn(move || {
            caribou::machine::pin_to(here);
            let mut boxes: Vec<_> =
                (0..load.chunks).map(|_| Box::new(vec![1.0; load.bytes / size_of::<f64>()])).collect();
            let all = seconds(|| {
                for _ in 0..SYNCS {
                    boxes.drain(..).for_each(|one| to_other.send(one).expect("the other thread listens"));
                    boxes = from_other.recv().expect("the other thread answers");
                }
            });
            all * 1e6 / (SYNCS as f64 * f64::from(load.chunks))
        });
        giver.join().expect("it does not panic")
    })
}

/// The cost that in-process migration avoids: us for a copy of a chunk's numbers.
fn copy_us(load: Load) -> f64 {
    let numbers = vec![1.0f64; load.bytes / size_of::<f64>()];
    let all = seconds(|| {
        for _ in 0..load.chunks {
            black_box(black_box(&numbers).clone());
        }
    });
    all * 1e6 / f64::from(load.chunks)
}

fn migrate(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sync that moves everybody");
    group.sample_size(10).warm_up_time(Duration::from_millis(200));
    group.measurement_time(Duration::from_secs(1));
    for load in [LARGE, SMALL] {
        let name = BenchmarkId::new(format!("{} chunks", load.chunks), format!("{} B", load.bytes));
        group.throughput(Throughput::Elements(u64::from(load.chunks)));
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|syncs| {
                // A run has at least four syncs, so that its start does not dominate.
                let enough = syncs.clamp(4, 4000);
                let us = sync_us(&rotate(load, enough, false)) * f64::from(load.chunks);
                Duration::from_secs_f64(us * 1e-6 * syncs as f64)
            });
        });
    }
    group.finish();
    compare(LARGE);
    compare(SMALL);
}

fn compare(load: Load) {
    let through = |wire: bool, cost: fn(&Report) -> f64| -> Contender<'static> {
        let syncs = if wire { SYNCS_WIRE } else { SYNCS };
        Box::new(move || cost(&rotate(load, syncs, wire)))
    };
    let contenders = [
        Box::new(move || hand_over_us(load)) as Contender<'_>,
        Box::new(move || copy_us(load)),
        through(false, migrate_us),
        through(false, sync_us),
        through(true, migrate_us),
        through(true, sync_us),
    ];
    let names = [
        "box through a channel",
        "copy of the numbers",
        "migration",
        "sync",
        "migration, wire",
        "sync, wire",
    ];
    let spreads = in_turn(ROUNDS, contenders);
    eprintln!(
        "{} chunks of {} B: us a chunk, median [quartiles] of {ROUNDS} rounds in turn",
        load.chunks, load.bytes
    );
    for (name, spread) in names.iter().zip(spreads) {
        let (limit, copy) = (spread.median / spreads[0].median, spread.median / spreads[1].median);
        eprintln!("  {name:<24}{spread:.2}   {limit:>6.1} x box   {copy:>6.2} x copy");
    }
    let what = "from the decision until a chunk has landed; measured and profiled as by default";
    figure(&format!("migrate.{}", load.bytes), "us", what, spreads[2]);
    figure(&format!("migrate.{}.wire", load.bytes), "us", what, spreads[4]);
}

criterion_group!(benches, migrate);
criterion_main!(benches);
