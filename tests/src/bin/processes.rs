//! A program for `tests/tests/processes.rs`: one rank of an MPI job, in the situation that its argument names.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "what a test reads")]

use std::ops::Range;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use caribou::config::Period;
use caribou::pools::Cancel;
use caribou::random::stream;
use caribou::trace::Activity;
use caribou::{Chunk, Config, Ctx, Error, Launch, Placement, Pool, Report, Runtime};
use caribou_tests::counter::COUNTER;
use caribou_tests::dynamic::PROGRAMS;
use caribou_tests::faulty::{DROPS, ENDLESS, MUTE};
use caribou_tests::{paced, run_array, run_array_with};
use mpi::traits::{Communicator, CommunicatorCollectives};
use rand::Rng;
use serde::{Deserialize, Serialize};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |place: usize| arguments.get(place).map_or("", String::as_str);
    let number = |place: usize| argument(1 + place).parse().unwrap_or(0);
    let outcome = match argument(0) {
        "rounds" => rounds(u64::MAX >> 8).map(|_| ()),
        // How many messages, how many numbers of eight bytes in each, and how many us it takes to handle one.
        "flood" => flood(number(0), number(1), number(2)),
        "apart" => apart(),
        "hurry" => one_a_rank(|| Hurries),
        "panic" => one_a_rank(|| Panics),
        "hang" => one_a_rank(|| Hangs),
        "stall" => one_a_rank(|| Waits),
        "lose" => loses(),
        "vanish" => one_a_rank(|| Vanishes),
        "unwritable" => one_a_rank(|| Writes),
        "leave" => leaves(),
        "differ" => differs(argument(1)),
        "refuse" => refuses(argument(1)),
        "absent" => absent(),
        "decode" => decodes(),
        "communicator" => communicator(),
        "clocks" => clocks(),
        "pools" => pools(),
        "labour" => labour(),
        "tired" => tired(),
        "wait" => wait(argument(1)),
        "falls" => falls(argument(1)),
        "unequal" => unequal(),
        "unequal-steps" => paced::unequal(),
        "paced" => paced::run(argument(1)),
        "dynamic" => dynamic(),
        other => panic!("there is no situation `{other}`"),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // In one piece: other processes may be speaking too.
            let text = format!("error: {error}\n");
            eprint!("{text}");
            ExitCode::FAILURE
        }
    }
}

/// Takes long to decode, and nothing to handle.
#[derive(Serialize)]
struct Tangled;

static DECODING_NS: AtomicU64 = AtomicU64::new(0);

#[expect(clippy::disallowed_methods, reason = "what a profile says is held against another clock")]
fn now() -> Instant {
    Instant::now()
}

/// Rounds of a loop of some 5 ms.
const TANGLES: u64 = 10_000_000;
const TANGLED: u32 = 20;

impl<'de> Deserialize<'de> for Tangled {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Tangled, D::Error> {
        let begin = now();
        let tangle = |knot: u64, round: u64| std::hint::black_box(knot ^ round);
        std::hint::black_box((0..TANGLES).fold(0, tangle));
        DECODING_NS.fetch_add(begin.elapsed().as_nanos() as u64, Ordering::Relaxed);
        <()>::deserialize(deserializer).map(|()| Tangled)
    }
}

/// Rank 0 sends tangled messages to rank 1.
#[derive(Serialize, Deserialize, Default)]
struct Reader {
    read: u32,
}

impl Chunk for Reader {
    type Index = u32;
    type Message = Tangled;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 0 {
            (0..TANGLED).for_each(|_| ctx.send(1, Tangled));
        }
    }

    fn receive(&mut self, _: Tangled, ctx: &mut Ctx<'_, Self>) {
        self.read += 1;
        if self.read == TANGLED {
            ctx.exit();
        }
    }
}

/// Says how long rank 1 was in handlers, in percent of the time it took to decode their messages.
fn decodes() -> Result<(), Error> {
    let report = run_array_with(config()?, 2, Placement::RoundRobin, |_| Reader::default())?;
    for profile in report.run.profiles.iter().filter(|profile| profile.rank == 1) {
        let rows = profile.workers.iter().flat_map(|worker| &worker.rows);
        let handlers = rows.filter(|row| matches!(row.activity, Activity::Kind(_)));
        let handlers_ns: u64 = handlers.map(|row| row.total_ns()).sum();
        println!("handlers took {} percent", 100 * handlers_ns / DECODING_NS.load(Ordering::Relaxed).max(1));
    }
    Ok(())
}

/// Chunks stay where they are placed, or move at syncs: what happens to a process happens to the chunks that it was given.
fn config() -> Result<Config, Error> {
    Ok(Config::from_env()?.workers(1).period(20))
}

/// Runs with a chunk on each rank.
fn one_a_rank<C: Chunk<Index = u32>>(make: fn() -> C) -> Result<(), Error> {
    let config = config()?;
    let ranks = config.rank_count();
    run_array_with(config, ranks, Placement::RoundRobin, move |_| make())?;
    Ok(())
}

/// Every policy's pool, once by itself and once in a communicator: all processes have the serial result.
fn pools() -> Result<(), Error> {
    const ITERATIONS: u64 = 20_000;
    let draw = |sum: &mut u64, range: Range<u64>| {
        for iteration in range {
            *sum = sum.wrapping_add(stream(3, iteration).next_u64() >> 24);
        }
    };
    let mut serial = 0;
    draw(&mut serial, 0..ITERATIONS);
    let base = Config::from_env()?.register_pool_strategy(COUNTER);
    let ours = lb_strategies::POOLS.iter().map(|entry| format!("{},chunk=0.0001", entry.name));
    for lb in ours.chain([COUNTER.name.to_owned()]) {
        for workers in [1, 2] {
            let config = base.clone().workers(workers).lb(&lb)?;
            let outcome = caribou::pool(&config, ITERATIONS, || 0, draw)?;
            assert_eq!((outcome.result, outcome.report.iterations), (serial, ITERATIONS), "{lb}");
        }
    }
    let told = AtomicU64::new(0);
    let config = base.workers(1).lb("static,chunk=0.001")?;
    let pool = Pool::new(&config, 100).on_progress(Duration::from_millis(1), |progress| {
        told.fetch_max(progress.done, Ordering::Relaxed);
    });
    pool.run(|| 0, |_: &mut u64, range| range.for_each(|_| std::thread::sleep(Duration::from_millis(1))))?;
    assert!((1..=100).contains(&told.load(Ordering::Relaxed)), "every process hears of progress");
    println!("all pools agree");
    Ok(())
}

/// Programs whose chunks come and go: all processes have the serial results.
fn dynamic() -> Result<(), Error> {
    for program in PROGRAMS {
        for period in [Period::Steps(2), Period::Every(Duration::from_micros(50))] {
            let result = (program.run)(config()?.balance(period).lb("rotate")?)?;
            assert_eq!(result, (program.serial)(), "{}, {period}", program.name);
        }
        println!("{} is as serial", program.name);
    }
    Ok(())
}

/// An endless pool.
fn labour() -> Result<(), Error> {
    let config = Config::from_env()?.workers(1);
    let said = AtomicU64::new(0);
    caribou::pool(
        &config,
        1 << 40,
        || 0,
        |_: &mut u64, range| {
            range.for_each(|_| std::thread::sleep(Duration::from_millis(1)));
            if said.fetch_add(1, Ordering::Relaxed) == 0 {
                let Launch::Together { process, .. } = config.launch() else { return };
                println!("rank {process} process {}", std::process::id());
            }
        },
    )?;
    Ok(())
}

/// A pool of which the last iteration panics.
fn tired() -> Result<(), Error> {
    let config = Config::from_env()?.workers(1);
    caribou::pool(&config, 1000, || 0, |_: &mut u64, range| assert!(!range.contains(&999), "too tired"))?;
    Ok(())
}

/// A pool under this policy, that is cancelled after some time. Its first iteration takes two seconds.
fn wait(policy: &str) -> Result<(), Error> {
    let config = Config::from_env()?.workers(1).register_pool_strategy(MUTE).register_pool_strategy(ENDLESS);
    let (config, cancel) = (config.lb(policy)?, Cancel::default());
    let cancels = cancel.clone();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(5));
        cancels.cancel();
    });
    let body = |_: &mut (), range: Range<u64>| {
        if range.contains(&0) {
            std::thread::sleep(Duration::from_secs(2));
        }
    };
    Pool::new(&config, 10).cancelled_by(&cancel).run(|| (), body).map(|_| ())
}

/// Something that panics when it is dropped at the end of a run, on rank 1.
fn falls(what: &str) -> Result<(), Error> {
    struct Falls(bool);

    impl std::ops::Drop for Falls {
        fn drop(&mut self) {
            assert!(!self.0, "it falls");
        }
    }

    let config = config()?;
    if what == "policy" {
        let config = config.register_pool_strategy(DROPS).lb(DROPS.name)?;
        return caribou::pool(&config, 10, || (), |(), _| {}).map(|_| ());
    }
    let second = matches!(config.launch(), Launch::Together { process: 1, .. });
    caribou::run(config, |setup| {
        setup.service(Falls(second));
        setup.array_with(2u32, Placement::RoundRobin, |_| Round { rounds: 3 });
    })?;
    Ok(())
}

/// A pool that has another size in each process.
fn unequal() -> Result<(), Error> {
    let config = Config::from_env()?;
    let Launch::Together { process, .. } = config.launch() else { return Ok(()) };
    caribou::pool(&config, 1000 + u64::from(process), || 0, |_: &mut u64, _| {})?;
    Ok(())
}

/// A token that goes around all ranks.
#[derive(Serialize, Deserialize)]
struct Round {
    rounds: u64,
}

impl Chunk for Round {
    type Index = u32;
    type Message = u64;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        println!("rank {} process {}", ctx.index(), std::process::id());
        if ctx.index() == 0 {
            ctx.send(1 % ctx.ranks(), 0);
        }
    }

    fn receive(&mut self, hops: u64, ctx: &mut Ctx<'_, Self>) {
        if hops == self.rounds * u64::from(ctx.ranks()) {
            return ctx.exit();
        }
        ctx.send((ctx.index() + 1) % ctx.ranks(), hops + 1);
    }
}

fn rounds(rounds: u64) -> Result<Report, Error> {
    let config = config()?;
    let ranks = config.rank_count();
    run_array_with(config, ranks, Placement::RoundRobin, move |_| Round { rounds })
}

/// Messages that chunk 0 sends at a time.
const WAVE: u64 = 16;

/// Chunk 0 sends as fast as it can, to chunk 1 on another rank; which counts.
#[derive(Serialize, Deserialize)]
struct Flood {
    /// Of every message.
    #[serde(with = "caribou::bulk")]
    weight: Arc<Vec<u64>>,
    /// To handle one, us.
    takes_us: u64,
    left: u64,
    heard: u64,
    sum: u64,
    messages: u64,
}

/// The chunk that has no part in the flood.
const BYSTANDER: u32 = 2;

#[derive(Serialize, Deserialize)]
enum Drop {
    GoOn,
    Water {
        number: u64,
        #[serde(with = "caribou::bulk")]
        weight: Arc<Vec<u64>>,
    },
    /// So many times more, a ms apart.
    Tick(u32),
    /// Everything has come.
    Full {
        sum: u64,
    },
}

impl Chunk for Flood {
    type Index = u32;
    type Message = Drop;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == BYSTANDER {
            return ctx.send_after(Duration::from_millis(1), Drop::Tick(200));
        }
        println!("rank {} process {}", ctx.index(), std::process::id());
        if ctx.index() == 0 {
            ctx.send(0, Drop::GoOn);
        }
    }

    fn receive(&mut self, message: Drop, ctx: &mut Ctx<'_, Self>) {
        match message {
            Drop::GoOn if self.left > 0 => {
                for number in (self.left.saturating_sub(WAVE)..self.left).rev() {
                    ctx.send(1, Drop::Water { number, weight: self.weight.clone() });
                }
                self.left = self.left.saturating_sub(WAVE);
                ctx.send(0, Drop::GoOn);
            }
            Drop::GoOn => {}
            Drop::Water { number, weight } => {
                assert_eq!(number, self.messages - 1 - self.heard, "in order");
                assert!(weight == self.weight, "and whole");
                self.heard += 1;
                self.sum += number;
                let done_ns = ctx.elapsed_ns() + self.takes_us * 1_000;
                while ctx.elapsed_ns() < done_ns {
                    std::hint::spin_loop();
                }
                if self.heard == self.messages {
                    ctx.send(0, Drop::Full { sum: self.sum });
                }
            }
            Drop::Tick(0) => println!("the bystander went on"),
            Drop::Tick(more) => ctx.send_after(Duration::from_millis(1), Drop::Tick(more - 1)),
            Drop::Full { sum } => {
                ctx.exit_with(&sum);
            }
        }
    }
}

fn flood(messages: u64, numbers: u64, takes_us: u64) -> Result<(), Error> {
    let weight = Arc::new((0..numbers).collect::<Vec<_>>());
    let config = config()?;
    let speaks = config.launch().speaks();
    let make =
        move |_| Flood { weight: weight.clone(), takes_us, left: messages, heard: 0, sum: 0, messages };
    let report = run_array_with(config, 3, Placement::RoundRobin, make)?;
    // In every process.
    assert_eq!(report.value::<u64>()?, messages * (messages - 1) / 2);
    if speaks {
        println!("all {messages} messages have come");
        println!("waited: {}", report.waiting_bytes_max);
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: unknown");
    println!("{peak}");
    Ok(())
}

/// A flood between processes that may make no file, and so no memory, of more than 64 KiB once MPI runs.
fn apart() -> Result<(), Error> {
    let (_universe, _) =
        mpi::initialize_with_threading(mpi::Threading::Funneled).expect("MPI starts once a process");
    let me = std::process::id().to_string();
    let limited = Command::new("prlimit").args(["--pid", &me, "--fsize=65536"]).status();
    assert!(limited.is_ok_and(|status| status.success()), "a process may limit itself");
    flood(1000, 128, 0)
}

/// Ends the run with the first of many long messages: the others are taken, but nobody handles them.
#[derive(Serialize, Deserialize)]
struct Hurries;

#[derive(Serialize, Deserialize)]
struct Long(#[serde(with = "caribou::bulk")] Arc<Vec<u64>>);

impl Chunk for Hurries {
    type Index = u32;
    type Message = Long;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() > 0 {
            let numbers = Arc::new(vec![7; 10_000]);
            (0..1000).for_each(|_| ctx.send(0, Long(numbers.clone())));
        }
    }

    fn receive(&mut self, _: Long, ctx: &mut Ctx<'_, Self>) {
        ctx.exit();
    }
}

/// Panics on the last rank.
#[derive(Serialize, Deserialize)]
struct Panics;

impl Chunk for Panics {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        assert!(ctx.index() + 1 != ctx.ranks(), "the last one falls");
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
}

/// Panics on rank 0, and does not return on the others.
#[derive(Serialize, Deserialize)]
struct Hangs;

impl Chunk for Hangs {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        assert!(ctx.index() != 0, "the first one falls");
        std::thread::sleep(Duration::from_secs(60));
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
}

/// Waits for a message that nobody sends.
#[derive(Serialize, Deserialize)]
struct Waits;

impl Chunk for Waits {
    type Index = u32;
    type Message = u32;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        let me = ctx.index();
        ctx.send((me + 1) % ctx.ranks(), me);
    }

    fn ready(&self, from: &u32) -> bool {
        *from == u32::MAX
    }

    fn receive(&mut self, _: u32, ctx: &mut Ctx<'_, Self>) {
        ctx.exit();
    }
}

/// Writes to nobody, on another rank, and then ends the run there.
#[derive(Serialize, Deserialize)]
struct Loses;

impl Chunk for Loses {
    type Index = u32;
    type Message = bool;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 0 {
            ctx.send(ctx.ranks() * 7 + 1, false);
            ctx.send(1, true);
        }
    }

    fn receive(&mut self, ends: bool, ctx: &mut Ctx<'_, Self>) {
        if ends {
            ctx.exit();
        }
    }
}

fn loses() -> Result<(), Error> {
    let config = config()?;
    let ranks = config.rank_count();
    let report = caribou::run(config, |setup| {
        let in_turn = Placement::by(|index: u32, ranks| index % ranks);
        setup.array_with(ranks, in_turn, |_| Loses);
    })?;
    println!("{}", report.undelivered);
    Ok(())
}

/// Rank 0 ends the run; rank 1 ends its process instead, in the middle of a handler.
#[derive(Serialize, Deserialize)]
struct Vanishes;

impl Chunk for Vanishes {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 0 {
            return ctx.exit();
        }
        std::thread::sleep(Duration::from_millis(500));
        std::process::exit(3);
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
}

/// Sends a message that panics in the middle of its encoding.
#[derive(Serialize, Deserialize)]
struct Writes;

#[derive(Deserialize)]
struct Unwritable;

impl Serialize for Unwritable {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeTuple;
        let mut tuple = serializer.serialize_tuple(2)?;
        tuple.serialize_element(&[0xff_u64; 40].to_vec())?;
        panic!("it cannot be written");
    }
}

impl Chunk for Writes {
    type Index = u32;
    type Message = Unwritable;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 0 {
            ctx.send(1, Unwritable);
        }
    }

    fn receive(&mut self, _: Unwritable, _: &mut Ctx<'_, Self>) {}
}

/// Rank 1 makes one run, all others two.
fn leaves() -> Result<(), Error> {
    rounds(10)?;
    match config()?.launch() {
        Launch::Together { process: 1, .. } => Ok(()),
        _ => rounds(10).map(|_| ()),
    }
}

/// Rank 1 has another strategy.
fn differs(setting: &str) -> Result<(), Error> {
    let config = config()?;
    let second = matches!(config.launch(), Launch::Together { process: 1, .. });
    let config = match setting {
        "lb" => config.lb(if second { "greedy" } else { "refine" })?,
        "period" => config.period(if second { 7 } else { 20 }),
        "trace" if second => config.trace("traces"),
        "trace" => config,
        "own" => config.agree("--seed", if second { 2 } else { 1 }),
        "workers" => config.workers(if second { 100_000 } else { 1 }),
        other => panic!("there is no setting `{other}`"),
    };
    run_array(config, 2u32, |_| Panics)?;
    Ok(())
}

/// Rank 1 does not come for long, and then says that it will not.
fn absent() -> Result<(), Error> {
    let launch = config()?.launch();
    if matches!(launch, Launch::Together { process: 1, .. }) {
        std::thread::sleep(Duration::from_secs(12));
        launch.refuse("error: it has other plans", 3);
    }
    one_a_rank(|| Waits)
}

/// A process that will not take part, or none that will.
fn refuses(which: &str) -> Result<(), Error> {
    let launch = config()?.launch();
    let second = matches!(launch, Launch::Together { process: 1, .. });
    if second || which == "all" {
        launch.refuse("error: it has other plans", 3);
    }
    one_a_rank(|| Waits)
}

/// A program that uses MPI itself: two runs over half of the processes each, with its own messages in between.
fn communicator() -> Result<(), Error> {
    let (universe, _) =
        mpi::initialize_with_threading(mpi::Threading::Funneled).expect("MPI starts once a process");
    let world = universe.world();
    let half = world.split_by_color(mpi::topology::Color::with_value(world.rank() % 2));
    let half = half.expect("every process has a colour");
    let config = config()?;
    let mut runtime = Runtime::with_communicator(&half, &config)?;
    let ranks = runtime.ranks();
    for run in 1..=2u64 {
        let report = runtime.run(&config, |setup| {
            setup.array_with(ranks, Placement::RoundRobin, move |_| Round { rounds: 10 * run });
        })?;
        assert_eq!(report.messages, u64::from(ranks) * (10 * run + 1) + 1, "starts and hops of all ranks");
        let mut sum = 0i32;
        world.all_reduce_into(&1i32, &mut sum, mpi::collective::SystemOperation::sum());
        assert_eq!(sum, world.size(), "the program's communicator is as before");
    }
    println!("done on rank {}", world.rank());
    Ok(())
}

/// Tells what is known of each rank's clock.
fn clocks() -> Result<(), Error> {
    let speaks = config()?.launch().speaks();
    let report = rounds(1000)?;
    if speaks {
        for clock in report.run.clocks {
            println!("clock {} {} {}", clock.begin_ns, clock.drift_ns, clock.error_ns);
        }
    }
    Ok(())
}
