//! A program of each shape that takes its time, on processes of which one may be stopped meanwhile.
//!
//! Each takes about two seconds, in pieces so short that a process that waits longer waits for another.
#![expect(clippy::print_stdout, reason = "what a test reads")]

use std::ops::Range;
use std::sync::Once;
use std::thread::sleep;
use std::time::Duration;

use crate::run_array_with;
use caribou::supersteps::{Job, Parts, Supersteps, Then};
use caribou::{Chunk, Config, Ctx, Error, Launch, Placement};
use serde::{Deserialize, Serialize};

const STEPS: u64 = 200;
const STEP: Duration = Duration::from_millis(10);

/// Runs the program of this shape.
///
/// # Errors
/// Those of the run.
///
/// # Panics
/// If there is no such shape.
pub fn run(shape: &str) -> Result<(), Error> {
    let config = Config::from_env()?.workers(1);
    match shape {
        "arrays" => arrays(config),
        "pool" => pool(&config),
        "supersteps" => caribou::supersteps(&config, Cells { units: 30 }).map(|_| ()),
        other => panic!("there is no shape `{other}`"),
    }
}

/// Tells the test once which process this is: it is in the middle of the run.
fn introduce() {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        if let Launch::Together { process, .. } = Config::default().launch() {
            println!("rank {process} process {}", std::process::id());
        }
    });
}

fn arrays(config: Config) -> Result<(), Error> {
    let ranks = config.rank_count();
    run_array_with(config, ranks, Placement::RoundRobin, |_| Token)?;
    Ok(())
}

/// Passes a token on to the chunk of the next rank.
#[derive(Serialize, Deserialize)]
struct Token;

impl Chunk for Token {
    type Index = u32;
    type Message = u64;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        introduce();
        if ctx.index() == 0 {
            ctx.send(0, 0);
        }
    }

    fn receive(&mut self, step: u64, ctx: &mut Ctx<'_, Self>) {
        if step == STEPS {
            return ctx.exit();
        }
        sleep(STEP);
        ctx.send((ctx.index() + 1) % ctx.ranks(), step + 1);
    }
}

fn pool(config: &Config) -> Result<(), Error> {
    let body = |count: &mut u64, range: Range<u64>| {
        introduce();
        *count += range.end - range.start;
        range.for_each(|_| sleep(STEP));
    };
    let outcome = caribou::pool(config, 3 * STEPS, || 0, body)?;
    assert_eq!(outcome.result, 3 * STEPS);
    Ok(())
}

/// A program in supersteps that has another number of units in each process.
///
/// # Errors
/// Those of the run.
pub fn unequal() -> Result<(), Error> {
    let config = Config::from_env()?.workers(1);
    let Launch::Together { process, .. } = config.launch() else { return Ok(()) };
    caribou::supersteps(&config, Cells { units: 30 + u64::from(process) }).map(|_| ())
}

/// Cells that do nothing in each step.
struct Cells {
    units: u64,
}

impl Supersteps for Cells {
    type Unit = u64;
    type Edge = ();
    type Part = ();
    type Shared = u64;

    fn units(&self) -> u64 {
        self.units
    }

    fn begin(&self) -> u64 {
        0
    }

    fn unit(&self, unit: u64) -> u64 {
        unit
    }

    fn compute(&self, _: Job<'_, Self>) {
        introduce();
        sleep(STEP);
    }

    fn combine(&self, steps: &mut u64, _: Parts<'_, ()>) -> Then {
        *steps += 1;
        if *steps == STEPS { Then::End } else { Then::Step }
    }
}
