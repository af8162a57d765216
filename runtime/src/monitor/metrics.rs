//! Formats a [`Status`] in the text format of Prometheus, version 0.0.4.
//!
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>: a family is `# HELP`, `# TYPE` and its samples, all
//! together. Units are base units (seconds), and counters end in `_total`. `rank` and `worker` are labels, for sums.

use std::fmt::{Display, Write};

use super::status::{RankStatus, Status, WorkerStatus};
use crate::trace::StepsSoFar;

/// The `Content-Type`.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All families.
pub(super) fn metrics(status: &Status) -> String {
    let mut text = Text(String::new());
    run(status, &mut text);
    active(status, &mut text);
    workers(&status.ranks, &mut text);
    ranks(&status.ranks, &mut text);
    kinds(status, &mut text);
    match &status.steps {
        Some(so_far) => steps(so_far, status.ranks_total, &mut text),
        None => syncs(status, &mut text),
    }
    text.0
}

fn run(status: &Status, text: &mut Text) {
    text.family("run_info", "gauge", "Labels describe the run; always 1.");
    let labels: &[(&str, &dyn Display)] =
        &[("run_id", &status.run_id), ("program", &status.program), ("lb", &status.lb)];
    text.sample("run_info", labels, &1);
    text.family("elapsed_seconds", "gauge", "Time since the run began.");
    text.sample("elapsed_seconds", &[], &seconds(status.elapsed_ns));
    text.family("run_finished", "gauge", "1 if the run has ended, else 0.");
    text.sample("run_finished", &[], &u8::from(status.finished));
    text.family("run_failed", "gauge", "1 if the run has failed, else 0.");
    text.sample("run_failed", &[], &u8::from(status.failed.is_some()));
}

fn active(status: &Status, text: &mut Text) {
    if let Some(active) = status.ranks_active {
        text.family("active_ranks", "gauge", "Number of active ranks, which may have work.");
        text.sample("active_ranks", &[], &active);
    }
}

/// A counter of workers: name, help, value.
type WorkerMetric = (&'static str, &'static str, fn(&WorkerStatus) -> f64);

fn workers(ranks: &[RankStatus], text: &mut Text) {
    let families: [WorkerMetric; 6] = [
        ("chunk_cpu_seconds_total", "CPU time of chunks, or of iterations.", |w| seconds(w.cpu_ns)),
        ("runtime_seconds_total", "Time of the runtime's own work.", |w| seconds(w.runtime_ns)),
        ("idle_seconds_total", "Time in which the worker waited for work.", |w| seconds(w.idle_ns)),
        ("lost_seconds_total", "Wall time of chunks that was not CPU time.", |w| seconds(w.lost_ns)),
        ("wall_seconds_total", "Wall time of workers.", |w| seconds(w.wall_ns)),
        ("handlers_total", "Handlers, or ranges of iterations, that were executed.", |w| w.handlers as f64),
    ];
    for (name, help, value) in families {
        text.family(name, "counter", help);
        for rank in ranks {
            for worker in &rank.workers {
                text.sample(name, &[("rank", &rank.rank), ("worker", &worker.worker)], &value(worker));
            }
        }
    }
}

/// A figure of ranks: name, type, help, value if it is known.
type RankMetric = (&'static str, &'static str, &'static str, fn(&RankStatus) -> Option<f64>);

fn ranks(ranks: &[RankStatus], text: &mut Text) {
    let families: [RankMetric; 8] = [
        ("messages_total", "counter", "Messages handled by chunks.", |rank| Some(rank.messages as f64)),
        ("chunks", "gauge", "Chunks on the rank.", |rank| Some(rank.chunks as f64)),
        ("waiting_bytes", "gauge", "Bytes of messages that wait for their chunks.", |rank| {
            Some(rank.waiting_bytes as f64)
        }),
        ("waiting_bytes_max", "gauge", "Largest number of bytes that have waited.", |rank| {
            Some(rank.waiting_bytes_max as f64)
        }),
        ("iterations_total", "counter", "Iterations executed.", |rank| Some(rank.iterations as f64)),
        (
            "vcpu_share",
            "gauge",
            "CPU time received divided by CPU time wanted, when last measured.",
            |rank| rank.sample.map(|sample| sample.share()),
        ),
        ("steal_ratio", "gauge", "Steal time divided by wall time, when last measured.", |rank| {
            rank.sample.filter(|sample| sample.wall_ns > 0).map(|s| s.steal_ns as f64 / s.wall_ns as f64)
        }),
        (
            "vcpu_speed",
            "gauge",
            "Rounds of the calibration loop per microsecond, when last measured.",
            |rank| rank.sample.map(|sample| sample.speed),
        ),
    ];
    for (name, kind, help, value) in families {
        text.family(name, kind, help);
        for rank in ranks {
            if let Some(value) = value(rank) {
                text.sample(name, &[("rank", &rank.rank), ("host", &rank.host)], &value);
            }
        }
    }
}

fn kinds(status: &Status, text: &mut Text) {
    text.family("kind_cpu_seconds_total", "counter", "CPU time of handlers, by kind of message.");
    for kind in &status.kinds {
        text.sample("kind_cpu_seconds_total", &[("kind", &kind.name)], &seconds(kind.cpu_ns));
    }
    text.family("kind_calls_total", "counter", "Handlers run, by kind of message.");
    for kind in &status.kinds {
        text.sample("kind_calls_total", &[("kind", &kind.name)], &kind.calls);
    }
    text.family("kind_longest_seconds", "gauge", "Wall time of the longest handler, by kind of message.");
    for kind in &status.kinds {
        text.sample("kind_longest_seconds", &[("kind", &kind.name)], &seconds(kind.longest_ns));
    }
}

fn steps(so_far: &StepsSoFar, ranks: u32, text: &mut Text) {
    text.family("steps_total", "counter", "Completed steps.");
    text.sample("steps_total", &[], &so_far.steps);
    text.family("step_seconds", "gauge", "Time of the last step.");
    text.sample("step_seconds", &[], &seconds(so_far.last_ns));
    text.family("divisions_total", "counter", "Divisions that took effect after the first.");
    text.sample("divisions_total", &[], &so_far.divisions);
    text.family("units_moved_total", "counter", "Units that moved to another worker.");
    text.sample("units_moved_total", &[], &so_far.moved);
    text.family("units", "gauge", "Units of the worker's job in the last step.");
    let per_rank = so_far.units.len() / (ranks as usize).max(1);
    for (at, units) in so_far.units.iter().enumerate() {
        let (rank, worker) = (at / per_rank.max(1), at % per_rank.max(1));
        text.sample("units", &[("rank", &rank), ("worker", &worker)], units);
    }
}

fn syncs(status: &Status, text: &mut Text) {
    text.family("syncs_total", "counter", "Syncs.");
    text.sample("syncs_total", &[], &status.syncs_total);
    text.family("chunks_moved_total", "counter", "Chunks moved.");
    text.sample("chunks_moved_total", &[], &status.moved_total);
    let Some(last) = status.syncs.last() else { return };
    text.family(
        "imbalance_ratio",
        "gauge",
        "Completion time of the slowest rank in the last phase, divided by the time with perfect balance.",
    );
    text.sample("imbalance_ratio", &[], &last.imbalance_before);
    text.family("imbalance_predicted_ratio", "gauge", "Imbalance ratio that the last decision predicted.");
    text.sample("imbalance_predicted_ratio", &[], &last.imbalance_predicted);
}

/// Families and samples; their names begin with `caribou_`.
struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# HELP caribou_{name} {help}\n# TYPE caribou_{name} {kind}\n"));
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &dyn Display)], value: &dyn Display) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(label, value)| format!("{label}=\"{}\"", escape(&value.to_string())))
            .collect();
        match labels.is_empty() {
            true => self.line(format_args!("caribou_{name} {value}\n")),
            false => self.line(format_args!("caribou_{name}{{{}}} {value}\n", labels.join(","))),
        }
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        self.0.write_fmt(line).expect("a String takes everything");
    }
}

/// The value of a label, as it is written between quotes.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
