//! What writes a program's log may panic, on a broken pipe for one. That ends the run, and never leaves it hanging.

use std::sync::atomic::{AtomicI64, AtomicU8, Ordering::SeqCst};

use caribou::{Chunk, Config, Ctx, Error};
use caribou_tests::within_patience;
use serde::{Deserialize, Serialize};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Panics on events of this level and above, in the runtime's own threads, while it has patience left to lose.
struct Broken;

/// 1 for errors alone, 5 for everything.
static LEVEL: AtomicU8 = AtomicU8::new(0);
static TIMES: AtomicI64 = AtomicI64::new(0);

impl Subscriber for Broken {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("caribou")
    }

    fn event(&self, event: &Event<'_>) {
        let level = match *event.metadata().level() {
            Level::ERROR => 1,
            Level::WARN => 2,
            Level::INFO => 3,
            Level::DEBUG => 4,
            Level::TRACE => 5,
        };
        let ours = std::thread::current().name().is_some_and(|name| name.starts_with("caribou "));
        if ours && level <= LEVEL.load(SeqCst) && TIMES.fetch_sub(1, SeqCst) > 0 {
            panic!("a broken pipe");
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
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
    tracing::subscriber::set_global_default(Broken).expect("nobody else listens");
    for level in 1..=5 {
        for times in [1, 3, i64::MAX] {
            for (ranks, workers) in [(1, 1), (2, 1), (1, 2), (2, 2), (3, 1)] {
                let what = format!("level {level}, {times} times, {ranks} ranks x {workers}");
                let (config, its) = (Config::default().ranks(ranks).workers(workers), what.clone());
                let config = config.lb("rotate").expect("it is in the table");
                LEVEL.store(level, SeqCst);
                TIMES.store(times, SeqCst);
                let ended = within_patience(&what, move || {
                    caribou::run(config, |setup| {
                        setup.array(6, |_| Tired { syncs: 0 });
                    })
                });
                let Err(error) = ended else { panic!("{its}: no error") };
                let told = matches!(error, Error::HandlerPanicked { .. } | Error::System { .. });
                assert!(told, "{its}: {error}");
            }
            let config = Config::default().ranks(2).workers(2);
            TIMES.store(times, SeqCst);
            let ended = within_patience(&format!("a pool, level {level}, {times} times"), move || {
                caribou::pool(&config, 1000, || 0u64, |_, range| assert!(!range.contains(&700), "tired"))
            });
            assert!(ended.is_err());
        }
    }
    LEVEL.store(0, SeqCst);
}
