//! Moves tokens among sites until no token has hops left. The program has no steps and makes no call to the balancer,
//! but its chunks are balanced.
//!
//! `CARIBOU_LB=none cargo run --release --example tokens` runs the program without balancing. To see the effect, run a
//! busy process on one of its vCPUs: `taskset -c 1 timeout 60 sh -c 'while :; do :; done' &`.

#![expect(clippy::print_stdout, reason = "it is a program")]

use caribou::{Chunk, Config, Ctx};
use serde::{Deserialize, Serialize};

const SITES: u64 = 512;
const TOKENS: u64 = 16_384;
const HOPS: u32 = 250;

/// The next number of a sequence that looks random (splitmix64).
fn next(number: u64) -> u64 {
    let mixed =
        (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9).wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 27
}

#[derive(Serialize, Deserialize)]
struct Site {
    work: Vec<u64>,
    /// The count of ended tokens and the sum of their numbers. Used by site 0 only.
    ended: (u64, u64),
}

#[derive(Serialize, Deserialize)]
enum Message {
    Token { number: u64, hops: u32 },
    Ended(u64),
}

impl Chunk for Site {
    type Index = u64;
    type Message = Message;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 0 {
            (0..TOKENS).for_each(|token| {
                ctx.send(next(token) % SITES, Message::Token { number: token, hops: HOPS });
            });
        }
    }

    fn receive(&mut self, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Token { number, hops } => {
                let times = 1 + number % 4;
                for _ in 0..times {
                    self.work.iter_mut().for_each(|cell| *cell = next(*cell));
                }
                let number = next(number);
                match hops {
                    0 => ctx.send(0, Message::Ended(number)),
                    _ => ctx.send(number % SITES, Message::Token { number, hops: hops - 1 }),
                }
            }
            Message::Ended(number) => {
                self.ended = (self.ended.0 + 1, self.ended.1.wrapping_add(number));
                if self.ended.0 == TOKENS {
                    ctx.exit_with(&self.ended.1);
                }
            }
        }
    }
}

fn main() -> Result<(), caribou::Error> {
    let report = caribou::run(Config::from_env()?, |setup| {
        setup.array(SITES, |site| Site { work: vec![site; 500], ended: (0, 0) });
    })?;
    println!(
        "{TOKENS} tokens have made {HOPS} hops each; the sum of their numbers is {}",
        report.value::<u64>()?
    );
    Ok(())
}
