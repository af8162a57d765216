//! The communication thread of a rank of a pool: it sends and receives all packets of the rank.
//!
//! | it sleeps until | then it |
//! |---|---|
//! | a packet has come | handles the packet |
//! | a worker has left a packet for another rank | sends the packet |
//! | a time has come: of the driver, of a progress report, of a look at the workers | does what is due |
//! | all workers of the rank have handed in their results | sends the rank's part to rank 0 |
//!
//! The communication thread of rank 0 also collects the parts of all ranks and merges them into the result.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lb_strategies::Shape;
use litemap::LiteMap;

use super::merge::merge_results;
use super::rank::Shared;
use super::task::{StepOutcome, StepTask};
use crate::config::Config;
use crate::error::Error;
use crate::ids::{ROOT, Rank};
use crate::launch::Launch;
use crate::measure::counters::SampleTrigger;
use crate::pools::core::packet::{Part, PoolPacket, PoolResult};
use crate::pools::core::work::Accumulated;
use crate::run::watchdog::sample_interval;
use crate::trace::activity_board::ActivitySample;
use crate::transport::handle::TransportHandle;
use crate::wire::WireError;
use crate::wire::codec::{Codec, SerdeCodec};

/// Longest sleep where no thread wakes the communication thread, ns. It must notice that the pool was cancelled and,
/// between hosts, that a packet has come.
const NAP_MAX_NS: u64 = 20_000_000;
/// Sleep while packets wait for a receiver that has no room for them; longer if nothing has come for a while.
const UNSENT_NAP: Duration = Duration::from_micros(200);
/// Between hosts the longest sleep is the time since the last packet divided by this number.
const NAP_PART: u64 = 32;

pub(super) struct CommThread<'m> {
    shared: &'m Shared<'m>,
    transport: Option<TransportHandle<'m, PoolPacket>>,
    ranks: u32,
    /// True if each rank is a process, and so needs the result.
    processes: bool,
    /// True if packets are encoded and decoded even inside the process.
    wire: bool,
    /// See [`Config::watchdog`].
    watchdog_limit: Duration,
    /// The name and the parameters of the policy, as chosen.
    policy: &'m str,
    /// Parts that have come, by rank, with the accumulated value decoded.
    parts: LiteMap<Rank, (Accumulated, Part)>,
    /// This rank's part was sent to rank 0.
    handed_over: bool,
    /// The other ranks know that the run has failed.
    failure_sent: bool,
    /// The other ranks know that the pool is cancelled.
    cancel_sent: bool,
    progress: ProgressState,
    wait_detector: WaitDetector,
    last_packet_ns: u64,
    /// The time at which the driver wanted to be woken when this thread went to sleep.
    wake_at_ns: Option<u64>,
    /// Takes the result, once per process.
    deliver: &'m dyn Fn(Accumulated, PoolResult),
}

/// Progress reports to a program that wants them.
#[derive(Default)]
struct ProgressState {
    every_ns: Option<u64>,
    next_ns: u64,
    /// The number of iterations that this rank sent last.
    last_sent: u64,
    /// The number of iterations that the program of this process was told last.
    last_reported: Option<u64>,
    /// On rank 0: the number of iterations that each other rank has executed.
    others: LiteMap<Rank, u64>,
}

/// Detects that all workers of this rank wait, for rank 0: the watchdog there sees only the workers of its own process.
#[derive(Default)]
struct WaitDetector {
    /// None where no rank needs it: on rank 0, within one process, without a watchdog, and in virtual time.
    every_ns: Option<u64>,
    next_ns: u64,
    /// What the workers waited in at the last look, if all of them waited.
    seen: Option<Vec<ActivitySample>>,
    /// What rank 0 was told last.
    last_sent: bool,
    /// On rank 0: the ranks whose workers all wait.
    waiting: BTreeSet<Rank>,
}

/// The accumulated value, where this rank delivers it, and the rest of the result.
type Conclusion = (Option<Accumulated>, PoolResult);

impl<'m> CommThread<'m> {
    pub(super) fn new(
        shared: &'m Shared<'m>,
        transport: Option<TransportHandle<'m, PoolPacket>>,
        ranks: u32,
        config: &'m Config,
        deliver: &'m dyn Fn(Accumulated, PoolResult),
    ) -> CommThread<'m> {
        let every_ns = shared.work.progress_interval_ns().filter(|_| shared.rank == ROOT);
        let processes = config.launch() != Launch::Alone;
        // In virtual time the watchdog cannot see how long workers wait.
        let others_work = ranks > 1 && (processes || shared.clock.is_virtual());
        shared.recording.other_ranks_busy.store(others_work, Ordering::Relaxed);
        let looks = processes && shared.rank != ROOT && !config.watchdog.is_zero();
        let look_every_ns =
            (looks && !shared.clock.is_virtual()).then(|| sample_interval(config).as_nanos() as u64);
        CommThread {
            shared,
            transport,
            ranks,
            processes,
            wire: config.wire,
            watchdog_limit: config.watchdog,
            policy: config.lb_spec(Shape::Pools),
            parts: LiteMap::new(),
            handed_over: false,
            failure_sent: false,
            cancel_sent: false,
            progress: ProgressState { every_ns, ..ProgressState::default() },
            wait_detector: WaitDetector { every_ns: look_every_ns, ..WaitDetector::default() },
            last_packet_ns: 0,
            wake_at_ns: None,
            deliver,
        }
    }

    /// Begins the pool; fails with the panic `refused` if the machine could not be made.
    pub(super) fn begin(&mut self, refused: Option<Box<dyn Any + Send>>) {
        let shared = self.shared;
        shared.catching(&shared.asking, || {
            if let Some(panic) = refused {
                resume_unwind(panic);
            }
            shared.with(|inner, now_ns, actions| inner.driver.begin(now_ns, actions));
        });
        if let Some(every_ns) = self.progress.every_ns {
            self.broadcast(|| PoolPacket::SubscribeProgress { every_ns });
        }
    }

    /// Closes the transport once all packets have arrived, or never will.
    pub(super) fn close(&mut self) {
        let shared = self.shared;
        if let Some(transport) = &mut self.transport {
            transport.close(&shared.outcome.give_up_condition(shared.clock, self.watchdog_limit));
        }
    }

    /// Does all that can be done without waiting. Returns the result once it is there.
    fn poll_once(&mut self) -> Result<Option<Conclusion>, Error> {
        while let Some(received) = self.transport.as_mut().and_then(|transport| transport.poll()) {
            let (from, packet) = received?;
            self.last_packet_ns = self.shared.clock.now_ns();
            if let Some(result) = self.handle_packet(from, packet)? {
                return Ok(Some(result));
            }
        }
        if self.shared.work.is_cancelled() {
            self.shared.with(|inner, _, actions| inner.driver.cancel(actions));
        }
        if !self.cancel_sent && self.shared.shared_driver.lock().driver.is_cancelled() {
            self.cancel_sent = true;
            self.broadcast(|| PoolPacket::Cancel);
        }
        self.shared.with(|inner, now_ns, actions| inner.driver.pass_time(now_ns, actions));
        self.follow();
        self.report_all_waiting();
        let outbound = std::mem::take(&mut self.shared.shared_driver.lock().outbound);
        for (to, packet) in outbound {
            self.send(to, packet)?;
        }
        self.hand_over()?;
        if self.shared.rank == ROOT && self.parts.len() == self.ranks as usize {
            return self.conclude().map(Some);
        }
        Ok(None)
    }

    fn send(&mut self, to: Rank, mut packet: PoolPacket) -> Result<(), Error> {
        // Only a message of the policy can be for its own rank or for a rank that does not exist.
        if to == self.shared.rank || to.0 >= self.ranks {
            return Err(self.misdirected(to));
        }
        let Some(transport) = &mut self.transport else { return Ok(()) };
        if self.wire {
            packet = SerdeCodec::new(self.shared.rank).round_trip(packet)?;
        }
        transport.send(to, packet)
    }

    fn misdirected(&self, to: Rank) -> Error {
        let (rank, last) = (self.shared.rank, self.ranks - 1);
        let to = if to == rank { "itself".into() } else { format!("rank {to}") };
        let fault =
            format!("sends a message to {to}: the ranks are 0 to {last}, and it may write to others only");
        Error::PolicyFailed { rank, policy: self.policy.into(), fault }
    }

    fn broadcast(&mut self, packet: impl Fn() -> PoolPacket) {
        let others = (0..self.ranks).map(Rank).filter(|&rank| rank != self.shared.rank);
        let mut inner = self.shared.shared_driver.lock();
        inner.outbound.extend(others.map(|rank| (rank, packet())));
    }

    fn handle_packet(&mut self, from: Rank, packet: PoolPacket) -> Result<Option<Conclusion>, Error> {
        match packet {
            PoolPacket::Machine(message) => {
                let heard = self
                    .shared
                    .with(|inner, now_ns, actions| inner.driver.hear(from, message, now_ns, actions));
                heard.map_err(|why| {
                    let what = format!("a message from rank {from} to the policy `{}`", self.policy);
                    decode_error(self.shared.rank, &what, &why)
                })?;
            }
            PoolPacket::SubscribeProgress { every_ns } => self.progress.every_ns = Some(every_ns),
            PoolPacket::Progress { done } => {
                self.progress.others.insert(from, done);
            }
            // Within one process rank 0 reports to the program.
            PoolPacket::Total { done } if self.processes => self.report_progress(done),
            PoolPacket::Total { .. } => {}
            PoolPacket::AllWaiting { all } => {
                let waiting = &mut self.wait_detector.waiting;
                if all {
                    waiting.insert(from)
                } else {
                    waiting.remove(&from)
                };
                let others_work = waiting.len() + 1 < self.ranks as usize;
                self.shared.recording.other_ranks_busy.store(others_work, Ordering::Relaxed);
            }
            PoolPacket::Cancel => {
                // The rank that cancelled tells all ranks.
                self.cancel_sent = true;
                self.shared.with(|inner, _, actions| inner.driver.cancel(actions));
            }
            PoolPacket::Abort(error) => {
                self.failure_sent = true;
                self.shared.fail(*error);
            }
            PoolPacket::RankResult(mut part) => {
                let bytes = std::mem::take(&mut part.accumulated);
                let accumulated = self.shared.work.decode(&bytes).map_err(|why| self.not_decoded(&why))?;
                self.parts.insert(from, (accumulated, *part));
            }
            PoolPacket::PoolResult(mut result) => {
                if self.processes {
                    self.report_end(&result);
                }
                let bytes = std::mem::take(&mut result.accumulated);
                let decoded = self.processes.then(|| self.shared.work.decode(&bytes)).transpose();
                return Ok(Some((decoded.map_err(|why| self.not_decoded(&why))?, *result)));
            }
        }
        Ok(None)
    }

    /// Reports progress when it is due: to rank 0, or on rank 0 to the program and to all ranks.
    fn follow(&mut self) {
        let now_ns = self.shared.clock.now_ns();
        let Some(every_ns) = self.progress.every_ns.filter(|_| now_ns >= self.progress.next_ns) else {
            return;
        };
        self.progress.next_ns = now_ns.saturating_add(every_ns);
        let mut done = self.shared.recording.iterations();
        if self.shared.rank == ROOT {
            done += self.progress.others.values().sum::<u64>();
        }
        if std::mem::replace(&mut self.progress.last_sent, done) == done {
            return;
        }
        if self.shared.rank != ROOT {
            self.shared.shared_driver.lock().outbound.push((ROOT, PoolPacket::Progress { done }));
            return;
        }
        self.report_progress(done);
        // A slow callback must not take all the time of the communication thread.
        self.progress.next_ns = self.shared.clock.now_ns().saturating_add(every_ns);
        self.broadcast(|| PoolPacket::Total { done });
    }

    /// Tells rank 0 when all workers of this rank begin to wait, and when one no longer does.
    fn report_all_waiting(&mut self) {
        let now_ns = self.shared.clock.now_ns();
        let Some(every_ns) = self.wait_detector.every_ns.filter(|_| now_ns >= self.wait_detector.next_ns)
        else {
            return;
        };
        self.wait_detector.next_ns = now_ns.saturating_add(every_ns);
        let wait = self.shared.recording.all_waiting();
        let all = wait.is_some() && wait == self.wait_detector.seen;
        self.wait_detector.seen = wait;
        if std::mem::replace(&mut self.wait_detector.last_sent, all) != all {
            self.shared.shared_driver.lock().outbound.push((ROOT, PoolPacket::AllWaiting { all }));
        }
    }

    /// On rank 0, when all parts have come: checks and merges them, and sends the result to all ranks.
    fn conclude(&mut self) -> Result<Conclusion, Error> {
        let Shared { work, .. } = self.shared;
        let cancelled = self.shared.shared_driver.lock().driver.is_cancelled();
        let (accumulated, result) = merge_results(*work, std::mem::take(&mut self.parts), cancelled)?;
        let bytes = Arc::new(if self.processes { self.encode(&accumulated)? } else { Vec::new() });
        for to in (1..self.ranks).map(Rank) {
            let copy = PoolResult { accumulated: bytes.clone(), ..result.clone() };
            self.send(to, PoolPacket::PoolResult(Box::new(copy)))?;
        }
        self.report_end(&result);
        Ok((Some(accumulated), result))
    }

    /// Reports the last progress to the program.
    fn report_end(&mut self, result: &PoolResult) {
        self.report_progress(result.iterations);
    }

    /// Reports the progress to the program unless it was reported before.
    fn report_progress(&mut self, done: u64) {
        if self.progress.last_reported.replace(done) != Some(done) {
            self.shared.work.progress(done, self.shared.clock.now_ns());
        }
    }

    /// Sends this rank's part to rank 0 when the part is complete.
    fn hand_over(&mut self) -> Result<(), Error> {
        if !self.handed_over
            && let Some((accumulated, mut part)) = self.shared.part()
        {
            self.handed_over = true;
            if self.shared.rank == ROOT {
                self.parts.insert(ROOT, (accumulated, part));
            } else {
                part.accumulated = self.encode(&accumulated)?;
                self.send(ROOT, PoolPacket::RankResult(Box::new(part)))?;
            }
        }
        Ok(())
    }

    /// The longest time to sleep if no thread wakes it.
    fn timeout(&mut self) -> Option<Duration> {
        let Shared { clock, work, .. } = self.shared;
        let now_ns = clock.now_ns();
        let times = [
            self.wake_at_ns,
            self.progress.every_ns.map(|_| self.progress.next_ns),
            self.wait_detector.every_ns.map(|_| self.wait_detector.next_ns),
            work.may_be_cancelled().then(|| now_ns + NAP_MAX_NS),
        ];
        let until_ns = times.into_iter().flatten().min().map(|at_ns| at_ns.saturating_sub(now_ns));
        let nap = self.transport.as_mut().and_then(|transport| {
            let all_left = transport.idle();
            // A receiver that makes room for a packet does not wake its sender.
            transport.nap().or((!all_left).then_some(UNSENT_NAP))
        });
        let quiet_ns = (now_ns.saturating_sub(self.last_packet_ns) / NAP_PART).min(NAP_MAX_NS);
        let nap_ns = nap.map(|nap| (nap.as_nanos() as u64).max(quiet_ns));
        [until_ns, nap_ns].into_iter().flatten().min().map(Duration::from_nanos)
    }

    /// Tells the other ranks why the run has failed, unless they know.
    fn broadcast_failure(&mut self) {
        let Some(error) = self.shared.outcome.error().filter(|_| !self.failure_sent) else { return };
        self.failure_sent = true;
        let Some(transport) = &mut self.transport else { return };
        for to in (0..self.ranks).map(Rank).filter(|&to| to != self.shared.rank) {
            // A rank that can no longer be reached knows already.
            let _ = transport.send(to, PoolPacket::Abort(Box::new(error.clone())));
        }
        transport.idle();
    }

    fn encode(&self, accumulated: &Accumulated) -> Result<Vec<u8>, Error> {
        let encoded = self.shared.work.encode(accumulated);
        encoded.map_err(|why| decode_error(self.shared.rank, ACCUMULATED, &why))
    }

    fn not_decoded(&self, why: &WireError) -> Error {
        decode_error(self.shared.rank, ACCUMULATED, why)
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
        self.shared.shared_driver.has_work_for_comm(self.wake_at_ns, !self.handed_over)
            || self.transport.as_mut().is_some_and(|transport| transport.ready())
    }

    fn doing(&self) -> String {
        format!("{}, telling progress or collecting the result", self.shared.asking)
    }

    /// The rank has finished or failed: its workers leave, and the other ranks are told of a failure.
    fn end(&mut self) {
        // First, while all workers can still be sampled.
        self.shared.catching("observing its workers", || self.shared.observe(SampleTrigger::AtEnd));
        // A worker that still executes a range returns from it; the other ranks need not wait for that.
        self.shared.shared_driver.team.stop();
        self.shared.catching("telling others why it failed", || self.broadcast_failure());
    }
}

const ACCUMULATED: &str = "what the pool has accumulated";

fn decode_error(rank: Rank, what: &str, why: &impl fmt::Display) -> Error {
    Error::Wire { rank, what: what.into(), why: why.to_string() }
}
