//! Notices: the machine is taken back soon, or somebody ends the run. SIGTERM and SIGUSR1 give notice to a run that makes
//! checkpoints: it saves its state, and ends with [`Error::Interrupted`](crate::Error::Interrupted).
//!
//! The first signal gives notice to the run, and to those that the process makes after it. A second SIGTERM ends the process
//! at once. While no run listens and none has been given notice, both signals do what they do by default.
//! A thread of the process hears them, from the first run that listens to the end of the process.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::{io, thread};

use signal_hook::consts::{SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::config::Config;
use crate::ids::{ROOT, Rank};
use crate::launch::Launch;
use crate::warn::warn;

/// The listeners of this process.
static LISTENERS: Mutex<Vec<Weak<Listener>>> = Mutex::new(Vec::new());
/// The signal that has given notice to this process; 0 before.
static NOTICE: AtomicI32 = AtomicI32::new(0);
/// True once SIGTERM has given notice.
static TERMINATED: AtomicBool = AtomicBool::new(false);
/// The reason why signals cannot be heard, if they cannot; unset before the first run that listens.
static HEARING: OnceLock<Option<String>> = OnceLock::new();

/// Listens for notices while it exists.
pub(crate) struct Listener {
    /// The signal that gave notice, until it is taken; 0 before.
    signal: AtomicI32,
    /// True once notice was given.
    heard: AtomicBool,
    /// Tells the user at once: handlers and iterations may take long to end.
    tells: bool,
    wake: Box<dyn Fn() + Send + Sync>,
}

/// A line for the user: notice was given, by the signal and to the rank that this names.
pub(crate) fn notice_line(by: &str) -> String {
    format!("{by}: the run saves its state and ends, once what its workers execute now has ended")
}

impl Listener {
    /// A listener that has heard this signal before, if it is not 0.
    fn waking(before: i32, tells: bool, wake: Box<dyn Fn() + Send + Sync>) -> Listener {
        Listener { signal: AtomicI32::new(before), heard: AtomicBool::new(before != 0), tells, wake }
    }

    /// Listens from now on where this rank does so for its process, and calls `wake` when notice is given. A simulated run hears
    /// nothing. Warns if signals cannot be heard.
    pub(crate) fn of_rank(
        rank: Rank,
        config: &Config,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Option<Arc<Listener>> {
        let is_first = rank == ROOT || config.launch() != Launch::Alone;
        let listens = is_first && config.simulate.is_none();
        listens.then(|| Listener::new(rank == ROOT, wake))?.inspect_err(|why| warn(why)).ok()
    }

    /// The error says why signals cannot be heard.
    fn new(tells: bool, wake: impl Fn() + Send + Sync + 'static) -> Result<Arc<Listener>, String> {
        let listener = Arc::new(Listener::waking(NOTICE.load(Ordering::Acquire), tells, Box::new(wake)));
        let mut listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|other| other.strong_count() > 0);
        listeners.push(Arc::downgrade(&listener));
        drop(listeners);
        match HEARING.get_or_init(|| hear().err().map(|why| why.to_string())) {
            None => Ok(listener),
            Some(why) => Err(format!("signals cannot be heard: {why}")),
        }
    }

    /// True from a notice until it is taken.
    pub(crate) fn is_given(&self) -> bool {
        self.signal.load(Ordering::Acquire) != 0
    }

    /// The signal that has given notice, to the process of this rank, once.
    pub(crate) fn take(&self, rank: Rank) -> Option<String> {
        match self.signal.swap(0, Ordering::AcqRel) {
            0 => None,
            signal => Some(named(signal, rank)),
        }
    }

    /// A signal has come: the first gives notice.
    fn hear(&self, signal: i32) {
        if !self.heard.swap(true, Ordering::AcqRel) {
            self.signal.store(signal, Ordering::Release);
            (self.wake)();
            if self.tells {
                warn(&notice_line(&named(signal, ROOT)));
            }
        }
    }
}

fn named(signal: i32, rank: Rank) -> String {
    let signal = if signal == SIGUSR1 { "SIGUSR1" } else { "SIGTERM" };
    format!("{signal} to the process of rank {rank}")
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener").field("heard", &self.heard).finish_non_exhaustive()
    }
}

/// Starts the thread that hears signals.
fn hear() -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGUSR1])?;
    let hear = move || signals.forever().for_each(heard);
    thread::Builder::new().name("caribou hears".into()).spawn(hear).map(drop)
}

/// Tells all listeners of a signal. Without any it does what it does by default, and so does a second SIGTERM.
fn heard(signal: i32) {
    let all: Vec<Arc<Listener>> = {
        let listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.iter().filter_map(Weak::upgrade).collect()
    };
    // A process that was given notice is about to end, also when its run has ended already.
    let ends = match NOTICE.load(Ordering::Acquire) {
        0 => all.is_empty(),
        _ => signal == SIGTERM && TERMINATED.load(Ordering::Acquire),
    };
    if !ends {
        // A run that begins later has to hear of it too.
        let _ = NOTICE.compare_exchange(0, signal, Ordering::AcqRel, Ordering::Acquire);
        TERMINATED.fetch_or(signal == SIGTERM, Ordering::AcqRel);
    }
    all.iter().for_each(|listener| listener.hear(signal));
    if ends {
        // It does not return for these signals.
        let _ = emulate_default_handler(signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_signal_gives_notice_once() {
        let woken = Arc::new(AtomicI32::new(0));
        let listener = {
            let woken = woken.clone();
            let wake = Box::new(move || {
                woken.fetch_add(1, Ordering::Relaxed);
            });
            Listener::waking(0, false, wake)
        };
        let told = |signal: &str| Some(format!("{signal} to the process of rank 3"));
        assert_eq!(listener.take(Rank(3)), None);
        listener.hear(SIGUSR1);
        listener.hear(SIGTERM);
        assert_eq!((listener.take(Rank(3)), listener.take(Rank(3))), (told("SIGUSR1"), None));
        assert_eq!(woken.load(Ordering::Relaxed), 1);
        let next = Listener::waking(SIGTERM, false, Box::new(|| ()));
        assert_eq!(next.take(Rank(3)), told("SIGTERM"), "the process was told before this run began");
    }
}
