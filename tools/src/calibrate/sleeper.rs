//! Two chunks on two ranks, one of which computes for so long that the other's worker sleeps before the message comes.

use std::time::Duration;

use caribou::{Chunk, Config, Ctx, Error, Placement, Reducer, Target};
use serde::{Deserialize, Serialize};

/// Time from one message to the next, ns. Workers spin for 0.25 ms at most.
const PAUSE_NS: u64 = 2_000_000;

#[derive(Serialize, Deserialize)]
struct Sleeper {
    left: u32,
    latencies_ns: Vec<u64>,
}

/// Sends messages to a rank that sleeps. Returns the latency of each, ns.
pub(super) fn latencies_ns(config: Config, messages: u32) -> Result<Vec<u64>, Error> {
    let report = caribou::run(config.ranks(2).workers(1).period(0), move |setup| {
        setup.array_with(2u32, Placement::Block, move |_| Sleeper {
            left: messages,
            latencies_ns: Vec::new(),
        });
    })?;
    report.value()
}

impl Chunk for Sleeper {
    type Index = u32;
    /// When the message was sent, ns of the run. Chunk 0 sends itself messages of time 0.
    type Message = u64;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 0 {
            ctx.contribute(0, Reducer::Max, vec![0u64; self.left as usize], Target::Exit);
            ctx.send(0, 0);
        }
    }

    fn receive(&mut self, sent_ns: u64, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 0 {
            let end_ns = ctx.elapsed_ns() + PAUSE_NS;
            while ctx.elapsed_ns() < end_ns {
                std::hint::spin_loop();
            }
            ctx.send(1, ctx.elapsed_ns());
            self.left -= 1;
            if self.left > 0 {
                ctx.send_after(Duration::ZERO, 0);
            }
            return;
        }
        self.latencies_ns.push(ctx.elapsed_ns().saturating_sub(sent_ns));
        if self.latencies_ns.len() == self.left as usize {
            ctx.contribute(0, Reducer::Max, std::mem::take(&mut self.latencies_ns), Target::Exit);
        }
    }
}
