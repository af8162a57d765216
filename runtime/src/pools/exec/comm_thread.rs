//! The monitor of a rank of a pool: its ear and its mouth.
//!
//! It sleeps until a packet comes, a worker has left something for the transport, or a time has come. Rank 0's also
//! collects the parts of all ranks and makes the whole of them.

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

/// Longest sleep of a monitor where no thread wakes it: to see that the pool was cancelled, or, between hosts, that a
/// packet has come, ns.
const NAP_MAX_NS: u64 = 20_000_000;
/// Time that the monitor sleeps, at first, while packets wait for a receiver that takes none.
const UNSENT_NAP: Duration = Duration::from_micros(200);
/// Between hosts it sleeps at most this part of the time for which nothing has come.
const NAP_PART: u64 = 32;

pub(super) struct CommThread<'m> {
    shared: &'m Shared<'m>,
    transport: Option<TransportHandle<'m, PoolPacket>>,
    ranks: u32,
    /// True if ranks are processes, of which each needs the result.
    processes: bool,
    /// Encode and decode every packet even inside the process.
    wire: bool,
    /// See [`Config::watchdog`].
    watchdog_limit: Duration,
    /// As it was chosen.
    policy: &'m str,
    /// Parts that have come, by rank: what was accumulated, and the rest.
    parts: LiteMap<Rank, (Accumulated, Part)>,
    handed_over: bool,
    /// The run has failed elsewhere: everybody knows.
    told: bool,
    /// Everybody knows that the pool is cancelled, if it is.
    cancel_sent: bool,
    follow: ProgressState,
    wait_detector: WaitDetector,
    last_packet_ns: u64,
    /// The time for which its driver waited when it went to sleep.
    wake_at_ns: Option<u64>,
    /// Takes the result, in each process once.
    deliver: &'m dyn Fn(Accumulated, PoolResult),
}

/// The progress of the pool, for a program that follows it.
#[derive(Default)]
struct ProgressState {
    every_ns: Option<u64>,
    next_ns: u64,
    told: u64,
    /// The progress that the program of this process was told last.
    last_reported: Option<u64>,
    others: LiteMap<Rank, u64>,
}

/// Looks after workers that all wait, where the watchdog of rank 0 sees those of its own process alone.
#[derive(Default)]
struct WaitDetector {
    /// None where it need not: on rank 0, who hears of it, and within one process.
    every_ns: Option<u64>,
    next_ns: u64,
    seen: Option<Vec<ActivitySample>>,
    told: bool,
    /// Ranks of which all workers wait, as rank 0 heard.
    waiting: BTreeSet<Rank>,
}

/// The accumulated value, where it is needed, and the rest.
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
        // In virtual time nobody sees how long workers wait.
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
            told: false,
            cancel_sent: false,
            follow: ProgressState { every_ns, ..ProgressState::default() },
            wait_detector: WaitDetector { every_ns: look_every_ns, ..WaitDetector::default() },
            last_packet_ns: 0,
            wake_at_ns: None,
            deliver,
        }
    }

    /// The pool begins; or not, if the machine `refused` to be made.
    pub(super) fn begin(&mut self, refused: Option<Box<dyn Any + Send>>) {
        let shared = self.shared;
        shared.catching(&shared.asking, || {
            if let Some(panic) = refused {
                resume_unwind(panic);
            }
            shared.with(|inner, now_ns, actions| inner.driver.begin(now_ns, actions));
        });
        if let Some(every_ns) = self.follow.every_ns {
            self.broadcast(|| PoolPacket::SubscribeProgress { every_ns });
        }
    }

    /// Everybody has what was sent to them, or never will.
    pub(super) fn close(&mut self) {
        let shared = self.shared;
        if let Some(transport) = &mut self.transport {
            transport.close(&shared.outcome.give_up_condition(shared.clock, self.watchdog_limit));
        }
    }

    /// Does what there is to do; the result, if there is one now.
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
        if !self.cancel_sent && self.shared.meeting.lock().driver.is_cancelled() {
            self.cancel_sent = true;
            self.broadcast(|| PoolPacket::Cancel);
        }
        self.shared.with(|inner, now_ns, actions| inner.driver.pass_time(now_ns, actions));
        self.follow();
        self.report_all_waiting();
        let outbound = std::mem::take(&mut self.shared.meeting.lock().outbound);
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
        // Only a policy can name its own rank, or one that is not there.
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
        let mut inner = self.shared.meeting.lock();
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
            PoolPacket::SubscribeProgress { every_ns } => self.follow.every_ns = Some(every_ns),
            PoolPacket::Progress { done } => {
                self.follow.others.insert(from, done);
            }
            // In one process rank 0 tells the program.
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
                // Who cancelled tells all.
                self.cancel_sent = true;
                self.shared.with(|inner, _, actions| inner.driver.cancel(actions));
            }
            PoolPacket::Abort(error) => {
                self.told = true;
                self.shared.fail(*error);
            }
            PoolPacket::RankResult(mut part) => {
                let bytes = std::mem::take(&mut part.accumulated);
                let accumulated = self.shared.work.decode(&bytes).map_err(|why| self.not_decoded(&why))?;
                self.parts.insert(from, (accumulated, *part));
            }
            PoolPacket::PoolResult(mut whole) => {
                if self.processes {
                    self.report_end(&whole);
                }
                let bytes = std::mem::take(&mut whole.accumulated);
                let decoded = self.processes.then(|| self.shared.work.decode(&bytes)).transpose();
                return Ok(Some((decoded.map_err(|why| self.not_decoded(&why))?, *whole)));
            }
        }
        Ok(None)
    }

    /// Tells and hears how far all are.
    fn follow(&mut self) {
        let now_ns = self.shared.clock.now_ns();
        let Some(every_ns) = self.follow.every_ns.filter(|_| now_ns >= self.follow.next_ns) else { return };
        self.follow.next_ns = now_ns.saturating_add(every_ns);
        let mut done = self.shared.recording.iterations();
        if self.shared.rank == ROOT {
            done += self.follow.others.values().sum::<u64>();
        }
        if std::mem::replace(&mut self.follow.told, done) == done {
            return;
        }
        if self.shared.rank != ROOT {
            self.shared.meeting.lock().outbound.push((ROOT, PoolPacket::Progress { done }));
            return;
        }
        self.report_progress(done);
        // A slow listener must not take all the monitor's time.
        self.follow.next_ns = self.shared.clock.now_ns().saturating_add(every_ns);
        self.broadcast(|| PoolPacket::Total { done });
    }

    /// Tells rank 0 when all workers of this rank begin to wait, and when they do no longer.
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
        if std::mem::replace(&mut self.wait_detector.told, all) != all {
            self.shared.meeting.lock().outbound.push((ROOT, PoolPacket::AllWaiting { all }));
        }
    }

    /// All parts have come: checks and merges them, and tells everybody.
    fn conclude(&mut self) -> Result<Conclusion, Error> {
        let Shared { work, .. } = self.shared;
        let cancelled = self.shared.meeting.lock().driver.is_cancelled();
        let (accumulated, whole) = merge_results(*work, std::mem::take(&mut self.parts), cancelled)?;
        let bytes = Arc::new(if self.processes { self.encode(&accumulated)? } else { Vec::new() });
        for to in (1..self.ranks).map(Rank) {
            let told = PoolResult { accumulated: bytes.clone(), ..whole.clone() };
            self.send(to, PoolPacket::PoolResult(Box::new(told)))?;
        }
        self.report_end(&whole);
        Ok((Some(accumulated), whole))
    }

    /// Tells a program that follows the pool of its end.
    fn report_end(&mut self, whole: &PoolResult) {
        self.report_progress(whole.iterations);
    }

    /// Tells the program how far the pool is, if that is news.
    fn report_progress(&mut self, done: u64) {
        if self.follow.last_reported.replace(done) != Some(done) {
            self.shared.work.progress(done, self.shared.clock.now_ns());
        }
    }

    /// Hands this rank's part over when it is through.
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
            self.follow.every_ns.map(|_| self.follow.next_ns),
            self.wait_detector.every_ns.map(|_| self.wait_detector.next_ns),
            work.may_be_cancelled().then(|| now_ns + NAP_MAX_NS),
        ];
        let until_ns = times.into_iter().flatten().min().map(|at_ns| at_ns.saturating_sub(now_ns));
        let nap = self.transport.as_mut().and_then(|transport| {
            let all_left = transport.idle();
            // Who makes room for what waits here wakes nobody.
            transport.nap().or((!all_left).then_some(UNSENT_NAP))
        });
        let quiet_ns = (now_ns.saturating_sub(self.last_packet_ns) / NAP_PART).min(NAP_MAX_NS);
        let nap_ns = nap.map(|nap| (nap.as_nanos() as u64).max(quiet_ns));
        [until_ns, nap_ns].into_iter().flatten().min().map(Duration::from_nanos)
    }

    /// Tells the others that the run has failed here, and why.
    fn broadcast_failure(&mut self) {
        let Some(error) = self.shared.outcome.error().filter(|_| !self.told) else { return };
        self.told = true;
        let Some(transport) = &mut self.transport else { return };
        for to in (0..self.ranks).map(Rank).filter(|&to| to != self.shared.rank) {
            // Who cannot be told any more knows.
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
        if self.shared.meeting.team.stopped() {
            return StepOutcome::Over;
        }
        match self.poll_once() {
            Ok(Some((accumulated, whole))) => {
                if let Some(accumulated) = accumulated {
                    (self.deliver)(accumulated, whole);
                }
                StepOutcome::Over
            }
            Ok(None) => {
                self.wake_at_ns = self.shared.meeting.lock().driver.wake_at();
                StepOutcome::Sleep { timeout: self.timeout() }
            }
            Err(error) => {
                self.shared.fail(error);
                StepOutcome::Over
            }
        }
    }

    fn has_work(&mut self) -> bool {
        self.shared.meeting.has_work_for_comm(self.wake_at_ns, !self.handed_over)
            || self.transport.as_mut().is_some_and(|transport| transport.ready())
    }

    fn doing(&self) -> String {
        format!("{}, telling progress or collecting the result", self.shared.asking)
    }

    /// The rank is through, or has failed: its workers leave, and the others hear why.
    fn end(&mut self) {
        // While all workers are there to be looked at.
        self.shared.catching("observing its workers", || self.shared.observe(SampleTrigger::AtEnd));
        // Those that are still in a range come back from it; others need not wait for that.
        self.shared.meeting.team.stop();
        self.shared.catching("telling others why it failed", || self.broadcast_failure());
    }
}

const ACCUMULATED: &str = "what the pool has accumulated";

fn decode_error(rank: Rank, what: &str, why: &impl fmt::Display) -> Error {
    Error::Wire { rank, what: what.into(), why: why.to_string() }
}
