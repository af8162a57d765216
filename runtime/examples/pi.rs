//! Estimates pi in a pool of independent iterations: the README's second program.
#![expect(clippy::print_stdout, reason = "it is a program")]

use caribou::{Config, random::stream};
use rand::RngExt;

fn main() -> Result<(), caribou::Error> {
    let darts = 100_000_000;
    let hits = caribou::pool(
        &Config::from_env()?,
        darts,
        || 0,
        |hits: &mut u64, range| {
            for dart in range {
                // A random stream of its own: the result does not depend on who throws which dart.
                let mut random = stream(42, dart);
                let (x, y): (f64, f64) = (random.random(), random.random());
                *hits += u64::from(x * x + y * y < 1.0);
            }
        },
    )?;
    println!("pi is about {}", 4.0 * hits.result as f64 / darts as f64);
    Ok(())
}
