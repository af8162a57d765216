//! The notes of one worker of a pool on its time: for the report, and for the record of the run.

use std::ops::Range;
use std::sync::Arc;

use crate::ids::{Rank, SyncId, WorkerId};
use crate::measure::meter::Published;
use crate::pools::report::PoolWorker;
use crate::trace::Part;
use crate::trace::recorder::Recorder;
use crate::trace::recording::Recording;

/// One worker's notes. Its time is cut into stretches that follow each other; each is noted when it ends.
pub(super) struct WorkerLog {
    pub(super) record: PoolWorker,
    recorder: Option<Recorder>,
    /// End of the last stretch.
    last_ns: u64,
    /// Time without work, but for that when it was parked, since it was published last.
    idle_ns: u64,
    /// CPU time in iterations when it was published last.
    published_cpu_ns: u64,
}

impl WorkerLog {
    pub(super) fn new(recording: &Arc<Recording>, rank: Rank, worker: WorkerId, now_ns: u64) -> WorkerLog {
        let record = PoolWorker { rank: rank.0, worker: worker.0, ..PoolWorker::default() };
        let recorder = Recorder::new(recording, worker, now_ns);
        WorkerLog { record, recorder, last_ns: now_ns, idle_ns: 0, published_cpu_ns: 0 }
    }

    /// It asked the policy, which sent messages to these ranks.
    pub(super) fn asked(&mut self, sent: &[u32], now_ns: u64) {
        self.record.policy_ns += now_ns - self.last_ns;
        self.last_ns = now_ns;
        if let Some(recorder) = &mut self.recorder {
            recorder.runtime(Part::Decide, SyncId(0), now_ns);
            recorder.pool_sent(sent);
        }
    }

    /// End of the last stretch.
    pub(super) fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// It took an order, or merged what it had kept apart.
    pub(super) fn waited(&mut self, now_ns: u64) {
        self.idle_ns += now_ns - self.last_ns;
        self.rested(now_ns);
    }

    /// It was parked.
    pub(super) fn rested(&mut self, now_ns: u64) {
        self.last_ns = now_ns;
        if let Some(recorder) = &mut self.recorder {
            recorder.idle(now_ns);
        }
    }

    /// It executed a range of iterations until `now_ns`, and had the vCPU for `cpu_ns`.
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

    /// The times since the last call, with its CPU clock.
    pub(super) fn published(&mut self, cpu_clock_ns: u64) -> Published {
        let charged_ns = self.record.cpu_ns - self.published_cpu_ns;
        self.published_cpu_ns = self.record.cpu_ns;
        Published { cpu_clock_ns, charged_ns, idle_ns: std::mem::take(&mut self.idle_ns) }
    }
}

/// Also when it panics.
impl Drop for WorkerLog {
    fn drop(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.finish();
        }
    }
}
