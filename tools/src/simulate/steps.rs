//! Implements `caribou simulate steps`: runs a program in supersteps under superstep policies.

use std::io::Write;
use std::sync::Arc;

use clap::ValueEnum;
use lb_strategies::supersteps::Weights;
use lb_strategies::{Listing, SUPERSTEPS};
use virtual_cluster::{Exchange, Network, StepProgram, StepScenario, Times, Wire};

use super::cluster::{self, NetworkOptions};
use super::compare::{DESCRIBED, Policy, all_complete, write_tables};
use super::files::Files;
use crate::Error;

/// Default number of units per worker.
const UNITS_PER_WORKER: u64 = 1000;

/// Default round-trip time between two ranks.
const RTT: &str = "100us";

/// Largest number of messages where each worker sends to all. One policy simulates as many in minutes.
const SIMULATED_MOST: f64 = 1e9;

/// A program described, or the figures of two papers.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
#[command(mut_arg("rtt", |rtt| rtt.help("Round-trip time between two ranks, as in 1ms or 1s").default_value(RTT)))]
#[command(mut_arg("jitter", |jitter| jitter.hide(true)))]
#[command(mut_arg("seed", |seed| seed.help("Seed of the choice of hosts")))]
#[command(mut_arg("speed", |speed| speed.help("Units per second of each worker; 1000 if not given")))]
#[command(mut_arg("speeds", |speeds| speeds.help(SPEEDS_HELP)))]
#[command(mut_arg("json", |json| json.help("Write all figures, down to each worker and step, as JSON")))]
#[command(mut_arg("plot", |plot| plot.help("Draw how long each step takes under each policy")))]
pub(super) struct Options {
    /// List the policies.
    #[arg(long, exclusive = true)]
    list: bool,
    /// Policies for supersteps with their parameters, as in equal,des,every=10; all of them if not given.
    #[arg(long, value_name = "SPEC[,SPEC..]")]
    compare: Option<String>,
    #[command(flatten)]
    wires: NetworkOptions,
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    cluster: cluster::Options,
    #[command(flatten)]
    described: StepOptions,
}

/// A program.
#[derive(clap::Args)]
#[group(id = "program", multiple = true)]
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

impl From<ExchangeName> for Exchange {
    fn from(way: ExchangeName) -> Self {
        match way {
            ExchangeName::Direct => Self::Direct,
            ExchangeName::Ring => Self::Ring,
            ExchangeName::Gather => Self::Gather,
            ExchangeName::Blocking => Self::Blocking,
            ExchangeName::Doubling => Self::Doubling,
        }
    }
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
    if options.list {
        writeln!(out, "policies")?;
        return Ok(out.write_all(SUPERSTEPS.help().as_bytes())?);
    }
    options.files.check()?;
    let policies = Policy::list(&SUPERSTEPS, options.compare.as_deref())?;
    let scenario = options.scenario()?;
    let comparisons = write_tables(&[scenario], &policies, |_| String::new(), out)?;
    options.files.write(&comparisons)?;
    all_complete(&comparisons)
}

impl Options {
    fn scenario(&self) -> Result<StepScenario, Error> {
        let StepOptions { units, steps, exchange, part_bytes, unit_bytes, bandwidth } = self.described;
        let mut network = Network::default();
        self.wires.apply(&mut network);
        if network.jitter > 0 {
            return Err(Error::Usage("--jitter: programs in supersteps have none, expected 0s".to_owned()));
        }
        self.cluster.check_pairs()?;
        let of_ranks = self.cluster.workers();
        let workers = of_ranks.iter().sum::<u32>() as usize;
        let units = units.unwrap_or(UNITS_PER_WORKER * workers as u64);
        let simulated = steps as f64 * (workers * workers) as f64;
        if simulated > SIMULATED_MOST {
            return Err(Error::Usage(format!(
                "--steps {steps}: {simulated:.0e} messages of {workers} workers to simulate, expected {SIMULATED_MOST:e} at most"
            )));
        }
        let wire = Wire { delay_s: network.rtt as f64 / 2e9, bytes_per_s: bandwidth as f64 };
        let program = StepProgram {
            steps,
            exchange: exchange.into(),
            part_bytes: part_bytes as f64,
            unit_bytes: unit_bytes as f64,
            link: wire,
            notify_s: wire.delay_s,
            ..StepProgram::new(Weights::Equal(units), workers)
        };
        self.cluster.all_compute()?;
        let vcpus = self.cluster.vcpus(self.wires.seed)?;
        let times = Times::Vcpus(Arc::new(vcpus), of_ranks);
        let scenario = StepScenario { name: DESCRIBED.to_owned(), program, times };
        self.cluster.check_ideal(scenario.ideal_s(), "--steps", steps)?;
        Ok(scenario)
    }
}
