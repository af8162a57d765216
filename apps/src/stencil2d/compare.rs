//! From the options of `stencil2d` to a summary: which runs to make, making them, checking them.

use std::sync::Arc;

use caribou::{Config, Launch};

use super::options::Options;
use super::plate::Shape;
use super::run::Sink;
use super::{run, serial};
use crate::harness::error::Error;
use crate::harness::experiment::{Experiment, Total};
use crate::harness::launch;
use crate::harness::machine::Machine;
use crate::harness::options::Outputs;
use crate::harness::record::Run;
use crate::harness::summary::Summary;

/// Everything is checked when one of these exists: only the runs themselves can still fail.
#[derive(Debug)]
pub struct Comparison {
    options: Options,
    shape: Shape,
    experiment: Experiment,
    /// A configuration for each run, in order.
    configs: Vec<Config>,
}

impl Comparison {
    /// Checks the options; `bare` means that there were none, and turns them into the demonstration.
    ///
    /// # Errors
    /// [`Error::Usage`] or [`Error::Runtime`], naming the option or variable that cannot be met.
    pub fn prepare(mut options: Options, bare: bool) -> Result<Self, Error> {
        let config = options.balancing.configure(launch::config()?);
        let launch = config.launch();
        let ranks =
            launch::ranks(launch, options.balancing.ranks, config.rank_count(), config.worker_count())?;
        if bare {
            options.demonstrate(ranks, config.lb_spec(caribou::lb::Shape::Arrays));
        }
        let experiment = Experiment {
            iterations: options.iterations,
            total: Total::iterations(options.iterations),
            ranks,
            // Under mpirun also the default is the run's to choose, and told in its report.
            workers: (launch == Launch::Alone).then(|| config.worker_count()),
            disturbances: options.balancing.disturbances(),
            machine: Machine::this(),
            launch,
        };
        experiment.check()?;
        let configs = options.balancing.configs(&config)?;
        let shape = options.shape(ranks)?;
        options.check_memory(shape, launch)?;
        Ok(Self { shape, options, experiment, configs })
    }

    /// What is going to run, in words.
    #[must_use]
    pub fn introduction(&self) -> String {
        let Experiment { ranks, workers, iterations, .. } = self.experiment;
        let (chunks, plate) = (self.shape.chunks(), self.description());
        let workers = match workers {
            None | Some(1) => String::new(),
            Some(workers) => format!(" of {workers} workers"),
        };
        let period = match self.configs.first().map_or(0, Config::sync_period) {
            0 => String::new(),
            period => format!(", a sync every {period}"),
        };
        format!("{plate} ({chunks} chunks) on {ranks} ranks{workers}: {iterations} iterations{period}.")
    }

    /// The files for results, opened before anything runs.
    ///
    /// # Errors
    /// [`Error::Output`], naming the first that cannot be written.
    pub fn outputs(&self) -> Result<Outputs, Error> {
        self.options.balancing.outputs()
    }

    /// Makes the runs. Of several processes all call this; the summary is whole in the one that speaks.
    ///
    /// # Errors
    /// [`Error::Differs`] with `--check` when a result is wrong; the runtime's own when a run cannot go on.
    pub fn run(&self) -> Result<Summary, Error> {
        let Experiment { launch, iterations, .. } = self.experiment;
        let compares = self.options.check && launch.speaks();
        let reference = compares.then(|| serial::run(self.shape, iterations));
        let (mut runs, mut failed) = (Vec::new(), None);
        for config in &self.configs {
            match self.one(config, reference.as_ref()) {
                Ok(run) => runs.push(run),
                // Others know nothing of it, and make the next run with this process or not at all.
                Err(error) if launch != Launch::Alone && !matches!(error, Error::Runtime(_)) => {
                    failed = failed.or(Some(error));
                }
                Err(error) => return Err(failed.unwrap_or(error)),
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        let problem = serde_json::json!({
            "description": self.description(),
            "grid": self.shape.grid(),
            "chunk": self.shape.chunk(),
            "chunks": self.shape.chunks(),
            "checked": self.options.check,
        });
        let period = self.configs.first().map_or(0, Config::sync_period);
        Ok(Summary::new("stencil2d", problem, period, &self.experiment, &runs))
    }

    /// What is to be said after the result, if anything.
    #[must_use]
    pub fn afterword(&self) -> Option<&'static str> {
        if self.options.check {
            return Some("Every run ended with the serial program's result, bit for bit.");
        }
        let lonely = self.experiment.ranks == 1;
        lonely.then_some(
            "With one rank there is nowhere to move work to: two vCPUs or --ranks 2 show balancing.",
        )
    }

    fn one(&self, config: &Config, reference: Option<&serial::Field>) -> Result<Run, Error> {
        let lb = config.lb_spec(caribou::lb::Shape::Arrays);
        let sink = self.options.check.then(|| Arc::new(Sink::new(self.shape)));
        let run = self.experiment.run(lb, |clock| {
            Ok(run::run(config.clone(), self.shape, self.options.iterations, clock, sink.as_ref())?)
        })?;
        if let (Some(sink), Some(reference)) = (sink, reference) {
            run::check(lb, &sink, reference)?;
        }
        Ok(run)
    }

    fn description(&self) -> String {
        format!("{0} x {0} cells in chunks of {1} x {1}", self.shape.grid(), self.shape.chunk())
    }
}
