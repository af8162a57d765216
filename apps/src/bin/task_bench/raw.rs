//! Executes Task Bench's graphs with MPI alone, to compare it with the runtime.
//!
//! Points are spread in blocks of equal size, or one more. At each timestep a rank posts a receive for every input from
//! another rank, and a send for every output of the last timestep that another rank reads. It waits for all of them and
//! executes its tasks in order, as Task Bench's own program of nonblocking messages does. Nothing overlaps, and nothing
//! moves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use mpi::collective::SystemOperation;
use mpi::request::multiple_scope;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Source};

use super::graph::Graph;
use super::point::ROUNDS;
use super::report::PointResult;
use super::task::{Output, Tasks};

/// Number of tags that every MPI has.
const TAGS: u32 = 1 << 15;

/// Refuses a graph with more pairs of points than messages have tags.
pub(crate) fn check(graphs: &[Graph]) -> Result<(), String> {
    match graphs.iter().find(|graph| u64::from(graph.width).pow(2) > u64::from(TAGS)) {
        Some(graph) => Err(format!("--raw: expected at most 181 points, got {}", graph.width)),
        None => Ok(()),
    }
}

/// Executes graphs in as many rounds as on the runtime. Returns the work of the points of all ranks, with the
/// nanoseconds of the last round on the slowest rank; and the workers, one per process.
///
/// All processes of the job call this.
///
/// # Errors
/// A sentence, if no run before this one has started MPI.
pub(crate) fn run(graphs: &[Graph]) -> Result<(PointResult, u32), String> {
    if !mpi::environment::is_initialized() {
        return Err("--raw: expected that MPI was started by the run before".to_owned());
    }
    let world = SimpleCommunicator::world();
    let (mut elapsed_ns, mut done) = (0, [0u64; 2]);
    for _ in 0..ROUNDS {
        let mut parts: Vec<Part> = graphs.iter().map(|graph| Part::new(graph, &world)).collect();
        world.barrier();
        let begin = now();
        let steps = graphs.iter().map(|graph| graph.steps).max().unwrap_or(0);
        (0..steps).for_each(|_| parts.iter_mut().for_each(|part| part.step(&world)));
        let here_ns = begin.elapsed().as_nanos() as u64;
        world.all_reduce_into(&here_ns, &mut elapsed_ns, SystemOperation::max());
        let points = parts.iter().flat_map(|part| &part.points).map(Tasks::done);
        done = points.fold(done, |sum, done| [sum[0] + done[0], sum[1] + done[1]]);
    }
    let mut all = [0; 2];
    world.all_reduce_into(&done[..], &mut all[..], SystemOperation::sum());
    let [executed, checked] = all;
    Ok((PointResult { executed, checked, elapsed_ns }, world.size() as u32))
}

#[expect(clippy::disallowed_methods, reason = "there is no runtime whose clock could be asked")]
fn now() -> Instant {
    Instant::now()
}

/// The points of a graph that are on this rank.
struct Part {
    graph: Graph,
    ranks: u32,
    first: u32,
    points: Vec<Tasks>,
}

impl Part {
    fn new(graph: &Graph, world: &SimpleCommunicator) -> Self {
        let (rank, ranks) = (world.rank() as u32, world.size() as u32);
        let begin = |rank: u32| (u64::from(graph.width) * u64::from(rank)).div_ceil(u64::from(ranks)) as u32;
        let points = (begin(rank)..begin(rank + 1)).map(|point| Tasks::new(graph, point)).collect();
        Self { graph: graph.clone(), ranks, first: begin(rank), points }
    }

    fn rank_of(&self, point: u32) -> u32 {
        (u64::from(point) * u64::from(self.ranks) / u64::from(self.graph.width)) as u32
    }

    fn holds(&self, point: u32) -> bool {
        point.checked_sub(self.first).is_some_and(|place| (place as usize) < self.points.len())
    }

    fn step(&mut self, world: &SimpleCommunicator) {
        if self.points.iter().all(Tasks::are_over) {
            return;
        }
        let numbers = 2 * (self.graph.output_bytes / 16) as usize;
        let tag = |from: u32, to: u32| (from * self.graph.width + to) as i32;
        // Buffers of inputs from other ranks, and of outputs for them, by sender and receiver.
        let (mut come, mut gone) = (BTreeMap::new(), BTreeMap::new());
        for (point, tasks) in (self.first..).zip(&self.points) {
            let from = tasks.senders().iter().copied().filter(|&from| !self.holds(from));
            come.extend(from.map(|from| ((from, point), vec![0i64; numbers])));
            let to = tasks.receivers().iter().copied().filter(|&to| !self.holds(to));
            gone.extend(to.map(|to| ((point, to), tasks.output().numbers())));
        }
        multiple_scope(come.len() + gone.len(), |scope, requests| {
            for (&(from, to), numbers) in &mut come {
                let sender = world.process_at_rank(self.rank_of(from) as i32);
                requests.add(sender.immediate_receive_into_with_tag(scope, &mut numbers[..], tag(from, to)));
            }
            for (&(from, to), numbers) in &gone {
                let receiver = world.process_at_rank(self.rank_of(to) as i32);
                requests.add(receiver.immediate_send_with_tag(scope, &numbers[..], tag(from, to)));
            }
            requests.wait_all(&mut Vec::new());
        });
        let here: Vec<Output> = self.points.iter().map(Tasks::output).collect();
        for (point, tasks) in (self.first..).zip(&mut self.points) {
            let senders = tasks.senders().to_vec();
            let inputs = senders.into_iter().map(|from| match come.remove(&(from, point)) {
                Some(numbers) => Output::of_numbers(numbers),
                None => here[(from - self.first) as usize].clone(),
            });
            tasks.execute(inputs);
        }
    }
}

impl Output {
    fn numbers(&self) -> Vec<i64> {
        match self {
            Self::Pair(step, point) => vec![*step, *point],
            Self::Pairs(all) => all.to_vec(),
        }
    }

    fn of_numbers(numbers: Vec<i64>) -> Self {
        match numbers[..] {
            [step, point] => Self::Pair(step, point),
            _ => Self::Pairs(Arc::new(numbers)),
        }
    }
}
