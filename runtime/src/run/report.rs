//! The part of a report that is the same for arrays, pools and supersteps.

use serde::{Deserialize, Serialize};

use crate::measure::topology::plan::Plan;
use crate::text::counted;
use crate::trace::{ClockOffset, RankProfile, RunRecord};

/// The facts of a finished run of any shape. Reports serialise them as their own fields, so a format must name its
/// fields, as JSON does.
///
/// ```
/// let report = caribou::Report::default();
/// assert_eq!(report.run.wall_ns, 0);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunReport {
    /// Time from the set-up of all ranks to the end of the last rank, ns. With arrays it includes some ms of measuring
    /// the speed of vCPUs. With pools it lasts until the last rank had the result and had disconnected.
    pub wall_ns: u64,
    /// Hosts, ranks, workers and their vCPUs, in one line; for a simulation its seed.
    pub placement: String,
    /// Workers of each rank; empty if arrays were simulated.
    pub workers_per_rank: Vec<u32>,
    /// True if every worker had a vCPU for itself.
    pub pinned: bool,
    /// Each rank's clock, in rank order; empty if all ranks were in one process.
    pub clocks: Vec<ClockOffset>,
    /// The record of the run.
    #[serde(rename = "run")]
    pub record: RunRecord,
    /// How each rank of this process spent its time. Empty for a simulation, and with `CARIBOU_PROFILE=off` unless the
    /// run writes a trace.
    pub profiles: Vec<RankProfile>,
}

impl RunReport {
    /// The report of a simulated run that begins. Logs the placement, as other runs do.
    pub(crate) fn of_simulation(seed: u64, (ranks, workers): (u32, u32), lb: &str) -> RunReport {
        let ranks = counted(ranks as usize, "rank", "ranks");
        let workers = counted(workers as usize, "worker", "workers");
        let placement = format!("simulated by seed {seed}, in virtual time: {ranks} x {workers}");
        tracing::info!(lb, "{placement}");
        let record = RunRecord { lb: lb.into(), ..RunRecord::default() };
        RunReport { placement, record, ..RunReport::default() }
    }

    /// Adds the placement of ranks.
    pub(crate) fn placed(self, plan: &Plan) -> RunReport {
        RunReport {
            placement: plan.to_string(),
            workers_per_rank: plan.workers(),
            pinned: plan.is_pinned(),
            ..self
        }
    }
}
