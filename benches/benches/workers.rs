//! Two workers that steal, or two ranks that migrate?
//!
//! The same program on two vCPUs, as one rank of two workers and as two ranks of one worker, in turn:
//!
//! | program | what could decide |
//! |---|---|
//! | `even`: a stencil of 2048 x 2048 cells in chunks of 256 x 256 | a worker keeps its chunks in its cache if nobody steals |
//! | `drifting`: the work of a chunk grows and shrinks slowly | the past tells the next phase: migration can follow |
//! | `erratic`: the work of a chunk is drawn anew each step, a few steps are long | the past tells nothing; only stealing sees it |
//! | `chatty`: a ring of chunks that only send | queues shared by two workers against rings between two ranks |
//!
//! `drifting` and `erratic` meet at the end of each step: everybody waits for the slowest.

#![expect(clippy::print_stderr, reason = "a benchmark reports to the person who started it")]

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use caribou::{Chunk, Config, Ctx, Reducer, Target, Values};
use caribou_apps::stencil2d::plate::Shape;
use caribou_apps::stencil2d::run::Plate;
use caribou_benches::figures::figure;
use caribou_benches::programs::{build, ns_per_message, program};
use caribou_benches::{Contender, in_turn};
use harness::iteration_clock::IterationClock;
use harness::{Program, Stage};
use serde::{Deserialize, Serialize};

const ROUNDS: usize = 7;
const CHUNKS: u32 = 64;
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
    fn work(self, chunk: u32, step: u32) -> u64 {
        match self {
            Pattern::Drifting => {
                let turn = f64::from(chunk) / f64::from(CHUNKS) + f64::from(step) / f64::from(STEPS);
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
    step: u32,
}

#[derive(Serialize, Deserialize)]
enum Message {
    Step,
}

impl Busy {
    fn step(&mut self, ctx: &mut Ctx<'_, Self>) {
        let work = self.pattern.work(ctx.index(), self.step);
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

fn config(ranks: u32) -> Config {
    Config::default().ranks(ranks).workers(2 / ranks).period(10)
}

fn busy(ranks: u32, pattern: Pattern) -> f64 {
    let took_ns = Arc::new(AtomicU64::new(0));
    let report = caribou::run(config(ranks), |setup| {
        setup.service(took_ns.clone());
        setup.array(CHUNKS, move |_| Busy { pattern, step: 0 });
    });
    report.expect("it ends");
    took_ns.load(Ordering::Relaxed) as f64 * 1e-6 / f64::from(STEPS)
}

fn even(ranks: u32) -> f64 {
    let iterations = 60;
    let clock = Arc::new(IterationClock::new(iterations));
    let shape = Shape::new(2048, 256).expect("the chunk divides the grid");
    let stage = Stage { config: &config(ranks), clock: &clock, gathers: false };
    Plate { shape, iterations }.run(&stage).expect("it ends");
    let (_, complete_ns) = clock.times_ns();
    (complete_ns[iterations as usize - 1] - complete_ns[9]) as f64 * 1e-6 / f64::from(iterations - 10)
}

fn chatty(ranks: u32) -> f64 {
    let options = format!("--chunks 1024 --tokens 256 --hops 2000 --ranks {ranks} --workers {}", 2 / ranks);
    ns_per_message(&mut program("ring", &options)) * 1e-3
}

fn compare(name: &str, unit: &str, run: impl Fn(u32) -> f64 + Copy) {
    let contenders: [Contender<'_>; 2] = [Box::new(move || run(2)), Box::new(move || run(1))];
    let [ranks, workers] = in_turn(ROUNDS, contenders);
    let ratio = workers.per(ranks.median);
    eprintln!("{name:<10} {unit:<14} 2 ranks {ranks:.3}   2 workers {workers:.3}   {:.2} x", ratio.median);
    figure(&format!("workers.{name}"), "times", "two workers over two ranks as by default", ratio);
}

fn main() {
    build(&["ring"]);
    eprintln!("medians [quartiles] of {ROUNDS} rounds in turn; less is better");
    compare("even", "ms a step", even);
    compare("drifting", "ms a step", |ranks| busy(ranks, Pattern::Drifting));
    compare("erratic", "ms a step", |ranks| busy(ranks, Pattern::Erratic));
    compare("chatty", "us a message", chatty);
}
