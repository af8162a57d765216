//! Reads the events of a trace and passes them to observers, in one of two orders:
//!
//! | order | memory | use |
//! |---|---|---|
//! | [`by_worker`] | some batches of events | sums, which need only the order within one worker |
//! | [`in_order`], [`Events`] | a block of events per worker | what connects workers: messages, migrating chunks, critical paths |
//!
//! The order of time is only as exact as the clocks of different processes agree (the trace has their differences in
//! `End::clocks`). It is not corrected.
//! Unreadable events are skipped and reported at the end.

use std::fmt;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use caribou::trace::Event;
use trace_reader::{Problem, RankTrace, Stream, Trace};

use super::merge::Merge;
use crate::trace::select::{Selection, Window};

/// Note where a command needs events and the trace has none.
pub(crate) fn no_events(trace: &Trace) -> String {
    let why = match trace.run.filter.as_str() {
        "" | "all" => "CARIBOU_TRACE records events".into(),
        filter => format!(
            "the run recorded with CARIBOU_TRACE_FILTER={filter}; without it, all events are recorded"
        ),
    };
    format!("no events were recorded, only the profile: `caribou trace profile` shows it ({why})")
}

/// Number of events that one thread passes to another at a time.
const BATCH: usize = 1024;
/// Number of batches that are read ahead per worker.
const AHEAD: usize = 4;

/// The worker on which an event happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerRef<'t> {
    pub(crate) rank: &'t RankTrace,
    pub(crate) worker: u32,
}

impl WorkerRef<'_> {
    pub(crate) fn name(self) -> WorkerName {
        WorkerName { rank: self.rank.rank, worker: self.worker }
    }
}

/// A worker of a run: its rank, and its number on the rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct WorkerName {
    pub(crate) rank: u32,
    pub(crate) worker: u32,
}

impl fmt::Display for WorkerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.rank, self.worker)
    }
}

/// Computes something from events that it receives one by one.
pub(crate) trait Observer<'t> {
    fn see(&mut self, place: WorkerRef<'t>, event: &Event);
}

/// The events to read: those of some workers that overlap a span of time.
#[derive(Clone, Debug)]
pub(crate) struct Scope<'t> {
    pub(crate) places: Vec<WorkerRef<'t>>,
    pub(crate) window: Window,
}

impl<'t> Scope<'t> {
    /// All events.
    pub(crate) fn all(trace: &'t Trace) -> Scope<'t> {
        Scope::of(&trace.ranks, Window { from_ns: 0, to_ns: u64::MAX })
    }

    /// The selected ranks and times.
    pub(crate) fn selected(trace: &'t Trace, selection: &Selection) -> Scope<'t> {
        Scope::of(selection.ranks(trace), selection.window(trace))
    }

    /// All workers of these ranks.
    pub(crate) fn of(ranks: impl IntoIterator<Item = &'t RankTrace>, window: Window) -> Scope<'t> {
        let workers = |rank: &'t RankTrace| (0..rank.workers).map(move |worker| WorkerRef { rank, worker });
        Scope { places: ranks.into_iter().flat_map(workers).collect(), window }
    }

    fn stream(&self, WorkerRef { rank, worker }: WorkerRef<'_>) -> Stream {
        rank.stream_between(worker, self.window.from_ns, self.window.to_ns)
    }

    fn touches(&self, event: &Event) -> bool {
        event.end_ns >= self.window.from_ns && event.begin_ns <= self.window.to_ns
    }
}

/// Events of several workers, ordered by their ends.
pub(crate) struct Events<'t> {
    scope: Scope<'t>,
    merge: Merge<Stream>,
}

impl<'t> Events<'t> {
    pub(crate) fn new(scope: Scope<'t>) -> Events<'t> {
        let streams = scope.places.iter().map(|&place| scope.stream(place)).collect();
        Events { merge: Merge::new(streams, |event| event.end_ns), scope }
    }

    /// Problems so far.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        self.merge.sources().iter().flat_map(|stream| stream.problems().to_vec()).collect()
    }
}

impl<'t> Iterator for Events<'t> {
    type Item = (WorkerRef<'t>, Event);

    fn next(&mut self) -> Option<Self::Item> {
        let (worker, event) = self.merge.find(|(_, event)| self.scope.touches(event))?;
        Some((self.scope.places[worker], event))
    }
}

/// Passes all events to all observers in order of time. Returns what could not be read.
pub(crate) fn in_order<'t>(scope: Scope<'t>, observers: &mut [&mut dyn Observer<'t>]) -> Vec<Problem> {
    let mut events = Events::new(scope);
    for (place, event) in &mut events {
        observers.iter_mut().for_each(|observer| observer.see(place, &event));
    }
    events.problems()
}

/// Passes all events to all observers, worker by worker. Returns what could not be read. Threads read ahead, if any can
/// be started. Only the calling thread calls observers.
pub(crate) fn by_worker<'t>(scope: &Scope<'t>, observers: &mut [&mut dyn Observer<'t>]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut show = |place: WorkerRef<'t>, part: Part| match part {
        Ok(events) => {
            observers
                .iter_mut()
                .for_each(|observer| events.iter().for_each(|event| observer.see(place, event)));
        }
        Err(problem) => problems.push(problem),
    };
    let (senders, receivers): (Vec<SyncSender<Part>>, Vec<_>) =
        scope.places.iter().map(|_| sync_channel(AHEAD)).unzip();
    let work = Mutex::new(scope.places.iter().zip(senders));
    let read_ahead = || {
        // Threads take workers in order, so the worker that the caller waits for is being read.
        while let Some((&place, sender)) = next(&work) {
            // The receiver is gone if an observer panicked.
            read(scope, place, |part| sender.send(part).is_ok());
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(scope.places.len());
    thread::scope(|all| {
        let start = |_: &usize| thread::Builder::new().spawn_scoped(all, read_ahead).is_ok();
        if (0..threads).take_while(start).count() == 0 {
            for &place in &scope.places {
                read(scope, place, |part| {
                    show(place, part);
                    true
                });
            }
            return;
        }
        for (&place, parts) in scope.places.iter().zip(receivers) {
            parts.iter().for_each(|part| show(place, part));
        }
    });
    problems
}

/// Some events of a worker, or the reason that they cannot be read.
type Part = Result<Vec<Event>, Problem>;

fn next<I: Iterator>(work: &Mutex<I>) -> Option<I::Item> {
    work.lock().unwrap_or_else(PoisonError::into_inner).next()
}

/// Passes all events of a worker that overlap the window to `take`, until it returns false.
fn read(scope: &Scope<'_>, place: WorkerRef<'_>, mut take: impl FnMut(Part) -> bool) {
    let mut stream = scope.stream(place);
    let touching = |batch: &[Event]| batch.iter().filter(|event| scope.touches(event)).copied().collect();
    while let Some(block) = stream.next_block() {
        let taken = match block {
            Ok(events) => events.chunks(BATCH).all(|batch| take(Ok(touching(batch)))),
            Err(problem) => take(Err(problem)),
        };
        if !taken {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Scratch;
    use crate::trace::tests::{generated, handler};
    use caribou::trace::{RunRecord, Writer};

    #[derive(Default)]
    struct Seen(Vec<(WorkerName, Event)>);

    impl Observer<'_> for Seen {
        fn see(&mut self, place: WorkerRef<'_>, event: &Event) {
            self.0.push((place.name(), *event));
        }
    }

    #[test]
    fn both_orders_show_every_event_once_to_every_observer() {
        let dir = generated("events", 20_000);
        let trace = Trace::open(dir.path()).unwrap();
        let mut expected = Vec::new();
        let name = |rank: &RankTrace, worker| WorkerName { rank: rank.rank, worker };
        trace.for_each(|rank, worker, event| expected.push((name(rank, worker), *event)));
        let (mut one, mut other, mut merged) = (Seen::default(), Seen::default(), Seen::default());
        assert_eq!(by_worker(&Scope::all(&trace), &mut [&mut one, &mut other]), []);
        assert!(one.0 == expected && other.0 == expected, "worker by worker");
        assert_eq!(in_order(Scope::all(&trace), &mut [&mut merged]), []);
        assert!(merged.0.is_sorted_by_key(|(_, event)| event.end_ns));
        merged.0.sort_by_key(|&(worker, _)| worker);
        assert!(merged.0 == expected, "each worker in its order");
    }

    #[test]
    fn events_are_told_with_the_names_of_their_workers() {
        let dir = Scratch::new("events-workers");
        let run = RunRecord { ranks: 1, workers: vec![2], ..RunRecord::default() };
        let mut writer = Writer::create(dir.path(), &run).unwrap();
        writer.events(0, &[handler(10, 20, 1, None, 0)]).unwrap();
        writer.events(1, &[handler(12, 15, 2, None, 0)]).unwrap();
        let trace = Trace::open(dir.path()).unwrap();
        let mut seen = Seen::default();
        in_order(Scope::all(&trace), &mut [&mut seen]);
        let names: Vec<String> = seen.0.iter().map(|(worker, _)| worker.to_string()).collect();
        assert_eq!(names, ["0.1", "0.0"]);
    }

    #[test]
    fn only_events_that_touch_the_window_are_shown() {
        let dir = generated("events-window", 20_000);
        let trace = Trace::open(dir.path()).unwrap();
        let window = Window { from_ns: trace.elapsed_ns() / 3, to_ns: trace.elapsed_ns() / 2 };
        let (mut one, mut merged) = (Seen::default(), Seen::default());
        let scope = Scope::of(trace.ranks.iter().skip(1), window);
        by_worker(&scope, &mut [&mut one]);
        in_order(scope, &mut [&mut merged]);
        assert!(!one.0.is_empty() && one.0.len() == merged.0.len());
        let outside = |event: &Event| event.end_ns < window.from_ns || event.begin_ns > window.to_ns;
        assert!(!one.0.iter().any(|(worker, event)| worker.rank == 0 || outside(event)));
    }
}
