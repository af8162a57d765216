//! The options of `pic`.

use caribou::Launch;
use caribou::config::Period;
use harness::{Conditions, Error, memory};
use presentation::count_parser;

use crate::distribution::Distribution;
use crate::particle::Particle;
use crate::problem::Problem;
use crate::tiling::Tiling;

/// Particles travel over a grid, and their hot spot with them: the PIC kernel of the Parallel Research Kernels.
///
/// Every particle moves 2K + 1 columns and M rows per step, which --check verifies particle by particle.
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "pic", version, after_help = AFTER_HELP)]
pub(crate) struct Options {
    /// Cells along one side of the grid, an even number
    #[arg(long, value_name = "CELLS", default_value_t = 1000, value_parser = count_parser(2..=GRID_MAX))]
    pub(crate) grid: u32,
    /// Tiles along one side of the grid [default: 16, fewer where a particle could skip one]
    #[arg(long, value_name = "COUNT", value_parser = count_parser(1..=u16::MAX))]
    pub(crate) tiles: Option<u16>,
    /// Approximate number of particles: how many begin in a cell is random
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000, value_parser = count_parser(1..=PARTICLES_MAX))]
    pub(crate) particles: u64,
    /// Initial distribution: geometric:RATIO (each column has RATIO times the particles of the one before), sinusoidal,
    /// linear:ALPHA,BETA (from BETA in the first column down to BETA - ALPHA), or patch:LEFT,RIGHT,BOTTOM,TOP
    #[arg(long, default_value = "geometric:0.99", value_parser = Distribution::parse)]
    pub(crate) distribution: Distribution,
    /// Speed of the hot spot: particles move 2K + 1 columns per step
    #[arg(long, value_name = "K", default_value_t = 0, value_parser = count_parser(0..=GRID_MAX))]
    pub(crate) speed: u32,
    /// Rows that particles move per step, down if negative
    #[arg(long, value_name = "M", default_value_t = 1)]
    pub(crate) rise: i32,
    /// Iterations of each run; a step before them is not timed
    #[arg(long, value_name = "COUNT", default_value_t = 200, value_parser = count_parser(1..=100_000_000u32))]
    pub(crate) iterations: u32,
    /// Instead of --speed: measure the gain of balancing at each of these speeds, for each of --sweep-period; as in
    /// 0..=20 or 0,5,10
    #[arg(long, value_name = "SPEEDS", value_parser = Speeds::parse, conflicts_with = "speed")]
    pub(crate) sweep_speed: Option<Speeds>,
    /// When to balance chunks, with --sweep-speed; a curve for each: a number of iterations between two syncs, auto or
    /// a time [default: --period, then auto,2,5,20,50]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = curve_period, requires = "sweep_speed")]
    pub(crate) sweep_period: Option<Vec<Period>>,
    /// Runs per point of a curve; the median counts
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = count_parser(1..=1000u32), requires = "sweep_speed")]
    pub(crate) sweep_runs: u32,
}

/// Speeds of a sweep: one or more, rising, none twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Speeds(pub(crate) Vec<u32>);

impl Speeds {
    /// Reads speeds and ranges of them.
    ///
    /// # Errors
    /// A sentence that names what was expected.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let speed = |text: &str| text.trim().parse::<u32>().ok().filter(|&speed| speed <= SPEEDS_MAX);
        let part = |part: &str| match part.split_once("..=") {
            Some((from, to)) => Some(speed(from)?..=speed(to)?),
            None => speed(part).map(|speed| speed..=speed),
        };
        let parts: Option<Vec<_>> = text.split(',').map(part).collect();
        let speeds: Vec<u32> = parts.into_iter().flatten().flatten().collect();
        if speeds.is_empty() || !speeds.is_sorted_by(|one, next| one < next) {
            return Err(format!("expected rising speeds up to {SPEEDS_MAX}, as in 0..=20 or 0,5,10"));
        }
        Ok(Self(speeds))
    }
}

/// Largest speed of a sweep, which makes several runs at each speed.
const SPEEDS_MAX: u32 = 10_000;

/// Largest grid. Every cell draws its number of particles, which takes minutes in a larger one.
const GRID_MAX: u32 = 50_000;

/// Maximum number of particles. Their IDs and the sum of these are then exact.
const PARTICLES_MAX: u64 = 4_000_000_000;

/// Default number of tiles along one side: each of two ranks has 128 tiles.
const TILES: u16 = 16;

const AFTER_HELP: &str = "\
Options win over CARIBOU_* variables, which win over the defaults.
Exit code: 0 done, 1 a run failed or its result is wrong, 2 bad options.

A tile has to be 2K + 1 cells wide and as many high as particles rise, so that none skips a tile.
With --check every particle is verified by its closed form, no ID may be missing, and all is compared with the serial
program bit for bit.

The reference program's examples (T L n k m, then the distribution):
  pic --check --iterations 10 --grid 1000 --particles 1e6 --speed 1 --rise 2 --distribution geometric:0.99
  pic --check --iterations 10 --grid 1000 --particles 1e6 --speed 0 --rise 1 --distribution sinusoidal
  pic --check --iterations 10 --grid 1000 --particles 1e6 --speed 1 --rise 0 --distribution linear:1,3
  pic --check --iterations 10 --grid 1000 --particles 1e6 --speed 1 --rise 0 --distribution patch:0,200,100,200";

impl Options {
    /// The problem that the options describe.
    ///
    /// # Errors
    /// [`Error::Usage`], naming the option that cannot be met.
    pub(crate) fn problem(&self) -> Result<Problem, Error> {
        let Self { grid, tiles, particles, distribution, speed: k, rise: m, iterations, .. } = *self;
        let (columns, rows) = (2 * k + 1, m.unsigned_abs());
        let fits = |tiles: u16| grid / u32::from(tiles) >= columns.max(rows);
        let tiles = tiles.unwrap_or_else(|| (1..=TILES).rev().find(|&tiles| fits(tiles)).unwrap_or(1));
        let tiling = Tiling::new(grid, tiles)?;
        let narrow = tiling.shortest_side();
        if columns > narrow {
            let option = if self.sweep_speed.is_some() { "--sweep-speed" } else { "--speed" };
            return Err(Error::Usage(format!(
                "{option} {k}: particles move {columns} columns a step, and would skip tiles of {narrow}; expected {} at most",
                (narrow - 1) / 2
            )));
        }
        if rows > narrow {
            return Err(Error::Usage(format!(
                "--rise {m}: particles move {rows} rows a step, and would skip tiles of {narrow}; expected -{narrow} to {narrow}"
            )));
        }
        if !distribution.fits(grid) {
            return Err(Error::Usage(format!(
                "--distribution {distribution} does not fit in a grid of {grid} cells a side, whose last is {}",
                grid - 1
            )));
        }
        Ok(Problem { tiling, particles, distribution, k, m, iterations })
    }

    /// Refuses particles that do not fit into memory.
    ///
    /// # Errors
    /// [`Error::Usage`], naming the options.
    pub(crate) fn check_memory(&self, problem: &Problem, conditions: Conditions) -> Result<(), Error> {
        let particles = self.particles.saturating_mul(size_of::<Particle>() as u64);
        let chunks = problem.tiling.tiles().saturating_mul(memory::CHUNK_BYTES);
        let asked = format!("--particles {}", self.particles);
        // Vectors that grow have room for twice as many.
        let needed = particles.saturating_mul(2).saturating_add(chunks);
        memory::check(&asked, needed, conditions.launch)?;
        // With `--check` one process holds all particles of the serial program.
        if !conditions.checks {
            return Ok(());
        }
        memory::check(&format!("{asked} --check"), particles, Launch::Alone)
    }
}

/// The period of a curve. 0 is refused, because a sweep always has runs without balancing.
fn curve_period(text: &str) -> Result<Period, String> {
    match text.parse()? {
        Period::Steps(0) => Err("`0`: expected a number of iterations from 1, auto, or a time".to_owned()),
        period => Ok(period),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Pic;
    use clap::Parser;
    use harness::CommandLine;

    fn options(arguments: &str) -> Options {
        let line = format!("pic {arguments}");
        CommandLine::<Pic>::try_parse_from(line.split_whitespace()).unwrap().own
    }

    fn refusal(arguments: &str) -> String {
        options(arguments).problem().unwrap_err().to_string()
    }

    #[test]
    fn every_documented_option_is_understood() {
        let problem = options(
            "--grid 40 --tiles 5 --particles 2e3 --distribution linear:1,3 --speed 2 --rise=-3 --iterations 9",
        )
        .problem()
        .unwrap();
        assert_eq!((problem.tiling, problem.particles), (Tiling::new(40, 5).unwrap(), 2000));
        assert_eq!(problem.distribution, Distribution::Linear { alpha: 1.0, beta: 3.0 });
        assert_eq!((problem.k, problem.m, problem.iterations), (2, -3, 9));
    }

    #[test]
    fn speeds_of_a_sweep_rise() {
        let line = |arguments: &str| {
            CommandLine::<Pic>::try_parse_from(format!("pic {arguments}").split_whitespace())
                .map(|line| line.own)
        };
        let own = line("--sweep-speed 0..=20 --sweep-period 4,8 --sweep-runs 3").unwrap();
        assert_eq!(
            (own.sweep_speed.unwrap().0.len(), own.sweep_period, own.sweep_runs),
            (21, Some(vec![Period::Steps(4), Period::Steps(8)]), 3)
        );
        for bad in [
            "--sweep-speed 3,2",
            "--sweep-speed 5..=2",
            "--sweep-speed 1,1",
            "--sweep-speed 0..20",
            "--sweep-speed 0..=20000",
            "--sweep-speed=",
            "--sweep-period 5",
            "--sweep-speed 1 --speed 2",
            "--sweep-speed 1 --sweep-period 0",
        ] {
            assert!(line(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_fast_hot_spot_gets_wider_tiles() {
        let tiles = |arguments| options(arguments).problem().unwrap().tiling.side();
        assert_eq!(tiles(""), 16);
        assert_eq!(tiles("--speed 30"), 16);
        assert_eq!(tiles("--speed 40"), 12);
        assert_eq!(tiles("--speed 499 --rise 2"), 1);
        assert_eq!(tiles("--grid 8"), 8);
    }

    #[test]
    fn impossible_problems_are_refused_in_words() {
        assert!(refusal("--speed 40 --tiles 16").contains("--speed 40: particles move 81 columns a step"));
        assert!(refusal("--rise=-63 --tiles 16").contains("would skip tiles of 62"));
        assert!(refusal("--speed 500").contains("skip tiles of 1000"));
        assert!(refusal("--grid 7").contains("even"));
        assert!(refusal("--grid 20 --tiles 21").contains("--tiles 21"));
        assert!(refusal("--grid 20 --distribution patch:0,20,1,2").contains("whose last is 19"));
    }
}
