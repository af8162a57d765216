//! Measures the cost of a message.
//!
//! Tokens travel around a ring of chunks that do nothing else, on each path of a message: within a worker, between two
//! workers of a rank, between two ranks one at a time, and between two ranks with many in flight. They are compared
//! with what the machine itself needs, in the same run:
//!
//! | path | limit | peer |
//! |---|---|---|
//! | same worker | a queue push and pop and an indirect call | a simple runtime: boxed payload, three locks, a count |
//! | two threads | a cache line that goes to the other thread, one way | |
//!
//! The name of a path is its `ring` and what the runtime measures. `default` measures chunks and keeps a profile, as
//! without any option; `measured` and `profiled` do one of both, `bare` neither.

#![expect(clippy::print_stderr, reason = "a benchmark reports to the person who started it")]

use std::any::Any;
use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use caribou_benches::distance::{NEAR_NS, round_trip_ns};
use caribou_benches::figures::figure;
use caribou_benches::programs::{build, ns_per_message, program};
use caribou_benches::{Contender, Setting, all_in_turn, seconds};
use criterion::{Criterion, criterion_group, criterion_main};

const ROUNDS: usize = 7;
/// Messages of one contender in one round.
const MESSAGES: u32 = 400_000;

/// A path of messages, and what the runtime measures.
#[derive(Clone, Copy)]
struct Path {
    name: &'static str,
    /// The options of `ring`.
    options: &'static str,
    /// Tokens in flight at once.
    tokens: u32,
    setting: Setting,
}

const SAME_WORKER: (&str, &str, u32) = ("worker", "--chunks 16", 1);
const TWO_WORKERS: (&str, &str, u32) = ("workers", "--chunks 16 --workers 2", 1);
const TWO_RANKS: (&str, &str, u32) = ("ranks", "--chunks 2 --ranks 2 --placement round-robin", 1);
const TWO_RANKS_MANY: (&str, &str, u32) =
    ("ranks-many", "--chunks 8192 --ranks 2 --placement round-robin", 256);

/// Within a worker all settings; on the other paths the default and bare.
fn paths() -> Vec<Path> {
    let mut paths = Vec::new();
    for ((name, options, tokens), settings) in [
        (SAME_WORKER, &Setting::ALL[..]),
        (TWO_WORKERS, &[Setting::DEFAULT, Setting::BARE]),
        (TWO_RANKS, &[Setting::DEFAULT, Setting::BARE]),
        (TWO_RANKS_MANY, &[Setting::DEFAULT, Setting::BARE]),
    ] {
        paths.extend(settings.iter().map(|&setting| Path { name, options, tokens, setting }));
    }
    paths
}

impl Path {
    /// The name of its figure.
    fn figure(self) -> String {
        format!("message.{}.{}", self.name, self.setting.name())
    }

    fn ring(self) -> String {
        format!("{} --tokens {}", self.options, self.tokens)
    }

    /// True if one thread does all the work.
    fn is_alone(self) -> bool {
        self.name == SAME_WORKER.0
    }

    /// The time that `messages` messages take, without starting and ending the run.
    fn travel(self, messages: u32) -> Duration {
        let hops = messages.div_ceil(self.tokens);
        let options = format!("{} --hops {hops} {}", self.ring(), self.setting.options());
        let ns = ns_per_message(&mut program("ring", &options));
        Duration::from_nanos((ns * f64::from(messages)) as u64)
    }
}

/// The limit within a worker: one message at a time through a queue to a handler behind a pointer.
fn queue_and_call(messages: u32) {
    type Handler = Box<dyn FnMut(u64) -> (usize, u64)>;
    let handler = |place: usize| -> Handler { Box::new(move |load| ((place + 1) % 16, load + 1)) };
    let mut handlers: Vec<Handler> = (0..16).map(handler).collect();
    let mut queue = VecDeque::from([(0usize, 0u64)]);
    for _ in 0..messages {
        let (to, load) = queue.pop_front().expect("one token is under way");
        queue.push_back(black_box(&mut handlers[to])(load));
    }
}

/// The peer within a worker: a runtime as one writes it without thinking of cost.
fn sketch(messages: u32) {
    struct RingNode {
        state: Mutex<u64>,
        mail: Mutex<VecDeque<Box<dyn Any + Send>>>,
    }
    let place = |_| Arc::new(RingNode { state: Mutex::new(0), mail: Mutex::default() });
    let places: Vec<Arc<RingNode>> = (0..16).map(place).collect();
    let ready = Mutex::new(VecDeque::from([places[0].clone()]));
    places[0].mail.lock().expect("nobody panics").push_back(Box::new(0u64));
    for hop in 1..=messages {
        let place = ready.lock().expect("nobody panics").pop_front().expect("one token is under way");
        let mail = place.mail.lock().expect("nobody panics").pop_front().expect("the token is here");
        let load = mail.downcast::<u64>().expect("a token is a number");
        *place.state.lock().expect("nobody panics") += 1;
        let next = &places[hop as usize % 16];
        next.mail.lock().expect("nobody panics").push_back(black_box(Box::new(*load + 1)));
        ready.lock().expect("nobody panics").push_back(next.clone());
    }
}

fn message(criterion: &mut Criterion) {
    build(&["ring"]);
    let mut group = criterion.benchmark_group("message");
    group.sample_size(10).warm_up_time(Duration::from_millis(200));
    group.measurement_time(Duration::from_millis(500));
    for path in paths() {
        group.bench_function(path.figure(), |bencher| {
            bencher.iter_custom(|messages| {
                // Criterion begins with one message, but a run needs some thousand.
                let enough = messages.clamp(10_000, u64::from(u32::MAX));
                path.travel(enough as u32).mul_f64(messages as f64 / enough as f64)
            });
        });
    }
    group.finish();
    compare();
}

/// Measures all contenders in turn, in ns per message, and prints multiples of the limits.
fn compare() {
    let messages = f64::from(MESSAGES);
    let paths = paths();
    let mut contenders: Vec<Contender<'_>> = vec![
        Box::new(|| seconds(|| queue_and_call(MESSAGES)) * 1e9 / messages),
        Box::new(|| seconds(|| sketch(MESSAGES)) * 1e9 / messages),
        Box::new(|| round_trip_ns(50_000) / 2.0),
    ];
    for &path in &paths {
        contenders.push(Box::new(move || path.travel(MESSAGES).as_secs_f64() * 1e9 / messages));
    }
    let spreads = all_in_turn(ROUNDS, &mut contenders);
    let [queue, sketched, line, costs @ ..] = &spreads[..] else { panic!("each contender has a time") };
    let distance = if 2.0 * line.median < NEAR_NS { "near" } else { "far" };
    eprintln!("ns a message, median [quartiles] of {ROUNDS} rounds in turn; vCPUs are {distance}");
    eprintln!("  {:<30}{queue}   limit within a worker", "queue and call");
    eprintln!("  {:<30}{sketched}   {:.1} x queue and call", "sketch", sketched.median / queue.median);
    eprintln!("  {:<30}{line}   limit between threads", "cache line, one way");
    figure("message.cache-line", "ns", "one way from the first vCPU to the last", *line);
    for (path, cost) in paths.iter().zip(costs) {
        let (limit, of) = if path.is_alone() { (queue, "queue and call") } else { (line, "cache line") };
        let versus = if path.is_alone() {
            format!(", {:.2} x sketch", cost.median / sketched.median)
        } else {
            String::new()
        };
        eprintln!("  {:<30}{cost}   {:.1} x {of}{versus}", path.figure(), cost.median / limit.median);
        figure(&path.figure(), "ns", &format!("ring {}", path.ring()), *cost);
    }
}

criterion_group!(benches, message);
criterion_main!(benches);
