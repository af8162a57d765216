//! Listens for notices that the run must end soon: signals, or a cloud that takes the machine back. A run that makes
//! checkpoints then saves its state, and ends with [`Error::Interrupted`](crate::Error::Interrupted).
//!
//! | source | gives notice |
//! |---|---|
//! | `signals` | at SIGTERM or SIGUSR1 to the process |
//! | `spot` | when the metadata service of the cloud announces it, if [`Config::spot`] names a service |
//!
//! Only the first notice counts, from any source. A metadata service can also advise to leave the machine: the run then
//! makes a checkpoint, and goes on.
//!
//! One rank of each process has a [`Listener`], which wakes the rank. The rank passes the notice to rank 0.

mod signals;
mod spot;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use self::spot::Watcher;
use crate::config::{Config, Spot};
use crate::ids::{ROOT, Rank};
use crate::launch::{self, Launch};
use crate::warn::warn;

/// A line for the user about a notice; `by` names its source and the rank that got it.
pub(crate) fn notice_line(by: &str) -> String {
    format!("{by}: the run saves its state and ends after the handlers or iterations that run now")
}

/// Listens for notices while it exists.
#[derive(Debug)]
pub(crate) struct Listener {
    notification: Arc<Notification>,
    /// Stopped with the listener.
    _watcher: Option<Watcher>,
}

impl Listener {
    /// Starts a listener, if this rank listens for its process. The listener calls `wake` at a notice or advice. A
    /// simulated run gets no notices. Warns of a source that does not work.
    pub(crate) fn of_rank(
        rank: Rank,
        config: &Config,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Option<Listener> {
        let is_first = rank == ROOT || config.launch() != Launch::Alone;
        (is_first && config.simulate.is_none()).then(|| Listener::new(rank, config, Box::new(wake)))
    }

    fn new(rank: Rank, config: &Config, wake: Box<dyn Fn() + Send + Sync>) -> Listener {
        let notification = Arc::new(Notification::new(rank, wake));
        // One process per machine polls the service, because the service limits the number of requests.
        let asks = config.launch() == Launch::Alone || launch::is_first_of_host();
        let spot = if asks { config.spot.clone() } else { Spot::none() };
        let started = Watcher::start(&spot, notification.clone());
        let watcher = started.unwrap_or_else(|why| {
            warn(&format!("no metadata service is polled: {why}"));
            None
        });
        if let Err(why) = signals::listen(&notification) {
            warn(&format!("SIGTERM and SIGUSR1 do not give notice, because they cannot be handled: {why}"));
        }
        Listener { notification, _watcher: watcher }
    }

    /// True while a notice or advice was not taken.
    pub(crate) fn has_any(&self) -> bool {
        let Notification { is_given, is_advised, .. } = &*self.notification;
        is_given.load(Ordering::Acquire) || is_advised.load(Ordering::Acquire)
    }

    /// Takes the notice: its source, and the rank that got it.
    pub(crate) fn take(&self) -> Option<String> {
        self.notification.take()
    }

    /// Takes an advice to leave the machine, after which a checkpoint is due. True once per advice.
    pub(crate) fn take_advice(&self) -> bool {
        self.notification.is_advised.swap(false, Ordering::AcqRel)
    }
}

/// The state that the sources of notices share with the listening rank.
struct Notification {
    rank: Rank,
    /// The source of the first notice, with the rank.
    notice: OnceLock<String>,
    /// True from the notice until it is taken.
    is_given: AtomicBool,
    /// True from advice until it is taken.
    is_advised: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl Notification {
    fn new(rank: Rank, wake: Box<dyn Fn() + Send + Sync>) -> Notification {
        let (is_given, is_advised) = Default::default();
        Notification { rank, notice: OnceLock::new(), is_given, is_advised, wake }
    }

    /// Gives notice to the process. Rank 0 warns the user at once, because handlers and iterations may take long to
    /// end. (It also warns of the notices of other ranks.)
    fn give(&self, by: String) {
        if self.begin_with(by) {
            (self.wake)();
            if let Some(by) = self.notice.get().filter(|_| self.rank == ROOT) {
                warn(&notice_line(by));
            }
        }
    }

    /// Gives notice before the run has begun. True if this is the first notice.
    fn begin_with(&self, by: String) -> bool {
        let is_first = self.notice.set(by).is_ok();
        if is_first {
            self.is_given.store(true, Ordering::Release);
        }
        is_first
    }

    fn advise(&self) {
        self.is_advised.store(true, Ordering::Release);
        (self.wake)();
    }

    fn take(&self) -> Option<String> {
        self.is_given.swap(false, Ordering::AcqRel).then(|| self.notice.get().cloned())?
    }
}

impl fmt::Debug for Notification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notification").field("notice", &self.notice).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn the_first_notice_is_given_once() {
        let woken = Arc::new(AtomicU32::new(0));
        let wake = woken.clone();
        let wake = Box::new(move || {
            wake.fetch_add(1, Ordering::Relaxed);
        });
        let notification = Notification::new(Rank(3), wake);
        assert_eq!(notification.take(), None);
        notification.give("first".into());
        notification.give("second".into());
        assert_eq!((notification.take().as_deref(), notification.take()), (Some("first"), None));
        assert_eq!(woken.load(Ordering::Relaxed), 1);
        notification.give("third".into());
        assert_eq!(notification.take(), None);
    }

    #[test]
    fn advice_is_no_notice() {
        let notification = Arc::new(Notification::new(Rank(3), Box::new(|| ())));
        let listener = Listener { notification: notification.clone(), _watcher: None };
        assert!(!listener.has_any());
        notification.advise();
        assert!(listener.has_any() && listener.take().is_none());
        assert!(listener.take_advice() && !listener.take_advice() && !listener.has_any());
    }
}
