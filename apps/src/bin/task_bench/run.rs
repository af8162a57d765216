//! Runs graphs under disturbances, once per strategy, and reports the runs.

use std::path::PathBuf;

use caribou::config::Period;
use caribou::lb::Shape;
use caribou::{Config, Launch};
use serde::Serialize;

use super::eighth;
use super::graph::Graph;
use super::metg::{self, Sweep};
use super::options::Options;
use super::point;
#[cfg(feature = "mpi")]
use super::raw;
use super::report::{Configuration, Outcome, PointResult, Totals, name};
use harness::disturbance::Disturbances;
use harness::experiment::Experiment;
use harness::machine::Machine;
use harness::output::{Output, print};
use harness::{Error, Total, launch, strategies};

/// Graphs, and the conditions of their execution.
#[derive(Clone, Debug)]
pub(crate) struct Bench {
    graphs: Vec<Graph>,
    experiment: Experiment,
    totals: Totals,
}

/// What executes the graphs.
#[derive(Clone, Debug)]
pub(crate) enum Backend {
    /// The runtime.
    Runtime(Box<Config>),
    /// The runtime without syncs, profile and measurements.
    Bare(Box<Config>),
    /// MPI alone.
    Raw,
}

impl Backend {
    /// The strategy, or the name of a backend without one.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Runtime(config) => config.lb_spec(Shape::Arrays),
            Self::Bare(_) => "bare",
            Self::Raw => "raw MPI",
        }
    }

    /// The runtime with messages only.
    pub(crate) fn bare(config: &Config) -> Result<Self, Error> {
        let config = config.clone().lb("none")?.period(0).measure(false).profile(false);
        Ok(Self::Bare(Box::new(config)))
    }
}

/// One run, in the file of numbers.
#[derive(Debug, Serialize)]
struct Run {
    lb: String,
    #[serde(flatten)]
    outcome: Outcome,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Results {
    Runs(Vec<Run>),
    Metg(Sweep),
}

/// The file of numbers.
#[derive(Debug, Serialize)]
struct Numbers<'a> {
    graphs: &'a [Graph],
    ranks: u32,
    sync: Period,
    disturbances: &'a Disturbances,
    machine: &'a Machine,
    #[serde(flatten)]
    results: Results,
}

impl Bench {
    /// The graphs on a number of ranks, under disturbances.
    ///
    /// # Errors
    /// [`Error::Usage`] if a disturbed rank does not exist. The same for a neighbour if ranks are processes, because
    /// nothing shows when their workers are pinned.
    pub(crate) fn new(
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
            machine: Machine::detect(),
            launch: config.launch(),
        };
        experiment.check()?;
        if experiment.launch != Launch::Alone && !experiment.disturbances.neighbours.is_empty() {
            return Err(Error::Usage("--neighbour: expected all ranks in one process".to_owned()));
        }
        Ok(Self { totals: Totals::of(&graphs), graphs, experiment })
    }

    /// The same with `iterations` iterations of every kernel.
    #[must_use]
    pub(crate) fn with_iterations(&self, iterations: u64) -> Self {
        let mut graphs = self.graphs.clone();
        graphs.iter_mut().for_each(|graph| graph.kernel.iterations = iterations);
        Self { totals: Totals::of(&graphs), graphs, experiment: self.experiment.clone() }
    }

    /// Operations of all tasks, or bytes where there are none.
    #[must_use]
    pub(crate) fn work(&self) -> u64 {
        if self.totals.flops > 0 { self.totals.flops } else { self.totals.bytes }
    }

    /// Executes the graphs, and checks that all tasks were executed.
    ///
    /// # Errors
    /// Those of the runtime and of disturbances; [`Error::Differs`] if a task or an input was left out;
    /// [`Error::Usage`] of raw MPI.
    pub(crate) fn run(&self, on: &Backend) -> Result<Outcome, Error> {
        let config = match on {
            Backend::Runtime(config) | Backend::Bare(config) => config,
            Backend::Raw => return self.run_raw(),
        };
        let lb = on.name();
        let run = || Ok(point::run((**config).clone(), &self.graphs)?);
        let report = match self.experiment.disturbances.is_empty() {
            true => run()?,
            false => self.experiment.run(lb, |_| run())?.outcome,
        };
        let told = PointResult::all(&report)?;
        match self.totals.difference(&told) {
            Some(difference) => Err(Error::Differs { lb: lb.to_owned(), difference }),
            None => Ok(Outcome::new(self.totals, &told, &report)),
        }
    }
}

/// Replaces `raw` in a program without MPI.
#[cfg(not(feature = "mpi"))]
mod raw {
    use super::{Graph, PointResult};

    pub(super) fn check(_: &[Graph]) -> Result<(), String> {
        Err("--raw: expected a program built with --features mpi".to_owned())
    }

    pub(super) fn run(graphs: &[Graph]) -> Result<(PointResult, u32), String> {
        check(graphs).map(|()| (PointResult::default(), 0))
    }
}

/// Executes a command line. All processes of a job call this, and one prints.
///
/// # Errors
/// Those of the options, of the runs and of files.
pub(crate) fn main(options: &Options) -> Result<(), Error> {
    let config = options.configure(launch::config()?.register_strategy(eighth::ENTRY));
    strategies::list_if_asked(Shape::Arrays, &config, options.lb.as_deref())?;
    let (launch, ranks) = (config.launch(), options.rank_count(&config)?);
    let bench = Bench::new(options.graphs(launch)?, ranks, &config, options.disturbances())?;
    let (lb, compare) = (options.lb.as_deref(), options.compare.as_deref());
    let configs = strategies::configs(Shape::Arrays, &config, lb, compare)?;
    if options.raw && launch == Launch::Alone {
        return Err(Error::Usage("--raw: expected a job of mpirun".to_owned()));
    }
    if options.raw {
        raw::check(&bench.graphs).map_err(Error::Usage)?;
    }
    let on_runtime = configs.into_iter().map(|config| Backend::Runtime(Box::new(config)));
    let bare = options.bare.then(|| Backend::bare(&config)).transpose()?;
    let systems: Vec<Backend> =
        bare.into_iter().chain(on_runtime).chain(options.raw.then_some(Backend::Raw)).collect();
    let open =
        |path: &Option<PathBuf>| path.as_deref().filter(|_| launch.speaks()).map(Output::open).transpose();
    let [json, plot] = [open(&options.json)?, open(&options.plot)?];
    let say = |text: &str| if launch.speaks() { print(text) } else { Ok(()) };
    say(&Configuration(&bench.graphs).to_string())?;
    let mut drawn = Ok(());
    let results = if options.metg {
        let coarsest = Some(bench.graphs[0].kernel.iterations).filter(|&iterations| iterations > 0);
        let plan = metg::Plan {
            coarsest: coarsest.unwrap_or(1 << 16),
            repetitions: options.repetitions,
            peak: options.peak,
        };
        let sweep = metg::sweep(&bench, &systems, plan, launch.speaks())?;
        say(&sweep.to_string())?;
        drawn = plot.map_or(Ok(()), |plot| plot.write(&sweep.svg(&bench.caption())));
        Results::Metg(sweep)
    } else {
        Results::Runs(bench.compare(&systems, say)?)
    };
    let Bench { graphs, experiment: Experiment { disturbances, machine, .. }, .. } = &bench;
    let numbers = Numbers { graphs, ranks, sync: config.balanced(), disturbances, machine, results };
    drawn.and(json.map_or(Ok(()), |json| json.write_json(&numbers)))
}

impl Bench {
    fn run_raw(&self) -> Result<Outcome, Error> {
        let (told, workers) = raw::run(&self.graphs).map_err(Error::Usage)?;
        match self.totals.difference(&[told]) {
            Some(difference) => Err(Error::Differs { lb: Backend::Raw.name().to_owned(), difference }),
            None => Ok(Outcome::of(self.totals, told.elapsed_ns as f64 / 1e9, workers)),
        }
    }

    /// Makes one run per backend, and prints each when it is over.
    fn compare(
        &self,
        systems: &[Backend],
        say: impl Fn(&str) -> Result<(), Error>,
    ) -> Result<Vec<Run>, Error> {
        let run = |on: &Backend| {
            let (lb, outcome) = (on.name().to_owned(), self.run(on)?);
            let Outcome { syncs, moved, seats, trace, workers, .. } = &outcome;
            let what = match on {
                Backend::Runtime(_) | Backend::Bare(_) => {
                    format!("{syncs} syncs, {moved} points moved; {seats}")
                }
                Backend::Raw => format!("{workers} processes"),
            };
            say(&format!("`{lb}`: {what}\n{outcome}"))?;
            say(&trace.line(&lb))?;
            Ok(Run { lb, outcome })
        };
        systems.iter().map(run).collect()
    }

    fn caption(&self) -> String {
        let graph = |graph: &Graph| format!("{} of {} points", name(&graph.pattern), graph.width);
        let graphs: Vec<String> = self.graphs.iter().map(graph).collect();
        format!("{}, {} ranks", graphs.join(" and "), self.experiment.ranks)
    }
}
