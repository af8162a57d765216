//! Repeats figures 6 to 9 of the RUPER-LB paper (Gimenez-Alventosa, Molto and Segrelles) beside the paper's numbers.
//! These are read from its figures to 0.3 %.
//!
//! Only the forms of the curves can be compared. The paper's runs with and without balancing are from different hours.
//! Both include the start and output of each rank (115 to 180 s in figure 7). The runs here have the same speeds with
//! and without balancing, no start, no output.

use std::io::Write;

use lb_strategies::POOLS;
use lb_strategies::pool::PoolStrategy;
use presentation::Table;
use virtual_cluster::scenario;

use super::caa_figures;
use super::compare::{Comparison, Policy, compare};
use super::pool_metrics::PoolMetrics;
use crate::Error;

/// Policies compared with the paper: the paper's own, which counts iterations without their identity, and `leases`.
const POLICIES: [&str; 2] = ["ruper,counts=fungible", "leases"];

/// A figure with the time of each rank.
struct Figure {
    title: &'static str,
    scenario: &'static str,
    /// Seconds of each rank without balancing, in the paper.
    without_s: &'static [f64],
    /// Seconds of each rank with balancing, in the paper.
    with_s: &'static [f64],
}

const FIGURES: [Figure; 6] = [
    figure("figure 6, run 1", "F6-1", &[2935.0, 3883.0], &[3752.0, 3700.0]),
    figure("figure 6, run 2", "F6-2", &[2892.0, 4904.0], &[3723.0, 3650.0]),
    figure("figure 6, run 3", "F6-3", &[2858.0, 4553.0], &[3706.0, 3657.0]),
    figure("figure 6, run 4", "F6-4", &[2888.0, 4976.0], &[3646.0, 3740.0]),
    figure("figure 7", "F7", &[11468.0, 18744.0], &[14162.0, 14311.0]),
    figure("figure 8", "F8b", &[2412.0, 2398.0, 2439.0, 2392.0], &[2272.0, 2288.0, 2286.0, 2267.0]),
];

const fn figure(
    title: &'static str,
    scenario: &'static str,
    without_s: &'static [f64],
    with_s: &'static [f64],
) -> Figure {
    Figure { title, scenario, without_s, with_s }
}

/// Figure 7, right: the end of each thread of each rank with balancing, in seconds.
const THREADS_S: [[f64; 8]; 2] = [
    [14016.0, 13982.0, 13978.0, 14048.0, 13934.0, 13904.0, 13971.0, 14042.0],
    [14038.0, 14108.0, 14025.0, 14077.0, 14132.0, 13999.0, 13971.0, 13975.0],
];

/// Figure 9: slowest and fastest mean speed of a thread (iterations per second), first and last end (seconds).
const SPEEDS: [f64; 2] = [1168.0, 1795.0];
const ENDS_S: [f64; 2] = [2180.0, 2288.0];

/// Writes all figures. A default policy that does not exist prints a line instead.
pub(super) fn write(policies: Option<&str>, out: &mut dyn Write) -> Result<(), Error> {
    let policies_given = policies.is_some();
    let policies = available(policies, out)?;
    let scenarios = FIGURES.map(|figure| scenario(figure.scenario).expect("it is listed"));
    let comparisons = compare(&scenarios, &policies);
    for (figure, comparison) in FIGURES.iter().zip(&comparisons) {
        write_ranks(figure, comparison, out)?;
    }
    write_threads(&comparisons[4], out)?;
    write_speeds(&comparisons[5], out)?;
    if policies_given { Ok(()) } else { caa_figures::write(out) }
}

/// `static`, then the requested or the default policies.
fn available(policies: Option<&str>, out: &mut dyn Write) -> Result<Vec<Policy<dyn PoolStrategy>>, Error> {
    let mut all = vec![Policy::parse(&POOLS, "static")?];
    if policies.is_some() {
        all.extend(Policy::list(&POOLS, policies)?);
        return Ok(all);
    }
    for spec in POLICIES {
        match Policy::parse(&POOLS, spec) {
            Ok(policy) => all.push(policy),
            Err(error) => writeln!(out, "{error}")?,
        }
    }
    Ok(all)
}

fn write_ranks(
    figure: &Figure,
    comparison: &Comparison<PoolMetrics>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    writeln!(out, "\n{}: seconds of each rank ({})", figure.title, comparison.scenario)?;
    let mut heads = vec![String::new()];
    heads.extend((0..comparison.workers.len()).map(|rank| format!("rank {rank}")));
    heads.extend(["spread", "gain %"].map(str::to_owned));
    let last = |ends: &[f64]| ends.iter().copied().fold(0.0, f64::max);
    let row = |name: String, ends: &[f64], before: Option<f64>| {
        let first = ends.iter().copied().fold(f64::INFINITY, f64::min);
        let gain = before.map(|before| format!("{:.1}", 100.0 * (1.0 - last(ends) / before)));
        let mut cells = vec![name];
        cells.extend(ends.iter().map(|end| format!("{end:.0}")));
        cells.extend([format!("{:.0}", last(ends) - first), gain.unwrap_or_default()]);
        cells
    };
    let mut table = Table::new(heads);
    table.row(row("paper, without balance".to_owned(), figure.without_s, None));
    table.row(row("paper, with balance".to_owned(), figure.with_s, Some(last(figure.without_s))));
    let without = &comparison.outcomes[0].metrics.rank_ends_s;
    for (place, outcome) in comparison.outcomes.iter().enumerate() {
        let before = (place > 0).then(|| last(without));
        table.row(row(outcome.policy.clone(), &outcome.metrics.rank_ends_s, before));
    }
    Ok(write!(out, "{table}")?)
}

fn write_threads(comparison: &Comparison<PoolMetrics>, out: &mut dyn Write) -> Result<(), Error> {
    writeln!(out, "\nfigure 7: seconds of each thread ({})", comparison.scenario)?;
    let row = |name: &str, rank: usize, ends: &[f64]| {
        let mut cells = vec![format!("{name}, rank {rank}")];
        cells.extend(ends.iter().map(|end| format!("{end:.0}")));
        cells
    };
    let threads = (0..THREADS_S[0].len()).map(|thread| format!("thread {thread}"));
    let mut table = Table::new(std::iter::once(String::new()).chain(threads));
    for (rank, ends) in THREADS_S.iter().enumerate() {
        table.row(row("paper, with balance", rank, ends));
    }
    for outcome in &comparison.outcomes[1..] {
        for (rank, ends) in outcome.metrics.worker_ends_s.iter().enumerate() {
            table.row(row(&outcome.policy, rank, ends));
        }
    }
    Ok(write!(out, "{table}")?)
}

fn write_speeds(comparison: &Comparison<PoolMetrics>, out: &mut dyn Write) -> Result<(), Error> {
    writeln!(
        out,
        "\nfigure 9: of all threads, mean speed (iterations/s) and end (s) ({})",
        comparison.scenario
    )?;
    let heads = ["", "slowest", "fastest", "first end", "last end"];
    let row = |name: &str, [slowest, fastest]: [f64; 2], [first, last]: [f64; 2]| {
        let mut cells = vec![name.to_owned()];
        cells.extend([slowest, fastest, first, last].map(|value| format!("{value:.0}")));
        cells
    };
    let mut table = Table::new(heads);
    table.row(row("paper, with balance", SPEEDS, ENDS_S));
    for outcome in &comparison.outcomes[1..] {
        let PoolMetrics { worker_speeds, worker_ends_s, .. } = &outcome.metrics;
        table.row(row(&outcome.policy, range(worker_speeds), range(worker_ends_s)));
    }
    Ok(write!(out, "{table}")?)
}

fn range(by_rank: &[Vec<f64>]) -> [f64; 2] {
    let all = || by_rank.iter().flatten().copied();
    [all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max)]
}
