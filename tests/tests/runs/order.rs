//! Messages between the same two chunks arrive in the order in which they were sent, also if the receiver was not ready
//! for them, and also if both migrate meanwhile.

use caribou::{Chunk, Config, Ctx, Reducer, Target, Values};
use caribou_tests::{run_array, run_array_in_time};
use serde::{Deserialize, Serialize};

const CHUNKS: u32 = 7;
const STEPS: u64 = 12;
/// Messages from each to each in a step.
const BURST: u64 = 5;

/// Writes a burst to everybody in every step.
#[derive(Serialize, Deserialize)]
struct Correspondent {
    step: u64,
    heard: u64,
    /// The next number expected of each sender.
    next: [u64; CHUNKS as usize],
}

#[derive(Serialize, Deserialize)]
enum Message {
    Numbered { from: u32, step: u64, number: u64 },
    Done,
}

impl Chunk for Correspondent {
    type Index = u32;
    type Message = Message;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        let (from, step) = (ctx.index(), self.step);
        for number in step * BURST..(step + 1) * BURST {
            (0..CHUNKS).for_each(|to| ctx.send(to, Message::Numbered { from, step, number }));
        }
        // Some are far ahead of others, so that messages have to be kept.
        ctx.charge(u64::from(from) * 100_000);
    }

    fn ready(&self, message: &Message) -> bool {
        !matches!(message, Message::Numbered { step, .. } if *step != self.step)
    }

    fn receive(&mut self, message: Message, ctx: &mut Ctx<'_, Self>) {
        let Message::Numbered { from, number, .. } = message else { return ctx.exit() };
        let next = &mut self.next[from as usize];
        assert_eq!(*next, number, "chunk {} expects message {next} of chunk {from}", ctx.index());
        *next += 1;
        self.heard += 1;
        if self.heard < u64::from(CHUNKS) * BURST {
            return;
        }
        (self.heard, self.step) = (0, self.step + 1);
        if self.step == STEPS {
            ctx.contribute(0, Reducer::Sum, vec![1u64], Target::Chunk(0));
        } else if ctx.sync_due(self.step) {
            ctx.at_sync();
        } else {
            self.start(ctx);
        }
    }

    fn reduced(_: u32, _: Values) -> Message {
        Message::Done
    }
}

#[test]
fn messages_of_a_pair_keep_their_order() {
    for (ranks, workers, lb, wire) in [
        (1, 1, "none", false),
        (1, 3, "none", false),
        (3, 1, "none", false),
        (3, 1, "rotate", false),
        (3, 1, "rotate", true),
        (2, 2, "random", false),
        (3, 2, "random", true),
        (2, 1, "refine", false),
    ] {
        for _ in 0..5 {
            let config = Config::default().ranks(ranks).workers(workers).period(2).wire_always(wire);
            let config = config.lb(lb).expect("it is in the table");
            let what = format!("{config:?}");
            let make = |_| Correspondent { step: 0, heard: 0, next: [0; CHUNKS as usize] };
            let report = run_array_in_time(&what, config, CHUNKS, make);
            report.unwrap_or_else(|error| panic!("{what}: {error}"));
        }
    }
}

/// Its second chunk writes to the first before, between and behind effects, and is removed.
#[derive(Serialize, Deserialize)]
struct Leaver {
    heard: Vec<u32>,
}

impl Chunk for Leaver {
    type Index = u32;
    type Message = u32;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute(0, Reducer::Sum, vec![1u64], Target::Chunk(0));
        if ctx.index() == 1 {
            ctx.send(0, 1);
            ctx.contribute(1, Reducer::Sum, vec![1u64], Target::Chunk(0));
            (2..4).for_each(|number| ctx.send(0, number));
            ctx.remove();
            ctx.send(0, 4);
        }
    }

    fn reduced(_: u32, _: Values) -> u32 {
        0
    }

    fn receive(&mut self, number: u32, ctx: &mut Ctx<'_, Self>) {
        self.heard.extend((number > 0).then_some(number));
        if self.heard.len() == 4 {
            ctx.exit_with(&self.heard);
        }
    }
}

#[test]
fn letters_before_between_and_behind_effects_leave_in_order() {
    for (ranks, workers) in [(1, 1), (1, 2), (2, 1)] {
        let report =
            run_array(Config::default().ranks(ranks).workers(workers), 2, |_| Leaver { heard: Vec::new() });
        assert_eq!(report.unwrap().value::<Vec<u32>>().unwrap(), [1, 2, 3, 4], "{ranks} x {workers}");
    }
}
