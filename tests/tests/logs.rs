//! A program's log may panic, on a broken pipe for one. That ends the run, and never leaves it hanging.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::SeqCst};

use caribou::{Chunk, Config, Ctx, Error};
use caribou_tests::events::listen;
use caribou_tests::{run_array_in_time, with_timeout};
use serde::{Deserialize, Serialize};
use tracing::{Level, Metadata};

/// From the severest; what is told of at the first so many panics.
const LEVELS: [Level; 5] = [Level::ERROR, Level::WARN, Level::INFO, Level::DEBUG, Level::TRACE];
static BROKEN: AtomicUsize = AtomicUsize::new(0);
/// Number of times so far.
static TIMES: AtomicI64 = AtomicI64::new(0);

/// Panics in the runtime's own threads.
fn panic_if_broken(metadata: &Metadata<'_>, _: &[(&str, String)]) {
    let ours = std::thread::current().name().is_some_and(|name| name.starts_with("caribou "));
    let broken = LEVELS[..BROKEN.load(SeqCst)].contains(metadata.level());
    if ours && broken && TIMES.fetch_sub(1, SeqCst) > 0 {
        panic!("a broken pipe");
    }
}

/// Comes to two syncs, after which one panics.
#[derive(Serialize, Deserialize)]
struct Tired {
    syncs: u32,
}

impl Chunk for Tired {
    type Index = u32;
    type Message = ();

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.syncs += 1;
        assert!(self.syncs < 2 || ctx.index() != 5, "tired");
        self.start(ctx);
    }

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.at_sync();
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
}

#[test]
fn a_log_that_panics_ends_the_run() {
    listen(|metadata| metadata.target().starts_with("caribou"), panic_if_broken);
    for level in 1..=LEVELS.len() {
        for times in [1, 3, i64::MAX] {
            for (ranks, workers) in [(1, 1), (2, 1), (1, 2), (2, 2), (3, 1)] {
                let what = format!("level {level}, {times} times, {ranks} ranks x {workers}");
                let (config, its) = (Config::default().ranks(ranks).workers(workers), what.clone());
                let config = config.lb("rotate").expect("it is in the table");
                BROKEN.store(level, SeqCst);
                TIMES.store(times, SeqCst);
                let ended = run_array_in_time(&what, config, 6, |_| Tired { syncs: 0 });
                let Err(error) = ended else { panic!("{its}: no error") };
                let told = matches!(
                    error,
                    Error::HandlerPanicked { .. } | Error::Panicked { .. } | Error::System { .. }
                );
                assert!(told, "{its}: {error}");
            }
            let config = Config::default().ranks(2).workers(2);
            TIMES.store(times, SeqCst);
            let ended = with_timeout(&format!("a pool, level {level}, {times} times"), move || {
                caribou::pool(&config, 1000, || 0u64, |_, range| assert!(!range.contains(&700), "tired"))
            });
            assert!(ended.is_err());
        }
    }
    BROKEN.store(0, SeqCst);
}
