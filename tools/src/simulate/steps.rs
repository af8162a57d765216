//! Implements `caribou simulate steps`: runs a program in supersteps under superstep policies.

use std::io::Write;

use clap::ValueEnum;
use virtual_cluster::StepScenario;

use super::description::Program;
use super::description::program::Generator;
use super::description::steps::scenario;
use super::files;
use super::options::Common;
use crate::Error;

/// Default round-trip time between two ranks.
const RTT: &str = "100us";

/// A program described.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
#[command(mut_arg("csv", |csv| csv.help(files::CSV_HELP)))]
#[command(mut_arg("list", |list| list.help("List the policies")))]
#[command(mut_arg("compare", |compare| compare.help(COMPARE_HELP)))]
#[command(mut_arg("rtt", |rtt| rtt.help("Round-trip time between two ranks, as in 1ms or 1s").default_value(RTT)))]
#[command(mut_arg("jitter", |jitter| jitter.hide(true)))]
#[command(mut_arg("seed", |seed| seed.help("Seed of the choice of hosts")))]
#[command(mut_arg("speed", |speed| speed.help("Units per second of each worker; 1000 if not given")))]
#[command(mut_arg("speeds", |speeds| speeds.help(SPEEDS_HELP)))]
#[command(mut_arg("json", |json| json.help("Write all figures, down to each worker and step, as JSON")))]
#[command(mut_arg("plot", |plot| plot.help("Draw how long each step takes under each policy")))]
pub(super) struct Options {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    described: StepOptions,
}

const COMPARE_HELP: &str = "\
Policies for supersteps with their parameters, as in equal,des,every=10; all of them if not given";

/// A program.
#[derive(clap::Args)]
#[group(id = "described", multiple = true)]
#[command(next_help_heading = "Program")]
struct StepOptions {
    /// Units; if not given 1000 for each worker. A worker computes --speed of them a second.
    #[arg(long, value_parser = presentation::count_parser(1..=1_000_000_000_000u64))]
    units: Option<u64>,
    /// Steps of the run.
    #[arg(long, value_name = "COUNT", default_value = "500", value_parser = presentation::count_parser(1..=1_000_000_000_000u64))]
    steps: u64,
    /// How the parts reach all workers: direct, ring and gather as in production, or as programs with MPI do it.
    #[arg(long, value_enum, default_value_t)]
    exchange: ExchangeName,
    /// Bytes of a unit that all workers get in each step.
    #[arg(long, value_name = "BYTES", default_value = "8", value_parser = presentation::count_parser(0..=1_000_000_000_000u64))]
    part_bytes: u64,
    /// Bytes of a unit that travel when it moves.
    #[arg(long, value_name = "BYTES", default_value = "32768", value_parser = presentation::count_parser(0..=1_000_000_000_000u64))]
    unit_bytes: u64,
    /// Bytes a second of each worker's link, each way.
    #[arg(long, value_name = "BYTES", default_value = "1250000000", value_parser = presentation::count_parser(1..=1_000_000_000_000_000u64))]
    bandwidth: u64,
}

/// The names of [`Exchange`].
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum ExchangeName {
    /// From each worker to all others
    #[default]
    Direct,
    /// From neighbour to neighbour (MPI_Sendrecv)
    Ring,
    /// To the first worker, and from there together to each
    Gather,
    /// To and from each other worker in turn, nothing both ways at once (MPI_Send, MPI_Recv)
    Blocking,
    /// By doubling, in log P rounds (MPI_Allgatherv)
    Doubling,
}

const SPEEDS_HELP: &str = "\
Units per second of each rank's workers, or of each worker: a list as in 1000,2000, or a file of one";

const AFTER_HELP: &str = "\
Excess is how much longer a run takes than if all workers had always computed and messages took no time. Saved is the
part of the time of `equal` that a policy saves; at most, the part that the ideal saves.
Exit code: 0 done, 1 a run is incomplete or an output is lost, as on a full disk, 2 bad options or a file that
cannot be written at all.

Four workers of two speeds, and another process beside the last for ten seconds
  caribou simulate steps --ranks 4 --workers 1 --speeds 1000,1000,2000,2000 --neighbour 3:5-15
Whether copies would pay where three other processes use a vCPU, and moving units takes long
  caribou simulate steps --ranks 8 --workers 1 --steps 200 --neighbour 7:20-100 --neighbour 7:20-100 \
      --neighbour 7:20-100 --unit-bytes 1e6 --bandwidth 1e7 --compare equal,des,replicate,copies=2";

/// Runs the requested simulations and writes their results.
pub(super) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    let Options { common, described } = options;
    if common.listed::<StepScenario>(|_| Ok(()), out)? {
        return Ok(());
    }
    common.files.check()?;
    let policies = common.policies::<StepScenario>()?;
    let mut description = common.describe(false)?;
    description.network.bandwidth_between_hosts = Some(described.bandwidth as f64);
    description.program = described.program();
    let scenario = scenario(&description, &common.cluster.source("--steps"))?;
    common.run(&[scenario], &policies, |_, _| Ok(()), out)
}

impl Options {
    /// True if results also go to files.
    pub(super) fn has_files(&self) -> bool {
        self.common.files.any()
    }
}

impl StepOptions {
    /// The program of a description.
    fn program(&self) -> Program {
        let exchange = self.exchange.to_possible_value();
        Program {
            generator: Some(Generator::Supersteps),
            units: self.units,
            steps: Some(self.steps),
            exchange: exchange.map(|exchange| exchange.get_name().to_owned()),
            part_bytes: Some(self.part_bytes),
            unit_bytes: Some(self.unit_bytes),
            ..Program::default()
        }
    }
}
