//! Checks that a chunk is in one place at a time: its handlers do not overlap, and each departure has a later arrival.

use std::collections::BTreeMap;

use caribou::trace::{ChunkId, Event, What};
use trace_reader::{RankTrace, Trace};

use super::finding::{FindingLocation, Findings, Severity};
use super::sound::Clocks;
use crate::trace::analysis::events;

const TWO_PLACES: (Severity, &str) = (Severity::Wrong, "two handlers of a chunk at once");
const NOT_ARRIVED: (Severity, &str) = (Severity::Wrong, "departed, never arrived");
const EARLY: (Severity, &str) = (Severity::Wrong, "arrived before it departed");
const NEVER_CAME: (Severity, &str) = (Severity::Wrong, "departed more often than it arrived");
const MANY_PLACES: (Severity, &str) = (Severity::Note, "a chunk came more often than it left");

/// Last location of each chunk, and the numbers of its arrivals and departures per rank.
pub(crate) struct ChunkLocations<'t> {
    trace: &'t Trace,
    clocks: &'t Clocks,
    last: BTreeMap<ChunkId, Last>,
    visits: BTreeMap<(ChunkId, u32), Visits>,
    /// Departures and arrivals without their other half, by chunk and destination.
    unmatched: BTreeMap<(ChunkId, u32), MigrationHalf>,
}

/// One half of a migration, with its place and time.
#[derive(Clone, Copy)]
enum MigrationHalf {
    Departed { from: u32, ns: u64 },
    Arrived { worker: u32, ns: u64 },
}

#[derive(Clone, Copy)]
struct Last {
    rank: u32,
    worker: u32,
    end_ns: u64,
}

/// Visits of one chunk to one rank.
#[derive(Clone, Copy, Default)]
struct Visits {
    arrived: u64,
    left: u64,
    /// Departures from other ranks for this rank.
    sent_here: u64,
}

impl<'t> ChunkLocations<'t> {
    pub(crate) fn new(trace: &'t Trace, clocks: &'t Clocks) -> ChunkLocations<'t> {
        ChunkLocations {
            trace,
            clocks,
            last: BTreeMap::new(),
            visits: BTreeMap::new(),
            unmatched: BTreeMap::new(),
        }
    }

    pub(crate) fn event(&mut self, place: events::WorkerRef<'_>, event: &Event, findings: &mut Findings) {
        let events::WorkerRef { rank, worker } = place;
        match event.what {
            What::Handler { chunk, .. } => self.handler(rank, worker, chunk, event, findings),
            What::Arrive { chunk, .. } => {
                // The first arrival of a chunk is its creation.
                if self.visits.range((chunk, 0)..=(chunk, u32::MAX)).next().is_some() {
                    let arrived = MigrationHalf::Arrived { worker, ns: event.end_ns };
                    self.migration(chunk, rank.rank, arrived, findings);
                }
                self.visits.entry((chunk, rank.rank)).or_default().arrived += 1;
            }
            What::Depart { chunk, rank: to, .. } => {
                let departed = MigrationHalf::Departed { from: rank.rank, ns: event.begin_ns };
                self.migration(chunk, to, departed, findings);
                self.visits.entry((chunk, rank.rank)).or_default().left += 1;
                self.visits.entry((chunk, to)).or_default().sent_here += 1;
            }
            _ => {}
        }
    }

    fn handler(
        &mut self,
        rank: &RankTrace,
        worker: u32,
        chunk: ChunkId,
        event: &Event,
        findings: &mut Findings,
    ) {
        let this = Last { rank: rank.rank, worker, end_ns: event.end_ns };
        let Some(last) = self.last.insert(chunk, this) else { return };
        let both_ns = last.end_ns.saturating_sub(event.begin_ns);
        if both_ns > self.clocks.error_ns(last.rank, this.rank) {
            let what = || {
                format!(
                    "{} is handled here and by worker {} of rank {} at once, for {both_ns} ns",
                    self.trace.chunk_name(chunk),
                    last.worker,
                    last.rank
                )
            };
            findings.add(TWO_PLACES, &rank.path, FindingLocation::Time { worker, ns: event.begin_ns }, what);
        }
    }

    /// Compares a departure with its arrival. Events come in order of their ends, so either may come first.
    fn migration(&mut self, chunk: ChunkId, to: u32, half: MigrationHalf, findings: &mut Findings) {
        let other = self.unmatched.remove(&(chunk, to));
        let (from, left_ns, worker, came_ns) = match (half, other) {
            (MigrationHalf::Departed { from, ns }, Some(MigrationHalf::Arrived { worker, ns: came_ns })) => {
                (from, ns, worker, came_ns)
            }
            (MigrationHalf::Arrived { worker, ns }, Some(MigrationHalf::Departed { from, ns: left_ns })) => {
                (from, left_ns, worker, ns)
            }
            _ => {
                self.unmatched.insert((chunk, to), half);
                return;
            }
        };
        let early_ns = left_ns.saturating_sub(came_ns);
        let Some(rank) = self.trace.ranks.iter().find(|rank| rank.rank == to) else { return };
        if early_ns > self.clocks.error_ns(from, to) {
            let what = || {
                format!("{} arrived {early_ns} ns before it left rank {from}", self.trace.chunk_name(chunk))
            };
            findings.add(EARLY, &rank.path, FindingLocation::Time { worker, ns: came_ns }, what);
        }
    }

    /// Compares numbers of arrivals and departures, if the trace has all of them.
    pub(crate) fn finish(self, complete: bool, findings: &mut Findings) {
        if !complete || self.visits.values().all(|visits| visits.arrived == 0) {
            return;
        }
        let mut at_end: BTreeMap<ChunkId, u64> = BTreeMap::new();
        let last_ns = self.trace.syncs.last().filter(|sync| sync.moved > 0).map(|sync| sync.at_ns);
        // Some of the last moves may have been in progress when the run ended.
        let was_under_way = |chunk: ChunkId, to: u32| match (self.unmatched.get(&(chunk, to)), last_ns) {
            (Some(&MigrationHalf::Departed { from, ns }), Some(last_ns)) => {
                ns.saturating_add(self.clocks.error_ns(from, 0)) >= last_ns
            }
            _ => false,
        };
        for (&(chunk, rank), visits) in &self.visits {
            let name = || self.trace.chunk_name(chunk);
            let file = self.trace.ranks.iter().find(|other| other.rank == rank);
            let file = file.map_or(&self.trace.path, |rank| &rank.path);
            let Visits { arrived, left, sent_here } = *visits;
            if sent_here > arrived + u64::from(was_under_way(chunk, rank)) {
                let what = || {
                    format!("{} left for rank {rank} {sent_here} times and arrived {arrived} times", name())
                };
                findings.add(NOT_ARRIVED, file, FindingLocation::Whole, what);
            }
            if left > arrived {
                let what = || format!("{} left rank {rank} {left} times and arrived {arrived} times", name());
                findings.add(NEVER_CAME, file, FindingLocation::Whole, what);
            }
            if arrived > left {
                *at_end.entry(chunk).or_default() += arrived - left;
            }
        }
        for (chunk, ranks) in at_end.into_iter().filter(|&(_, ranks)| ranks > 1) {
            let what = || {
                format!(
                    "{} arrived {ranks} times more than it left; was it removed and inserted again?",
                    self.trace.chunk_name(chunk)
                )
            };
            findings.add(MANY_PLACES, &self.trace.path, FindingLocation::Whole, what);
        }
    }
}
