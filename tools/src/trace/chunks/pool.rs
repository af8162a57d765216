//! Prints the workers of a pool, for which `caribou trace chunks` has no chunks.

use std::collections::BTreeMap;

use caribou::trace::{Event, What};
use trace_reader::Trace;

use crate::trace::analysis::events::{Observer, Scope, WorkerName, WorkerRef, by_worker};
use crate::trace::open::warn;
use crate::trace::page::{Cell, Page, Table, columns, duration, plural};
use crate::trace::select::{Selection, Window};

/// Ranges that one worker executed.
#[derive(Default)]
struct Worker {
    ranges: u64,
    iterations: u64,
    cpu_ns: f64,
    lost_ns: f64,
    longest_ns: u64,
    /// End of the last range.
    last_ns: u64,
}

struct Workers {
    window: Window,
    workers: BTreeMap<WorkerName, Worker>,
}

impl Observer<'_> for Workers {
    fn see(&mut self, place: WorkerRef<'_>, event: &Event) {
        let What::Range { count, lost_ns, .. } = event.what else { return };
        if !(self.window.from_ns..=self.window.to_ns).contains(&event.end_ns) {
            return;
        }
        let worker = self.workers.entry(place.name()).or_default();
        worker.ranges += 1;
        worker.iterations = worker.iterations.saturating_add(count);
        worker.cpu_ns += event.cpu_ns() as f64;
        worker.lost_ns += lost_ns as f64;
        worker.longest_ns = worker.longest_ns.max(event.duration_ns());
        worker.last_ns = worker.last_ns.max(event.end_ns);
    }
}

/// Reads all events once and fills the page.
pub(super) fn tell(trace: &Trace, selection: &Selection, page: &mut Page) {
    let scope = Scope::selected(trace, selection);
    let mut workers = Workers { window: scope.window, workers: BTreeMap::new() };
    warn(&by_worker(&scope, &mut [&mut workers]));
    let workers = workers.workers;
    let last_ns = workers.values().map(|worker| worker.last_ns).max().unwrap_or(0);
    let waited_ns: f64 = workers.values().map(|worker| (last_ns - worker.last_ns) as f64).sum();
    page.says.push(format!(
        "a pool has no chunks: {} executed its ranges, and waited {} for the last one",
        plural(workers.len(), "worker"),
        duration(waited_ns)
    ));
    page.tables.push(table(&workers, last_ns));
}

fn table(workers: &BTreeMap<WorkerName, Worker>, last_ns: u64) -> Table {
    let columns = columns(
        "rank | worker | ranges | iterations | cpu_ns: CPU | lost_ns: lost | mean_ns: CPU an iteration | \
         longest_ns: longest range | last_ns: last ended | tail_ns: waited for the last",
    );
    let mut table = Table::new("workers", "", &columns);
    for (name, worker) in workers {
        table.row([
            Cell::Count(u64::from(name.rank)),
            Cell::Count(u64::from(name.worker)),
            Cell::Count(worker.ranges),
            Cell::Count(worker.iterations),
            Cell::Ns(worker.cpu_ns),
            Cell::Ns(worker.lost_ns),
            Cell::Ns(worker.cpu_ns / worker.iterations.max(1) as f64),
            Cell::ns(worker.longest_ns),
            Cell::ns(worker.last_ns),
            Cell::ns(last_ns - worker.last_ns),
        ]);
    }
    table
}
