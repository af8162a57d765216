//! Windows that are decided in groups of ranks, by seed: everything arrives exactly once, and chunks move within groups and
//! between them.

use std::time::Duration;

use caribou::config::Period;
use caribou::lb::{Assignment, ChunkLoad, Hierarchy, Rank, Snapshot, Strategy, Terms};
use caribou::{Chunk, Config, Ctx, Reducer, Target};
use caribou_tests::{expected, run_array, simulated};
use serde::{Deserialize, Serialize};

use super::{Ledger, all_totals, run_nodes, seeds};

/// Of a usual sweep.
const SEEDS: u64 = 200;

/// Moves each third chunk that may move to the next rank of its group.
struct RotatesInGroups {
    group: u64,
}

impl Strategy for RotatesInGroups {
    fn name(&self) -> &'static str {
        "rotates in groups"
    }

    fn assign(&self, snapshot: &Snapshot) -> Assignment {
        let ranks = snapshot.ranks.len() as u32;
        let is_available = |rank: &Rank| snapshot.ranks[rank.index()].available;
        let next = |chunk: &ChunkLoad| {
            let goes = chunk.id.key % 3 == snapshot.phase % 3 || !is_available(&chunk.rank);
            let mut others = (1..ranks).map(|apart| Rank((chunk.rank.0 + apart) % ranks));
            others.find(|rank| chunk.migratable && goes && is_available(rank)).unwrap_or(chunk.rank)
        };
        Assignment { ranks: snapshot.chunks.iter().map(next).collect() }
    }

    fn terms(&self) -> Terms {
        let hierarchy = Hierarchy { group: Some(self.group), between: 0.0, every: 1, offers: 2 };
        Terms { must_pay: false, hierarchy: Some(hierarchy), ..Terms::default() }
    }
}

fn config(seed: u64, ranks: u32, group: u64) -> Config {
    simulated(seed)
        .ranks(ranks)
        .strategy(RotatesInGroups { group })
        .balance(Period::Every(Duration::from_micros(1)))
        .mail_limit([u64::MAX, 1, 500][(seed / 3 % 3) as usize])
        .wire_always(seed % 2 == 1)
}

#[test]
fn every_seed_delivers_everything_exactly_once_where_groups_decide() {
    let mut moved = 0;
    for seed in seeds(SEEDS) {
        let (ranks, group) = (2 + (seed % 9) as u32, 2 + seed / 9 % 3);
        let ledger = Ledger::default();
        let report = run_nodes(config(seed, ranks, group), ledger.clone(), false, true).expect("it ends");
        assert_eq!(report.undelivered.messages, 0, "{}", report.undelivered);
        assert_eq!(*ledger.0.lock().expect("the run is over"), all_totals());
        moved += report.sync_totals.moved;
    }
    assert!(moved >= expected(1_001, SEEDS), "{moved}");
}

/// Hands a token round a ring. Half of the ring has five times the load of the other half.
#[derive(Serialize, Deserialize)]
struct Member {
    heard: u64,
}

const CHUNKS: u32 = 24;
const ROUNDS: u64 = 40;

impl Chunk for Member {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.send((ctx.index() + 1) % CHUNKS, ());
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        self.heard += 1;
        ctx.charge(if ctx.index() < CHUNKS / 2 { 5_000 } else { 1_000 });
        match self.heard {
            ROUNDS => ctx.contribute(0, Reducer::Sum, vec![self.heard], Target::Exit),
            _ => ctx.send((ctx.index() + 1) % CHUNKS, ()),
        }
    }
}

#[test]
fn late_groups_give_chunks_to_early_ones() {
    let mut exchanged = 0;
    for seed in seeds(SEEDS) {
        let (ranks, group) = (4 + (seed % 6) as u32, 2 + seed / 6 % 2);
        let report = run_array(config(seed, ranks, group), CHUNKS, |_| Member { heard: 0 });
        let report = report.expect("it ends");
        assert_eq!(report.value(), Ok(vec![u64::from(CHUNKS) * ROUNDS]));
        let by_group = |counts: &[u32]| -> Vec<u32> {
            counts.chunks(group as usize).map(|group| group.iter().sum()).collect()
        };
        for (before, sync) in report.syncs.iter().zip(report.syncs.iter().skip(1)) {
            assert_eq!(sync.chunks_per_rank.iter().sum::<u32>(), CHUNKS, "seed {seed}");
            exchanged += u64::from(by_group(&before.chunks_per_rank) != by_group(&sync.chunks_per_rank));
        }
    }
    assert!(exchanged >= expected(101, SEEDS), "{exchanged}");
}
