//! Signals that give notice: SIGTERM and SIGUSR1.
//!
//! The first signal gives notice to the run, and to later runs of the process. A second SIGTERM ends the process at once.
//! While no run listens and none has been given notice, both signals keep their default action. A thread of the process
//! receives them, from the first run that listens to the end of the process.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::{io, thread};

use signal_hook::consts::{SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::Notification;
use crate::ids::Rank;

/// The listeners of this process.
static LISTENERS: Mutex<Vec<Weak<Notification>>> = Mutex::new(Vec::new());
/// The signal that has given notice to this process; 0 before.
static NOTICE: AtomicI32 = AtomicI32::new(0);
/// True once SIGTERM has given notice.
static TERMINATED: AtomicBool = AtomicBool::new(false);
/// The reason why signals cannot be received, if they cannot; unset before the first run that listens.
static HEARING: OnceLock<Option<String>> = OnceLock::new();

/// Signals give notice by this from now on, and so does one that has come before. The error says why they cannot.
pub(super) fn listen(notification: &Arc<Notification>) -> Result<(), String> {
    let mut listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
    listeners.retain(|other| other.strong_count() > 0);
    listeners.push(Arc::downgrade(notification));
    drop(listeners);
    let before = NOTICE.load(Ordering::Acquire);
    if before != 0 {
        notification.begin_with(named(before, notification.rank));
    }
    HEARING.get_or_init(|| hear().err().map(|why| why.to_string())).clone().map_or(Ok(()), Err)
}

fn named(signal: i32, rank: Rank) -> String {
    let signal = if signal == SIGUSR1 { "SIGUSR1" } else { "SIGTERM" };
    format!("{signal} to the process of rank {rank}")
}

/// Starts the thread that receives signals.
fn hear() -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGUSR1])?;
    let hear = move || signals.forever().for_each(heard);
    thread::Builder::new().name("caribou hears".into()).spawn(hear).map(drop)
}

/// Tells all listeners of a signal. Without any it takes its default action, and so does a second SIGTERM.
fn heard(signal: i32) {
    let all: Vec<Arc<Notification>> = {
        let listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.iter().filter_map(Weak::upgrade).collect()
    };
    // A process that was given notice is about to end, also when its run has ended already.
    let ends = match NOTICE.load(Ordering::Acquire) {
        0 => all.is_empty(),
        _ => signal == SIGTERM && TERMINATED.load(Ordering::Acquire),
    };
    if !ends {
        // A run that begins later gets the notice too.
        let _ = NOTICE.compare_exchange(0, signal, Ordering::AcqRel, Ordering::Acquire);
        TERMINATED.fetch_or(signal == SIGTERM, Ordering::AcqRel);
    }
    all.iter().for_each(|listener| listener.give(named(signal, listener.rank)));
    if ends {
        // It does not return for these signals.
        let _ = emulate_default_handler(signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_names_the_signal_and_the_rank() {
        assert_eq!(named(SIGUSR1, Rank(3)), "SIGUSR1 to the process of rank 3");
        assert_eq!(named(SIGTERM, Rank(0)), "SIGTERM to the process of rank 0");
    }
}
