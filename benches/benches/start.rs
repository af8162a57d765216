//! Measures the cost of starting a run, and the memory of an empty chunk.
//!
//! A run with one chunk that exits at once, and a pool of one iteration, start and pin threads, measure vCPUs, and end
//! again. The limit is as many threads that do nothing.
//!
//! For the memory, a million empty chunks are started. The last one reads the memory of the process.

#![expect(clippy::print_stderr, reason = "a benchmark reports to the person who started it")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use caribou::{Chunk, Config, Ctx};
use caribou_benches::figures::figure;
use caribou_benches::{Contender, Quartiles, in_turn, seconds};
use serde::{Deserialize, Serialize};

const ROUNDS: usize = 51;

/// Exits as soon as it has started.
#[derive(Serialize, Deserialize)]
struct Brief;

impl Chunk for Brief {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.exit();
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
}

fn run(ranks: u32) -> f64 {
    seconds(|| {
        let report = caribou::run(Config::default().ranks(ranks), |setup| {
            setup.array(1u32, |_| Brief);
        });
        report.expect("it ends")
    })
}

fn pool() -> f64 {
    let config = Config::default().workers(2);
    seconds(|| caribou::pool(&config, 1, || 0, |sum: &mut u64, range| *sum += range.end).expect("it ends"))
}

fn threads() -> f64 {
    seconds(|| thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(|| ())))))
}

/// An empty chunk. The last one to start ends the run with the memory of the process.
#[derive(Serialize, Deserialize)]
struct Tiny;

const MILLION: u32 = 1_000_000;

static STARTED: AtomicU32 = AtomicU32::new(0);

impl Chunk for Tiny {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if STARTED.fetch_add(1, Ordering::Relaxed) + 1 == MILLION {
            ctx.exit_with(&resident_bytes());
        }
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
}

/// Memory of the process, bytes.
fn resident_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has a line");
    line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number of kB") * 1024.0
}

/// Bytes per empty chunk.
fn chunk_bytes() -> f64 {
    let before = resident_bytes();
    let report = caribou::run(Config::default().ranks(1), |setup| {
        setup.array(MILLION, |_| Tiny);
    });
    let after: f64 = report.and_then(|report| report.value()).expect("it ends with it");
    (after - before) / f64::from(MILLION)
}

fn main() {
    // This comes first, while no freed memory can be used again.
    let bytes = Quartiles::of(vec![chunk_bytes()]);
    eprintln!("bytes of memory that each of a million chunks takes that hold nothing: {bytes:.0}");
    figure("start.chunk-bytes", "B", "a chunk that holds nothing", bytes);
    let contenders: [Contender<'_>; 4] =
        [Box::new(threads), Box::new(|| run(1)), Box::new(|| run(2)), Box::new(pool)];
    let spreads = in_turn(ROUNDS, contenders).map(|spread| spread.per(1e-3));
    let names = ["start.threads", "start.run-1-rank", "start.run-2-ranks", "start.pool"];
    let what = ["two threads", "a run on one rank", "a run on two ranks", "a pool on two workers"];
    eprintln!("ms to start and to end; median [quartiles] of {ROUNDS} rounds in turn");
    for ((name, what), spread) in names.iter().zip(what).zip(spreads) {
        eprintln!("  {what:<24}{spread:.2}");
        figure(name, "ms", what, spread);
    }
}
