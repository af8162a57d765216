//! Several workers of one rank: what they share gets lost or doubled nowhere. And one alone: in which order it runs chunks.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use caribou::{Chunk, Config, Ctx, Halo, Halos, Reducer, Target, Values};
use caribou_tests::{run_array, run_array_in_time, run_array_with_service, whole_number, with_timeout};
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
        Message::Everybody(whole_number(values))
    }
}

/// Deliveries of the run.
fn mirror(workers: u32, chunks: u32, rounds: u32) -> u64 {
    let config = Config::default().ranks(1).workers(workers).measure(false);
    let what = format!("{workers} workers, {chunks} chunks");
    let report = run_array_in_time(&what, config, chunks, move |_| Mirror { chunks, rounds });
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

/// Chunk 0 has all its mail in one run on worker 0, which alone speaks to other ranks; the first piece asks chunk 2 on
/// another rank, whose answer to chunk 1 another worker could run.
#[derive(Serialize, Deserialize)]
struct Office;

#[derive(Serialize, Deserialize)]
enum Mail {
    Piece(u32),
    Ask,
    Answer,
}

/// More than are read before an answer has come, on however busy a machine.
const PIECES: u32 = 5000;

impl Chunk for Office {
    type Index = u32;
    type Message = Mail;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 0 {
            (0..PIECES).for_each(|piece| ctx.send(0, Mail::Piece(piece)));
        }
    }

    fn receive(&mut self, mail: Mail, ctx: &mut Ctx<'_, Self>) {
        match mail {
            Mail::Piece(0) => ctx.send(2, Mail::Ask),
            Mail::Piece(piece) => {
                thread::sleep(Duration::from_millis(1));
                if ctx.service::<Arc<AtomicBool>>().load(SeqCst) {
                    return ctx.exit();
                }
                assert!(piece + 1 < PIECES, "nothing came in while the mail was read");
            }
            Mail::Ask => ctx.send(1, Mail::Answer),
            Mail::Answer => ctx.service::<Arc<AtomicBool>>().store(true, SeqCst),
        }
    }
}

#[test]
fn what_other_ranks_send_comes_in_while_a_chunk_has_much_mail() {
    for measured in [true, false] {
        let config = Config::default().ranks(2).workers(2).measure(measured).profile(measured);
        let answered = Arc::new(AtomicBool::new(false));
        let run = || run_array_with_service(config, answered, 4, |_| Office);
        with_timeout(&format!("measured: {measured}"), run)
            .unwrap_or_else(|error| panic!("measured: {measured}: {error}"));
    }
}

/// Chunk 0 writes to its neighbour and then waits until that one has run, which another worker has to see to: in its next
/// handler, or in the same if it `flushes`.
#[derive(Serialize, Deserialize)]
struct Impatient {
    flushes: bool,
}

#[derive(Serialize, Deserialize)]
enum Errand {
    Write,
    Wait,
    Run,
}

impl Chunk for Impatient {
    type Index = u32;
    type Message = Errand;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 0 {
            ctx.send(0, Errand::Write);
            ctx.send(0, Errand::Wait);
        }
    }

    fn receive(&mut self, errand: Errand, ctx: &mut Ctx<'_, Self>) {
        match errand {
            Errand::Write if !self.flushes => ctx.send(1, Errand::Run),
            Errand::Write | Errand::Wait => {
                if self.flushes {
                    ctx.send(1, Errand::Run);
                    ctx.flush();
                }
                let waits = || !ctx.service::<Arc<AtomicBool>>().load(SeqCst);
                let rounds =
                    (0..10_000).take_while(|_| waits()).map(|_| thread::sleep(Duration::from_millis(1)));
                assert!(rounds.count() < 10_000, "nobody runs the chunk that was written to last");
                ctx.exit();
            }
            Errand::Run => ctx.service::<Arc<AtomicBool>>().store(true, SeqCst),
        }
    }
}

#[test]
fn what_a_worker_would_run_next_others_run_while_it_is_busy() {
    for round in 0..20 {
        let (config, ran) = (Config::default().ranks(1).workers(2), Arc::new(AtomicBool::new(false)));
        let make = move |_| Impatient { flushes: round % 2 == 1 };
        with_timeout(&format!("round {round}"), move || run_array_with_service(config, ran, 4, make))
            .unwrap_or_else(|error| panic!("round {round}: {error}"));
    }
}

const POINTS: u32 = 16;
const STEPS: u64 = 4096;
/// Steps of a window.
const WINDOW: u64 = 64;

/// The point that handled the last message, and how often it was another one than before: in each window.
static LAST: AtomicU32 = AtomicU32::new(0);
static RUNS: AtomicU64 = AtomicU64::new(0);
static WINDOWS: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// A point that hears of four neighbours in each step.
#[derive(Serialize, Deserialize)]
struct Point {
    halos: Halos<()>,
}

impl Chunk for Point {
    type Index = u32;
    type Message = Halo<()>;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        let me = ctx.index();
        for (slot, distance) in (0..).zip([1, 2, POINTS - 2, POINTS - 1]) {
            ctx.send((me + distance) % POINTS, self.halos.halo(slot, ()));
        }
    }

    fn ready(&self, halo: &Halo<()>) -> bool {
        self.halos.expects(halo)
    }

    fn receive(&mut self, halo: Halo<()>, ctx: &mut Ctx<'_, Self>) {
        let me = ctx.index();
        if LAST.swap(me, SeqCst) != me {
            RUNS.fetch_add(1, SeqCst);
        }
        if self.halos.add(halo).is_none() {
            return;
        }
        let step = self.halos.step();
        if me == 0 && step.is_multiple_of(WINDOW) {
            WINDOWS.lock().expect("nobody panics").push(RUNS.swap(0, SeqCst));
        }
        if step == STEPS {
            ctx.contribute(0, Reducer::Sum, vec![1u64], Target::Exit);
        } else {
            self.start(ctx);
        }
    }
}

/// One that takes the newest chunk first turns to another for every second message.
#[test]
fn a_lone_worker_runs_a_chunk_for_the_messages_of_all_its_neighbours() {
    run_array(Config::default().ranks(1).workers(1), POINTS, |_| Point { halos: Halos::new(4) }).unwrap();
    let windows = WINDOWS.lock().unwrap();
    let once_a_step = u64::from(POINTS) * WINDOW;
    let gathered = windows.iter().filter(|&&runs| runs <= once_a_step).count();
    assert_eq!(windows.len() as u64, STEPS / WINDOW);
    assert!(gathered > windows.len() / 4, "{windows:?}, and up to {once_a_step} runs where messages gather");
}
