//! Warns of handlers that do not return, and of pools whose workers all wait for the policy.
//!
//! A thread samples the activity of each worker, about once per second. The watchdog ends nothing, because threads
//! cannot be killed and borrow data of the caller of `run`. A run, failed or not, can only wait for its handlers, and
//! the watchdog names them.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use litemap::LiteMap;

use super::outcome::Outcome;
use crate::config::Config;
use crate::ids::{Rank, WorkerId};
use crate::trace::activity_board::Running;
use crate::warn::warn;

/// Maximum time between two samples.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

/// The time between two samples, by the configuration.
pub(crate) fn sample_interval(config: &Config) -> Duration {
    SAMPLE_INTERVAL.min(config.watchdog / 4)
}

/// The watchdog of one process; stops when dropped.
pub(crate) struct Watchdog {
    /// The thread stops when this end of the channel is dropped.
    stop: Option<Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Starts the watchdog, unless the configuration disables it. If no thread can be started, the run goes on without.
    /// `running` returns the work that has been running since its last call.
    pub(crate) fn start(
        config: &Config,
        outcome: &Arc<Outcome>,
        mut running: impl FnMut() -> Vec<Running> + Send + 'static,
    ) -> Option<Watchdog> {
        if config.watchdog.is_zero() {
            return None;
        }
        let (stop, stopped) = channel();
        let outcome = outcome.clone();
        let mut warnings = Warnings::after(config.watchdog);
        let every = sample_interval(config);
        let watch = move || {
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                let why = outcome.error().map(|error| error.to_string());
                warnings.due(&running(), why.as_deref()).iter().for_each(|line| warn(line));
            }
        };
        let started = std::thread::Builder::new().name("caribou guard".into()).spawn(watch);
        let thread =
            started.inspect_err(|why| tracing::warn!(%why, "the watchdog cannot be started")).ok()?;
        Some(Watchdog { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Watchdog {
    /// Stops the thread, and waits for it.
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Tells whether a process makes no progress. Counts samples instead of time, because a stopped process takes none.
pub(crate) struct ProgressCheck {
    /// Number of equal samples in a row that count as no progress.
    limit: u32,
    looks: u32,
    /// Number of handlers and iterations that had begun by the last sample.
    begun: u64,
}

#[cfg_attr(
    all(not(test), not(feature = "mpi")),
    expect(dead_code, reason = "only a process among several asks others")
)]
impl ProgressCheck {
    pub(crate) fn after(limit: Duration, every: Duration) -> ProgressCheck {
        let looks = limit.as_nanos() / every.as_nanos().max(1);
        ProgressCheck { limit: u32::try_from(looks).unwrap_or(u32::MAX).max(1), looks: 0, begun: 0 }
    }

    /// Adds a sample of the number of begun items. True if the number has not changed for the limit, and again after
    /// each further limit.
    pub(crate) fn add_sample(&mut self, begun: u64) -> bool {
        self.looks = if std::mem::replace(&mut self.begun, begun) == begun { self.looks + 1 } else { 0 };
        self.looks > 0 && self.looks.is_multiple_of(self.limit)
    }
}

/// The warnings so far, and the times at which the next ones are due.
struct Warnings {
    after_ns: u64,
    /// The warnings by rank and worker.
    told: LiteMap<(Rank, Option<WorkerId>), HandlerWarning>,
    failed: bool,
}

/// The warnings about the handler that a worker runs.
struct HandlerWarning {
    /// How long the handler had run at the last sample, ns.
    last_ns: u64,
    /// How long it must have run for the next warning, ns.
    next_ns: u64,
}

impl Warnings {
    fn after(limit: Duration) -> Warnings {
        Warnings { after_ns: limit.as_nanos() as u64, told: LiteMap::new(), failed: false }
    }

    /// The warnings that are due now. The next warning about the same handler is due when it has run twice as long. In
    /// a failed run, where nothing else happens, warnings are equally spaced.
    fn due(&mut self, running: &[Running], failed: Option<&str>) -> Vec<String> {
        if failed.is_some() && !std::mem::replace(&mut self.failed, true) {
            self.told.clear();
        }
        self.told.retain(|&place, _| running.iter().any(|other| other.place() == place));
        let mut lines = Vec::new();
        for handler in running {
            let anew = || HandlerWarning { last_ns: 0, next_ns: self.after_ns };
            let told = self.told.entry(handler.place()).or_insert_with(anew);
            if handler.long_ns < told.last_ns {
                // A new handler, which began since the last sample.
                *told = anew();
            }
            told.last_ns = handler.long_ns;
            if handler.long_ns < told.next_ns {
                continue;
            }
            told.next_ns = handler.long_ns + if failed.is_some() { self.after_ns } else { handler.long_ns };
            let rest = failed.map(|why| format!("; the run has failed and ends when that returns: {why}"));
            lines.push(format!("{handler}{}", rest.unwrap_or_default()));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    /// The seconds of the warnings about a handler that runs until second `end`, in a run that fails at second `fails`.
    fn told(end: u64, fails: u64) -> Vec<u64> {
        let mut warnings = Warnings::after(LIMIT);
        let is_told = |&second: &u64| {
            let long_ns = second * 1_000_000_000;
            let running = Running {
                rank: Rank(1),
                worker: Some(WorkerId(0)),
                what: "X[3]".into(),
                kind: None,
                long_ns,
            };
            !warnings.due(&[running], (second >= fails).then_some("it failed")).is_empty()
        };
        (0..end).filter(is_told).collect()
    }

    #[test]
    fn a_handler_is_told_of_ever_more_rarely() {
        assert_eq!(told(100, u64::MAX), [10, 20, 40, 80]);
    }

    #[test]
    fn once_the_run_has_failed_it_says_what_it_waits_for_again_and_again() {
        assert_eq!(told(50, 25), [10, 20, 25, 35, 45]);
    }

    #[test]
    fn a_process_in_which_nothing_begins_stands_still() {
        let mut standing = ProgressCheck::after(LIMIT, Duration::from_millis(2_500));
        let begun = [0, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 5, 5, 5, 5, 5];
        let stands: Vec<usize> =
            (0..).zip(begun).filter_map(|(look, begun)| standing.add_sample(begun).then_some(look)).collect();
        assert_eq!(stands, [5, 9, 17], "four looks after it last began something");
    }

    #[test]
    fn the_next_handler_begins_anew() {
        let running = |worker, long_s: u64| Running {
            rank: Rank(0),
            worker: Some(WorkerId(worker)),
            what: "X[3]".into(),
            kind: Some("Go".into()),
            long_ns: long_s * 1_000_000_000,
        };
        let mut warnings = Warnings::after(LIMIT);
        let first = "rank 0, worker 2 has run X[3] in its handler of `Go` for 10 s";
        assert_eq!(warnings.due(&[running(2, 10)], None), [first]);
        assert_eq!(warnings.due(&[], None), [""; 0]);
        assert_eq!(warnings.due(&[running(2, 10)], None), [first]);
        // The samples may never find the worker between two handlers.
        assert_eq!(warnings.due(&[running(2, 1)], None), [""; 0]);
        assert_eq!(warnings.due(&[running(2, 10)], None), [first]);
    }
}
