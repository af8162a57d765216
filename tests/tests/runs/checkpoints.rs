//! A run that dies goes on from its last checkpoint, wherever its chunks were and whatever it was doing, with the result of a
//! run that was never disturbed.

use std::path::PathBuf;
use std::time::Duration;

use caribou::checkpoint::Settings;
use caribou::{Chunk, Config, Ctx, Error, Halo, Halos, Reducer, ReplyTo, Target, Values};
use caribou_tests::with_timeout;
use serde::{Deserialize, Serialize};

const CHUNKS: u32 = 12;
const STEPS: u64 = 120;
/// Chunks that are inserted on the way.
const LATE: u32 = 4;

/// The step at which a chunk ends the run with an error, if any.
#[derive(Clone, Copy)]
struct DiesAt(Option<u64>);

/// A chunk of a ring that mixes its number with those of its neighbours. On the way it takes part in reductions, some of which
/// come back, gets broadcasts, asks chunk 0 a question, and inserts a child.
#[derive(Serialize, Deserialize)]
struct Mixer {
    value: u64,
    halos: Halos<u64>,
    sums: Vec<u64>,
    told: Vec<u64>,
    /// The sum of all answers: they come in any order.
    answers: u64,
    /// A child has no neighbours: it answers its parent.
    is_child: bool,
}

#[derive(Serialize, Deserialize)]
enum Message {
    Halo(Halo<u64>),
    Told(u64),
    Sum(u64),
    Question(u64, ReplyTo<Message>),
    Answer(u64),
    ForChild(u64),
    Quiet,
    End,
}

impl Mixer {
    fn new(index: u32) -> Mixer {
        let value = u64::from(index).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (sums, told) = (Vec::new(), Vec::new());
        Mixer { value, halos: Halos::new(2), sums, told, answers: 0, is_child: false }
    }

    fn greet(&self, ctx: &mut Ctx<'_, Self>) {
        let me = ctx.index();
        ctx.send((me + 1) % CHUNKS, Message::Halo(self.halos.halo(0, self.value)));
        ctx.send((me + CHUNKS - 1) % CHUNKS, Message::Halo(self.halos.halo(1, self.value)));
    }

    /// Everything that the chunk knows.
    fn digest(&self) -> u64 {
        let all = self.sums.iter().chain(&self.told).chain([&self.answers]);
        all.fold(self.value, |digest, number| {
            (digest.rotate_left(9) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        })
    }
}

impl Chunk for Mixer {
    type Index = u32;
    type Message = Message;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if self.is_child {
            return ctx.leave_reductions();
        }
        self.greet(ctx);
        if ctx.index() == 0 {
            ctx.send_at_quiescence(0, Message::Quiet);
        }
    }

    fn ready(&self, message: &Message) -> bool {
        !matches!(message, Message::Halo(halo) if !self.halos.expects(halo))
    }

    fn receive(&mut self, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Halo(halo) => {
                let Some(sides) = self.halos.add(halo) else { return };
                let mixed = sides.into_iter().fold(self.value, |value, side| value.rotate_left(7) ^ side);
                self.value = mixed.wrapping_mul(0x2545_f491_4f6c_dd1d);
                let (step, me) = (self.halos.step(), ctx.index());
                ctx.charge(20_000);
                if ctx.service::<DiesAt>().0 == Some(step) && me == 5 {
                    return ctx.fail("the power is off");
                }
                if step % 5 == 0 {
                    ctx.contribute(1, Reducer::WrappingSum, vec![self.value], Target::All);
                }
                if step % 7 == 0 {
                    let reply = ctx.reply_to_self();
                    ctx.send(0, Message::Question(self.value, reply));
                }
                if me == 3 && step % 11 == 0 {
                    ctx.broadcast(&Message::Told(self.value));
                }
                if step == 60 && me < LATE {
                    ctx.insert(100 + me, Mixer { is_child: true, ..Mixer::new(100 + me) });
                }
                if step % 13 == 0 && me < LATE {
                    // Before step 60 the child does not exist.
                    ctx.send(100 + me, Message::ForChild(step));
                }
                if step < STEPS {
                    self.greet(ctx);
                }
            }
            Message::Told(value) if !self.is_child => self.told.push(value),
            Message::Told(_) => {}
            Message::Sum(sum) => self.sums.push(sum),
            Message::Question(value, reply) => ctx.reply(&reply, Message::Answer(value.wrapping_mul(3))),
            Message::Answer(answer) => self.answers = self.answers.wrapping_add(answer),
            Message::ForChild(step) => ctx.send(ctx.index() - 100, Message::Answer(step << 32)),
            Message::Quiet => ctx.broadcast(&Message::End),
            Message::End if self.is_child => {}
            Message::End => ctx.contribute(2, Reducer::WrappingSum, vec![self.digest()], Target::Exit),
        }
    }

    fn reduced(_: u32, values: Values) -> Message {
        let Values::U64(sum) = values else { unreachable!("sums are contributed") };
        Message::Sum(sum[0])
    }
}

/// The digest of all chunks at the end.
fn mix(config: Config, dies_at: Option<u64>) -> Result<u64, Error> {
    let what = format!("{config:?}");
    let report = with_timeout(&what, move || {
        caribou::run(config, move |setup| {
            setup.service(DiesAt(dies_at));
            setup.array(CHUNKS, Mixer::new);
        })
    })?;
    Ok(report.value::<Vec<u64>>().expect("it is a sum")[0])
}

fn directory(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("caribou-checkpoints-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    dir
}

/// A run that dies at this step, and all that follow it, with checkpoints as often as possible; restarted until none dies.
/// Returns the digest, and the number of restarts that found a checkpoint.
fn survive(dir: &PathBuf, configs: impl IntoIterator<Item = Config>, dies_at: &[u64]) -> (u64, u32) {
    let settings = Settings::new(dir).every(Duration::from_millis(1)).keep(2);
    let (mut restarts, mut deaths) = (0, dies_at.iter());
    for config in configs {
        let config = config.checkpoint(settings.clone());
        let is_whole = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
        let has_any = std::fs::read_dir(dir).is_ok_and(|mut entries| {
            entries.any(|entry| entry.is_ok_and(|entry| is_whole(&entry.file_name().to_string_lossy())))
        });
        restarts += u32::from(has_any);
        let config = if has_any { config.restart(dir) } else { config };
        let what = format!("{config:?}");
        let dies_at = deaths.next().copied();
        match mix(config, dies_at) {
            Ok(digest) => return (digest, restarts),
            Err(Error::Program { .. }) if dies_at.is_some() => {}
            Err(error) => panic!("{what}: {error}"),
        }
    }
    panic!("the last run does not die");
}

#[test]
fn a_run_that_dies_goes_on_from_its_last_checkpoint_on_any_ranks() {
    let expected =
        mix(Config::default().ranks(1).lb("none").expect("it is there"), None).expect("nothing is wrong");
    let dir = directory("threads");
    let config = |ranks, workers, wire| {
        let config = Config::default().ranks(ranks).workers(workers).wire_always(wire);
        config
            .lb("rotate")
            .expect("it is there")
            .balance(caribou::config::Period::Every(Duration::from_micros(50)))
    };
    let mut all_restarts = 0;
    for ranks in [[2, 1, 3], [1, 4, 2], [3, 2, 2]] {
        for (workers, wire) in [(1, false), (2, true)] {
            let configs = ranks.map(|ranks| config(ranks, workers, wire));
            let (digest, restarts) = survive(&dir, configs, &[70, 100]);
            assert_eq!(digest, expected, "{ranks:?}, {workers}, {wire}");
            all_restarts += restarts;
            std::fs::remove_dir_all(&dir).expect("it is there");
        }
    }
    assert!(all_restarts >= 6, "{all_restarts}");
}

#[test]
fn a_run_that_dies_goes_on_in_every_order_of_events() {
    let expected =
        mix(Config::default().ranks(1).lb("none").expect("it is there"), None).expect("nothing is wrong");
    let dir = directory("seeds");
    let mut all_restarts = 0;
    for seed in caribou_tests::seeds(40) {
        let config = |number: u64| {
            let ranks = 1 + (seed / (1 + number)) % 5;
            let config =
                Config::default().simulate(seed + number).ranks(ranks as u32).wire_always(seed % 2 == 0);
            let lb = ["rotate", "random", "refine"][(seed % 3) as usize];
            config
                .lb(lb)
                .expect("it is there")
                .balance(caribou::config::Period::Every(Duration::from_micros(50)))
        };
        let (digest, restarts) = survive(&dir, (0..3).map(config), &[30 + seed % 40, 60 + seed % 50]);
        assert_eq!(
            digest, expected,
            "seed {seed}: SEED={seed} cargo test -p caribou-tests --test runs checkpoints"
        );
        all_restarts += restarts;
        let _ = std::fs::remove_dir_all(&dir);
    }
    assert!(all_restarts >= 20, "{all_restarts}");
}
