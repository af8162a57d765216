//! The histories: photons that fly, collide, turn, and end in a slab or outside. This is the loop in which time is spent.
//!
//! A photon starts before the first slab, straight on. It flies a number of mean free paths with an exponential
//! distribution, whatever slabs they take it through; there it is absorbed or scattered, in proportion to the two
//! cross-sections. Because slabs have no end to the sides, its depth and the cosine of its direction are all it needs.
//! No weights, no splitting, no forced collisions: each history is one photon, and errors follow from plain counting.

use std::ops::Range;

use rand::{Rng, RngExt};

use super::cost::Cost;
use super::energy::Energy;
use super::medium::Attenuation;
use super::slabs::Stack;
use super::tally::Tally;
use caribou::random::stream;

/// Photons below this are absorbed where they are: they would not leave the bin.
const CUTOFF_KEV: f64 = 1.0;

/// The problem to simulate; with a seed and a number of histories it has one result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Problem {
    /// The slabs.
    pub(crate) stack: Stack,
    /// The energy of the photons that arrive.
    pub(crate) energy: Energy,
    /// Parts of the depth in which deposits are told apart.
    pub(crate) bins: usize,
    /// The seed of all random numbers.
    pub(crate) seed: u64,
    /// The extra work of histories beside their physics.
    pub(crate) cost: Cost,
}

impl Problem {
    /// A tally of none of its histories.
    #[must_use]
    pub(crate) fn empty_tally(&self) -> Tally {
        Tally::new(self.stack.slabs().len(), self.bins)
    }

    /// The bin of a depth.
    fn bin(&self, depth_cm: f64) -> usize {
        let bin = (depth_cm / self.stack.depth_cm() * self.bins as f64) as usize;
        bin.min(self.bins - 1)
    }
}

/// Follows the photons of these histories and adds what happens to them to `tally`, some microseconds each.
///
/// The course of a history depends on the problem, its seed and the number of the history, on nothing else.
pub(crate) fn run_histories(problem: &Problem, histories: Range<u64>, tally: &mut Tally) {
    for history in histories {
        let mut rng = stream(problem.seed, history);
        follow(problem, &mut rng, tally);
        problem.cost.spend(&mut rng);
    }
}

/// A photon between two flights.
struct Photon {
    energy: Energy,
    slab: usize,
    depth_cm: f64,
    /// Of the angle between its direction and the depth; never zero.
    cosine: f64,
}

/// The end of a flight.
enum Flight {
    Collides(Attenuation),
    Transmitted,
    Reflected,
}

/// One history, from the source to the end of the photon.
fn follow(problem: &Problem, rng: &mut impl Rng, tally: &mut Tally) {
    let mut photon = Photon { energy: problem.energy, slab: 0, depth_cm: 0.0, cosine: 1.0 };
    let mut collisions = 0;
    loop {
        match photon.fly(&problem.stack, rng) {
            Flight::Transmitted => {
                tally.transmitted.add(photon.energy.units());
                tally.uncollided += u64::from(collisions == 0);
                break;
            }
            Flight::Reflected => {
                tally.reflected.add(photon.energy.units());
                break;
            }
            Flight::Collides(attenuation) => {
                collisions += 1;
                let before = photon.energy;
                let survives = photon.collide(&problem.stack, attenuation, rng);
                let bin = problem.bin(photon.depth_cm);
                if !survives {
                    tally.deposit(bin, before);
                    tally.absorb(photon.slab, photon.depth_cm);
                    break;
                }
                tally.deposit(bin, before.minus(photon.energy));
            }
        }
    }
    tally.close(collisions);
}

impl Photon {
    /// Flies until it collides or is outside.
    fn fly(&mut self, stack: &Stack, rng: &mut impl Rng) -> Flight {
        let mut free_paths = -(1.0 - rng.random::<f64>()).ln();
        loop {
            let slab = &stack.slabs()[self.slab];
            let attenuation = slab.medium.attenuation(self.energy);
            let border_cm = if self.cosine > 0.0 { slab.to_cm } else { slab.from_cm };
            let free_paths_to_border = (border_cm - self.depth_cm) / self.cosine * attenuation.total_per_cm();
            if free_paths < free_paths_to_border {
                let depth_cm = self.depth_cm + self.cosine * free_paths / attenuation.total_per_cm();
                // Rounding must not put it into another slab.
                self.depth_cm = depth_cm.clamp(slab.from_cm, slab.to_cm);
                return Flight::Collides(attenuation);
            }
            free_paths -= free_paths_to_border;
            self.depth_cm = border_cm;
            match (self.cosine > 0.0, self.slab) {
                (true, slab) if slab + 1 == stack.slabs().len() => return Flight::Transmitted,
                (true, _) => self.slab += 1,
                (false, 0) => return Flight::Reflected,
                (false, _) => self.slab -= 1,
            }
        }
    }

    /// Is absorbed, and returns false; or is scattered, and has less energy and another direction.
    fn collide(&mut self, stack: &Stack, attenuation: Attenuation, rng: &mut impl Rng) -> bool {
        if rng.random::<f64>() * attenuation.total_per_cm() < attenuation.absorption_per_cm {
            return false;
        }
        let (energy, turned) = stack.slabs()[self.slab].medium.scatter(self.energy, rng);
        if energy.kev() < CUTOFF_KEV {
            return false;
        }
        self.energy = energy;
        self.turn(turned, rng);
        true
    }

    /// Turns by an angle of this cosine, to any side alike.
    fn turn(&mut self, turned: f64, rng: &mut impl Rng) {
        let around = (std::f64::consts::TAU * rng.random::<f64>()).cos();
        let sines = ((1.0 - self.cosine * self.cosine) * (1.0 - turned * turned)).max(0.0).sqrt();
        let cosine = (self.cosine * turned + sines * around).clamp(-1.0, 1.0);
        // Along the slabs it would meet no border, and divide by zero.
        self.cosine = if cosine == 0.0 { f64::EPSILON } else { cosine };
    }
}
