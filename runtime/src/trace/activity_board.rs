//! The present work of each worker, for those who watch a run from outside.
//!
//! A worker says it by plain stores that cost as much as keeping it to itself, and reads no clock for it. Whoever watches
//! looks again and again: what is still the same has been running since the first look, so times are *at least*.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use litemap::LiteMap;

use super::event::{ArrayId, ChunkId, NameId};
use super::recording::Recording;
use crate::ids::{Rank, SyncId, WorkerId};

/// In place of an array: the worker has no work.
const IDLE: ArrayId = ArrayId(u32::MAX - 1);
/// In place of an array: the worker of a pool executes iterations, of which the key is the first.
const ITERATIONS: ArrayId = ArrayId(u32::MAX - 2);
/// In place of an array: the strategy decides a sync, which is the key.
const DECISION: ArrayId = ArrayId(u32::MAX - 3);
/// In place of an array: the worker of a pool waits for an order from its policy.
const WAITING: ArrayId = ArrayId(u32::MAX - 4);
/// In place of an array: it was released, and the pool goes on.
const RELEASED: ArrayId = ArrayId(u32::MAX - 5);
/// In place of an array: it asks its policy.
const ASKING: ArrayId = ArrayId(u32::MAX - 6);
/// In place of an array: it sends packets and takes those of other ranks.
const PACKETS: ArrayId = ArrayId(u32::MAX - 7);
/// In place of an array: rank 0 has no work, and waits to hear whether others have. The key is the number of its question.
const OTHER_RANKS: ArrayId = ArrayId(u32::MAX - 8);
const UNNAMED: u32 = u32::MAX;

/// The present work of one worker. Only that worker writes.
pub(crate) struct AtWork {
    array: AtomicU32,
    key: AtomicU64,
    /// The kind of the message, where kinds have numbers: with a profile.
    kind: AtomicU32,
    /// Handlers begun.
    begun: AtomicU64,
    /// Iterations executed that count.
    done: AtomicU64,
}

/// The work of a worker at a look.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ActivitySample {
    chunk: ChunkId,
    kind: u32,
    begun: u64,
}

impl ActivitySample {
    /// True if the worker would go on at an order of the policy, or the rank when it hears of others.
    fn set_waiting(&self) -> bool {
        matches!(self.chunk.array, WAITING | RELEASED | OTHER_RANKS)
    }

    /// True if others may wait for what it does.
    fn is_executing(&self) -> bool {
        !self.set_waiting() && self.chunk.array != PACKETS
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

    /// The worker turns to this chunk.
    #[inline]
    pub(crate) fn set_chunk(&self, chunk: ChunkId) {
        self.array.store(chunk.array.0, Ordering::Relaxed);
        self.key.store(chunk.key, Ordering::Relaxed);
    }

    /// It begins its next handler. Only the worker itself says so: load and store need not be one step.
    #[inline]
    pub(crate) fn begin_handler(&self) {
        self.begun.store(self.begun().wrapping_add(1), Ordering::Relaxed);
    }

    /// The handlers that it has begun.
    #[inline]
    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// The handler is that of this kind of message.
    #[inline]
    pub(crate) fn set_kind(&self, kind: NameId) {
        self.kind.store(kind.0, Ordering::Relaxed);
    }

    /// It executes iterations from this one on.
    pub(crate) fn set_iterations(&self, first: u64) {
        self.set_chunk(ChunkId { array: ITERATIONS, key: first });
    }

    /// So many iterations that it has executed count by now.
    pub(crate) fn set_done(&self, done: u64) {
        self.done.store(done, Ordering::Relaxed);
    }

    /// It asks the policy, and waits while others do.
    pub(crate) fn set_asking(&self) {
        self.begin_handler();
        self.set_hook(ChunkId { array: ASKING, key: 0 });
    }

    /// It begins to wait for an order of the policy: with all others, in vain.
    pub(crate) fn set_waiting(&self) {
        self.set_hook(ChunkId { array: WAITING, key: 0 });
    }

    /// The policy has released it.
    pub(crate) fn set_released(&self) {
        self.set_hook(ChunkId { array: RELEASED, key: 0 });
    }

    /// It asks the strategy to decide this sync.
    pub(crate) fn set_deciding(&self, sync: SyncId) {
        self.set_hook(ChunkId { array: DECISION, key: sync.0 });
    }

    /// It sends packets and takes those of other ranks.
    #[inline]
    pub(crate) fn set_exchanging(&self) {
        self.set_chunk(ChunkId { array: PACKETS, key: 0 });
    }

    /// It turns to a hook of this chunk, or to work of the runtime: no handler.
    #[inline]
    pub(crate) fn set_hook(&self, chunk: ChunkId) {
        self.set_chunk(chunk);
        self.kind.store(UNNAMED, Ordering::Relaxed);
    }

    /// It has no work.
    #[inline]
    pub(crate) fn set_idle(&self) {
        self.array.store(IDLE.0, Ordering::Relaxed);
    }

    /// The parts may be of two handlers: then they are different at the next look.
    fn look(&self) -> Option<ActivitySample> {
        let array = ArrayId(self.array.load(Ordering::Relaxed));
        let key = self.key.load(Ordering::Relaxed);
        let (kind, begun) = (self.kind.load(Ordering::Relaxed), self.begun.load(Ordering::Relaxed));
        (array != IDLE).then_some(ActivitySample { chunk: ChunkId { array, key }, kind, begun })
    }
}

/// Work that a worker, or the strategy beside them, has been at for some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Running {
    pub(crate) rank: Rank,
    /// None of a strategy that decides beside the workers, and of a wait for other ranks.
    pub(crate) worker: Option<WorkerId>,
    /// The chunk by name; or that it is no chunk.
    pub(crate) what: String,
    /// The kind of the message, if that is known.
    pub(crate) kind: Option<String>,
    /// For how long at least, ns.
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

/// The work of all workers of a process, look by look.
#[derive(Default)]
pub(crate) struct ActivitySampler {
    last_ns: u64,
    /// By rank and worker, or the strategy beside them: since the first look at it.
    seen: LiteMap<(Rank, Option<WorkerId>), (ActivitySample, u64)>,
}

impl ActivitySampler {
    /// Looks at all workers; returns what has been running since an earlier look. Of the time since the last one at most
    /// `counts_ns` counts: a process that was stopped in between has not been slow.
    pub(crate) fn look(&mut self, ranks: &[Arc<Recording>], now_ns: u64, counts_ns: u64) -> Vec<Running> {
        let passed_ns = now_ns.saturating_sub(self.last_ns).min(counts_ns);
        self.last_ns = now_ns;
        let before = std::mem::take(&mut self.seen);
        for rank in ranks {
            let workers =
                (0..).map(|worker| Some(WorkerId(worker))).zip(rank.at_work.iter().map(|worker| &**worker));
            for (worker, at_work) in workers.chain([(None, &rank.strategy_activity)]) {
                let Some(mut sight) = at_work.look() else { continue };
                if sight.chunk.array == OTHER_RANKS {
                    // It is said at a rest, and worker 0 may have worked ever since.
                    sight.begun = rank.at_work.iter().map(|worker| worker.begun()).sum();
                }
                let place = (rank.rank(), worker);
                let long_ns = match before.get(&place) {
                    Some(&(seen, long_ns)) if seen == sight => long_ns + passed_ns,
                    _ => 0,
                };
                self.seen.insert(place, (sight, long_ns));
            }
        }
        // Who waits while another worker executes may have good reason to.
        let elsewhere = ranks.iter().any(|rank| rank.other_ranks_busy.load(Ordering::Relaxed));
        if elsewhere || self.seen.values().any(|(sight, _)| sight.is_executing()) {
            let waiting = self.seen.iter_mut().filter(|(_, (sight, _))| sight.set_waiting());
            waiting.for_each(|(_, (_, long_ns))| *long_ns = 0);
        }
        let in_words = |rank: &Arc<Recording>| {
            let first = self.seen.as_slice().partition_point(|&((of, _), _)| of < rank.rank());
            let its = self.seen.as_slice()[first..].iter().take_while(|&&((of, _), _)| of == rank.rank());
            let long = its.filter(|&&(_, (_, long_ns))| long_ns > 0);
            long.map(|&((_, worker), (sight, long_ns))| rank.running(worker, sight, long_ns))
                .collect::<Vec<_>>()
        };
        ranks.iter().flat_map(in_words).collect()
    }
}

impl Recording {
    /// Iterations that its workers have executed and that count.
    pub(crate) fn iterations(&self) -> u64 {
        self.at_work.iter().map(|worker| worker.done.load(Ordering::Relaxed)).sum()
    }

    /// The handlers that its workers have begun, and the iterations that they have executed.
    #[cfg(feature = "mpi")]
    pub(crate) fn begun(&self) -> u64 {
        let handlers: u64 = self.at_work.iter().map(|worker| worker.begun()).sum();
        handlers + self.iterations()
    }

    /// The wait that all its workers are in, if they are: the same at two looks if none did anything in between.
    pub(crate) fn all_waiting(&self) -> Option<Vec<ActivitySample>> {
        self.at_work.iter().map(|worker| worker.look().filter(ActivitySample::set_waiting)).collect()
    }

    /// Worker 0 of rank 0 says at each rest that its rank waits for the answers to this wave, or that it waits for none.
    pub(crate) fn waits_for_others(&self, wave: Option<u64>) {
        let turn = |from: ArrayId, to: ArrayId| {
            // A decision that begins beside the workers is what the record says then.
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

    /// In words.
    fn running(&self, worker: Option<WorkerId>, sight: ActivitySample, long_ns: u64) -> Running {
        let ActivitySample { chunk, kind, .. } = sight;
        let named = self.name_chunk.get().and_then(|name| name(chunk));
        let is_chunk = named.is_some();
        let strategy = self.strategy.get().map_or("", |name| name);
        let what = named.unwrap_or_else(|| match chunk.array {
            DECISION => format!("the strategy `{strategy}` for sync {}", chunk.key),
            WAITING => format!("nothing for want of an order from the policy `{strategy}`"),
            RELEASED => format!("nothing for want of the end of the pool by the policy `{strategy}`"),
            ASKING => format!("the policy `{strategy}`"),
            ITERATIONS => format!("iterations from {} on", chunk.key),
            OTHER_RANKS => "nothing, while other ranks work, wait or are stopped,".into(),
            PACKETS => "the exchange of packets, which encodes and decodes messages and chunks".into(),
            _ => "what the runtime does itself".into(),
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

    fn told(sightings: &mut ActivitySampler, rank: &Arc<Recording>, at_s: u64) -> Vec<String> {
        let running = sightings.look(std::slice::from_ref(rank), at_s * SECOND_NS, 2 * SECOND_NS);
        running.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_wait_for_other_ranks_is_told_until_something_is_heard_or_done() {
        let rank = Arc::new(Recording::disabled(1));
        let mut sightings = ActivitySampler::default();
        let said = |sightings: &mut ActivitySampler, wave, at_s| {
            rank.waits_for_others(wave);
            told(sightings, &rank, at_s).concat()
        };
        let line = "rank 0 has run nothing, while other ranks work, wait or are stopped, for 1.0 s";
        assert_eq!(said(&mut sightings, Some(1), 1), "");
        rank.at_work[0].set_exchanging();
        assert_eq!(said(&mut sightings, Some(1), 2), line, "a look for packets is no work");
        rank.at_work[0].set_idle();
        assert_eq!(said(&mut sightings, Some(2), 3), "", "it asked anew");
        assert_eq!(said(&mut sightings, Some(2), 4), line);
        rank.at_work[0].begin_handler();
        assert_eq!(told(&mut sightings, &rank, 5).concat(), "", "it has worked, and not rested since");
        rank.at_work[0].set_chunk(RUNTIME);
        assert!(!said(&mut sightings, Some(2), 6).contains("other ranks"), "it works");
        assert_eq!(
            said(&mut sightings, None, 7),
            "rank 0, worker 0 has run what the runtime does itself for 1.0 s"
        );
        rank.strategy_activity.set_deciding(SyncId(3));
        said(&mut sightings, Some(3), 8);
        assert!(said(&mut sightings, None, 9).contains("for sync 3"), "that goes on");
    }

    #[test]
    fn what_is_the_same_at_every_look_has_been_running_since_the_first() {
        let rank = Arc::new(Recording::disabled(2));
        let mut sightings = ActivitySampler::default();
        rank.at_work[1].set_iterations(7);
        assert_eq!(told(&mut sightings, &rank, 1), [""; 0], "it may have begun just now");
        assert_eq!(
            told(&mut sightings, &rank, 2),
            ["rank 0, worker 1 has run iterations from 7 on for 1.0 s"]
        );
        assert_eq!(
            told(&mut sightings, &rank, 3),
            ["rank 0, worker 1 has run iterations from 7 on for 2.0 s"]
        );
        rank.at_work[1].begin_handler();
        assert_eq!(told(&mut sightings, &rank, 4), [""; 0], "it is another");
        rank.at_work[1].set_idle();
        assert_eq!(told(&mut sightings, &rank, 5), [""; 0]);
    }

    #[test]
    fn what_workers_write_with_every_message_shares_no_cache_line() {
        let rank = Recording::disabled(2);
        let [first, second] =
            [0, 1].map(|worker: usize| std::ptr::from_ref::<AtWork>(&rank.at_work[worker]).addr());
        assert!(second - first >= 64, "{first:#x} {second:#x}");
    }

    #[test]
    fn waiting_workers_are_reported_once_no_worker_executes() {
        let rank = Arc::new(Recording::disabled(2));
        rank.describe(Box::new(|_| None), "mine");
        let mut sightings = ActivitySampler::default();
        rank.at_work[0].set_iterations(7);
        rank.at_work[1].set_waiting();
        told(&mut sightings, &rank, 1);
        let executes = ["rank 0, worker 0 has run iterations from 7 on for 1.0 s"];
        assert_eq!(told(&mut sightings, &rank, 2), executes);
        rank.at_work[0].set_idle();
        let waits =
            ["rank 0, worker 1 has run nothing for want of an order from the policy `mine` for 1.0 s"];
        assert_eq!(told(&mut sightings, &rank, 3), waits);
        rank.at_work[1].set_asking();
        rank.at_work[1].set_waiting();
        assert_eq!(told(&mut sightings, &rank, 4), [""; 0], "it had an order in between");
        rank.other_ranks_busy.store(true, Ordering::Relaxed);
        assert_eq!(told(&mut sightings, &rank, 5), [""; 0], "another process may execute");
        rank.other_ranks_busy.store(false, Ordering::Relaxed);
        assert_eq!(told(&mut sightings, &rank, 6), waits);
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
    fn a_strategy_at_work_is_named() {
        let rank = Arc::new(Recording::disabled(1));
        rank.describe(Box::new(|_| None), "mine");
        rank.at_work[0].set_deciding(SyncId(3));
        let mut sightings = ActivitySampler::default();
        told(&mut sightings, &rank, 1);
        assert_eq!(
            told(&mut sightings, &rank, 2),
            ["rank 0, worker 0 has run the strategy `mine` for sync 3 for 1.0 s"]
        );
    }

    #[test]
    fn a_worker_that_exchanges_packets_may_be_in_user_code() {
        let rank = Arc::new(Recording::disabled(1));
        rank.at_work[0].set_exchanging();
        let mut sightings = ActivitySampler::default();
        told(&mut sightings, &rank, 1);
        let said = "rank 0, worker 0 has run the exchange of packets, which encodes and decodes messages and chunks for 1.0 s";
        assert_eq!(told(&mut sightings, &rank, 2), [said]);
    }

    #[test]
    fn a_strategy_that_thinks_beside_the_workers_is_none_of_them() {
        let rank = Arc::new(Recording::disabled(1));
        rank.describe(Box::new(|_| None), "mine");
        rank.strategy_activity.set_deciding(SyncId(3));
        rank.at_work[0].set_iterations(7);
        let mut sightings = ActivitySampler::default();
        told(&mut sightings, &rank, 1);
        let thinks = "rank 0 has run the strategy `mine` for sync 3 for 1.0 s";
        let works = "rank 0, worker 0 has run iterations from 7 on for 1.0 s";
        assert_eq!(told(&mut sightings, &rank, 2), [thinks, works]);
        rank.strategy_activity.set_idle();
        assert_eq!(told(&mut sightings, &rank, 3).len(), 1);
    }

    #[test]
    fn a_process_that_was_stopped_has_not_been_slow() {
        let rank = Arc::new(Recording::disabled(1));
        let mut sightings = ActivitySampler::default();
        rank.at_work[0].set_hook(RUNTIME);
        told(&mut sightings, &rank, 1);
        let told = told(&mut sightings, &rank, 3600);
        assert_eq!(told, ["rank 0, worker 0 has run what the runtime does itself for 2.0 s"]);
    }
}
