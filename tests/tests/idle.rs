//! An idle rank leaves its vCPU to others.
#![cfg(target_os = "linux")]

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fs, thread};

use caribou::config::Pin;
use caribou::{Chunk, Config, Ctx, Placement, Setup};
use caribou_tests::with_timeout;
use serde::{Deserialize, Serialize};

/// Time that one rank keeps the other waiting.
const PAUSE: Duration = Duration::from_millis(300);
/// The waiting thread may use this part of the pause, on a machine that does other things as well.
const BUSY_MAX: f64 = 0.25;

/// Threads are looked for by their names, which are the same in every run.
static ONE_RUN: Mutex<()> = Mutex::new(());

/// The other rank's worker.
const WAITING: &str = "caribou 1.0";

/// CPU time of the thread with this name so far, if there is one: the first number of its schedstat, in ns.
fn cpu_time_of(name: &str) -> Option<Duration> {
    let tasks = fs::read_dir("/proc/self/task").ok()?;
    let task = tasks
        .flatten()
        .map(|task| task.path())
        .find(|task| fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim_end() == name))?;
    let schedstat = fs::read_to_string(task.join("schedstat")).ok()?;
    schedstat.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

/// Chunk 0 sleeps in its handler while chunk 1 waits for its message.
#[derive(Serialize, Deserialize)]
struct Pair;

type Used = Arc<Mutex<Option<Duration>>>;

impl Chunk for Pair {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index() == 0 {
            // The other rank may still be starting up.
            thread::sleep(PAUSE / 10);
            let before = cpu_time_of(WAITING);
            thread::sleep(PAUSE);
            let used = cpu_time_of(WAITING).zip(before).map(|(after, before)| after - before);
            *ctx.service::<Used>().lock().expect("nobody panics with it") = used;
            ctx.send(1, ());
        }
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        ctx.exit();
    }
}

/// The part of a vCPU that waiting ranks have used, if the kernel tells.
fn busy(what: &str, config: Config, array: fn(&mut Setup)) -> Option<f64> {
    let _one_run = ONE_RUN.lock().unwrap_or_else(PoisonError::into_inner);
    let used = Used::default();
    let service = used.clone();
    let run = move || {
        caribou::run(config, |setup| {
            setup.service(service.clone());
            array(setup);
        })
    };
    with_timeout(what, run).expect("it ends");
    let used = *used.lock().expect("the run is over");
    used.map(|used| used.as_secs_f64() / PAUSE.as_secs_f64())
}

#[test]
fn a_rank_that_waits_does_not_burn_its_vcpu() {
    // With a vCPU of its own a rank spins for a moment before it sleeps; without one it does not.
    for (ranks, pin) in [(2, Pin::Auto), (4, Pin::Off)] {
        let config = Config::default().ranks(ranks).pin(pin);
        let Some(busy) = busy(&format!("{ranks} ranks"), config, |setup| {
            setup.array_with(2, Placement::RoundRobin, |_| Pair);
        }) else {
            return eprintln!("no CPU time of thread `{WAITING}` in /proc: skipped");
        };
        assert!(busy < BUSY_MAX, "{ranks} ranks: the waiting one used {busy:.2} of a vCPU");
    }
}

/// Waits for nothing but a message to itself.
#[derive(Serialize, Deserialize)]
struct Alone {
    before: Option<Duration>,
}

impl Chunk for Alone {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.send_after(PAUSE / 10, ());
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        let used: Option<Duration> = ["caribou 0.0", WAITING].into_iter().map(cpu_time_of).sum();
        let Some(before) = self.before else {
            self.before = used;
            return if used.is_some() { ctx.send_after(PAUSE, ()) } else { ctx.exit() };
        };
        *ctx.service::<Used>().lock().expect("nobody panics with it") = used.map(|used| used - before);
        ctx.exit();
    }
}

#[test]
fn ranks_that_wait_for_a_time_sleep_until_then() {
    let Some(busy) = busy("a run that waits", Config::default().ranks(2), |setup| {
        setup.array(1, |_| Alone { before: None });
    }) else {
        return eprintln!("no CPU time of the ranks in /proc: skipped");
    };
    assert!(busy < BUSY_MAX, "the two ranks used {busy:.2} of a vCPU");
}
