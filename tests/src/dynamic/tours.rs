//! The shortest round trip by branch and bound: a chunk for each beginning of a tour, on whichever rank is idle, and a bound
//! on each rank. The search is over when every branch has contributed what it found.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use caribou::{Array, Chunk, Combine, Config, Ctx, Error, Placement, Reducer, Seed, Target, Values};
use serde::{Deserialize, Serialize};

use super::distances::{CITIES, Distances, others};

pub(super) use super::distances::serial;

/// Longer beginnings of tours are searched by one chunk.
const SPAWNED_MAX: usize = 3;

#[derive(PartialEq, PartialOrd, Serialize, Deserialize)]
struct Tour {
    cost: u32,
    cities: Vec<usize>,
}

impl Combine for Tour {
    fn combine(&mut self, other: Tour) {
        if other < *self {
            *self = other;
        }
    }
}

/// The tours that begin with these cities.
#[derive(Clone, Serialize, Deserialize)]
struct Branch {
    cities: Vec<usize>,
    bounds: Array<Bound>,
}

impl Branch {
    fn search(&mut self, best: &mut Tour, ctx: &mut Ctx<'_, Self>) {
        let (distances, bound) = (ctx.service::<Distances>(), ctx.service::<AtomicU32>());
        if distances.bound(&self.cities) > bound.load(Relaxed) {
            return;
        }
        if self.cities.len() == CITIES {
            let tour = Tour { cost: distances.cost(&self.cities), cities: self.cities.clone() };
            if tour.cost < bound.fetch_min(tour.cost, Relaxed) {
                ctx.broadcast_to(self.bounds, &tour.cost);
            }
            return best.combine(tour);
        }
        for city in others(&self.cities) {
            self.cities.push(city);
            if self.cities.len() <= SPAWNED_MAX {
                ctx.spawn(self.clone());
            } else {
                self.search(best, ctx);
            }
            self.cities.pop();
        }
    }
}

impl Chunk for Branch {
    type Index = Seed;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        let mut best = Tour { cost: u32::MAX, cities: Vec::new() };
        self.search(&mut best, ctx);
        ctx.contribute(0, Reducer::Own, Values::own(&best), Target::Exit);
        ctx.remove();
    }

    fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
}

/// Tells a rank of shorter tours.
#[derive(Serialize, Deserialize)]
struct Bound;

impl Chunk for Bound {
    type Index = u32;
    type Message = u32;

    fn receive(&mut self, cost: u32, ctx: &mut Ctx<'_, Self>) {
        ctx.service::<AtomicU32>().fetch_min(cost, Relaxed);
    }
}

/// The length of the shortest round trip, and its cities.
pub(super) fn run(config: Config) -> Result<(u32, Vec<usize>), Error> {
    let ranks = config.rank_count();
    let report = caribou::run(config, |setup| {
        setup.service(Distances::new());
        setup.service(AtomicU32::new(u32::MAX));
        let bounds = setup.array_without_sync(ranks, Placement::RoundRobin, |_| Bound);
        setup.array(1, move |_: Seed| Branch { cities: vec![0], bounds });
    })?;
    assert_eq!(report.undelivered.messages, 0, "{}", report.undelivered);
    let Tour { cost, cities } = report.combined()?;
    Ok((cost, cities))
}
