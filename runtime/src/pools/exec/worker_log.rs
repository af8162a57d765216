//! Accounts for the time of one worker of a pool, for the report and the record of the run.

use std::ops::Range;
use std::sync::Arc;

use crate::ids::{Rank, SyncId, WorkerId};
use crate::measure::meter::Published;
use crate::pools::report::PoolWorker;
use crate::trace::Part;
use crate::trace::recorder::Recorder;
use crate::trace::recording::Recording;

/// The time accounting of one worker. Its time is a sequence of intervals, each recorded when it ends.
pub(super) struct WorkerLog {
    pub(super) record: PoolWorker,
    recorder: Option<Recorder>,
    /// End of the last interval.
    last_ns: u64,
    /// Time without work since the last [`published`](Self::published), except parked time.
    idle_ns: u64,
    /// CPU time in iterations at the last [`published`](Self::published).
    published_cpu_ns: u64,
}

impl WorkerLog {
    pub(super) fn new(recording: &Arc<Recording>, rank: Rank, worker: WorkerId, now_ns: u64) -> WorkerLog {
        let record = PoolWorker { rank: rank.0, worker: worker.0, ..PoolWorker::default() };
        let recorder = Recorder::new(recording, worker, now_ns);
        WorkerLog { record, recorder, last_ns: now_ns, idle_ns: 0, published_cpu_ns: 0 }
    }

    /// Ends an interval in which the worker called the policy, which sent messages to these ranks.
    pub(super) fn asked(&mut self, sent: &[u32], now_ns: u64) {
        self.record.policy_ns += now_ns - self.last_ns;
        self.last_ns = now_ns;
        if let Some(recorder) = &mut self.recorder {
            recorder.runtime(Part::Decide, SyncId(0), now_ns);
            recorder.pool_sent(sent);
        }
    }

    /// End of the last interval.
    pub(super) fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// Ends an interval in which the worker took an order, or merged a speculative result.
    pub(super) fn waited(&mut self, now_ns: u64) {
        self.idle_ns += now_ns - self.last_ns;
        self.rested(now_ns);
    }

    /// Ends an interval in which the worker was parked.
    pub(super) fn rested(&mut self, now_ns: u64) {
        self.last_ns = now_ns;
        if let Some(recorder) = &mut self.recorder {
            recorder.idle(now_ns);
        }
    }

    /// Ends an interval in which the worker executed a range of iterations until `now_ns`, with `cpu_ns` of CPU time.
    pub(super) fn executed(
        &mut self,
        range: &Range<u64>,
        cpu_ns: u64,
        now_ns: u64,
        clock: impl FnOnce() -> u64,
    ) {
        self.record.cpu_ns += cpu_ns;
        self.record.busy_ns += now_ns - self.last_ns;
        self.record.end_ns = now_ns;
        self.record.ranges += 1;
        self.last_ns = now_ns;
        if let Some(recorder) = &mut self.recorder {
            recorder.executed(range.start, range.end - range.start, cpu_ns, now_ns);
            recorder.close_batch(0);
            if recorder.keeps_events() {
                recorder.encode();
                self.last_ns = clock();
                recorder.runtime(Part::Flush, SyncId(0), self.last_ns);
            }
        }
    }

    /// The times since the last call, with the CPU clock of the worker.
    pub(super) fn published(&mut self, cpu_clock_ns: u64) -> Published {
        let charged_ns = self.record.cpu_ns - self.published_cpu_ns;
        self.published_cpu_ns = self.record.cpu_ns;
        Published { cpu_clock_ns, charged_ns, idle_ns: std::mem::take(&mut self.idle_ns) }
    }
}

/// The recording is finished also when the worker panics.
impl Drop for WorkerLog {
    fn drop(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.finish();
        }
    }
}
