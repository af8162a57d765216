//! Sweeps over seeds.

use std::ops::Range;
use std::thread;

use caribou::Config;

/// Seeds, one after the other. When a test panics at one of them, the command that repeats it is printed.
pub struct Seeds {
    left: Range<u64>,
    now: Option<u64>,
    test: &'static str,
}

impl Iterator for Seeds {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.now = self.left.next();
        self.now
    }
}

impl Drop for Seeds {
    #[expect(clippy::print_stderr, reason = "read where the panic is read")]
    fn drop(&mut self) {
        if let (true, Some(seed)) = (thread::panicking(), self.now) {
            eprintln!("repeat with: SEED={seed} cargo test -p caribou-tests --release {}", self.test);
        }
    }
}

/// The seeds of a sweep: so many, or those that the environment names by `SEEDS` or `SEED`. `test` are the arguments by
/// which `cargo test` finds the test.
pub fn seeds(usual: u64, test: &'static str) -> Seeds {
    let count = variable("SEEDS").unwrap_or(usual);
    let left = variable("SEED").map_or(0..count, |seed| seed..seed + 1);
    Seeds { left, now: None, test }
}

/// The number of [`seeds`].
fn seed_count(usual: u64) -> u64 {
    seeds(usual, "").count() as u64
}

#[expect(clippy::disallowed_methods, reason = "the length of the sweep is the caller's choice")]
fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// How often something must happen in this sweep, if it happens `count` times in the `usual` number of seeds. Fewer than 20
/// seeds need not meet it at all.
pub fn expected(count: u64, usual: u64) -> u64 {
    let seeds = seed_count(usual);
    if seeds < 20 { 0 } else { (count * seeds).div_ceil(usual) }
}

/// The simulated run of a seed; every fourth is disturbed.
pub fn simulated(seed: u64) -> Config {
    Config::default().simulate(seed).simulate_disturbed(seed % 4 == 1)
}
