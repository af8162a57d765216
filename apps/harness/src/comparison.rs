//! Runs a program once per strategy, compares each result with the serial reference, and reports all runs in a
//! [`Summary`]. [`main`](crate::main) calls it with the parsed command line.

use caribou::config::Period;
use caribou::{Config, Launch};
use presentation::format::plural;
use serde_json::Value;

use super::disturbance::{Disturbances, NeighbourSpec};
use super::error::Error;
use super::experiment::{DisturbedRun, Experiment};
use super::launch;
use super::machine::Machine;
use super::options::{CommandLine, Options};
use super::output::{Output, print};
use super::plot;
use super::program::{Conditions, Outcome, Program, RunContext};
use super::shape::{Facts, Shape};
use super::strategies;
use super::summary::{Run, Summary};
use super::table::{sentence, table};
use super::times::Times;

type FactsOf<P> = <<P as Program>::Shape as Shape>::Facts;
type Last<P> = Option<<P as Program>::Result>;

/// The runs of a comparison.
struct ComparisonResult<P: Program> {
    /// The runs that succeeded.
    runs: Vec<Run<FactsOf<P>>>,
    /// The result of the last of these runs.
    last: Last<P>,
    /// The first error.
    failed: Option<Error>,
}

/// The runs that a command line asks for. [`prepare`](Self::prepare) checks all else: only runs can still fail.
#[derive(Debug)]
pub struct Comparison<P> {
    program: P,
    experiment: Experiment,
    /// A configuration for each run, in order; at least one.
    configs: Vec<Config>,
    options: Options,
    /// The name of each run in its progress lines; `None` for the name of its strategy.
    label: Option<String>,
}

impl<P: Program> Comparison<P> {
    /// Checks a command line. `bare` means that it has no options. The runs are then the demonstration, if the [program
    /// has one](Program::DEMONSTRATES).
    ///
    /// # Errors
    /// [`Error::Usage`] or [`Error::Runtime`], naming the option or variable that cannot be met.
    pub fn prepare(line: CommandLine<P>, bare: bool) -> Result<Self, Error> {
        let CommandLine { own, of_shape, shared: mut options } = line;
        let config = P::Shape::configure(&of_shape, options.configure(launch::config()?));
        strategies::list_if_asked(P::Shape::SHAPE, &config, options.lb.as_deref())?;
        let launch = config.launch();
        let (ranks, workers) = P::Shape::size(&config);
        let ranks = launch::ranks(launch, options.ranks, ranks, workers)?;
        // Fixed here, so that all runs have the same numbers even if a CPU quota changes between two runs.
        let config = if launch == Launch::Alone { config.ranks(ranks).workers(workers) } else { config };
        let program = P::new(own, Conditions { ranks, launch, checks: options.check })?;
        let total = program.total();
        let steps = P::Shape::steps(total);
        if bare && P::DEMONSTRATES {
            demonstrate::<P::Shape>(&mut options, ranks, steps, &config);
        }
        let experiment = Experiment {
            steps,
            step: FactsOf::<P>::STEP,
            total,
            ranks,
            // Under mpirun the runtime chooses the default when a run starts. The report of the run holds the number.
            workers: (launch == Launch::Alone).then_some(workers),
            disturbances: Disturbances { slowed: P::Shape::slowed(&of_shape), ..options.disturbances() },
            machine: Machine::detect(),
            launch,
        };
        if config.is_simulated() && experiment.disturbances.need_vcpus() {
            let why =
                "--neighbour, --quota: a simulated run (CARIBOU_SIMULATE) has no vCPUs to disturb or limit";
            return Err(Error::Usage(why.to_owned()));
        }
        experiment.check()?;
        let (lb, compare) = (options.lb.as_deref(), options.compare.as_deref());
        let configs = strategies::configs(P::Shape::SHAPE, &config, lb, compare)?;
        if configs.len() > 1 && config.restarts() {
            return Err(Error::Usage(format!(
                "--restart, CARIBOU_RESTART: a restart is one run, and this command makes {}: choose one strategy with --lb",
                configs.len()
            )));
        }
        let problem = format!("{} of {} {}", program.description(), total.count, total.unit);
        let same = |config: Config| {
            config.saved_with("problem", &problem).saved_with("--check", options.check).of_one_run()
        };
        let configs = configs.into_iter().map(same).collect();
        Ok(Self { program, experiment, configs, options, label: None })
    }

    /// Sets the name of the runs in their progress lines.
    #[must_use]
    pub fn labelled(self, label: String) -> Self {
        Self { label: Some(label), ..self }
    }

    /// Makes the runs and reports them on standard output and in the requested files. All processes of a job call this,
    /// and one of them reports. If a run fails, the runs before it are still reported.
    ///
    /// # Errors
    /// Those of [`run`](Self::run), or [`Error::Output`], naming a file that cannot be written.
    pub fn run_and_report(&self) -> Result<(), Error> {
        if !self.experiment.launch.speaks() {
            let (_, result) = self.run()?;
            return self.lacks(result.as_ref());
        }
        let [picture, numbers] = self.options.files()?;
        let file = self.program.file().map(Output::open).transpose()?;
        print(&format!("{}\n", self.introduction()))?;
        let ComparisonResult { runs, last: result, failed } = self.make();
        if runs.is_empty() {
            return failed.map_or(Ok(()), Err);
        }
        let summary = self.summary(runs);
        let results = result.as_ref().map(|result| self.program.results(result)).unwrap_or_default();
        let note = self.afterword().filter(|_| failed.is_none());
        let note = note.map(|note| format!("{note}\n")).unwrap_or_default();
        // If one output fails, for instance on a full disk, the others are still written.
        let said = print(&format!("{results}{}{}\n{note}", table(&summary), sentence(&summary)));
        let contents =
            file.zip(result.as_ref()).map(|(file, result)| file.write(&self.program.contents(result)));
        let numbers = numbers.map(|numbers| numbers.write_json(&summary));
        let picture = picture.map(|picture| picture.write(&plot::svg(&(&summary).into())));
        let lacks = self.lacks(result.as_ref());
        [failed.map(Err), Some(said), contents, numbers, picture, Some(lacks)]
            .into_iter()
            .flatten()
            .fold(Ok(()), Result::and)
    }

    fn lacks(&self, result: Option<&P::Result>) -> Result<(), Error> {
        result.and_then(|result| self.program.lacks(result)).map_or(Ok(()), |lack| Err(Error::Lacking(lack)))
    }

    /// Makes the runs. Returns their summary and the result of the last one. All processes of a job call this. The
    /// summary is complete only in the process that prints ([`Launch::speaks`]).
    ///
    /// # Errors
    /// [`Error::Differs`] with `--check` when a result is wrong; the runtime's error when a run cannot go on; the error
    /// of a disturbance that the system refused.
    pub fn run(&self) -> Result<(Summary<FactsOf<P>>, Last<P>), Error> {
        let ComparisonResult { runs, last, failed } = self.make();
        failed.map_or_else(|| Ok((self.summary(runs), last)), Err)
    }

    /// Makes the runs, until one cannot go on.
    ///
    /// An error of one process alone is returned after all runs, because the other processes do not have this error and
    /// wait for this process. A wrong result is also returned after all runs.
    fn make(&self) -> ComparisonResult<P> {
        let launch = self.experiment.launch;
        let reference = (self.options.check && launch.speaks()).then(|| self.program.reference());
        let (mut runs, mut last, mut failed) = (Vec::new(), None, None);
        for config in &self.configs {
            match self.one(config, reference.as_ref()).map_err(|error| self.options.naming_options(error)) {
                Ok((run, result)) => {
                    runs.push(run);
                    last = result;
                }
                Err(error @ Error::Differs { .. }) => failed = failed.or(Some(error)),
                Err(error) if launch != Launch::Alone && !matches!(error, Error::Runtime(_)) => {
                    failed = failed.or(Some(error));
                }
                Err(error) => {
                    failed = failed.or(Some(error));
                    break;
                }
            }
        }
        ComparisonResult { runs, last, failed }
    }

    fn one(
        &self,
        config: &Config,
        reference: Option<&P::Result>,
    ) -> Result<(Run<FactsOf<P>>, Last<P>), Error> {
        let lb = config.lb_spec(P::Shape::SHAPE);
        let label = self.label.as_deref().unwrap_or(lb);
        let gathers = self.options.check;
        let DisturbedRun { outcome: Outcome { result, report }, quotas_held, clock } =
            self.experiment.run(label, |clock| self.program.run(&RunContext { config, clock, gathers }))?;
        let difference =
            result.as_ref().zip(reference).and_then(|(result, reference)| P::difference(result, reference));
        if let Some(difference) = difference {
            return Err(Error::Differs { lb: lb.to_owned(), difference });
        }
        let times = Times::new(clock.times_ns(), P::Shape::end_ns(&report));
        let windows = self.experiment.disturbances.windows(times.steps(), quotas_held);
        let facts = P::Shape::facts(lb, report, &times, &windows);
        let numbers = result.as_ref().map_or(Value::Null, |result| self.program.numbers(result));
        Ok((Run { result: numbers, ..Run::new(facts, times, quotas_held) }, result))
    }

    fn summary(&self, runs: Vec<Run<FactsOf<P>>>) -> Summary<FactsOf<P>> {
        let mut problem = self.program.description();
        problem["description"] = Value::from(self.program.title());
        problem["checked"] = Value::from(self.options.check);
        let period = self.configs.first().and_then(P::Shape::period);
        Summary::new(P::NAME, problem, period, &self.experiment, runs)
    }

    /// Announces the runs.
    fn introduction(&self) -> String {
        let Experiment { ranks, workers, total, .. } = self.experiment;
        let workers = match workers {
            None | Some(1) => String::new(),
            Some(workers) => format!(" of {workers} workers"),
        };
        let period = match self.configs.first().and_then(P::Shape::period) {
            Some(Period::Steps(steps)) if steps > 0 => format!(", a sync every {steps}"),
            Some(Period::Every(_)) => format!(", balanced every {}", self.configs[0].balanced()),
            _ => String::new(),
        };
        let ranks = plural(ranks, "rank");
        format!("{} on {ranks}{workers}: {} {}{period}.", self.program.title(), total.count, total.unit)
    }

    /// The line after all results, if any.
    fn afterword(&self) -> Option<&'static str> {
        if self.options.check {
            return Some("Every run ended with the serial program's result, bit for bit.");
        }
        P::Shape::ALONE.filter(|_| self.experiment.ranks == 1)
    }
}

/// Sets the options of the demonstration: a neighbour shares the vCPU of the last rank in the middle three fifths of
/// each run, and the strategy is compared with the one that moves nothing. With one rank nothing can move, so the
/// demonstration is then one run without a neighbour.
fn demonstrate<S: Shape>(options: &mut Options, ranks: u32, steps: u32, config: &Config) {
    if ranks < 2 {
        return;
    }
    let fifth = steps / 5;
    options.neighbour =
        vec![NeighbourSpec { rank: ranks - 1, from: fifth, to: Some(4 * fifth), duty: 1.0, seed: None }];
    let lb = config.lb_spec(S::SHAPE);
    options.compare = Some(match S::Facts::UNBALANCED {
        Some(unbalanced) if unbalanced != lb => format!("{unbalanced},{lb}"),
        _ => lb.to_owned(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::Array;
    use crate::pools::{self, Pool};
    use crate::program::Total;
    use caribou::lb;
    use caribou::pools::PoolReport;
    use clap::Parser;
    use std::time::Duration;

    /// Counts to a number; its serial program may count wrongly on purpose.
    #[derive(Debug, clap::Parser)]
    struct Counting {
        #[arg(long)]
        wrong: bool,
        /// The neighbour is killed in the run with this strategy.
        #[arg(long, default_value = "")]
        kills: String,
    }

    const DARTS: u64 = 1000;

    impl Program for Counting {
        const NAME: &'static str = "counting";
        type Shape = Pool;
        type Options = Self;
        type Result = u64;

        fn new(options: Self, _: Conditions) -> Result<Self, Error> {
            Ok(options)
        }

        fn total(&self) -> Total {
            Total { count: DARTS, unit: "darts" }
        }

        fn title(&self) -> String {
            "a board".to_owned()
        }

        fn description(&self) -> Value {
            serde_json::json!({ "darts": DARTS })
        }

        fn run(&self, stage: &RunContext<'_>) -> Result<Outcome<Self>, Error> {
            if stage.config.lb_spec(lb::Shape::Pools) == self.kills {
                let status = std::process::ExitStatus::default();
                return Err(Error::NeighbourEnded { rank: 0, completed: 0, status });
            }
            let body = |sum: &mut u64, range: std::ops::Range<u64>| *sum += range.count() as u64;
            let (sum, report): (u64, PoolReport) =
                pools::run(stage, DARTS, Duration::from_nanos(10), || 0, body)?;
            Ok(Outcome { result: Some(sum), report })
        }

        fn reference(&self) -> u64 {
            DARTS + u64::from(self.wrong)
        }

        fn difference(sum: &u64, reference: &u64) -> Option<String> {
            (sum != reference).then(|| format!("{sum} darts instead of {reference}"))
        }
    }

    fn prepare(arguments: &str) -> Result<Comparison<Counting>, Error> {
        let line = CommandLine::try_parse_from(format!("counting {arguments}").split_whitespace()).unwrap();
        Comparison::prepare(line, false)
    }

    #[test]
    fn each_strategy_is_a_run_with_the_whole_result() {
        for (options, runs) in [("--compare static,chunk=0.01,static --ranks 2 --workers 2", 2), ("", 1)] {
            let (summary, result) = prepare(&format!("--check {options}")).unwrap().run().unwrap();
            assert_eq!((result, summary.runs.len()), (Some(DARTS), runs));
            assert!(summary.runs.iter().all(|run| run.facts.parts_ms.len() == 100));
            assert_eq!(summary.settings.problem["checked"], true);
        }
    }

    #[test]
    fn a_wrong_result_is_named_when_all_runs_are_made() {
        let comparison = prepare("--check --wrong --compare static,chunk=0.01;static").unwrap();
        let error = comparison.run().unwrap_err().to_string();
        assert!(
            error.contains("`static,chunk=0.01`") && error.contains("1000 darts instead of 1001"),
            "{error}"
        );
        let unchecked = prepare("--wrong").unwrap();
        assert!(unchecked.run().is_ok());
    }

    #[test]
    fn runs_before_one_that_fails_are_told() {
        let path = std::env::temp_dir().join(format!("caribou-comparison-{}.json", std::process::id()));
        let told = |kills: &str| {
            let arguments =
                format!("--json {} --kills {kills} --compare static,leases,ruper", path.display());
            let error = prepare(&arguments).unwrap().run_and_report().unwrap_err();
            assert!(matches!(error, Error::NeighbourEnded { .. }), "{error}");
            std::fs::read_to_string(&path).ok()
        };
        let json: Value = serde_json::from_str(&told("leases").unwrap()).unwrap();
        assert_eq!((json["runs"].as_array().unwrap().len(), &json["runs"][0]["lb"]), (1, &"static".into()));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(told("static"), None, "there is nothing to tell");
    }

    #[test]
    fn a_strategy_nobody_knows_is_refused_before_anything_runs() {
        let error = prepare("--lb statik").unwrap_err();
        assert!(error.exit_code() == 2 && error.to_string().contains("static"), "{error}");
    }

    #[test]
    fn the_introduction_says_what_is_going_to_run() {
        let introduction = |options| prepare(options).unwrap().introduction();
        assert_eq!(introduction("--ranks 2 --workers 3"), "a board on 2 ranks of 3 workers: 1000 darts.");
        assert_eq!(introduction("--ranks 1 --workers 1"), "a board on 1 rank: 1000 darts.");
    }

    #[test]
    fn the_demonstration_has_its_neighbour_in_the_middle_of_the_last_rank() {
        let demonstration = |lb: &str, ranks| {
            let mut options = Options::default();
            let config = Config::default().lb(lb).unwrap();
            demonstrate::<Array>(&mut options, ranks, 800, &config);
            (options.neighbour, options.compare)
        };
        let neighbours = vec![NeighbourSpec::parse("1:160-640").unwrap()];
        let compare = Some("none,refine,tolerance=0.1".to_owned());
        assert_eq!(demonstration("refine,tolerance=0.1", 2), (neighbours.clone(), compare));
        assert_eq!(demonstration("none", 2), (neighbours, Some("none".to_owned())));
        assert_eq!(demonstration("refine", 1), (vec![], None), "one rank alone demonstrates no balancing");
    }
}
