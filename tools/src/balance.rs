//! Implements `caribou balance`: compares the decisions of strategies for snapshots or for the syncs of a run.

mod front;
mod model;
mod picture;
mod replay;
mod source;
mod summary;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use lb_strategies::ARRAYS;
use lb_strategies::spec::split_list;
use lb_strategies::{Snapshot, Strategy};
use presentation::count_parser;

use self::model::Model;
use self::source::Source;
use crate::report::{Report, Row};
use crate::{Error, input, output, warn_of_old_names};

/// The snapshots or the record to balance, and the strategies.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Options {
    #[command(flatten)]
    source: Source,
    /// A run recorded with CARIBOU_TRACE and CARIBOU_LB_REPORTS=on: decides each of its syncs again, from the placement
    /// that the run had at it: moves decided here are not carried over to the next sync. The expected gain, which is
    /// compared with the cost of the moves, is for a phase of average length so far; `caribou trace lb` has the
    /// predicted saving of the phase that followed. `caribou simulate array --cost recorded:TRACE` runs the chunks of
    /// the trace again, carries moves over, and takes other ranks (--ranks) and periods or windows (--period).
    #[arg(
        long,
        value_name = "TRACE",
        conflicts_with_all = ["chunks", "workload", "seed", "snapshot", "lbdata", "phase", "model"]
    )]
    trace: Option<PathBuf>,
    /// Strategies to run, as in none,refine,tolerance=0.1; all of them if not given, of a trace its own.
    #[arg(long, value_name = "SPEC[,SPEC..]")]
    lb: Vec<String>,
    /// Runs each strategy that has a parameter `moves` once with each of these values: the most chunks that it may move.
    #[arg(long, value_name = "CHUNKS[,..]", value_delimiter = ',', value_parser = count_parser(0..=u32::MAX))]
    moves: Vec<u32>,
    /// Lists only the rows on the front, by chunks moved: every other row has more moves or a higher imbalance.
    #[arg(long)]
    front: bool,
    /// Draws imbalance against chunks moved, and predicted time against bytes between ranks where chunks communicate.
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    model: Model,
}

const AFTER_HELP: &str = "\
All strategies on a recorded phase, where each byte between ranks costs 10 ns
  caribou balance --lbdata lbaf/data --phase 3 --byte-ns 10
What few moves can do, in all phases
  caribou balance --lbdata lbaf/data --phase all --lb none,comm,refine,greedy --moves 5,10,25,38 --svg front.svg
Ranks of 8 GB
  caribou balance --lbdata toy_mem --memory-limit 8e9
A recorded run on 8 ranks, with another period and in windows
  caribou simulate array --cost recorded:TRACE --ranks 8 --period 5,auto --compare none,refine";

/// Runs the strategies and writes their results.
pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    let specs = specs(&options.lb)?;
    if let Some(trace) = &options.trace {
        if let Some(ranks) = options.source.given_ranks() {
            let (trace, simulate) = (trace.display(), "caribou simulate array --cost recorded:");
            let why = format!(
                "--trace decides on the ranks of the run; `{simulate}{trace} --ranks {ranks}` runs it on others"
            );
            return Err(Error::Usage(why));
        }
        let ignored = [
            ("--moves", !options.moves.is_empty()),
            ("--front", options.front),
            ("--svg", options.svg.is_some()),
        ];
        if let Some((option, _)) = ignored.iter().find(|(_, given)| *given) {
            let why = format!(
                "{option} is not for --trace, where `--lb comm,moves=3` limits moves; `caribou trace export --to \
                 snapshot` or `lbdata` writes what --snapshot and --lbdata read, with {option}"
            );
            return Err(Error::Usage(why));
        }
        return replay::run(trace, &specs, options.json, out);
    }
    options.svg.as_deref().map_or(Ok(()), output::check)?;
    let strategies = strategies(&front::with_budgets(specs, &options.moves)?)?;
    let snapshots = options.source.snapshots(&options.model)?;
    if options.model.prices_messages() && snapshots.iter().all(|snapshot| snapshot.edges.is_empty()) {
        input::note("the chunks exchange no messages, so prices of messages have no effect");
    }
    let reports = snapshots.iter().map(|snapshot| {
        let rows = strategies.iter().map(|(spec, strategy)| row(spec, &**strategy, snapshot));
        let mut report = Report::new(snapshot, rows.collect(), options.model.memory_limit());
        front::mark(&mut report.rows);
        report
    });
    let mut reports: Vec<Report> = reports.collect();
    if let Some(file) = &options.svg {
        output::write(file, picture::svg(&reports)?)?;
    }
    let summary = summary::summaries(&reports);
    if options.front {
        reports.iter_mut().for_each(|report| front::keep(&mut report.rows));
    }
    match (&reports[..], options.json) {
        ([report], true) if !options.source.is_all() => report.write_json(out)?,
        (reports, true) => summary::write_json(reports, &summary, out)?,
        ([report], false) => report.write_table(out)?,
        (reports, false) => summary::write_tables(reports, &summary, out)?,
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
    let all = all();
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

/// The names of all strategies.
fn all() -> Vec<String> {
    ARRAYS.iter().map(|entry| entry.name.to_owned()).collect()
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
