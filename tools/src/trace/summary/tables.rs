//! Builds the tables of a summary: the run, its time, its traffic, and its events.

use std::collections::BTreeMap;

use caribou::trace::{Activity, Shape};
use trace_reader::Trace;

use super::super::analysis::event_counts::{EVENT_KINDS, EventCounts, Traffic, arrays_recorded};
use super::super::analysis::lost_time::LostTime;
use super::super::analysis::time_breakdown::{Ending, Source, TimeBreakdown};
use super::super::page::{Cell, Table, columns, duration, moment, plural};

/// Rows of idle time at the end of a pool.
const TAIL: &str = "idle, waiting for the last worker";
const COLLECTING: &str = "idle, collecting the result";
/// Hosts that are named.
const HOSTS_MAX: usize = 8;
/// Characters of the command line that are printed.
const COMMAND_MAX: usize = 200;

/// Describes the run in one line.
pub(super) fn headline(trace: &Trace) -> String {
    let program = trace.run.arguments.first().map_or("a run", String::as_str);
    let program = program.rsplit('/').next().unwrap_or(program);
    let workers: u64 = trace.ranks.iter().map(|rank| u64::from(rank.workers)).sum();
    format!(
        "{program}: {}, {}, {}, {}",
        plural(trace.run.ranks as usize, "rank"),
        plural(workers as usize, "worker"),
        duration(trace.elapsed_ns() as f64),
        state(trace)
    )
}

/// The state of a run with a complete trace.
pub(crate) const COMPLETE: &str = "complete";

/// Describes whether the trace of the run is complete.
pub(crate) fn state(trace: &Trace) -> String {
    let failed = trace.ranks.iter().find_map(|rank| Some((rank.rank, rank.end.as_ref()?.failed.as_ref()?)));
    let cut_off = trace.ranks.iter().filter(|rank| rank.end.is_none()).count();
    let missing = (trace.run.ranks as usize).saturating_sub(trace.ranks.len());
    match (failed, cut_off, missing) {
        (Some((rank, why)), _, _) => format!("failed on rank {rank}: {why}"),
        (None, 0, 0) if !trace.problems.is_empty() => {
            format!("damaged: {}", plural(trace.problems.len(), "problem"))
        }
        (None, 0, 0) => COMPLETE.into(),
        (None, 0, missing) => format!("{} missing", plural(missing, "rank")),
        (None, cut_off, 0) => format!("cut off on {}", plural(cut_off, "rank")),
        (None, cut_off, missing) => {
            format!("cut off on {}, {missing} missing", plural(cut_off, "rank"))
        }
    }
}

pub(super) fn run(trace: &Trace) -> Table {
    let run = &trace.run;
    let mut table = Table::new("run", "", &[("what", "run"), ("value", "")]);
    let command: String = run.arguments.join(" ").chars().take(COMMAND_MAX).collect();
    let rows = [
        ("id", run.run_id.clone()),
        ("command", command),
        ("started", moment(run.started_unix_ns)),
        ("version", format!("{} ({})", run.version, run.git_hash)),
        ("shape", run.shape.recorded().to_owned()),
        ("strategy", run.lb.clone()),
        ("hosts", hosts(trace)),
        ("placement", run.placement.clone()),
        ("pinned", if run.pinned { "yes" } else { "no" }.into()),
        ("filter", run.filter.clone()),
        ("state", state(trace)),
        ("events", format!("{} recorded, {} dropped", trace.events(), trace.dropped())),
    ];
    for (what, value) in rows {
        table.row([Cell::text_of(what), Cell::Text(value)]);
    }
    table
}

fn hosts(trace: &Trace) -> String {
    let mut ranks = BTreeMap::<&str, usize>::new();
    trace.ranks.iter().for_each(|rank| *ranks.entry(&rank.host).or_default() += 1);
    let each = ranks.iter().take(HOSTS_MAX);
    let named: Vec<String> =
        each.map(|(host, count)| format!("{host} ({})", plural(*count, "rank"))).collect();
    match ranks.len().saturating_sub(HOSTS_MAX) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// Table of the parts of all workers' time, which add up to it.
pub(super) fn time(trace: &Trace, spent: &TimeBreakdown, taken: &LostTime) -> Table {
    let parts = spent.parts();
    let source = match spent.source {
        Source::Profile => "profile",
        Source::Events => "events",
    };
    let (busy, has_end) = match trace.run.shape {
        Shape::Arrays | Shape::Supersteps => ("chunks", false),
        Shape::Pools => ("iterations", true),
    };
    let Ending { tail_ns, collecting_ns } = Ending::of(trace);
    let columns = [("part", "worker-time"), ("time_ns", "time"), ("share", "share"), ("from", "from")];
    let mut table = Table::new("time", "", &columns);
    let rows = [
        (busy, parts.chunks_ns, source),
        ("runtime", parts.runtime_ns, source),
        ("idle", (parts.idle_ns - tail_ns - collecting_ns).max(0.0), source),
        (TAIL, tail_ns, source),
        (COLLECTING, collecting_ns, source),
        ("waiting for the vCPU", taken.wait_ns, "samples"),
        ("throttled by a quota", taken.throttled_ns, "samples"),
        ("steal", taken.steal_ns, "samples"),
        ("lost, unexplained", taken.unexplained_ns, source),
        ("unaccounted", parts.rest_ns, source),
        ("all", parts.wall_ns, "records"),
    ];
    let sampled = trace.ranks.iter().any(|rank| !rank.samples.is_empty());
    for (name, ns, from) in rows {
        let cells = match from {
            _ if [TAIL, COLLECTING].contains(&name) && !has_end => continue,
            "samples" if !sampled => [Cell::Empty, Cell::Empty],
            _ => [Cell::Ns(ns), Cell::Share(parts.share(ns))],
        };
        let named = [Cell::text_of(name)].into_iter().chain(cells);
        table.row(named.chain([Cell::text_of(from)]));
    }
    table
}

/// Table of handlers and messages, as totals and per second.
pub(super) fn traffic(trace: &Trace, spent: &TimeBreakdown, census: Option<&EventCounts>) -> Table {
    let columns = columns("what: counted | count | per_second: per second | bytes | from");
    let mut table = Table::new("traffic", "", &columns);
    let seconds = spent.bins.window.length_ns() as f64 / 1e9;
    let mut row = |name: &str, count: u64, bytes: Option<u64>, from: &str| {
        let rate =
            if seconds > 0.0 { Cell::Count((count as f64 / seconds).round() as u64) } else { Cell::Empty };
        let bytes = bytes.map_or(Cell::Empty, Cell::Bytes);
        table.row([Cell::text_of(name), Cell::Count(count), rate, bytes, Cell::text_of(from)]);
    };
    let total = spent.total();
    let kinds =
        total.iter().filter(|(activity, _)| matches!(activity, Activity::Kind(_) | Activity::Iterations));
    let calls: f64 = kinds.map(|(_, line)| line.calls).sum();
    let name = match trace.run.shape {
        Shape::Arrays | Shape::Supersteps => "handlers",
        Shape::Pools => "ranges of iterations",
    };
    match (spent.source, census) {
        (Source::Events, Some(census)) => row(name, census.handled(), None, "events"),
        (Source::Events, None) => row(name, calls.round() as u64, None, "events"),
        (Source::Profile, _) => row(name, calls.round() as u64, None, "profile"),
    }
    if trace.ranks.iter().all(|rank| rank.end.is_some()) {
        let ends = trace.ranks.iter().filter_map(|rank| rank.end.as_ref());
        let handled = ends.fold(0u64, |sum, end| sum.saturating_add(end.messages));
        match trace.run.shape {
            Shape::Arrays => row("deliveries handled, with starts and resumes", handled, None, "records"),
            Shape::Supersteps => row("deliveries handled", handled, None, "records"),
            // Only those that workers sent are in the events.
            Shape::Pools if trace.run.ranks > 1 => row("messages of the policy", handled, None, "records"),
            Shape::Pools => {}
        }
    }
    // If only some arrays were recorded, zero sends do not mean that nothing was sent.
    let told = |census: &&EventCounts| census.sent() > 0 || arrays_recorded(trace).is_empty();
    let has_chunks = trace.run.shape != Shape::Pools;
    if let Some(census) = census.filter(|_| has_chunks && trace.run.arrows > 0).filter(told) {
        for (name, traffic) in
            [("messages within a rank", census.local), ("messages to other ranks", census.remote)]
        {
            let Traffic { messages, bytes } = traffic.times(trace.run.arrows);
            row(name, messages, Some(bytes), "events");
        }
    }
    table
}

/// Explanation of events that are easily taken for others.
pub(super) fn of_events(trace: &Trace, census: &EventCounts) -> Option<&'static str> {
    let recorded =
        |sort: &str| EVENT_KINDS.iter().zip(&census.counts).any(|(one, &count)| *one == sort && count > 0);
    match trace.run.shape {
        Shape::Arrays if recorded("depart") => {
            Some("arrive: chunks that were made on a rank or moved to it; depart: chunks that moved away")
        }
        Shape::Arrays | Shape::Supersteps => None,
        Shape::Pools => recorded("pool send").then_some(
            "pool send: messages of the policy that workers sent; those sent on receipt of another message are only counted",
        ),
    }
}

/// Table of the number of events of each kind.
pub(super) fn events(census: &EventCounts) -> Table {
    let mut table = Table::new("events", "", &[("sort", "events"), ("count", "count")]);
    for (sort, &count) in EVENT_KINDS.iter().zip(&census.counts).filter(|(_, count)| **count > 0) {
        table.row([Cell::text_of(*sort), Cell::Count(count)]);
    }
    table
}
