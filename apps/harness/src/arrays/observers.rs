//! Observers: chunks that see the iterations go by, wherever the program's own chunks are.
//!
//! A clock is of a process, and a chunk of the program may migrate to another. So one of those tells the collector, a chunk on
//! rank 0, when an iteration is complete. The collector writes that into the clock of its process, and tells the relay of each
//! other process, which does the same: the director there reads it. Only the clock and parts of rank 0 count. The
//! collector has the parts of the result, if they are to be compared, and ends the run when it has seen everything; the
//! last iterations may not have come to the other clocks by then.
//!
//! The relays are a group: a run restarts on any number of processes.

use std::sync::{Arc, Mutex, PoisonError};

use caribou::{Array, Chunk, Ctx, Launch, Placement, Setup};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::iteration_clock::IterationClock;

/// The index of the collector.
const COLLECTOR: u32 = 0;

/// A chunk's part of the result, delivered at the end.
pub trait Part: Serialize + DeserializeOwned + Send + 'static {}

impl<T: Serialize + DeserializeOwned + Send + 'static> Part for T {}

/// The way of chunks to the collector; a service that [`run`](super::run) provides on each rank.
#[derive(Debug)]
pub struct Observers<T: Part> {
    collector: Array<Collector<T>>,
    relays: Array<Relay>,
    processes: u32,
    /// True if parts are collected at the end.
    collect: bool,
}

/// Collects the observations, and ends the run.
#[derive(Debug, Serialize, Deserialize)]
struct Collector<T> {
    iterations: u32,
    /// Iterations seen.
    seen: u32,
    /// Parts that are to come.
    missing_parts: u64,
    /// Parts that have come: part of the state, so that a restarted run has them.
    parts: Vec<T>,
}

/// Messages to the collector.
#[derive(Debug, Serialize, Deserialize)]
enum Sight<T> {
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
}

/// Passes the observations of the collector to the clock of its process.
#[derive(Debug, Serialize, Deserialize)]
struct Relay;

/// So many iterations were complete on all ranks at this moment, ns since the run began.
#[derive(Debug, Serialize, Deserialize)]
struct Complete {
    step: u32,
    at_ns: u64,
}

/// The place where the collector writes its observations; a service.
struct Sink<T> {
    clock: Arc<IterationClock>,
    parts: Option<Arc<Mutex<Vec<T>>>>,
}

/// The clock of this process; a service.
struct ProcessClock(Arc<IterationClock>);

impl<T: Part> Observers<T> {
    /// Sets them up in each process of `launch`. Of each of `chunks` a part goes to `parts`, which all processes have or none.
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
        let missing_parts = if collect { chunks } else { 0 };
        let collector = setup.array_without_sync(1, Placement::Block, move |_: u32| Collector {
            iterations,
            seen: 0,
            missing_parts,
            parts: Vec::new(),
        });
        let relays = setup.group(|_| Relay);
        setup.service(Sink { clock: Arc::clone(clock), parts: parts.cloned() });
        setup.service(ProcessClock(Arc::clone(clock)));
        setup.service(Self { collector, relays, processes, collect });
    }

    /// The first iteration begins now; one chunk tells it.
    pub fn begin<C: Chunk>(&self, ctx: &mut Ctx<'_, C>) {
        let at_ns = ctx.elapsed_ns();
        ctx.send_to(self.collector, COLLECTOR, Sight::Begun { at_ns });
    }

    /// So many iterations are complete on all ranks, now; one chunk tells it, once for each number.
    pub fn complete<C: Chunk>(&self, ctx: &mut Ctx<'_, C>, step: u32) {
        let at_ns = ctx.elapsed_ns();
        ctx.send_to(self.collector, COLLECTOR, Sight::Complete { step, at_ns });
    }

    /// A chunk has done its last iteration; `part` is asked for only where results are to be compared.
    pub fn deliver<C: Chunk>(&self, ctx: &mut Ctx<'_, C>, part: impl FnOnce() -> T) {
        if self.collect {
            ctx.send_to(self.collector, COLLECTOR, Sight::Part(part()));
        }
    }
}

impl<T: Part> Chunk for Collector<T> {
    type Index = u32;
    type Message = Sight<T>;

    fn receive(&mut self, sight: Sight<T>, ctx: &mut Ctx<'_, Self>) {
        let Sink { clock, parts } = ctx.service::<Sink<T>>();
        match sight {
            Sight::Begun { at_ns } => clock.record_start(at_ns),
            Sight::Complete { step, at_ns } => {
                clock.record(step, at_ns);
                self.seen = step;
                let Observers { relays, processes, .. } = *ctx.service::<Observers<T>>();
                // A process is a rank.
                for rank in 1..processes {
                    ctx.send_to(relays, rank, Complete { step, at_ns });
                }
            }
            Sight::Part(part) => {
                self.parts.push(part);
                self.missing_parts -= 1;
            }
        }
        if self.has_seen_everything() {
            if let Some(parts) = parts {
                parts.lock().unwrap_or_else(PoisonError::into_inner).append(&mut self.parts);
            }
            ctx.exit();
        }
    }
}

impl Chunk for Relay {
    type Index = u32;
    type Message = Complete;

    fn receive(&mut self, Complete { step, at_ns }: Complete, ctx: &mut Ctx<'_, Self>) {
        ctx.service::<ProcessClock>().0.record(step, at_ns);
    }
}

impl<T> Collector<T> {
    fn has_seen_everything(&self) -> bool {
        self.seen == self.iterations && self.missing_parts == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_ends_when_iterations_and_parts_are_all_in() {
        let collector =
            |seen, missing_parts| Collector::<u8> { iterations: 5, seen, missing_parts, parts: Vec::new() };
        assert!(collector(5, 0).has_seen_everything());
        for awaiting in [collector(4, 0), collector(5, 1)] {
            assert!(!awaiting.has_seen_everything(), "{awaiting:?}");
        }
    }
}
