//! The communication thread of a rank of a pool, which sends and receives all packets of the rank.
//!
//! # What wakes it
//!
//! | the thread sleeps until | then it |
//! |---|---|
//! | a packet has arrived | handles the packet |
//! | a worker has left a packet for another rank | sends the packet |
//! | a time has come, of the driver, a progress report or a sample of the workers | does the due work |
//! | all workers of the rank have handed in their results | sends the rank's part of the result to rank 0 |
//! | the run is to be shrunk or expanded, on rank 0 | notifies all ranks |
//! | all workers have made their copies, or a copy is written | continues the [checkpoint](super::checkpoint) |
//!
//! # How it ends
//!
//! | rank | event | the thread |
//! |---|---|---|
//! | any | the results of its workers are complete | sends the rank's part to rank 0 |
//! | rank 0 | the parts of all ranks have arrived | merges them, sends the result to all ranks, delivers it, ends |
//! | another | the result has arrived | delivers it if the rank is a process, ends |
//! | any | the run fails here | notifies the other ranks, ends |
//! | any | [`Abort`](PoolPacket::Abort): the run has failed on another rank | ends |

use std::any::Any;
use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lb_strategies::Shape;
use litemap::LiteMap;

use super::checkpoint::Checkpointer;
use super::merge::merge_results;
use super::peers::{NAP_MAX_NS, Peers};
use super::progress::Progress;
use super::rank::Shared;
use super::task::{StepOutcome, StepTask};
use super::wait_detector::WaitDetector;
use crate::config::Config;
use crate::error::Error;
use crate::ids::{ROOT, Rank};
use crate::launch::Launch;
use crate::measure::counters::SampleTrigger;
use crate::pools::core::packet::{Part, PoolPacket, PoolResult};
use crate::pools::core::work::Accumulated;
use crate::run::watchdog::sample_interval;
use crate::text::resize_line;
use crate::transport::handle::TransportHandle;
use crate::warn::tell;

pub(super) struct CommThread<'m> {
    shared: &'m Shared<'m>,
    peers: Peers<'m>,
    /// True if each rank is a process, which needs the result.
    processes: bool,
    /// The news that all other ranks have got, from this rank or another.
    told: BTreeSet<News>,
    progress: Progress,
    wait_detector: WaitDetector,
    checkpointer: Option<Checkpointer<'m>>,
    /// On rank 0: the parts that have arrived, by rank, with decoded accumulated values.
    parts: LiteMap<Rank, (Accumulated, Part)>,
    /// The driver's wake-up time when this thread went to sleep.
    wake_at_ns: Option<u64>,
    /// Takes the result, once per process.
    deliver: &'m dyn Fn(Accumulated, PoolResult),
}

/// News that is sent to all ranks once.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum News {
    Cancelled,
    Failed,
}

/// The accumulated value, if this rank delivers it, and the rest of the result.
type Conclusion = (Option<Accumulated>, PoolResult);

impl<'m> CommThread<'m> {
    pub(super) fn new(
        shared: &'m Shared<'m>,
        transport: Option<TransportHandle<'m, PoolPacket>>,
        ranks: u32,
        config: &'m Config,
        deliver: &'m dyn Fn(Accumulated, PoolResult),
    ) -> CommThread<'m> {
        let progress_every_ns = shared.work.progress_interval_ns().filter(|_| shared.rank == ROOT);
        let processes = config.launch() != Launch::Alone;
        // In virtual time the watchdog cannot see how long workers wait.
        let others_work = ranks > 1 && (processes || shared.clock.is_virtual());
        shared.recording.other_ranks_busy.store(others_work, Ordering::Relaxed);
        let samples =
            processes && shared.rank != ROOT && !config.watchdog.is_zero() && !shared.clock.is_virtual();
        let sample_every_ns = samples.then(|| sample_interval(config).as_nanos() as u64);
        let checkpoints = shared.checkpoints.as_ref();
        let checkpointer = checkpoints.map(|its| Checkpointer::new(shared, its, ranks, config));
        if let Some(requests) = &shared.resizes {
            requests.taken_by(shared.shared_driver.comm_waker());
        }
        let (wire, watchdog_limit, policy) = (config.wire, config.watchdog, config.lb_spec(Shape::Pools));
        CommThread {
            shared,
            peers: Peers { shared, transport, ranks, wire, watchdog_limit, policy, last_packet_ns: 0 },
            processes,
            told: BTreeSet::new(),
            progress: Progress::new(progress_every_ns),
            wait_detector: WaitDetector::new(sample_every_ns),
            checkpointer,
            parts: LiteMap::new(),
            wake_at_ns: None,
            deliver,
        }
    }

    /// Begins the pool. Fails with the panic `refused` if making the machine panicked.
    pub(super) fn begin(&mut self, refused: Option<Box<dyn Any + Send>>) {
        let shared = self.shared;
        shared.catching(&shared.asking, || {
            if let Some(panic) = refused {
                resume_unwind(panic);
            }
            shared.with(|inner, now_ns, actions| inner.driver.begin(now_ns, actions));
        });
        if let Some(every_ns) = self.progress.every_ns() {
            self.broadcast(|| PoolPacket::SubscribeProgress { every_ns });
        }
    }

    /// Closes the transport when all packets have arrived, or when they never will.
    pub(super) fn close(&mut self) {
        self.peers.close();
    }

    /// Does everything that needs no waiting. Returns the result when it is there.
    fn poll_once(&mut self) -> Result<Option<Conclusion>, Error> {
        while let Some((from, packet)) = self.peers.poll()? {
            if let Some(result) = self.handle_packet(from, packet)? {
                return Ok(Some(result));
            }
        }
        self.pass_cancellation();
        self.begin_resize();
        self.shared.with(|inner, now_ns, actions| inner.driver.pass_time(now_ns, actions));
        self.report_progress();
        self.report_all_waiting();
        if let Some(checkpointer) = &mut self.checkpointer {
            let packets = checkpointer.poll()?;
            self.shared.shared_driver.lock().outbound.extend(packets);
        }
        self.send_outbound()?;
        self.hand_over()?;
        self.conclude()
    }

    fn handle_packet(&mut self, from: Rank, packet: PoolPacket) -> Result<Option<Conclusion>, Error> {
        match packet {
            PoolPacket::Machine(message) => {
                let heard = self
                    .shared
                    .with(|inner, now_ns, actions| inner.driver.hear(from, message, now_ns, actions));
                heard.map_err(|why| {
                    let what = format!("a message from rank {from} to the policy `{}`", self.peers.policy);
                    Error::Wire { rank: self.shared.rank, what, why: why.to_string() }
                })?;
            }
            PoolPacket::SubscribeProgress { every_ns } => self.progress.subscribe(every_ns),
            PoolPacket::Progress { done } => self.progress.hear(from, done),
            // Within one process, rank 0 informs the program.
            PoolPacket::Total { done } if self.processes => self.tell_program(done),
            PoolPacket::Total { .. } => {}
            PoolPacket::AllWaiting { all } => {
                self.wait_detector.hear(from, all);
                let others_work = self.wait_detector.waiting() + 1 < self.peers.ranks as usize;
                self.shared.recording.other_ranks_busy.store(others_work, Ordering::Relaxed);
            }
            PoolPacket::Cancel => {
                // The rank that cancelled notifies all ranks.
                self.told.insert(News::Cancelled);
                self.shared.with(|inner, _, actions| inner.driver.cancel(actions));
            }
            PoolPacket::Abort(error) => {
                self.told.insert(News::Failed);
                self.shared.fail(*error);
            }
            PoolPacket::Resize { active } => self.resize(active),
            PoolPacket::Save { number } => self.checkpointer.iter_mut().for_each(|it| it.save(number)),
            PoolPacket::Written(written) => {
                if let Some(checkpointer) = &mut self.checkpointer {
                    checkpointer.written(from, written)?;
                }
            }
            PoolPacket::Notice(by) => {
                if let Some(checkpointer) = &mut self.checkpointer {
                    checkpointer.noticed(by);
                }
            }
            PoolPacket::Ask => self.checkpointer.iter_mut().for_each(Checkpointer::asked),
            PoolPacket::RankResult(mut part) => {
                let bytes = std::mem::take(&mut part.accumulated);
                self.parts.insert(from, (self.shared.decode(&bytes)?, *part));
            }
            PoolPacket::PoolResult(mut result) => {
                let bytes = std::mem::take(&mut result.accumulated);
                if !self.processes {
                    return Ok(Some((None, *result)));
                }
                self.tell_program(result.iterations);
                return Ok(Some((Some(self.shared.decode(&bytes)?), *result)));
            }
        }
        Ok(None)
    }

    /// Cancels the pool if its program has requested that, and notifies the other ranks.
    fn pass_cancellation(&mut self) {
        if self.shared.work.is_cancelled() {
            self.shared.with(|inner, _, actions| inner.driver.cancel(actions));
        }
        if self.is_cancelled() && self.told.insert(News::Cancelled) {
            self.broadcast(|| PoolPacket::Cancel);
        }
    }

    /// On rank 0: shrinks or expands the run if that was requested.
    fn begin_resize(&mut self) {
        let Some(requests) = self.shared.resizes.as_ref().filter(|_| !self.is_cancelled()) else { return };
        let Some(active) = requests.take().filter(|&active| active != requests.active()) else { return };
        if !self.shared.clock.is_virtual() {
            tell(&resize_line(active as usize, self.peers.ranks as usize, requests.active() as usize));
        }
        requests.set_active(active);
        self.broadcast(|| PoolPacket::Resize { active });
        self.resize(active);
    }

    /// Makes the first `active` ranks the active ones.
    fn resize(&self, active: u32) {
        let is_active = self.shared.rank.0 < active;
        self.shared.with(|inner, now_ns, actions| inner.driver.resize(is_active, now_ns, actions));
    }

    fn is_cancelled(&self) -> bool {
        self.shared.shared_driver.lock().driver.is_cancelled()
    }

    /// Reports progress when it is due: to rank 0, or on rank 0 to the program and to all ranks.
    fn report_progress(&mut self) {
        let Shared { clock, recording, .. } = self.shared;
        let Some(done) = self.progress.report(clock.now_ns(), || recording.iterations()) else { return };
        if self.shared.rank != ROOT {
            return self.queue(ROOT, PoolPacket::Progress { done });
        }
        self.tell_program(done);
        self.progress.called(clock.now_ns());
        self.broadcast(|| PoolPacket::Total { done });
    }

    /// Passes the number of executed iterations to the program, unless it is the last number that the program got.
    fn tell_program(&mut self, done: u64) {
        if self.progress.is_new(done) {
            self.shared.work.progress(done, self.shared.clock.now_ns());
        }
    }

    /// Notifies rank 0 when all workers of this rank begin to wait, and when one no longer waits.
    fn report_all_waiting(&mut self) {
        let Shared { clock, recording, .. } = self.shared;
        if let Some(all) = self.wait_detector.look(clock.now_ns(), || recording.all_waiting()) {
            self.queue(ROOT, PoolPacket::AllWaiting { all });
        }
    }

    fn queue(&self, to: Rank, packet: PoolPacket) {
        self.shared.shared_driver.lock().outbound.push((to, packet));
    }

    fn broadcast(&self, packet: impl Fn() -> PoolPacket) {
        let packets = self.peers.others().map(|rank| (rank, packet()));
        self.shared.shared_driver.lock().outbound.extend(packets);
    }

    fn send_outbound(&mut self) -> Result<(), Error> {
        let outbound = std::mem::take(&mut self.shared.shared_driver.lock().outbound);
        outbound.into_iter().try_for_each(|(to, packet)| self.peers.send(to, packet))
    }

    /// Sends this rank's part of the result to rank 0 when the part is complete.
    fn hand_over(&mut self) -> Result<(), Error> {
        let Some((accumulated, mut part)) = self.shared.take_part() else { return Ok(()) };
        if self.shared.rank == ROOT {
            self.parts.insert(ROOT, (accumulated, part));
            return Ok(());
        }
        part.accumulated = self.shared.encode(&accumulated)?;
        self.peers.send(ROOT, PoolPacket::RankResult(Box::new(part)))
    }

    /// On rank 0: when all parts have arrived, checks and merges them, and sends the result to all ranks.
    fn conclude(&mut self) -> Result<Option<Conclusion>, Error> {
        if self.shared.rank != ROOT || self.parts.len() < self.peers.ranks as usize {
            return Ok(None);
        }
        let (work, parts) = (self.shared.work, std::mem::take(&mut self.parts));
        let (accumulated, result) = merge_results(work, parts, self.is_cancelled())?;
        let bytes = Arc::new(if self.processes { self.shared.encode(&accumulated)? } else { Vec::new() });
        for to in self.peers.others() {
            let copy = PoolResult { accumulated: bytes.clone(), ..result.clone() };
            self.peers.send(to, PoolPacket::PoolResult(Box::new(copy)))?;
        }
        self.tell_program(result.iterations);
        Ok(Some((Some(accumulated), result)))
    }

    /// The longest time to sleep without a wake-up.
    fn timeout(&mut self) -> Option<Duration> {
        let Shared { clock, work, .. } = self.shared;
        let now_ns = clock.now_ns();
        let times = [
            self.wake_at_ns,
            self.progress.next_ns(),
            self.wait_detector.next_ns(),
            self.checkpointer.as_ref().and_then(Checkpointer::next_ns),
            work.may_be_cancelled().then(|| now_ns + NAP_MAX_NS),
        ];
        let until_ns = times.into_iter().flatten().min().map(|at_ns| at_ns.saturating_sub(now_ns));
        let nap_ns = self.peers.nap_ns(now_ns);
        [until_ns, nap_ns].into_iter().flatten().min().map(Duration::from_nanos)
    }

    /// Sends the error of the run to the other ranks, unless that was done.
    fn broadcast_failure(&mut self) {
        if let Some(error) = self.shared.outcome.error()
            && self.told.insert(News::Failed)
        {
            self.peers.send_failure(&error);
        }
    }
}

impl StepTask for CommThread<'_> {
    fn step(&mut self) -> StepOutcome {
        if self.shared.shared_driver.team.stopped() {
            return StepOutcome::Over;
        }
        match self.poll_once() {
            Ok(Some((accumulated, result))) => {
                if let Some(accumulated) = accumulated {
                    (self.deliver)(accumulated, result);
                }
                StepOutcome::Over
            }
            Ok(None) => {
                self.wake_at_ns = self.shared.shared_driver.lock().driver.wake_at();
                StepOutcome::Sleep { timeout: self.timeout() }
            }
            Err(error) => {
                self.shared.fail(error);
                StepOutcome::Over
            }
        }
    }

    fn has_work(&mut self) -> bool {
        self.shared.shared_driver.has_work_for_comm(self.wake_at_ns)
            || self.checkpointer.as_ref().is_some_and(Checkpointer::has_work)
            || self.shared.resizes.as_ref().is_some_and(|requests| requests.is_asked())
            || self.peers.has_packet()
    }

    fn doing(&self) -> String {
        format!("{}, reporting progress or collecting the result", self.shared.asking)
    }

    /// Ends the rank, which has finished or failed: its workers leave, and the other ranks are notified of a failure.
    fn end(&mut self) {
        // First, while all workers can still be sampled.
        self.shared.catching("sampling its workers", || self.shared.observe(SampleTrigger::AtEnd));
        // A worker that still executes a range returns from it. The other ranks need not wait for that.
        self.shared.shared_driver.team.stop();
        self.shared.catching("sending its failure to other ranks", || self.broadcast_failure());
        self.checkpointer.iter_mut().for_each(Checkpointer::end);
    }
}
