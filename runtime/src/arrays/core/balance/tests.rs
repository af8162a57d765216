use std::collections::VecDeque;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;

use super::*;
use crate::arrays::core::packet::Cargo;

const SYNC: SyncId = SyncId(7);
const HERE: Rank = Rank(1);

fn chunk(key: u64) -> ChunkId {
    ChunkId { array: ArrayId(0), key }
}

/// Every chunk is in the cell of its own number.
fn cell(chunk: ChunkId) -> Option<CellId> {
    Some(CellId(chunk.key as u32))
}

fn one_move(key: u64, from: u32, to: u32) -> Move {
    Move { chunk: chunk(key), from: Rank(from), to: Rank(to) }
}

fn traveller(key: u64) -> Traveller {
    Traveller { chunk: chunk(key), cargo: Cargo::Follows, mail: Vec::new(), bytes: 10, journey: None }
}

fn journey(_: ArrayId) -> Journey {
    Journey { broadcasts: 3 }
}

fn leaver(key: u64, to: u32) -> Leaver {
    Leaver { chunk: chunk(key), cell: CellId(key as u32), to: Rank(to) }
}

fn switch(leavers: &[Leaver]) -> Step {
    Step::Switch { sync: SYNC, leavers: leavers.to_vec() }
}

fn release(key: u64, to: u32) -> Step {
    Step::Release { leaver: leaver(key, to), journey: journey(ArrayId(0)) }
}

fn flushed(moved_bytes: u64) -> Step {
    Step::Flushed { sync: SYNC, moved_bytes }
}

fn landed(migrations: &mut Migrations, sync: SyncId) -> Vec<ChunkId> {
    migrations.land(sync).into_iter().map(|traveller| traveller.chunk).collect()
}

#[test]
fn a_sync_that_moves_nothing_changes_nothing() {
    let mut migrations = Migrations::new(HERE, 2);
    assert_eq!(migrations.begin(SYNC, &[], cell), []);
    assert_eq!(migrations.begin(SYNC.next(), &[one_move(1, 0, 1)], cell).len(), 1);
}

#[test]
fn leavers_stop_then_the_routes_change_then_they_go_when_all_markers_are_in() {
    let mut migrations = Migrations::new(HERE, 3);
    let moves = [one_move(1, 1, 0), one_move(2, 1, 2), one_move(3, 0, 2)];
    assert_eq!(migrations.begin(SYNC, &moves, cell), [Step::Hold(vec![CellId(1), CellId(2)])]);
    assert_eq!(migrations.held(journey), []);
    assert_eq!(migrations.held(journey), [switch(&[leaver(1, 0), leaver(2, 2)])]);
    assert_eq!(migrations.marker(SYNC), []);
    assert_eq!(
        migrations.leaver(chunk(2)),
        Some(CellId(2)),
        "messages under the old routes go to its mailbox"
    );
    assert_eq!(migrations.marker(SYNC), [release(1, 0), release(2, 2), flushed(0)]);
    assert_eq!(migrations.leaver(chunk(2)), None);
    assert_eq!(landed(&mut migrations, SYNC), []);
}

#[test]
fn markers_may_come_before_the_moves_and_before_the_leavers_have_stopped() {
    let mut migrations = Migrations::new(HERE, 3);
    assert_eq!(migrations.marker(SYNC), []);
    assert_eq!(migrations.begin(SYNC, &[one_move(1, 1, 0)], cell), [Step::Hold(vec![CellId(1)])]);
    assert_eq!(migrations.marker(SYNC), [], "a handler of the leaver may still send under the old routes");
    assert_eq!(migrations.held(journey), [switch(&[leaver(1, 0)]), release(1, 0), flushed(0)]);
}

#[test]
fn a_rank_of_which_nobody_leaves_and_to_which_nobody_comes_sends_its_markers_and_waits_for_those_of_others() {
    let mut migrations = Migrations::new(HERE, 3);
    assert_eq!(migrations.begin(SYNC, &[one_move(1, 0, 2)], cell), [switch(&[])]);
    assert_eq!(migrations.marker(SYNC), []);
    assert_eq!(migrations.marker(SYNC), [flushed(0)]);
    assert_eq!(landed(&mut migrations, SYNC), []);
}

#[test]
fn an_arrival_may_come_before_the_last_marker_and_lands_with_the_others() {
    let mut migrations = Migrations::new(HERE, 3);
    let moves = [one_move(1, 0, 1), one_move(2, 2, 1)];
    assert_eq!(migrations.begin(SYNC, &moves, cell), [switch(&[])]);
    assert_eq!(migrations.marker(SYNC), []);
    assert_eq!(migrations.arrive(traveller(2)), []);
    assert_eq!(migrations.marker(SYNC), []);
    assert_eq!(migrations.arrive(traveller(1)), [flushed(20)]);
    assert!(migrations.expects(chunk(1)), "its index is in use until it lands");
    assert_eq!(landed(&mut migrations, SYNC), [chunk(2), chunk(1)]);
    assert!(!migrations.expects(chunk(1)));
}

#[test]
fn the_markers_of_two_syncs_are_counted_apart() {
    let mut migrations = Migrations::new(HERE, 2);
    migrations.begin(SYNC, &[one_move(1, 0, 1)], cell);
    migrations.marker(SYNC);
    migrations.arrive(traveller(1));
    assert_eq!(
        migrations.marker(SYNC.next()),
        [],
        "the other rank has landed and been told of the next moves"
    );
    assert_eq!(landed(&mut migrations, SYNC), [chunk(1)]);
    let steps = migrations.begin(SYNC.next(), &[one_move(2, 0, 1)], cell);
    assert_eq!(steps, [Step::Switch { sync: SYNC.next(), leavers: Vec::new() }]);
    assert_eq!(migrations.arrive(traveller(2)), [Step::Flushed { sync: SYNC.next(), moved_bytes: 10 }]);
}

/// A message between ranks.
enum Said {
    Moves(SyncId),
    Marker(SyncId),
    Arrive(u64),
    Flushed(SyncId),
    Land(SyncId),
}

/// The machines of some ranks, and what is under way between them, in order for each pair.
struct World {
    syncs: Vec<Vec<Move>>,
    machines: Vec<Migrations>,
    under_way: BTreeMap<(usize, usize), VecDeque<Said>>,
    /// Leavers of each rank whose handlers run.
    running: Vec<usize>,
    /// Ranks that have switched, flushed and landed, by sync.
    switched: BTreeMap<SyncId, usize>,
    flushed: BTreeMap<SyncId, usize>,
    landed: BTreeMap<SyncId, usize>,
}

impl World {
    /// Goes through `syncs`, in the order that is chosen: `choose` picks one of so many.
    fn run(ranks: usize, syncs: &[Vec<Move>], mut choose: impl FnMut(usize) -> usize) {
        let mut world = World {
            syncs: syncs.to_vec(),
            machines: (0..ranks as u32).map(|rank| Migrations::new(Rank(rank), ranks as u32)).collect(),
            under_way: BTreeMap::new(),
            running: vec![0; ranks],
            switched: BTreeMap::new(),
            flushed: BTreeMap::new(),
            landed: BTreeMap::new(),
        };
        world.say_all(0, || Said::Moves(SyncId(0)));
        loop {
            let stopping: Vec<usize> = (0..ranks).filter(|&rank| world.running[rank] > 0).collect();
            let coming: Vec<(usize, usize)> = world.under_way.keys().copied().collect();
            match stopping.len() + coming.len() {
                0 => break,
                of => match choose(of) {
                    rank if rank < stopping.len() => world.held(stopping[rank]),
                    pair => world.hear(coming[pair - stopping.len()]),
                },
            }
        }
        let all = (0..syncs.len() as u64).map(|sync| (SyncId(sync), ranks)).collect();
        assert_eq!(world.landed, all, "every rank is through every sync");
    }

    fn say(&mut self, from: usize, to: usize, said: Said) {
        self.under_way.entry((from, to)).or_default().push_back(said);
    }

    fn say_all(&mut self, from: usize, said: impl Fn() -> Said) {
        (0..self.machines.len()).for_each(|to| self.say(from, to, said()));
    }

    fn held(&mut self, rank: usize) {
        self.running[rank] -= 1;
        let steps = self.machines[rank].held(journey);
        self.take(rank, steps);
    }

    fn hear(&mut self, (from, to): (usize, usize)) {
        let said = self.under_way.get_mut(&(from, to)).expect("it was listed");
        let next = said.pop_front().expect("empty ones are removed");
        if said.is_empty() {
            self.under_way.remove(&(from, to));
        }
        let steps = match next {
            Said::Moves(sync) => self.machines[to].begin(sync, &self.syncs[sync.0 as usize], cell),
            Said::Marker(sync) => self.machines[to].marker(sync),
            Said::Arrive(key) => self.machines[to].arrive(traveller(key)),
            Said::Flushed(sync) => return self.count_flushed(sync),
            Said::Land(sync) => return self.land(to, sync),
        };
        self.take(to, steps);
    }

    fn take(&mut self, rank: usize, steps: Vec<Step>) {
        for step in steps {
            match step {
                Step::Hold(cells) => self.running[rank] = cells.len(),
                Step::Switch { sync, .. } => {
                    *self.switched.entry(sync).or_default() += 1;
                    let others = (0..self.machines.len()).filter(|&other| other != rank);
                    others.for_each(|other| self.say(rank, other, Said::Marker(sync)));
                }
                Step::Release { leaver, .. } => {
                    let (&sync, &switched) = self.switched.last_key_value().expect("it has switched");
                    assert_eq!(switched, self.machines.len(), "rule 2 at sync {sync}");
                    self.say(rank, leaver.to.index(), Said::Arrive(leaver.chunk.key));
                }
                Step::Flushed { sync, .. } => self.say(rank, 0, Said::Flushed(sync)),
            }
        }
    }

    fn count_flushed(&mut self, sync: SyncId) {
        let flushed = self.flushed.entry(sync).or_default();
        *flushed += 1;
        if *flushed == self.machines.len() {
            self.say_all(0, || Said::Land(sync));
            // At once: others may have landed and be told of it while one has not landed yet.
            if sync.next().0 < self.syncs.len() as u64 {
                self.say_all(0, || Said::Moves(sync.next()));
            }
        }
    }

    fn land(&mut self, rank: usize, sync: SyncId) {
        let mut arrivals = landed(&mut self.machines[rank], sync);
        arrivals.sort_unstable();
        let here = |one: &&Move| one.to.index() == rank;
        let expected: Vec<_> = self.syncs[sync.0 as usize].iter().filter(here).map(|one| one.chunk).collect();
        assert_eq!(arrivals, expected, "who lands on rank {rank} at sync {sync}");
        *self.landed.entry(sync).or_default() += 1;
    }
}

/// Runs `run` with every sequence of choices.
fn every_order(mut run: impl FnMut(&mut dyn FnMut(usize) -> usize)) -> usize {
    let (mut taken, mut runs) = (Vec::<(usize, usize)>::new(), 0);
    loop {
        let mut depth = 0;
        run(&mut |of| {
            if depth == taken.len() {
                taken.push((0, of));
            }
            depth += 1;
            taken[depth - 1].0
        });
        runs += 1;
        while taken.pop_if(|(choice, of)| *choice + 1 == *of).is_some() {}
        let Some((choice, _)) = taken.last_mut() else { return runs };
        *choice += 1;
    }
}

#[test]
fn two_ranks_exchange_chunks_in_every_order() {
    let exchange = vec![one_move(1, 0, 1), one_move(2, 1, 0)];
    let back = vec![one_move(1, 1, 0)];
    let runs = every_order(|choose| World::run(2, &[exchange.clone(), back.clone()], choose));
    assert!(runs > 1000, "{runs}");
}

#[test]
fn several_ranks_move_chunks_round_in_orders_by_seed() {
    let syncs = |ranks: u32| {
        let round = (0..ranks).map(|rank| one_move(rank.into(), rank, (rank + 1) % ranks)).collect();
        let gather = (1..ranks).map(|rank| one_move(u64::from(rank) - 1, rank, 0)).collect();
        [round, gather, vec![one_move(0, 0, ranks - 1)]]
    };
    for seed in 0..300 {
        let mut rng = Pcg32::seed_from_u64(seed);
        let ranks = rng.random_range(2..6);
        World::run(ranks, &syncs(ranks as u32), |of| rng.random_range(0..of));
    }
}
