//! The main loop of a worker thread: takes turns while there is work, then spins, then sleeps.

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

/// Maximum number of runs per turn. After each turn worker 0 lets the core send its partial results up the tree.
const STEPS_MAX: u32 = 512;
/// Number of checks of a spinning worker per pause instruction. A pause helps the other hardware thread of the core,
/// but takes as long as a check.
const LOOKS: u32 = 4;
/// Duration of a poll of the transport, in checks: usually, and while a transfer is in progress.
const LOOKS_A_POLL: u32 = 4;
const LOOKS_A_TRANSFER: u32 = 16;
/// Factor by which a worker spins longer while a transfer is in progress: a transfer of 1 MiB takes about 100 us.
const TRANSFER_PATIENCE: u32 = 8;
/// The longest sleep of a worker while recorded events are not in a file yet.
const UNWRITTEN_NAP: Duration = Duration::from_secs(1);
/// Total time of such sleeps, ns. After that, writing the events is not worth a wake-up.
const NAPS_NS: u64 = 2_000_000_000;
/// Time for which worker 0 of rank 0 sleeps before it searches for quiescence. The longest sleep of any worker 0.
const SUSPECT: Duration = Duration::from_millis(100);
/// The same while a message waits for quiescence. Also worker 0's shortest sleep in a search, or with parked entries.
const SUSPECT_SOON: Duration = Duration::from_millis(1);
/// Shortest and longest sleep of worker 0 while packets wait for a receiver that takes none.
const UNSENT_NAP: Duration = Duration::from_micros(200);
const UNSENT_NAP_MAX: Duration = Duration::from_millis(2);

/// The parameters of a sleep of worker 0.
struct RestPlan {
    /// Time asleep after which the worker searches for quiescence. None if it must not search.
    suspect: Option<Duration>,
    /// Minimum time of one sleep, unless packets wait.
    nap_min: Duration,
}

impl Worker<'_> {
    /// Runs the worker until the rank stops.
    pub(crate) fn work(&mut self) {
        let mut outbox = self.outbox();
        while !self.shared.scheduler.stopped() {
            self.catching(|worker| worker.turn(&mut outbox));
        }
        self.shared.measurements.recording().waits_for_others(None);
        self.report_undelivered();
        if self.id == WorkerId(0) {
            let now_ns = self.instruments.now_ns();
            self.shared.control_plane.lock().rank.end_syncs(now_ns);
        }
        self.instruments.rest();
        self.send_the_last();
        self.finish_writing();
        self.instruments.finish();
        let handled = self.instruments.handled();
        self.shared.ending.add(|figures| figures.messages += handled);
        self.shared.measurements.recording().count(handled);
        self.record_syncs();
    }

    /// Worker 0 sends the last packets of the rank. They include the end of the run, for which the other ranks wait.
    pub(crate) fn send_the_last(&mut self) {
        if self.remote_sender.has_transport() {
            // A message that cannot be encoded was in flight when the run ended, and no longer matters.
            self.catching(|worker| drop(worker.remote_sender.send_outbound()));
            self.remote_sender.close();
        }
    }

    /// Calls `act`, which may run user code. A panic ends the run with an error that names the chunk.
    pub(crate) fn catching(&mut self, act: impl FnOnce(&mut Self)) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| act(self))) {
            // Record the handler that panicked: users will look for it.
            self.instruments.interrupt();
            let error =
                panics::panic_error(self.shared.info.rank, &*panic, |panic| self.handler_panicked(panic));
            // Drop unsent packets, because sending them may panic again. The end of the run must be sent.
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
        // The user's index formats the name, and may have panicked itself.
        let name = catch_unwind(AssertUnwindSafe(|| self.describe(chunk)));
        let chunk = name.unwrap_or_else(|_| format!("{chunk:?}"));
        Error::HandlerPanicked { rank, chunk, message: kind.into(), phase, panic }
    }

    /// Worker 0 adds the undelivered messages of its rank to the figures.
    pub(crate) fn report_undelivered(&mut self) {
        if self.id != WorkerId(0) || self.shared.ending.has_failed() {
            return;
        }
        // User code returns the kind of a message, and may panic.
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

    /// Rank 0 adds the log of all syncs to the figures.
    pub(crate) fn record_syncs(&self) {
        if self.id == WorkerId(0) {
            let (record, misses_syncs) = {
                let core = &mut *self.shared.control_plane.lock();
                (core.rank.sync_log().map(SyncLog::take), core.rank.misses_syncs())
            };
            if let Some((syncs, totals)) = record {
                if misses_syncs && totals.syncs == 0 && !self.shared.ending.has_failed() {
                    self.warn_without_syncs();
                }
                self.shared.ending.add(|figures| (figures.syncs, figures.sync_totals) = (syncs, totals));
            }
        }
    }

    fn turn(&mut self, outbox: &mut Outbox) {
        // Drops messages of a handler that panicked.
        outbox.take().for_each(drop);
        let (handled, mut start_ns) = (self.instruments.handled(), self.instruments.time_ns());
        let (mut left, mut runs) = (STEPS_MAX, 0);
        while left > 0 {
            if self.shared.scheduler.stopped() {
                return;
            }
            let steps = if self.remote_sender.congested() { 0 } else { self.run_ready(left, outbox) };
            runs += u64::from(steps);
            left -= steps.max(1);
            if steps > 0 && !self.poll_schedule.is_due_between_runs(&self.instruments) {
                continue;
            }
            if !self.poll(&mut outbox.free_list) && steps == 0 {
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

    /// Waits for work: spins, reports to the core, and sleeps. Returns the idle time, ns. If handlers are not measured,
    /// returns only the time asleep, so that the next handler does not wait for a clock reading.
    fn idle(&mut self, free_list: &mut FreeList) -> u64 {
        let begin_ns = self.instruments.last_ns();
        // Send buffered packets first: other ranks may wait for them.
        self.remote_sender.idle();
        // After a sleep without work no work is expected soon, so the worker does not spin again.
        let first = self.spin_policy.rested_ns() == 0;
        let found = first && self.spin(free_list);
        let parked_ns = if found { 0 } else { self.rest() };
        if first && parked_ns > 0 && parked_ns < spin_policy::LONG_NS && self.work_in_sight() {
            self.spin_policy.learn(true);
        }
        // Take packets here, so that no chunk is charged for them and the clock need not be read again.
        if !found && self.poll_packets(free_list) {
            self.spin_policy.count_rest_anew();
        }
        self.instruments.idle(parked_ns);
        let measured = self.instruments.last_ns().zip(begin_ns);
        measured.map_or(parked_ns, |(end_ns, begin_ns)| end_ns.saturating_sub(begin_ns))
    }

    /// Spins for as long as the spin policy allows. True if there is work.
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

    /// Spins for this number of turns, and takes the first packet that comes. True if there is work.
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
            self.poll_in_spin(free_list) || self.work_in_the_rank()
        })
    }

    /// True if a turn would find work: a ready entry, a packet, a decision of the strategy, or the stop flag.
    fn work_in_sight(&mut self) -> bool {
        self.remote_sender.is_ready() || self.work_in_the_rank()
    }

    /// [`work_in_sight`](Self::work_in_sight) without packets of the transport.
    fn work_in_the_rank(&self) -> bool {
        let scheduler = &self.shared.scheduler;
        let entries = || self.has_chunks_to_run() || scheduler.has_entries();
        let left = || self.remote_sender.outbound_waits() || self.has_answer() || self.has_written();
        (!scheduler.is_congested() && entries()) || left() || self.is_asked_to_resize() || scheduler.stopped()
    }

    /// Sends partial results and buffered packets, then parks. Returns the time parked, ns.
    fn rest(&mut self) -> u64 {
        let shared = self.shared;
        // While a slow rank congests the transport, this worker must not run its newest entry. Others must see it.
        self.local_delivery.share_newest();
        // Workers other than 0 sleep until they are woken, after one or two naps to write recorded events.
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
            // Worker 0 reports a stall if nothing is left to run but blocked chunks.
            shared.scheduler.wake_driver();
        }
        let parked_ns = self.sleep(nap);
        if suspect.is_some_and(|suspect| self.spin_policy.rested_ns() >= suspect.as_nanos() as u64) {
            self.spin_policy.count_rest_anew();
            self.with_core(|core, _, out| core.suspect(out));
        }
        parked_ns
    }

    /// Worker 0 reports to the core whether its rank has nothing to run.
    fn rank_rests(&mut self) -> RestPlan {
        let shared = self.shared;
        let scheduler = &shared.scheduler;
        let among_processes = self.remote_sender.is_between_processes();
        // The report of bytes may have unparked entries.
        let has_none = !self.has_chunks_to_run();
        let mut pause = RestPlan { suspect: None, nap_min: SUSPECT };
        self.with_core(|core, now_ns, out| {
            // Check under the lock of the core: a worker that wakes for a due timer takes the lock before it sends.
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

    /// Parks until the worker is woken or `nap` has passed. Returns the time parked, ns.
    fn sleep(&mut self, nap: Option<Duration>) -> u64 {
        let shared = self.shared;
        // The work that follows is not idle time.
        self.instruments.idle(0);
        self.instruments.close_batch();
        let start_ns = shared.clock.now_ns();
        let gauge = shared.measurements.gauge(self.id);
        gauge.begin_park(start_ns);
        let nap = self.timers.shorten(nap, start_ns);
        // Show the worker as idle only now: each poll for packets is work of the runtime.
        self.instruments.rest();
        shared.scheduler.park(self.id, nap, || self.work_in_sight());
        let end_ns = shared.clock.now_ns();
        gauge.end_park(end_ns);
        let parked_ns = end_ns.saturating_sub(start_ns);
        self.spin_policy.rested(parked_ns);
        parked_ns
    }

    /// Lets the transport send buffered packets. Returns how long worker 0 may sleep.
    fn pass_on(&mut self) -> Duration {
        let Some(all_left) = self.remote_sender.idle() else { return SUSPECT };
        let unsent = Duration::from_nanos(self.spin_policy.rested_ns() / 8).clamp(UNSENT_NAP, UNSENT_NAP_MAX);
        let longest = if all_left { SUSPECT } else { unsent };
        self.remote_sender.nap().map_or(longest, |nap| nap.min(longest))
    }
}
