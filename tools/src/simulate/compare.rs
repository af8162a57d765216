//! Runs scenarios under policies, on all cores of this machine.
//!
//! Each run is alone in its virtual time, so that the outcome does not depend on how many run at once.

use std::io::{IsTerminal, stderr};
use std::sync::Mutex;
use std::thread;

use indicatif::{ProgressBar, ProgressStyle};
use lb_strategies::POOLS;
use lb_strategies::cluster::Scenario;
use lb_strategies::pool::PoolStrategy;
use lb_strategies::spec::split_list;
use serde::Serialize;

use super::outcome::Outcome;
use crate::Error;

/// A policy with the specification that a person wrote for it.
pub(super) struct Policy {
    pub(super) spec: String,
    strategy: Box<dyn PoolStrategy>,
}

impl Policy {
    /// The policy that `spec` describes.
    pub(super) fn parse(spec: &str) -> Result<Self, Error> {
        let strategy = POOLS.parse(spec);
        let strategy = strategy.map_err(|source| Error::Policy { spec: spec.to_owned(), source })?;
        Ok(Self { spec: spec.to_owned(), strategy })
    }

    /// The policies in a list as `--compare` takes it; all in the table if there is no list.
    pub(super) fn list(list: Option<&str>) -> Result<Vec<Self>, Error> {
        match list {
            Some(list) => specs(list)?.iter().map(|spec| Self::parse(spec)).collect(),
            None => POOLS.iter().map(|entry| Self::parse(entry.name)).collect(),
        }
    }

    /// Tells whether it has this parameter.
    pub(super) fn takes(&self, parameter: &str) -> bool {
        let entry = POOLS.find(&self.spec);
        entry.is_some_and(|entry| entry.parameters.iter().any(|known| known.name == parameter))
    }
}

/// The policies in a list, with their parameters.
fn specs(list: &str) -> Result<Vec<String>, Error> {
    split_list(list).ok_or_else(|| {
        Error::Usage(format!("--compare {list:?}: expected names of policies as in static,leases"))
    })
}

/// Results of all policies in one scenario.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Comparison {
    pub(super) scenario: String,
    pub(super) iterations: u64,
    /// Workers of each rank.
    pub(super) workers: Vec<u32>,
    /// Time of the best schedule, in seconds.
    pub(super) ideal_s: f64,
    pub(super) outcomes: Vec<Outcome>,
}

/// Runs each scenario under each policy; the order is theirs.
pub(super) fn compare(scenarios: &[Scenario], policies: &[Policy]) -> Vec<Comparison> {
    let ideals: Vec<f64> = scenarios.iter().map(Scenario::ideal_s).collect();
    let runs = scenarios.len() * policies.len();
    let outcomes = in_parallel(runs, |index| {
        let (which, policy) = (index / policies.len(), &policies[index % policies.len()]);
        let scenario = &scenarios[which];
        Outcome::new(&policy.spec, scenario, ideals[which], &scenario.run(&*policy.strategy))
    });
    let mut outcomes = outcomes.into_iter();
    let of_scenario = |(scenario, &ideal_s): (&Scenario, &f64)| Comparison {
        scenario: scenario.name.clone(),
        iterations: scenario.pool.iterations,
        workers: scenario.pool.workers.clone(),
        ideal_s,
        outcomes: outcomes.by_ref().take(policies.len()).collect(),
    };
    scenarios.iter().zip(&ideals).map(of_scenario).collect()
}

/// The results of `run` for `0..runs`, in order; shows on a terminal how far they are.
fn in_parallel<R: Send>(runs: usize, run: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let bar = if runs > 1 && stderr().is_terminal() {
        ProgressBar::new(runs as u64)
    } else {
        ProgressBar::hidden()
    };
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} runs, {eta} left");
    bar.set_style(style.expect("the template is well formed"));
    let next = Mutex::new(0..runs);
    let take = || next.lock().expect("nobody panics while taking a number").next();
    let results = Mutex::new((0..runs).map(|_| None).collect::<Vec<Option<R>>>());
    let work = || {
        while let Some(index) = take() {
            let result = run(index);
            results.lock().expect("nobody panics while storing a result")[index] = Some(result);
            bar.inc(1);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from).min(runs) {
            scope.spawn(work);
        }
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
            list("static,ruper,checkpoint=60,t-min=5,leases"),
            ["static", "ruper,checkpoint=60,t-min=5", "leases"]
        );
        assert_eq!(list("static,chunk=1; static"), ["static,chunk=1", "static"]);
        for bad in ["", "static,", "chunk=1", "static;chunk=1"] {
            assert!(specs(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn results_are_in_the_order_of_their_numbers() {
        assert_eq!(
            in_parallel(1000, |index| index * 2),
            (0..1000).map(|index| index * 2).collect::<Vec<_>>()
        );
        assert!(in_parallel(0, |index| index).is_empty());
    }
}
