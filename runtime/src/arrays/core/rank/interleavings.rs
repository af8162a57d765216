//! Tests syncs that move chunks in every possible order of packets between two ranks, and many orders between more.

use std::collections::{BTreeMap, VecDeque};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;

use super::drive::{CoreDriver, Plan};
use super::*;

/// Runs a plan: `choose(n)` picks one of `n` possible steps. In between, chunks that run send messages `talks` times.
fn run(plan: Plan, mut talks: u32, choose: &mut dyn FnMut(usize) -> usize) {
    let mut drive = CoreDriver::new(plan);
    let mut under_way = BTreeMap::<(Rank, Rank), VecDeque<Packet>>::new();
    (0..plan.ranks).for_each(|rank| drive.start(Rank(rank), 0));
    loop {
        for (from, to, packet) in drive.sent.drain(..) {
            under_way.entry((from, to)).or_default().push_back(packet);
        }
        under_way.retain(|_, packets| !packets.is_empty());
        let stopping: Vec<Rank> =
            (0..plan.ranks).map(Rank).filter(|&rank| drive.running[rank.index()] > 0).collect();
        let coming: Vec<(Rank, Rank)> = under_way.keys().copied().collect();
        let happens = stopping.len() + coming.len();
        if happens == 0 {
            return drive.check();
        }
        match choose(happens + usize::from(talks > 0)) {
            one if one < stopping.len() => drive.held(stopping[one], 0),
            one if one < happens => {
                let (from, to) = coming[one - stopping.len()];
                let packet = under_way.get_mut(&(from, to)).and_then(VecDeque::pop_front);
                drive.receive(from, to, packet.expect("it is on its way"), 0);
            }
            _ => {
                talks -= 1;
                drive.talk(choose(plan.chunks as usize) as u64, 0);
            }
        }
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
    let plan = Plan {
        ranks: 2,
        arity: 8,
        chunks: 2,
        syncs: 2,
        sends_to: |key, _| vec![1 - key],
        goes_to: |key, sync, _| match (sync.0, key) {
            (0, _) => Some(Rank(1 - key as u32)),
            _ => Some(Rank(0)),
        },
    };
    let runs = every_order(|choose| run(plan, 1, choose));
    assert!(runs > 1000, "{runs}");
}

#[test]
fn many_ranks_move_chunks_in_orders_by_seed() {
    for seed in 0..300 {
        let mut rng = Pcg32::seed_from_u64(seed);
        let ranks = rng.random_range(2..24);
        let plan = Plan {
            ranks,
            arity: rng.random_range(2..5),
            chunks: rng.random_range(1..=2 * u64::from(ranks)),
            syncs: 3,
            sends_to: |key, plan| vec![(key + 1) % plan.chunks, (key * 7 + 3) % plan.chunks],
            // One rank on, then all to one rank, then apart again.
            goes_to: |key, sync, plan| match sync.0 {
                0 => Some(Rank((key as u32 + 1) % plan.ranks)),
                1 => Some(Rank(plan.ranks / 2)),
                _ => Some(Rank((key * 5) as u32 % plan.ranks)),
            },
        };
        run(plan, 2 * ranks, &mut |of| rng.random_range(0..of));
    }
}
