//! Implements `caribou simulate array`: runs arrays of chunks under array strategies.

use std::io::Write;

use lb_strategies::{EdgeUse, Period, Strategy};
use virtual_cluster::ArrayScenario;

use super::chunk_cost::{self, ChunkCost};
use super::compare::Policy;
use super::description::array::{CHUNKS_MOST, at, overlay, scenario};
use super::description::program::Generator;
use super::description::{Program, Source};
use super::options::{ByName, Common};
use super::overheads::OverheadOptions;
use super::{files, periods, values};
use crate::{Error, input};

/// An array with a name, or one described.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
#[command(mut_arg("json", |json| json.help(files::JSON_HELP)))]
#[command(mut_arg("csv", |csv| csv.help(files::CSV_HELP)))]
#[command(mut_arg("plot", |plot| plot.help(files::PLOT_HELP)))]
#[command(mut_arg("list", |list| list.help("List scenarios and strategies")))]
#[command(mut_arg("compare", |compare| compare.help(COMPARE_HELP)))]
pub(super) struct Options {
    #[command(flatten)]
    by_name: ByName,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    described: ArrayOptions,
    #[command(flatten)]
    overheads: OverheadOptions,
}

/// An array.
#[derive(clap::Args)]
#[group(id = "described", multiple = true)]
#[command(next_help_heading = "Array")]
struct ArrayOptions {
    /// Chunks; if not given 16 for each worker.
    #[arg(long, value_parser = presentation::count_parser(1..=CHUNKS_MOST))]
    chunks: Option<u32>,
    /// Iterations of each chunk; if not given 500.
    #[arg(long, value_name = "COUNT", value_parser = values::count)]
    iterations: Option<u64>,
    /// When chunks are balanced: at syncs, with this number of iterations between two (0 for no sync); or in windows,
    /// when it is likely to pay (auto), or of a length such as 50ms. Several are compared. The default of a run is auto.
    #[arg(
        long,
        value_name = "ITERATIONS|auto|TIME[,..]",
        default_value = "20",
        value_delimiter = ',',
        value_parser = str::parse::<Period>
    )]
    period: Vec<Period>,
    #[arg(
        long,
        value_name = "SHAPE|recorded:STEM[:SCALE]",
        default_value = "constant",
        value_parser = values::checked(chunk_cost::parse),
        help = chunk_cost::help()
    )]
    cost: String,
    /// Chunks that must finish an iteration before a chunk begins its next: its neighbours in a grid that wraps around at its
    /// edges, or none.
    #[arg(long, default_value = "grid", value_parser = ["grid", "none"])]
    exchange: String,
    /// Bytes of a chunk that travel when it moves; if not given the mean recorded size, and 524288 without recorded sizes.
    #[arg(long, value_name = "BYTES", value_parser = presentation::count_parser(0..=1_000_000_000_000u64))]
    state_bytes: Option<u64>,
    /// Bytes a second at which a rank sends chunks that move; the balancer expects 4e9 until it has seen moves.
    #[arg(long, value_name = "BYTES/S", default_value = "4e9", value_parser = values::speed)]
    bandwidth: f64,
}

const COMPARE_HELP: &str = "\
Strategies for arrays with their parameters, as in none,refine,tolerance=0.1; if not given all but `program`, `rotate` and \
`random`, which balance nothing here. Strategies get no messages between chunks, so `comm` differs from others by chance \
only. Rank 0 decides, also under `hierarchical`";

const AFTER_HELP: &str = "\
Excess is how much longer a run takes than with the best placement, if chunks could be divided and never waited for each
other. Saved is the part of the time of `none` that a strategy saves; at most, the part that the ideal saves.
Exit code: 0 done, 1 a run is incomplete or an output is lost, as on a full disk, 2 bad options or a file that
cannot be written at all.

Eight ranks of one worker, a neighbour beside the last for ten seconds
  caribou simulate array --ranks 8 --workers 1 --neighbour 7:2-12 --compare none,refine
A hot spot that moves, a sync every five iterations
  caribou simulate array --ranks 64 --workers 1 --cost hot-spot:5 --period 5
The loads of a run that vt recorded, under three strategies and seven periods
  caribou simulate array --cost recorded:lbaf/data --compare none,refine,greedy --period 1,2,5,10,20,50,auto
A run of Caribou recorded with CARIBOU_TRACE=traces and CARIBOU_LB_REPORTS=on, on 8 ranks
  caribou simulate array --cost recorded:traces/run-1 --ranks 8 --period 1,5,auto --compare none,refine
How long each iteration takes in figure 3 of the refinement paper
  caribou simulate array --scenario R3 --compare none,refine-paper,refine --plot r3.svg";

/// Runs the requested simulations and writes their results.
pub(super) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    let Options { by_name, common, described, .. } = options;
    if common.listed::<ArrayScenario>(|_| Ok(()), out)? {
        return Ok(());
    }
    common.files.check()?;
    let strategies = common.policies::<ArrayScenario>()?;
    tell_without_messages(&strategies);
    let scenarios = options.scenarios()?;
    let periods = &described.period;
    let by_period = by_name.scenario.is_empty() && periods.len() > 1;
    let more = |comparisons: &[_], out: &mut dyn Write| match by_period {
        true => periods::write(periods, comparisons, out),
        false => Ok(()),
    };
    common.run(&scenarios, &strategies, more, out)
}

impl Options {
    /// True if results also go to files.
    pub(super) fn has_files(&self) -> bool {
        self.common.files.any()
    }

    /// The named scenarios, or the described one once per period, with the requested network and overheads.
    fn scenarios(&self) -> Result<Vec<ArrayScenario>, Error> {
        let source = self.common.cluster.source("--iterations");
        let cost = chunk_cost::parse(&self.described.cost).map_err(Error::Usage)?;
        let recorded = matches!(cost, ChunkCost::Recorded { .. });
        let mut description = self.common.describe(recorded)?;
        self.overheads.describe(&mut description);
        description.costs.move_bandwidth = Some(self.described.bandwidth);
        if let Some(mut named) = self.by_name.scenarios::<ArrayScenario>()? {
            description.costs.move_bandwidth = None;
            named.iter_mut().try_for_each(|scenario| overlay(&description, &source, scenario))?;
            return Ok(named);
        }
        description.program = self.described.program(cost);
        description.balance.period = self.described.period.first().copied();
        let scenario = scenario(&description, &source)?;
        self.described.period.iter().map(|&period| at(&scenario, period, &source as &dyn Source)).collect()
    }
}

impl ArrayOptions {
    /// The program of a description.
    fn program(&self, cost: ChunkCost) -> Program {
        let program = Program {
            generator: Some(Generator::Array),
            chunks: self.chunks,
            iterations: self.iterations,
            exchange: Some(self.exchange.clone()),
            state_bytes: self.state_bytes,
            ..Program::default()
        };
        match cost {
            ChunkCost::Shaped(_) => Program { cost: Some(self.cost.clone()), ..program },
            ChunkCost::Recorded { stem, scale } => Program {
                generator: Some(Generator::Recorded),
                loads: Some(stem),
                scale: Some(scale),
                ..program
            },
        }
    }
}

/// Prints a line about strategies that use messages between chunks, which they do not get here.
pub(super) fn tell_without_messages(strategies: &[Policy<dyn Strategy>]) {
    if let Some(line) = note_without_messages(strategies) {
        input::note(&line);
    }
}

/// A line about the strategies that use messages between chunks; none if no strategy does.
fn note_without_messages(strategies: &[Policy<dyn Strategy>]) -> Option<String> {
    let uses = |policy: &&Policy<dyn Strategy>| policy.strategy.terms().edges == EdgeUse::Always;
    let names: Vec<&str> = strategies.iter().filter(uses).map(|policy| policy.spec.as_str()).collect();
    let differ = "differ from those of other strategies by chance only";
    (!names.is_empty()).then(|| {
        let names = names.join("; ");
        format!("strategies get no messages between chunks here, so results of {names} {differ}")
    })
}

#[cfg(test)]
mod tests {
    use lb_strategies::ARRAYS;

    use super::*;

    #[test]
    fn who_uses_messages_is_told_to_get_none() {
        let note = |list| note_without_messages(&Policy::list(&ARRAYS, Some(list)).unwrap());
        assert_eq!(note("none,refine,refine-paper,greedy"), None);
        let line = note("none,comm,moves=5,refine,comm").expect("`comm` uses messages");
        assert!(
            line.contains(" no messages between chunks here, so results of comm,moves=5; comm differ "),
            "{line}"
        );
    }
}
