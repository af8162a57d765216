//! A policy for pools as a program may have one, whose machines send messages of a type that only it knows.

use std::ops::Range;

use caribou::lb::pool::{Input, Machine, Nanos, Output, Pool, PoolRank, PoolStrategy};
use caribou::lb::{Entry, Rank, WorkerId};
use serde::{Deserialize, Serialize};

/// Iterations a worker gets at once.
const BATCH: u64 = 7;

/// The policy: a worker that is through asks rank 0 for as many iterations again.
pub const COUNTER: Entry<dyn PoolStrategy> = Entry {
    name: "counter",
    summary: "a worker that is through gets as many iterations again",
    parameters: &[],
    build: |_| Ok(Box::new(Counter)),
};

struct Counter;

impl PoolStrategy for Counter {
    fn name(&self) -> &'static str {
        COUNTER.name
    }

    fn rank(&self, pool: &Pool, rank: Rank) -> Machine {
        let open = if rank == Rank(0) { pool.workers() } else { pool.workers_of(rank) };
        Machine::new(CounterRank { rank, left: 0..pool.iterations, open, heard: 0 })
    }
}

#[derive(Serialize, Deserialize)]
enum Message {
    Ask {
        worker: WorkerId,
    },
    Answer {
        worker: WorkerId,
        range: Range<u64>,
        why: String,
        /// At times so many that they would travel beside what a chunk sends.
        #[serde(with = "caribou::bulk")]
        numbers: Vec<f64>,
    },
}

struct CounterRank {
    rank: Rank,
    left: Range<u64>,
    /// Workers that have not heard that there is nothing left; on rank 0 those of all ranks.
    open: u32,
    heard: u64,
}

impl CounterRank {
    fn next(&mut self) -> Range<u64> {
        let begin = self.left.start;
        self.left.start = (begin + BATCH).min(self.left.end);
        begin..self.left.start
    }

    fn give(&mut self, worker: WorkerId, range: Range<u64>, out: &mut Vec<Output<Message>>) {
        if range.is_empty() {
            out.push(Output::Release { worker });
            self.one_less(out);
        } else {
            out.push(Output::Run { worker, range, copy: false });
        }
    }

    fn one_less(&mut self, out: &mut Vec<Output<Message>>) {
        self.open -= 1;
        if self.open == 0 {
            out.push(Output::Closed);
        }
    }
}

impl PoolRank for CounterRank {
    type Message = Message;

    fn step(&mut self, _now: Nanos, input: Input<Message>, out: &mut Vec<Output<Message>>) {
        match input {
            Input::Wants { worker } if self.rank == Rank(0) => {
                let range = self.next();
                self.give(worker, range, out);
            }
            Input::Wants { worker } => {
                out.push(Output::Send { to: Rank(0), message: Message::Ask { worker } });
            }
            Input::Message { from, message: Message::Ask { worker } } => {
                self.heard += 1;
                let range = self.next();
                let last = range.is_empty();
                let count = [0, 3000, 6000].get(self.heard as usize % 32).copied().unwrap_or(0);
                let numbers = vec![0.5; count];
                let answer = Message::Answer { worker, range, why: format!("{from} asks"), numbers };
                out.push(Output::Send { to: from, message: answer });
                if last {
                    self.one_less(out);
                }
            }
            Input::Message { from, message: Message::Answer { worker, range, why, numbers } } => {
                assert_eq!((from, why), (Rank(0), format!("{} asks", self.rank)));
                assert!(numbers.iter().all(|&number| number.to_bits() == 0.5f64.to_bits()));
                self.give(worker, range, out);
            }
            Input::Begin | Input::Timer | Input::Resize { .. } => {}
        }
    }

    fn said(&self) -> Option<String> {
        Some(format!("{} questions", self.heard))
    }
}
