//! Compares two sides of several runs each.

use std::collections::{BTreeMap, BTreeSet};

use caribou::trace::Shape;
use lb_strategies::median;

use super::measures::Measures;

/// Runs of the same program.
pub(super) struct Side(Vec<Measures>);

impl Side {
    pub(super) fn new(runs: Vec<Measures>) -> Side {
        Side(runs)
    }

    /// Returns whether there are enough runs to measure noise.
    pub(super) fn noise_known(&self) -> bool {
        self.0.len() > 1
    }

    /// Reason why the sides cannot be compared; none if they can.
    pub(super) fn unlike(&self, other: &Side) -> Option<String> {
        let runs = self.0.iter().chain(&other.0);
        runs.skip(1).find_map(|run| self.0[0].started.unlike(&run.started))
    }

    pub(super) fn has_no_chunks(&self) -> bool {
        self.0.iter().all(|run| run.chunks_ns.is_empty())
    }

    pub(super) fn has_supersteps(&self) -> bool {
        self.0.iter().all(|run| run.started.shape == Shape::Supersteps)
    }

    pub(super) fn runs_text(&self) -> String {
        self.0.iter().map(|run| run.run_id.as_str()).collect::<Vec<_>>().join(",")
    }

    pub(super) fn figure(&self, of: impl Fn(&Measures) -> f64) -> Figure {
        let values: Vec<f64> = self.0.iter().map(of).collect();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let median = median(values).expect("a side has a run");
        Figure { median, spread: self.noise_known().then_some(most - least) }
    }
}

/// A figure of one side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Figure {
    pub(super) median: f64,
    /// Largest minus smallest value; none for one run.
    pub(super) spread: Option<f64>,
}

/// A figure of both sides.
pub(super) struct Change {
    pub(super) name: String,
    pub(super) before: Figure,
    pub(super) after: Figure,
}

impl Change {
    pub(super) fn of(name: &str, before: &Side, after: &Side, of: impl Fn(&Measures) -> f64) -> Change {
        Change { name: name.into(), before: before.figure(&of), after: after.figure(&of) }
    }

    pub(super) fn ns(&self) -> f64 {
        self.after.median - self.before.median
    }

    /// After over before; 1 if they are equal.
    pub(super) fn ratio(&self) -> f64 {
        if self.ns() == 0.0 { 1.0 } else { self.after.median / self.before.median }
    }

    /// Direction of the change; none if the noise is unknown.
    pub(super) fn verdict(&self) -> Option<&'static str> {
        let spread = match (self.before.spread, self.after.spread) {
            (Some(before), Some(after)) => before.max(after),
            (one, other) => one.or(other)?,
        };
        Some(match self.ns() {
            change if change.abs() <= spread => "same",
            change if change > 0.0 => "more",
            _ => "less",
        })
    }
}

/// The figures that either side has, the largest change first.
pub(super) fn changes(
    before: &Side,
    after: &Side,
    of: impl Fn(&Measures) -> &BTreeMap<String, f64>,
) -> Vec<Change> {
    let names: BTreeSet<&String> = before.0.iter().chain(&after.0).flat_map(|run| of(run).keys()).collect();
    let value = |name: &String| {
        let (name, of) = (name.clone(), &of);
        move |run: &Measures| of(run).get(&name).copied().unwrap_or(0.0)
    };
    let mut changes: Vec<Change> =
        names.into_iter().map(|name| Change::of(name, before, after, value(name))).collect();
    changes.sort_by(|one, other| other.ns().abs().total_cmp(&one.ns().abs()));
    changes
}
