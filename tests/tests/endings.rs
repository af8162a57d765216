//! The end of a run reaches every rank and worker, whatever else is under way.

use std::thread;
use std::time::Duration;

use caribou::{Chunk, Config, Ctx, Error};
use caribou_tests::within_patience;
use serde::{Deserialize, Serialize};

/// How a run ends.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Ending {
    Exit,
    Panic,
}

/// Chunk `ends` floods all others with messages and ends the run in the same handler.
#[derive(Serialize, Deserialize)]
struct Flooder {
    ends: u32,
    ending: Ending,
    messages: u32,
    pause_ms: u32,
}

impl Chunk for Flooder {
    type Index = u32;
    type Message = u64;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() != self.ends {
            // Nobody reads while the flood rises.
            return thread::sleep(Duration::from_millis(u64::from(self.messages / 2_000)));
        }
        for number in 0..self.messages {
            ctx.send(number % CHUNKS, u64::from(number));
        }
        // By now all other workers may sleep.
        thread::sleep(Duration::from_millis(u64::from(self.pause_ms)));
        match self.ending {
            Ending::Exit => ctx.exit(),
            Ending::Panic => {
                // What a handler has flushed is sent even if it does not return.
                ctx.flush();
                panic!("flooded");
            }
        }
    }

    fn receive(&mut self, _: u64, _: &mut Ctx<'_, Self>) {}
}

const CHUNKS: u32 = 12;

fn flood(ranks: u32, workers: u32, ends: u32, ending: Ending, messages: u32, pause_ms: u32) {
    let what =
        format!("{ranks} ranks x {workers} workers, chunk {ends}, {ending:?} after {messages} messages");
    let config = Config::default().ranks(ranks).workers(workers);
    let result = within_patience(&what, move || {
        caribou::run(config, |setup| {
            setup.array(CHUNKS, move |_| Flooder { ends, ending, messages, pause_ms });
        })
    });
    match (ending, result) {
        (Ending::Exit, Ok(_)) | (Ending::Panic, Err(Error::HandlerPanicked { .. })) => {}
        (_, other) => panic!("{what}: {other:?}"),
    }
}

/// Ends the run in every chunk in turn, often: which worker runs it, and what the others do then, is a matter of luck.
fn end_everywhere(ending: Ending) {
    for (ranks, workers) in [(1, 1), (3, 1), (1, 3), (2, 2), (3, 2)] {
        for (ends, pause_ms) in (0..CHUNKS).cycle().zip([0, 2, 4].into_iter().cycle()).take(36) {
            flood(ranks, workers, ends, ending, 0, pause_ms);
        }
    }
}

#[test]
fn every_worker_of_every_rank_can_end_the_run() {
    end_everywhere(Ending::Exit);
}

#[test]
fn a_panic_of_every_worker_of_every_rank_ends_the_run() {
    end_everywhere(Ending::Panic);
}

#[test]
fn an_exit_does_not_get_stuck_behind_messages_that_nobody_will_read() {
    [0, CHUNKS - 1].into_iter().for_each(|ends| flood(2, 1, ends, Ending::Exit, 20_000, 0));
}

#[test]
fn a_panic_does_not_get_stuck_behind_messages_that_nobody_will_read() {
    [0, CHUNKS - 1].into_iter().for_each(|ends| flood(2, 1, ends, Ending::Panic, 20_000, 0));
}
