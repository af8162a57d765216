//! Polls the metadata service of the cloud for the notice that it takes this machine back.
//!
//! A thread of the process polls while the run listens, until notice was given. Only an answer that the service
//! documents is a notice. Everything else, from a closed connection to a page of HTML, is a failure, with one warning.
//!
//! | service | interval | notice | advice |
//! |---|---|---|---|
//! | `aws` | 5 s | `spot/instance-action` is there | `events/recommendations/rebalance` is there |
//! | `gcp` | 1 s | `instance/preempted` is `TRUE` | |
//! | `azure` | 1 s | an event of a type that ends this machine is scheduled | |

mod aws;
mod azure;
mod gcp;
mod http;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use self::http::Http;
use super::Notification;
use crate::config::{Cloud, Spot};
use crate::ids::Rank;
use crate::warn::{print_line, warn};

/// Number of failures in a row after which a service that has answered before counts as lost.
const FAILURES_MAX: u32 = 3;
/// Time until services are tried again if none has answered.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// Maximum length of a text from a service that is shown, bytes.
const TEXT_MAX: usize = 64;

/// An announcement of a service about this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    /// The machine is taken back; with a text for the user.
    Notice(String),
    /// The machine may be taken back soon; with a text for the user.
    Advice(String),
}

/// The metadata service of a cloud.
trait Service {
    /// The name for people.
    fn name(&self) -> &'static str;

    /// The time from one poll to the next.
    fn interval(&self) -> Duration;

    /// Succeeds if the service answers, so that this machine is of this cloud.
    fn find(&mut self, http: &Http) -> Result<(), String>;

    /// Polls once. An advice is returned once.
    fn poll(&mut self, http: &Http) -> Result<Option<Event>, String>;
}

fn service(cloud: Cloud) -> Box<dyn Service> {
    match cloud {
        Cloud::Aws => Box::new(aws::Aws::default()),
        Cloud::Gcp => Box::new(gcp::Gcp),
        Cloud::Azure => Box::new(azure::Azure::default()),
    }
}

/// The thread that polls, which stops when this is dropped.
#[derive(Debug)]
pub(super) struct Watcher {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// Starts a thread that gives notice by `notification` when a service of `spot` announces it, if there is one.
    ///
    /// # Errors
    /// If the thread cannot be started, with the reason.
    pub(super) fn start(spot: &Spot, notification: Arc<Notification>) -> Result<Option<Watcher>, String> {
        if spot.is_none() {
            return Ok(None);
        }
        let stop = Arc::new(Stop::default());
        let (spot, stopped) = (spot.clone(), stop.clone());
        let watch = move || watch(&spot, &stopped, &notification);
        let thread = thread::Builder::new().name("caribou spot".into()).spawn(watch);
        let thread = Some(thread.map_err(|why| why.to_string())?);
        Ok(Some(Watcher { stop, thread }))
    }
}

/// Stops the thread. Waits for a request in progress, about 1 s at most.
impl Drop for Watcher {
    fn drop(&mut self) {
        self.stop.set();
        if let Some(thread) = self.thread.take() {
            // A panic was reported, and no notice is needed any more.
            let _ = thread.join();
        }
    }
}

/// A flag that makes the polling thread stop.
#[derive(Debug, Default)]
struct Stop {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    fn set(&self) {
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    fn is_set(&self) -> bool {
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for `time`, or until the flag is set. Returns whether it is set.
    fn wait(&self, time: Duration) -> bool {
        let is_set = self.is_set.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(is_set, time, |is_set| !*is_set);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Polls until notice is given or the run ends.
fn watch(spot: &Spot, stop: &Arc<Stop>, notification: &Notification) {
    let (rank, http) = (notification.rank, Http::new(spot.address, stop.clone()));
    let Some(mut service) = find(spot, stop, &http, rank) else { return };
    let mut contact = Contact::default();
    loop {
        let answer = service.poll(&http);
        if stop.is_set() {
            return;
        }
        match contact.after(&answer, &*service, rank) {
            Some(Line::Lost(line)) => warn(&line),
            Some(Line::Back(line)) => print_line(&format!("caribou: {line}")),
            None => {}
        }
        match answer {
            Ok(Some(Event::Notice(by))) => return notification.give(format!("{by} (rank {rank})")),
            Ok(Some(Event::Advice(by))) => {
                print_line(&format!(
                    "caribou: {by} (rank {rank}): the run makes a checkpoint as soon as possible, and continues"
                ));
                notification.advise();
            }
            Ok(None) | Err(_) => {}
        }
        if stop.wait(service.interval()) {
            return;
        }
    }
}

/// The service of this setting. If none answers, warns once, and tries again. None at the end of the run.
fn find(spot: &Spot, stop: &Stop, http: &Http, rank: Rank) -> Option<Box<dyn Service>> {
    let mut told = false;
    loop {
        let found = found(spot, http);
        if found.is_some() || stop.is_set() {
            return found;
        }
        if !std::mem::replace(&mut told, true) {
            warn(&nothing_found(rank));
        }
        if stop.wait(LOOK_AGAIN) {
            return None;
        }
    }
}

/// The service of this setting; if there are several, the first that answers.
fn found(spot: &Spot, http: &Http) -> Option<Box<dyn Service>> {
    let mut services = spot.clouds.iter().map(|&cloud| service(cloud));
    match spot.clouds.len() {
        0 | 1 => services.next(),
        _ => services.find_map(|mut service| service.find(http).is_ok().then_some(service)),
    }
}

fn nothing_found(rank: Rank) -> String {
    format!(
        "CARIBOU_SPOT=auto: no metadata service of AWS, Google Cloud or Azure answers (rank {rank}): until one \
         answers, only signals give notice"
    )
}

/// Whether the service answers.
#[derive(Debug, Default)]
struct Contact {
    has_answered: bool,
    /// Number of failures in a row.
    failures: u32,
    lost: Option<Loss>,
}

/// The state of a loss that was reported to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    Lasts,
    IsOver,
}

/// A line for the user.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Lost(String),
    Back(String),
}

impl Contact {
    /// A line for the user when the service is lost, and a line when it is back, each once per run.
    fn after(
        &mut self,
        answer: &Result<Option<Event>, String>,
        service: &dyn Service,
        rank: Rank,
    ) -> Option<Line> {
        let name = service.name();
        match answer {
            Ok(_) => {
                (self.has_answered, self.failures) = (true, 0);
                let is_back = self.lost == Some(Loss::Lasts);
                self.lost = self.lost.map(|_| Loss::IsOver);
                is_back.then(|| {
                    Line::Back(format!("the metadata service of {name} answers again (rank {rank})"))
                })
            }
            Err(why) => {
                self.failures += 1;
                let is_lost = self.failures >= FAILURES_MAX || !self.has_answered;
                (is_lost && self.lost.is_none()).then(|| {
                    self.lost = Some(Loss::Lasts);
                    Line::Lost(format!(
                        "the metadata service of {name} gives no usable answer (rank {rank}), polling continues: {why}"
                    ))
                })
            }
        }
    }
}

/// Tells whether a text of a service can be shown.
fn is_plain(text: &str) -> bool {
    let is_shown = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    !text.is_empty() && text.len() <= TEXT_MAX && text.bytes().all(is_shown)
}
