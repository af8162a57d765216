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
mod scratch;
mod sweep;

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use caribou::{Chunk, Config, Error, Extent, Placement, Report, Values};

pub use self::scratch::{Scratch, scratch};
pub use self::sweep::{Seeds, expected, seeds, simulated};

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

/// Runs a single array, placed in blocks.
pub fn run_array<C: Chunk>(
    config: Config,
    extent: impl Extent<C::Index> + Clone + Send + Sync,
    make: impl Fn(C::Index) -> C + Clone + Send + Sync + 'static,
) -> Result<Report, Error> {
    run_array_with(config, extent, Placement::Block, make)
}

/// The same [`with_timeout`].
pub fn run_array_in_time<C: Chunk>(
    what: &str,
    config: Config,
    extent: impl Extent<C::Index> + Clone + Send + Sync + 'static,
    make: impl Fn(C::Index) -> C + Clone + Send + Sync + 'static,
) -> Result<Report, Error> {
    with_timeout(what, move || run_array(config, extent, make))
}

/// Runs a single array with a placement.
pub fn run_array_with<C: Chunk>(
    config: Config,
    extent: impl Extent<C::Index> + Clone + Send + Sync,
    placement: Placement,
    make: impl Fn(C::Index) -> C + Clone + Send + Sync + 'static,
) -> Result<Report, Error> {
    caribou::run(config, move |setup| {
        setup.array_with(extent.clone(), placement.clone(), make.clone());
    })
}

/// Runs a single array, placed in blocks, whose chunks have a service.
pub fn run_array_with_service<C: Chunk>(
    config: Config,
    service: impl Clone + Send + Sync + 'static,
    extent: impl Extent<C::Index> + Clone + Send + Sync,
    make: impl Fn(C::Index) -> C + Clone + Send + Sync + 'static,
) -> Result<Report, Error> {
    caribou::run(config, move |setup| {
        setup.service(service.clone());
        setup.array(extent.clone(), make.clone());
    })
}

/// The settings of a run whose chunks move at syncs only, each 20 steps, by this strategy.
pub fn at_syncs(ranks: u32, lb: &str) -> Config {
    Config::default().ranks(ranks).period(20).lb(lb).expect("it is in the table")
}

/// The first number of a reduction of whole numbers.
pub fn whole_number(values: Values) -> u64 {
    let Values::U64(numbers) = values else { panic!("whole numbers are contributed, and not {values:?}") };
    numbers[0]
}
