//! The report of a run of any shape of program.

use serde::{Deserialize, Serialize};

use crate::measure::topology::plan::Plan;
use crate::text::counted;
use crate::trace::{ClockOffset, RankProfile, RunRecord};

/// The facts of a finished run of any shape. Reports encode them as fields of their own, so that a format has to know its
/// fields by their names, as JSON does.
///
/// ```
/// let report = caribou::Report::default();
/// assert_eq!(report.run.wall_ns, 0);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunReport {
    /// From the moment all ranks were set up to the end of the last of them, ns. Of arrays, measuring the vCPUs' speed
    /// takes the first ms of it; of a pool, until the last rank had the result and had taken leave.
    pub wall_ns: u64,
    /// Hosts, ranks, workers and where they sit, in one line; of a simulation its seed.
    pub placement: String,
    /// Workers of each rank; empty where arrays were simulated.
    pub workers_per_rank: Vec<u32>,
    /// True if every worker had a vCPU to itself.
    pub pinned: bool,
    /// Each rank's clock, in rank order; empty where all ranks are in one process.
    pub clocks: Vec<ClockOffset>,
    /// The record of the run.
    #[serde(rename = "run")]
    pub record: RunRecord,
    /// The profile of the time of each rank of this process. Empty under simulation, and with `CARIBOU_PROFILE=off`,
    /// unless the run writes a trace.
    pub profiles: Vec<RankProfile>,
}

impl RunReport {
    /// Of a run in virtual time that begins. Says so, as other runs say where they run.
    pub(crate) fn of_simulation(seed: u64, (ranks, workers): (u32, u32), lb: &str) -> RunReport {
        let ranks = counted(ranks as usize, "rank", "ranks");
        let workers = counted(workers as usize, "worker", "workers");
        let placement = format!("simulated by seed {seed}, in virtual time: {ranks} x {workers}");
        tracing::info!(lb, "{placement}");
        let record = RunRecord { lb: lb.into(), ..RunRecord::default() };
        RunReport { placement, record, ..RunReport::default() }
    }

    /// With the placement of ranks.
    pub(crate) fn placed(self, plan: &Plan) -> RunReport {
        RunReport {
            placement: plan.to_string(),
            workers_per_rank: plan.workers(),
            pinned: plan.is_pinned(),
            ..self
        }
    }
}
