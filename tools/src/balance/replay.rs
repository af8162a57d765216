//! Implements `caribou balance --trace`: decides the syncs of a recorded run again, from the recorded reports of its
//! ranks. The strategy of the run repeats its decisions. Another strategy shows what it would have decided at each
//! sync. Each sync starts from the placement of the run: moves decided here do not carry over to the next sync.

use std::io::Write;
use std::path::Path;

use lb_strategies::Prediction;
use lb_strategies::balancer::{Balancer, Decision};
use presentation::Table;
use presentation::format::decimal;
use serde::Serialize;
use trace_reader::Trace;

use super::{Named, strategies};
use crate::Error;
use crate::recorded::{Reported, of_syncs};
use crate::trace::open::warn;

/// Decision of one strategy at one sync.
#[derive(Serialize)]
struct Row<'r> {
    strategy: &'r str,
    sync: u64,
    imbalance_before: f64,
    imbalance_predicted: f64,
    makespan_before_ns: u64,
    makespan_predicted_ns: u64,
    proposed: u64,
    moved: u64,
    expected_gain_ns: u64,
    needed_gain_ns: u64,
}

impl<'r> Row<'r> {
    fn new(strategy: &'r str, decision: &Decision) -> Self {
        Self {
            strategy,
            sync: decision.phase,
            imbalance_before: decision.imbalance_before,
            imbalance_predicted: decision.imbalance_predicted,
            makespan_before_ns: decision.makespan_before_ns(),
            makespan_predicted_ns: decision.makespan_predicted_ns(),
            proposed: decision.proposed,
            moved: decision.moves.len() as u64,
            expected_gain_ns: decision.gain_ns,
            needed_gain_ns: decision.needed_ns,
        }
    }

    fn cells(&self) -> [String; 8] {
        [
            self.strategy.to_owned(),
            self.sync.to_string(),
            format!("{:.4}", self.imbalance_before),
            format!("{:.4}", self.imbalance_predicted),
            self.proposed.to_string(),
            self.moved.to_string(),
            decimal(self.expected_gain_ns as f64 / 1e6, 3),
            decimal(self.needed_gain_ns as f64 / 1e6, 3),
        ]
    }
}

const HEADS: [&str; 8] = [
    "strategy",
    "sync",
    "imbalance before",
    "predicted",
    "proposed",
    "moved",
    "gain expected ms",
    "gain needed ms",
];

/// Line above the table.
const PLACEMENT: &str =
    "Each sync starts from the placement that the run had at it: moves decided here are not carried over.";

/// Lines below the table.
const LEGEND: &str = "\
imbalance: the slowest rank's time in a phase over the time with work spread by capacity; predicted: after the moves
proposed: chunks that the strategy wants to move; moved: all of these if the gain expected, in a phase of average length,
is at least the gain needed, which the cost of syncs and moves sets; none otherwise";

/// Decides the syncs of the trace again by the strategies in `specs`, or by the strategy of the run if there are none.
pub(super) fn run(path: &Path, specs: &[String], json: bool, out: &mut dyn Write) -> Result<(), Error> {
    let trace = Trace::open(path)?;
    warn(&trace.problems);
    let reports = of_syncs(&trace).or_else(refused)?;
    let strategies = if specs.is_empty() { own(&trace.run.lb)? } else { strategies(specs)? };
    let prediction = prediction(&trace.run.predict)?;
    let balancer = |named: &Named| {
        Balancer::new(named.1.clone()).predicting(prediction).within_memory(trace.run.memory_limit)
    };
    let rows = strategies
        .iter()
        .flat_map(|named| decide(&named.0, balancer(named), named.0 == trace.run.lb, &reports));
    let rows: Vec<Row<'_>> = rows.collect();
    if json {
        serde_json::to_writer(&mut *out, &rows).map_err(std::io::Error::from)?;
        return Ok(writeln!(out)?);
    }
    let mut table = Table::new(HEADS);
    rows.iter().for_each(|row| table.row(row.cells()));
    writeln!(out, "{PLACEMENT}")?;
    write!(out, "{table}")?;
    Ok(writeln!(out, "{LEGEND}")?)
}

/// Decides all syncs by the balancer of one strategy. `own` means the strategy of the run: its recorded times of
/// deciding and moving count. Another strategy decides and moves in no time, because its times are unknown.
fn decide<'r>(spec: &'r str, mut balancer: Balancer, own: bool, reports: &[Reported<'_>]) -> Vec<Row<'r>> {
    let decide = |&(report, sync): &Reported<'_>| {
        let decision = balancer.decide_in(report, if own { sync.decide_ns } else { 0 });
        if own && !decision.moves.is_empty() {
            balancer.moved(sync.migrate_ns);
        }
        Row::new(spec, &decision)
    };
    reports.iter().map(decide).collect()
}

/// The predictor of loads that the run used. Traces of older versions do not name it.
fn prediction(name: &str) -> Result<Prediction, Error> {
    match name {
        "" => Ok(Prediction::default()),
        name => name.parse().or_else(|error| refused(format!("the predictor of the run: {error}"))),
    }
}

/// The strategy of the run. Refuses a strategy that the program brought itself.
fn own(spec: &str) -> Result<Vec<Named>, Error> {
    strategies(&[spec.to_owned()]).or_else(|_| {
        refused(format!(
            "the run used strategy {spec:?}, which this command does not have: name one with --lb"
        ))
    })
}

fn refused<T>(why: impl std::fmt::Display) -> Result<T, Error> {
    Err(Error::Usage(format!("--trace: {why}")))
}
