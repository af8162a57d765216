//! All workers' turns in the order in which they began, and the row of each worker.
//!
//! Whoever is shown turns in this order sees a message sent before it sees it handled, and needs to remember only those
//! that are under way. Memory is a block of events a worker.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use caribou::trace::{Problem, Trace};

use super::turns::{Turn, Turns};
use crate::Error;
use crate::trace::select::{Selection, Window};

/// Ranks without a file whose rows are left free, at most: a damaged record may claim any number.
const MISSING_MAX: usize = 1 << 16;

/// A worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Its position among the workers of all ranks.
    pub(super) number: u32,
    pub(super) rank: u32,
    pub(super) worker: u32,
}

/// The rows of a trace.
#[derive(Debug)]
pub(super) struct Rows {
    /// Those that are exported, in order.
    pub(super) rows: Vec<Row>,
    /// How many there are, those of ranks that left no file included.
    pub(super) count: u32,
}

impl Rows {
    /// The row of a worker is the number of workers of the ranks before, and its own.
    pub(super) fn new(trace: &Trace, selection: &Selection) -> Result<Rows, Error> {
        let mut rows = Vec::new();
        let mut count = 0u64;
        let mut next_rank = 0;
        for rank in &trace.ranks {
            count += workers_of_missing(trace, next_rank..rank.rank);
            next_rank = rank.rank.saturating_add(1);
            for worker in (0..rank.workers).filter(|_| selection.has(rank.rank)) {
                let number = count + u64::from(worker);
                rows.push(Row { number: number.min(u64::from(u32::MAX)) as u32, rank: rank.rank, worker });
            }
            count += u64::from(rank.workers);
        }
        count += workers_of_missing(trace, next_rank..trace.run.ranks);
        let too_many = || Error::Usage(format!("{count} workers are more than other tools have rows for"));
        let count = u32::try_from(count).ok().filter(|&count| count < 1 << 24).ok_or_else(too_many)?;
        Ok(Rows { rows, count })
    }
}

fn workers_of_missing(trace: &Trace, ranks: std::ops::Range<u32>) -> u64 {
    let ranks = (ranks.start as usize)..(ranks.end.min(trace.run.ranks) as usize);
    let workers = |rank| u64::from(trace.run.workers.get(rank).copied().unwrap_or(1).min(1 << 16));
    ranks.take(MISSING_MAX).map(workers).sum()
}

/// Turns of all rows that were selected.
pub(super) struct Merged {
    workers: Vec<Turns>,
    /// The next turn of each worker.
    next: Vec<Option<Turn>>,
    /// When it begins, and the position of its worker.
    order: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Merged {
    pub(super) fn new(trace: &Trace, rows: &[Row], window: Window) -> Merged {
        let stream = |row: &Row| {
            let rank = trace.ranks.iter().find(|rank| rank.rank == row.rank);
            let rank = rank.expect("rows are made of the ranks that are there");
            Turns::new(rank.stream_between(row.worker, window.from_ns, window.to_ns), window)
        };
        let mut workers: Vec<Turns> = rows.iter().map(stream).collect();
        let next: Vec<Option<Turn>> = workers.iter_mut().map(Iterator::next).collect();
        let begin = |(position, turn): (usize, &Option<Turn>)| {
            turn.as_ref().map(|turn| Reverse((turn.event.begin_ns, position)))
        };
        let order = next.iter().enumerate().filter_map(begin).collect();
        Merged { workers, next, order }
    }

    /// What could not be read so far.
    pub(super) fn problems(&self) -> Vec<Problem> {
        self.workers.iter().flat_map(|worker| worker.problems().to_vec()).collect()
    }

    /// Spans and points that belong to no slice.
    pub(super) fn left_out(&self) -> u64 {
        self.workers.iter().map(|worker| worker.left_out).sum()
    }
}

/// The position of the row among those selected, and its turn.
impl Iterator for Merged {
    type Item = (usize, Turn);

    fn next(&mut self) -> Option<(usize, Turn)> {
        let Reverse((_, position)) = self.order.pop()?;
        let after = self.workers[position].next();
        if let Some(after) = &after {
            self.order.push(Reverse((after.event.begin_ns, position)));
        }
        let turn = std::mem::replace(&mut self.next[position], after);
        Some((position, turn.expect("what is in the order is there")))
    }
}
