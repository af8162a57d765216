//! Comparisons for programs: JSON with everything, CSV with a line a run.

use std::io;

use super::compare::Comparison;
use super::outcome::Outcome;
use crate::output::unwritten;

/// Heads of the values.
const HEADS: [&str; 15] = [
    "scenario",
    "policy",
    "ranks",
    "workers",
    "iterations",
    "ideal_s",
    "makespan_s",
    "excess_percent",
    "worker_spread_s",
    "rank_spread_s",
    "idle_worker_s",
    "messages",
    "overshoot_percent",
    "missing",
    "hung",
];

/// One array, an object a scenario.
pub(super) fn json(comparisons: &[Comparison]) -> io::Result<String> {
    Ok(serde_json::to_string_pretty(comparisons)? + "\n")
}

/// A header, then a line a scenario and policy. The excess of a run that did not do everything is empty.
pub(super) fn csv(comparisons: &[Comparison]) -> io::Result<Vec<u8>> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record(HEADS).map_err(unwritten)?;
    for comparison in comparisons {
        let Comparison { scenario, iterations, workers, ideal_s, .. } = comparison;
        let (ranks, all) = (workers.len(), workers.iter().sum::<u32>());
        for outcome in &comparison.outcomes {
            let Outcome { policy, messages, missing, hung, .. } = outcome;
            csv.serialize((
                (scenario, policy, ranks, all, iterations, text(*ideal_s), text(outcome.makespan_s)),
                outcome.excess_percent.map(text),
                (text(outcome.worker_spread_s), text(outcome.rank_spread_s), text(outcome.idle_worker_s)),
                (messages, text(outcome.overshoot_percent), missing, hung),
            ))
            .map_err(unwritten)?;
        }
    }
    csv.into_inner().map_err(|error| error.into_error())
}

/// A number without decimals where it is a whole one.
fn text(number: f64) -> String {
    number.to_string()
}
