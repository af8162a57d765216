//! The options of `stencil2d`.

use caribou::{Launch, Placement};
use presentation::count_parser;

use super::plate::Shape;
use harness::{Conditions, Error, memory};

/// A hot plate cools: a five-point stencil in chunks, balanced while it runs.
///
/// Started without options it runs twice beside a busy neighbour, without and with balancing, and compares both runs.
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "stencil2d", version, after_help = AFTER_HELP)]
pub struct Options {
    /// The plate and its chunks.
    #[command(flatten)]
    pub grid: GridOptions,
    /// Iterations of each run
    #[arg(long, value_name = "COUNT", default_value_t = 800, value_parser = count_parser(1..=100_000_000u32))]
    pub iterations: u32,
    /// The ranks on which chunks begin: block (neighbours together), round-robin (in turn) or hash (scattered)
    #[arg(long, value_enum, value_name = "PLACEMENT", default_value = "block", hide_possible_values = true)]
    pub placement: Start,
}

/// The ranks on which chunks begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "kebab-case")]
pub enum Start {
    /// Equal runs of consecutive chunks.
    #[default]
    Block,
    /// In turn, one per rank.
    RoundRobin,
    /// Scattered, so that most neighbours are on other ranks.
    Hash,
}

impl From<Start> for Placement {
    fn from(start: Start) -> Self {
        match start {
            Start::Block => Self::Block,
            Start::RoundRobin => Self::RoundRobin,
            Start::Hash => Self::Hash,
        }
    }
}

/// The options of a square grid that is cut into chunks.
#[derive(Clone, Debug, clap::Args)]
pub struct GridOptions {
    /// Cells along one side of the grid
    #[arg(long, value_name = "CELLS", default_value_t = 4096, value_parser = count_parser(1..=usize::MAX))]
    pub grid: usize,
    /// Cells along one side of a chunk [default: 256, fewer where a rank would have few chunks]
    #[arg(long, value_name = "CELLS", value_parser = count_parser(1..=usize::MAX))]
    pub chunk: Option<usize>,
}

const AFTER_HELP: &str = "\
Options win over CARIBOU_* variables, which win over the defaults.
Exit code: 0 done, 1 a run failed or its result is wrong, 2 bad options.

The table: imbalance is the completion time of the slowest rank over the time with all work divided by the measured
capacities, the median of the syncs while something disturbs the run. Settled after is the number of syncs from the first
disturbance until iterations were as short as they then stayed. Saved is the part of the first run's time that a run
saved; at most, the part that it would have saved if all work had always been divided by the measured capacities.

The shape of the paper's experiment (figure 3; there 8192 cells on 32 vCPUs, here 4096 on two):
  stencil2d --grid 4096 --chunk 256 --iterations 500 --period 20 --neighbour 1:100-300 --compare none,refine --plot fig3.svg";

impl GridOptions {
    /// The grid and its chunks.
    ///
    /// # Errors
    /// [`Error::Usage`] when they are impossible.
    pub fn shape(&self, ranks: u32) -> Result<Shape, Error> {
        let chunk = self.chunk.unwrap_or_else(|| default_chunk(self.grid, ranks));
        Shape::new(self.grid, chunk)
    }

    /// Refuses a grid that does not fit the memory with `numbers` numbers per cell.
    ///
    /// # Errors
    /// [`Error::Usage`], naming the options.
    pub fn check_memory(&self, shape: Shape, numbers: u64, conditions: Conditions) -> Result<(), Error> {
        let field = (self.grid as u64).saturating_pow(2).saturating_mul(size_of::<f64>() as u64);
        let chunks = shape.chunks().saturating_mul(memory::CHUNK_BYTES);
        let asked = self.chunk.map_or(String::new(), |chunk| format!(" --chunk {chunk}"));
        memory::check(
            &format!("--grid {}{asked}", self.grid),
            field.saturating_mul(numbers).saturating_add(chunks),
            conditions.launch,
        )?;
        // With `--check` one process holds two fields of the serial program, which a step needs, and one of the run.
        if !conditions.checks {
            return Ok(());
        }
        memory::check(&format!("--grid {} --check", self.grid), field.saturating_mul(3), Launch::Alone)
    }
}

/// The largest side of 256 or less that leaves each rank the twenty chunks that balancing needs.
fn default_chunk(grid: usize, ranks: u32) -> usize {
    let enough = |chunk: &usize| (grid / chunk).saturating_pow(2) >= 20 * ranks as usize;
    [256, 128, 64, 32, 16, 8, 4, 2].into_iter().find(enough).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stencil2d::run::Plate;
    use caribou::config::Period;
    use clap::Parser;
    use harness::CommandLine;

    #[test]
    fn many_ranks_get_smaller_chunks() {
        assert_eq!(default_chunk(4096, 2), 256);
        assert_eq!(default_chunk(4096, 64), 64);
        assert_eq!(default_chunk(3, 2), 1);
    }

    #[test]
    fn every_documented_option_is_understood() {
        let line = |options: &str| {
            CommandLine::<Plate>::try_parse_from(format!("stencil2d {options}").split_whitespace())
        };
        let CommandLine { own, of_shape, shared } = line(
            "--grid 64 --chunk 8 --iterations 9 --period 3 --ranks 2 --workers 1 --neighbour 1:2-4:50% \
             --neighbour 0 --quota 1:50 --slow 0:2 --compare none,refine --plot a.svg --json a.json --check",
        )
        .unwrap();
        assert_eq!((own.grid.grid, own.grid.chunk, own.iterations, shared.check), (64, Some(8), 9, true));
        assert_eq!((of_shape.period, of_shape.slow.len()), (Some(Period::Steps(3)), 1));
        assert_eq!((shared.neighbour.len(), shared.quota.len()), (2, 1));
        assert_eq!(
            line("--lb refine,tolerance=0.1").unwrap().shared.lb.as_deref(),
            Some("refine,tolerance=0.1")
        );
        assert!(line("--lb a --compare b,c").is_err());
        let placements = ["", "--placement round-robin", "--placement hash"];
        let starts = placements.map(|options| line(options).unwrap().own.placement);
        assert_eq!(starts, [Start::Block, Start::RoundRobin, Start::Hash]);
    }
}
