//! One run of graphs, under disturbances, and what is said of it.

use caribou::lb::Shape;
use caribou::{Config, Launch};
use serde::Serialize;

use super::graph::Graph;
use super::options::Options;
use super::point;
use super::report::{Configuration, Outcome, Totals};
use crate::harness::disturbance::Disturbances;
use crate::harness::experiment::Experiment;
use crate::harness::machine::Machine;
use crate::harness::output::{Output, print};
use crate::harness::table::traces;
use crate::harness::{Error, Total, launch, strategies};

/// Graphs, and where and beside what they are executed.
#[derive(Clone, Debug)]
pub struct Bench {
    graphs: Vec<Graph>,
    experiment: Experiment,
    totals: Totals,
}

/// A run, in the numbers.
#[derive(Debug, Serialize)]
struct Run {
    lb: String,
    #[serde(flatten)]
    outcome: Outcome,
}

/// All that is written of the runs that an option asked for.
#[derive(Debug, Serialize)]
struct Numbers<'a> {
    graphs: &'a [Graph],
    ranks: u32,
    sync: u64,
    disturbances: &'a Disturbances,
    machine: &'a Machine,
    runs: Vec<Run>,
}

impl Bench {
    /// The graphs on so many ranks, under disturbances.
    ///
    /// # Errors
    /// [`Error::Usage`] when there is no such rank, or, of a neighbour, when ranks are processes: nothing tells when those
    /// have taken their seats.
    pub fn new(
        graphs: Vec<Graph>,
        ranks: u32,
        config: &Config,
        disturbances: Disturbances,
    ) -> Result<Self, Error> {
        let experiment = Experiment {
            steps: 1,
            step: "run",
            total: Total { count: 1, unit: "runs" },
            ranks,
            workers: Some(config.worker_count()).filter(|_| config.launch() == Launch::Alone),
            disturbances,
            machine: Machine::this(),
            launch: config.launch(),
        };
        experiment.check()?;
        if experiment.launch != Launch::Alone && !experiment.disturbances.neighbours.is_empty() {
            return Err(Error::Usage("--neighbour: expected all ranks in one process".to_owned()));
        }
        Ok(Self { totals: Totals::of(&graphs), graphs, experiment })
    }

    /// Executes the graphs, and checks that it was done.
    ///
    /// # Errors
    /// Those of the runtime, of disturbances; [`Error::Differs`] when a task or an input was left out.
    pub fn run(&self, config: &Config) -> Result<Outcome, Error> {
        let lb = config.lb_spec(Shape::Arrays);
        let run = || Ok(point::run(config.clone(), &self.graphs)?);
        let (told, report) = match self.experiment.disturbances.is_empty() {
            true => run()?,
            false => self.experiment.run(lb, |_| run())?.outcome,
        };
        match self.totals.difference(&told) {
            Some(difference) => Err(Error::Differs { lb: lb.to_owned(), difference }),
            None => Ok(Outcome::new(self.totals, &told, &report)),
        }
    }
}

/// Does what a command line asks for. Of several processes all call this, and one speaks.
///
/// # Errors
/// Those of the options, of the runs and of files.
pub fn main(options: &Options) -> Result<(), Error> {
    let config = options.configure(launch::config()?);
    let (launch, ranks) = (config.launch(), options.rank_count(&config)?);
    let bench = Bench::new(options.graphs(launch)?, ranks, &config, options.disturbances())?;
    let (lb, compare) = (options.lb.as_deref(), options.compare.as_deref());
    let configs = strategies::configs(Shape::Arrays, &config, lb, compare)?;
    let json = options.json.as_deref().filter(|_| launch.speaks()).map(Output::open).transpose()?;
    let say = |text: &str| if launch.speaks() { print(text) } else { Ok(()) };
    say(&Configuration(&bench.graphs).to_string())?;
    let mut runs = Vec::new();
    for config in configs {
        let outcome = bench.run(&config)?;
        let lb = config.lb_spec(Shape::Arrays).to_owned();
        let Outcome { syncs, moved, seats, trace, .. } = &outcome;
        say(&format!("`{lb}`: {syncs} syncs, {moved} points moved; {seats}\n{outcome}"))?;
        say(&traces([(&lb[..], &trace[..])].into_iter()))?;
        runs.push(Run { lb, outcome });
    }
    let Bench { graphs, experiment: Experiment { disturbances, machine, .. }, .. } = &bench;
    let numbers = Numbers { graphs, ranks, sync: config.sync_period(), disturbances, machine, runs };
    let text = || serde_json::to_string_pretty(&numbers).expect("numbers have only names as keys") + "\n";
    json.map_or(Ok(()), |json| json.write(&text()))
}
