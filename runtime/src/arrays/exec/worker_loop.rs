//! A worker as a thread: turns while there is work, a short spin, then sleep.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::queue_order::TurnStats;
use super::spin_policy;
use super::watermarks;
use super::worker::Worker;
use crate::arrays::core::routing::message_list::{FreeList, Outbox};
use crate::arrays::core::sync::sync_log::SyncLog;
use crate::arrays::core::termination::undelivered::Addressees;
use crate::error::Error;
use crate::ids::{RUNTIME, WorkerId};
use crate::panics;

/// Chunks run in one turn: between two looks at what waits for company in the core.
const STEPS_MAX: u32 = 512;
/// Looks between two pauses of a spinning worker: a pause is kind to the other thread of a core, but as long as a look.
const LOOKS: u32 = 4;
/// Looks that a poll of the transport takes the time of, and one while a transfer is under way.
const LOOKS_A_POLL: u32 = 4;
const LOOKS_A_TRANSFER: u32 = 16;
/// The factor by which a worker spins longer while a transfer is under way: one of 1 MiB takes some 100 us.
const TRANSFER_PATIENCE: u32 = 8;
/// Time that a worker sleeps on events that are in no file yet.
const UNWRITTEN_NAP: Duration = Duration::from_secs(1);
/// Time for which it sleeps in such naps; its notes of a longer sleep are not worth waking for.
const NAPS_NS: u64 = 2_000_000_000;
/// Time that rank 0 sleeps before it asks whether any rank is still at work.
const SUSPECT: Duration = Duration::from_millis(100);
/// The same where a message waits for all to have nothing to do; and the first nap of a worker 0 whose fellows still work
/// while rank 0 asks.
const SUSPECT_SOON: Duration = Duration::from_millis(1);
/// Time that worker 0 sleeps, at first and at most, while packets wait for a receiver that takes none.
const UNSENT_NAP: Duration = Duration::from_micros(200);
const UNSENT_NAP_MAX: Duration = Duration::from_millis(2);

/// How worker 0 rests.
struct RestPlan {
    /// Once it has rested for so long it asks whether any rank is still at work; none where it is not to.
    suspect: Option<Duration>,
    /// It sleeps no shorter at a time, unless packets wait.
    nap_min: Duration,
}

impl Worker<'_> {
    /// Works until the rank stops.
    pub(crate) fn work(&mut self) {
        let mut outbox = self.outbox();
        while !self.shared.scheduler.stopped() {
            self.catching(|worker| worker.turn(&mut outbox));
        }
        self.shared.measurements.recording().waits_for_others(None);
        self.report_undelivered();
        self.instruments.rest();
        self.send_the_last();
        self.instruments.finish();
        let handled = self.instruments.handled();
        self.shared.ending.add(|figures| figures.messages += handled);
        self.shared.measurements.recording().count(handled);
        self.record_syncs();
    }

    /// Worker 0 sends what the rank said before it stopped, the end of the run above all: the others wait for it.
    pub(crate) fn send_the_last(&mut self) {
        if self.remote_sender.has_transport() {
            // A message that cannot be encoded any more was in flight when the run ended, and counts no more.
            self.catching(|worker| drop(worker.remote_sender.send_outbound()));
            self.remote_sender.close();
        }
    }

    /// Does something that may run user code; a panic ends the run with an error that names the chunk.
    pub(crate) fn catching(&mut self, act: impl FnOnce(&mut Self)) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| act(self))) {
            // Its handler is the one that somebody will look for in the record.
            self.instruments.interrupt();
            let error =
                panics::panic_error(self.shared.info.rank, &*panic, |panic| self.handler_panicked(panic));
            // What could not be sent is of no use any more, and may panic again. The end of the run must get through.
            self.remote_sender.clear();
            if catch_unwind(AssertUnwindSafe(|| self.fail(error.clone()))).is_err() {
                self.remote_sender.clear();
                self.shared.give_up(error);
            }
        }
    }

    fn handler_panicked(&self, panic: String) -> Error {
        let activity = self.instruments.activity();
        let (chunk, kind, phase) = (activity.chunk.get(), activity.kind.get(), activity.phase.get());
        let rank = self.shared.info.rank;
        if chunk == RUNTIME {
            return Error::Panicked { rank, doing: format!("the runtime handled {kind}"), panic };
        }
        // The name is made by the user's index, which may be what panicked.
        let name = catch_unwind(AssertUnwindSafe(|| self.describe(chunk)));
        let chunk = name.unwrap_or_else(|_| format!("{chunk:?}"));
        Error::HandlerPanicked { rank, chunk, message: kind.into(), phase, panic }
    }

    /// Worker 0 says what its rank knows of messages that reached nobody.
    pub(crate) fn report_undelivered(&mut self) {
        if self.id != WorkerId(0) || self.shared.ending.has_failed() {
            return;
        }
        // The kind of a message is known to user code, which may panic.
        self.catching(|worker| {
            let shared = worker.shared;
            let waiting = shared.control_plane.lock().rank.take_waiting();
            let mut addressees = Addressees::default();
            for (chunk, mail) in &waiting {
                let array = &shared.arrays[chunk.array.index()];
                mail.iter().for_each(|delivery| addressees.add(*chunk, array.kind(&delivery.payload)));
            }
            let undelivered_report = shared.control_plane.lock().rank.undelivered_report(&addressees);
            shared.ending.add(|figures| {
                figures.undelivered_report = undelivered_report;
                figures.waiting_bytes_max = shared.watermarks.max_bytes();
            });
        });
    }

    /// Rank 0 hands in the record of all syncs.
    pub(crate) fn record_syncs(&self) {
        if self.id == WorkerId(0) {
            let record = self.shared.control_plane.lock().rank.sync_log().map(SyncLog::take);
            if let Some((syncs, totals)) = record {
                self.shared.ending.add(|figures| (figures.syncs, figures.sync_totals) = (syncs, totals));
            }
        }
    }

    fn turn(&mut self, outbox: &mut Outbox) {
        // What a handler that panicked left.
        outbox.take().for_each(drop);
        let (handled, mut start_ns) = (self.instruments.handled(), self.instruments.time_ns());
        let (mut left, mut runs) = (STEPS_MAX, 0);
        while left > 0 {
            if self.shared.scheduler.stopped() {
                return;
            }
            let steps = if self.remote_sender.congested() { 0 } else { self.steps(left, outbox) };
            runs += u64::from(steps);
            left -= steps.max(1);
            if steps > 0 && self.has_just_looked() {
                continue;
            }
            if !self.progress(&mut outbox.free_list) && steps == 0 {
                start_ns += self.idle(&mut outbox.free_list);
            } else {
                self.spin_policy.count_rest_anew();
            }
        }
        let messages = self.instruments.handled() - handled;
        let ns = self.instruments.time_ns().saturating_sub(start_ns);
        self.local_delivery.ready.learn(&TurnStats { runs, messages, ns });
        if self.id == WorkerId(0) {
            let shared = self.shared;
            self.with_core(|core, now_ns, out| watermarks::hurry(shared, core, now_ns, out));
        }
    }

    /// No work: spins, tells the core, and sleeps. The time counts as idle. Returns it, ns; only that of sleep where handlers
    /// are not measured: one that comes soon is not to wait for a reading of the clock.
    fn idle(&mut self, free_list: &mut FreeList) -> u64 {
        let begin_ns = self.instruments.last_ns();
        // Others may be waiting for it: it leaves before we look around.
        self.remote_sender.idle();
        // After a nap without work there is no reason to believe that some is about to come.
        let first = self.spin_policy.rested_ns() == 0;
        let found = first && self.spin(free_list);
        let parked_ns = if found { 0 } else { self.rest() };
        if first && parked_ns > 0 && parked_ns < spin_policy::LONG_NS && self.work_in_sight() {
            self.spin_policy.learn(true);
        }
        // Here, so that no chunk pays for what has come, and nobody has to look at the clock again.
        if !found && self.take_packets(free_list) {
            self.spin_policy.count_rest_anew();
        }
        self.instruments.idle(parked_ns);
        let measured = self.instruments.last_ns().zip(begin_ns);
        measured.map_or(parked_ns, |(end_ns, begin_ns)| end_ns.saturating_sub(begin_ns))
    }

    /// Spins for as long as it is reasonable; true if there is work.
    fn spin(&mut self, free_list: &mut FreeList) -> bool {
        let short = self.shared.scheduler.spins();
        let turns = if self.remote_sender.transfers() { short * TRANSFER_PATIENCE } else { short };
        if self.spin_for(turns, free_list) {
            return true;
        }
        if short == 0 || !self.spin_policy.spins_on() {
            return false;
        }
        let soon = self.spin_for(short * spin_policy::LONG, free_list);
        self.spin_policy.learn(soon);
        soon
    }

    /// Looks so many times, and takes the first packet that comes; true if there is work.
    fn spin_for(&mut self, turns: u32, free_list: &mut FreeList) -> bool {
        let looks = match self.remote_sender.has_transport() {
            true if self.remote_sender.transfers() => LOOKS_A_TRANSFER,
            true => LOOKS_A_POLL,
            false => 1,
        };
        (0..turns / looks).any(|turn| {
            if turn % LOOKS == 0 {
                std::hint::spin_loop();
            }
            self.take_packet(free_list) || self.work_in_the_rank()
        })
    }

    /// Something a turn would find: a token, a packet, an answer of the strategy, the end.
    fn work_in_sight(&mut self) -> bool {
        self.remote_sender.is_ready() || self.work_in_the_rank()
    }

    /// The same, but for packets.
    fn work_in_the_rank(&self) -> bool {
        let scheduler = &self.shared.scheduler;
        let entries = || self.has_chunks_to_run() || scheduler.has_entries();
        let left = || self.remote_sender.outbound_waits() || self.has_answer();
        (!scheduler.is_congested() && entries()) || left() || scheduler.stopped()
    }

    /// Passes on what waits for company, then parks. Returns how long it was parked, ns.
    fn rest(&mut self) -> u64 {
        let shared = self.shared;
        // A token that it must not run now, because another rank is slow, is work that others see.
        self.local_delivery.share_newest();
        // Others sleep until they are woken, but first wake once or twice to write the events that are in no file.
        let unwritten = self.instruments.has_unwritten();
        let mut nap = (unwritten && self.spin_policy.rested_ns() < NAPS_NS).then_some(UNWRITTEN_NAP);
        let mut suspect = None;
        self.report_bytes();
        if self.id == WorkerId(0) {
            let pause = self.rank_rests();
            suspect = pause.suspect;
            let rested = Duration::from_nanos(self.spin_policy.rested_ns() / 8);
            nap = Some(self.pass_on().min(rested.max(pause.nap_min)));
            if self.work_in_sight() {
                return 0;
            }
        } else if shared.watermarks.may_block() {
            // It says so where nothing is left to run but what is pressed.
            shared.scheduler.wake_driver();
        }
        let parked_ns = self.sleep(nap);
        if suspect.is_some_and(|suspect| self.spin_policy.rested_ns() >= suspect.as_nanos() as u64) {
            self.spin_policy.count_rest_anew();
            self.with_core(|core, _, out| core.suspect(out));
        }
        parked_ns
    }

    /// Worker 0 tells the core that its rank may have nothing to do.
    fn rank_rests(&mut self) -> RestPlan {
        let shared = self.shared;
        let scheduler = &shared.scheduler;
        let among_processes = self.remote_sender.is_between_processes();
        // What it told may have freed entries.
        let has_none = !self.has_chunks_to_run();
        let mut pause = RestPlan { suspect: None, nap_min: SUSPECT };
        self.with_core(|core, now_ns, out| {
            // Under its lock: a worker that wakes because something is due takes that before it sends.
            let rests = has_none && scheduler.others_are_parked() && !scheduler.has_entries();
            if rests && !scheduler.is_congested() {
                watermarks::idle(shared, core, now_ns, out);
            } else {
                watermarks::hurry(shared, core, now_ns, out);
            }
            let is_searched = core.is_searched();
            pause.suspect = core.may_suspect().then_some(if is_searched { SUSPECT_SOON } else { SUSPECT });
            if is_searched || core.has_parked() {
                pause.nap_min = SUSPECT_SOON;
            }
            let wave = core.open_wave().filter(|_| among_processes && scheduler.others_are_parked());
            shared.measurements.recording().waits_for_others(wave);
        });
        pause
    }

    /// Parks until it is woken, or for so long. Returns how long that was, ns.
    fn sleep(&mut self, nap: Option<Duration>) -> u64 {
        let shared = self.shared;
        // What follows is not idle.
        self.instruments.idle(0);
        self.instruments.close_batch();
        let start_ns = shared.clock.now_ns();
        let gauge = shared.measurements.gauge(self.id);
        gauge.begin_park(start_ns);
        let nap = self.timers.shorten(nap, start_ns);
        // Only now: each look for a packet is work of the runtime.
        self.instruments.rest();
        shared.scheduler.park(self.id, nap, || self.work_in_sight());
        let end_ns = shared.clock.now_ns();
        gauge.end_park(end_ns);
        let parked_ns = end_ns.saturating_sub(start_ns);
        self.spin_policy.rested(parked_ns);
        parked_ns
    }

    /// Lets the transport send what waits for company; says how long worker 0 may sleep.
    fn pass_on(&mut self) -> Duration {
        let Some(all_left) = self.remote_sender.idle() else { return SUSPECT };
        let unsent = Duration::from_nanos(self.spin_policy.rested_ns() / 8).clamp(UNSENT_NAP, UNSENT_NAP_MAX);
        let longest = if all_left { SUSPECT } else { unsent };
        self.remote_sender.nap().map_or(longest, |nap| nap.min(longest))
    }
}
