//! Balances chunks in windows, while they run: rank 0 opens windows, ranks report, and chunks move.

use super::chores::Chore;
use super::event::Event;
use super::groups::Groups;
use super::history::{EventLoop, Reports};
use super::tree::{Down, Up};
use crate::execution::WorkerTime;
use lb_strategies::arrays::balancer::UndecidedWindows;
use lb_strategies::arrays::window_policy::{Look, Signal, WindowPolicy};
use lb_strategies::pools::machine::Nanos;

/// The state of windows on rank 0.
pub(super) struct Windows {
    policy: WindowPolicy,
    /// What the open window is for.
    open: Look,
    opened: Nanos,
    /// True from a decision with moves until all chunks have arrived.
    pub(super) migrates: bool,
    /// By worker, the time spent when the window was opened.
    spent: Vec<WorkerTime>,
    /// By rank, the chunks that it reports on.
    residents: Groups,
    reports: Reports,
    pub(super) undecided: UndecidedWindows,
}

impl Windows {
    pub(super) fn new(policy: WindowPolicy, workers: usize) -> Windows {
        Windows {
            policy,
            open: Look::Wait,
            opened: 0,
            migrates: false,
            spent: vec![WorkerTime::default(); workers],
            residents: Groups::of(std::iter::empty()),
            reports: Reports::of(0, 0),
            undecided: UndecidedWindows::default(),
        }
    }

    /// The interval at which rank 0 reads how busy ranks are.
    pub(super) fn interval(&self) -> Nanos {
        self.policy.signal_ns()
    }
}

impl EventLoop<'_> {
    /// Lets rank 0 read how busy ranks are, and perhaps open a window.
    pub(super) fn look(&mut self) {
        let (signal, is_over) = (self.signal(), self.is_over());
        let Some(windows) = &mut self.windows else { return };
        let may_open = windows.open == Look::Wait && !windows.migrates;
        let look = windows.policy.look(&signal, self.array.workers.len() as u32, may_open, self.now);
        if !is_over {
            self.events.at(self.now + windows.interval(), Event::Look);
        }
        if look != Look::Wait {
            self.open_window(look);
        }
    }

    /// How busy ranks have been since the last window was opened.
    fn signal(&self) -> Signal {
        let Some(windows) = &self.windows else { return Signal::default() };
        let of_rank = |workers: &[usize]| {
            let since = |worker: usize| {
                let (now, before) = (self.execution.spent_at(worker, self.now), windows.spent[worker]);
                now.cpu_ns + now.wait_ns - before.cpu_ns - before.wait_ns
            };
            let busy: f64 = (workers[0]..workers[1]).map(since).sum();
            Signal::of(busy / ((self.now - windows.opened) as f64 * (workers[1] - workers[0]) as f64))
        };
        self.firsts.windows(2).map(of_rank).fold(Signal::default(), Signal::and)
    }

    fn open_window(&mut self, look: Look) {
        let spent = (0..self.running.len()).map(|worker| self.execution.spent_at(worker, self.now)).collect();
        let ranks = self.places.len();
        let residents = Groups::by(ranks, self.chunks.iter().map(|chunk| Some(chunk.rank)));
        let Some(windows) = &mut self.windows else { return };
        (windows.open, windows.opened, windows.spent) = (look, self.now, spent);
        (windows.residents, windows.reports) = (residents, Reports::of(ranks, self.chunks.len()));
        self.falls(0, Down::OpenWindow);
    }

    /// Handles the request to report on a window.
    pub(super) fn report_window(&mut self, rank: u32) {
        let Some(windows) = &self.windows else { return };
        let cpu_ns = self.report_ns(windows.residents.places(rank).len());
        self.do_chore(rank, cpu_ns, Chore::ReportWindow);
    }

    /// Reports on a window.
    pub(super) fn send_window_report(&mut self, rank: u32) {
        let Some(mut windows) = self.windows.take() else { return };
        for place in windows.residents.places(rank) {
            windows.reports.add_chunk(self.take_report(windows.residents.member(place)));
        }
        let sample = self.gauges[rank as usize].sample(&mut self.execution, &mut self.errors, self.now);
        windows.reports.add_sample(rank, sample);
        self.windows = Some(windows);
        self.rises(rank, Up::WindowReports);
    }

    /// Ends a window on which all ranks have reported.
    pub(super) fn decide_window(&mut self) {
        let Some(windows) = &mut self.windows else { return };
        let reports = std::mem::replace(&mut windows.reports, Reports::of(0, 0));
        let look = std::mem::replace(&mut windows.open, Look::Wait);
        if look != Look::Decide {
            let window = self.phase_report(reports);
            let Some(windows) = &mut self.windows else { return };
            if look == Look::Collect {
                windows.undecided.collect(window);
            } else {
                windows.undecided.push(window);
            }
            return;
        }
        self.decide(reports);
    }

    /// Notes that a balance in a window has ended. Its moves, if any, were expected to take this long, ns.
    pub(super) fn balanced(&mut self, move_ns: Option<u64>) {
        if let Some(windows) = &mut self.windows {
            windows.migrates = false;
            windows.policy.decided(move_ns.is_some(), move_ns.unwrap_or(0));
        }
    }

    /// Handles the moves of a window on a rank. Outgoing chunks are held, running ones after their current iteration.
    pub(super) fn begin_window_migration(&mut self, rank: u32) {
        let place = &mut self.places[rank as usize];
        place.begin_migration();
        for &number in &place.migration.outgoing {
            let chunk = &mut self.chunks[number as usize];
            chunk.waits = true;
            if !chunk.taken {
                chunk.leave();
            }
        }
        place.ready.retain(|&number| {
            let chunk = &mut self.chunks[number as usize];
            if chunk.waits {
                chunk.taken = false;
                chunk.leave();
            }
            !chunk.waits
        });
        let runs = |number: &&u32| self.chunks[**number as usize].leaves_for.is_some();
        place.migration.running = place.migration.outgoing.iter().filter(runs).count() as u32;
        if place.migration.running == 0 {
            self.rises(rank, Up::SentCounts);
        }
    }

    /// Notes that a chunk that leaves has ended its current iteration.
    pub(super) fn held(&mut self, chunk: u32) {
        let it = &mut self.chunks[chunk as usize];
        let rank = it.rank;
        it.leave();
        let migration = &mut self.places[rank as usize].migration;
        migration.running -= 1;
        if migration.running == 0 {
            self.rises(rank, Up::SentCounts);
        }
    }
}
