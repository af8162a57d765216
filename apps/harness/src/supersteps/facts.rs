//! Computes the facts of a run in supersteps, such as its excess over a run in which all workers always compute.

use caribou::report::RunReport;
use caribou::supersteps::SuperstepReport;
use serde::Serialize;

use crate::shape::Facts;
use crate::table::or_dash;
use crate::times::Times;

/// Facts of a run.
#[derive(Clone, Debug, Serialize)]
pub struct SuperstepFacts {
    /// The runtime's report of it.
    #[serde(flatten)]
    pub report: SuperstepReport,
    /// Mean milliseconds per step.
    pub step_ms: Option<f64>,
    /// Time in which the slowest worker of each step computed, over the average worker's; none where no worker computed.
    pub imbalance: Option<f64>,
    /// Units that moved to another worker, in all divisions.
    pub moved: u64,
    /// Jobs that were dropped because another worker was faster.
    pub dropped: u64,
    /// Time if all workers had always computed (the capacity bound), ns; none where no worker computed, and of
    /// a simulated run, whose virtual time does not pass while it computes.
    pub bound_ns: Option<u64>,
    /// The part by which the run took longer: 0.01 is one percent.
    pub excess: Option<f64>,
    /// Milliseconds of each step.
    pub steps_ms: Vec<f64>,
}

impl SuperstepFacts {
    pub(super) fn new(report: SuperstepReport, times: &Times) -> Self {
        Self {
            step_ms: times.mean_ms(0, u32::MAX),
            imbalance: imbalance(&report),
            moved: report.divisions.iter().map(|division| division.moved).sum(),
            dropped: report.workers.iter().map(|worker| worker.dropped).sum(),
            bound_ns: bound_ns(&report),
            excess: bound_ns(&report).map(|_| report.excess()),
            steps_ms: times.steps_ms(),
            report,
        }
    }
}

fn bound_ns(report: &SuperstepReport) -> Option<u64> {
    let simulated = report.run.workers_per_rank.is_empty();
    Some(report.bound_ns()).filter(|&bound_ns| bound_ns > 0 && !simulated)
}

fn imbalance(report: &SuperstepReport) -> Option<f64> {
    let sum: u64 = report.workers.iter().map(|worker| worker.computing_ns).sum();
    (sum > 0).then(|| report.slowest_ns as f64 * report.workers.len() as f64 / sum as f64)
}

impl Facts for SuperstepFacts {
    const STEP: &'static str = "step";
    const UNBALANCED: Option<&'static str> = Some("equal");
    const HEADINGS: &'static [&'static str] = &["imbalance", "divisions", "moved", "dropped"];
    const WORDS: &'static str = "imbalance: computing time of the slowest worker of each step over that of the \
        average worker; divisions: number after the first; moved: units that changed worker; dropped: jobs that \
        another worker finished first";

    fn cells(&self) -> Vec<String> {
        vec![
            or_dash(self.imbalance.map(|imbalance| format!("{imbalance:.2}"))),
            self.report.divisions.len().to_string(),
            self.moved.to_string(),
            self.dropped.to_string(),
        ]
    }

    fn lb(&self) -> &str {
        &self.report.lb
    }

    fn run(&self) -> &RunReport {
        &self.report.run
    }

    fn bound_s(&self) -> Option<f64> {
        self.bound_ns.map(|bound_ns| bound_ns as f64 / 1e9)
    }

    fn words(&self) -> String {
        let units: u64 = self.report.workers.iter().map(|worker| worker.units).sum();
        let longer = match self.excess {
            None => return format!("{} steps of {} units", self.report.steps, units),
            Some(excess) if excess < 1.0 => format!("{:.1} % longer than", 100.0 * excess),
            Some(excess) => format!("{:.1} times as long as", 1.0 + excess),
        };
        format!("{longer} if all workers had always computed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caribou::supersteps::{DivisionReport, SuperstepWorker};

    #[test]
    fn what_moved_was_dropped_and_could_have_been_is_told() {
        let worker = |weight, computing_ns, dropped| SuperstepWorker {
            weight,
            computing_ns,
            dropped,
            ..SuperstepWorker::default()
        };
        let report = SuperstepReport {
            steps: 10,
            weight: 12.0,
            elapsed_ns: 120,
            slowest_ns: 135,
            workers: vec![worker(60.0, 60, 1), worker(60.0, 120, 2)],
            divisions: vec![DivisionReport { moved: 3, ..DivisionReport::default() }],
            ..SuperstepReport::default()
        };
        let simulated = SuperstepFacts::new(report.clone(), &Times::default());
        assert_eq!((simulated.bound_ns, simulated.words().as_str()), (None, "10 steps of 0 units"));
        let mut real = report;
        real.run.workers_per_rank = vec![1, 1];
        let facts = SuperstepFacts::new(real, &Times::default());
        assert_eq!(facts.cells(), ["1.50", "1", "3", "3"]);
        assert_eq!(
            (facts.bound_ns, facts.words().as_str()),
            (Some(80), "50.0 % longer than if all workers had always computed")
        );
        let nothing = SuperstepFacts::new(SuperstepReport::default(), &Times::default());
        assert_eq!((nothing.imbalance, nothing.bound_s()), (None, None));
    }
}
