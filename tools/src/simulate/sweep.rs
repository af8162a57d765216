//! Many scenarios of one kind: mean, median and worst excess over the ideal, a line a policy.

use std::io::{self, Write};

use lb_strategies::cluster::Sweep;

use super::compare::{Comparison, Policy, compare};
use super::table::write_aligned;
use crate::Error;

/// The parameter that a sweep may set on policies that have it.
const CHECKPOINT: &str = "checkpoint";

/// Runs the sweep, writes its table, and gives back every comparison.
pub(super) fn run(
    sweep: &Sweep,
    compare_list: Option<&str>,
    prepare: impl Fn(&mut lb_strategies::cluster::Scenario),
    out: &mut dyn Write,
) -> Result<Vec<Comparison>, Error> {
    let mut scenarios = sweep.scenarios();
    scenarios.iter_mut().for_each(prepare);
    let policies = with_checkpoints(sweep, Policy::list(compare_list)?)?;
    let comparisons = compare(&scenarios, &policies);
    writeln!(out, "{}: {}; {} runs", sweep.name, sweep.about, scenarios.len())?;
    write_table(&policies, &comparisons, out)?;
    Ok(comparisons)
}

fn with_checkpoints(sweep: &Sweep, policies: Vec<Policy>) -> Result<Vec<Policy>, Error> {
    let mut all = Vec::new();
    for policy in policies {
        if sweep.checkpoints_s.is_empty() || !policy.takes(CHECKPOINT) {
            all.push(policy);
            continue;
        }
        for seconds in sweep.checkpoints_s {
            all.push(Policy::parse(&format!("{},{CHECKPOINT}={seconds}", policy.spec))?);
        }
    }
    Ok(all)
}

fn write_table(policies: &[Policy], comparisons: &[Comparison], out: &mut dyn Write) -> io::Result<()> {
    let heads = ["policy", "mean excess %", "median", "max", "worst scenario", ""];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for (place, policy) in policies.iter().enumerate() {
        let outcomes = || comparisons.iter().map(|comparison| &comparison.outcomes[place]);
        let mut excesses: Vec<f64> = outcomes().map(|outcome| outcome.excess_percent).collect();
        let mean = excesses.iter().sum::<f64>() / excesses.len().max(1) as f64;
        let worst = comparisons.iter().max_by(|one, other| {
            one.outcomes[place].excess_percent.total_cmp(&other.outcomes[place].excess_percent)
        });
        excesses.sort_by(f64::total_cmp);
        let bad = outcomes().filter(|outcome| outcome.complaint().is_some()).count();
        rows.push(vec![
            policy.spec.clone(),
            format!("{mean:.2}"),
            format!("{:.2}", median(&excesses)),
            format!("{:.2}", excesses.last().copied().unwrap_or(0.0)),
            worst.map_or_else(String::new, |worst| worst.scenario.clone()),
            if bad > 0 { format!("{bad} runs incomplete") } else { String::new() },
        ]);
    }
    write_aligned(&rows, out)
}

/// Of sorted values: the middle one, or the mean of the two in the middle.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        count if count % 2 == 1 => sorted[middle],
        _ => 0.5 * (sorted[middle - 1] + sorted[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(
            [median(&[]), median(&[3.0]), median(&[1.0, 3.0]), median(&[1.0, 2.0, 9.0])]
                .map(|median| median as u32),
            [0, 3, 2, 2]
        );
    }
}
