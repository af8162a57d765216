//! `caribou balance`: one snapshot, or the syncs of a recorded run, several strategies, one table.

mod replay;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use lb_strategies::ARRAYS;
use lb_strategies::synthetic::Workload;
use lb_strategies::{Snapshot, Strategy};

use crate::report::{Report, Row};
use crate::{Error, snapshot_file};

/// What to balance, and with what.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Chunks of the synthetic snapshot.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    chunks: u32,
    /// Ranks of the synthetic snapshot.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    ranks: u32,
    /// Shape of the synthetic snapshot: uniform, lognormal, ramp, tenth-slow, noisy-rank, giant, equal or hot-spots.
    #[arg(long, default_value = "uniform", value_parser = Workload::ALL.map(Workload::name))]
    workload: String,
    /// Seed of the synthetic snapshot.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A recorded snapshot in JSON, instead of a synthetic one.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["chunks", "ranks", "workload", "seed"])]
    snapshot: Option<PathBuf>,
    /// A run recorded with CARIBOU_TRACE and CARIBOU_LB_REPORTS=on: decides each of its syncs again.
    #[arg(
        long,
        value_name = "TRACE",
        conflicts_with_all = ["chunks", "ranks", "workload", "seed", "snapshot"]
    )]
    trace: Option<PathBuf>,
    /// Strategies to run, as in CARIBOU_LB, separated by semicolons; all of them if not given, of a trace its own.
    #[arg(long, value_name = "SPEC[;SPEC..]", value_delimiter = ';')]
    lb: Vec<String>,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// Runs every strategy asked for and writes what came of it.
pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    if let Some(trace) = &options.trace {
        return replay::run(trace, &options.lb, options.json, out);
    }
    let strategies = strategies(&options.lb)?;
    let snapshot = snapshot(options)?;
    let rows = strategies.iter().map(|(spec, strategy)| row(spec, &**strategy, &snapshot));
    let report = Report::new(&snapshot, rows.collect());
    if options.json {
        report.write_json(out)?;
    } else {
        report.write_table(out)?;
    }
    Ok(())
}

/// A strategy with the specification that a person wrote for it.
type Named = (String, Arc<dyn Strategy>);

/// The strategies named by `specs`, or all of them.
fn strategies(specs: &[String]) -> Result<Vec<Named>, Error> {
    let all: Vec<String> = ARRAYS.iter().map(|entry| entry.name.to_owned()).collect();
    let specs = if specs.is_empty() { &all } else { specs };
    let build = |spec: &String| match ARRAYS.parse(spec) {
        Ok(strategy) => Ok((spec.clone(), strategy.into())),
        Err(source) => Err(Error::Strategy { spec: spec.clone(), source }),
    };
    specs.iter().map(build).collect()
}

fn snapshot(options: &Options) -> Result<Snapshot, Error> {
    if let Some(file) = &options.snapshot {
        return Ok(snapshot_file::read(file)?);
    }
    let workload = Workload::named(&options.workload).expect("clap lets only listed names pass");
    Ok(workload.snapshot(options.chunks as usize, options.ranks as usize, options.seed))
}

/// Runs one strategy and measures it.
#[expect(
    clippy::disallowed_methods,
    reason = "this command times strategies on the real clock; it simulates nothing"
)]
fn row(spec: &str, strategy: &dyn Strategy, snapshot: &Snapshot) -> Row {
    let start = Instant::now();
    let assignment = strategy.assign(snapshot);
    let decide = start.elapsed();
    Row::new(spec, strategy, snapshot, &assignment, decide)
}
