//! Reads the events of a trace once, the streams of several workers at a time.
//!
//! Each worker's events go, in their order, to a value of their own; memory is a block for each thread and those values.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use caribou::trace::{Event, Problem, RankTrace};

use super::select::Window;

/// What became of the events of each worker, in the order of ranks and workers, and what could not be read.
///
/// `see` gets all events of the blocks that touch the window: some lie outside of it.
pub(crate) fn fold<T: Send>(
    ranks: &[&RankTrace],
    window: Window,
    begin: impl Fn(&RankTrace, u32) -> T + Sync,
    see: impl Fn(&mut T, &[Event]) + Sync,
) -> (Vec<T>, Vec<Problem>) {
    let workers: Vec<(&RankTrace, u32)> =
        ranks.iter().flat_map(|rank| (0..rank.workers).map(|worker| (*rank, worker))).collect();
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(workers.len()));
    let read = || {
        while let Some(&(rank, worker)) = workers.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut value = begin(rank, worker);
            let problems = one(rank, worker, window, |events| see(&mut value, events));
            let place = (rank.rank, worker);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((place, value, problems));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(workers.len());
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(read);
        }
        read();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|&(place, _, _)| place);
    let (mut values, mut problems) = (Vec::with_capacity(done.len()), Vec::new());
    for (_, value, wrong) in done {
        values.push(value);
        problems.extend(wrong);
    }
    (values, problems)
}

fn one(rank: &RankTrace, worker: u32, window: Window, mut see: impl FnMut(&[Event])) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut stream = rank.stream_between(worker, window.from_ns, window.to_ns);
    while let Some(block) = stream.next_block() {
        match block {
            Ok(events) => see(events),
            Err(problem) => problems.push(problem),
        }
    }
    problems
}
