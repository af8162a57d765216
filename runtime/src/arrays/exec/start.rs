//! Runs a rank that is set up: starts its workers, and returns when all of them have left.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use lb_strategies::balancer::RankPlace;
use lb_strategies::{Shape, Strategy};

use super::build::{Beginning, RankParts, build_rank, name_chunk};
use super::ready::{ReadyQueue, SharedQueues};
use super::scheduler::Scheduler;
use super::shared::RankShared;
use super::worker::Worker;
use crate::arrays::core::collectives::tree::ARITY;
use crate::arrays::core::lifecycle::erased::RankSetup;
use crate::arrays::core::packet::Packet;
use crate::arrays::report::Figures;
use crate::error::Error;
use crate::ids::{ROOT, WorkerId};
use crate::launch::Launch;
use crate::run::context::{RankContext, thread_refused};
use crate::threads::elided_mutex::Owner;
use crate::transport::handle::TransportHandle;

/// Number of turns that an idle worker spins before it parks, about 20 us, if every worker has a separate vCPU.
const SPINS: u32 = 1500;

/// A rank that is set up and about to run.
pub(crate) struct Start<'s> {
    pub(crate) seat: RankContext<'s, Packet>,
    pub(crate) described: RankSetup,
    pub(crate) beginning: Beginning,
    pub(crate) strategy: Arc<dyn Strategy>,
}

impl Start<'_> {
    /// Runs the rank with the calling thread as its worker 0.
    pub(crate) fn run(self) -> Figures {
        let Start { seat, described, beginning, strategy } = self;
        let RankContext {
            config,
            rank,
            plan,
            watch,
            team,
            clock,
            outcome,
            transport,
            run_recording: session,
        } = seat;
        let seats = &plan.placements[rank.index()];
        let owner = Owner::new();
        owner.enter();
        let _bound = seats.pin_worker(rank, WorkerId(0), watch);
        let (queues, readies) = SharedQueues::new(seats.workers);
        let spins = if seats.avoid_spinning { 0 } else { SPINS };
        let places =
            plan.placements.iter().map(|seats| RankPlace { host: seats.host, workers: seats.workers });
        let names: Vec<String> = described.arrays.iter().map(|array| array.name().to_owned()).collect();
        let (recording, untraced) = session.rank(rank, &names, &clock);
        recording.describe(name_chunk(&described.arrays), strategy.name());
        let places = places.collect();
        let scheduler = Scheduler::new(queues, team, spins);
        let crowding = plan.crowding();
        let takes = rank == ROOT || config.launch() != Launch::Alone;
        let resizes = takes.then(|| session.resizes().clone());
        let is_layered = session.run().shape != Shape::Arrays;
        let parts = RankParts {
            scheduler,
            clock,
            outcome,
            strategy,
            recording,
            places,
            crowding,
            arity: ARITY,
            resizes,
            is_layered,
        };
        let built = build_rank(config, rank, described, &owner, parts);
        let shared = &built;
        thread::scope(|scope| {
            let mut readies = readies.into_iter();
            let ready = readies.next().expect("a rank has a worker");
            let mut refused = untraced;
            for (id, ready) in (1..).map(WorkerId).zip(readies) {
                let builder = thread::Builder::new().name(format!("caribou {rank}.{id}"));
                let run = move || {
                    let _bound = seats.pin_worker(rank, id, watch);
                    run_worker(shared, id, ready, None, Beginning::default(), None);
                };
                let started = builder.spawn_scoped(scope, move || {
                    if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
                        shared.worker_died(id, &*panic);
                    }
                });
                refused = started.err().map(|why| thread_refused(rank, &why)).or(refused);
            }
            run_worker(shared, WorkerId(0), ready, transport, beginning, refused);
        });
        built.ending.into_figures()
    }
}

fn run_worker<'r>(
    shared: &'r RankShared,
    id: WorkerId,
    ready: ReadyQueue<'r>,
    transport: Option<TransportHandle<'r, Packet>>,
    beginning: Beginning,
    refused: Option<Error>,
) {
    shared.scheduler.occupy(id);
    shared.measurements.gauge(id).bind_to_thread();
    let mut worker = Worker::new(shared, id, ready, transport);
    let life = || {
        worker.instruments.measure_speed();
        worker.catching(|worker| worker.begin(beginning));
        if let Some(error) = refused {
            worker.catching(|worker| worker.fail(error));
        }
        worker.work();
    };
    // The other workers and ranks would wait forever for a dead worker. Any code may have panicked, above all a log.
    if let Err(panic) = catch_unwind(AssertUnwindSafe(life)) {
        shared.worker_died(id, &*panic);
        let _ = catch_unwind(AssertUnwindSafe(|| worker.send_the_last()));
    }
}
