//! Executes the tasks of a point: checks every input, works, makes the output.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::graph::Graph;
use super::kernel::TaskId;

/// The output of a task: pairs of its timestep and its point, as many as fit the requested bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Output {
    /// One pair: 16 bytes.
    Pair(i64, i64),
    /// Several pairs.
    Pairs(#[serde(with = "caribou::bulk")] Arc<Vec<i64>>),
}

impl Default for Output {
    fn default() -> Self {
        Self::Pair(-1, -1)
    }
}

impl Output {
    fn new(step: u32, point: u32, bytes: u64) -> Self {
        let [step, point] = [step, point].map(i64::from);
        match bytes / 16 {
            1 => Self::Pair(step, point),
            pairs => Self::Pairs(Arc::new([step, point].repeat(pairs as usize))),
        }
    }

    /// True if it is exactly the output of that task.
    fn is_of(&self, step: u32, point: u32, bytes: u64) -> bool {
        let pair = [step, point].map(i64::from);
        match self {
            Self::Pair(step, point) => bytes / 16 == 1 && pair == [*step, *point],
            Self::Pairs(all) => {
                all.len() as u64 / 2 == bytes / 16 && all.chunks_exact(2).all(|other| other == pair)
            }
        }
    }
}

/// The tasks of one point, one per timestep while the point is active, and all that they need.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Tasks {
    graph: Graph,
    point: u32,
    /// For each list of inputs: the points that are read, and the readers.
    links: Vec<[Vec<u32>; 2]>,
    /// The next timestep, and its lists.
    step: u32,
    turn: StepLinks,
    /// The output of the last task.
    output: Output,
    #[serde(with = "caribou::bulk")]
    scratch: Vec<u64>,
    executed: u64,
    checked: u64,
    /// Bytes of state when the point migrates.
    state_bytes: u64,
}

/// The inputs and the readers of a point at one timestep. In most patterns they stay the same from the second timestep
/// on, so they are listed again only if `at` changes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct StepLinks {
    at: At,
    /// The points that the point reads.
    inputs: Vec<u32>,
    /// See [`Tasks::senders`] and [`Tasks::receivers`].
    senders: Vec<u32>,
    receivers: Vec<u32>,
}

/// What decides the lists of a timestep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct At {
    /// The list of inputs.
    set: u32,
    /// The points that had a task at the timestep before, and the points that have one now.
    before: Range<u32>,
    now: Range<u32>,
}

impl Tasks {
    /// The tasks of a point, before the first one.
    #[must_use]
    pub(crate) fn new(graph: &Graph, point: u32) -> Self {
        let links = |set| [graph.dependencies(set, point), graph.dependents(set, point)];
        let mut tasks = Self {
            links: (0..graph.sets()).map(links).collect(),
            scratch: graph.kernel.scratch(),
            graph: graph.clone(),
            point,
            step: 0,
            turn: StepLinks::default(),
            output: Output::default(),
            executed: 0,
            checked: 0,
            state_bytes: graph.kernel.scratch_bytes + graph.output_bytes + graph.links_bytes(),
        };
        tasks.begin_again();
        tasks
    }

    /// Begins again with the first timestep.
    pub(crate) fn begin_again(&mut self) {
        self.step = 0;
        // No point was active before the first timestep, so the lists of the second always differ.
        self.turn =
            StepLinks { at: At { now: self.graph.active(0), ..At::default() }, ..StepLinks::default() };
    }

    /// True if there is no next timestep.
    #[must_use]
    pub(crate) fn are_over(&self) -> bool {
        self.step == self.graph.steps
    }

    /// The next timestep.
    #[must_use]
    pub(crate) fn step(&self) -> u32 {
        self.step
    }

    /// The last task's output.
    #[must_use]
    pub(crate) fn output(&self) -> Output {
        self.output.clone()
    }

    /// Tasks that were executed, and inputs that were checked.
    #[must_use]
    pub(crate) fn done(&self) -> [u64; 2] {
        [self.executed, self.checked]
    }

    /// Bytes of state when the point migrates.
    #[must_use]
    pub(crate) fn state_bytes(&self) -> u64 {
        self.state_bytes
    }

    /// The points that a point waits for before its next timestep: the points that it reads then, except itself. If
    /// there are none, itself alone. Before the first timestep it waits for no point.
    #[must_use]
    pub(crate) fn senders(&self) -> &[u32] {
        &self.turn.senders
    }

    /// The points that wait for the last output of this point: the inverse of [`senders`](Self::senders).
    #[must_use]
    pub(crate) fn receivers(&self) -> &[u32] {
        &self.turn.receivers
    }

    /// Executes the task of the next timestep, if the point is active. `sent` are the outputs of the
    /// [`senders`](Self::senders), in their order.
    ///
    /// # Panics
    /// If an input is not the output that it should be.
    pub(crate) fn execute(&mut self, sent: impl Iterator<Item = Output>) {
        if self.turn.at.now.contains(&self.point) {
            self.check(sent);
            self.output = Output::new(self.step, self.point, self.graph.output_bytes);
            let task = TaskId { graph: self.graph.number, step: self.step, point: self.point };
            self.graph.kernel.run(task, &mut self.scratch);
            self.executed += 1;
        }
        self.step += 1;
        let (set, now) = (self.graph.set(self.step), self.graph.active(self.step));
        let at = At { set, before: self.turn.at.now.clone(), now };
        if self.turn.at != at {
            self.set_links(at);
        }
    }

    /// Sets the inputs and the readers for a timestep.
    fn set_links(&mut self, at: At) {
        let (point, turn) = (self.point, &mut self.turn);
        let [from, to] = &self.links[at.set as usize];
        let (was_active, is_active) = (at.before.contains(&point), at.now.contains(&point));
        [&mut turn.inputs, &mut turn.senders, &mut turn.receivers].into_iter().for_each(Vec::clear);
        turn.inputs.extend(from.iter().filter(|&from| is_active && at.before.contains(from)));
        let alone = turn.inputs.iter().all(|&from| from == point).then_some(point);
        turn.senders.extend(turn.inputs.iter().copied().filter(|&from| from != point).chain(alone));
        let readers = to.iter().copied().filter(|to| was_active && at.now.contains(to));
        turn.receivers.extend(readers.filter(|&to| to != point).chain(alone));
        turn.at = at;
    }

    fn check(&mut self, mut sent: impl Iterator<Item = Output>) {
        let (point, step) = (self.point, self.step);
        let hears_itself = self.turn.senders == [point];
        for &from in &self.turn.inputs {
            let other;
            let input = if from == point && !hears_itself {
                Some(&self.output)
            } else {
                other = sent.next();
                other.as_ref()
            };
            let right = input.is_some_and(|input| input.is_of(step - 1, from, self.graph.output_bytes));
            assert!(right, "point {point} at timestep {step} reads {from}: {input:?}");
        }
        self.checked += self.turn.inputs.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::super::graph::tests::graph;
    use super::*;

    #[test]
    fn senders_and_receivers_are_inverse() {
        for pattern in
            ["trivial", "no_comm", "stencil_1d", "dom", "tree", "fft", "random_nearest", "all_to_all"]
        {
            let graph = graph(&format!("--type {pattern} --steps 20 --width 7"));
            let mut all: Vec<Tasks> = (0..7).map(|point| Tasks::new(&graph, point)).collect();
            all.iter_mut().for_each(|tasks| tasks.execute(std::iter::empty()));
            for step in 1..20 {
                let waits = |to: u32| {
                    all[to as usize].senders().iter().map(move |&from| (from, to)).collect::<Vec<_>>()
                };
                let sends = |from: u32| all[from as usize].receivers().iter().map(move |&to| (from, to));
                let mut waits: Vec<(u32, u32)> = (0..7).flat_map(waits).collect();
                let mut sends: Vec<(u32, u32)> = (0..7).flat_map(sends).collect();
                waits.sort_unstable();
                sends.sort_unstable();
                assert_eq!(waits, sends, "{pattern}, timestep {step}");
                assert!(
                    (0..7).all(|point| waits.iter().any(|&(_, to)| to == point)),
                    "everybody hears of somebody"
                );
                let outputs: Vec<Output> = all.iter().map(Tasks::output).collect();
                for tasks in &mut all {
                    let sent: Vec<Output> =
                        tasks.senders().iter().map(|&from| outputs[from as usize].clone()).collect();
                    tasks.execute(sent.into_iter());
                }
            }
            assert!(all.iter().all(Tasks::are_over));
            assert!((0..7).all(|point| all[point as usize].senders() == [point]), "the end");
        }
    }

    #[test]
    fn a_point_reads_what_its_graph_says_at_each_timestep_and_again() {
        for (pattern, steps, width) in [
            ("trivial", 9, 7),
            ("no_comm", 9, 7),
            ("stencil_1d", 9, 7),
            ("stencil_1d_periodic", 9, 7),
            ("dom", 9, 7),
            ("dom", 4, 9),
            ("tree", 9, 7),
            ("fft", 9, 8),
            ("nearest", 9, 7),
            ("spread", 9, 9),
            ("random_nearest", 9, 7),
            ("all_to_all", 9, 7),
        ] {
            let graph = graph(&format!("--type {pattern} --steps {steps} --width {width}"));
            for point in 0..width {
                let mut tasks = Tasks::new(&graph, point);
                for step in (0..steps).chain(0..steps) {
                    if step == 0 {
                        tasks.begin_again();
                    }
                    let mut reads = graph.dependencies(graph.set(step), point);
                    let before = step.checked_sub(1).map_or(0..0, |last| graph.active(last));
                    reads.retain(|from| before.contains(from) && graph.active(step).contains(&point));
                    assert_eq!(tasks.turn.inputs, reads, "{pattern}, point {point} at timestep {step}");
                    let senders = tasks.senders().to_vec();
                    tasks.execute(senders.into_iter().map(|from| Output::new(step - 1, from, 16)));
                }
            }
        }
    }

    fn second_of(tasks: &mut Tasks) -> impl FnMut([Output; 2]) {
        tasks.execute(std::iter::empty());
        |inputs| tasks.execute(inputs.into_iter())
    }

    #[test]
    fn a_task_reads_its_neighbours_and_itself() {
        let mut tasks = Tasks::new(&graph("--type stencil_1d --output 64"), 1);
        second_of(&mut tasks)([0, 2].map(|point| Output::new(0, point, 64)));
        assert_eq!(tasks.done(), [2, 3]);
        assert!(tasks.output().is_of(1, 1, 64) && !tasks.output().is_of(1, 1, 32));
        for bytes in [16, 24, 40, 79] {
            assert!(Output::new(3, 1, bytes).is_of(3, 1, bytes), "{bytes}: as many pairs as fit");
        }
    }

    #[test]
    #[should_panic(expected = "point 1 at timestep 1 reads 2")]
    fn an_old_input_is_noticed() {
        second_of(&mut Tasks::new(&graph("--type stencil_1d"), 1))([
            Output::new(0, 0, 16),
            Output::new(1, 2, 16),
        ]);
    }

    #[test]
    #[should_panic(expected = "point 1 at timestep 1 reads 0")]
    fn inputs_in_the_wrong_order_are_noticed() {
        second_of(&mut Tasks::new(&graph("--type stencil_1d"), 1))(
            [2, 0].map(|point| Output::new(0, point, 16)),
        );
    }

    #[test]
    #[should_panic(expected = "point 1 at timestep 1 reads 0")]
    fn an_input_with_one_wrong_pair_is_noticed() {
        let wrong = Output::Pairs(Arc::new(vec![0, 0, 0, 1]));
        second_of(&mut Tasks::new(&graph("--type stencil_1d --output 32"), 1))([
            wrong,
            Output::new(0, 2, 32),
        ]);
    }
}
