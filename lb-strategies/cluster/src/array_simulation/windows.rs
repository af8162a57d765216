//! Balances chunks in windows, while they run: rank 0 opens windows, ranks report, and chunks move.

use std::rc::Rc;

use super::event::{Event, Packet};
use super::history::{EventLoop, Reports};
use super::placement::Migration;
use crate::execution::WorkerTime;
use lb_strategies::arrays::balancer::{ChunkReport, Move, RankSample, UndecidedWindows};
use lb_strategies::arrays::window_policy::{Look, Signal, WindowPolicy};
use lb_strategies::pools::machine::Nanos;

/// The state of windows on rank 0.
pub(super) struct Windows {
    policy: WindowPolicy,
    /// What the open window is for.
    open: Look,
    opened: Nanos,
    /// True from a decision with moves until all chunks have arrived.
    migrates: bool,
    /// By worker, the time spent when the window was opened.
    spent: Vec<WorkerTime>,
    /// By rank, the chunks that it reports on.
    residents: Vec<Vec<u32>>,
    reports: Reports,
    /// Number of ranks that have not reported.
    missing: usize,
    pub(super) undecided: UndecidedWindows,
}

impl Windows {
    pub(super) fn new(policy: WindowPolicy, workers: usize, ranks: usize) -> Windows {
        Windows {
            policy,
            open: Look::Wait,
            opened: 0,
            migrates: false,
            spent: vec![WorkerTime::default(); workers],
            residents: vec![Vec::new(); ranks],
            reports: Reports::of(ranks),
            missing: 0,
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
        let mut residents = vec![Vec::new(); ranks];
        for (number, chunk) in (0..).zip(&self.chunks) {
            residents[chunk.rank as usize].push(number);
        }
        let Some(windows) = &mut self.windows else { return };
        (windows.open, windows.opened, windows.spent) = (look, self.now, spent);
        (windows.residents, windows.missing, windows.reports) = (residents, ranks, Reports::of(ranks));
        (0..ranks as u32).for_each(|to| self.send(0, to, Packet::OpenWindow));
    }

    /// Handles the request to report on a window.
    pub(super) fn report_window(&mut self, rank: u32) {
        let Some(windows) = &mut self.windows else { return };
        let residents = std::mem::take(&mut windows.residents[rank as usize]);
        let chunks = residents.into_iter().map(|chunk| self.take_report(chunk)).collect();
        let sample = self.gauges[rank as usize].sample(&mut self.execution, self.now);
        self.send(rank, 0, Packet::WindowReports { sample, chunks });
    }

    /// Handles the report of a rank on a window.
    pub(super) fn window_reported(&mut self, from: u32, sample: RankSample, chunks: Vec<ChunkReport>) {
        let Some(windows) = &mut self.windows else { return };
        windows.reports.add(from, sample, chunks);
        windows.missing -= 1;
        if windows.missing > 0 {
            return;
        }
        let reports = std::mem::replace(&mut windows.reports, Reports::of(0));
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
        let moves = self.decide(reports);
        if moves.is_empty() || !self.stops {
            return self.balanced(None);
        }
        self.windows.iter_mut().for_each(|windows| windows.migrates = true);
        (0..self.places.len() as u32).for_each(|to| self.send(0, to, Packet::Moves(Rc::clone(&moves))));
    }

    /// Notes that a balance in a window has ended. Its moves, if any, were expected to take this long, ns.
    pub(super) fn balanced(&mut self, move_ns: Option<u64>) {
        if let Some(windows) = &mut self.windows {
            windows.migrates = false;
            windows.policy.decided(move_ns.is_some(), move_ns.unwrap_or(0));
        }
    }

    /// Handles the moves of a window on a rank. Outgoing chunks are held, running ones after their current iteration.
    pub(super) fn begin_window_migration(&mut self, rank: u32, moves: &[Move]) {
        let place = &mut self.places[rank as usize];
        let mut migration = Migration::default();
        for one in moves.iter().filter(|one| one.from.0 == rank) {
            let number = one.chunk.key as u32;
            let chunk = &mut self.chunks[number as usize];
            (chunk.waits, chunk.leaves_for) = (true, Some(one.to.0));
            migration.outgoing.push(number);
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
        let is_held = |number: &&u32| self.chunks[**number as usize].leaves_for.is_none();
        migration.outgoing_left = migration.outgoing.len();
        migration.running = migration.outgoing.len() - migration.outgoing.iter().filter(is_held).count();
        migration.incoming_left = moves.iter().filter(|one| one.to.0 == rank).count();
        place.chunks = place.chunks + migration.incoming_left - migration.outgoing_left;
        let switches = migration.running == 0;
        place.migration = Some(migration);
        if switches {
            self.switch_routes(rank);
        }
    }

    /// Notes that a chunk that leaves has ended its current iteration.
    pub(super) fn held(&mut self, chunk: u32) {
        let it = &mut self.chunks[chunk as usize];
        let rank = it.rank;
        it.leave();
        let migration = self.places[rank as usize].migration.as_mut().expect("it leaves by a migration");
        migration.running -= 1;
        if migration.running == 0 {
            self.switch_routes(rank);
        }
    }
}
