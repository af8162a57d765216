//! The common parts of the system tests.
#![forbid(unsafe_code)]

/// The programs in the pages, which must compile.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../README.md")]
    struct Readme;
    #[doc = include_str!("../../docs/checkpoints.md")]
    struct Checkpoints;
    #[doc = include_str!("../../docs/dynamic.md")]
    struct Dynamic;
    #[doc = include_str!("../../docs/pools.md")]
    struct Pools;
    #[doc = include_str!("../../docs/traces.md")]
    struct Traces;
    #[cfg(feature = "mpi")]
    #[doc = include_str!("../../docs/mpi.md")]
    struct Mpi;
}

pub mod counter;
pub mod dynamic;
pub mod events;
pub mod faulty;
pub mod full_ring;
pub mod job;
pub mod paced;

use std::ops::Range;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Time that a run may take before it counts as hanging: thousands of times what the tests need.
const PATIENCE: Duration = Duration::from_secs(20);

/// The result of `run`, which must not hang: a run that cannot go on has to say so.
///
/// # Panics
/// With `what` if `run` takes longer than 20 s (its threads are left behind); and if `run` panics.
pub fn with_timeout<T: Send + 'static>(what: &str, run: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = channel();
    let runner = thread::spawn(move || sender.send(run()));
    match receiver.recv_timeout(PATIENCE) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => panic!("{what}: it hangs"),
        Err(RecvTimeoutError::Disconnected) => match runner.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(_) => unreachable!("a sender is dropped unused only by a panic"),
        },
    }
}

/// The seeds of a sweep: so many, or those that the environment names by `SEEDS` or `SEED`.
#[expect(clippy::disallowed_methods, reason = "the length of the sweep is the caller's choice")]
pub fn seeds(usual: u64) -> Range<u64> {
    let seeds = std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(usual);
    let first = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    first.map_or(0..seeds, |seed: u64| seed..seed + 1)
}

/// How often something must happen in this sweep, if it happens `count` times in the `usual` number of seeds. Fewer than 20
/// seeds need not meet it at all.
pub fn expected(count: u64, usual: u64) -> u64 {
    let seeds = seeds(usual);
    let seeds = seeds.end - seeds.start;
    if seeds < 20 { 0 } else { count * seeds / usual }
}
