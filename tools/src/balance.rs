//! Implements `caribou balance`: compares the decisions of strategies for one snapshot or for the syncs of a run.

mod replay;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use lb_strategies::ARRAYS;
use lb_strategies::spec::split_list;
use lb_strategies::synthetic::Workload;
use lb_strategies::{Snapshot, Strategy};
use presentation::count_parser;

use crate::report::{Report, Row};
use crate::{Error, snapshot_file, warn_of_old_names};

/// The snapshot or record to balance, and the strategies.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Chunks of the synthetic snapshot.
    #[arg(long, default_value_t = 10_000, value_parser = count_parser(1..=u32::MAX))]
    chunks: u32,
    /// Ranks of the synthetic snapshot.
    #[arg(long, default_value_t = 100, value_parser = count_parser(1..=u32::MAX))]
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
    /// A run recorded with CARIBOU_TRACE and CARIBOU_LB_REPORTS=on: decides each of its syncs again, from the placement
    /// that the run had at it: moves decided here are not carried over to the next sync. The expected gain, which is
    /// compared with the cost of the moves, is for a phase of average length so far; `caribou trace lb` has the
    /// predicted saving of the phase that followed.
    #[arg(
        long,
        value_name = "TRACE",
        conflicts_with_all = ["chunks", "ranks", "workload", "seed", "snapshot"]
    )]
    trace: Option<PathBuf>,
    /// Strategies to run, as in none,refine,tolerance=0.1; all of them if not given, of a trace its own.
    #[arg(long, value_name = "SPEC[,SPEC..]")]
    lb: Vec<String>,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// Approximate memory of a snapshot and its assignments, in bytes per chunk and per rank.
const CHUNK_BYTES: u64 = 100;
const RANK_BYTES: u64 = 200;

impl Options {
    /// Refuses a synthetic snapshot that needs more memory than `available`, in bytes.
    fn check_room(&self, available: Option<u64>) -> Result<(), Error> {
        let Options { chunks, ranks, .. } = self;
        let needed = u64::from(*chunks) * CHUNK_BYTES + u64::from(*ranks) * RANK_BYTES;
        match available {
            Some(available) if needed > available => Err(Error::Usage(format!(
                "--chunks {chunks} --ranks {ranks}: the snapshot needs {:.1} GB of memory, and {:.1} GB are available",
                needed as f64 / 1e9,
                available as f64 / 1e9
            ))),
            _ => Ok(()),
        }
    }
}

/// Runs the strategies and writes their results.
pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    let specs = specs(&options.lb)?;
    if let Some(trace) = &options.trace {
        return replay::run(trace, &specs, options.json, out);
    }
    let strategies = strategies(&specs)?;
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

/// Splits the lists given to `--lb` into specifications.
fn specs(lists: &[String]) -> Result<Vec<String>, Error> {
    let specs = |list: &String| split_list(list).map_err(|error| Error::Usage(format!("--lb {error}")));
    Ok(lists.iter().map(specs).collect::<Result<Vec<_>, _>>()?.concat())
}

/// A strategy and its specification as the user wrote it.
type Named = (String, Arc<dyn Strategy>);

/// Builds the strategies in `specs`; all strategies if `specs` is empty.
fn strategies(specs: &[String]) -> Result<Vec<Named>, Error> {
    let all: Vec<String> = ARRAYS.iter().map(|entry| entry.name.to_owned()).collect();
    let specs = if specs.is_empty() { &all } else { specs };
    let build = |spec: &String| match ARRAYS.parse(spec) {
        Ok(strategy) => {
            warn_of_old_names(&ARRAYS, spec);
            Ok((spec.clone(), strategy.into()))
        }
        Err(source) => Err(Error::Strategy { spec: spec.clone(), source }),
    };
    specs.iter().map(build).collect()
}

fn snapshot(options: &Options) -> Result<Snapshot, Error> {
    if let Some(file) = &options.snapshot {
        return snapshot_file::read(file).map_err(Error::File);
    }
    options.check_room(caribou::machine::available_memory())?;
    let workload = Workload::named(&options.workload).expect("clap lets only listed names pass");
    Ok(workload.snapshot(options.chunks as usize, options.ranks as usize, options.seed))
}

/// Runs one strategy and measures its time.
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
