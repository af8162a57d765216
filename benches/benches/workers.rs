//! Compares two workers that steal with two ranks that migrate.
//!
//! The same program runs on two vCPUs, as one rank of two workers and as two ranks of one worker, in turn. The option
//! `--vcpus N` (after `--`) makes it run on N vCPUs, with about as much more work:
//!
//! | program | what could decide |
//! |---|---|
//! | `even`: a stencil of 2048 x 2048 cells in chunks of 256 x 256 | a worker keeps its chunks in its cache if none are stolen |
//! | `drifting`: the work of a chunk grows and shrinks slowly | the past predicts the next phase, so migration can follow |
//! | `erratic`: the work of a chunk is random in each step, a few steps are long | the past predicts nothing, so only stealing helps |
//! | `chatty`: a ring of chunks that only send | queues shared by two workers against rings between two ranks |
//!
//! In `drifting` and `erratic` all chunks wait for the slowest one at the end of each step.

#![expect(clippy::print_stderr, reason = "a benchmark reports to the person who started it")]

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use caribou::{Chunk, Config, Ctx, Reducer, Target, Values};
use caribou_apps::stencil2d::options::Start;
use caribou_apps::stencil2d::plate::Shape;
use caribou_apps::stencil2d::run::Plate;
use caribou_benches::figures::figure;
use caribou_benches::programs::{build, ns_per_message, program};
use caribou_benches::{Contender, in_turn};
use harness::iteration_clock::IterationClock;
use harness::{Program, RunContext};
use serde::{Deserialize, Serialize};

const ROUNDS: usize = 7;
/// Chunks of `drifting` and `erratic`, for each vCPU.
const CHUNKS: u32 = 32;
const STEPS: u32 = 200;
/// Rounds of a loop that a chunk does in an average step: about 20 us.
const WORK: u64 = 10_000;

#[derive(Clone, Copy, Serialize, Deserialize)]
enum Pattern {
    Drifting,
    Erratic,
}

impl Pattern {
    /// Work of a chunk in a step.
    fn work(self, chunk: u32, chunks: u32, step: u32) -> u64 {
        match self {
            Pattern::Drifting => {
                let turn = f64::from(chunk) / f64::from(chunks) + f64::from(step) / f64::from(STEPS);
                (WORK as f64 * (1.0 + (turn * std::f64::consts::TAU).sin())) as u64
            }
            Pattern::Erratic => {
                let drawn =
                    (u64::from(chunk) << 32 | u64::from(step)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60;
                if drawn == 0 { 9 * WORK } else { WORK / 2 }
            }
        }
    }
}

/// A chunk with some work in each step.
#[derive(Serialize, Deserialize)]
struct Busy {
    pattern: Pattern,
    chunks: u32,
    step: u32,
}

#[derive(Serialize, Deserialize)]
enum Message {
    Step,
}

impl Busy {
    fn step(&mut self, ctx: &mut Ctx<'_, Self>) {
        let work = self.pattern.work(ctx.index(), self.chunks, self.step);
        black_box((0..work).fold(1u64, |sum, turn| black_box(sum.wrapping_mul(turn | 1))));
        self.step += 1;
        ctx.contribute(self.step, Reducer::Sum, vec![1u64], Target::All);
    }
}

impl Chunk for Busy {
    type Index = u32;
    type Message = Message;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.step(ctx);
    }

    fn receive(&mut self, _: Message, ctx: &mut Ctx<'_, Self>) {
        if self.step == STEPS {
            if ctx.index() == 0 {
                ctx.service::<Arc<AtomicU64>>().store(ctx.elapsed_ns(), Ordering::Relaxed);
                ctx.exit();
            }
            return;
        }
        if ctx.sync_due(u64::from(self.step)) {
            ctx.at_sync_nowait();
        }
        self.step(ctx);
    }

    fn resume(&mut self, _: &mut Ctx<'_, Self>) {}

    fn reduced(_: u32, _: Values) -> Message {
        Message::Step
    }
}

/// How a program is spread over vCPUs.
#[derive(Clone, Copy)]
struct Layout {
    ranks: u32,
    workers: u32,
}

impl Layout {
    fn vcpus(self) -> u32 {
        self.ranks * self.workers
    }

    fn config(self) -> Config {
        Config::default().ranks(self.ranks).workers(self.workers).period(10)
    }
}

fn busy(layout: Layout, pattern: Pattern) -> f64 {
    let took_ns = Arc::new(AtomicU64::new(0));
    let chunks = CHUNKS * layout.vcpus();
    let report = caribou::run(layout.config(), |setup| {
        setup.service(took_ns.clone());
        setup.array(chunks, move |_| Busy { pattern, chunks, step: 0 });
    });
    report.expect("it ends");
    took_ns.load(Ordering::Relaxed) as f64 * 1e-6 / f64::from(STEPS)
}

fn even(layout: Layout) -> f64 {
    let iterations = 60;
    let clock = Arc::new(IterationClock::new(iterations));
    let across = f64::from(CHUNKS * layout.vcpus()).sqrt().round() as usize;
    let shape = Shape::new(256 * across, 256).expect("a chunk is smaller than the grid");
    let stage = RunContext { config: &layout.config(), clock: &clock, gathers: false };
    Plate { shape, iterations, placement: Start::Block }.run(&stage).expect("it ends");
    let (_, complete_ns) = clock.times_ns();
    (complete_ns[iterations as usize - 1] - complete_ns[9]) as f64 * 1e-6 / f64::from(iterations - 10)
}

fn chatty(layout: Layout) -> f64 {
    let (chunks, tokens) = (512 * layout.vcpus(), 128 * layout.vcpus());
    let Layout { ranks, workers } = layout;
    let options =
        format!("--chunks {chunks} --tokens {tokens} --hops 2000 --ranks {ranks} --workers {workers}");
    ns_per_message(&mut program("ring", &options))
}

/// The number of vCPUs from `--vcpus`, or 2.
fn vcpus() -> u32 {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--vcpus").skip(1);
    arguments
        .next()
        .map_or(2, |vcpus| vcpus.parse().ok().filter(|&vcpus| vcpus > 0).expect("--vcpus takes their number"))
}

fn compare(name: &str, unit: &str, vcpus: u32, run: impl Fn(Layout) -> f64 + Copy) {
    let contenders: [Contender<'_>; 2] = [
        Box::new(move || run(Layout { ranks: vcpus, workers: 1 })),
        Box::new(move || run(Layout { ranks: 1, workers: vcpus })),
    ];
    let [ranks, workers] = in_turn(ROUNDS, contenders);
    let ratio = workers.per(ranks.median);
    let times = ratio.median;
    eprintln!("{name:<10} {unit:<14} {vcpus} ranks {ranks:.3}   {vcpus} workers {workers:.3}   {times:.2} x");
    let figure_name = if vcpus == 2 { format!("workers.{name}") } else { format!("workers.{name}.{vcpus}") };
    figure(&figure_name, "times", "workers of one rank over ranks of one worker as by default", ratio);
}

fn main() {
    let vcpus = vcpus();
    build(&["ring"]);
    eprintln!("medians [quartiles] of {ROUNDS} rounds in turn; less is better");
    compare("even", "ms a step", vcpus, even);
    compare("drifting", "ms a step", vcpus, |layout| busy(layout, Pattern::Drifting));
    compare("erratic", "ms a step", vcpus, |layout| busy(layout, Pattern::Erratic));
    compare("chatty", "ns a message", vcpus, chatty);
}
