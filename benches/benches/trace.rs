//! Measures the cost of recording a run.
//!
//! The same program runs in pairs: with nothing recorded, and with the default profile or a full trace. Its chunks are
//! measured in any case:
//!
//! | program | what it shows |
//! |---|---|
//! | `coarse`: a stencil in 256 chunks of 256 x 256 cells | the cost for a program with handlers of some 10 us |
//! | `fine`: the same in chunks of 16 x 16 cells | the cost for a program with chunks that are much too small |
//! | `ring`: one message per handler, and nothing else | ns per message |
//!
//! The workers themselves write a trace, so all its cost is included, with system calls. Traces go to a directory in
//! `TMPDIR` and are removed. If that is slow to write, so is the trace.
//!
//! Half a percent is less than the noise of most machines: `cargo bench --bench trace -- 200` makes 200 pairs.

#![expect(clippy::print_stderr, reason = "a benchmark reports to the person who started it")]

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use caribou::Config;
use caribou_apps::stencil2d::options::Start;
use caribou_apps::stencil2d::plate::Shape;
use caribou_apps::stencil2d::run::Plate;
use caribou_benches::figures::figure;
use caribou_benches::programs::{build, ns_per_message, program};
use caribou_benches::{Contender, Quartiles, in_pairs};
use harness::iteration_clock::IterationClock;
use harness::{Program, RunContext};

const ROUNDS: usize = 15;

/// What is recorded.
#[derive(Clone, Copy)]
enum Recorded {
    Nothing,
    Profile,
    Trace,
}

impl Recorded {
    fn keeps_profile(self) -> bool {
        !matches!(self, Recorded::Nothing)
    }

    /// A configuration that records this, with a trace in `directory`.
    fn config(self, directory: &Path) -> Config {
        let config = Config::default().profile(self.keeps_profile());
        if matches!(self, Recorded::Trace) { config.trace(directory) } else { config }
    }

    /// The command for a `ring` that records this, with a trace in `directory`.
    fn ring(self, directory: &Path) -> Command {
        let switch = if self.keeps_profile() { "on" } else { "off" };
        let mut ring = program("ring", &format!("--tokens 4 --profile {switch}"));
        if matches!(self, Recorded::Trace) {
            ring.env("CARIBOU_TRACE", directory);
        }
        ring
    }
}

/// A directory for traces. Dropping it removes them.
struct Directory {
    path: PathBuf,
    runs: Cell<u32>,
}

impl Directory {
    fn new() -> Directory {
        let path = std::env::temp_dir().join(format!("caribou-bench-trace-{}", std::process::id()));
        Directory { path, runs: Cell::new(0) }
    }

    /// Calls `run` with a new directory.
    fn run(&self, run: impl FnOnce(&Path) -> f64) -> f64 {
        let number = self.runs.replace(self.runs.get() + 1);
        let here = self.path.join(number.to_string());
        let figure = run(&here);
        let _ = std::fs::remove_dir_all(here);
        figure
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Milliseconds of an iteration.
fn plate(config: Config, grid: usize, chunk: usize, iterations: u32) -> f64 {
    let clock = Arc::new(IterationClock::new(iterations));
    let shape = Shape::new(grid, chunk).expect("the chunk divides the grid");
    let stage = RunContext { config: &config.ranks(2), clock: &clock, gathers: false };
    Plate { shape, iterations, placement: Start::Block }.run(&stage).expect("it ends");
    let (_, complete_ns) = clock.times_ns();
    (complete_ns[iterations as usize - 1] - complete_ns[9]) as f64 * 1e-6 / f64::from(iterations - 10)
}

fn compare(rounds: usize, name: &str, unit: &str, run: impl Fn(Recorded, &Path) -> f64 + Copy) {
    let directory = Directory::new();
    for (recorded, what) in [(Recorded::Profile, "profile"), (Recorded::Trace, "trace")] {
        let contender = |recorded| -> Contender<'_> {
            let directory = &directory;
            Box::new(move || directory.run(|here| run(recorded, here)))
        };
        let pairs = in_pairs(rounds, contender(Recorded::Nothing), contender(recorded));
        let percent = |ratio: f64| 100.0 * (ratio - 1.0);
        eprintln!(
            "{name:<7} {unit:<15} nothing {:.3}   {what:<7} {:.3}   {:+.2} % [{:+.2} .. {:+.2}], least disturbed {:+.2} %",
            pairs.one,
            pairs.other,
            percent(pairs.ratio),
            percent(pairs.between.0),
            percent(pairs.between.1),
            percent(pairs.other.low / pairs.one.low)
        );
        let (low, high) = pairs.between;
        let [median, low_percent, high_percent] = [pairs.ratio, low, high].map(percent);
        let more = Quartiles { median, low: low_percent, high: high_percent, least: low_percent };
        figure(&format!("trace.{name}.{what}"), "%", "more than measured and not profiled", more);
        if name == "ring" {
            let one = pairs.one.median;
            let more = Quartiles {
                median: one * (pairs.ratio - 1.0),
                low: one * (low - 1.0),
                high: one * (high - 1.0),
                least: one * (low - 1.0),
            };
            figure(
                &format!("trace.{name}.{what}.message"),
                "ns",
                "more than measured and not profiled",
                more,
            );
        }
    }
}

fn main() {
    build(&["ring"]);
    // Cargo also passes `--bench`.
    let rounds = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(ROUNDS);
    eprintln!(
        "medians [quartiles] of {rounds} pairs; more by the median of pairs, and where that is in 19 of 20 cases;"
    );
    eprintln!("and by the lower quartiles, since others make a program slower and never faster");
    compare(rounds, "coarse", "ms an iteration", |recorded, here| {
        plate(recorded.config(here), 4096, 256, 110)
    });
    compare(rounds, "fine", "ms an iteration", |recorded, here| plate(recorded.config(here), 1024, 16, 110));
    compare(rounds, "ring", "ns a message", |recorded, here| ns_per_message(&mut recorded.ring(here)));
}
