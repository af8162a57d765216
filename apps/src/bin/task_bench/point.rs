//! Runs graphs on the runtime, with one chunk per point.
//!
//! A point sends the output of a task to the points that read it, and executes its next task when all inputs have come.
//! It reads its own output in place. A point that reads no other point, or is not active, sends itself a message. So
//! every point takes part in every timestep, and may migrate between any two.
//!
//! All graphs are executed twice. The first time warms up; between both all points wait for each other.

use caribou::{Chunk, Config, Ctx, Halo, Halos, Placement, Reducer, Report, Target, Values};
use serde::{Deserialize, Serialize};

use super::graph::Graph;
use super::task::{Output, Tasks};

/// Executions of all graphs; the last one is timed.
pub(crate) const ROUNDS: u64 = 2;

/// A point of a graph. The messages of step 0 say that all points exist; the messages of step t are outputs of t - 1.
#[derive(Debug, Serialize, Deserialize)]
struct Point {
    tasks: Tasks,
    halos: Halos<Output>,
    /// Timesteps of the shortest graph. There are no syncs after it, because its points would not come to them.
    shortest: u32,
    rounds_left: u64,
    begin_ns: u64,
}

impl Point {
    /// Ends a round: all points wait for each other and begin the next, or report their work and its time.
    fn finish(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.rounds_left -= 1;
        if self.rounds_left > 0 {
            self.halos = Halos::new(1);
            self.tasks.begin_again();
            return self.start(ctx);
        }
        let elapsed_ns = ctx.elapsed_ns().saturating_sub(self.begin_ns);
        ctx.contribute(0, Reducer::Gather, Values::part(&(self.tasks.done(), elapsed_ns)), Target::Exit);
    }
}

impl Chunk for Point {
    type Index = [u32; 2];
    type Message = Halo<Output>;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute(0, Reducer::Sum, vec![1_u64], Target::All);
    }

    fn reduced(_: u32, _: Values) -> Halo<Output> {
        Halos::new(1).halo(0, Output::default())
    }

    fn ready(&self, halo: &Halo<Output>) -> bool {
        self.halos.expects(halo)
    }

    fn receive(&mut self, halo: Halo<Output>, ctx: &mut Ctx<'_, Self>) {
        let Some(inputs) = self.halos.add(halo) else { return };
        if self.tasks.step() == 0 {
            self.begin_ns = ctx.elapsed_ns();
        }
        self.tasks.execute(inputs);
        if self.tasks.are_over() {
            return self.finish(ctx);
        }
        let [graph, point] = ctx.index();
        for &to in self.tasks.receivers() {
            ctx.send([graph, to], self.halos.halo(point, self.tasks.output()));
        }
        self.halos.expect(self.tasks.senders().len() as u32);
        if self.tasks.step() < self.shortest && ctx.sync_due(self.halos.step()) {
            ctx.at_sync_nowait();
        }
    }

    /// The point did not wait at the sync, so nothing has to start again.
    fn resume(&mut self, _ctx: &mut Ctx<'_, Self>) {}

    fn waits_for(&self) -> Option<String> {
        Some(self.halos.to_string())
    }

    fn state_bytes(&self) -> u64 {
        self.tasks.state_bytes()
    }
}

/// Executes graphs beside each other. The report holds a [`PointResult`](super::report::PointResult) for each point.
///
/// # Errors
/// Those of the runtime.
pub(crate) fn run(config: Config, graphs: &[Graph]) -> Result<Report, caribou::Error> {
    let shortest = graphs.iter().map(|graph| graph.steps).min().unwrap_or(0);
    let points = |graph: &Graph| (0..graph.width).map(|point| [graph.number, point]).collect::<Vec<_>>();
    let points: Vec<[u32; 2]> = graphs.iter().flat_map(points).collect();
    caribou::run(config, |setup| {
        let widths: Vec<u64> = graphs.iter().map(|graph| graph.width.into()).collect();
        let graphs = graphs.to_vec();
        let part = move |[graph, point]: [u32; 2], ranks: u32| {
            (u64::from(point) * u64::from(ranks) / widths[graph as usize]) as u32
        };
        setup.array_with(points.clone(), Placement::by(part), move |[graph, point]: [u32; 2]| {
            let tasks = Tasks::new(&graphs[graph as usize], point);
            Point { tasks, halos: Halos::new(1), shortest, rounds_left: ROUNDS, begin_ns: 0 }
        });
    })
}
