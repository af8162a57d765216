//! A run that dies goes on from its last checkpoint, wherever its chunks were and whatever it was doing, with the result of a
//! run that was never disturbed.
//!
//! The rows of *What goes wrong* in docs/checkpoints.md, and what tests each:
//!
//! | fault | test |
//! |---|---|
//! | a process, its machine or `mpirun` is killed | `a_program_that_is_killed_at_any_moment_ends_with_the_right_result`; `tools/kills` |
//! | SIGTERM or SIGUSR1 | `a_signal_saves_the_state_and_the_same_command_goes_on_elsewhere` |
//! | the cloud takes the machine back; its service does not answer | `a_run_that_a_cloud_tells_to_end_goes_on_elsewhere_and_advice_makes_a_checkpoint` |
//! | a handler or an iteration panics | `a_pool_that_dies_counts_each_iteration_once_in_every_order_of_events` |
//! | no room, no permission, a file beyond the limit | `a_checkpoint_beyond_the_size_limit_of_files_is_not_made_and_the_run_goes_on` |
//! | the directory was removed | `a_directory_that_was_removed_is_locked_anew` |
//! | one process cannot read the checkpoint; a file was cut, changed or lost | `a_damaged_checkpoint_is_named_and_the_one_before_is_offered`, and here: hostile checkpoints, disks that lie |
//! | a checkpoint of another program, size or version | here: what is refused; `a_manifest_that_was_cut_is_damaged` |
//! | a run begins anew where another has left checkpoints | `a_run_that_begins_anew_where_another_left_checkpoints_says_so` |
//! | two runs in one directory | `two_runs_do_not_write_to_one_directory` |
//! | processes that do not see the same directory | `a_checkpoint_with_a_file_in_another_directory_is_not_completed` |

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use caribou::checkpoint::Settings;
use caribou::config::Period;
use caribou::supersteps::{Job, Parts, Supersteps, Then};
use caribou::{Chunk, Config, Ctx, Error, Halo, Halos, Reducer, ReplyTo, Setup, Target, Values};
use caribou_tests::{expected, scratch, seeds, simulated, whole_number, with_timeout};
use lz4_flex::frame::{FrameDecoder, FrameEncoder};
use rand::RngExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The tests here, for `cargo test`.
const SWEEP: &str = "--test runs checkpoints";
const CHUNKS: u32 = 12;
const STEPS: u64 = 120;
/// Chunks that are inserted on the way.
const LATE: u32 = 4;
/// Damaged checkpoints of a usual sweep.
const HOSTILE: u64 = 300;

/// The step at which a chunk ends the run with an error, if any.
#[derive(Clone, Copy)]
struct DiesAt(Option<u64>);

/// The step at which a chunk asks for a checkpoint, if any.
#[derive(Clone, Copy)]
struct AsksAt(Option<u64>);

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
                if step % 9 == 0 {
                    ctx.send_after(Duration::from_micros(step), Message::Answer(step << 16));
                }
                if step % 13 == 0 && me < LATE {
                    // Before step 60 the child does not exist.
                    ctx.send(100 + me, Message::ForChild(step));
                }
                if ctx.service::<AsksAt>().0 == Some(step) && me == 7 {
                    ctx.checkpoint();
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
        Message::Sum(whole_number(values))
    }
}

/// The digest of all chunks at the end.
fn mix(config: Config, dies_at: Option<u64>) -> Result<u64, Error> {
    mix_asking(config, dies_at, None)
}

/// The same, where a chunk asks for a checkpoint in a step.
fn mix_asking(config: Config, dies_at: Option<u64>, asks_at: Option<u64>) -> Result<u64, Error> {
    let report = with_timeout(&format!("{config:?}"), move || {
        caribou::run(config, move |setup| {
            setup.service(DiesAt(dies_at));
            setup.service(AsksAt(asks_at));
            setup.array(CHUNKS, Mixer::new);
        })
    })?;
    Ok(report.value::<Vec<u64>>().expect("it is a sum")[0])
}

/// The digest of a run in which nothing moves or dies.
fn undisturbed() -> u64 {
    mix(Config::default().ranks(1).lb("none").expect("it is there"), None).expect("nothing is wrong")
}

fn in_windows(config: Config, lb: &str) -> Config {
    config.lb(lb).expect("it is there").balance(Period::Every(Duration::from_micros(50)))
}

/// A run that dies at the first of these steps or iterations, and those that follow it, with checkpoints as often as possible;
/// restarted until none dies. Returns the result, and the number of restarts that found a checkpoint.
fn survive<T>(
    configs: impl IntoIterator<Item = Config>,
    dies_at: &[u64],
    run: impl Fn(Config, Option<u64>) -> Result<T, Error>,
    is_death: fn(&Error) -> bool,
) -> (T, u32) {
    let dir = scratch();
    let settings = Settings::new(&dir).every(Duration::from_millis(1)).keep(2);
    let (mut restarts, mut deaths) = (0, dies_at.iter());
    for config in configs {
        let config = config.checkpoint(settings.clone());
        let has_any = !caribou::checkpoint::list(&*dir).is_empty();
        restarts += u32::from(has_any);
        let config = if has_any { config.restart(&dir) } else { config };
        let what = format!("{config:?}");
        let dies_at = deaths.next().copied();
        match run(config, dies_at) {
            Ok(result) => return (result, restarts),
            Err(error) if dies_at.is_some() && is_death(&error) => {}
            Err(error) => panic!("{what}: {error}"),
        }
    }
    panic!("the last run does not die");
}

/// The program has failed by itself.
fn fails(error: &Error) -> bool {
    matches!(error, Error::Program { .. })
}

/// An iteration has panicked.
fn panics(error: &Error) -> bool {
    matches!(error, Error::Panicked { .. })
}

/// Changes, removes, repeats or inserts some of these bytes.
fn damage(bytes: &mut Vec<u8>, random: &mut impl RngExt) {
    for _ in 0..random.random_range(1..=3) {
        if bytes.is_empty() {
            return;
        }
        let at = random.random_range(0..bytes.len());
        let end = (at + random.random_range(1..=16)).min(bytes.len());
        match random.random_range(0..6) {
            0 => bytes[at] ^= 1 << random.random_range(0..8),
            1 => bytes[at..end].fill([0, 0x7f, 0xfb, 0xff][random.random_range(0..4)]),
            2 => drop(bytes.drain(at..end)),
            3 => bytes.truncate(at.max(1)),
            4 => {
                let part = bytes[at..end].to_vec();
                let to = random.random_range(0..bytes.len());
                bytes.splice(to..to, part);
            }
            _ => bytes[at..end].iter_mut().for_each(|byte| *byte = random.random_range(0..=255)),
        }
    }
}

/// Writes the manifest of a checkpoint anew, with the lengths and checksums that its files have now.
fn acknowledge(checkpoint: &Path) {
    let path = checkpoint.join("manifest");
    let text = fs::read_to_string(&path).expect("it is there");
    let line = text.lines().next().expect("it has two");
    let mut manifest: Value = serde_json::from_str(line).expect("it is JSON");
    let files = manifest["files"].as_array_mut().expect("there are some");
    for (rank, file) in files.iter_mut().enumerate() {
        let bytes = fs::read(checkpoint.join(format!("rank-{rank}"))).expect("it is there");
        let mut content = Vec::new();
        let length = FrameDecoder::new(&bytes[..]).read_to_end(&mut content);
        let content = length.map_or(file["content"].clone(), Value::from);
        *file = json!({ "bytes": bytes.len(), "crc": crc32fast::hash(&bytes), "content": content });
    }
    fs::write(path, with_checksum(manifest.to_string().into_bytes())).expect("it can be written");
}

/// A manifest with this first line, whose checksum is right.
fn with_checksum(mut manifest: Vec<u8>) -> Vec<u8> {
    manifest.truncate(manifest.iter().position(|&byte| byte == b'\n').unwrap_or(manifest.len()));
    let checksum = crc32fast::hash(&manifest);
    manifest.extend(format!("\n{checksum}\n").into_bytes());
    manifest
}

/// The content of a rank's file, and back.
fn unpack(file: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    FrameDecoder::new(file).read_to_end(&mut bytes).expect("it is as it was written");
    bytes
}

fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut frame = FrameEncoder::new(Vec::new());
    frame.write_all(bytes).expect("a vector takes all");
    frame.finish().expect("a vector takes all")
}

/// Damages a checkpoint of this program in many ways, and restarts it. A run ends with an error that names the file, with its
/// result, or as another program would.
fn restart_damaged<T: std::fmt::Debug>(
    name: &str,
    config: impl Fn(u64) -> Config,
    dies_at: u64,
    run: impl Fn(Config, Option<u64>) -> Result<T, Error>,
    is_death: fn(&Error) -> bool,
) {
    let dir = scratch();
    let settings = Settings::new(&dir).every(Duration::from_millis(1)).keep(1);
    let died = run(config(0).checkpoint(settings), Some(dies_at));
    assert!(died.as_ref().is_err_and(is_death), "{died:?}");
    let checkpoint = caribou::checkpoint::list(&*dir).remove(0);
    let names = ["rank-0", "rank-1", "manifest"].map(|name| checkpoint.join(name));
    let intact = names.each_ref().map(|name| fs::read(name).expect("it is there"));
    let (mut refused, mut others) = (0, 0);
    for seed in seeds(HOSTILE, SWEEP) {
        let mut random = caribou::random::stream(seed, 0);
        for (name, bytes) in names.iter().zip(&intact) {
            fs::write(name, bytes).expect("it can be written");
        }
        let victim = random.random_range(0..names.len());
        let mut bytes = intact[victim].clone();
        let is_acknowledged = random.random_ratio(7, 8);
        if victim < 2 && random.random_ratio(3, 4) {
            bytes = unpack(&bytes);
            damage(&mut bytes, &mut random);
            bytes = pack(&bytes);
        } else {
            damage(&mut bytes, &mut random);
        }
        if victim == 2 && is_acknowledged {
            bytes = with_checksum(bytes);
        }
        fs::write(&names[victim], bytes).expect("it can be written");
        if victim < 2 && is_acknowledged {
            acknowledge(&checkpoint);
        }
        match run(config(seed).restart(&checkpoint), None) {
            Err(Error::Config { why, .. }) => {
                assert!(why.contains("000"), "{name}, seed {seed}: it names no file: {why}");
                refused += 1;
            }
            // It is what its author wrote: another program.
            Ok(_) | Err(_) => others += 1,
        }
    }
    assert!(
        refused >= expected(101, HOSTILE) && others >= expected(1, HOSTILE),
        "{name}: {refused} {others}"
    );
}

#[test]
fn a_hostile_checkpoint_ends_a_run_with_an_error_or_not_at_all() {
    let config = |seed: u64| in_windows(simulated(seed).ranks(2), "rotate");
    restart_damaged("arrays", config, 60, mix, fails);
    let config = |seed| simulated(seed).ranks(2);
    restart_damaged("pool", config, 300, tally, panics);
    let cells = |config, dies_at| mix_cells(config, false, dies_at);
    restart_damaged("supersteps", |seed| config(seed + 3), 20, cells, panics);
}

#[test]
fn a_run_that_dies_goes_on_from_its_last_checkpoint_on_any_ranks() {
    let expected = undisturbed();
    let config = |ranks, workers, wire| {
        in_windows(Config::default().ranks(ranks).workers(workers).wire_always(wire), "rotate")
    };
    let mut all_restarts = 0;
    for ranks in [[2, 1, 3], [1, 4, 2], [3, 2, 2]] {
        for (workers, wire) in [(1, false), (2, true)] {
            let configs = ranks.map(|ranks| config(ranks, workers, wire));
            let (digest, restarts) = survive(configs, &[70, 100], mix, fails);
            assert_eq!(digest, expected, "{ranks:?}, {workers}, {wire}");
            all_restarts += restarts;
        }
    }
    assert!(all_restarts >= 6, "{all_restarts}");
}

#[test]
fn a_run_that_dies_goes_on_in_every_order_of_events() {
    let expected = undisturbed();
    let mut all_restarts = 0;
    for seed in seeds(40, SWEEP) {
        let config = |number: u64| {
            let ranks = 1 + (seed / (1 + number)) % 5;
            let config = simulated(seed + number).ranks(ranks as u32).wire_always(seed % 2 == 0);
            let lb = ["rotate", "random", "refine"][(seed % 3) as usize];
            in_windows(config, lb)
        };
        let dies_at = [30 + seed % 40, 60 + seed % 50];
        let (digest, restarts) = survive((0..3).map(config), &dies_at, mix, fails);
        assert_eq!(digest, expected);
        all_restarts += restarts;
    }
    assert!(2 * u64::from(all_restarts) >= caribou_tests::expected(40, 40), "{all_restarts}");
}

const ITERATIONS: u64 = 400;

/// The sum of numbers that only their indices decide, and how many there are. Iteration `dies_at` panics.
fn tally(config: Config, dies_at: Option<u64>) -> Result<(u64, u64), Error> {
    with_timeout(&format!("{config:?}"), move || {
        let outcome = caribou::pool(
            &config,
            ITERATIONS,
            || (0, 0),
            |(sum, count): &mut (u64, u64), range| {
                for index in range {
                    assert_ne!(Some(index), dies_at, "the power is off");
                    *sum += (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
                    *count += 1;
                }
            },
        )?;
        assert_eq!(outcome.report.iterations, ITERATIONS);
        Ok(outcome.result)
    })
}

#[test]
fn a_pool_that_dies_counts_each_iteration_once_in_every_order_of_events() {
    let expected = tally(Config::default().workers(1), None).expect("nothing is wrong");
    let mut all_restarts = 0;
    for seed in seeds(60, SWEEP) {
        let config = |number: u64| {
            let lb = ["leases", "static", "guided", "ruper", "leases,replicate=on"][(seed % 5) as usize];
            let config = simulated(seed + number).ranks(1 + ((seed + number) % 4) as u32);
            config.workers(1 + (seed / 3 % 3) as u32).lb(lb).expect("it is there")
        };
        let dies_at = [seed * 37 % ITERATIONS, seed * 101 % ITERATIONS];
        let (tally, restarts) = survive((0..3).map(config), &dies_at, tally, panics);
        assert_eq!(tally, expected);
        all_restarts += restarts;
    }
    assert!(2 * u64::from(all_restarts) >= caribou_tests::expected(60, 60), "{all_restarts}");
}

/// What a disk that lies leaves of the newest checkpoint when the machine dies. Sometimes nothing is wrong with it.
fn crash(dir: &Path, random: &mut impl RngExt) {
    let Some(newest) = caribou::checkpoint::list(dir).into_iter().next() else { return };
    let file = newest.join(["rank-0", "manifest"][random.random_range(0..2)]);
    // It may have crashed before.
    let Some(bytes) = fs::read(&file).ok().filter(|bytes| !bytes.is_empty()) else { return };
    let kept = random.random_range(0..bytes.len());
    match random.random_range(0..6) {
        // Torn: the rest was never written, or is zero.
        0 => fs::write(&file, &bytes[..kept]).expect("it can be written"),
        1 => fs::write(&file, [&bytes[..kept], &vec![0; bytes.len() - kept]].concat()).expect("it can be"),
        2 => fs::remove_file(&file).expect("it is there"),
        // The rename is lost.
        3 => fs::rename(&newest, newest.with_extension("partial")).expect("it is there"),
        _ => {}
    }
}

/// As [`survive`], on a disk that lies: restarts from the newest checkpoint that is whole, or begins anew.
fn survive_crashes<T>(
    seed: u64,
    config: impl Fn(u64) -> Config,
    dies_at: &[u64],
    run: impl Fn(Config, Option<u64>) -> Result<T, Error>,
    is_death: fn(&Error) -> bool,
) -> T {
    let dir = scratch();
    let mut random = caribou::random::stream(seed, 1);
    let settings = Settings::new(&dir).every(Duration::from_millis(1)).keep(2);
    let mut deaths = dies_at.iter();
    for number in 0.. {
        let config = config(number).checkpoint(settings.clone()).restart("auto");
        let dies_at = deaths.next().copied();
        match run(config, dies_at) {
            Ok(result) => return result,
            Err(error) if dies_at.is_some() && is_death(&error) => crash(&dir, &mut random),
            Err(Error::Config { why, .. }) if why.contains("repair or remove them") => {
                assert!(caribou::checkpoint::list(&*dir).len() <= 2, "seed {seed}: {why}");
                fs::remove_dir_all(&*dir).expect("it is there");
            }
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    unreachable!("the last run does not die");
}

#[test]
fn a_disk_that_lies_costs_time_and_nothing_else() {
    let simulated = |seed| simulated(seed).ranks(1 + (seed % 4) as u32);
    let mixed = mix(simulated(1), None).expect("nothing is wrong");
    let counted = tally(simulated(1), None).expect("nothing is wrong");
    let cells = |config, dies_at| mix_cells(config, false, dies_at);
    let computed = cells(simulated(1), None).expect("nothing is wrong");
    for seed in seeds(45, SWEEP) {
        let config = |number| simulated(seed + number).wire_always(seed % 2 == 0);
        match seed % 3 {
            0 => {
                let dies_at = [30 + seed % 40, 50 + seed % 50, 60 + seed % 60];
                assert_eq!(survive_crashes(seed, config, &dies_at, mix, fails), mixed);
            }
            1 => {
                let dies_at = [seed * 37 % ITERATIONS, seed * 101 % ITERATIONS];
                assert_eq!(survive_crashes(seed, config, &dies_at, tally, panics), counted);
            }
            _ => {
                let dies_at = [5 + seed % 20, 15 + seed % 25, 20 + seed % 30];
                assert_eq!(survive_crashes(seed, config, &dies_at, cells, panics), computed);
            }
        }
    }
}

#[test]
fn a_program_gets_the_checkpoint_that_it_asks_for() {
    let expected = mix(Config::default().simulate(1), None).expect("nothing is wrong");
    for ranks in 1..=4 {
        let dir = scratch();
        let config = Config::default().simulate(u64::from(ranks)).ranks(ranks);
        let asking = config.clone().checkpoint(Settings::new(&dir).every(Duration::from_secs(3600)));
        let died = mix_asking(asking, Some(90), Some(30));
        assert!(matches!(died, Err(Error::Program { .. })), "{died:?}");
        assert_eq!(caribou::checkpoint::list(&*dir).len(), 1);
        assert_eq!(mix(config.clone().restart(&dir), None), Ok(expected));
        assert_eq!(mix_asking(config, None, Some(30)), Ok(expected), "nobody makes checkpoints");
    }
}

/// A chunk of a ring that knows on which ranks it runs.
#[derive(Default, Serialize, Deserialize)]
struct Placed {
    step: u64,
    /// The rank on which it ran last before the run died.
    last_rank: u32,
    /// The rank on which it ran first in the run that does not die.
    first_rank: Option<u32>,
}

/// The step in which a chunk shrinks the run, if any.
#[derive(Clone, Copy)]
struct ShrinksAt(Option<u64>);

impl Chunk for Placed {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.send((ctx.index() + 1) % CHUNKS, ());
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        let (&DiesAt(dies_at), &ShrinksAt(shrinks_at)) = (ctx.service(), ctx.service());
        self.step += 1;
        // The second of two ranks begins with most of the work.
        ctx.charge(if ctx.index() < CHUNKS / 2 { 10_000 } else { 100_000 });
        match dies_at {
            Some(_) => self.last_rank = ctx.rank().0,
            None => _ = self.first_rank.get_or_insert(ctx.rank().0),
        }
        match self.step {
            step if Some(step) == shrinks_at => ctx.resize(1),
            100 if dies_at.is_some() => ctx.checkpoint(),
            step if Some(step) == dies_at => return ctx.fail("it dies"),
            STEPS_PLACED => {
                // Chunks that began elsewhere than they were, and chunks that were not at home, on two ranks.
                let first = self.first_rank.expect("it has run since");
                let home = u32::from(ctx.index() >= CHUNKS / 2);
                let [began_elsewhere, was_away] = [first != self.last_rank, self.last_rank != home];
                let counts = vec![u64::from(began_elsewhere), u64::from(was_away)];
                return ctx.contribute(0, Reducer::Sum, counts, Target::Exit);
            }
            _ => {}
        }
        ctx.send((ctx.index() + 1) % CHUNKS, ());
    }
}

const STEPS_PLACED: u64 = 200;

#[test]
fn chunks_restart_where_they_were_if_there_are_as_many_ranks() {
    let run = |config: Config, dies_at, shrinks_at| {
        let setup = move |setup: &mut Setup| {
            setup.service(DiesAt(dies_at));
            setup.service(ShrinksAt(shrinks_at));
            setup.array(CHUNKS, |_| Placed::default());
        };
        let report = with_timeout("chunks that are placed", move || caribou::run(config, setup))?;
        Ok::<Vec<u64>, Error>(report.value().expect("they are sums"))
    };
    let dir = scratch();
    let config = |ranks| {
        let period = Period::Every(Duration::from_millis(1));
        Config::default().simulate(7).ranks(ranks).balance(period)
    };
    let restart = |config: Config| {
        let counts = run(config.restart(&dir), None, None).expect("nothing is wrong");
        (counts[0], counts[1])
    };
    let begin = |shrinks_at| {
        let settings = Settings::new(&dir).every(Duration::from_secs(3600));
        let died = run(config(2).checkpoint(settings), Some(150), shrinks_at);
        assert!(matches!(died, Err(Error::Program { .. })), "{died:?}");
    };
    begin(None);
    let (elsewhere, away) = restart(config(2));
    assert!(elsewhere == 0 && away > 0, "{elsewhere} began elsewhere, {away} were not at home");
    assert!(restart(config(3)).0 > 0, "with other ranks all are at home");
    let fixed = config(2).lb("none").expect("it is there");
    assert_eq!(restart(fixed), (away, away), "`none` would move no chunk back");
    fs::remove_dir_all(&*dir).expect("it is there");
    begin(Some(1));
    let half = u64::from(CHUNKS / 2);
    assert_eq!(restart(config(2)), (half, half), "one rank was inactive");
}

#[test]
fn a_restart_with_another_setting_of_the_program_is_refused() {
    let dir = scratch();
    let config = |step: f64| Config::default().simulate(5).ranks(2).saved_with("timestep", step);
    let settings = Settings::new(&dir).every(Duration::from_millis(1));
    let died = mix(config(0.5).checkpoint(settings), Some(100));
    assert!(matches!(died, Err(Error::Program { .. })), "{died:?}");
    let why = mix(config(0.25).restart(&dir), None).expect_err("it has another step").to_string();
    assert!(why.contains("the setting `timestep` was 0.5 and is now 0.25"), "{why}");
    assert!(mix(config(0.5).restart(&dir), None).is_ok());
}

#[test]
fn the_time_of_a_restarted_run_begins_where_that_of_the_run_before_was() {
    let dir = scratch();
    let settings = Settings::new(&dir).every(Duration::from_millis(1)).keep(1000);
    let config = Config::default().simulate(3).ranks(2).checkpoint(settings);
    let time_of =
        |path: &Path| caribou::checkpoint::Saved::open(path).expect("its manifest is whole").elapsed();
    assert!(tally(config.clone(), Some(300)).is_err());
    let before = caribou::checkpoint::list(&*dir);
    assert!(tally(config.restart(&dir), None).is_ok());
    let mut after = caribou::checkpoint::list(&*dir);
    after.retain(|path| !before.contains(path));
    assert!(!after.is_empty() && after.iter().all(|path| time_of(path) > time_of(&before[0])));
}

#[test]
fn a_checkpoint_of_another_pool_is_refused() {
    let dir = scratch();
    let config = Config::default().simulate(3).ranks(2);
    let settings = Settings::new(&dir).every(Duration::from_millis(1));
    let died = tally(config.clone().checkpoint(settings), Some(300));
    assert!(matches!(died, Err(Error::Panicked { .. })), "{died:?}");
    let shorter = caribou::pool(&config.clone().restart(&dir), 10, || (0, 0), |_: &mut (u64, u64), _| {});
    let why = shorter.map(|_| ()).expect_err("it has fewer iterations").to_string();
    assert!(why.contains("a pool of 400 iterations") && why.contains("a pool of 10 iterations"), "{why}");
    let why = mix(config.restart(&dir), None).expect_err("it is no pool").to_string();
    assert!(why.contains("of another program: a pool of 400"), "{why}");
}

const CELLS: u64 = 23;

/// Cells that mix with their neighbours and with a digest that all share; where they are fixed, only the digest changes.
struct Cells {
    steps: u64,
    are_fixed: bool,
    dies_at: Option<u64>,
}

impl Supersteps for Cells {
    type Unit = u64;
    type Edge = u64;
    type Part = Vec<u64>;
    type Shared = (u64, u64);

    fn units(&self) -> u64 {
        CELLS
    }

    fn begin(&self) -> (u64, u64) {
        (0, 1)
    }

    fn unit(&self, number: u64) -> u64 {
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn edge(&self, cell: &u64) -> Option<u64> {
        Some(*cell)
    }

    fn changes(&self) -> bool {
        !self.are_fixed
    }

    fn compute(&self, job: Job<'_, Self>) -> Vec<u64> {
        assert!(self.dies_at.is_none_or(|step| job.step < step), "the power is off");
        let mut before = job.before.copied().unwrap_or(7);
        let mut mixed = Vec::new();
        for at in 0..job.data.len() {
            let after = job.data.get(at + 1).or(job.after).copied().unwrap_or(7);
            let old = job.data[at];
            let sides = before ^ after.rotate_left(3) ^ job.step;
            mixed.push((old.rotate_left(9) ^ sides).wrapping_mul(job.shared.1 | 1));
            before = old;
        }
        if !self.are_fixed {
            job.data.copy_from_slice(&mixed);
        }
        mixed
    }

    fn combine(&self, (steps, digest): &mut (u64, u64), parts: Parts<'_, Vec<u64>>) -> Then {
        for cell in parts.flat_map(|(_, cells)| cells) {
            *digest = digest.rotate_left(5).wrapping_add(*cell);
        }
        *steps += 1;
        if *steps == self.steps { Then::End } else { Then::Step }
    }

    fn collects(&self) -> bool {
        true
    }
}

/// The shared data and the cells at the end.
fn mix_cells(config: Config, are_fixed: bool, dies_at: Option<u64>) -> Result<((u64, u64), Vec<u64>), Error> {
    with_timeout(&format!("{config:?}"), move || {
        let outcome = caribou::supersteps(&config, Cells { steps: 40, are_fixed, dies_at })?;
        Ok((outcome.shared, outcome.units))
    })
}

#[test]
fn a_program_in_supersteps_that_dies_goes_on_from_a_step_with_any_number_of_workers() {
    let expected = [false, true].map(|are_fixed| {
        let config = Config::default().simulate(1).ranks(1);
        mix_cells(config, are_fixed, None).expect("nothing is wrong")
    });
    let mut all_restarts = 0;
    for seed in seeds(60, SWEEP) {
        let config = |number: u64| {
            let lb = ["equal", "load-factor,every=3", "replicate,copies=2", "des", "adaptive"]
                [(seed % 5) as usize];
            let config = simulated(seed + number).ranks(1 + ((seed + number) % 4) as u32);
            config.wire_always(seed % 2 == 0).lb(lb).expect("it is there")
        };
        let are_fixed = seed % 3 == 0;
        let run = |config, dies_at| mix_cells(config, are_fixed, dies_at);
        let dies_at = [5 + seed % 20, 15 + seed % 25];
        let (mixed, restarts) = survive((0..3).map(config), &dies_at, run, panics);
        assert_eq!(mixed, expected[usize::from(are_fixed)]);
        all_restarts += restarts;
    }
    assert!(u64::from(all_restarts) >= caribou_tests::expected(60, 60), "{all_restarts}");
}

#[test]
fn a_checkpoint_of_other_supersteps_is_refused() {
    let dir = scratch();
    let config = Config::default().simulate(3).ranks(2);
    let settings = Settings::new(&dir).every(Duration::from_millis(1));
    let died = mix_cells(config.clone().checkpoint(settings), false, Some(20));
    assert!(matches!(died, Err(Error::Panicked { .. })), "{died:?}");
    let refused = |why: Option<Error>, part: &str| {
        let why = why.expect("it is another program").to_string();
        assert!(why.contains("`Cells` in supersteps, of 23 units `u64`") && why.contains(part), "{why}");
    };
    refused(mix_cells(config.clone().restart(&dir), true, None).err(), "this is `Cells` in supersteps");
    refused(mix(config.clone().restart(&dir), None).err(), "of another program");
    refused(tally(config.restart(&dir), None).err(), "this is a pool");
}
