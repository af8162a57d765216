//! Records the progress and the result of a run of an array, wherever the program's chunks are.
//!
//! Each process has its own [`IterationClock`], and a chunk may migrate to another process. So chunks send observations
//! to the *collector*, a chunk on rank 0. The collector writes them into the clock of its process and sends complete
//! iterations to the *relay* of each other process. A relay writes them into its clock, which the disturbance injector
//! of that process reads. Only the clock and the parts of rank 0 enter the result. The collector ends the run when all
//! iterations are complete and all parts have come. The last iterations may not have reached the other clocks by then.
//!
//! Relays are a group (one chunk per rank, made anew by a restart), so a run restarts on any number of processes.

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

/// Sends the observations of chunks to the collector. [`run`](super::run) provides it on each rank as a service.
#[derive(Debug)]
pub struct Observers<T: Part> {
    collector: Array<Collector<T>>,
    relays: Array<Relay>,
    processes: u32,
    /// True if parts are collected at the end.
    collect: bool,
}

/// Collects the observations and ends the run.
#[derive(Debug, Serialize, Deserialize)]
struct Collector<T> {
    iterations: u32,
    /// The number of complete iterations that was received last.
    seen: u32,
    /// Parts that are to come.
    missing_parts: u64,
    /// Parts that have come. A checkpoint must hold them, so they are part of the state.
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
    /// `step` iterations are complete on all ranks.
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

/// `step` iterations were complete on all ranks at `at_ns`, ns since the run began.
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
    /// Adds collector, relays and services. `chunks` chunks deliver to `parts`, which all processes pass or none.
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

    /// Reports that the first iteration begins now. One chunk of the program calls this.
    pub fn begin<C: Chunk>(&self, ctx: &mut Ctx<'_, C>) {
        let at_ns = ctx.elapsed_ns();
        ctx.send_to(self.collector, COLLECTOR, Sight::Begun { at_ns });
    }

    /// Reports that `step` iterations are complete on all ranks. One chunk calls this, once for each number.
    pub fn complete<C: Chunk>(&self, ctx: &mut Ctx<'_, C>, step: u32) {
        let at_ns = ctx.elapsed_ns();
        ctx.send_to(self.collector, COLLECTOR, Sight::Complete { step, at_ns });
    }

    /// Delivers the part of a chunk after its last iteration. `part` is called only where results are compared.
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
                // Each process of a job is one rank.
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
