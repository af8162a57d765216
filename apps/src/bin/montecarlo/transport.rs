//! Follows photons until they are absorbed or leave the slabs. The program spends its time in this loop.
//!
//! A photon starts before the first slab, straight on. It flies a number of mean free paths with an exponential
//! distribution, through however many slabs these take it. There it is absorbed or scattered, in proportion to the two
//! cross-sections. Slabs are infinite sideways, so depth and the cosine of the direction are all that a photon needs.
//! There are no weights, no splitting and no forced collisions: each history is one photon, and errors follow from
//! plain counting.

use std::ops::Range;

use rand::{Rng, RngExt};

use super::cost::Cost;
use super::energy::Energy;
use super::medium::Attenuation;
use super::slabs::Stack;
use super::tally::Tally;
use caribou::random::stream;

/// Photons below this energy are absorbed where they are, because they would not leave their bin.
const CUTOFF_KEV: f64 = 1.0;

/// The problem to simulate. A problem and a number of histories have one result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Problem {
    /// The slabs.
    pub(crate) stack: Stack,
    /// The energy of the photons that arrive.
    pub(crate) energy: Energy,
    /// Number of equal parts of the depth, for which deposits are counted.
    pub(crate) bins: usize,
    /// The seed of all random numbers.
    pub(crate) seed: u64,
    /// The extra work of histories beside their physics.
    pub(crate) cost: Cost,
}

impl Problem {
    /// An empty tally for this problem.
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

/// Follows the photons of these histories and adds the results to `tally`.
///
/// The course of a history depends only on the problem, its seed and the number of the history.
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
    /// Cosine of the angle between its direction and the depth; never zero.
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
                // Rounding must not put the photon into another slab.
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

    /// Absorbs the photon and returns false, or scatters it: it gets a new direction and may lose energy.
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

    /// Turns by an angle of this cosine, with equal probability to any side.
    fn turn(&mut self, turned: f64, rng: &mut impl Rng) {
        let around = (std::f64::consts::TAU * rng.random::<f64>()).cos();
        let sines = ((1.0 - self.cosine * self.cosine) * (1.0 - turned * turned)).max(0.0).sqrt();
        let cosine = (self.cosine * turned + sines * around).clamp(-1.0, 1.0);
        // A photon along the slabs would meet no border, and the code would divide by zero.
        self.cosine = if cosine == 0.0 { f64::EPSILON } else { cosine };
    }
}
