//! Runs pool policies on many scenarios of one kind. Prints mean, median and largest excess over the ideal per policy.

use std::io::{self, Write};

use lb_strategies::pool::PoolStrategy;
use lb_strategies::{POOLS, median};
use presentation::Table;
use virtual_cluster::Sweep;

use super::compare::{Comparison, Policy, compare};
use super::pool_metrics::PoolMetrics;
use super::table::NO_EXCESS;
use crate::Error;

/// The parameter that a sweep sets on policies that have it.
const INTERVAL: &str = "interval";

/// Runs the sweep, writes its table, and returns all comparisons.
pub(super) fn run(
    sweep: &Sweep,
    compare_list: Option<&str>,
    prepare: impl Fn(&mut virtual_cluster::Scenario),
    out: &mut dyn Write,
) -> Result<Vec<Comparison<PoolMetrics>>, Error> {
    let mut scenarios = sweep.scenarios();
    scenarios.iter_mut().for_each(prepare);
    let policies = with_intervals(sweep, Policy::list(&POOLS, compare_list)?)?;
    let comparisons = compare(&scenarios, &policies);
    writeln!(out, "{}: {}; {} runs", sweep.name, sweep.about, scenarios.len())?;
    write_table(&policies, &comparisons, out)?;
    Ok(comparisons)
}

type PoolPolicy = Policy<dyn PoolStrategy>;

fn takes_interval(policy: &PoolPolicy) -> bool {
    let entry = POOLS.find(&policy.spec);
    entry.is_some_and(|entry| entry.parameters.iter().any(|known| known.name == INTERVAL))
}

fn with_intervals(sweep: &Sweep, policies: Vec<PoolPolicy>) -> Result<Vec<PoolPolicy>, Error> {
    let mut all = Vec::new();
    for policy in policies {
        if sweep.intervals_s.is_empty() || !takes_interval(&policy) {
            all.push(policy);
            continue;
        }
        for seconds in sweep.intervals_s {
            all.push(Policy::parse(&POOLS, &format!("{},{INTERVAL}={seconds}", policy.spec))?);
        }
    }
    Ok(all)
}

fn write_table(
    policies: &[PoolPolicy],
    comparisons: &[Comparison<PoolMetrics>],
    out: &mut dyn Write,
) -> io::Result<()> {
    let heads = ["policy", "mean excess %", "median", "max", "worst scenario", ""];
    let mut table = Table::new(heads).text_columns([true, false, false, false, true, true]);
    for (place, policy) in policies.iter().enumerate() {
        let excess = |comparison: &Comparison<PoolMetrics>| comparison.outcomes[place].excess_percent;
        let complete = comparisons.iter().filter_map(|one| Some((excess(one)?, one.scenario.as_str())));
        table.row(row(&policy.spec, complete.collect(), comparisons.len()));
    }
    write!(out, "{table}")
}

/// The row of a policy, from the excess and the name of each scenario that it completed, out of `scenarios`.
fn row(policy: &str, mut complete: Vec<(f64, &str)>, scenarios: usize) -> Vec<String> {
    complete.sort_by(|one, other| one.0.total_cmp(&other.0));
    let excesses: Vec<f64> = complete.iter().map(|(excess, _)| *excess).collect();
    let figures = match complete.last() {
        None => [NO_EXCESS, NO_EXCESS, NO_EXCESS, ""].map(str::to_owned),
        Some((most, worst)) => {
            let mean = excesses.iter().sum::<f64>() / excesses.len() as f64;
            let median = median(excesses).unwrap_or(0.0);
            let [mean, median, most] = [mean, median, *most].map(|excess| format!("{excess:.2}"));
            [mean, median, most, (*worst).to_owned()]
        }
    };
    let bad = scenarios - complete.len();
    let words = if bad > 0 { format!("{bad} runs incomplete, not counted") } else { String::new() };
    [vec![policy.to_owned()], figures.to_vec(), vec![words]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_did_not_do_everything_count_in_no_mean() {
        let line = |complete| row("static", complete, 3).join("|");
        assert_eq!(line(vec![(3.0, "b"), (1.0, "a"), (2.0, "c")]), "static|2.00|2.00|3.00|b|");
        assert_eq!(line(vec![(1.0, "a")]), "static|1.00|1.00|1.00|a|2 runs incomplete, not counted");
        assert_eq!(line(Vec::new()), "static|n/a|n/a|n/a||3 runs incomplete, not counted");
    }
}
