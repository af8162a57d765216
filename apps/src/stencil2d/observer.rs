//! Observers: one chunk in each process that sees the iterations go by, wherever the plate's own chunks are.
//!
//! A clock and a sink are of a process, and a chunk of the plate may migrate to another. So chunk [0, 0] of the plate
//! tells all observers when an iteration is complete, and each writes that into the clock of its process: the director
//! there reads it. Observers are in no sync and never migrate. The first is on rank 0, whose clock and sink are those that
//! count: it collects the cells, if they are to be compared, and ends the run when it has seen everything and every other
//! observer the last iteration.

use std::sync::Arc;

use caribou::{Array, Chunk, Ctx, Launch, Placement, Setup};
use serde::{Deserialize, Serialize};

use super::plate::Shape;
use super::run::Sink;
use crate::harness::iteration_clock::IterationClock;

/// The observer that collects and ends the run.
const FIRST: u32 = 0;

/// What is still to be seen in this process.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Observer {
    shape: Shape,
    iterations: u32,
    /// Iterations seen.
    seen: u32,
    /// Chunks whose cells are to come; only the first observer's count matters.
    missing_cells: u64,
    /// Others that have not seen the last iteration; only the first observer's count matters.
    missing_observers: u32,
}

/// What observers are told.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Sight {
    /// The first iteration has begun.
    Begun {
        /// When, ns since the run began.
        at_ns: u64,
    },
    /// So many iterations are complete on all ranks.
    Complete {
        /// Iterations.
        step: u32,
        /// When, ns since the run began.
        at_ns: u64,
    },
    /// The cells of a chunk at the end.
    Cells {
        /// The chunk.
        index: [u16; 2],
        /// Row by row.
        #[serde(with = "caribou::bulk")]
        cells: Vec<f64>,
    },
    /// Another observer has seen the last iteration.
    AllSeen,
}

/// How the chunks of a rank reach the observers; a service.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observers {
    array: Array<Observer>,
    processes: u32,
    /// Whether chunks show their cells at the end.
    pub(super) compared: bool,
}

/// Where an observer writes what it sees; a service.
#[derive(Clone, Debug)]
struct Notebook {
    clock: Arc<IterationClock>,
    sink: Option<Arc<Sink>>,
}

impl Observers {
    /// Sets up one in each process of `launch`. The plate's cells go to `sink`, which all processes have or none.
    pub(super) fn set_up(
        setup: &mut Setup,
        launch: Launch,
        shape: Shape,
        clock: &Arc<IterationClock>,
        sink: Option<&Arc<Sink>>,
    ) {
        let processes = match launch {
            Launch::Alone => 1,
            Launch::Together { processes, .. } => processes,
        };
        let (iterations, compared) = (clock.iterations(), sink.is_some());
        // One after the other in turn is one on each rank, and a single one on rank 0.
        let array = setup.array_without_sync(processes, Placement::RoundRobin, move |_: u32| Observer {
            shape,
            iterations,
            seen: 0,
            missing_cells: if compared { shape.chunks() } else { 0 },
            missing_observers: processes - 1,
        });
        setup.service(Notebook { clock: Arc::clone(clock), sink: sink.cloned() });
        setup.service(Observers { array, processes, compared });
    }

    /// Tells the first observer.
    pub(super) fn tell_first<C: Chunk>(&self, ctx: &mut Ctx<'_, C>, sight: Sight) {
        ctx.send_to(self.array, FIRST, sight);
    }

    /// Tells every observer that an iteration is complete, and when that was: now.
    pub(super) fn tell_complete<C: Chunk>(&self, ctx: &mut Ctx<'_, C>, step: u32) {
        let at_ns = ctx.elapsed_ns();
        for observer in 0..self.processes {
            ctx.send_to(self.array, observer, Sight::Complete { step, at_ns });
        }
    }
}

impl Chunk for Observer {
    type Index = u32;
    type Message = Sight;

    fn receive(&mut self, sight: Sight, ctx: &mut Ctx<'_, Self>) {
        let Notebook { clock, sink } = ctx.service();
        match sight {
            Sight::Begun { at_ns } => clock.record_start(at_ns),
            Sight::Complete { step, at_ns } => {
                clock.record(step, at_ns);
                self.seen = step;
                if self.seen == self.iterations && ctx.index() != FIRST {
                    ctx.send(FIRST, Sight::AllSeen);
                }
            }
            Sight::Cells { index, cells } => {
                let sink = sink.as_ref().expect("cells are sent where there is a sink");
                sink.fill(self.shape.part(index), &cells);
                self.missing_cells -= 1;
            }
            Sight::AllSeen => self.missing_observers -= 1,
        }
        if ctx.index() == FIRST && self.has_seen_everything() {
            ctx.exit();
        }
    }
}

impl Observer {
    fn has_seen_everything(&self) -> bool {
        self.seen == self.iterations && self.missing_cells == 0 && self.missing_observers == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_ends_when_iterations_cells_and_other_observers_are_all_in() {
        let shape = Shape::new(8, 4).expect("a chunk smaller than the grid");
        let observer = |seen, missing_cells, missing_observers| Observer {
            shape,
            iterations: 5,
            seen,
            missing_cells,
            missing_observers,
        };
        assert!(observer(5, 0, 0).has_seen_everything());
        for awaiting in [observer(4, 0, 0), observer(5, 1, 0), observer(5, 0, 1)] {
            assert!(!awaiting.has_seen_everything(), "{awaiting:?}");
        }
    }
}
