//! Measures the cost of migration between processes.
//!
//! In two processes of an MPI job, all 100 chunks of 512 KiB (50 per process) go to the other process at every sync:
//!
//! | question | compared with, in turn in one run | Caribou |
//! |---|---|---|
//! | bandwidth | the same 50 MiB as raw messages, 50 `MPI_Isend` and `MPI_Irecv` on both sides, from and to the same memory each time | from the decision until all have landed; numbers in an `Arc<Vec<f64>>`, sent in place, and in a `Vec<f64>`, which is copied first |
//! | delay | nothing | a halo every 50 us meanwhile, there and back: the time of the slowest of 100. Only halos count during which neither process waited for its vCPU for 0.1 ms |
//!
//! Raw MPI's memory is touched before. A chunk arrives in new memory, which the kernel may have to provide. The number
//! of these pages is printed, too (minor faults of the first process, per chunk that it receives).
//!
//! Started without a launcher, the benchmark starts itself again under `mpirun -n 2` (`MPIRUN` names another launcher
//! for one host, with its options). An argument selects one question: `bandwidth` or `delay`.

#![expect(clippy::print_stdout, reason = "a benchmark reports to who started it")]

use std::cell::{Cell, RefCell};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use caribou::report::SyncReport;
use caribou::{Chunk, Config, Ctx, Placement, Report, Runtime};
use caribou_benches::figures::figure;
use caribou_benches::nomad::{Holder, Nomad};
use caribou_benches::{Contender, Quartiles, in_turn, job, seconds};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Source};
use serde::{Deserialize, Serialize};

const ROUNDS: usize = 7;
const CHUNKS: u32 = 100;
const CHUNK_BYTES: usize = 512 * 1024;
const SYNCS: u64 = 12;
/// Halos of a run without migration, which lasts about as long.
const HALOS_STILL: usize = 4000;
/// A process that waited longer for its vCPU was disturbed, ns. A process that sleeps waits a little whenever it wakes.
const WAITED_MAX_NS: u64 = 100_000;
/// Time between two halos, ns.
const PERIOD_NS: u64 = 50_000;

/// The trip of a halo there and back.
struct Trip {
    sent_ns: u64,
    took_ns: u64,
    /// True if neither process waited long for its vCPU meanwhile.
    undisturbed: bool,
}

type Trips = Arc<Mutex<Vec<Trip>>>;

/// One of two chunks. The first sends halos in time and computes in between, the second sends them back.
#[derive(Default, Serialize, Deserialize)]
struct Neighbour {
    /// The run ends after this number of halos; `None` if something else ends it.
    halos: Option<usize>,
    next_ns: u64,
    /// Time for which this process had waited for its vCPU at its last send, ns.
    waited_ns: u64,
    /// Time for which the other process had waited for its vCPU at its last answer, ns.
    other_waited_ns: u64,
}

/// A halo, and the times for which both processes had waited for their vCPUs at the last check before it was due.
#[derive(Serialize, Deserialize)]
struct Sent {
    at_ns: u64,
    waited_ns: u64,
    other_waited_ns: u64,
}

#[derive(Serialize, Deserialize)]
enum Halo {
    Compute,
    There(Sent),
    /// With the time for which the other process has waited, ns.
    Back(Sent, u64),
}

impl Chunk for Neighbour {
    type Index = u32;
    type Message = Halo;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 0 {
            ctx.send(0, Halo::Compute);
        }
    }

    fn receive(&mut self, message: Halo, ctx: &mut Ctx<'_, Self>) {
        let now_ns = ctx.elapsed_ns();
        match message {
            Halo::Compute => {
                if self.next_ns == 0 {
                    self.next_ns = now_ns;
                }
                if self.next_ns <= now_ns {
                    let waited_ns = std::mem::replace(&mut self.waited_ns, waited_ns());
                    let other_waited_ns = self.other_waited_ns;
                    // Overdue halos leave together, because a neighbour would wait for each of them.
                    for at_ns in (self.next_ns..=now_ns).step_by(PERIOD_NS as usize) {
                        ctx.send(1, Halo::There(Sent { at_ns, waited_ns, other_waited_ns }));
                        self.next_ns = at_ns + PERIOD_NS;
                    }
                }
                ctx.send(0, Halo::Compute);
            }
            Halo::There(sent) => ctx.send(0, Halo::Back(sent, waited_ns())),
            Halo::Back(sent, other_waited_ns) => {
                self.other_waited_ns = other_waited_ns;
                let waited = [waited_ns() - sent.waited_ns, other_waited_ns - sent.other_waited_ns];
                let undisturbed = waited.iter().all(|&ns| ns < WAITED_MAX_NS);
                let (sent_ns, took_ns) = (sent.at_ns, now_ns - sent.at_ns);
                let ends = {
                    let mut trips = ctx.service::<Trips>().lock().expect("nobody panics");
                    trips.push(Trip { sent_ns, took_ns, undisturbed });
                    self.halos == Some(trips.len())
                };
                if ends {
                    ctx.exit();
                }
            }
        }
    }
}

/// Moves all chunks to the other process at every sync.
fn rotate<H: Holder>(runtime: &mut Runtime, config: &Config) -> Report {
    let report = runtime.run(config, |setup| {
        setup.array(CHUNKS, |_| Nomad::<H>::new(SYNCS, CHUNK_BYTES));
    });
    report.expect("the run ends")
}

/// Exchanges halos, during migrations if `migrates`. Returns the slowest of 100 that left meanwhile, us.
fn slowest_of_100_us(runtime: &mut Runtime, config: &Config, migrates: bool) -> f64 {
    let trips = Trips::default();
    let report = runtime.run(config, |setup| {
        setup.service(trips.clone());
        if migrates {
            setup.array(CHUNKS, |_| Nomad::<Arc<Vec<f64>>>::new(SYNCS, CHUNK_BYTES));
        }
        let halos = (!migrates).then_some(HALOS_STILL);
        let neighbour = move |_| Neighbour { halos, ..Neighbour::default() };
        setup.array_without_sync(2u32, Placement::RoundRobin, neighbour);
    });
    let report = report.expect("the run ends");
    let migrating = |sync: &SyncReport, at_ns| (sync.at_ns..sync.at_ns + sync.migrate_ns).contains(&at_ns);
    let counts = |at_ns| !migrates || report.syncs.iter().any(|sync| migrating(sync, at_ns));
    let trips = trips.lock().expect("nobody panics");
    let meanwhile = trips.iter().filter(|trip| trip.undisturbed && counts(trip.sent_ns));
    let mut took_ns: Vec<u64> = meanwhile.map(|trip| trip.took_ns).collect();
    took_ns.sort_unstable();
    let slowest = took_ns.len().saturating_sub(1) * 99 / 100;
    took_ns.get(slowest).map_or(0.0, |&took_ns| took_ns as f64 / 1e3)
}

/// Seconds of a sync from its decision until all chunks have landed; the median of a run. Only rank 0 has syncs.
fn migrate_s(report: &Report) -> f64 {
    let mut took_ns: Vec<u64> = report.syncs.iter().map(|sync| sync.migrate_ns).collect();
    took_ns.sort_unstable();
    took_ns.get(took_ns.len() / 2).map_or(0.0, |&took_ns| took_ns as f64 / 1e9)
}

/// Seconds of raw MPI for as many bytes both ways; the median of as many exchanges.
fn raw_exchange_s(world: &SimpleCommunicator, sent: &[Vec<f64>], come: &mut [Vec<f64>]) -> f64 {
    let other = world.process_at_rank(1 - world.rank());
    let once = |come: &mut [Vec<f64>]| {
        world.barrier();
        seconds(|| {
            mpi::request::multiple_scope(2 * sent.len(), |scope, requests| {
                for (out, into) in sent.iter().zip(come) {
                    requests.add(other.immediate_receive_into(scope, into));
                    requests.add(other.immediate_send(scope, out));
                }
                requests.wait_all(&mut Vec::new());
            });
        })
    };
    let took = (0..SYNCS).map(|_| once(&mut *come)).collect();
    Quartiles::of(took).median
}

/// Time for which this thread was ready to run and did not, ns. The only worker is the main thread.
fn waited_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    stat.split_whitespace().nth(1).and_then(|waited| waited.parse().ok()).unwrap_or(0)
}

/// Pages that the kernel has provided to this process so far.
fn minor_faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    after_name.split_whitespace().nth(7).and_then(|faults| faults.parse().ok()).unwrap_or(0)
}

fn main() -> ExitCode {
    job::of_two(measure)
}

fn measure() {
    let (universe, _) =
        mpi::initialize_with_threading(mpi::Threading::Funneled).expect("MPI starts once a process");
    let world = universe.world();
    let rotating = Config::default().workers(1).lb("rotate").expect("it is in the table");
    let runtime = Runtime::with_communicator(&world, &rotating).expect("the processes connect");
    let runtime = RefCell::new(runtime);
    let asked: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_asked = |question: &str| asked.is_empty() || asked.iter().any(|argument| argument == question);
    let root = world.rank() == 0;
    if root {
        let version = mpi::environment::library_version().unwrap_or_default();
        println!("{}", version.lines().next().unwrap_or("").trim_end_matches('\0'));
    }
    if is_asked("bandwidth") {
        let numbers = || vec![vec![1.0f64; CHUNK_BYTES / size_of::<f64>()]; CHUNKS as usize / 2];
        let (sent, mut come) = (numbers(), numbers());
        let faults = Cell::new(0);
        let copied = || migrate_s(&rotate::<Vec<f64>>(&mut runtime.borrow_mut(), &rotating));
        let shared = || {
            let before = minor_faults();
            let report = rotate::<Arc<Vec<f64>>>(&mut runtime.borrow_mut(), &rotating);
            faults.set(faults.get() + minor_faults() - before);
            migrate_s(&report)
        };
        let contenders: [Contender<'_>; 3] =
            [Box::new(|| raw_exchange_s(&world, &sent, &mut come)), Box::new(shared), Box::new(copied)];
        let [raw, shared, copied] = in_turn(ROUNDS, contenders);
        if root {
            let moved = ROUNDS as u64 * u64::from(CHUNKS) / 2 * SYNCS;
            say_bandwidth(raw, shared, copied, faults.get() as f64 / moved as f64);
        }
    }
    if is_asked("delay") {
        let slowest = |migrates| slowest_of_100_us(&mut runtime.borrow_mut(), &rotating, migrates);
        let contenders: [Contender<'_>; 2] = [Box::new(|| slowest(false)), Box::new(|| slowest(true))];
        let spreads = in_turn(ROUNDS, contenders);
        if root {
            println!("the slowest of 100 halos, there and back, us (medians, quartiles)");
            for (name, spread) in ["still", "migrating"].into_iter().zip(spreads) {
                println!("  {name:<10}{spread}  least {:.1}", spread.least);
                figure(&format!("processes.halos.{name}"), "us", "the slowest of 100 there and back", spread);
            }
        }
    }
}

fn say_bandwidth(raw: Quartiles, shared: Quartiles, copied: Quartiles, faults: f64) {
    let us_a_chunk = |all: Quartiles| all.per(f64::from(CHUNKS) / 1e6);
    println!("{CHUNKS} chunks of {CHUNK_BYTES} B change places, us a chunk (medians, quartiles)");
    println!("  raw     {}", us_a_chunk(raw));
    for (name, spread) in [("shared", shared), ("copied", copied)] {
        let (of_raw, fastest) = (raw.median / spread.median, raw.least / spread.least);
        let us = us_a_chunk(spread);
        println!("  {name:<8}{us}  {of_raw:.2} of raw's bandwidth (the fastest: {fastest:.2})");
        figure(&format!("processes.migration.{name}"), "us", "a chunk of 512 KiB; both ways", us);
        let ratio = spread.per(raw.median);
        figure(
            &format!("processes.migration.{name}.ratio"),
            "times",
            "50 MiB both ways; over raw MPI",
            ratio,
        );
    }
    println!("  {faults:.0} page faults a chunk of shared numbers");
}
