//! Does the work of a task, and counts its operations and bytes.
//!
//! Every kernel is Task Bench's, in plain Rust. The compiler chooses the width of vectors. A build with
//! `RUSTFLAGS="-C target-cpu=native"` widens them. Rates compare only at the same width. The smallest grain hardly
//! depends on the width, because it is measured against a peak of the same program.

use std::hint::black_box;

use presentation::count_parser;
use serde::{Deserialize, Serialize};

use super::uniform::uniform;

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[value(rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// No work.
    Empty,
    /// One long chain of integer operations.
    BusyWait,
    /// 64 numbers, each squared and added to itself.
    ComputeBound,
    /// 32 sums of products.
    #[value(name = "compute_bound2")]
    #[serde(rename = "compute_bound2")]
    ComputeBound2,
    /// Copies within the scratch space.
    MemoryBound,
    /// As compute_bound, with a random number of iterations.
    LoadImbalance,
}

/// The work of the tasks of a graph.
#[derive(Clone, Copy, Debug, PartialEq, clap::Args, Serialize, Deserialize)]
pub(crate) struct Kernel {
    /// Work of a task
    #[arg(long = "kernel", value_name = "KERNEL", default_value = "empty")]
    pub(crate) kind: Kind,
    /// Iterations of the kernel
    #[arg(long = "iter", value_name = "COUNT", default_value_t = 0, value_parser = count_parser(0..=1_u64 << 40))]
    pub(crate) iterations: u64,
    /// Blocks of the scratch space, in memory_bound
    #[arg(long = "sample", value_name = "COUNT", default_value_t = 16, value_parser = count_parser(1..=u64::MAX))]
    pub(crate) samples: u64,
    /// Spread of iterations, in load_imbalance: from 1 - PART/2 to 1 + PART/2 times as many, PART up to 2
    #[arg(long, value_name = "PART", default_value_t = 0.0)]
    pub(crate) imbalance: f64,
    /// Timesteps for which a point keeps its iterations, in load_imbalance; 0: forever
    #[arg(long, value_name = "STEPS", default_value_t = 1, value_parser = count_parser(0..=u32::MAX))]
    pub(crate) keep: u32,
    /// Bytes of scratch space per point, in memory_bound
    #[arg(long = "scratch", value_name = "BYTES", default_value_t = 0, value_parser = count_parser(0..=1_u64 << 40))]
    pub(crate) scratch_bytes: u64,
}

/// A task, by its graph, timestep and point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskId {
    /// Number of the graph.
    pub(crate) graph: u32,
    /// Timestep.
    pub(crate) step: u32,
    /// Point.
    pub(crate) point: u32,
}

/// The value of all scratch space, before and after any task.
const FILLING: u64 = 0x5C4A_7C8B;

impl Kernel {
    /// Refuses work that no task can do.
    ///
    /// # Errors
    /// A sentence that names the option.
    pub(crate) fn check(&self) -> Result<(), String> {
        if !(0.0..=2.0).contains(&self.imbalance) {
            return Err(format!("-imbalance {}: expected a number from 0 to 2", self.imbalance));
        }
        if !self.scratch_bytes.is_multiple_of(8) {
            return Err(format!("-scratch {}: expected a multiple of 8", self.scratch_bytes));
        }
        if self.kind == Kind::MemoryBound && self.scratch_bytes / 8 < self.samples {
            let least = self.samples.saturating_mul(8);
            return Err(format!("-scratch {}: expected {least} at least, 8 a sample", self.scratch_bytes));
        }
        Ok(())
    }

    /// The scratch space of a point, before its first task.
    #[must_use]
    pub(crate) fn scratch(&self) -> Vec<u64> {
        vec![FILLING; self.scratch_bytes as usize / 8]
    }

    /// Does the work of a task.
    ///
    /// # Panics
    /// If the scratch space was damaged.
    pub(crate) fn run(&self, task: TaskId, scratch: &mut [u64]) {
        assert!(
            scratch.first().is_none_or(|&word| word == FILLING),
            "{task:?} finds its scratch space as it was"
        );
        match self.kind {
            Kind::Empty => {}
            Kind::BusyWait => {
                black_box((0..self.iterations).fold(113_u64, |sum, _| black_box(sum) * 139 % 2_147_483_647));
            }
            Kind::ComputeBound | Kind::LoadImbalance => compute(self.iterations_of(task)),
            Kind::ComputeBound2 => {
                let mut sums = black_box([0.0; 32]);
                let (a, b) = black_box((1.2345, 1.010_101));
                for _ in 0..self.iterations {
                    sums.iter_mut().for_each(|sum| *sum = fused(a, b, *sum));
                }
                black_box(sums);
            }
            Kind::MemoryBound => self.copy(task.step, scratch),
        }
    }

    /// Iterations of a task; in `load_imbalance` a random number.
    #[must_use]
    pub(crate) fn iterations_of(&self, TaskId { graph, step, point }: TaskId) -> u64 {
        if self.kind != Kind::LoadImbalance {
            return self.iterations;
        }
        let share = match self.keep {
            0 => uniform([graph, point]),
            1 => uniform([graph, step, point]),
            keep => uniform([graph, point, step / keep]),
        };
        ((1.0 + (share - 0.5) * self.imbalance) * self.iterations as f64).round() as u64
    }

    /// Floating-point operations of a task.
    #[must_use]
    pub(crate) fn flops(&self, task: TaskId) -> u64 {
        match self.kind {
            Kind::ComputeBound | Kind::LoadImbalance => 128 * self.iterations_of(task) + 64,
            Kind::ComputeBound2 => 64 * self.iterations,
            Kind::Empty | Kind::BusyWait | Kind::MemoryBound => 0,
        }
    }

    /// Bytes that a task reads or writes.
    #[must_use]
    pub(crate) fn bytes(&self) -> u64 {
        let is_memory = self.kind == Kind::MemoryBound;
        if is_memory { self.scratch_bytes.saturating_mul(self.iterations) / self.samples } else { 0 }
    }

    /// Takes `iterations` blocks in turn, from where the timestep before ended. Copies the first half of each run of
    /// consecutive blocks onto its second half.
    fn copy(&self, step: u32, scratch: &mut [u64]) {
        let block = scratch.len() / self.samples as usize;
        let mut from = (u64::from(step) * self.iterations % self.samples) as usize;
        let mut left = self.iterations as usize;
        while left > 0 {
            let run = left.min(self.samples as usize - from);
            let words = &mut scratch[from * block..(from + run) * block];
            let half = words.len() / 2;
            words.copy_within(..half, half);
            (from, left) = (0, left - run);
        }
        black_box(scratch);
    }
}

/// Squares each of 64 numbers and adds the square to it, in each iteration. The numbers become infinite after a dozen
/// iterations, which costs nothing and is the usual measurement.
pub(crate) fn compute(iterations: u64) {
    let mut numbers = black_box([1.2345_f64; 64]);
    for _ in 0..iterations {
        numbers.iter_mut().for_each(|number| *number = fused(*number, *number, *number));
    }
    black_box(numbers.iter().product::<f64>());
}

/// `a * b + c`, in one instruction where the processor that this is built for has one.
#[inline(always)]
fn fused(a: f64, b: f64, c: f64) -> f64 {
    if cfg!(target_feature = "fma") { a.mul_add(b, c) } else { a * b + c }
}

#[cfg(test)]
mod tests {
    use super::super::graph::tests::graph;
    use super::*;

    fn kernel(options: &str) -> Kernel {
        graph(options).kernel
    }

    const FIRST: TaskId = TaskId { graph: 0, step: 0, point: 0 };

    #[test]
    fn imbalance_is_that_of_task_bench() {
        let kernel = kernel("--kernel load_imbalance --iter 1024 --imbalance 0.1");
        let of_step = |step| [0, 1, 2, 3].map(|point| kernel.iterations_of(TaskId { step, point, ..FIRST }));
        assert_eq!(of_step(0), [1069, 985, 1058, 1074]);
        assert_eq!(of_step(1), [1044, 998, 1022, 1028]);
        assert_eq!(kernel.flops(FIRST), 128 * 1069 + 64);
    }

    #[test]
    fn a_point_keeps_its_share_as_long_as_asked() {
        let shares = |keep: u32| {
            let kernel = kernel(&format!("--kernel load_imbalance --iter 1e6 --imbalance 1 --keep {keep}"));
            [0, 1, 9, 10, 99].map(|step| kernel.iterations_of(TaskId { step, ..FIRST }))
        };
        let [first, same, still, next, last] = shares(10);
        assert!(first == same && same == still && still != next && next != last);
        assert!(shares(0).iter().all(|&share| share == shares(0)[0]));
        assert_ne!(shares(1)[0], shares(1)[1]);
    }

    #[test]
    fn work_is_counted_as_in_task_bench() {
        let memory = kernel("--kernel memory_bound --iter 1024 --scratch 1024");
        assert_eq!((memory.flops(FIRST), memory.bytes()), (0, 65_536));
        assert_eq!(kernel("--kernel compute_bound --iter 10").flops(FIRST), 1344);
        assert_eq!(kernel("--kernel compute_bound2 --iter 10").flops(FIRST), 640);
        assert_eq!(kernel("--kernel busy_wait --iter 10").flops(FIRST), 0);
        assert_eq!(kernel("--kernel compute_bound --iter 10 --scratch 1024").bytes(), 0);
    }

    #[test]
    fn copies_go_on_where_the_timestep_before_ended_and_around_the_end() {
        let kernel = kernel("--kernel memory_bound --iter 3 --scratch 256 --sample 4");
        let copied = |step| {
            let mut scratch: Vec<u64> = (0..32).collect();
            kernel.copy(step, &mut scratch);
            let changed = |&(at, word): &(usize, &u64)| *word != at as u64;
            let words = scratch.iter().enumerate().filter(changed).map(|(at, _)| at / 8).collect::<Vec<_>>();
            [0, 1, 2, 3].map(|block| words.iter().filter(|&&other| other == block).count())
        };
        // Blocks 0 to 2: words 0 to 11 go to 12 to 23. Then block 3 alone, and blocks 0 and 1.
        assert_eq!(copied(0), [0, 4, 8, 0]);
        assert_eq!(copied(1), [0, 8, 0, 4]);
    }

    #[test]
    fn every_kernel_leaves_its_scratch_space_as_it_was() {
        for kind in
            ["empty", "busy_wait", "compute_bound", "compute_bound2", "memory_bound", "load_imbalance"]
        {
            let kernel = kernel(&format!("--kernel {kind} --iter 37 --scratch 1024 --imbalance 2"));
            kernel.check().unwrap();
            let mut scratch = kernel.scratch();
            (0..9).for_each(|step| kernel.run(TaskId { step, ..FIRST }, &mut scratch));
            assert_eq!(scratch, kernel.scratch(), "{kind}");
        }
    }

    #[test]
    #[should_panic(expected = "finds its scratch space as it was")]
    fn damaged_scratch_space_is_noticed() {
        kernel("--kernel memory_bound --scratch 1024").run(FIRST, &mut [0; 128]);
    }

    #[test]
    fn impossible_work_is_refused_with_the_option() {
        for (options, named) in [
            ("--imbalance 3", "-imbalance 3"),
            ("--scratch 12", "-scratch 12: expected a multiple"),
            ("--kernel memory_bound --scratch 64", "-scratch 64: expected 128"),
        ] {
            let error = kernel(options).check().unwrap_err();
            assert!(error.starts_with(named), "{options}: {error}");
        }
    }
}
