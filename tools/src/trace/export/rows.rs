//! Assigns a row to each worker.

use trace_reader::Trace;

use crate::Error;
use crate::trace::select::Selection;

/// Largest number of ranks without a file that keep rows free, because a damaged record may state any number.
const MISSING_MAX: usize = 1 << 16;

/// A worker and its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Its number among the workers of all ranks.
    pub(super) number: u32,
    pub(super) rank: u32,
    pub(super) worker: u32,
}

/// The rows of a trace.
#[derive(Debug)]
pub(super) struct Rows {
    /// The exported rows, in order.
    pub(super) rows: Vec<Row>,
    /// Number of rows, including rows of ranks without a file.
    pub(super) count: u32,
}

impl Rows {
    /// Numbers the workers by rank, and by worker within a rank.
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
