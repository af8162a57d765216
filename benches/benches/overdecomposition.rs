//! Measures the cost of over-decomposition on quiet cores.
//!
//! The same five-point stencil runs on the same 2048 x 2048 plate in the same blocks: as chunks under the runtime, and
//! blocked by hand in a loop, without messages, measurement or balancing. A program would have blocks of 256 x 256
//! cells; smaller ones are nearly all messages. Runs take turns. The ratio is that of the medians. There is one rank,
//! or one per vCPU.
//!
//! Arguments select edges of blocks, such as `16 64`.

#![expect(clippy::print_stderr, reason = "a benchmark reports to the person who started it")]

use std::sync::Arc;

use caribou::Config;
use caribou_apps::stencil2d::hand_blocked::HandBlocked;
use caribou_apps::stencil2d::options::Start;
use caribou_apps::stencil2d::plate::Shape;
use caribou_apps::stencil2d::run::Plate;
use caribou_benches::figures::figure;
use caribou_benches::{Contender, in_turn, seconds};
use harness::iteration_clock::IterationClock;
use harness::{Program, RunContext};

const GRID: usize = 2048;
const EDGES: [usize; 4] = [16, 32, 64, 256];
const ROUNDS: usize = 7;
/// Iterations of one contender in one round.
const ITERATIONS: u32 = 40;
/// Iterations at the start that do not count: pages are touched for the first time.
const WARM_UP: u32 = 5;

fn shape(edge: usize) -> Shape {
    Shape::new(GRID, edge).expect("the chunk divides the grid")
}

/// Seconds for the plate under the runtime, measured as by default.
fn chunks(edge: usize, ranks: usize, lb: &str) -> f64 {
    let iterations = WARM_UP + ITERATIONS;
    let clock = Arc::new(IterationClock::new(iterations));
    let config = Config::default().ranks(ranks as u32).lb(lb).expect("it is in the table");
    let plate = Plate { shape: shape(edge), iterations, placement: Start::Block };
    plate.run(&RunContext { config: &config, clock: &clock, gathers: false }).expect("it ends");
    let (_, complete_ns) = clock.times_ns();
    (complete_ns[iterations as usize - 1] - complete_ns[WARM_UP as usize - 1]) as f64 * 1e-9
}

/// Seconds for the same plate by hand.
fn blocks(edge: usize, threads: usize) -> f64 {
    let mut blocks = HandBlocked::new(shape(edge));
    blocks.run(threads, WARM_UP);
    seconds(|| blocks.run(threads, ITERATIONS))
}

fn compare(edge: usize, ranks: usize) {
    let contenders: [Contender<'_>; 3] = [
        Box::new(|| blocks(edge, ranks)),
        Box::new(|| chunks(edge, ranks, "none")),
        Box::new(|| chunks(edge, ranks, "refine")),
    ];
    let spreads = in_turn(ROUNDS, contenders).map(|all| all.per(f64::from(ITERATIONS) * 1e-3));
    eprintln!(
        "blocks of {edge} x {edge}, {ranks} ranks: ms an iteration, median [quartiles] of {ROUNDS} in turn"
    );
    for (name, spread) in ["blocks by hand", "chunks, none", "chunks, refine"].iter().zip(spreads) {
        eprintln!("  {name:<16}{spread:.3}   {:.3} x by hand", spread.median / spreads[0].median);
    }
    let ratio = spreads[2].per(spreads[0].median);
    let what = format!("chunks of {edge} x {edge} under refine as by default over the same blocked by hand");
    figure(&format!("overdecomposition.{edge}.{ranks}-ranks"), "times", &what, ratio);
}

fn main() {
    let asked: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let vcpus = caribou::machine::vcpus().len();
    let mut sizes = vec![1, vcpus];
    sizes.dedup();
    for edge in EDGES.into_iter().filter(|edge| asked.is_empty() || asked.contains(edge)) {
        sizes.iter().for_each(|&ranks| compare(edge, ranks));
    }
}
