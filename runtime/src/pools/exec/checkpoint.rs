//! Makes checkpoints of a pool while its workers go on.
//!
//! | part of the run | does |
//! |---|---|
//! | rank 0 | sends [`Save`](PoolPacket::Save) when a checkpoint is due |
//! | a worker | when its range ends, copies its accumulated value and the indices of the iterations in it |
//! | a rank | when all its workers have copied, writes the copies; sends [`Written`](PoolPacket::Written) to rank 0 |
//! | rank 0 | when all ranks have written, completes the checkpoint |
//!
//! A released worker leaves its last copy, which is part of all later checkpoints.
//!
//! # Proof that the copies fit together, whenever each was made
//!
//! 1. A copy has exactly the iterations that its worker has counted. It is made between two ranges, and a speculative
//!    range is merged and counted at once.
//! 2. Each iteration is counted once in the whole run, so no two copies have an iteration in common. A restart that
//!    executes all iterations which are in no copy therefore counts each iteration once.
//! 3. A restarted run gives the earlier accumulated value to one worker, as if this worker had executed its iterations.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::rank::Shared;
use crate::checkpoint::background::{Background, IoOutcome, Started};
use crate::checkpoint::{Content, Manifest, Schedule, Settings, Store, Written};
use crate::config::Config;
use crate::error::Error;
use crate::ids::{ROOT, Rank, WorkerId};
use crate::notice::Listener;
use crate::pools::core::image::WorkerImage;
use crate::pools::core::packet::PoolPacket;
use crate::warn::warn;
use crate::wire;

/// The number of a worker's last copy, which is part of all later checkpoints.
const LAST: u64 = u64::MAX;

/// A copy of a worker's results, or why it could not be made, with the number of its checkpoint.
type NumberedImage = (u64, Result<Arc<WorkerImage>, String>);

/// The copies of the workers of a rank.
pub(crate) struct Copies {
    /// The number of the checkpoint for which copies are wanted; 0 before the first.
    wanted: AtomicU64,
    /// The newest copy of each worker.
    images: Mutex<Vec<Option<NumberedImage>>>,
}

impl Copies {
    pub(crate) fn new(workers: u32) -> Copies {
        Copies { wanted: AtomicU64::new(0), images: Mutex::new(vec![None; workers as usize]) }
    }

    /// The number of the checkpoint for which copies are wanted.
    pub(super) fn wanted(&self) -> u64 {
        self.wanted.load(Ordering::Acquire)
    }

    /// Adds a worker's copy for this checkpoint, or its last copy. True if the copies of all workers are there.
    pub(super) fn put(
        &self,
        worker: WorkerId,
        number: Option<u64>,
        image: Result<WorkerImage, String>,
    ) -> bool {
        let mut images = self.images.lock().unwrap_or_else(PoisonError::into_inner);
        images[worker.index()] = Some((number.unwrap_or(LAST), image.map(Arc::new)));
        are_there(&images, self.wanted())
    }

    /// Tells whether all copies for this checkpoint are there.
    fn has_all(&self, number: u64) -> bool {
        are_there(&self.images.lock().unwrap_or_else(PoisonError::into_inner), number)
    }

    /// Takes all copies, or the reason why one could not be made. Last copies stay for later checkpoints.
    fn take(&self) -> Result<Vec<Arc<WorkerImage>>, String> {
        let mut images = self.images.lock().unwrap_or_else(PoisonError::into_inner);
        let take = |image: &mut Option<NumberedImage>| match image {
            Some((LAST, last)) => Some(last.clone()),
            _ => image.take().map(|(_, image)| image),
        };
        images.iter_mut().filter_map(take).collect()
    }
}

/// The content of the file of a rank.
fn contents(images: &[Arc<WorkerImage>]) -> Vec<&WorkerImage> {
    images.iter().map(|image| &**image).collect()
}

fn are_there(images: &[Option<NumberedImage>], number: u64) -> bool {
    images.iter().all(|image| image.as_ref().is_some_and(|&(made, _)| made >= number))
}

/// The checkpoints of a rank: its store and the copies of its workers.
pub(crate) struct RankCheckpoints {
    pub(super) copies: Copies,
    store: Arc<Store>,
    every_ns: u64,
}

impl RankCheckpoints {
    pub(crate) fn new(settings: &Settings, store: Arc<Store>, workers: u32) -> RankCheckpoints {
        RankCheckpoints { copies: Copies::new(workers), store, every_ns: settings.every.as_nanos() as u64 }
    }
}

/// The work for checkpoints of the communication thread of a rank.
pub(super) struct Checkpointer<'m> {
    shared: &'m Shared<'m>,
    checkpoints: &'m RankCheckpoints,
    ranks: u32,
    listener: Option<Listener>,
    /// Only on rank 0.
    schedule: Option<Schedule>,
    /// The checkpoint for which workers still make copies.
    saving: Option<u64>,
    io: Option<Background>,
    /// On rank 0: the files of the current checkpoint.
    written: Vec<(Rank, Result<Written, String>)>,
}

impl<'m> Checkpointer<'m> {
    pub(super) fn new(
        shared: &'m Shared<'m>,
        checkpoints: &'m RankCheckpoints,
        ranks: u32,
        config: &Config,
    ) -> Checkpointer<'m> {
        let schedule = || Schedule::new(checkpoints.every_ns, checkpoints.store.first_number());
        Checkpointer {
            shared,
            checkpoints,
            ranks,
            listener: Listener::of_rank(shared.rank, config, shared.shared_driver.comm_waker()),
            schedule: (shared.rank == ROOT).then(schedule),
            saving: None,
            io: None,
            written: Vec::new(),
        }
    }

    /// The next time at which work is due, ns since the run began.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.schedule.as_ref().and_then(Schedule::next_ns)
    }

    /// Tells whether there is work now, apart from due times.
    pub(super) fn has_work(&self) -> bool {
        self.listener.as_ref().is_some_and(|listener| listener.has_any())
            || self.io.as_ref().is_some_and(Background::has_ended)
            || self.saving.is_some_and(|number| self.checkpoints.copies.has_all(number))
    }

    /// Does what can be done now. Returns packets to send.
    pub(super) fn poll(&mut self) -> Result<Vec<(Rank, PoolPacket)>, Error> {
        let mut packets = Vec::new();
        let rank = self.shared.rank;
        if let Some(by) = self.listener.as_ref().and_then(Listener::take) {
            match &mut self.schedule {
                Some(schedule) => schedule.give_notice(by),
                None => packets.push((ROOT, PoolPacket::Notice(by))),
            }
        }
        if self.listener.as_ref().is_some_and(Listener::take_advice) {
            match &mut self.schedule {
                Some(schedule) => schedule.ask(),
                None => packets.push((ROOT, PoolPacket::Ask)),
            }
        }
        let now_ns = self.shared.clock.now_ns();
        if let Some(schedule) = self.schedule.as_mut().filter(|schedule| schedule.is_due(now_ns)) {
            schedule.begin();
            let number = schedule.number;
            self.written.clear();
            self.save(number);
            packets.extend((1..self.ranks).map(|rank| (Rank(rank), PoolPacket::Save { number })));
        }
        if let Some(number) = self.saving.filter(|&number| self.checkpoints.copies.has_all(number)) {
            self.saving = None;
            let (images, store) = (self.checkpoints.copies.take(), self.checkpoints.store.clone());
            let write = move || {
                let images = images?;
                store.write_rank(number, rank, |out| wire::encode_to(&contents(&images), out))
            };
            self.start_io(write, IoOutcome::Written, &mut packets)?;
        }
        if let Some(outcome) = self.io.as_ref().and_then(Background::outcome) {
            self.io = None;
            self.io_ended(outcome, &mut packets)?;
        }
        Ok(packets)
    }

    /// Requests copies from the workers, because rank 0 has announced a checkpoint.
    pub(super) fn save(&mut self, number: u64) {
        self.saving = Some(number);
        self.checkpoints.copies.wanted.store(number, Ordering::Release);
        for worker in (0..self.shared.recording.workers()).map(WorkerId) {
            self.shared.shared_driver.worker(worker).wake();
        }
    }

    /// On rank 0: handles a notice to end from another process.
    pub(super) fn noticed(&mut self, by: String) {
        let line = self.schedule.as_mut().and_then(|schedule| schedule.pass_on_notice(by));
        line.into_iter().for_each(|line| warn(&line));
    }

    /// On rank 0: handles a request for a checkpoint from another process.
    pub(super) fn asked(&mut self) {
        self.schedule.iter_mut().for_each(Schedule::ask);
    }

    /// On rank 0: adds the file of a rank, or its failure. After the last rank, completes the checkpoint.
    pub(super) fn written(&mut self, rank: Rank, written: Result<Written, String>) -> Result<(), Error> {
        self.written.push((rank, written));
        let Some(schedule) = self.schedule.as_ref().filter(|_| self.written.len() == self.ranks as usize)
        else {
            return Ok(());
        };
        let (number, store) = (schedule.number, self.checkpoints.store.clone());
        let (written, elapsed_ns) = (std::mem::take(&mut self.written), self.shared.clock.now_ns());
        let content = Content::Pool(self.shared.work.signature());
        let manifest = Manifest { content, elapsed_ns, ..Manifest::default() };
        let commit = move || store.complete(number, manifest, written);
        self.start_io(commit, IoOutcome::Committed, &mut Vec::new())
    }

    fn start_io<T: 'static>(
        &mut self,
        io: impl FnOnce() -> Result<T, String> + Send + 'static,
        outcome: fn(Result<T, String>) -> IoOutcome,
        packets: &mut Vec<(Rank, PoolPacket)>,
    ) -> Result<(), Error> {
        let wake = self.shared.shared_driver.comm_waker();
        match Background::start(self.shared.clock.is_virtual(), io, outcome, wake) {
            Started::Runs(background) => self.io = Some(background),
            Started::Ended(outcome) => self.io_ended(outcome, packets)?,
        }
        Ok(())
    }

    fn io_ended(&mut self, outcome: IoOutcome, packets: &mut Vec<(Rank, PoolPacket)>) -> Result<(), Error> {
        match (outcome, self.shared.rank) {
            (IoOutcome::Written(written), ROOT) => self.written(ROOT, written)?,
            (IoOutcome::Written(written), _) => packets.push((ROOT, PoolPacket::Written(written))),
            (IoOutcome::Committed(committed), _) => {
                let Some(schedule) = &mut self.schedule else { return Ok(()) };
                let line = schedule.committed(committed, self.shared.clock.now_ns())?;
                line.into_iter().for_each(|line| warn(&line));
            }
        }
        Ok(())
    }

    /// Waits for the write in progress, because the run has ended.
    pub(super) fn end(&mut self) {
        self.io.take().into_iter().for_each(Background::join);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_saved_when_each_worker_has_made_a_copy_or_its_last() {
        let copies = Copies::new(2);
        let image = |end: u64| {
            let done = 0..end;
            Ok(WorkerImage { done: vec![done], accumulated: vec![end as u8] })
        };
        copies.wanted.store(1, Ordering::Relaxed);
        assert!(!copies.put(WorkerId(0), Some(1), image(3)), "one has made none");
        assert!(copies.put(WorkerId(1), None, image(5)) && copies.has_all(1));
        assert!(!copies.has_all(2), "the first works on");
        assert!(copies.put(WorkerId(0), Some(2), image(4)) || copies.has_all(2));
        let all = copies.take().expect("all are there");
        assert_eq!(contents(&all).iter().map(|image| image.done[0].end).collect::<Vec<_>>(), [4, 5]);
        assert_eq!(copies.take().expect("it is the last one").len(), 1);
        copies.put(WorkerId(0), Some(3), Err("no".into()));
        assert_eq!(copies.take(), Err("no".into()));
    }
}
