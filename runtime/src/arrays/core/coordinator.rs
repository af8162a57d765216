//! Rank 0's part of a sync: from reports to a snapshot, from an assignment to moves, and the record of it all.

use std::collections::BTreeMap;
use std::sync::Arc;

use lb_strategies::predict::{Predictor, Smoothing};
use lb_strategies::{Assignment, ChunkId, ChunkLoad, MoveCost, Snapshot, Strategy, metrics};

use super::balance::Move;
use super::census::Tally;
use super::collect::Collected;
use super::estimate::{Estimate, RankPlace};
use super::sync_log::SyncLog;
use crate::ids::Rank;
use crate::measure::measured::Sample;
use crate::trace::SyncReport;

/// Phases that the expected loads of chunks are made from.
const HISTORY: usize = 4;
/// What moving costs, for the acceptance test: packing, sending and landing one chunk, and its bytes.
const MOVE_COST: MoveCost = MoveCost { per_chunk_ns: 5_000, bytes_per_second: 4e9 };

struct Gathering {
    tallies: Vec<Tally>,
    chunks: Vec<ChunkLoad>,
    declared: Vec<bool>,
    samples: Vec<Option<Sample>>,
    waited: u64,
    first_ns: u64,
    last_ns: u64,
}

/// What is known of a phase besides its snapshot.
struct Phase {
    /// Messages that chunks handled in it.
    deliveries: u64,
    /// Chunks that stood still at its end.
    waited: u64,
    /// When its first and its last report came.
    first_ns: u64,
    last_ns: u64,
}

/// A decision whose migration is under way.
struct Ongoing {
    report: SyncReport,
    decided_ns: u64,
    flushed: u32,
}

/// Collects, decides, records. Lives on rank 0.
pub(crate) struct Coordinator {
    strategy: Arc<dyn Strategy>,
    /// Members of each array; none for arrays that do not sync.
    populations: Vec<Option<u64>>,
    next: u64,
    gathering: BTreeMap<u64, Gathering>,
    estimates: Vec<Estimate>,
    /// Measured snapshots, oldest first.
    history: Vec<Snapshot>,
    /// Messages handled in each of these phases.
    deliveries: Vec<u64>,
    /// The phase whose sync the strategy is thinking about.
    deciding: Option<Phase>,
    /// Where the chunks were that the last sync moved; none where there was no sync.
    moved_from: Option<BTreeMap<ChunkId, Rank>>,
    ongoing: Option<Ongoing>,
    log: SyncLog,
}

/// What rank 0 tells everybody.
pub(crate) struct Decision {
    pub(crate) sync: u64,
    pub(crate) moves: Vec<Move>,
}

impl Coordinator {
    pub(crate) fn new(
        strategy: Arc<dyn Strategy>,
        populations: Vec<Option<u64>>,
        places: &[RankPlace],
    ) -> Coordinator {
        Coordinator {
            strategy,
            populations,
            next: 0,
            gathering: BTreeMap::new(),
            estimates: places.iter().map(|&place| Estimate::unknown(place)).collect(),
            history: Vec::new(),
            deliveries: Vec::new(),
            deciding: None,
            moved_from: None,
            ongoing: None,
            log: SyncLog::new(places.len()),
        }
    }

    pub(crate) fn strategy(&self) -> Arc<dyn Strategy> {
        self.strategy.clone()
    }

    /// Adds a rank's report. When the last member of every array has reported, the
    /// snapshot expected for the next phase comes out.
    pub(crate) fn collect(&mut self, from: Rank, collected: Collected) -> Option<Snapshot> {
        let open = self.next + u64::from(self.deciding.is_some());
        assert!(collected.sync >= open, "a census is complete only when nobody is left to report");
        let gathering = self.gathering(collected.sync, collected.now_ns);
        gathering.last_ns = gathering.last_ns.max(collected.now_ns);
        gathering.waited += collected.waited;
        for (array, tally) in &collected.tallies {
            gathering.tallies[*array as usize].merge(tally);
        }
        for chunk in collected.chunks {
            gathering.declared.push(chunk.declared);
            gathering.chunks.push(ChunkLoad {
                id: chunk.chunk,
                rank: from,
                ticks: chunk.load_ns,
                bytes: chunk.bytes,
                migratable: chunk.migratable,
            });
        }
        let sample = &mut gathering.samples[from.0 as usize];
        *sample = Some(sample.map_or(collected.sample, |before| before.plus(&collected.sample)));
        self.snapshot()
    }

    fn gathering(&mut self, sync: u64, now_ns: u64) -> &mut Gathering {
        let (arrays, ranks) = (self.populations.len(), self.estimates.len());
        self.gathering.entry(sync).or_insert_with(|| Gathering {
            tallies: vec![Tally::default(); arrays],
            chunks: Vec::new(),
            declared: Vec::new(),
            samples: vec![None; ranks],
            waited: 0,
            first_ns: now_ns,
            last_ns: 0,
        })
    }

    /// Adds reports to syncs, with their arrays, of a rank that waits for more of them: the run has stalled.
    pub(crate) fn hear(&mut self, reported: Vec<(u64, u32, Tally)>) {
        for (sync, array, tally) in reported {
            self.gathering(sync, 0).tallies[array as usize].merge(&tally);
        }
    }

    /// The snapshot of the next sync, if it is complete and the strategy is free.
    pub(crate) fn snapshot(&mut self) -> Option<Snapshot> {
        if self.deciding.is_some() {
            return None;
        }
        let gathering = self.gathering.get(&self.next)?;
        let mut after = self.populations.clone();
        for (population, tally) in after.iter_mut().zip(&gathering.tallies) {
            if let Some(members) = population {
                *population = Some(tally.complete(*members)?);
            }
        }
        self.populations = after;
        let Gathering { mut chunks, declared, samples, waited, first_ns, last_ns, .. } =
            self.gathering.remove(&self.next).expect("looked at just above");
        // Each chunk was told once in the phase that it starts or resumes, however long the phase was.
        let handled: u64 = samples.iter().flatten().map(|sample| sample.deliveries).sum();
        let deliveries = handled.saturating_sub(chunks.len() as u64);
        self.deciding = Some(Phase { deliveries, waited, first_ns, last_ns });
        self.estimate(&samples);
        for (chunk, declared) in chunks.iter_mut().zip(declared) {
            if !declared {
                chunk.ticks = (chunk.ticks as f64 * self.estimates[chunk.rank.0 as usize].speed) as u64;
            }
        }
        chunks.sort_by_key(|chunk| chunk.id);
        let ranks = self.estimates.iter().map(Estimate::rank_load).collect();
        if self.history.len() == HISTORY {
            self.history.remove(0);
            self.deliveries.remove(0);
        }
        self.deliveries.push(deliveries);
        self.history.push(Snapshot { phase: self.next, ranks, chunks, edges: Vec::new() });
        self.smoothing().predict(&self.history)
    }

    /// How the strategy wants phases to be smoothed.
    fn smoothing(&self) -> Smoothing {
        Smoothing { weight: self.strategy.preparation().smoothing }
    }

    fn estimate(&mut self, samples: &[Option<Sample>]) {
        let speed_noise = self.strategy.preparation().speed_noise;
        let fastest = samples.iter().flatten().map(|sample| sample.speed).fold(0.0, f64::max);
        for (rank, (estimate, sample)) in self.estimates.iter_mut().zip(samples).enumerate() {
            if let Some(sample) = sample {
                tracing::debug!(phase = self.next, rank, ?sample, "measured");
            }
            estimate.follow(sample.as_ref(), fastest, speed_noise);
        }
    }

    /// Records the decision on the expected snapshot that [`collect`](Self::collect) made, and turns it into moves.
    pub(crate) fn decide(
        &mut self,
        expected: &Snapshot,
        assignment: Assignment,
        decide_ns: u64,
        now_ns: u64,
    ) -> Decision {
        let model = self.strategy.background();
        let verdict = lb_strategies::accept(expected, &assignment, model, 1, &MOVE_COST);
        let current = Assignment::current(expected);
        let proposed = metrics::Moved::of(expected, &assignment).chunks as u64;
        let carried_out = verdict.accepted || !self.strategy.must_pay();
        let assignment = if carried_out { assignment } else { current.clone() };
        let moves: Vec<Move> = (expected.chunks.iter().zip(&assignment.ranks))
            .filter(|(chunk, to)| chunk.rank != **to)
            .map(|(chunk, &to)| Move { chunk: chunk.id, from: chunk.rank, to })
            .collect();
        let mut chunks_per_rank = vec![0; self.estimates.len()];
        assignment.ranks.iter().for_each(|rank| chunks_per_rank[rank.0 as usize] += 1);
        let phase = self.deciding.take().expect("its snapshot was made");
        let measured = self.history.last().expect("the expected snapshot was made from it");
        let before_ns = metrics::completion_ns(measured, &current, model);
        let makespan_before_ns = before_ns.iter().copied().max().unwrap_or(0);
        let makespan_unmoved_ns = match &self.moved_from {
            None => 0,
            Some(moved) if moved.is_empty() => makespan_before_ns,
            Some(moved) => {
                let unmoved = unmoved(measured, moved);
                metrics::completion_ns(measured, &unmoved, model).into_iter().max().unwrap_or(0)
            }
        };
        self.moved_from = Some(moves.iter().map(|one| (one.chunk, one.from)).collect());
        let predicted_ns = metrics::completion_ns(expected, &assignment, model);
        let report = SyncReport {
            sync: self.next,
            at_ns: now_ns,
            imbalance_before: metrics::max_over_avg(measured, &current, model),
            imbalance_predicted: metrics::max_over_avg(expected, &assignment, model),
            makespan_before_ns,
            makespan_predicted_ns: predicted_ns.iter().copied().max().unwrap_or(0),
            bound_ns: metrics::bound_ns(expected, model),
            moved: moves.len() as u64,
            moved_bytes: 0,
            collect_ns: phase.last_ns.saturating_sub(phase.first_ns),
            decide_ns,
            migrate_ns: 0,
            chunks_per_rank,
            capacity: self.estimates.iter().map(|estimate| estimate.whole_speed() * estimate.share).collect(),
            share: self.estimates.iter().map(|estimate| estimate.share).collect(),
            before_ns,
            predicted_ns,
            proposed,
            gain_ns: verdict.gain_ns,
            cost_ns: verdict.cost_ns,
            deliveries: phase.deliveries,
            deliveries_predicted: smoothed(&self.deliveries, self.smoothing()),
            makespan_unmoved_ns,
            waited: Some(phase.waited),
        };
        tracing::info!(
            phase = self.next,
            moved = report.moved,
            before = report.imbalance_before,
            predicted = report.imbalance_predicted,
            decide_ns,
            "balanced"
        );
        if !carried_out && proposed > 0 {
            let (gain_ns, cost_ns) = (verdict.gain_ns, verdict.cost_ns);
            tracing::info!(
                phase = self.next,
                gain_ns,
                cost_ns,
                "proposed {proposed} moves, not done: gain below cost"
            );
        }
        let decision = Decision { sync: self.next, moves };
        self.next += 1;
        if decision.moves.is_empty() {
            self.log.push(report);
        } else {
            self.ongoing = Some(Ongoing { report, decided_ns: now_ns, flushed: 0 });
        }
        decision
    }

    /// A rank has everybody it waited for. True when it was the last.
    pub(crate) fn flushed(&mut self, moved_bytes: u64, now_ns: u64) -> bool {
        let ongoing = self.ongoing.as_mut().expect("a rank flushes only for a decision with moves");
        ongoing.flushed += 1;
        ongoing.report.moved_bytes += moved_bytes;
        if (ongoing.flushed as usize) < self.estimates.len() {
            return false;
        }
        let Some(Ongoing { mut report, decided_ns, .. }) = self.ongoing.take() else { return false };
        report.migrate_ns = now_ns.saturating_sub(decided_ns);
        self.log.push(report);
        true
    }

    /// The record of the syncs that are over.
    pub(crate) fn log(&mut self) -> &mut SyncLog {
        &mut self.log
    }

    /// What the next sync waits for, for a stall report.
    pub(crate) fn explain(&self, name: impl Fn(u32) -> String) -> Vec<String> {
        // Who only left was never going to come.
        let come = |gathering: &&Gathering| gathering.tallies.iter().any(Tally::has_members);
        let Some(gathering) = self.gathering.get(&self.next).filter(come) else { return Vec::new() };
        let line = |(array, (population, tally)): (usize, (&Option<u64>, &Tally))| {
            let members = (*population)?;
            tally.complete(members).is_none().then(|| {
                let (sync, heard, name) = (self.next, tally.heard(), name(array as u32));
                format!("sync {sync}: {heard} of {members} chunks of {name} have arrived")
            })
        };
        self.populations.iter().zip(&gathering.tallies).enumerate().filter_map(line).collect()
    }
}

/// Where the chunks of a phase would have been without these moves.
fn unmoved(measured: &Snapshot, moved_from: &BTreeMap<ChunkId, Rank>) -> Assignment {
    let home = |chunk: &ChunkLoad| moved_from.get(&chunk.id).copied().unwrap_or(chunk.rank);
    Assignment { ranks: measured.chunks.iter().map(home).collect() }
}

/// What is expected of the next phase, from the same phases as the loads of chunks and with the same weights.
fn smoothed(phases: &[u64], Smoothing { weight }: Smoothing) -> u64 {
    let weight = if weight > 0.0 && weight <= 1.0 { weight } else { 1.0 };
    let level = phases.iter().map(|&phase| phase as f64);
    level.reduce(|level, phase| level + weight * (phase - level)).unwrap_or(0.0).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::core::census::Report;
    use crate::arrays::core::collect::MeasuredChunk;

    /// One chunk and its rank in one phase.
    fn collected(sync: u64, rank: u32, load_ns: u64, speed: f64) -> Collected {
        let chunk = ChunkId { array: 0, key: rank.into() };
        Collected {
            sync,
            tallies: vec![(0, Tally::of(Report { sequence: sync, depth: 0, born: 0, leaving: false }))],
            chunks: vec![MeasuredChunk { chunk, load_ns, bytes: 0, migratable: true, declared: true }],
            waited: 0,
            sample: Sample { speed, ..Sample::default() },
            now_ns: 0,
        }
    }

    /// What `spec` sees of a chunk that took 100 and then 300 ns, and of a rank 5 % slower than the other.
    fn prepared(spec: &str) -> (u64, f64) {
        let strategy: Arc<dyn Strategy> = lb_strategies::ARRAYS.parse(spec).expect("listed").into();
        let places = [RankPlace { host: 0, workers: 1 }; 2];
        let mut coordinator = Coordinator::new(strategy, vec![Some(2)], &places);
        let mut expected = None;
        for (sync, load_ns) in [(0, 100), (1, 300)] {
            coordinator.collect(Rank(0), collected(sync, 0, load_ns, 1.0));
            let snapshot = coordinator.collect(Rank(1), collected(sync, 1, 100, 0.95)).expect("complete");
            coordinator.decide(&snapshot, Assignment::current(&snapshot), 0, 0);
            expected = Some(snapshot);
        }
        let expected = expected.expect("two phases");
        (expected.chunks[0].ticks, expected.ranks[1].speed)
    }

    #[test]
    fn a_strategy_sees_measurements_prepared_as_it_wants() {
        assert_eq!(prepared("refine"), (200, 1.0));
        assert_eq!(prepared("refine-paper"), (300, 0.95));
        assert_eq!(prepared("refine-paper,smoothing=0.25,speed-noise=0.04"), (150, 0.95));
    }

    #[test]
    fn a_chunk_that_did_not_move_is_where_it_is_and_one_that_did_where_it_was() {
        let chunk = |key, rank| {
            let id = ChunkId { array: 0, key };
            ChunkLoad { id, rank: Rank(rank), ticks: 1, bytes: 0, migratable: true }
        };
        let chunks = vec![chunk(1, 0), chunk(2, 1), chunk(3, 1)];
        let measured = Snapshot { phase: 1, ranks: Vec::new(), chunks, edges: Vec::new() };
        // The first has been removed since.
        let moved = [(0, 1), (3, 0)].map(|(key, rank)| (ChunkId { array: 0, key }, Rank(rank)));
        assert_eq!(unmoved(&measured, &moved.into()).ranks, [Rank(0), Rank(1), Rank(0)]);
    }

    #[test]
    fn the_length_of_a_phase_is_predicted_as_the_loads_in_it_are() {
        let snapshot = |ticks| {
            let id = ChunkId { array: 0, key: 1 };
            let chunks = vec![ChunkLoad { id, rank: Rank(0), ticks, bytes: 0, migratable: true }];
            Snapshot { phase: 0, ranks: Vec::new(), chunks, edges: Vec::new() }
        };
        let phases = [50, 150, 150, 90];
        for weight in [0.25, 0.5, 1.0, 0.0] {
            let smoothing = Smoothing { weight };
            let expected = smoothing.predict(&phases.map(snapshot)).expect("there is a history");
            assert_eq!(smoothed(&phases, smoothing), expected.chunks[0].ticks);
        }
        assert_eq!(smoothed(&[], Smoothing { weight: 0.5 }), 0);
    }
}
