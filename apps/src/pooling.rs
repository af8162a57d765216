//! What every pool here shares: its options, one run per strategy, and what is told of the runs.
//!
//! A pool has no iterations that end together, so there is nothing like `--period`, and nothing to plot against. Its runs
//! are compared by their time, and by the time they would have taken had no worker ever been idle.

use std::fmt::Write;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use caribou::{Accumulator, Config, Launch, Pool, PoolReport};
use serde::Serialize;

use crate::cli;
use crate::error::Error;
use crate::launch;
use crate::machine::Machine;
use crate::options::Balancing;
use crate::output::Output;
use crate::progress::Progress;
use crate::table::align;

/// Ten looks a second are smooth enough for a bar.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Flattened into a pool's own options. What is not given comes from `CARIBOU_*`, then from the program.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Pooling {
    /// The strategy for pools and its parameters [default: CARIBOU_LB, then that of the runtime]
    #[arg(long, value_name = "NAME[,KEY=VALUE]", conflicts_with = "compare")]
    pub lb: Option<String>,
    /// Strategies to run one after the other and compare
    #[arg(long, value_name = "LIST")]
    pub compare: Option<String>,
    /// Ranks [default: CARIBOU_RANKS, then 1; under mpirun each process is one]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub ranks: Option<u32>,
    /// Worker threads of each rank [default: CARIBOU_WORKERS, then as many as there are vCPUs for]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub workers: Option<u32>,
    /// Write the numbers of the runs, and of every worker
    #[arg(long, value_name = "FILE.json")]
    pub json: Option<PathBuf>,
}

impl Pooling {
    /// The runs that were asked for.
    ///
    /// # Errors
    /// [`Error::Usage`] or [`Error::Runtime`], naming the option or variable that cannot be met.
    pub fn prepare(&self) -> Result<PoolRuns, Error> {
        let mut config = Config::from_env()?;
        if let Some(workers) = self.workers {
            config = config.workers(workers);
        }
        if let Some(ranks) = self.ranks {
            config = config.ranks(ranks);
        }
        let launch = config.launch();
        launch::ranks(launch, self.ranks, config.pool_size().0)?;
        let specs = match (&self.compare, &self.lb) {
            (Some(list), _) => cli::strategies(list)?,
            (None, Some(lb)) => vec![lb.clone()],
            (None, None) => return Ok(PoolRuns { configs: vec![config], launch }),
        };
        // Unchanged it may be a policy that has no name to be looked up by.
        let configs = specs.iter().map(|spec| {
            if spec == config.pool_lb_spec() {
                return Ok(config.clone());
            }
            Balancing::with_named(&config, spec)
        });
        Ok(PoolRuns { configs: configs.collect::<Result<_, _>>()?, launch })
    }

    /// The file for the numbers, open.
    ///
    /// # Errors
    /// [`Error::Output`], when it cannot be written.
    pub fn output(&self) -> Result<Option<Output>, Error> {
        self.json.as_deref().map(Output::open).transpose()
    }
}

/// One run for each strategy.
#[derive(Debug)]
pub struct PoolRuns {
    /// In order; at least one.
    configs: Vec<Config>,
    launch: Launch,
}

impl PoolRuns {
    /// Whether the ranks are in this process, or this process is one of them.
    #[must_use]
    pub fn launch(&self) -> Launch {
        self.launch
    }

    /// Makes the runs: of so many iterations, which are called something, and cost about this. `check` looks at each result
    /// with the name of its strategy. Returns the last result, and all reports.
    ///
    /// Of several processes all call this; a complaint of `check` waits until all runs are made, because other processes
    /// know nothing of it and count on this one.
    ///
    /// # Errors
    /// The runtime's own, or those of `check`.
    pub fn run<A: Accumulator>(
        &self,
        (unit, iterations, cost): (&'static str, u64, Duration),
        init: impl Fn() -> A + Sync,
        body: impl Fn(&mut A, Range<u64>) + Sync,
        check: impl Fn(&str, &A) -> Result<(), Error>,
    ) -> Result<(A, Vec<PoolReport>), Error> {
        let (mut result, mut checked, mut reports) = (None, Ok(()), Vec::new());
        for config in &self.configs {
            let progress = Progress::new(config.pool_lb_spec(), iterations, unit, self.launch.speaks());
            let progress = Mutex::new(progress);
            let show = |done| progress.lock().unwrap_or_else(PoisonError::into_inner).show(done);
            let pool = Pool::new(config, iterations).cost_hint(cost).on_progress(LOOK_EVERY, show);
            let outcome = pool.run(&init, &body)?;
            checked = checked.and(check(&outcome.report.lb, &outcome.result));
            reports.push(outcome.report);
            result = Some(outcome.result);
        }
        checked.map(|()| (result.expect("there is a strategy at least"), reports))
    }
}

/// The complaint about a result that is not the serial one.
///
/// # Errors
/// [`Error::Differs`] when there is a difference.
pub fn same(lb: &str, difference: Option<String>) -> Result<(), Error> {
    difference.map_or(Ok(()), |difference| Err(Error::Differs { lb: lb.to_owned(), difference }))
}

/// The runs, one line each, with a heading; above it where they ran.
#[must_use]
pub fn table(reports: &[PoolReport]) -> String {
    let heads = ["lb", "time", "without idling", "excess", "shortest busy", "longest busy", "messages"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(reports.iter().map(cells));
    let mut text = String::new();
    if let Some(report) = reports.first().filter(|report| !report.placement.is_empty()) {
        let _ = writeln!(text, "{}", report.placement);
    }
    align(&rows, &mut text);
    for report in reports {
        if let Some(decision) = &report.decision {
            let _ = writeln!(text, "`{}`: {decision}", report.lb);
        }
    }
    text
}

fn cells(report: &PoolReport) -> Vec<String> {
    let seconds = |ns: u64| format!("{:.3} s", ns as f64 / 1e9);
    let busy = || report.workers.iter().map(|worker| worker.busy_ns);
    vec![
        report.lb.clone(),
        seconds(report.elapsed_ns),
        seconds(report.bound_ns()),
        format!("{:.1} %", 100.0 * report.excess()),
        seconds(busy().min().unwrap_or(0)),
        seconds(busy().max().unwrap_or(0)),
        report.messages.to_string(),
    ]
}

/// The numbers of the runs as JSON, with what they ran on and what for.
#[must_use]
pub fn json(program: &'static str, problem: serde_json::Value, reports: &[PoolReport]) -> String {
    #[derive(Serialize)]
    struct Numbers<'a> {
        program: &'static str,
        problem: serde_json::Value,
        machine: Machine,
        runs: &'a [PoolReport],
    }
    let numbers = Numbers { program, problem, machine: Machine::this(), runs: reports };
    serde_json::to_string_pretty(&numbers).expect("the numbers have only names as keys") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use caribou::PoolWorker;

    fn runs(pooling: &Pooling) -> PoolRuns {
        pooling.prepare().unwrap()
    }

    fn count(
        runs: &PoolRuns,
        check: impl Fn(&str, &u64) -> Result<(), Error>,
    ) -> Result<(u64, usize), Error> {
        let body = |sum: &mut u64, range: Range<u64>| *sum += range.count() as u64;
        let (sum, reports) = runs.run(("darts", 1000, Duration::from_nanos(10)), || 0, body, check)?;
        Ok((sum, reports.len()))
    }

    #[test]
    fn each_strategy_is_a_run_with_the_whole_result() {
        let pooling = Pooling {
            compare: Some("static,chunk=0.01;static".to_owned()),
            ranks: Some(2),
            workers: Some(2),
            ..Pooling::default()
        };
        assert_eq!(count(&runs(&pooling), |_, _| Ok(())).unwrap(), (1000, 2));
        assert_eq!(count(&runs(&Pooling::default()), |_, _| Ok(())).unwrap(), (1000, 1));
    }

    #[test]
    fn a_wrong_result_is_named_when_all_runs_are_made() {
        let pooling = Pooling { compare: Some("static,chunk=0.01;static".to_owned()), ..Pooling::default() };
        let seen = std::cell::RefCell::new(Vec::new());
        let check = |lb: &str, _: &u64| {
            seen.borrow_mut().push(lb.to_owned());
            same(lb, Some("one dart too few".to_owned()))
        };
        let error = count(&runs(&pooling), check).unwrap_err().to_string();
        assert_eq!(seen.into_inner(), ["static,chunk=0.01", "static"]);
        assert!(error.contains("`static,chunk=0.01`") && error.contains("one dart too few"), "{error}");
    }

    #[test]
    fn a_strategy_nobody_knows_is_refused_before_anything_runs() {
        let pooling = Pooling { lb: Some("statik".to_owned()), ..Pooling::default() };
        let error = pooling.prepare().unwrap_err();
        assert!(error.exit_code() == 2 && error.to_string().contains("static"), "{error}");
    }

    #[test]
    fn the_table_tells_the_time_and_what_it_could_have_been() {
        let worker = |busy_ns| PoolWorker { busy_ns, ..PoolWorker::default() };
        let report = PoolReport {
            lb: "static".to_owned(),
            elapsed_ns: 2_000_000_000,
            workers: vec![worker(2_000_000_000), worker(1_000_000_000)],
            decision: Some("equal shares".to_owned()),
            ..PoolReport::default()
        };
        let text = table(&[report]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with("static  2.000 s         1.500 s  33.3 %        1.000 s"), "{text}");
        assert_eq!(lines[2], "`static`: equal shares");
    }
}
