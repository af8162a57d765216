//! Simulates what workers do for the runtime instead of chunks: reports, packets, decisions, packing and unpacking.
//!
//! A chore that costs nothing is done at once, as if no worker were needed. Any other waits until a worker of its rank
//! ends its current iteration. A rank does one chore at a time, in the order in which they came, because the runtime
//! locks the state of the rank. Chores precede ready chunks, with one exception: after a chunk that has arrived, the
//! runtime runs a ready chunk first.

use std::collections::VecDeque;

use super::event::{Event, Packet};
use super::history::EventLoop;
use lb_strategies::pools::machine::{Nanos, SECOND};

/// A decision that takes this long or longer is made by a thread of its own, as in the runtime, ns.
const LONG_DECISION: f64 = 1e6;

/// Work of a rank for the runtime.
#[derive(Clone, Copy, Debug)]
pub(super) enum Chore {
    /// The last chunk of the rank has come to the sync that ends this phase, and the rank reports.
    ReportSync { phase: u64 },
    /// The rank reports on a window.
    ReportWindow,
    /// Rank 0 has all reports on a phase, and predicts loads.
    CollectSync { phase: u64 },
    /// Rank 0 has all reports on a window, and predicts loads.
    CollectWindow,
    /// Rank 0 asks the strategy, which returns this number of moves.
    Decide { moves: u32 },
    /// The rank handles a packet.
    Handle(Packet),
    /// The rank packs a chunk that leaves.
    Pack { chunk: u32 },
}

/// The chores of a rank.
#[derive(Default)]
pub(super) struct Chores {
    /// Chores to do, with their CPU times in ns.
    waiting: VecDeque<(f64, Chore)>,
    /// True while a worker does one.
    is_active: bool,
    /// True if a ready chunk precedes the next chore.
    yields: bool,
}

impl Chores {
    /// True if a free worker may begin one.
    pub(super) fn can_begin(&self) -> bool {
        !self.is_active && !self.waiting.is_empty()
    }

    /// Begins the next chore, unless one is being done, or it gives way to a ready chunk.
    fn begin(&mut self, any_ready: bool) -> Option<(f64, Chore)> {
        if self.is_active || std::mem::take(&mut self.yields) && any_ready {
            return None;
        }
        let next = self.waiting.pop_front();
        self.is_active = next.is_some();
        next
    }
}

impl EventLoop<'_> {
    /// Lets a rank do a chore that takes this CPU time, ns.
    pub(super) fn do_chore(&mut self, rank: u32, cpu_ns: f64, chore: Chore) {
        if cpu_ns <= 0.0 {
            return self.end_chore(rank, chore);
        }
        self.places[rank as usize].chores.waiting.push_back((cpu_ns, chore));
        self.occupy(rank);
    }

    /// The next chore for a free worker of a rank, with its CPU time in ns.
    pub(super) fn begin_chore(&mut self, rank: u32) -> Option<(f64, Chore)> {
        let place = &mut self.places[rank as usize];
        place.chores.begin(!place.ready.is_empty())
    }

    /// Notes that a worker has done a chore, and carries out what follows from it.
    pub(super) fn finish_chore(&mut self, rank: u32, chore: Chore) {
        let chores = &mut self.places[rank as usize].chores;
        chores.is_active = false;
        chores.yields = matches!(chore, Chore::Handle(Packet::Chunk(_)));
        self.end_chore(rank, chore);
    }

    fn end_chore(&mut self, rank: u32, chore: Chore) {
        match chore {
            Chore::ReportSync { phase } => self.come_to_sync(rank, phase, 1),
            Chore::ReportWindow => self.send_window_report(rank),
            Chore::CollectSync { phase } => self.decide_sync(phase),
            Chore::CollectWindow => self.decide_window(),
            Chore::Decide { moves } => {
                let now = self.now;
                self.run.syncs.last_mut().iter_mut().for_each(|sync| sync.at = now);
                self.decided(moves);
            }
            Chore::Handle(packet) => self.receive(rank, packet),
            Chore::Pack { chunk } => {
                let at = self.now + self.move_cost.cost_ns(1, self.array.state_bytes);
                self.events.at(at, Event::Departs { chunk, from: rank });
            }
        }
    }

    /// Lets a rank handle a packet of another rank that has arrived. Messages of chunks are packets together.
    pub(super) fn handle_packet(&mut self, from: u32, rank: u32, packet: Packet) {
        let cpu = &self.overheads.cpu;
        let cpu_ns = match packet {
            // The chunk pays for its messages.
            Packet::Halo { .. } => {
                let begins = cpu.packet > 0.0 && self.places[rank as usize].begins_packet(from, self.now);
                if begins { cpu.packet } else { 0.0 }
            }
            Packet::Chunk(_) => cpu.packet + cpu.unpack(self.array.state_bytes),
            Packet::Reports { .. } | Packet::Up(_) | Packet::Down(_) => cpu.packet,
        };
        self.do_chore(rank, cpu_ns, Chore::Handle(packet));
    }

    /// CPU time of a rank to report this number of chunks, ns.
    pub(super) fn report_ns(&self, chunks: usize) -> f64 {
        self.overheads.cpu.report + self.overheads.cpu.report_chunk * chunks as f64
    }

    /// CPU time of rank 0 to collect the reports of all chunks, ns.
    pub(super) fn collect_ns(&self) -> f64 {
        self.overheads.cpu.collect_chunk * self.chunks.len() as f64
    }

    /// Makes a decision take effect after the time that it took.
    pub(super) fn decide_after(&mut self, took: Nanos, is_chore: bool, moves: u32) {
        match took {
            0 => self.decided(moves),
            _ if is_chore && (took as f64) < LONG_DECISION => {
                self.do_chore(0, took as f64, Chore::Decide { moves });
            }
            _ => self.events.at(self.now + took, Event::Decided { moves }),
        }
    }

    /// The work of `cpu_ns` of CPU time on the vCPU of a worker.
    pub(super) fn work_of(&mut self, worker: usize, cpu_ns: f64) -> f64 {
        cpu_ns / SECOND as f64 * self.execution.clock(worker, self.now)
    }
}
