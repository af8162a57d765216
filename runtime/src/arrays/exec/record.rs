//! The measurements of a rank: the counters of its workers, and the recording of the run.

use std::sync::Arc;

use crate::ids::WorkerId;
use crate::measure::counters::{RankCounters, SampleTrigger, WorkerCounters};
use crate::measure::records::Sample;
use crate::measure::speed::CalibrationRounds;
use crate::trace::recording::Recording;

/// The gauges of a rank, one per worker, and its recording.
pub(crate) struct RankMeasurements {
    gauges: RankCounters,
    recording: Arc<Recording>,
    /// True if the cost of handlers is measured.
    measures: bool,
}

impl RankMeasurements {
    pub(crate) fn new(gauges: RankCounters, recording: Arc<Recording>, measures: bool) -> RankMeasurements {
        RankMeasurements { gauges, recording, measures }
    }

    pub(crate) fn measures(&self) -> bool {
        self.measures
    }

    pub(crate) fn recording(&self) -> &Arc<Recording> {
        &self.recording
    }

    pub(crate) fn workers(&self) -> usize {
        self.gauges.workers.len()
    }

    pub(crate) fn gauge(&self, worker: WorkerId) -> &WorkerCounters {
        &self.gauges.workers[worker.index()]
    }

    /// The rounds in which workers measure their speed again.
    pub(crate) fn rounds(&self) -> &CalibrationRounds {
        &self.gauges.rounds
    }

    /// Begins the run and its first phase.
    pub(crate) fn begin(&self, now_ns: u64) {
        if self.measures {
            self.gauges.begin(now_ns);
            if self.recording.has_file() {
                self.gauges.begin_process_scans(now_ns);
            }
        }
    }

    /// Begins the phase of a rank that had no chunks and gets some.
    pub(crate) fn begin_phase(&self, now_ns: u64) {
        if self.measures {
            self.gauges.begin_phase(now_ns);
        }
    }

    /// Takes the sample of the rank since its phase began, and ends the phase. The sample is empty if nothing is
    /// measured.
    pub(crate) fn sample(&self, now_ns: u64) -> Sample {
        if self.measures { self.gauges.sample(now_ns) } else { Sample::default() }
    }

    /// The part of the time since the last sample in which the workers were not idle. None without measurement.
    pub(crate) fn busy(&self, now_ns: u64) -> Option<f64> {
        self.gauges.busy(now_ns).filter(|_| self.measures)
    }

    /// Records a sample of the rank with its number of `chunks`, unless one was recorded just before.
    pub(crate) fn observe(&self, when: SampleTrigger, now_ns: u64, chunks: impl FnOnce() -> u64) {
        if self.measures
            && let Some(measured) = self.gauges.sample_for_record(now_ns, when)
        {
            let sync = match when {
                SampleTrigger::AtSync(sync) => Some(sync.0),
                SampleTrigger::Periodic | SampleTrigger::AtEnd => None,
            };
            self.recording.sample(Sample { sync, chunks: chunks(), ..measured });
            self.recording.competing_processes(|| self.gauges.competing_processes(&measured));
        }
    }
}
