//! `caribou simulate pool`: one pool or many, under some policies or all.

use std::io::Write;
use std::path::PathBuf;

use lb_strategies::cluster::{SCENARIOS, SWEEPS, Scenario, Sweep, scenario};
use lb_strategies::{Choice, Listing, POOLS};

use super::compare::{Comparison, Policy, compare};
use super::{cluster, figures, files, plot, sweep, table, values};
use crate::{Error, output};

/// A pool with a name, a cluster described, a sweep, or the figures of the paper.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Options {
    /// Scenarios with names, or `all`; --list says which there are. Without one, the cluster described below.
    #[arg(long, value_name = "NAME[,NAME..]|all", value_delimiter = ',', conflicts_with = "described")]
    scenario: Vec<String>,
    /// Mean, median and worst excess over many scenarios of one kind, S1 to S8 or `all`.
    #[arg(
        long,
        value_name = "NAME[,NAME..]|all",
        value_delimiter = ',',
        conflicts_with = "described",
        conflicts_with = "scenario"
    )]
    sweep: Vec<String>,
    /// Figures 6 to 9 of the RUPER-LB paper, and 3 to 5 of the CAA paper, beside what comes out here.
    #[arg(long, conflicts_with_all = ["described", "scenario", "sweep", "json", "csv", "plot"])]
    figures: bool,
    /// List scenarios, sweeps and policies.
    #[arg(long, exclusive = true)]
    list: bool,
    /// Policies for pools with their parameters, as in static,leases,chunk=0.05; all of them if not given.
    #[arg(long, value_name = "SPEC[,SPEC..]")]
    compare: Option<String>,
    /// From one rank to another and back, as in 0.1ms, 200us or 2s; if not given what the scenario says, else 10ms.
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    rtt: Option<u64>,
    /// How much longer a message may take, one way, by chance.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = values::time)]
    jitter: u64,
    /// Seed of costs, jitter and the choice of hosts of the cluster described; of a scenario, of its jitter only.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Write all figures, down to the end of each worker, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a line a scenario and policy, as CSV.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Draw when each worker ends, a panel a scenario.
    #[arg(long, value_name = "FILE.svg", conflicts_with = "sweep")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    cluster: cluster::Options,
}

const AFTER_HELP: &str = "\
Excess is how much longer a run takes than the best schedule would; it is n/a where iterations are missing or ranks hang.
Exit code: 0 done, 1 a run is incomplete or the output cannot be written, 2 bad options.

Four ranks of which the last is disturbed for twenty minutes
  caribou simulate pool --iterations 1e8 --neighbour 3:600-1800 --compare static,ruper,leases
The paper's figure 7 under two policies, one of them with its parameters
  caribou simulate pool --scenario F7 --compare static,leases,chunk=0.05 --plot f7.svg";

/// Runs what was asked for, and writes what came of it.
pub(super) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    if options.list {
        return list(out);
    }
    let policies = options.compare.as_deref();
    if options.figures {
        return figures::write(policies, out);
    }
    let comparisons = if options.sweep.is_empty() { options.tables(out)? } else { options.sweeps(out)? };
    options.write_files(&comparisons)?;
    all_complete(&comparisons)
}

/// An error if a run left iterations undone or ranks waiting.
fn all_complete(comparisons: &[Comparison]) -> Result<(), Error> {
    let runs: usize = comparisons.iter().map(|comparison| comparison.outcomes.len()).sum();
    let incomplete = comparisons.iter().flat_map(|comparison| {
        comparison.outcomes.iter().filter_map(|outcome| {
            Some(format!("{} in {}: {}", outcome.policy, comparison.scenario, outcome.complaint()?))
        })
    });
    let incomplete: Vec<String> = incomplete.collect();
    match incomplete.first() {
        None => Ok(()),
        Some(first) => Err(Error::Incomplete { incomplete: incomplete.len(), runs, first: first.clone() }),
    }
}

impl Options {
    /// Those named, or the one described, on the network asked for.
    fn scenarios(&self) -> Result<Vec<Scenario>, Error> {
        let mut scenarios = match &self.scenario[..] {
            [] => vec![self.cluster.scenario(self.seed)?],
            [all] if all == "all" => SCENARIOS.iter().map(|entry| entry.build()).collect(),
            names => names.iter().map(|name| named(name)).collect::<Result<_, _>>()?,
        };
        scenarios.iter_mut().for_each(|scenario| self.connect(scenario));
        Ok(scenarios)
    }

    /// One table a scenario, each as soon as it is known.
    fn tables(&self, out: &mut dyn Write) -> Result<Vec<Comparison>, Error> {
        let policies = Policy::list(self.compare.as_deref())?;
        let mut comparisons = Vec::new();
        for (place, scenario) in self.scenarios()?.iter().enumerate() {
            if place > 0 {
                writeln!(out)?;
            }
            let comparison = compare(std::slice::from_ref(scenario), &policies);
            table::write(&comparison[0], &about(scenario), out)?;
            out.flush()?;
            comparisons.extend(comparison);
        }
        Ok(comparisons)
    }

    fn connect(&self, scenario: &mut Scenario) {
        let network = &mut scenario.network;
        network.rtt = self.rtt.unwrap_or(network.rtt);
        (network.jitter, network.seed) = (self.jitter, self.seed);
    }

    fn sweeps(&self, out: &mut dyn Write) -> Result<Vec<Comparison>, Error> {
        let sweeps: Vec<&Sweep> = match &self.sweep[..] {
            [all] if all == "all" => SWEEPS.iter().collect(),
            names => names.iter().map(|name| named_sweep(name)).collect::<Result<_, _>>()?,
        };
        let mut comparisons = Vec::new();
        for (place, one) in sweeps.into_iter().enumerate() {
            if place > 0 {
                writeln!(out)?;
            }
            comparisons.extend(sweep::run(
                one,
                self.compare.as_deref(),
                |scenario| self.connect(scenario),
                out,
            )?);
        }
        Ok(comparisons)
    }

    fn write_files(&self, comparisons: &[Comparison]) -> Result<(), Error> {
        if let Some(file) = &self.json {
            output::write(file, files::json(comparisons)?)?;
        }
        if let Some(file) = &self.csv {
            output::write(file, files::csv(comparisons)?)?;
        }
        if let Some(file) = &self.plot {
            output::write(file, plot::svg(comparisons))?;
        }
        Ok(())
    }
}

/// A scenario before it has its size.
fn about(scenario: &Scenario) -> String {
    let entry = SCENARIOS.iter().find(|entry| entry.name == scenario.name);
    entry.map_or_else(String::new, |entry| format!("{}; ", entry.about))
}

fn named(name: &str) -> Result<Scenario, Error> {
    scenario(name.trim())
        .map_err(|choice| Error::Usage(format!("--scenario: unknown scenario {choice}, or all")))
}

fn named_sweep(name: &str) -> Result<&'static Sweep, Error> {
    let sweep = SWEEPS.iter().find(|sweep| sweep.name == name.trim());
    sweep.ok_or_else(|| {
        let choice = Choice::new(name.trim(), SWEEPS.iter().map(|sweep| sweep.name));
        Error::Usage(format!("--sweep: unknown sweep {choice}, or all"))
    })
}

fn list(out: &mut dyn Write) -> Result<(), Error> {
    writeln!(out, "scenarios")?;
    for entry in SCENARIOS {
        writeln!(out, "  {:<12}{}", entry.name, entry.about)?;
    }
    writeln!(out, "\nsweeps")?;
    for sweep in SWEEPS {
        writeln!(out, "  {:<12}{}", sweep.name, sweep.about)?;
    }
    writeln!(out, "\npolicies")?;
    Ok(out.write_all(POOLS.help().as_bytes())?)
}
