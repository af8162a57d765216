//! Repeats figures 3 to 5 of the paper on the combined adaptive algorithm, CAA (Filipovic, Krstajic and Popovic, 2021),
//! on a model of its cluster. Two columns are added: the policy `leases` and the ideal.
//!
//! The constants of the model are fitted to the least and greatest values in the paper (see
//! `virtual_cluster::crossbar_cluster`). So the results are no evidence for the algorithm. The times of `leases` and of
//! the ideal were not fitted.

use std::io::Write;

use lb_strategies::POOLS;
use lb_strategies::pool::SECOND;
use presentation::Table;
use virtual_cluster::crossbar_cluster::{CORES, CrossbarModel, TASKS};

use crate::Error;

/// Simulated runs per policy and number of cores.
const RUNS: u64 = 40;

/// Writes the table.
pub(super) fn write(out: &mut dyn Write) -> Result<(), Error> {
    let model = CrossbarModel::PAPER;
    writeln!(out, "\nCAA paper, figures 3 to 5: {TASKS} tasks, means of {RUNS} runs")?;
    writeln!(out, "The paper: CAA below DD by 1.7 to 8.2 %, below MS by 15.5 to 21.9 %, most on 128 cores;")?;
    writeln!(out, "DD chosen mostly on 16 cores, MS on 32 and more.")?;
    let heads =
        "cores | DD s | MS s | CAA s | below DD % | below MS % | chose DD | chose MS | leases s | ideal s";
    let mut table = Table::new(heads.split(" | "));
    let leases = POOLS.parse("leases").expect("it is in the table");
    for cores in CORES {
        let column = model.compare(cores, RUNS);
        let makespans =
            (0..RUNS).map(|seed| model.run(&*leases, cores, seed).makespan() as f64 / SECOND as f64);
        let ideals = (0..RUNS).map(|seed| model.ideal_s(cores, seed));
        table.row([
            cores.to_string(),
            format!("{:.1}", column.shares),
            format!("{:.1}", column.master),
            format!("{:.1}", column.adaptive),
            format!("{:.1}", 100.0 * column.below_shares()),
            format!("{:.1}", 100.0 * column.below_master()),
            column.chose_shares.to_string(),
            column.chose_master.to_string(),
            format!("{:.1}", makespans.sum::<f64>() / RUNS as f64),
            format!("{:.1}", ideals.sum::<f64>() / RUNS as f64),
        ]);
    }
    Ok(write!(out, "{table}")?)
}
