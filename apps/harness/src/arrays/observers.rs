//! Observers: one chunk in each process that sees the iterations go by, wherever the program's own chunks are.
//!
//! A clock is of a process, and a chunk of the program may migrate to another. So one of those tells all observers when an
//! iteration is complete, and each writes that into the clock of its process: the director there reads it. Observers are
//! in no sync and never migrate. The first is on rank 0, whose clock and parts are those that count: it collects the parts
//! of the result, if they are to be compared, and ends the run when it has seen everything and every other observer the
//! last iteration.

use std::sync::{Arc, Mutex, PoisonError};

use caribou::{Array, Chunk, Ctx, Launch, Placement, Setup};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::iteration_clock::IterationClock;

/// The observer that collects and ends the run.
const FIRST: u32 = 0;

/// A chunk's part of the result, delivered at the end.
pub trait Part: Serialize + DeserializeOwned + Send + 'static {}

impl<T: Serialize + DeserializeOwned + Send + 'static> Part for T {}

/// The way of chunks to the observers; a service that [`run`](super::run) provides on each rank.
#[derive(Debug)]
pub struct Observers<T: Part> {
    array: Array<Observer<T>>,
    processes: u32,
    /// True if parts are collected at the end.
    collect: bool,
}

/// An observer: counts what is still to be seen in this process.
#[derive(Debug, Serialize, Deserialize)]
struct Observer<T> {
    iterations: u32,
    /// Iterations seen.
    seen: u32,
    /// Parts that are to come; only the first observer's count matters.
    missing_parts: u64,
    /// Others that have not seen the last iteration; only the first observer's count matters.
    missing_observers: u32,
    /// Parts that have come: part of the state, so that a restarted run has them.
    parts: Vec<T>,
}

/// Messages to observers.
#[derive(Debug, Serialize, Deserialize)]
enum ObserverMessage<T> {
    /// The first iteration has begun.
    Begun {
        /// The moment, ns since the run began.
        at_ns: u64,
    },
    /// So many iterations are complete on all ranks.
    Complete {
        /// Iterations.
        step: u32,
        /// The moment, ns since the run began.
        at_ns: u64,
    },
    /// A chunk's part of the result.
    Part(T),
    /// Another observer has seen the last iteration.
    AllSeen,
}

/// The place where an observer writes what it sees; a service.
struct ObserverSink<T> {
    clock: Arc<IterationClock>,
    parts: Option<Arc<Mutex<Vec<T>>>>,
}

impl<T: Part> Observers<T> {
    /// Sets up one in each process of `launch`. Of each of `chunks` a part goes to `parts`, which all processes have or none.
    pub(super) fn set_up(
        setup: &mut Setup,
        launch: Launch,
        chunks: u64,
        clock: &Arc<IterationClock>,
        parts: Option<&Arc<Mutex<Vec<T>>>>,
    ) {
        let processes = match launch {
            Launch::Alone => 1,
            Launch::Together { processes, .. } => processes,
        };
        let (iterations, collect) = (clock.iterations(), parts.is_some());
        // One after the other in turn is one on each rank, and a single one on rank 0.
        let array = setup.array_without_sync(processes, Placement::RoundRobin, move |_: u32| {
            Observer::new(iterations, if collect { chunks } else { 0 }, processes - 1)
        });
        setup.service(ObserverSink { clock: Arc::clone(clock), parts: parts.cloned() });
        setup.service(Self { array, processes, collect });
    }

    /// The first iteration begins now; one chunk tells it.
    pub fn begin<C: Chunk>(&self, ctx: &mut Ctx<'_, C>) {
        let at_ns = ctx.elapsed_ns();
        ctx.send_to(self.array, FIRST, ObserverMessage::Begun { at_ns });
    }

    /// So many iterations are complete on all ranks, now; one chunk tells it, once for each number.
    pub fn complete<C: Chunk>(&self, ctx: &mut Ctx<'_, C>, step: u32) {
        let at_ns = ctx.elapsed_ns();
        for observer in 0..self.processes {
            ctx.send_to(self.array, observer, ObserverMessage::Complete { step, at_ns });
        }
    }

    /// A chunk has done its last iteration; `part` is asked for only where results are to be compared.
    pub fn deliver<C: Chunk>(&self, ctx: &mut Ctx<'_, C>, part: impl FnOnce() -> T) {
        if self.collect {
            ctx.send_to(self.array, FIRST, ObserverMessage::Part(part()));
        }
    }
}

impl<T: Part> Chunk for Observer<T> {
    type Index = u32;
    type Message = ObserverMessage<T>;

    fn receive(&mut self, sight: ObserverMessage<T>, ctx: &mut Ctx<'_, Self>) {
        let ObserverSink { clock, parts } = ctx.service::<ObserverSink<T>>();
        match sight {
            ObserverMessage::Begun { at_ns } => clock.record_start(at_ns),
            ObserverMessage::Complete { step, at_ns } => {
                clock.record(step, at_ns);
                self.seen = step;
                if self.seen == self.iterations && ctx.index() != FIRST {
                    ctx.send(FIRST, ObserverMessage::AllSeen);
                }
            }
            ObserverMessage::Part(part) => {
                self.parts.push(part);
                self.missing_parts -= 1;
            }
            ObserverMessage::AllSeen => self.missing_observers -= 1,
        }
        if ctx.index() == FIRST && self.has_seen_everything() {
            if let Some(parts) = parts {
                parts.lock().unwrap_or_else(PoisonError::into_inner).append(&mut self.parts);
            }
            ctx.exit();
        }
    }
}

impl<T> Observer<T> {
    fn new(iterations: u32, missing_parts: u64, missing_observers: u32) -> Self {
        Self { iterations, seen: 0, missing_parts, missing_observers, parts: Vec::new() }
    }

    fn has_seen_everything(&self) -> bool {
        self.seen == self.iterations && self.missing_parts == 0 && self.missing_observers == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_ends_when_iterations_parts_and_other_observers_are_all_in() {
        let observer = |seen, missing_parts, missing_observers| {
            let new: Observer<u8> = Observer::new(5, missing_parts, missing_observers);
            Observer { seen, ..new }
        };
        assert!(observer(5, 0, 0).has_seen_everything());
        for awaiting in [observer(4, 0, 0), observer(5, 1, 0), observer(5, 0, 1)] {
            assert!(!awaiting.has_seen_everything(), "{awaiting:?}");
        }
    }
}
