//! The options of `mol3d`.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use caribou::Launch;
use harness::{Conditions, Error, memory, output};
use presentation::count_parser;

use super::grid::{Grid, Vector};
use super::input::{self, Input};
use super::lennard_jones::LennardJones;
use super::problem::{Problem, Rules, lattice};

/// Molecular dynamics in three dimensions: particles that attract and repel each other, in cells and pairs of cells.
///
/// Lengths are in units of the particles' size, energies in the depth of their potential (Lennard-Jones).
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "mol3d", version, after_help = AFTER_HELP)]
pub(crate) struct Options {
    /// Number of particles, initially on a lattice in a cube
    #[arg(long, value_name = "COUNT", default_value_t = 92_224, value_parser = count_parser(1..=PARTICLES_MAX))]
    pub(crate) particles: u64,
    /// Particles per unit of volume
    #[arg(long, value_name = "DENSITY", default_value_t = 0.8, value_parser = number(1e-6..=1.5))]
    pub(crate) density: f64,
    /// Instead of both: a file of particle positions, XYZ or PDB; an angstrom is one unit of length
    #[arg(long, value_name = "FILE", conflicts_with_all = ["particles", "density"])]
    pub(crate) input: Option<PathBuf>,
    /// Frame of the file to begin with, or model of a PDB file, counted from 1 [default: the first]
    #[arg(long, value_name = "NUMBER", requires = "input", value_parser = count_parser(1..=u32::MAX))]
    pub(crate) frame: Option<u32>,
    /// Temperature of the initial velocities
    #[arg(long, value_name = "TEMPERATURE", default_value_t = 1.0, value_parser = number(0.0..=100.0))]
    pub(crate) temperature: f64,
    /// Seed of the velocities
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = count_parser(0..=u64::MAX))]
    pub(crate) seed: u64,
    /// Distance beyond which particles do not interact
    #[arg(long, value_name = "LENGTH", default_value_t = 3.5, value_parser = number(1.0..=1000.0))]
    pub(crate) cutoff: f64,
    /// Minimum side of a cell, at least 1.1 cut-offs [default: that, or more if 200 particles take up more]
    #[arg(long, value_name = "LENGTH", value_parser = number(1.0..=1e6))]
    pub(crate) cell: Option<f64>,
    /// Simulated time of an iteration
    #[arg(long, value_name = "TIME", default_value_t = 0.001, value_parser = number(1e-6..=0.1))]
    pub(crate) timestep: f64,
    /// Iterations of each run
    #[arg(long, value_name = "COUNT", default_value_t = 200, value_parser = count_parser(1..=100_000_000u32))]
    pub(crate) iterations: u32,
    /// Iterations between two handovers of particles to the cells that they moved into
    #[arg(long, value_name = "ITERATIONS", default_value_t = 20, value_parser = count_parser(1..=1_000_000u32))]
    pub(crate) exchange: u32,
    /// Write the energies after each iteration
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) output: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Options win over CARIBOU_* variables, which win over the defaults.
Exit code: 0 done, 1 a run failed or its result is wrong, 2 bad options.

The box is periodic. XYZ may name it in its second line, as in Lattice=\"20 0 0 0 20 0 0 0 20\", beside the columns of its
lines, as in Properties=species:S:1:pos:R:3; PDB in its CRYST1 record. Without it the box ends one cut-off beyond the
particles. Of a molecule only the positions of atoms are read: velocities are drawn at --temperature, all masses are 1.
A file with an error is refused with the line of the error. A line on standard error lists what is not read: other
frames or models, further positions of one atom, columns and keys that are not read.

As many particles within the cut-off as in the benchmark ApoA1 of NAMD (92 224 atoms, 12 angstrom):
  mol3d --cutoff 6 --iterations 20";

/// Maximum number of particles. Up to it, their number and the sum of their energies are exact.
const PARTICLES_MAX: u64 = 100_000_000;

/// Approximate bytes per particle where it is: twice itself, its position, and the forces of 27 pairs.
const PARTICLE_BYTES: u64 = 2 * 56 + 28 * 24;

/// Bytes per particle in every process, because each process holds the initial particles of all.
const BEGINNING_BYTES: u64 = 104;

/// Minimum side of a cell over the cut-off, because particles leave their cells a little before they are handed over.
const ROOM: f64 = 1.1;

/// Approximate number of particles per cell, unless `--cell` is given.
const CROWD: f64 = 200.0;

/// Reads numbers of a range.
fn number(range: RangeInclusive<f64>) -> impl Fn(&str) -> Result<f64, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("expected a number from {} to {}", range.start(), range.end()))
    }
}

impl Options {
    /// The problem that the options describe.
    ///
    /// # Errors
    /// [`Error::Usage`], naming the option that cannot be met, or the line of the file that cannot be read.
    pub(crate) fn problem(&self, conditions: Conditions) -> Result<Problem, Error> {
        let Self { particles, density, cutoff, timestep, iterations, exchange, .. } = *self;
        let (places, sides) = match &self.input {
            Some(path) => {
                let Input { places, sides, notes } =
                    input::read(path, self.frame.map(|frame| frame as usize), cutoff)?;
                notes.iter().for_each(|note| output::note(conditions.launch, note));
                (places, sides)
            }
            None => {
                let what = format!("--particles {particles}");
                memory::check(&what, particles.saturating_mul(PARTICLE_BYTES), conditions.launch)?;
                memory::check(&what, particles.saturating_mul(BEGINNING_BYTES), Launch::Alone)?;
                let side = (particles as f64 / density).cbrt();
                (lattice(particles, side), [side; 3])
            }
        };
        let grid = self.grid(places.len(), sides)?;
        let chunks = grid.count().saturating_mul(15 * memory::CHUNK_BYTES);
        memory::check(&format!("{} cells", grid.count()), chunks, conditions.launch)?;
        let rules = Rules { grid, cutoff, law: LennardJones::new(cutoff), timestep, exchange, iterations };
        Ok(Problem::new(rules, &places, self.temperature, self.seed))
    }

    fn grid(&self, particles: usize, sides: Vector) -> Result<Grid, Error> {
        // The factor covers rounding, by which the product may be larger than on paper.
        let (cutoff, least) = (self.cutoff, ROOM * self.cutoff * (1.0 - 1e-12));
        let narrowest = sides.into_iter().fold(f64::INFINITY, f64::min);
        if narrowest < least {
            return Err(Error::Usage(format!(
                "--cutoff {cutoff}: expected a box of {least:.2} or more a side, not of {narrowest:.2}"
            )));
        }
        let crowded = || (CROWD * sides.iter().product::<f64>() / particles as f64).cbrt().min(narrowest);
        let side = self.cell.unwrap_or_else(|| crowded().max(least));
        if side < least || side > narrowest {
            // Rounded to values that are accepted.
            let [least, narrowest] =
                [(100.0 * least).ceil(), (100.0 * narrowest).floor()].map(|side| side / 100.0);
            return Err(Error::Usage(format!("--cell {side}: expected a side from {least} to {narrowest}")));
        }
        Ok(Grid::new(sides, side).expect("no cell is wider than the box"))
    }
}
