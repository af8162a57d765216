//! Describes the problem (particles, box, cells, forces), and what one step does to the particles of a cell.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use caribou::Index;
use caribou::random::stream;
use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::grid::{Grid, Offset, Vector, plus};
use super::lennard_jones::{Interaction, LennardJones};
use super::particle::{self, Energy, Particle};

/// All of the problem except the particles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rules {
    pub(crate) grid: Grid,
    pub(crate) cutoff: f64,
    pub(crate) law: LennardJones,
    /// Simulated time of one step.
    pub(crate) timestep: f64,
    /// Steps between two handovers of particles to the cells that they moved into.
    pub(crate) exchange: u32,
    pub(crate) iterations: u32,
}

/// All that decides the result of a run.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) rules: Rules,
    /// The particles that begin in each cell, in order of their IDs.
    pub(crate) initial: Arc<[Vec<Particle>]>,
}

/// Two neighbouring cells, or the same cell twice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pair {
    pub(crate) first: [u16; 3],
    /// The direction from the first to the second.
    pub(crate) offset: Offset,
}

/// Keys are ordered by the first cell, so that pairs are placed where their cells are.
impl Index for Pair {
    fn pack(self) -> u64 {
        self.first.pack() << 16 | u64::from(self.offset.0)
    }

    fn unpack(key: u64) -> Self {
        Self { first: Index::unpack(key >> 16), offset: Offset(key as u8) }
    }
}

impl Pair {
    /// All pairs, in rising order.
    pub(crate) fn all(grid: &Grid) -> impl Iterator<Item = Self> {
        grid.all().flat_map(|first| Offset::half().map(move |way| Self { first, offset: way }))
    }

    /// The 27 pairs of a cell by the direction of the other cell, and whether `cell` is the second of the pair.
    pub(crate) fn of(grid: &Grid, cell: [u16; 3]) -> impl Iterator<Item = (Self, bool)> {
        Offset::all().map(move |way| match way < Offset::STAY {
            true => (Self { first: grid.beyond(cell, way).0, offset: way.back() }, true),
            false => (Self { first: cell, offset: way }, false),
        })
    }
}

impl Rules {
    /// The interaction of the particles of a pair.
    pub(crate) fn interact(&self, pair: Pair, first: &[Vector], second: &[Vector]) -> Interaction {
        if pair.offset == Offset::STAY {
            return self.law.within(first);
        }
        let (_, shift) = self.grid.beyond(pair.first, pair.offset);
        self.law.between(first, second, shift)
    }

    /// The second half of a step: the forces of the 27 pairs, in the order of directions, complete the velocities.
    /// Returns the sums of the forces.
    pub(crate) fn complete(
        &self,
        particles: &mut [Particle],
        forces: impl Iterator<Item = impl AsRef<[Vector]>>,
        is_first: bool,
    ) -> Vec<Vector> {
        let mut sum = vec![[0.0; 3]; particles.len()];
        for part in forces {
            for (sum, &force) in sum.iter_mut().zip(part.as_ref()) {
                *sum = plus(*sum, force, 1.0);
            }
        }
        // Before the first step there are no velocities to complete.
        if !is_first {
            particle::kick(particles, &sum, 0.5 * self.timestep);
        }
        sum
    }

    /// The energies of a cell.
    ///
    /// # Errors
    /// A sentence, if the sum of such energies over all cells could overflow.
    pub(crate) fn energy(&self, kinetic: f64, potential: f64) -> Result<Energy, String> {
        let most = Energy::MOST / self.grid.count() as f64;
        match [kinetic, potential].into_iter().find(|energy| energy.is_nan() || energy.abs() > most) {
            Some(energy) => Err(format!(
                "a cell has an energy of {energy:.1e}, and {most:.1e} is the largest that can be summed: some \
                 particles begin too close to each other, or are too fast"
            )),
            None => Ok(Energy::new(kinetic, potential)),
        }
    }

    /// True if particles are handed over in `step`.
    pub(crate) fn exchanges(&self, step: u32) -> bool {
        step.is_multiple_of(self.exchange)
    }

    /// The first half of a step.
    ///
    /// # Errors
    /// A sentence, if a particle is so far outside that a particle two cells away could be within its cut-off.
    pub(crate) fn advance(
        &self,
        particles: &mut [Particle],
        forces: &[Vector],
        cell: [u16; 3],
    ) -> Result<(), String> {
        particle::kick(particles, forces, 0.5 * self.timestep);
        particle::drift(particles, self.timestep);
        let margin = self.margin();
        let is_lost = |particle: &&Particle| !self.grid.is_near(cell, particle.place, margin);
        match particles.iter().find(is_lost) {
            Some(Particle { id, place: [a, b, c], .. }) => Err(format!(
                "particle {id} is at {a:.3}, {b:.3}, {c:.3}, more than {margin:.3} outside of cell {cell:?}: --timestep \
                 or --exchange is too large, --cell too small, or some particles begin too close to each other"
            )),
            None => Ok(()),
        }
    }

    /// How far a particle may be outside of its cell.
    fn margin(&self) -> f64 {
        let narrowest = self.grid.sides.into_iter().fold(f64::INFINITY, f64::min);
        0.5 * (narrowest - self.cutoff)
    }
}

impl Problem {
    /// A hash of the initial particles: their places and velocities.
    pub(crate) fn initial_hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.initial.iter().flatten().for_each(|particle| format!("{particle:?}").hash(&mut hasher));
        hasher.finish()
    }

    /// Particles at these places, with velocities drawn at a temperature.
    pub(crate) fn new(rules: Rules, places: &[Vector], temperature: f64, seed: u64) -> Self {
        let velocities = velocities(places.len(), temperature, seed);
        let mut beginners = vec![Vec::new(); rules.grid.count() as usize];
        for (id, (&place, velocity)) in (0..).zip(places.iter().zip(velocities)) {
            let (cell, place) = rules.grid.owner(place);
            beginners[rules.grid.position(cell)].push(Particle { place, velocity, id });
        }
        Self { rules, initial: beginners.into() }
    }

    /// Particles.
    pub(crate) fn count(&self) -> u64 {
        self.initial.iter().map(|particles| particles.len() as u64).sum()
    }
}

/// The places of `count` particles on a cubic lattice that fills a cube; surplus sites stay empty, evenly spread.
pub(crate) fn lattice(count: u64, side: f64) -> Vec<Vector> {
    let sites = (1..).find(|sites: &u64| sites.pow(3) >= count).expect("whole numbers go on");
    let place = |particle: u64| {
        let site = (u128::from(particle) * u128::from(sites.pow(3)) / u128::from(count)) as u64;
        let along = [site / sites / sites, site / sites % sites, site % sites];
        along.map(|site| (site as f64 + 0.5) * side / sites as f64)
    };
    (0..count).map(place).collect()
}

/// Maxwell-Boltzmann velocities with a mean of 0 and exactly this temperature.
fn velocities(count: usize, temperature: f64, seed: u64) -> Vec<Vector> {
    let draw = |id: usize| {
        let mut random = stream(seed, id as u64);
        [(); 3].map(|()| {
            let [one, other]: [f64; 2] = [random.random(), random.random()];
            (-2.0 * (1.0 - one).ln()).sqrt() * (std::f64::consts::TAU * other).cos()
        })
    };
    let mut all: Vec<Vector> = (0..count).map(draw).collect();
    let sum = all.iter().fold([0.0; 3], |sum, &velocity| plus(sum, velocity, 1.0));
    all.iter_mut().for_each(|velocity| *velocity = plus(*velocity, sum, -1.0 / count as f64));
    let squared: f64 = all.iter().flatten().map(|length| length * length).sum();
    if squared > 0.0 {
        let factor = (3.0 * count as f64 * temperature / squared).sqrt();
        all.iter_mut().flatten().for_each(|length| *length *= factor);
    }
    all
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A liquid in 2 x 2 x 2 cells and more.
    pub(crate) fn problem(particles: u64, cell: f64, iterations: u32) -> Problem {
        let side = (particles as f64 / 0.8).cbrt();
        let grid = Grid::new([side; 3], cell).unwrap();
        let cutoff = 1.8;
        let rules =
            Rules { grid, cutoff, law: LennardJones::new(cutoff), timestep: 0.0007, exchange: 3, iterations };
        Problem::new(rules, &lattice(particles, side), 1.0, 1)
    }

    #[test]
    fn pairs_keep_their_order_when_packed() {
        let grid = Grid::new([9.0; 3], 3.0).unwrap();
        let pairs: Vec<_> = Pair::all(&grid).collect();
        let keys: Vec<_> = pairs.iter().map(|pair| pair.pack()).collect();
        assert!(keys.is_sorted() && pairs.iter().all(|&pair| Pair::unpack(pair.pack()) == pair));
        assert_eq!(pairs.len(), 14 * 27);
    }

    #[test]
    fn every_pair_has_its_cells_among_the_27_of_each() {
        let grid = Grid::new([9.0, 3.0, 6.0], 3.0).unwrap();
        let mut of_cells: Vec<_> = grid
            .all()
            .flat_map(|cell| Pair::of(&grid, cell).map(|(pair, second)| (pair.pack(), second)))
            .collect();
        of_cells.sort_unstable();
        let both = |pair: Pair| [false, true].map(|second| (pair.pack(), second));
        let expected = Pair::all(&grid)
            .flat_map(both)
            .filter(|&(key, second)| !second || Pair::unpack(key).offset != Offset::STAY);
        assert_eq!(of_cells, Vec::from_iter(expected));
    }

    #[test]
    fn velocities_have_the_temperature_and_go_nowhere_together() {
        let drawn = velocities(1000, 1.5, 7);
        let mean = |axis: usize| drawn.iter().map(|velocity| velocity[axis]).sum::<f64>() / 1000.0;
        let squared: f64 = drawn.iter().flatten().map(|length| length * length).sum();
        assert!((0..3).all(|axis| mean(axis).abs() < 1e-12) && (squared / 3000.0 - 1.5).abs() < 1e-12);
        assert_ne!(drawn, velocities(1000, 1.5, 8));
        assert_eq!(velocities(9, 0.0, 7), [[0.0; 3]; 9]);
    }

    #[test]
    fn a_lattice_is_full_or_has_holes_but_no_two_in_a_place() {
        for count in [1, 2, 27, 28, 1000] {
            let mut sites: Vec<_> =
                lattice(count, 3.0).into_iter().map(|place| place.map(f64::to_bits)).collect();
            sites.dedup();
            assert_eq!(sites.len() as u64, count);
        }
    }

    #[test]
    fn energies_that_cannot_be_added_are_refused() {
        let rules = problem(8, 2.1, 1).rules;
        assert_eq!(rules.energy(1.0, -2.0), Ok(Energy::new(1.0, -2.0)));
        for (kinetic, potential) in [(1e12, 0.0), (0.0, -1e12), (0.0, f64::INFINITY), (f64::NAN, 0.0)] {
            let refused = rules.energy(kinetic, potential).unwrap_err();
            assert!(
                refused.starts_with("a cell has an energy of ")
                    && refused.contains(" is the largest that can be summed"),
                "{refused}"
            );
        }
    }

    #[test]
    fn two_particles_in_one_place_are_noticed() {
        let Problem { rules, initial: beginners } = problem(8, 2.1, 1);
        let mut particles = beginners[0].clone();
        let forces = rules.law.within(&[[0.5; 3], [1.5; 3], [1.5; 3]]).on_first;
        particles.extend([1, 2].map(|id| Particle { place: [1.5; 3], velocity: [0.0; 3], id }));
        let lost = rules.advance(&mut particles, &forces, [0; 3]).unwrap_err();
        assert!(lost.starts_with("particle 1 is at NaN, NaN, NaN, more than 0."), "{lost}");
    }
}
