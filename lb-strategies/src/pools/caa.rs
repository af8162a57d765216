//! `caa` is the combined adaptive algorithm of Filipovic, Krstajic and Popovic, 2021 ("the paper" here). It begins with
//! equal shares, and redistributes what is left once the first worker has finished.
//!
//! ```text
//! phase 1   equal shares, task by task, until the first worker has finished; all stop after their present task
//! phase 2   rank 0 gathers how many tasks each worker has finished and how long they took, and decides
//! phase 3   shares in proportion to tasks finished (DD, domain decomposition), or a master hands out the tasks (MS)
//! ```
//!
//! Equal shares need no messages while all workers keep up; they lose time only at the end. So only the end is
//! redistributed. The module [`decide`](mod@decide) has the conditions, thresholds and weights.
//!
//! # Choices that the paper leaves open
//! - **Task.** `task=N` makes N iterations one task. With `task=auto`, the default, each iteration is a task, and a
//!   worker runs in steps of `chunk` seconds. For iterations longer than `chunk` this is `task=1`, as in the paper.
//! - **Reports** have the number, sum and sum of squares of durations. The paper sends the matrix of all durations.
//! - **The master** of phase 3 is worker 0 of rank 0. It executes tasks only if it is the only worker.
//! - **Late workers** have a share in phase 1. If they do not come before phase 1 ends, the others get this share. Late
//!   workers can ask a master, but get no later share.
//! - **The clock of a core** (U1) is the speed of a calibration loop at the start, the same for all workers of a rank.
//! - **Durations that are alike** (U4). The paper compares "the execution time of each task per core": the tasks of
//!   each core among themselves, or the means of cores. We take the deviation over all tasks, which is large if either
//!   is.
//! - **Repetition.** The paper repeats the phases in case of large losses, without defining "large". With `repeat=on`,
//!   every round of shares ends with the first worker that has finished, and a new decision follows. Only the last
//!   round counts, so that a change of speed shows. Each round finishes tasks, so the rounds end.
//!
//! ```text
//!          First (a share is finished) -->            Report -->            Ask -->
//!  rank k                                 <-- Stop                <-- Shares         <-- Grant      rank 0: CaaRoot
//!                                                             or  <-- Serve          <-- Dismiss
//! ```
//!
//! The module `root` is the part of rank 0, `member` the part of every rank.

pub mod decide;
mod member;
mod root;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::central::{Outbox, QueueMessage, SizeRule};
use super::equal::{CHUNK, chunk};
use super::steps::Pace;
use crate::entry::Entry;
use crate::parameters::{Parameter, Parameters};
use crate::parse_error::ParseError;
use crate::pools::machine::{Input, Machine, Nanos, Output, PoolRank};
use crate::pools::policy::{Pool, PoolStrategy};
use crate::rank::{Rank, WorkerId};
use decide::{TaskStats, Thresholds};
use member::Member;
use root::CaaRoot;

pub use decide::{NextPhase, RoundStats, decide};

pub(crate) const ENTRY: Entry<dyn PoolStrategy> = Entry {
    name: "caa",
    summary: "equal shares first, then equal shares again or a master, by the measured differences of workers",
    parameters: &[
        Parameter {
            name: "u1",
            default: "0.1",
            meaning: "clock rates count as equal below this standard deviation, as a part of their mean",
        },
        Parameter { name: "u2", default: "32", meaning: "fewer workers than this count as few" },
        Parameter {
            name: "u3",
            default: "0.25",
            meaning: "numbers of finished tasks count as equal below this standard deviation, as a part of their mean",
        },
        Parameter {
            name: "u4",
            default: "0.25",
            meaning: "durations count as equal below this standard deviation, as a part of their mean",
        },
        Parameter { name: "k1", default: "0", meaning: "weight of equal clock rates in the choice, 0 to 1" },
        Parameter { name: "k2", default: "1", meaning: "weight of few workers in the choice, 0 to 1" },
        Parameter {
            name: "k3",
            default: "1",
            meaning: "weight of equal numbers of finished tasks in the choice, 0 to 1",
        },
        Parameter { name: "k4", default: "0.5", meaning: "weight of equal durations in the choice, 0 to 1" },
        Parameter {
            name: "task",
            default: "auto",
            meaning: "iterations of a task; auto: as many as take the time `chunk`",
        },
        Parameter {
            name: "repeat",
            default: "off",
            meaning: "on: later rounds of shares end with the first worker that has finished, too, and a new decision follows",
        },
        CHUNK,
    ],
    build: |parameters| {
        Ok(Box::new(Caa {
            conditions: conditions(parameters)?,
            task: parameters.count_or_auto("task")?,
            later: if parameters.switch("repeat")? { Until::FirstFinished } else { Until::AllFinished },
            chunk: chunk(parameters)?,
        }))
    },
};

fn conditions(parameters: &Parameters) -> Result<Thresholds, ParseError> {
    let share = |key| parameters.number(key, 0.0..=1e6);
    let weight = |key| parameters.number(key, 0.0..=1.0);
    Ok(Thresholds {
        clocks: share("u1")?,
        workers: parameters.integer("u2")?,
        done: share("u3")?,
        durations: share("u4")?,
        weights: [weight("k1")?, weight("k2")?, weight("k3")?, weight("k4")?],
    })
}

/// The condition that ends a round of shares.
///
/// ```
/// use lb_strategies::pool::caa::Until;
/// assert_ne!(Until::FirstFinished, Until::AllFinished, "phase 1, and phase 3 without repetition");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Until {
    /// The first worker has finished its share; the others finish their present task.
    FirstFinished,
    /// All workers have finished their shares.
    AllFinished,
}

/// The report of one worker.
///
/// ```
/// assert!(!lb_strategies::pool::caa::WorkerReport::default().there);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerReport {
    /// True if the worker has come.
    pub there: bool,
    /// Clock speed of its vCPU.
    pub clock: f64,
    /// Its finished tasks in this round.
    pub tally: TaskStats,
}

/// A message between rank 0 and another rank. Indices are numbers of tasks.
///
/// ```
/// use lb_strategies::pool::caa::CaaMessage;
/// assert_ne!(CaaMessage::First, CaaMessage::Stop);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum CaaMessage {
    /// To rank 0: a worker has finished its share.
    First,
    /// To all: begin no more tasks, and report.
    Stop,
    /// To rank 0: no worker of the rank runs a task any more.
    Report {
        /// Every worker of the rank, in order.
        workers: Vec<WorkerReport>,
        /// The tasks that no worker of the rank has begun.
        left: Vec<Range<u64>>,
    },
    /// To a rank: its part of the next round.
    Shares {
        /// Workers, each with its tasks; other workers get none.
        shares: Vec<(WorkerId, Range<u64>)>,
        /// The end of the round.
        until: Until,
    },
    /// To all: workers request the remaining tasks one by one.
    Serve,
    /// Requests of workers to the queue, and its answers.
    Queue(QueueMessage),
}

struct Caa {
    conditions: Thresholds,
    /// Iterations in a task; none if `task=auto`.
    task: Option<u64>,
    /// What ends the rounds after the first.
    later: Until,
    chunk: Nanos,
}

impl PoolStrategy for Caa {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn rank(&self, pool: &Pool, rank: Rank) -> Machine {
        let task = self.task.unwrap_or(1);
        let tasks = Pool {
            iterations: pool.iterations.div_ceil(task),
            cost_hint: pool.cost_hint.map(|cost| cost.saturating_mul(task)),
            ..pool.clone()
        };
        let (pace, rule) = match self.task {
            Some(_) => (Pace::Single, SizeRule::Fixed(1)),
            None => (Pace::Fitting, SizeRule::Fitting),
        };
        Machine::new(CaaRank {
            rank,
            member: Member::new(&tasks, rank, pace, self.chunk),
            head: (rank == Rank(0)).then(|| CaaRoot::new(&tasks, self.conditions, rule, self.later)),
            task,
            iterations: pool.iterations,
        })
    }

    fn asks_for_clock_speed(&self) -> bool {
        true
    }
}

struct CaaRank {
    rank: Rank,
    member: Member,
    /// Only on rank 0.
    head: Option<CaaRoot>,
    /// Iterations in a task.
    task: u64,
    iterations: u64,
}

impl CaaRank {
    fn receive(
        &mut self,
        now: Nanos,
        from: Rank,
        message: CaaMessage,
        outbox: &mut Outbox<CaaMessage>,
        out: &mut Vec<Output<CaaMessage>>,
    ) {
        match &mut self.head {
            Some(head) if head.is_for(&message) => head.receive(from, message, outbox),
            _ => self.member.receive(now, message, outbox, out),
        }
    }

    /// Converts ranges of tasks to ranges of iterations.
    fn scale(&self, out: &mut [Output<CaaMessage>]) {
        for output in out {
            if let Output::Run { range, .. } = output {
                let end = range.end.saturating_mul(self.task).min(self.iterations);
                *range = range.start * self.task..end;
            }
        }
    }
}

impl PoolRank for CaaRank {
    type Message = CaaMessage;

    fn step(&mut self, now: Nanos, input: Input<CaaMessage>, out: &mut Vec<Output<CaaMessage>>) {
        let before = out.len();
        let mut outbox = Outbox::new();
        match input {
            Input::Wants { worker } => self.member.wants(now, worker, &mut outbox, out),
            Input::Message { from, message } => self.receive(now, from, message, &mut outbox, out),
            Input::Begin | Input::Timer | Input::Resize { .. } => {}
        }
        while let Some((to, message)) = outbox.pop_front() {
            if to == self.rank {
                self.receive(now, to, message, &mut outbox, out);
            } else {
                out.push(Output::Send { to, message });
            }
        }
        self.scale(&mut out[before..]);
    }

    fn said(&self) -> Option<String> {
        self.head.as_ref()?.said()
    }
}
