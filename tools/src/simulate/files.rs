//! Comparisons for programs: JSON with everything, CSV with a line a run.

use std::io;
use std::path::Path;

use super::compare::Comparison;
use crate::{Error, output};

/// Writes text to a file, or says which file it was.
pub(super) fn write(file: &Path, text: &str) -> Result<(), Error> {
    output::write(file, text)
}

/// One array, an object a scenario.
pub(super) fn json(comparisons: &[Comparison]) -> io::Result<String> {
    Ok(serde_json::to_string_pretty(comparisons)? + "\n")
}

/// A header, then a line a scenario and policy. The excess of a run that did not do everything is empty.
pub(super) fn csv(comparisons: &[Comparison]) -> String {
    let mut text =
        "scenario,policy,ranks,workers,iterations,ideal_s,makespan_s,excess_percent,worker_spread_s,\
                    rank_spread_s,idle_worker_s,messages,overshoot_percent,missing,hung\n"
            .to_owned();
    for comparison in comparisons {
        let Comparison { scenario, iterations, workers, ideal_s, .. } = comparison;
        let (ranks, all) = (workers.len(), workers.iter().sum::<u32>());
        for outcome in &comparison.outcomes {
            text += &format!(
                "{},{},{ranks},{all},{iterations},{ideal_s},{},{},{},{},{},{},{},{},{}\n",
                quoted(scenario),
                quoted(&outcome.policy),
                outcome.makespan_s,
                outcome.excess_percent.map_or_else(String::new, |excess| excess.to_string()),
                outcome.worker_spread_s,
                outcome.rank_spread_s,
                outcome.idle_worker_s,
                outcome.messages,
                outcome.overshoot_percent,
                outcome.missing,
                outcome.hung,
            );
        }
    }
    text
}

/// A field as RFC 4180 wants it: in quotes if it has a comma or a quote.
fn quoted(text: &str) -> String {
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_with_parameters_is_one_field() {
        assert_eq!(quoted("static,chunk=1"), "\"static,chunk=1\"");
        assert_eq!(quoted("static"), "static");
    }
}
