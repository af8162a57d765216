//! Measures the cost of encoding.
//!
//! A chunk of 512 KiB of `f64` is encoded in the wire format: with `caribou::bulk`, and with plain serde, which visits
//! every number. The limit is a copy of the same bytes, timed in the same run.

#![expect(clippy::print_stderr, reason = "a benchmark reports to the person who started it")]

use std::hint::black_box;
use std::time::Duration;

use caribou_benches::{Contender, in_turn, seconds};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

const NUMBERS: usize = 512 * 1024 / size_of::<f64>();
const ROUNDS: usize = 21;
/// Encodings of one contender in one round.
const REPEATS: usize = 20;

#[derive(Serialize, Deserialize)]
struct Bulk {
    #[serde(with = "caribou::bulk")]
    numbers: Vec<f64>,
}

#[derive(Serialize, Deserialize)]
struct Plain {
    numbers: Vec<f64>,
}

fn numbers() -> Vec<f64> {
    (0..NUMBERS).map(|number| (number as f64).sqrt()).collect()
}

fn encoded<T: Serialize>(value: &T) -> Vec<u8> {
    bincode::serde::encode_to_vec(value, bincode::config::standard()).expect("numbers encode")
}

fn decoded<T: DeserializeOwned>(bytes: &[u8]) -> T {
    let (value, _) =
        bincode::serde::decode_from_slice(bytes, bincode::config::standard()).expect("they decode");
    value
}

fn encode(criterion: &mut Criterion) {
    let (bulk, plain) = (Bulk { numbers: numbers() }, Plain { numbers: numbers() });
    let (bulk_bytes, plain_bytes) = (encoded(&bulk), encoded(&plain));
    assert_eq!(decoded::<Bulk>(&bulk_bytes).numbers, decoded::<Plain>(&plain_bytes).numbers);
    let mut group = criterion.benchmark_group("512 KiB");
    group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    group.throughput(Throughput::Bytes((NUMBERS * size_of::<f64>()) as u64));
    group.bench_function("copy", |bencher| bencher.iter(|| black_box(&bulk.numbers).clone()));
    group.bench_function("encode bulk", |bencher| bencher.iter(|| encoded(black_box(&bulk))));
    group.bench_function("encode plain", |bencher| bencher.iter(|| encoded(black_box(&plain))));
    group.bench_function("decode bulk", |bencher| bencher.iter(|| decoded::<Bulk>(black_box(&bulk_bytes))));
    group
        .bench_function("decode plain", |bencher| bencher.iter(|| decoded::<Plain>(black_box(&plain_bytes))));
    group.finish();

    let names = ["copy", "encode bulk", "encode plain", "decode bulk", "decode plain"];
    let spreads = in_turn(
        ROUNDS,
        [
            repeated(|| black_box(&bulk.numbers).clone()),
            repeated(|| encoded(black_box(&bulk))),
            repeated(|| encoded(black_box(&plain))),
            repeated(|| decoded::<Bulk>(black_box(&bulk_bytes))),
            repeated(|| decoded::<Plain>(black_box(&plain_bytes))),
        ],
    );
    eprintln!("us for 512 KiB, median [quartiles] of {ROUNDS} rounds in turn");
    for (name, spread) in names.iter().zip(spreads) {
        eprintln!("  {name:<14}{spread}   {:.1} x copy", spread.median / spreads[0].median);
    }
}

/// us for one piece of work.
fn repeated<'w, T>(work: impl Fn() -> T + 'w) -> Contender<'w> {
    Box::new(move || {
        let all = seconds(|| {
            for _ in 0..REPEATS {
                black_box(work());
            }
        });
        all * 1e6 / REPEATS as f64
    })
}

criterion_group!(benches, encode);
criterion_main!(benches);
