//! Animals that graze: what a step does to a pasture and its herd, and the whole in one loop.

use caribou::{Grid, Index};
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

const SIZE: u16 = 5;
pub(super) const PASTURES: Grid<[u16; 2]> = Grid::new([SIZE, SIZE]).periodic();
pub(super) const STEPS: u64 = 12;

/// Step of birth, pasture of birth, number.
pub(super) type Id = [u16; 3];

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Agent {
    pub(super) id: Id,
    /// 0 of a dead one.
    pub(super) energy: u32,
}

impl Agent {
    /// One that is there at the beginning.
    pub(super) fn first(id: Id) -> Agent {
        Agent { id, energy: 6 }
    }

    /// 1 and a checksum.
    pub(super) fn count(self) -> Vec<u64> {
        vec![1, caribou::random::stream(self.id.pack(), self.energy.into()).next_u64()]
    }

    /// The pasture that it goes to after a step.
    pub(super) fn next(self, from: [u16; 2], step: u64) -> [u16; 2] {
        PASTURES.neighbours(from).nth(self.slot(step)).map_or(from, |neighbour| neighbour.index)
    }

    /// The slot of that pasture.
    pub(super) fn slot(self, step: u64) -> usize {
        caribou::random::stream(self.id.pack(), step).random_range(0..8)
    }
}

/// The grass of a pasture.
#[derive(Serialize, Deserialize)]
pub(super) struct Grass(u32);

impl Grass {
    pub(super) fn new([i, j]: [u16; 2]) -> Grass {
        Grass(u32::from(i * 7 + j * 3) % 9)
    }

    /// A step of a herd, which eats in the order given: each agent afterwards, and its child.
    pub(super) fn graze(
        &mut self,
        step: u64,
        [i, j]: [u16; 2],
        herd: &[Agent],
    ) -> Vec<(Agent, Option<Agent>)> {
        self.0 = (self.0 + 6).min(24);
        let mut born = 0;
        let eat = |agent: &Agent| {
            let bite = self.0.min(5);
            self.0 -= bite;
            let energy = (agent.energy + bite).saturating_sub(3);
            if energy < 12 {
                return (Agent { energy, ..*agent }, None);
            }
            born += 1;
            let child = Agent { id: [step as u16 + 1, i * SIZE + j, born], energy: energy / 2 };
            (Agent { energy: energy / 2, ..*agent }, Some(child))
        };
        herd.iter().map(eat).collect()
    }
}

fn pastures() -> impl Iterator<Item = [u16; 2]> {
    (0..SIZE).flat_map(|i| (0..SIZE).map(move |j| [i, j]))
}

/// The agents that a pasture begins with.
pub(super) fn first_herd([i, j]: [u16; 2]) -> Vec<Agent> {
    (0..(i + j) % 3).map(|k| Agent::first([0, i * SIZE + j, k])).collect()
}

/// The names of the agents that there are at the beginning, in rising order.
pub(super) fn first_ids() -> Vec<Id> {
    pastures().flat_map(first_herd).map(|agent| agent.id).collect()
}

pub(super) fn birthplace([_, pasture, _]: Id) -> [u16; 2] {
    [pasture / SIZE, pasture % SIZE]
}

/// The agents that are alive after each step, and their checksum.
pub(super) fn serial() -> Vec<Vec<u64>> {
    let at = |[i, j]: [u16; 2]| usize::from(i * SIZE + j);
    let mut grass: Vec<Grass> = pastures().map(Grass::new).collect();
    let mut herds: Vec<Vec<Agent>> = pastures().map(first_herd).collect();
    let step = |step| {
        let mut next = vec![Vec::new(); herds.len()];
        let mut count = vec![0_u64; 2];
        for pasture in pastures() {
            herds[at(pasture)].sort_by_key(|agent| agent.id);
            let fates = grass[at(pasture)].graze(step, pasture, &herds[at(pasture)]);
            let both = fates.into_iter().flat_map(|(agent, child)| [Some(agent), child]).flatten();
            for agent in both.filter(|agent| agent.energy > 0) {
                count.iter_mut().zip(agent.count()).for_each(|(sum, value)| *sum = sum.wrapping_add(value));
                next[at(agent.next(pasture, step))].push(agent);
            }
        }
        herds = next;
        count
    };
    (0..STEPS).map(step).collect()
}
