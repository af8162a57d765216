//! Runs each scenario under each policy, in parallel on all cores of this machine. Each run has its own virtual time,
//! so its result does not depend on the number of parallel runs.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::io::{IsTerminal, Write, stderr};
use std::sync::{Arc, Mutex};
use std::thread;

use indicatif::{ProgressBar, ProgressStyle};
use lb_strategies::Table;
use lb_strategies::pool::Nanos;
use lb_strategies::spec::split_list;
use presentation::chart::{Axis, Chart, Series};
use presentation::format::plural;
use serde::Serialize;

use super::options::Named;
use super::table;
use crate::{Error, warn_of_old_names};

/// A policy and its specification as the user wrote it.
pub(super) struct Policy<P: ?Sized> {
    pub(super) spec: String,
    pub(super) strategy: Arc<P>,
}

impl<P: ?Sized + 'static> Policy<P> {
    /// Parses a specification.
    pub(super) fn parse(table: &Table<P>, spec: &str) -> Result<Self, Error> {
        let strategy = table.parse(spec);
        let strategy = strategy.map_err(|source| Error::Policy { spec: spec.to_owned(), source })?;
        warn_of_old_names(table, spec);
        Ok(Self { spec: spec.to_owned(), strategy: strategy.into() })
    }

    /// The policies in a list as `--compare` takes it; all policies of the table without a list.
    pub(super) fn list(table: &Table<P>, list: Option<&str>) -> Result<Vec<Self>, Error> {
        match list {
            Some(list) => {
                let specs = specs(list)?;
                check_once(&specs)?;
                specs.iter().map(|spec| Self::parse(table, spec)).collect()
            }
            None => table.iter().map(|entry| Self::parse(table, entry.name)).collect(),
        }
    }
}

/// Refuses a specification that is in the list twice. Blanks make no difference.
fn check_once(specs: &[String]) -> Result<(), Error> {
    let mut seen = BTreeSet::new();
    let without_blanks = |spec: &str| spec.split_whitespace().collect::<String>();
    match specs.iter().find(|spec| !seen.insert(without_blanks(spec))) {
        None => Ok(()),
        Some(twice) => {
            Err(Error::Usage(format!("--compare {twice:?} is there twice, expected each policy once")))
        }
    }
}

/// Splits a list into specifications with their parameters.
fn specs(list: &str) -> Result<Vec<String>, Error> {
    split_list(list).map_err(|error| Error::Usage(format!("--compare {error}")))
}

/// A scenario of pools, arrays or programs in supersteps, which can be run under policies.
pub(super) trait Comparable: Sized + Sync {
    type Policy: ?Sized + Send + Sync + 'static;
    type Metrics: Metrics + Send;
    /// What the policies are called in lists.
    const POLICIES: &'static str = "policies";
    /// The policies that are compared by default; none for all.
    const COMPARED: Option<&'static str> = None;

    /// The policies for this shape of program.
    fn table() -> &'static Table<Self::Policy>;

    /// The scenarios that have a name.
    fn named() -> Vec<Named<Self>> {
        Vec::new()
    }

    /// The name of this scenario.
    fn name(&self) -> &str;

    /// Approximate memory of the figures of a run, bytes.
    fn kept_bytes(&self) -> u64;

    /// What the named scenario is about, to precede its size; empty without one.
    fn about(&self) -> String {
        let named = Self::named();
        let entry = named.iter().find(|one| one.name == self.name());
        entry.map_or_else(String::new, |entry| format!("{}; ", entry.about))
    }

    /// Time of the best schedule in seconds.
    fn ideal_s(&self) -> f64;

    /// Runs the scenario under a policy. Returns the makespan in seconds, and the figures of this kind of program. A long
    /// run may `tell` which part of it is done.
    fn run_under(&self, policy: &Arc<Self::Policy>, tell: &dyn Fn(f64)) -> (f64, Self::Metrics);

    /// Combines the outcomes of all policies in this scenario.
    fn comparison(&self, ideal_s: f64, outcomes: Vec<Outcome<Self::Metrics>>) -> Comparison<Self::Metrics>;
}

/// Result of one policy in one scenario.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Outcome<M> {
    pub(super) policy: String,
    pub(super) makespan_s: f64,
    /// Excess over the ideal; none if the run is incomplete, because undone work saves time.
    pub(super) excess_percent: Option<f64>,
    /// Time saved, in percent of the time of the baseline; none if the baseline is not compared, or there is none.
    pub(super) saved_percent: Option<f64>,
    #[serde(flatten)]
    pub(super) metrics: M,
}

impl<M: Metrics> Outcome<M> {
    fn new(policy: &str, ideal_s: f64, (makespan_s, metrics): (f64, M)) -> Self {
        let excess = if ideal_s > 0.0 { 100.0 * (makespan_s / ideal_s - 1.0) } else { 0.0 };
        let excess_percent = metrics.complaint().is_none().then_some(excess);
        Self { policy: policy.to_owned(), makespan_s, excess_percent, saved_percent: None, metrics }
    }
}

/// The figures of one run that only this kind of program has, for tables, files and plots.
pub(super) trait Metrics: Serialize {
    /// Head of the table's column of policies.
    const POLICY: &'static str = "policy";
    /// Heads of the table between the common columns.
    const HEADS: &'static [&'static str];
    /// Heads of the CSV file after the common columns.
    const COLUMNS: &'static [&'static str];
    /// The policy with which saved time is compared; none if no savings are shown.
    const BASELINE: Option<&'static str> = None;
    /// Meaning of columns that the line under each table does not tell, for a line under the last table.
    const LEGEND: Option<&'static str> = None;
    /// Title of the plot.
    const PLOT: &'static str;

    fn cells(&self) -> Vec<String>;
    fn values(&self) -> Vec<String>;

    /// The faults of the run as text; none if it is complete.
    fn complaint(&self) -> Option<String>;

    /// One panel of the plot.
    fn chart(comparison: &Comparison<Self>) -> Chart
    where
        Self: Sized;
}

/// Results of all policies in one scenario.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Comparison<M> {
    pub(super) scenario: String,
    /// The swept fields and their values; empty without a sweep.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "as_map")]
    pub(super) swept: Vec<(String, String)>,
    /// Chunks of an array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) chunks: Option<u32>,
    /// Units of a program in supersteps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) units: Option<u64>,
    /// Number of iterations, or of steps.
    pub(super) iterations: u64,
    /// Number of workers of each rank.
    pub(super) workers: Vec<u32>,
    /// Time of the best schedule in seconds.
    pub(super) ideal_s: f64,
    pub(super) outcomes: Vec<Outcome<M>>,
}

fn as_map<S: serde::Serializer>(pairs: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(field, value)| (field, value)))
}

/// Steps of the progress bar for each run.
const RUN_STEPS: u64 = 1000;

/// Name of a scenario that options describe.
pub(super) const DESCRIBED: &str = "described";

impl<M: Metrics> Comparison<M> {
    /// The fraction of the baseline's time that the best schedule saves; none without a complete run of the baseline.
    pub(super) fn saved_at_most(&self) -> Option<(&'static str, f64)> {
        let baseline = M::BASELINE?;
        let run = self.outcomes.iter().find(|outcome| outcome.policy == baseline)?;
        run.excess_percent.filter(|_| run.makespan_s > 0.0)?;
        Some((baseline, (1.0 - self.ideal_s / run.makespan_s).max(0.0)))
    }

    /// Stores in each complete run the time that it saves compared with the baseline.
    fn tell_savings(&mut self) {
        let baseline = M::BASELINE.and_then(|name| self.outcomes.iter().find(|one| one.policy == name));
        let baseline_s = baseline.map(|outcome| outcome.makespan_s).filter(|&seconds| seconds > 0.0);
        let Some(baseline_s) = baseline_s else { return };
        for outcome in self.outcomes.iter_mut().filter(|outcome| outcome.excess_percent.is_some()) {
            outcome.saved_percent = Some(100.0 * (1.0 - outcome.makespan_s / baseline_s));
        }
    }

    /// A panel with one line per policy: the time of each iteration or step, in seconds.
    pub(super) fn chart_of_times(&self, turn: &str, times_s: impl Fn(&M) -> &[f64]) -> Chart {
        let finite = |outcome: &Outcome<M>| -> Vec<f64> {
            times_s(&outcome.metrics).iter().copied().filter(|time| time.is_finite()).collect()
        };
        let top = 1.08 * self.outcomes.iter().flat_map(finite).fold(1e-9, f64::max);
        let turns = self.iterations as f64;
        let line = |outcome: &Outcome<M>| Series {
            name: format!("{}: {} s", outcome.policy, table::seconds(outcome.makespan_s)),
            dots: Vec::new(),
            radius: 0.0,
            opacity: 1.0,
            line: (0..).map(f64::from).zip(finite(outcome)).collect(),
        };
        Chart {
            caption: self.title(),
            horizontal: Axis { title: turn.into(), from: 0.0, to: turns, whole: true },
            vertical: Axis { title: "time (s)".into(), from: 0.0, to: top, whole: false },
            bands: Vec::new(),
            level: Some(self.ideal_s / turns.max(1.0)),
            series: self.outcomes.iter().map(line).collect(),
        }
    }

    /// Title of a panel: the name of the scenario with its swept fields, or its size if options describe it.
    pub(super) fn title(&self) -> String {
        if self.scenario == DESCRIBED {
            return table::size(self);
        }
        let fields = self.swept.iter().map(|(field, value)| format!(", {field} {value}"));
        format!("{}{}", self.scenario, fields.collect::<String>())
    }
}

/// Converts a time in virtual nanoseconds to seconds.
pub(super) fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 / 1e9
}

/// Runs each scenario under each policy. Results are in the order of the scenarios.
pub(super) fn compare<S: Comparable>(
    scenarios: &[S],
    policies: &[Policy<S::Policy>],
) -> Vec<Comparison<S::Metrics>> {
    let all: Vec<_> = scenarios.iter().map(|scenario| (scenario, policies)).collect();
    compare_each(&all)
}

/// Runs each scenario under its own policies. Results are in the order of the scenarios.
pub(super) fn compare_each<S: Comparable>(
    scenarios: &[(&S, &[Policy<S::Policy>])],
) -> Vec<Comparison<S::Metrics>> {
    let ideals: Vec<f64> = scenarios.iter().map(|(scenario, _)| scenario.ideal_s()).collect();
    let places = scenarios.iter().enumerate();
    let runs: Vec<_> = places
        .flat_map(|(place, (_, policies))| policies.iter().map(move |policy| (place, policy)))
        .collect();
    let outcomes = in_parallel_telling(&plural(runs.len(), "run"), runs.len(), |index, tell| {
        let (place, policy) = runs[index];
        Outcome::new(&policy.spec, ideals[place], scenarios[place].0.run_under(&policy.strategy, tell))
    });
    let mut outcomes = outcomes.into_iter();
    let mut comparisons = Vec::new();
    for (&(scenario, policies), &ideal_s) in scenarios.iter().zip(&ideals) {
        let mut comparison = scenario.comparison(ideal_s, outcomes.by_ref().take(policies.len()).collect());
        comparison.tell_savings();
        comparisons.push(comparison);
    }
    comparisons
}

/// Runs the scenarios and writes a table after each.
pub(super) fn write_tables<S: Comparable>(
    scenarios: &[S],
    policies: &[Policy<S::Policy>],
    out: &mut dyn Write,
) -> Result<Vec<Comparison<S::Metrics>>, Error> {
    let mut comparisons = Vec::new();
    for (place, scenario) in scenarios.iter().enumerate() {
        if place > 0 {
            writeln!(out)?;
        }
        let comparison = compare(std::slice::from_ref(scenario), policies);
        table::write(&comparison[0], &scenario.about(), out)?;
        out.flush()?;
        comparisons.extend(comparison);
    }
    table::write_legend::<S::Metrics>(out)?;
    Ok(comparisons)
}

/// Returns an error if a run is incomplete.
pub(super) fn all_complete<M: Metrics>(comparisons: &[Comparison<M>]) -> Result<(), Error> {
    let runs: usize = comparisons.iter().map(|comparison| comparison.outcomes.len()).sum();
    let incomplete = comparisons.iter().flat_map(|comparison| {
        comparison.outcomes.iter().filter_map(|outcome| {
            let complaint = outcome.metrics.complaint()?;
            Some(format!("{} in {}: {complaint}", outcome.policy, comparison.title()))
        })
    });
    let incomplete: Vec<String> = incomplete.collect();
    match incomplete.first() {
        None => Ok(()),
        Some(first) => Err(Error::Incomplete { incomplete: incomplete.len(), runs, first: first.clone() }),
    }
}

/// Calls `run` for `0..runs` in parallel and returns the results in order. Shows on a terminal which part of `what` is
/// done.
pub(crate) fn in_parallel<R: Send>(what: &str, runs: usize, run: impl Fn(usize) -> R + Sync) -> Vec<R> {
    in_parallel_telling(what, runs, |index, _| run(index))
}

/// The same, for runs that may tell which part of them is done.
fn in_parallel_telling<R: Send>(
    what: &str,
    runs: usize,
    run: impl Fn(usize, &dyn Fn(f64)) -> R + Sync,
) -> Vec<R> {
    let bar = if runs > 0 && stderr().is_terminal() {
        ProgressBar::new(runs as u64 * RUN_STEPS)
    } else {
        ProgressBar::hidden()
    };
    let style = ProgressStyle::with_template("{wide_bar} {percent} % of {msg}, {eta} left");
    bar.set_style(style.expect("the template is well formed"));
    bar.set_message(what.to_owned());
    let next = Mutex::new(0..runs);
    let take = || next.lock().expect("nobody panics while taking a number").next();
    let results = Mutex::new((0..runs).map(|_| None).collect::<Vec<Option<R>>>());
    let work = || {
        while let Some(index) = take() {
            let told = Cell::new(0);
            let tell = |done: f64| {
                let steps = (done * RUN_STEPS as f64) as u64;
                bar.inc(steps.saturating_sub(told.replace(steps)));
            };
            let result = run(index, &tell);
            results.lock().expect("nobody panics while storing a result")[index] = Some(result);
            tell(1.0);
        }
    };
    thread::scope(|scope| {
        // This thread also works. It is the only one if no thread can be started.
        for _ in 1..thread::available_parallelism().map_or(1, usize::from).min(runs) {
            if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
    bar.finish_and_clear();
    let results = results.into_inner().expect("nobody panics while storing a result");
    results.into_iter().map(|result| result.expect("every number was taken")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_stay_with_their_policy() {
        let list = |text| specs(text).unwrap();
        assert_eq!(list("static,leases"), ["static", "leases"]);
        assert_eq!(
            list("static,ruper,interval=60,t-min=5,leases"),
            ["static", "ruper,interval=60,t-min=5", "leases"]
        );
        assert_eq!(list("static,chunk=1; static"), ["static,chunk=1", "static"]);
        for bad in ["", "static,", "chunk=1", "static;chunk=1"] {
            assert!(specs(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn results_are_in_the_order_of_their_numbers() {
        assert_eq!(
            in_parallel("", 1000, |index| index * 2),
            (0..1000).map(|index| index * 2).collect::<Vec<_>>()
        );
        assert!(in_parallel("", 0, |index| index).is_empty());
    }
}
