//! Several workers of one rank: what they share gets lost or doubled nowhere.

use caribou::{Chunk, Config, Ctx, Reducer, Target, Values};
use caribou_tests::within_patience;
use serde::{Deserialize, Serialize};

/// Writes to its mirror image, and waits for it to write.
#[derive(Serialize, Deserialize)]
struct Mirror {
    chunks: u32,
    /// Letters to come.
    rounds: u32,
}

#[derive(Serialize, Deserialize)]
enum Message {
    Letter,
    Everybody(u64),
}

impl Mirror {
    fn write(&self, ctx: &mut Ctx<'_, Self>) {
        ctx.send(self.chunks - 1 - ctx.index(), Message::Letter);
    }
}

impl Chunk for Mirror {
    type Index = u32;
    type Message = Message;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.write(ctx);
    }

    fn receive(&mut self, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Letter => {
                self.rounds -= 1;
                match self.rounds {
                    0 => ctx.contribute(0, Reducer::Sum, vec![1u64], Target::Chunk(0)),
                    _ => self.write(ctx),
                }
            }
            Message::Everybody(chunks) => {
                assert_eq!(chunks, u64::from(self.chunks));
                ctx.exit();
            }
        }
    }

    fn reduced(_: u32, values: Values) -> Message {
        let Values::U64(sum) = values else { panic!("chunks contribute whole numbers") };
        Message::Everybody(sum[0])
    }
}

/// Deliveries of the run.
fn mirror(workers: u32, chunks: u32, rounds: u32) -> u64 {
    let config = Config::default().ranks(1).workers(workers).measure(false);
    let what = format!("{workers} workers, {chunks} chunks");
    let report = within_patience(&what, move || {
        caribou::run(config, |setup| {
            setup.array(chunks, move |_| Mirror { chunks, rounds });
        })
    });
    report.unwrap_or_else(|error| panic!("{what}: {error}")).messages
}

#[test]
fn a_chunk_that_starts_early_reaches_chunks_that_have_not_started() {
    // The first worker hands out the chunks one by one; the second one must not run ahead of it.
    for chunks in [1_000, 10_000, 100_000] {
        assert_eq!(mirror(2, chunks, 1), 2 * u64::from(chunks) + 1);
    }
}

#[test]
fn workers_that_steal_from_each_other_lose_nothing() {
    for workers in [2, 3, 4] {
        for chunks in [4, 16, 64] {
            assert_eq!(mirror(workers, chunks, 500), u64::from(chunks) * 501 + 1);
        }
    }
}
