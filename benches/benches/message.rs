//! What does a message cost?
//!
//! Tokens travel around a ring of chunks that do nothing else, on the paths a message can take: within a worker, between
//! two workers of a rank, between two ranks one at a time, and between two ranks with many under way. They are held
//! against what the machine itself needs, in the same run:
//!
//! | path | limit | peer |
//! |---|---|---|
//! | same worker | a queue push and pop and an indirect call | a plain sketch of a runtime: boxed payload, three locks, a count |
//! | two threads | a cache line that goes to the other thread, one way | |
//!
//! A round trip of a cache line below 200 ns means that the two vCPUs are near each other: on one socket, if not on one
//! core. The hypervisor decides, and may decide anew.

#![expect(clippy::print_stderr, reason = "a benchmark reports to the person who started it")]

use std::any::Any;
use std::collections::VecDeque;
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use caribou::Config;
use caribou_apps::ring::chunk;
use caribou_apps::ring::options::{Neighbourhood, Options, Switch};
use caribou_benches::{Contender, in_turn, seconds};
use criterion::{Criterion, criterion_group, criterion_main};

/// Round trips of a cache line below this are between near vCPUs.
const NEAR_NS: f64 = 200.0;
const ROUNDS: usize = 7;
/// Messages of one contender in one round.
const MESSAGES: u32 = 400_000;

/// A ring as the Charm++ figures were taken.
fn ring(chunks: u32, tokens: u32, ranks: u32, workers: u32, measure: Switch) -> Options {
    Options {
        chunks,
        tokens,
        hops: 1,
        payload: 8,
        work: 0,
        ranks: Some(ranks),
        workers,
        measure,
        placement: if ranks > 1 { Neighbourhood::RoundRobin } else { Neighbourhood::Block },
        json: None,
    }
}

/// The paths, by name.
fn paths() -> [(&'static str, Options); 6] {
    [
        ("same worker, measured", ring(16, 1, 1, 1, Switch::On)),
        ("same worker, unmeasured", ring(16, 1, 1, 1, Switch::Off)),
        ("two workers", ring(16, 1, 1, 2, Switch::On)),
        ("two ranks, one at a time", ring(2, 1, 2, 1, Switch::On)),
        ("two ranks, many, measured", ring(8192, 256, 2, 1, Switch::On)),
        ("two ranks, many, unmeasured", ring(8192, 256, 2, 1, Switch::Off)),
    ]
}

/// The time that `messages` messages took on a path, without starting and ending the run.
fn travel(path: &Options, messages: u32) -> Duration {
    let options = Options { hops: messages.div_ceil(path.tokens).max(1), ..path.clone() };
    let outcome = chunk::run(Config::default(), &options).expect("the ring ends");
    let ns = outcome.ns_per_message * f64::from(messages);
    Duration::from_nanos(ns as u64)
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

/// The peer within a worker: what one writes without thinking of cost.
fn sketch(messages: u32) {
    struct Place {
        state: Mutex<u64>,
        mail: Mutex<VecDeque<Box<dyn Any + Send>>>,
    }
    let place = |_| Arc::new(Place { state: Mutex::new(0), mail: Mutex::default() });
    let places: Vec<Arc<Place>> = (0..16).map(place).collect();
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

/// The limit between threads: ns for a cache line from one pinned thread to another and back.
fn round_trip_ns(trips: u64) -> f64 {
    #[repr(align(128))]
    struct Line(AtomicU64);
    let vcpus = caribou::vcpus();
    let (here, there) = (vcpus[0], vcpus[vcpus.len() - 1]);
    let (ball, up) = (Line(AtomicU64::new(0)), Line(AtomicU64::new(0)));
    thread::scope(|scope| {
        scope.spawn(|| {
            caribou::pin_to(there);
            up.0.store(1, Ordering::Release);
            for trip in 0..trips {
                await_value(&ball.0, 2 * trip + 1);
                ball.0.store(2 * trip + 2, Ordering::Release);
            }
        });
        // On a thread of its own, so that the caller stays where it was.
        let player = scope.spawn(|| {
            caribou::pin_to(here);
            await_value(&up.0, 1);
            seconds(|| {
                for trip in 0..trips {
                    ball.0.store(2 * trip + 1, Ordering::Release);
                    await_value(&ball.0, 2 * trip + 2);
                }
            })
        });
        player.join().expect("it does not panic") * 1e9 / trips as f64
    })
}

/// Spins until the other thread has stored `value`; gives way if it does not seem to run.
fn await_value(place: &AtomicU64, value: u64) {
    let mut turns = 0u32;
    while place.load(Ordering::Acquire) != value {
        turns += 1;
        if turns.is_multiple_of(10_000) {
            thread::yield_now();
        }
        spin_loop();
    }
}

fn message(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("message");
    group.sample_size(10).warm_up_time(Duration::from_millis(200));
    group.measurement_time(Duration::from_millis(500));
    for (name, path) in paths() {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|messages| {
                // A run has at least some thousand messages; criterion begins with one.
                let enough = messages.clamp(10_000, u64::from(u32::MAX));
                travel(&path, enough as u32).mul_f64(messages as f64 / enough as f64)
            });
        });
    }
    group.finish();
    compare();
}

/// Everything in turn, in ns a message, as multiples of the limits.
fn compare() {
    let messages = f64::from(MESSAGES);
    let path_ns = |path: Options| -> Contender<'static> {
        Box::new(move || travel(&path, MESSAGES).as_secs_f64() * 1e9 / messages)
    };
    let [a, b, c, d, e, f] = paths().map(|(_, path)| path_ns(path));
    let queue: Contender<'_> = Box::new(|| seconds(|| queue_and_call(MESSAGES)) * 1e9 / messages);
    let sketched: Contender<'_> = Box::new(|| seconds(|| sketch(MESSAGES)) * 1e9 / messages);
    let line: Contender<'_> = Box::new(|| round_trip_ns(50_000) / 2.0);
    let [queue, sketched, line, a, b, c, d, e, f] =
        in_turn(ROUNDS, [queue, sketched, line, a, b, c, d, e, f]);
    let distance = if 2.0 * line.median < NEAR_NS { "near" } else { "far" };
    eprintln!("ns a message, median [quartiles] of {ROUNDS} rounds in turn; vCPUs are {distance}");
    eprintln!("  {:<30}{queue}   limit within a worker", "queue and call");
    eprintln!("  {:<30}{sketched}   {:.1} x queue and call", "sketch", sketched.median / queue.median);
    eprintln!("  {:<30}{line}   limit between threads", "cache line, one way");
    for ((name, path), cost) in paths().iter().zip([a, b, c, d, e, f]) {
        let alone = path.ranks.unwrap_or(1) * path.workers == 1;
        let (limit, of) = if alone { (queue, "queue and call") } else { (line, "cache line") };
        let versus =
            if alone { format!(", {:.2} x sketch", cost.median / sketched.median) } else { String::new() };
        eprintln!("  {name:<30}{cost}   {:.1} x {of}{versus}", cost.median / limit.median);
    }
}

criterion_group!(benches, message);
criterion_main!(benches);
