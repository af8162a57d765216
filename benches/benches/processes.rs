//! Measures the cost of messages between processes.
//!
//! Two processes of an MPI job have chunks. Their messages are compared with raw MPI between the same processes:
//!
//! | question | raw MPI | Caribou |
//! |---|---|---|
//! | latency, 8 bytes, one way | `MPI_Send` and `MPI_Recv`, there and back | a message from chunk to chunk, there and back |
//! | rate, small messages one way | 64 `MPI_Isend` or `MPI_Irecv` at a time, an acknowledgement of 1024 | one chunk sends another 1024, an acknowledgement |
//! | exchange, small messages both ways | 64 `MPI_Isend` and 64 `MPI_Irecv` at a time, on both sides | 128 chunks pass 128 tokens on, each to a chunk of the other process |
//! | 1 MiB, one way | `MPI_Send` and `MPI_Recv`, there and back | an `Arc<Vec<u8>>` in a message, there and back |
//!
//! The command `ring --chunks 2 --placement round-robin` measures the first question. The third is the same with
//! `--chunks 128 --tokens 128`: there each message costs a separate run of its chunk. In the second question 1024
//! messages go to a chunk that is running already.
//!
//! Caribou's chunks are measured and profiled as by default, and then neither.
//!
//! Started without a launcher, the benchmark starts itself again under `mpirun -n 2` (`MPIRUN` names another launcher
//! with its options). Under `tools/hosts` the processes are on different hosts, where messages leave in batches; the
//! figures are then named `hosts.*`. An argument selects one question: `latency`, `rate`, `exchange` or `large`. With
//! `brief`, rounds are many and short, a few ms each. On a shared machine some of them are undisturbed, so the fastest
//! are compared.

#![expect(clippy::print_stdout, reason = "a benchmark reports to who started it")]

use std::cell::RefCell;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use caribou::{Chunk, Config, Ctx, Placement, Runtime};
use caribou_benches::figures::figure;
use caribou_benches::{Contender, Quartiles, Setting, in_turn, job, seconds};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Equivalence, Source};
use serde::{Deserialize, Serialize};

const ROUNDS: usize = 9;
/// Number of brief rounds, and how many times shorter they are.
const ROUNDS_BRIEF: usize = 99;
const BRIEF: u32 = 50;
const TRIPS: u32 = 20_000;
const BURSTS: u32 = 200;
const BURST: u32 = 1024;
const HOPS: u32 = 2_000;
const LARGE_TRIPS: u32 = 200;
const LARGE_BYTES: usize = 1 << 20;
/// Raw sends that are in flight together.
const WINDOW: usize = 64;

/// Chunks, and tokens, where messages go both ways: a window of them is on its way in each direction.
const CHUNKS: u32 = 2 * WINDOW as u32;

/// One of the chunks. Chunk 0 sends the requests, counts and measures the time.
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
    /// The number of hops that are left.
    Token(u32),
    Arrived,
    Load(#[serde(with = "caribou::bulk")] Arc<Vec<u8>>),
}

fn is_asked(word: &str) -> bool {
    std::env::args().skip(1).any(|argument| argument == word)
}

/// The length of a round: `usual`, or a part of it with `brief`.
fn length(usual: u32) -> u32 {
    if is_asked("brief") { usual / BRIEF } else { usual }
}

impl Job {
    fn chunks(self) -> u32 {
        if self == Job::Exchange { CHUNKS } else { 2 }
    }
}

impl Side {
    fn new(job: Job) -> Side {
        let left = match job {
            Job::Latency => length(TRIPS),
            Job::Rate => length(BURSTS),
            Job::Exchange => 1,
            Job::Large => length(LARGE_TRIPS),
        };
        Side { job, begun_ns: 0, left, heard: 0 }
    }

    /// Sends the next message of chunk 0, or ends the run.
    fn next(&mut self, load: Option<Arc<Vec<u8>>>, ctx: &mut Ctx<'_, Self>) {
        if self.left == 0 {
            let took_ns = ctx.elapsed_ns() - self.begun_ns;
            ctx.service::<Arc<AtomicU64>>().store(took_ns, Ordering::Relaxed);
            return ctx.exit();
        }
        self.left -= 1;
        match self.job {
            Job::Exchange => (0..CHUNKS).for_each(|chunk| ctx.send(chunk, Message::Token(length(HOPS)))),
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

/// Seconds that a job takes; 0 except on rank 0.
fn chunks(runtime: &mut Runtime, config: &Config, job: Job) -> f64 {
    let took_ns = Arc::new(AtomicU64::new(0));
    let report = runtime.run(config, |setup| {
        setup.service(took_ns.clone());
        setup.array_with(job.chunks(), Placement::RoundRobin, move |_| Side::new(job));
    });
    report.expect("the run ends");
    took_ns.load(Ordering::Relaxed) as f64 / 1e9
}

/// Seconds for `trips` raw messages there and back.
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

/// Seconds for as many raw messages as one chunk sends the other, one call each.
fn raw_rate(world: &SimpleCommunicator) -> f64 {
    let other = world.process_at_rank(1 - world.rank());
    let mut items = [0u64; WINDOW];
    world.barrier();
    seconds(|| {
        for _ in 0..length(BURSTS) {
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

/// Seconds for as many raw messages as the chunks exchange, one call each.
fn raw_exchange(world: &SimpleCommunicator) -> f64 {
    let other = world.process_at_rank(1 - world.rank());
    let (sent, mut come) = ([0u64; WINDOW], [0u64; WINDOW]);
    world.barrier();
    seconds(|| {
        for _ in 0..length(HOPS) {
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
    job::of_two(measure)
}

fn measure() {
    let (universe, _) =
        mpi::initialize_with_threading(mpi::Threading::Funneled).expect("MPI starts once a process");
    let world = universe.world();
    let config = Config::default().workers(1).lb("none").expect("it is in the table");
    let bare = Setting::BARE.of(config.clone());
    let runtime = RefCell::new(Runtime::with_communicator(&world, &config).expect("the processes connect"));
    let run = |config: &Config, job| chunks(&mut runtime.borrow_mut(), config, job);

    let place = if world.split_shared(0).size() == 1 { "hosts" } else { "processes" };
    let rounds = if is_asked("brief") { ROUNDS_BRIEF } else { ROUNDS };
    let one_is_asked = ["latency", "rate", "exchange", "large"].into_iter().any(is_asked);
    let compare = |what: &str, name: &str, contenders: [Contender<'_>; 3], messages: u32| {
        if one_is_asked && !is_asked(name) {
            return;
        }
        let spreads = in_turn(rounds, contenders).map(|spread| spread.per(f64::from(messages) / 1e9));
        if world.rank() == 0 {
            print(what, &format!("{place}.{name}"), spreads);
        }
    };
    if world.rank() == 0 {
        let version = mpi::environment::library_version().unwrap_or_default();
        println!("{}", version.lines().next().unwrap_or("").trim_end_matches('\0'));
    }
    let trips = length(TRIPS);
    let latency: [Contender<'_>; 3] = [
        Box::new(|| raw_trips(&world, &mut [0u64], trips)),
        Box::new(|| run(&config, Job::Latency)),
        Box::new(|| run(&bare, Job::Latency)),
    ];
    compare("8 bytes, one way", "latency", latency, 2 * trips);
    let rate: [Contender<'_>; 3] = [
        Box::new(|| raw_rate(&world)),
        Box::new(|| run(&config, Job::Rate)),
        Box::new(|| run(&bare, Job::Rate)),
    ];
    compare("small messages one way, each", "rate", rate, length(BURSTS) * BURST);
    let exchange: [Contender<'_>; 3] = [
        Box::new(|| raw_exchange(&world)),
        Box::new(|| run(&config, Job::Exchange)),
        Box::new(|| run(&bare, Job::Exchange)),
    ];
    compare("small messages both ways, each", "exchange", exchange, CHUNKS * length(HOPS));
    let (mut load, large_trips) = (vec![7u8; LARGE_BYTES], length(LARGE_TRIPS));
    let large: [Contender<'_>; 3] = [
        Box::new(|| raw_trips(&world, &mut load, large_trips)),
        Box::new(|| run(&config, Job::Large)),
        Box::new(|| run(&bare, Job::Large)),
    ];
    compare("1 MiB, one way", "large", large, 2 * large_trips);
}

fn print(what: &str, name: &str, [raw, default, bare]: [Quartiles; 3]) {
    println!("{what}, ns (medians, quartiles)");
    for (setting, spread) in [("raw", raw), ("default", default), ("bare", bare)] {
        let (ratio, rate) = (spread.per(raw.median), million_a_second(spread));
        let (least, least_ratio) = (spread.least, spread.least / raw.least);
        println!(
            "  {setting:<8}{spread}  {:.2} x raw, {:.1} M/s; fastest {least:.1}, {least_ratio:.2} x raw's",
            ratio.median, rate.median
        );
        let name = format!("{name}.{setting}");
        let what = what.replace(',', "");
        figure(&name, "ns", &what, spread);
        figure(&format!("{name}.ratio"), "times", &format!("{what}; over raw MPI"), ratio);
        figure(&format!("{name}.rate"), "million a second", &what, rate);
    }
}

/// Converts ns to millions per second. The low end of the rate comes from the high end of the time.
fn million_a_second(ns: Quartiles) -> Quartiles {
    let rate = |ns: f64| 1e3 / ns;
    Quartiles { median: rate(ns.median), low: rate(ns.high), high: rate(ns.low), least: rate(ns.high) }
}
