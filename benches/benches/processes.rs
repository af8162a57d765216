//! What does it cost to leave the process?
//!
//! Two processes of an MPI job, chunks on each, against raw MPI between the same processes, in turn in one run:
//!
//! | question | raw MPI | Caribou |
//! |---|---|---|
//! | latency, 8 bytes, one way | `MPI_Send` and `MPI_Recv`, there and back | a message from chunk to chunk, there and back |
//! | rate, small messages one way | 64 `MPI_Isend` or `MPI_Irecv` at a time, an acknowledgement of 1024 | one chunk sends another 1024, an acknowledgement |
//! | exchange, small messages both ways | 64 `MPI_Isend` and 64 `MPI_Irecv` at a time, on both sides | 128 chunks pass 128 tokens on, each to a chunk of the other process |
//! | 1 MiB, one way | `MPI_Send` and `MPI_Recv`, there and back | an `Arc<Vec<u8>>` in a message, there and back |
//!
//! The first question is that of `ring --chunks 2 --placement round-robin`, the third that of `ring --chunks 128
//! --tokens 128 --placement round-robin`: a message that is one of many costs its chunk a turn of its own there, where the
//! second hands 1024 to a chunk that is running already.
//!
//! Caribou's chunks are measured and profiled as by default, and then neither.
//!
//! Started plainly it starts itself again under `mpirun -n 2` (another one: `MPIRUN`). An argument selects
//! one question: `latency`, `rate`, `exchange` or `large`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark reports to who started it")]

use std::cell::RefCell;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use caribou::{Chunk, Config, Ctx, Placement, Runtime};
use caribou_benches::figures::figure;
use caribou_benches::{Contender, Setting, Spread, in_turn, seconds};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Equivalence, Source};
use serde::{Deserialize, Serialize};

const ROUNDS: usize = 9;
const TRIPS: u32 = 20_000;
const BURSTS: u32 = 200;
const BURST: u32 = 1024;
const HOPS: u32 = 2_000;
const LARGE_TRIPS: u32 = 200;
const LARGE_BYTES: usize = 1 << 20;
/// Raw sends that are under way together.
const WINDOW: usize = 64;

/// Chunks, and tokens, where messages go both ways: so many that a window of them is on its way in each direction.
const CHUNKS: u32 = 2 * WINDOW as u32;

/// One of the chunks. What is asked for comes from chunk 0, which counts and keeps the time.
#[derive(Serialize, Deserialize)]
struct Side {
    job: Job,
    begun_ns: u64,
    left: u32,
    heard: u32,
}

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
enum Job {
    Latency,
    Rate,
    Exchange,
    Large,
}

#[derive(Serialize, Deserialize)]
enum Message {
    Hello,
    Ping(u64),
    Item(u64),
    Heard,
    /// So many hops are left.
    Token(u32),
    Arrived,
    Load(#[serde(with = "caribou::bulk")] Arc<Vec<u8>>),
}

impl Job {
    fn chunks(self) -> u32 {
        if self == Job::Exchange { CHUNKS } else { 2 }
    }
}

impl Side {
    fn new(job: Job) -> Side {
        let left = match job {
            Job::Latency => TRIPS,
            Job::Rate => BURSTS,
            Job::Exchange => 1,
            Job::Large => LARGE_TRIPS,
        };
        Side { job, begun_ns: 0, left, heard: 0 }
    }

    /// Chunk 0 sends the next, or ends the run.
    fn next(&mut self, load: Option<Arc<Vec<u8>>>, ctx: &mut Ctx<'_, Self>) {
        if self.left == 0 {
            let took_ns = ctx.elapsed_ns() - self.begun_ns;
            ctx.service::<Arc<AtomicU64>>().store(took_ns, Ordering::Relaxed);
            return ctx.exit();
        }
        self.left -= 1;
        match self.job {
            Job::Exchange => (0..CHUNKS).for_each(|chunk| ctx.send(chunk, Message::Token(HOPS))),
            Job::Latency => ctx.send(1, Message::Ping(u64::from(self.left))),
            Job::Rate => {
                for item in 0..BURST {
                    ctx.send(1, Message::Item(u64::from(item)));
                    if item % 64 == 0 {
                        ctx.flush();
                    }
                }
            }
            Job::Large => {
                let load = load.unwrap_or_else(|| Arc::new(vec![7; LARGE_BYTES]));
                ctx.send(1, Message::Load(load));
            }
        }
    }
}

impl Chunk for Side {
    type Index = u32;
    type Message = Message;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() > 0 {
            ctx.send(0, Message::Hello);
        }
    }

    fn receive(&mut self, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Hello => {
                self.heard += 1;
                if self.heard == self.job.chunks() - 1 {
                    (self.heard, self.begun_ns) = (0, ctx.elapsed_ns());
                    self.next(None, ctx);
                }
            }
            Message::Token(0) => ctx.send(0, Message::Arrived),
            Message::Token(left) => ctx.send((ctx.index() + 1) % CHUNKS, Message::Token(left - 1)),
            Message::Arrived => {
                self.heard += 1;
                if self.heard == CHUNKS {
                    self.next(None, ctx);
                }
            }
            Message::Ping(number) if ctx.index() == 1 => ctx.send(0, Message::Ping(number + 1)),
            Message::Load(load) if ctx.index() == 1 => ctx.send(0, Message::Load(load)),
            Message::Load(load) => self.next(Some(load), ctx),
            Message::Ping(_) | Message::Heard => self.next(None, ctx),
            Message::Item(_) => {
                self.heard += 1;
                if self.heard == BURST {
                    self.heard = 0;
                    ctx.send(0, Message::Heard);
                }
            }
        }
    }
}

/// Seconds that a job takes. Only rank 0 knows.
fn chunks(runtime: &mut Runtime, config: &Config, job: Job) -> f64 {
    let took_ns = Arc::new(AtomicU64::new(0));
    let report = runtime.run(config, |setup| {
        setup.service(took_ns.clone());
        setup.array_with(job.chunks(), Placement::RoundRobin, move |_| Side::new(job));
    });
    report.expect("the run ends");
    took_ns.load(Ordering::Relaxed) as f64 / 1e9
}

/// Seconds that so many raw messages take there and back.
fn raw_trips<T: Equivalence + Clone>(world: &SimpleCommunicator, message: &mut [T], trips: u32) -> f64 {
    let other = world.process_at_rank(1 - world.rank());
    world.barrier();
    seconds(|| {
        for _ in 0..trips {
            if world.rank() == 0 {
                other.send(&*message);
                other.receive_into(&mut *message);
            } else {
                other.receive_into(&mut *message);
                other.send(&*message);
            }
        }
    })
}

/// Seconds that as many raw messages take as one chunk sends the other, one call each.
fn raw_rate(world: &SimpleCommunicator) -> f64 {
    let other = world.process_at_rank(1 - world.rank());
    let mut items = [0u64; WINDOW];
    world.barrier();
    seconds(|| {
        for _ in 0..BURSTS {
            for _ in 0..BURST as usize / WINDOW {
                mpi::request::multiple_scope(WINDOW, |scope, requests| {
                    for item in &mut items {
                        if world.rank() == 0 {
                            requests.add(other.immediate_send(scope, &*item));
                        } else {
                            requests.add(other.immediate_receive_into(scope, item));
                        }
                    }
                    requests.wait_all(&mut Vec::new());
                });
            }
            let mut heard = 0u8;
            if world.rank() == 0 {
                other.receive_into(&mut heard);
            } else {
                other.send(&heard);
            }
        }
    })
}

/// Seconds that as many raw messages take as the chunks exchange, one call each.
fn raw_exchange(world: &SimpleCommunicator) -> f64 {
    let other = world.process_at_rank(1 - world.rank());
    let (sent, mut come) = ([0u64; WINDOW], [0u64; WINDOW]);
    world.barrier();
    seconds(|| {
        for _ in 0..HOPS {
            mpi::request::multiple_scope(2 * WINDOW, |scope, requests| {
                for (out, into) in sent.iter().zip(&mut come) {
                    requests.add(other.immediate_receive_into(scope, into));
                    requests.add(other.immediate_send(scope, out));
                }
                requests.wait_all(&mut Vec::new());
            });
        }
    })
}

fn main() -> ExitCode {
    match Config::from_env().expect("the environment is right").launch() {
        caribou::Launch::Together { processes: 2, .. } => measure(),
        caribou::Launch::Together { .. } => panic!("this is a benchmark of two processes"),
        caribou::Launch::Alone => return start_under_mpirun(),
    }
    ExitCode::SUCCESS
}

fn start_under_mpirun() -> ExitCode {
    #[expect(clippy::disallowed_methods, reason = "a benchmark asks which launcher to use")]
    let mpirun = std::env::var("MPIRUN").unwrap_or_else(|_| "mpirun".into());
    let me = std::env::current_exe().expect("a benchmark has a file");
    let mut job = Command::new(&mpirun);
    job.args(["-n", "2", "-bind-to", "core"]).arg(me).args(std::env::args_os().skip(1));
    job.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    match job.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("skipped: {mpirun} does not start: {why}");
            ExitCode::SUCCESS
        }
    }
}

fn measure() {
    let (universe, _) =
        mpi::initialize_with_threading(mpi::Threading::Funneled).expect("MPI starts once a process");
    let world = universe.world();
    let config = Config::default().workers(1).lb("none").expect("it is in the table");
    let bare = Setting::BARE.of(config.clone());
    let runtime = RefCell::new(Runtime::with_communicator(&world, &config).expect("the processes connect"));
    let run = |config: &Config, job| chunks(&mut runtime.borrow_mut(), config, job);

    let asked: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_asked = |question: &str| asked.is_empty() || asked.iter().any(|argument| argument == question);
    let say = |what: &str, name: &str, spreads: [Spread; 3]| {
        if world.rank() == 0 {
            print(what, name, spreads);
        }
    };
    if world.rank() == 0 {
        let version = mpi::environment::library_version().unwrap_or_default();
        println!("{}", version.lines().next().unwrap_or("").trim_end_matches('\0'));
    }
    let latency: [Contender<'_>; 3] = [
        Box::new(|| raw_trips(&world, &mut [0u64], TRIPS)),
        Box::new(|| run(&config, Job::Latency)),
        Box::new(|| run(&bare, Job::Latency)),
    ];
    if is_asked("latency") {
        let unit = 2.0 * f64::from(TRIPS) / 1e9;
        say("8 bytes, one way", "latency", in_turn(ROUNDS, latency).map(|spread| spread.per(unit)));
    }
    let rate: [Contender<'_>; 3] = [
        Box::new(|| raw_rate(&world)),
        Box::new(|| run(&config, Job::Rate)),
        Box::new(|| run(&bare, Job::Rate)),
    ];
    if is_asked("rate") {
        let unit = f64::from(BURSTS * BURST) / 1e9;
        say("small messages one way, each", "rate", in_turn(ROUNDS, rate).map(|spread| spread.per(unit)));
    }
    let exchange: [Contender<'_>; 3] = [
        Box::new(|| raw_exchange(&world)),
        Box::new(|| run(&config, Job::Exchange)),
        Box::new(|| run(&bare, Job::Exchange)),
    ];
    if is_asked("exchange") {
        let unit = f64::from(CHUNKS * HOPS) / 1e9;
        say(
            "small messages both ways, each",
            "exchange",
            in_turn(ROUNDS, exchange).map(|spread| spread.per(unit)),
        );
    }
    let mut load = vec![7u8; LARGE_BYTES];
    let large: [Contender<'_>; 3] = [
        Box::new(|| raw_trips(&world, &mut load, LARGE_TRIPS)),
        Box::new(|| run(&config, Job::Large)),
        Box::new(|| run(&bare, Job::Large)),
    ];
    if is_asked("large") {
        let unit = 2.0 * f64::from(LARGE_TRIPS) / 1e9;
        say("1 MiB, one way", "large", in_turn(ROUNDS, large).map(|spread| spread.per(unit)));
    }
}

fn print(what: &str, name: &str, [raw, default, bare]: [Spread; 3]) {
    println!("{what}, ns (medians, quartiles)");
    for (setting, spread) in [("raw", raw), ("default", default), ("bare", bare)] {
        let (ratio, rate) = (spread.per(raw.median), million_a_second(spread));
        println!("  {setting:<8}{spread}  {:.2} x raw, {:.1} M/s", ratio.median, rate.median);
        let name = format!("processes.{name}.{setting}");
        let what = what.replace(',', "");
        figure(&name, "ns", &what, spread);
        figure(&format!("{name}.ratio"), "times", &format!("{what}; over raw MPI"), ratio);
        figure(&format!("{name}.rate"), "million a second", &what, rate);
    }
}

/// The rate of what takes so many ns; of a spread the low end is the high one's.
fn million_a_second(ns: Spread) -> Spread {
    Spread { median: 1e3 / ns.median, low: 1e3 / ns.high, high: 1e3 / ns.low }
}
