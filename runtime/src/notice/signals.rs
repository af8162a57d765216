//! Receives the signals that give notice: SIGTERM and SIGUSR1.
//!
//! The first signal gives notice to the run, and to later runs of the process. A second SIGTERM ends the process at
//! once. Before the first notice, if no run listens, both signals have their default action. A thread of the process
//! receives signals, from the first run that listens to the end of the process.

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
/// True after SIGTERM has given notice.
static TERMINATED: AtomicBool = AtomicBool::new(false);
/// Why signals cannot be received, if they cannot. Not set before the first run that listens.
static HEARING: OnceLock<Option<String>> = OnceLock::new();

/// Makes signals give notice by `notification`, including an earlier signal. The error is the reason why they cannot.
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

/// Passes a signal to all listeners. Without listeners the signal takes its default action, as does a second SIGTERM.
fn heard(signal: i32) {
    let all: Vec<Arc<Notification>> = {
        let listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.iter().filter_map(Weak::upgrade).collect()
    };
    // A process that got a notice is about to end, even if its run has ended already.
    let ends = match NOTICE.load(Ordering::Acquire) {
        0 => all.is_empty(),
        _ => signal == SIGTERM && TERMINATED.load(Ordering::Acquire),
    };
    if !ends {
        // Kept, so that a run that begins later gets the notice too.
        let _ = NOTICE.compare_exchange(0, signal, Ordering::AcqRel, Ordering::Acquire);
        TERMINATED.fetch_or(signal == SIGTERM, Ordering::AcqRel);
    }
    all.iter().for_each(|listener| listener.give(named(signal, listener.rank)));
    if ends {
        // Does not return for these signals.
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
