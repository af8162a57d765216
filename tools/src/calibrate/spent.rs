//! Reads from the profile of a run what its ranks did beside waiting.

use caribou::Report;
use caribou::trace::{Activity, Part};

/// CPU time of the first worker of a rank, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Spent {
    /// Handlers of chunks, with the messages that they send.
    pub(super) handlers: f64,
    /// Measuring chunks, reports, and collecting them.
    pub(super) measure: f64,
    /// Predicting and deciding.
    pub(super) decide: f64,
    /// Taking chunks out of a rank, and putting them into another.
    pub(super) migrate: f64,
    /// Receiving packets, and deferring messages.
    pub(super) keep: f64,
    /// Time in which others had the vCPU.
    pub(super) lost: f64,
    /// Number of windows or syncs that the rank has measured.
    pub(super) phases: f64,
}

impl Spent {
    /// The part of the time in which the rank had its vCPU when it had work.
    pub(super) fn share(&self) -> f64 {
        self.all() / (self.all() + self.lost).max(1.0)
    }

    /// All work.
    pub(super) fn all(&self) -> f64 {
        self.handlers + self.measure + self.decide + self.migrate + self.keep
    }
}

/// What a rank did.
pub(super) fn spent(report: &Report, rank: usize) -> Spent {
    let mut spent = Spent::default();
    let Some(profile) = report.run.profiles.get(rank) else { return spent };
    for row in profile.workers.first().iter().flat_map(|profile| &profile.rows) {
        let ns = row.ns.iter().sum::<u64>() as f64;
        match row.activity {
            Activity::Kind(_) => spent.handlers += ns,
            Activity::Runtime(Part::Measure) => {
                spent.measure += ns;
                // A report has two slices: before and after it is handed over.
                spent.phases += row.calls.iter().sum::<u64>() as f64 / 2.0;
            }
            Activity::Runtime(Part::Decide) => spent.decide += ns,
            Activity::Runtime(Part::Migrate) => spent.migrate += ns,
            Activity::Runtime(Part::Keep) => spent.keep += ns,
            Activity::Lost => spent.lost += ns,
            _ => {}
        }
    }
    spent
}
