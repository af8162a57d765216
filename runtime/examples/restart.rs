//! Starts a run that fails, and continues it from its checkpoint on another number of ranks.
#![expect(clippy::print_stdout, reason = "it is a program")]

use caribou::checkpoint::Settings;
use caribou::{Chunk, Config, Ctx, Error, Reducer, Report, Target};
use serde::{Deserialize, Serialize};

const COUNTERS: u32 = 8;

/// Counts the messages that go round a ring of chunks.
#[derive(Default, Serialize, Deserialize)]
struct Counter {
    count: u64,
}

/// Whether the chunks fail on purpose. True in the first run only.
struct Dies(bool);

impl Chunk for Counter {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.send((ctx.index() + 1) % COUNTERS, ());
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        self.count += 1;
        match self.count {
            // Without this call the first checkpoint would come after 10 minutes, the default.
            5_000 => ctx.checkpoint(),
            70_000 if ctx.service::<Dies>().0 => return ctx.fail("the machine is gone"),
            100_000 => return ctx.contribute(0, Reducer::Sum, vec![self.count], Target::Exit),
            _ => {}
        }
        ctx.send((ctx.index() + 1) % COUNTERS, ());
    }
}

fn run(config: Config, dies: bool) -> Result<Report, Error> {
    caribou::run(config, move |setup| {
        setup.service(Dies(dies));
        setup.array(COUNTERS, |_| Counter::default());
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::temp_dir().join(format!("caribou-restart-{}", std::process::id()));
    if let Err(error) = run(Config::from_env()?.ranks(2).checkpoint(Settings::new(&dir)), true) {
        println!("{error}");
    }
    // The second run has three ranks. A line on standard error names the checkpoint.
    let report = run(Config::from_env()?.ranks(3).restart(&dir), false)?;
    println!("{} messages in all", report.value::<Vec<u64>>()?[0]);
    std::fs::remove_dir_all(dir)?;
    Ok(())
}
