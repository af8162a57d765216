//! Shows the current activity of each worker, for the monitor and the watchdog.
//!
//! A worker publishes its activity by plain stores, which cost as much as keeping it private, and without reading a
//! clock. A monitor samples all activities periodically. An unchanged activity has been running since its first sample,
//! so durations are minimum durations.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use litemap::LiteMap;

use super::event::{ArrayId, ChunkId, NameId};
use super::recording::Recording;
use crate::ids::{Rank, SyncId, WorkerId};

/// In place of an array: the worker is idle.
const IDLE: ArrayId = ArrayId(u32::MAX - 1);
/// In place of an array: the worker of a pool executes iterations. The key is the first iteration.
const ITERATIONS: ArrayId = ArrayId(u32::MAX - 2);
/// In place of an array: the strategy decides a sync. The key is the number of the sync.
const DECISION: ArrayId = ArrayId(u32::MAX - 3);
/// In place of an array: the worker of a pool waits for its policy.
const WAITING: ArrayId = ArrayId(u32::MAX - 4);
/// In place of an array: the policy has released the worker, and the pool goes on.
const RELEASED: ArrayId = ArrayId(u32::MAX - 5);
/// In place of an array: the worker calls its policy.
const ASKING: ArrayId = ArrayId(u32::MAX - 6);
/// In place of an array: the worker sends and receives packets.
const PACKETS: ArrayId = ArrayId(u32::MAX - 7);
/// In place of an array: rank 0 is idle, and waits for replies of other ranks. The key is the number of the wave (of
/// requests for replies).
const OTHER_RANKS: ArrayId = ArrayId(u32::MAX - 8);
const UNNAMED: u32 = u32::MAX;

/// The current activity of one worker. Only that worker writes it.
pub(crate) struct AtWork {
    array: AtomicU32,
    key: AtomicU64,
    /// The kind of the message. Kinds are numbered only in a run with a profile.
    kind: AtomicU32,
    /// Number of handlers begun.
    begun: AtomicU64,
    /// Number of iterations whose results the worker has kept.
    done: AtomicU64,
}

/// A sample of a worker's activity.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ActivitySample {
    chunk: ChunkId,
    kind: u32,
    begun: u64,
}

impl ActivitySample {
    /// True if the worker waits for its policy, or the rank waits for other ranks.
    fn is_waiting(&self) -> bool {
        matches!(self.chunk.array, WAITING | RELEASED | OTHER_RANKS)
    }

    /// True if other workers may wait for this activity to end.
    fn is_executing(&self) -> bool {
        !self.is_waiting() && self.chunk.array != PACKETS
    }
}

impl AtWork {
    pub(crate) fn new() -> AtWork {
        AtWork {
            array: AtomicU32::new(IDLE.0),
            key: AtomicU64::new(0),
            kind: AtomicU32::new(UNNAMED),
            begun: AtomicU64::new(0),
            done: AtomicU64::new(0),
        }
    }

    /// Sets the current chunk.
    #[inline]
    pub(crate) fn set_chunk(&self, chunk: ChunkId) {
        self.array.store(chunk.array.0, Ordering::Relaxed);
        self.key.store(chunk.key, Ordering::Relaxed);
    }

    /// Counts the next handler. Only the worker itself calls this, so load and store need not be atomic together.
    #[inline]
    pub(crate) fn begin_handler(&self) {
        self.begun.store(self.begun().wrapping_add(1), Ordering::Relaxed);
    }

    /// Number of handlers begun.
    #[inline]
    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Sets the kind of the message that the handler takes.
    #[inline]
    pub(crate) fn set_kind(&self, kind: NameId) {
        self.kind.store(kind.0, Ordering::Relaxed);
    }

    /// Sets the activity to executing iterations from `first` on.
    pub(crate) fn set_iterations(&self, first: u64) {
        self.set_chunk(ChunkId { array: ITERATIONS, key: first });
    }

    /// Sets the number of iterations whose results the worker has kept.
    pub(crate) fn set_done(&self, done: u64) {
        self.done.store(done, Ordering::Relaxed);
    }

    /// Sets the activity to a call of the policy, including the wait while other workers call it.
    pub(crate) fn set_asking(&self) {
        self.begin_handler();
        self.set_hook(ChunkId { array: ASKING, key: 0 });
    }

    /// Sets the activity to waiting for the policy. If all workers wait, the policy will not give any of them work.
    pub(crate) fn set_waiting(&self) {
        self.set_hook(ChunkId { array: WAITING, key: 0 });
    }

    /// Sets the activity to released by the policy.
    pub(crate) fn set_released(&self) {
        self.set_hook(ChunkId { array: RELEASED, key: 0 });
    }

    /// Sets the activity to the decision of this sync by the strategy.
    pub(crate) fn set_deciding(&self, sync: SyncId) {
        self.set_hook(ChunkId { array: DECISION, key: sync.0 });
    }

    /// Sets the activity to sending and receiving packets.
    #[inline]
    pub(crate) fn set_exchanging(&self) {
        self.set_chunk(ChunkId { array: PACKETS, key: 0 });
    }

    /// Sets the activity to a hook of this chunk, or to work of the runtime, outside of handlers.
    #[inline]
    pub(crate) fn set_hook(&self, chunk: ChunkId) {
        self.set_chunk(chunk);
        self.kind.store(UNNAMED, Ordering::Relaxed);
    }

    /// Sets the activity to idle.
    #[inline]
    pub(crate) fn set_idle(&self) {
        self.array.store(IDLE.0, Ordering::Relaxed);
    }

    /// Samples the activity. If the parts come from two handlers, the next sample differs.
    fn look(&self) -> Option<ActivitySample> {
        let array = ArrayId(self.array.load(Ordering::Relaxed));
        let key = self.key.load(Ordering::Relaxed);
        let (kind, begun) = (self.kind.load(Ordering::Relaxed), self.begun.load(Ordering::Relaxed));
        (array != IDLE).then_some(ActivitySample { chunk: ChunkId { array, key }, kind, begun })
    }
}

/// An activity of a worker, or of the strategy on a separate thread, that has been running for some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Running {
    pub(crate) rank: Rank,
    /// None for a strategy on a separate thread, and for a wait for other ranks.
    pub(crate) worker: Option<WorkerId>,
    /// The name of the chunk, or a description if the activity is not of a chunk.
    pub(crate) what: String,
    /// The kind of the message, if it is known.
    pub(crate) kind: Option<String>,
    /// Minimum duration so far, ns.
    pub(crate) long_ns: u64,
}

impl Running {
    pub(crate) fn place(&self) -> (Rank, Option<WorkerId>) {
        (self.rank, self.worker)
    }
}

impl std::fmt::Display for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rank {}", self.rank)?;
        if let Some(worker) = self.worker {
            write!(f, ", worker {worker}")?;
        }
        write!(f, " has run {}", self.what)?;
        if let Some(kind) = &self.kind {
            write!(f, " in its handler of `{kind}`")?;
        }
        let long_s = self.long_ns as f64 / 1e9;
        write!(f, " for {long_s:.*} s", usize::from(long_s < 10.0))
    }
}

/// Periodic samples of all workers of a process.
#[derive(Default)]
pub(crate) struct ActivitySampler {
    last_ns: u64,
    /// The last sample, and the time since the first equal one, ns; by rank and worker, or by rank for its strategy.
    seen: LiteMap<(Rank, Option<WorkerId>), (ActivitySample, u64)>,
}

impl ActivitySampler {
    /// Samples all workers. Returns the activities that have been running since an earlier sample.
    ///
    /// At most `counts_ns` of the time since the last sample count, because a process may have been stopped meanwhile.
    pub(crate) fn look(&mut self, ranks: &[Arc<Recording>], now_ns: u64, counts_ns: u64) -> Vec<Running> {
        let passed_ns = now_ns.saturating_sub(self.last_ns).min(counts_ns);
        self.last_ns = now_ns;
        let before = std::mem::take(&mut self.seen);
        for rank in ranks {
            let workers =
                (0..).map(|worker| Some(WorkerId(worker))).zip(rank.at_work.iter().map(|worker| &**worker));
            for (worker, at_work) in workers.chain([(None, &rank.strategy_activity)]) {
                let Some(mut sample) = at_work.look() else { continue };
                if sample.chunk.array == OTHER_RANKS {
                    // Worker 0 publishes the wave when it becomes idle, and may have worked since then.
                    sample.begun = rank.at_work.iter().map(|worker| worker.begun()).sum();
                }
                let place = (rank.rank(), worker);
                let long_ns = match before.get(&place) {
                    Some(&(seen, long_ns)) if seen == sample => long_ns + passed_ns,
                    _ => 0,
                };
                self.seen.insert(place, (sample, long_ns));
            }
        }
        // While another worker executes, workers and ranks may have to wait for it.
        let elsewhere = ranks.iter().any(|rank| rank.other_ranks_busy.load(Ordering::Relaxed));
        if elsewhere || self.seen.values().any(|(sample, _)| sample.is_executing()) {
            let waiting = self.seen.iter_mut().filter(|(_, (sample, _))| sample.is_waiting());
            waiting.for_each(|(_, (_, long_ns))| *long_ns = 0);
        }
        let in_words = |rank: &Arc<Recording>| {
            let first = self.seen.as_slice().partition_point(|&((of, _), _)| of < rank.rank());
            let its = self.seen.as_slice()[first..].iter().take_while(|&&((of, _), _)| of == rank.rank());
            let long = its.filter(|&&(_, (_, long_ns))| long_ns > 0);
            long.map(|&((_, worker), (sample, long_ns))| rank.running(worker, sample, long_ns))
                .collect::<Vec<_>>()
        };
        ranks.iter().flat_map(in_words).collect()
    }
}

impl Recording {
    /// Number of iterations of this rank whose results its workers have kept.
    pub(crate) fn iterations(&self) -> u64 {
        self.at_work.iter().map(|worker| worker.done.load(Ordering::Relaxed)).sum()
    }

    /// Number of handlers that the workers of this rank have begun, and of iterations that they have executed.
    #[cfg(feature = "mpi")]
    pub(crate) fn begun(&self) -> u64 {
        let handlers: u64 = self.at_work.iter().map(|worker| worker.begun()).sum();
        handlers + self.iterations()
    }

    /// The samples of all workers of this rank, if all of them wait. If two calls return equal samples, no worker has
    /// done anything in between.
    pub(crate) fn all_waiting(&self) -> Option<Vec<ActivitySample>> {
        self.at_work.iter().map(|worker| worker.look().filter(ActivitySample::is_waiting)).collect()
    }

    /// Publishes the wave whose replies rank 0 waits for, or none. Worker 0 of rank 0 calls this when it becomes idle.
    pub(crate) fn waits_for_others(&self, wave: Option<u64>) {
        let turn = |from: ArrayId, to: ArrayId| {
            // Not if a decision has begun on another thread.
            let _ = self.strategy_activity.array.compare_exchange(
                from.0,
                to.0,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        };
        let Some(wave) = wave else { return turn(OTHER_RANKS, IDLE) };
        if self.strategy_activity.array.load(Ordering::Relaxed) != DECISION.0 {
            self.strategy_activity.key.store(wave, Ordering::Relaxed);
        }
        turn(IDLE, OTHER_RANKS);
    }

    /// Describes a sample for users.
    fn running(&self, worker: Option<WorkerId>, sample: ActivitySample, long_ns: u64) -> Running {
        let ActivitySample { chunk, kind, .. } = sample;
        let named = self.name_chunk.get().and_then(|name| name(chunk));
        let is_chunk = named.is_some();
        let strategy = self.strategy.get().map_or("", |name| name);
        let what = named.unwrap_or_else(|| match chunk.array {
            DECISION => format!("the strategy `{strategy}` for sync {}", chunk.key),
            WAITING => format!("nothing, because the policy `{strategy}` assigns no work,"),
            RELEASED => format!("nothing, because the policy `{strategy}` does not end the pool,"),
            ASKING => format!("the policy `{strategy}`"),
            ITERATIONS => format!("iterations from {} on", chunk.key),
            OTHER_RANKS => "nothing, while other ranks work, wait or are stopped,".into(),
            PACKETS => "the exchange of packets, which encodes and decodes messages and chunks".into(),
            _ => "internal work of the runtime".into(),
        });
        let text = |number: u32| self.names().get(number as usize).map(|name| name.text.clone());
        let kind = is_chunk.then(|| text(kind)).flatten();
        Running { rank: self.rank(), worker, what, kind, long_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::RUNTIME;

    const SECOND_NS: u64 = 1_000_000_000;

    fn told(sampler: &mut ActivitySampler, rank: &Arc<Recording>, at_s: u64) -> Vec<String> {
        let running = sampler.look(std::slice::from_ref(rank), at_s * SECOND_NS, 2 * SECOND_NS);
        running.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_wait_for_other_ranks_is_reported_until_a_new_wave_or_work() {
        let rank = Arc::new(Recording::disabled(1));
        let mut sampler = ActivitySampler::default();
        let said = |sampler: &mut ActivitySampler, wave, at_s| {
            rank.waits_for_others(wave);
            told(sampler, &rank, at_s).concat()
        };
        let line = "rank 0 has run nothing, while other ranks work, wait or are stopped, for 1.0 s";
        assert_eq!(said(&mut sampler, Some(1), 1), "");
        rank.at_work[0].set_exchanging();
        assert_eq!(said(&mut sampler, Some(1), 2), line, "a look for packets is no work");
        rank.at_work[0].set_idle();
        assert_eq!(said(&mut sampler, Some(2), 3), "", "it asked anew");
        assert_eq!(said(&mut sampler, Some(2), 4), line);
        rank.at_work[0].begin_handler();
        assert_eq!(told(&mut sampler, &rank, 5).concat(), "", "it has worked, and not rested since");
        rank.at_work[0].set_chunk(RUNTIME);
        assert!(!said(&mut sampler, Some(2), 6).contains("other ranks"), "it works");
        assert_eq!(
            said(&mut sampler, None, 7),
            "rank 0, worker 0 has run internal work of the runtime for 1.0 s"
        );
        rank.strategy_activity.set_deciding(SyncId(3));
        said(&mut sampler, Some(3), 8);
        assert!(said(&mut sampler, None, 9).contains("for sync 3"), "that goes on");
    }

    #[test]
    fn an_unchanged_activity_has_been_running_since_its_first_sample() {
        let rank = Arc::new(Recording::disabled(2));
        let mut sampler = ActivitySampler::default();
        rank.at_work[1].set_iterations(7);
        assert_eq!(told(&mut sampler, &rank, 1), [""; 0], "it may have begun just now");
        assert_eq!(told(&mut sampler, &rank, 2), ["rank 0, worker 1 has run iterations from 7 on for 1.0 s"]);
        assert_eq!(told(&mut sampler, &rank, 3), ["rank 0, worker 1 has run iterations from 7 on for 2.0 s"]);
        rank.at_work[1].begin_handler();
        assert_eq!(told(&mut sampler, &rank, 4), [""; 0], "it is another");
        rank.at_work[1].set_idle();
        assert_eq!(told(&mut sampler, &rank, 5), [""; 0]);
    }

    #[test]
    fn the_activities_of_two_workers_share_no_cache_line() {
        let rank = Recording::disabled(2);
        let [first, second] =
            [0, 1].map(|worker: usize| std::ptr::from_ref::<AtWork>(&rank.at_work[worker]).addr());
        assert!(second - first >= 64, "{first:#x} {second:#x}");
    }

    #[test]
    fn waiting_workers_are_reported_once_no_worker_executes() {
        let rank = Arc::new(Recording::disabled(2));
        rank.describe(Box::new(|_| None), "mine");
        let mut sampler = ActivitySampler::default();
        rank.at_work[0].set_iterations(7);
        rank.at_work[1].set_waiting();
        told(&mut sampler, &rank, 1);
        let executes = ["rank 0, worker 0 has run iterations from 7 on for 1.0 s"];
        assert_eq!(told(&mut sampler, &rank, 2), executes);
        rank.at_work[0].set_idle();
        let waits =
            ["rank 0, worker 1 has run nothing, because the policy `mine` assigns no work, for 1.0 s"];
        assert_eq!(told(&mut sampler, &rank, 3), waits);
        rank.at_work[1].set_asking();
        rank.at_work[1].set_waiting();
        assert_eq!(told(&mut sampler, &rank, 4), [""; 0], "it had an order in between");
        rank.other_ranks_busy.store(true, Ordering::Relaxed);
        assert_eq!(told(&mut sampler, &rank, 5), [""; 0], "another process may execute");
        rank.other_ranks_busy.store(false, Ordering::Relaxed);
        assert_eq!(told(&mut sampler, &rank, 6), waits);
    }

    #[test]
    fn workers_wait_together_only_while_none_has_an_order() {
        let rank = Recording::disabled(2);
        rank.at_work[0].set_waiting();
        assert!(rank.all_waiting().is_none(), "the other rests between two orders");
        rank.at_work[1].set_released();
        let wait = rank.all_waiting();
        assert!(wait.is_some() && rank.all_waiting() == wait);
        rank.at_work[0].set_asking();
        rank.at_work[0].set_waiting();
        assert!(rank.all_waiting() != wait, "it had an order in between");
    }

    #[test]
    fn a_strategy_that_decides_is_named() {
        let rank = Arc::new(Recording::disabled(1));
        rank.describe(Box::new(|_| None), "mine");
        rank.at_work[0].set_deciding(SyncId(3));
        let mut sampler = ActivitySampler::default();
        told(&mut sampler, &rank, 1);
        assert_eq!(
            told(&mut sampler, &rank, 2),
            ["rank 0, worker 0 has run the strategy `mine` for sync 3 for 1.0 s"]
        );
    }

    #[test]
    fn a_worker_that_exchanges_packets_may_be_in_user_code() {
        let rank = Arc::new(Recording::disabled(1));
        rank.at_work[0].set_exchanging();
        let mut sampler = ActivitySampler::default();
        told(&mut sampler, &rank, 1);
        let said = "rank 0, worker 0 has run the exchange of packets, which encodes and decodes messages and chunks for 1.0 s";
        assert_eq!(told(&mut sampler, &rank, 2), [said]);
    }

    #[test]
    fn a_strategy_on_its_own_thread_is_reported_without_a_worker() {
        let rank = Arc::new(Recording::disabled(1));
        rank.describe(Box::new(|_| None), "mine");
        rank.strategy_activity.set_deciding(SyncId(3));
        rank.at_work[0].set_iterations(7);
        let mut sampler = ActivitySampler::default();
        told(&mut sampler, &rank, 1);
        let thinks = "rank 0 has run the strategy `mine` for sync 3 for 1.0 s";
        let works = "rank 0, worker 0 has run iterations from 7 on for 1.0 s";
        assert_eq!(told(&mut sampler, &rank, 2), [thinks, works]);
        rank.strategy_activity.set_idle();
        assert_eq!(told(&mut sampler, &rank, 3).len(), 1);
    }

    #[test]
    fn a_process_that_was_stopped_has_not_been_slow() {
        let rank = Arc::new(Recording::disabled(1));
        let mut sampler = ActivitySampler::default();
        rank.at_work[0].set_hook(RUNTIME);
        told(&mut sampler, &rank, 1);
        let told = told(&mut sampler, &rank, 3600);
        assert_eq!(told, ["rank 0, worker 0 has run internal work of the runtime for 2.0 s"]);
    }
}
